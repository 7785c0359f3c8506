//! The doors that stay open: the tools of the contract over MCP and HTTP. Nothing here decides anything; a call goes
//! to [`aop_store::Service`] as it does from the command line, and what comes back is the same envelope.
//!
//! `stdio` runs a server on standard input and output, `serve` one on HTTP; `mcp/` and `http/` speak the protocols,
//! `tokens` says who may come in, `expiry` is the clock, `feed` hands out events, `wait` waits for an answer.

mod details;
mod expiry;
mod feed;
#[doc(hidden)]
pub mod fuzz;
mod http;
mod mcp;
mod pages;
mod secret;
mod serve;
mod stdio;
pub mod tokens;
mod wait;

pub use http::openapi::document as openapi;
pub use http::tls::TlsFiles;
pub use serve::{Ended, Ready, Serve, serve_http};
pub use stdio::{refuse_stdio, serve_stdio};

use aop_kernel::question::EngineRef;
use aop_kernel::role::Caller;
use aop_store::Service;
use std::path::PathBuf;
use std::time::Duration;

/// What a server needs to know.
pub struct Door {
    /// The store and the rules.
    pub service: Service,
    /// In whose name every call is made.
    pub caller: Caller,
    /// The `.aop` folder, if the files below it are wanted.
    pub files: Option<PathBuf>,
    /// How long `ask_user` and `await_answer` wait before they say that nobody has answered yet.
    pub patience: Duration,
    /// Whether what the client's own interface accepts is an answer. Not for an agent with a credential.
    pub elicits: bool,
    /// The engine that started the client, where it is parked instead of kept waiting.
    pub engine: Option<EngineTurn>,
    /// Under which name answers are given; `None` leaves it to the call.
    pub signs: Option<String>,
    /// The id of the stored token that the client came with; it counts for as long as that is good.
    pub token: Option<String>,
    /// Where to say what no client has to know.
    pub warn: fn(&str),
}

/// A turn of an engine whose agent asks over this door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineTurn {
    /// The way back to the session.
    pub engine: EngineRef,
    /// What the turn runs under: the same call under the same claim is the same question.
    pub claim: String,
    /// Nobody may be asked, and these are the words for that.
    pub refuses: Option<String>,
    /// Nobody may be asked yet, not for a permission either, and these are the words for that.
    pub not_yet: Option<String>,
}
