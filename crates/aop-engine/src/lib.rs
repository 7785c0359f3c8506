//! The engines: how each agent program is started, watched, parked and resumed. One folder per engine, one
//! port for all of them, one place that supervises processes.
//!
//! What a turn means is not decided here (that is `aop-turn`), and nothing here knows the store: whoever runs
//! a turn is its [`Host`].

mod ask;
mod attach;
pub mod claude;
mod codex;
#[doc(hidden)]
pub mod fuzz;
pub mod gemini;
mod iflow;
mod mention;
mod plain;
mod port;
pub mod process;
pub mod program;
mod registry;
pub mod scripted;
pub mod words;

/// The folder of a project that is aop's own.
pub const AOP_DIR: &str = ".aop";

pub use ask::arguments;
pub use attach::{Attach, attach};
pub use port::{
    Asked, Capabilities, Driver, EngineError, Host, HostError, Input, Limits, Pending, Progress, Reply,
    ReplyKind, SessionRef, TurnReport, TurnRequest,
};
pub use process::{Surroundings, is_copy, reap_leftovers};
pub use registry::{capabilities, check_permissions, driver};
