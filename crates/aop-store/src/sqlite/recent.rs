//! Features and counters as the last commits left them. A feature is usually changed several times in a row, and to
//! read its records back costs as much as to decide. Nothing is kept once anybody else has written to the file.

use super::connect;
use crate::rows::in_list_order;
use aop_kernel::event::Snapshot;
use aop_kernel::ids::FeatureId;
use aop_kernel::time::Timestamp;
use rusqlite::Connection;
use std::collections::BTreeMap;

/// About as many bytes of records are kept at most.
const ROOM: usize = 128 * 1024;

/// A feature as the last commit left it.
#[derive(Default)]
pub(super) struct Kept {
    /// The feature with its open questions, and with those that a command names.
    pub(super) state: Snapshot,
    /// Its last event.
    pub(super) last: Option<i64>,
    /// How long the records are.
    pub(super) bytes: usize,
}

/// What is kept, as of one version of the file.
#[derive(Default)]
pub(super) struct Recent {
    version: Option<i64>,
    counters: Option<(u64, Timestamp)>,
    features: BTreeMap<FeatureId, Box<Kept>>,
    bytes: usize,
}

impl Recent {
    /// Forgets everything if another connection has committed since; whether nobody has. Asked inside a transaction
    /// that writes, so that nobody can while it lasts.
    pub(super) fn revise(&mut self, connection: &Connection) -> rusqlite::Result<bool> {
        let version = Some(data_version(connection)?);
        let current = self.version == version;
        if !current {
            self.clear();
            self.version = version;
        }
        Ok(current)
    }

    /// Whether nobody else has committed since.
    pub(super) fn is_current(&self, connection: &Connection) -> rusqlite::Result<bool> {
        Ok(self.version == Some(data_version(connection)?))
    }

    /// The last event and the latest time ever used.
    pub(super) fn counters(&mut self, connection: &Connection) -> rusqlite::Result<(u64, Timestamp)> {
        match self.counters {
            Some(counters) => Ok(counters),
            None => Ok(*self.counters.insert(connect::counters(connection)?)),
        }
    }

    /// Takes the counters as a commit is about to leave them.
    pub(super) fn count(&mut self, seq: u64, at: Timestamp) {
        self.counters = Some((seq, at));
    }

    /// Takes a feature out; whoever changes it puts it back as it is then.
    pub(super) fn take(&mut self, id: &FeatureId) -> Option<Kept> {
        let kept = self.features.remove(id)?;
        self.bytes -= kept.bytes;
        Some(*kept)
    }

    /// Puts a feature in as the tables have it now.
    pub(super) fn keep(&mut self, id: FeatureId, mut kept: Kept) {
        let questions = &mut kept.state.questions;
        questions.retain(|question| question.is_open());
        in_list_order(questions);
        // Room for more would stay empty in nearly all of them.
        questions.shrink_to_fit();
        if self.bytes + kept.bytes > ROOM {
            self.make_room();
        }
        if kept.bytes <= ROOM {
            self.take(&id);
            self.bytes += kept.bytes;
            self.features.insert(id, Box::new(kept));
        }
    }

    /// Forgets everything, also that it was current: what a commit that failed knew of others was told to nobody.
    pub(super) fn clear(&mut self) {
        self.version = None;
        self.counters = None;
        self.make_room();
    }

    fn make_room(&mut self) {
        self.features.clear();
        self.bytes = 0;
    }
}

/// A number that changes with every commit through another connection.
pub(super) fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA data_version")?.query_row((), |row| row.get(0))
}
