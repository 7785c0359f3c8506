//! What one turn of an engine means: streams to events, evidence to outcome, patches and command lines.
//!
//! The way through this crate: bytes → [`stream`] (events) → [`turn`] (what is left of a turn once it is over)
//! → [`mod@judge`] (the outcome) → [`ask`] (what to ask a human) or [`repair`] (what to tell the engine). How a
//! turn is started is said by [`command`], [`patch`] and, for Codex's structured output, [`flat`]. Everything is a
//! pure function of its arguments: no clock, no randomness, no I/O; a JSON Schema check comes in as a function.

pub mod ask;
pub mod command;
pub mod engine;
pub mod evidence;
pub mod flat;
pub mod interaction;
pub mod judge;
pub mod native;
pub mod outcome;
pub mod patch;
pub mod quote;
pub mod repair;
pub mod stream;
mod tail;
pub mod turn;

pub use engine::{Engine, Mode, Role};
pub use judge::{OutputSchema, Process, Rules, Verdict, judge};
pub use outcome::{Outcome, TurnErrorCode};
pub use turn::{Turn, TurnReader};

/// The name of the completion marker.
pub const MARKER: &str = "__SKILL_DONE__";
