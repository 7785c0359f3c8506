//! The real binary, driven as a person or a script would drive it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop there")]

mod agents;
mod asking;
mod bad_input;
mod browser;
mod browser_pages;
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
mod pages;
mod postgres;
mod processes;
mod real_mcp_clients;
mod replay;
mod run_support;
mod running;
mod support;
mod terminal;
