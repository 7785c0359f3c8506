//! For tests and self-tests: fake model servers on loopback that play a script and keep what they received, and
//! a clean environment for the agent programs that talk to them; and throw-away PostgreSQL servers.
//!
//! Nothing here is a model. A [`FakeModel`] speaks one [`Wire`] format, answers the n-th request of the main
//! agent with the n-th reply of its [`Script`], and never lets the small requests that the programs make on
//! their own (titles, summaries, routing, sub-agents) use up a step.

mod clean;
mod model;
pub mod postgres;
mod received;
mod script;
mod wire;

pub use clean::{CleanHome, ENGINES_VARIABLE, Engines, Program};
pub use model::FakeModel;
pub use received::{Part, Received, ToolResult};
pub use script::{Call, Gate, Reply, Script};
pub use wire::Wire;
