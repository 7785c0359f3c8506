//! Features and questions: what may happen to them, decided without I/O, clock or randomness.
//!
//! A caller hands in a command, a snapshot, the time and fresh ids; the kernel hands back events and the
//! envelope, or a refusal. Stores commit what comes back; surfaces render it.

pub mod code;
pub mod envelope;

pub use code::ErrorCode;
pub use envelope::{Envelope, Refusal};
