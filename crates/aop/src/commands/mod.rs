//! One file per command: its arguments and its `run`.

pub(crate) mod answer;
pub(crate) mod ask;
pub(crate) mod cancel;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod engine;
pub(crate) mod explain;
pub(crate) mod features;
pub(crate) mod guard;
pub(crate) mod hook;
pub(crate) mod init;
pub(crate) mod log;
pub(crate) mod mcp;
pub(crate) mod packet;
pub(crate) mod prompts;
pub(crate) mod questions;
pub(crate) mod reopen;
pub(crate) mod replay;
pub(crate) mod retry;
pub(crate) mod scripted;
pub(crate) mod spec;
pub(crate) mod status;
pub(crate) mod tool;
pub(crate) mod turn;
pub(crate) mod walk;
mod which;
pub(crate) mod withdraw;
