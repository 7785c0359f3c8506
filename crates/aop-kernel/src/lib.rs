//! Features and questions: what may happen to them, decided without I/O, clock or randomness.
//!
//! A caller hands in a command, a snapshot, the time and fresh ids; the kernel hands back events and the
//! envelope, or a refusal. Stores commit what comes back; surfaces render it.
//!
//! The way in is [`tools::parse`] (arguments to a request), [`lifecycle::expire_due`] (what the clock did
//! meanwhile) and [`lifecycle::apply`] (the request itself).

pub mod code;
pub mod context;
pub mod envelope;
pub mod event;
pub mod feature;
pub mod hex;
pub mod ids;
pub mod json;
pub mod lifecycle;
pub mod log;
pub mod own;
pub mod policy;
pub mod question;
pub mod replay;
pub mod role;
pub mod signs;
pub mod status;
mod text;
pub mod time;
pub mod tools;
pub mod words;
pub mod work;

pub use code::ErrorCode;
pub use envelope::{Envelope, Refusal};
