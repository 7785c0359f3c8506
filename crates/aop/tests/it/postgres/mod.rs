//! The real binary on PostgreSQL: the main flows once more, and what only a shared database has.

#[path = "../asking.rs"]
mod asking;
mod away;
mod chaos;
#[path = "../crash.rs"]
mod crash;
mod killed;
#[path = "../lifecycle.rs"]
mod lifecycle;
mod moving;
mod pair;
#[path = "../processes.rs"]
mod processes;
#[path = "../run_crash.rs"]
mod run_crash;
#[path = "../run_rests.rs"]
mod run_rests;
mod runners;
#[path = "../running.rs"]
mod running;
mod stalls;
mod team;
