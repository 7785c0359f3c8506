//! Small durable documents beside the questions: engine sessions, runs, notes, results, tokens and more. A shelf is a
//! kind of them, a key is a name on it. They are no history: the last word stands, events are elsewhere.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A kind of document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shelf {
    /// Engine sessions, by feature and role.
    Sessions,
    /// Runs, by run id.
    Runs,
    /// Notes for a role's next turn, by feature, role and id.
    Notes,
    /// Results of phases and checks, by feature and name.
    Results,
    /// Credentials, by token id.
    Tokens,
    /// Runners and what they can run, by runner id.
    Runners,
    /// From which round on an asking that is repeated has to be looked for, by the operation of its first.
    Rounds,
}

impl Shelf {
    /// Every shelf.
    pub const ALL: &[Shelf] = &[
        Shelf::Sessions,
        Shelf::Runs,
        Shelf::Notes,
        Shelf::Results,
        Shelf::Tokens,
        Shelf::Runners,
        Shelf::Rounds,
    ];

    /// The name in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Shelf::Sessions => "sessions",
            Shelf::Runs => "runs",
            Shelf::Notes => "notes",
            Shelf::Results => "results",
            Shelf::Tokens => "tokens",
            Shelf::Runners => "runners",
            Shelf::Rounds => "rounds",
        }
    }
}

/// What must hold for a document to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// Nothing.
    Anything,
    /// There is none by that name.
    Absent,
    /// The one there is has exactly this value.
    Value(Value),
    /// This lease is still held under this epoch: what a former holder writes is refused.
    Lease {
        /// The lease.
        name: String,
        /// The epoch it was granted with.
        epoch: u64,
    },
}
