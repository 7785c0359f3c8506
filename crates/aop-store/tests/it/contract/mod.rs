//! What every backend owes. One body per rule, run on each of them; `World::check` follows each.

mod edge_cases;
mod rules_ask_and_answer;
mod rules_lifecycle;
