//! What only PostgreSQL has: many processes on many machines, many projects in one database, a server that goes
//! away and comes back.

mod copying;
mod doubt;
mod encryption;
mod faults;
mod isolation;
mod schema;
mod sharing;
mod silence;
mod tenants;

use crate::support::{START, World};
use aop_kernel::time::Timestamp;
use aop_store::{ManualClock, PostgresOptions, PostgresStore, TimeSource};
use std::sync::Arc;
use tempfile::TempDir;

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::from_millis(START)))
}

/// A world on a project that may be shared with another one, with a clock of its own.
fn world(options: &PostgresOptions) -> World {
    let clock = clock();
    let store = Arc::new(crate::support::postgres(options, &clock));
    World::on(store, clock, TempDir::new().unwrap())
}

/// A world in the database's own time, as the program runs.
fn live(options: &PostgresOptions) -> World {
    let store = Arc::new(PostgresStore::open(options.clone(), TimeSource::Database).unwrap());
    World::on(store, clock(), TempDir::new().unwrap())
}
