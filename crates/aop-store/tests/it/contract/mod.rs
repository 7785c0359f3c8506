//! What every backend owes. One body per rule, run on each of them; `World::check` follows each.

mod access;
mod arguments;
mod edge_cases;
mod history;
mod holding;
mod operations;
mod reads;
mod rules_ask_and_answer;
mod rules_lifecycle;
mod secrets;
mod shelves;
mod status;
mod timeouts;
pub(crate) mod waking;
