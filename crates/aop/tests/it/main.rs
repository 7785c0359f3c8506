//! The real binary, driven as a person or a script would drive it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop there")]
#![expect(clippy::duplicate_mod, reason = "the main flows run a second time on PostgreSQL")]

mod agents;
mod asking;
mod bad_input;
mod browser;
mod browser_pages;
mod crash;
mod docs;
mod documents;
mod engine;
mod export;
mod http_client;
mod http_guard;
mod http_serve;
mod http_tls;
mod lifecycle;
mod mcp;
mod mcp_ask;
mod mcp_client;
mod mcp_elicit;
mod mcp_http;
mod mcp_install;
mod media;
mod openapi;
mod packets;
mod pages;
mod postgres;
mod processes;
mod real_gemini_runs;
mod real_mcp_clients;
mod real_python_schemathesis;
mod real_python_sdk;
mod real_run;
mod replay;
mod run_acceptance;
mod run_asked_again;
mod run_chaos;
mod run_crash;
mod run_rules;
mod run_scale;
mod run_support;
mod running;
mod stdout;
mod support;
mod terminal;
