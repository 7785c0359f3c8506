//! Processes of engines: started, watched and ended in one place.
//!
//! Between `aop` and an engine stands a guard: this same program, started once for each turn. It owns the engine's
//! pipes and everything that the engine starts, and it ends all of that at once when `aop` is gone, before the engine
//! could notice (an engine that sees its input close winds up its turn, and that spoils the conversation). `aop`
//! talks to the guard in frames and never to the engine itself.

mod environment;
mod family;
pub(crate) mod frame;
mod guard;
mod guarded;
mod lines;
mod record;

pub use environment::{AGENT_VARIABLE, Surroundings, agent_variables};
pub use family::start_time;
pub use guard::{GuardArgs, guard};
pub use guarded::{Cause, End, Guarded, Launch, Stdin};
pub(crate) use record::end_turn_of;
pub use record::{is_copy, reap_leftovers};

use serde::{Deserialize, Serialize};

/// A process that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// Its process group, which is also its own id.
    pub pgid: i32,
    /// When the kernel says it began (clock ticks since boot); 0 where the kernel does not say.
    pub start_time: u64,
}
