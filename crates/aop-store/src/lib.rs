//! Durable storage: the port, its SQLite, PostgreSQL and in-memory implementations, the files below `.aop/features/`, and
//! the use cases that every surface calls.

mod check;
mod clock;
mod copy;
mod decide;
mod error;
mod fault;
mod folder;
mod history;
mod memory;
mod overlay;
mod plain;
mod port;
mod postgres;
mod projection;
mod record;
mod rows;
mod service;
mod shelf;
mod sqlite;
mod variable;
mod wakes;
pub mod worktree;

pub use clock::{Clock, ManualClock, SystemClock};
pub use copy::{Copied, copy};
pub use error::StoreError;
pub use fault::crash_point;
pub use folder::make_folder;
pub use history::{Entries, Entry, Origin, Visit};
pub use memory::MemoryStore;
pub use plain::{open_file, open_lock_file, read_file, read_text_file};
pub use port::{
    Claim, ClaimState, EventPage, FeatureFiles, FeaturePage, FeatureView, Inbox, Lease, Pending,
    QuestionPage, Receipt, Store,
};
pub use postgres::{PostgresOptions, PostgresStore, Schema, TimeSource};
pub use projection::{Files, ProjectionError, Projector};
pub use record::Record;
pub use service::{AtWork, Items, Service, fresh_operation};
pub use shelf::{Expect, Shelf};
pub use sqlite::SqliteStore;
pub use variable::variable;
