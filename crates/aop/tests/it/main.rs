//! The real binary, driven as a person or a script would drive it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop there")]

mod agents;
mod asking;
mod bad_input;
mod crash;
mod documents;
mod engine;
mod export;
mod http_client;
mod http_guard;
mod http_serve;
mod lifecycle;
mod mcp;
mod mcp_ask;
mod mcp_client;
mod mcp_elicit;
mod media;
mod packets;
mod postgres;
mod processes;
mod real_gemini_runs;
mod real_mcp_clients;
mod real_run;
mod replay;
mod run_chaos;
mod run_crash;
mod run_rules;
mod run_scale;
mod run_support;
mod running;
mod support;
mod terminal;
