//! A project's history as a stream of entries: what `aop export` writes, `aop import` reads and a copy from one
//! store to another carries. Everything that a later command could ask about is in it; what belongs to one
//! machine (credentials, runners) and what nobody may read twice (secret answers) is not.

use crate::error::StoreError;
use crate::port::ClaimState;
use crate::shelf::Shelf;
use aop_kernel::event::Recorded;
use aop_kernel::{ErrorCode, Refusal};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One piece of a history. Events come first, in order; then operations, leases, claims and documents, by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "the fields are the columns of the tables they come from")]
pub enum Entry {
    /// Something that happened.
    Event(Recorded),
    /// A row of the ledger: a retry of this operation after a restore gets the same envelope, byte for byte.
    Operation { operation_id: String, digest: String, envelope: String },
    /// How often a lease changed hands. It comes back held by nobody, with an epoch that goes on growing.
    Lease { name: String, epoch: u64 },
    /// What was done once, or begun: a restored project does not do it again.
    Claim { subject: String, holder: String, epoch: u64, state: ClaimState },
    /// A document on a shelf that travels.
    Document { shelf: Shelf, key: String, value: Value },
}

/// Takes the entries of a history, one after the other; an error ends it.
pub type Visit = Box<dyn FnMut(Entry) -> Result<(), StoreError> + Send>;

/// Gives the entries of a history, one after the other; an error undoes the restore.
pub type Entries = Box<dyn Iterator<Item = Result<Entry, StoreError>> + Send>;

/// Where a history comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The store's own name for the project.
    pub project_id: String,
    /// The last event.
    pub seq: u64,
}

/// Shelves whose documents are part of a history. Credentials and runners belong to where they were made, and rounds are
/// found again.
pub(crate) const TRAVELLING: &[Shelf] = &[Shelf::Sessions, Shelf::Runs, Shelf::Notes, Shelf::Results];

/// A history is only restored into a project that has none.
pub(crate) fn not_empty(events: u64, operations: u64) -> StoreError {
    let message = format!("the project already holds {events} events and {operations} operations");
    Refusal::new(ErrorCode::ProjectNotEmpty, message)
        .fact("events", events)
        .fact("operations", operations)
        .into()
}

/// An event that does not follow the one before it.
pub(crate) fn out_of_order(expected: u64, found: u64) -> StoreError {
    StoreError::Damaged {
        place: format!("event {found}"),
        cause: format!("event {expected} should stand here: a history has no gaps"),
    }
}

/// A document on a shelf that does not travel.
pub(crate) fn stays(shelf: Shelf, key: &str) -> StoreError {
    StoreError::Damaged {
        place: format!("document {} {key}", shelf.as_str()),
        cause: "what stands on this shelf is never part of a history".into(),
    }
}
