//! The real binary on PostgreSQL: the main flows once more, and what only a shared database has.

#[path = "../asking.rs"]
mod asking;
#[path = "../crash.rs"]
mod crash;
mod killed;
#[path = "../lifecycle.rs"]
mod lifecycle;
#[path = "../processes.rs"]
mod processes;
mod team;
