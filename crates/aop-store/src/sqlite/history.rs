//! The whole history out of one snapshot, and back into an empty file in one transaction.

use super::batch::Batch;
use super::connect::{PROJECT, explain};
use super::read::Reader;
use super::submit::Told;
use crate::error::StoreError;
use crate::history::{Entries, Entry, Origin, TRAVELLING, Visit, not_empty, out_of_order, stays};
use crate::port::ClaimState;
use crate::rows::Change;
use crate::shelf::Shelf;
use aop_kernel::replay::Replay;
use rusqlite::Row;

impl Reader<'_> {
    /// Shows every entry; all of them are of one moment.
    pub(super) fn history(&self, mut visit: Visit) -> Result<Origin, StoreError> {
        let mut outcome = Ok(());
        self.each_event(|recorded, _, _| {
            if outcome.is_ok() {
                outcome = visit(Entry::Event(recorded));
            }
        })?;
        outcome?;
        let operation = |row: &Row<'_>| {
            Ok(Entry::Operation { operation_id: row.get(0)?, digest: row.get(1)?, envelope: row.get(2)? })
        };
        self.each(
            // Those of the last moment are in the log alone.
            "SELECT l.operation_id, ifnull(l.digest, e.digest), ifnull(l.envelope, e.envelope)
             FROM ledger l LEFT JOIN events e ON e.seq = l.seq WHERE l.project = ?1
             UNION ALL
             SELECT operation_id, digest, envelope FROM events
             WHERE seq > (SELECT settled FROM projects WHERE project = ?1) AND operation_id IS NOT NULL
             ORDER BY 1",
            operation,
            &mut visit,
        )?;
        let lease = |row: &Row<'_>| {
            Ok(Entry::Lease { name: row.get(0)?, epoch: row.get::<_, i64>(1)?.unsigned_abs() })
        };
        self.each("SELECT name, epoch FROM leases WHERE project = ?1 ORDER BY name", lease, &mut visit)?;
        let claim = |row: &Row<'_>| {
            let state = ClaimState::parse(&row.get::<_, String>(3)?).unwrap_or(ClaimState::Claimed);
            let epoch = row.get::<_, i64>(2)?.unsigned_abs();
            Ok(Entry::Claim { subject: row.get(0)?, holder: row.get(1)?, epoch, state })
        };
        self.each(
            "SELECT subject, holder, epoch, state FROM claims WHERE project = ?1 ORDER BY subject",
            claim,
            &mut visit,
        )?;
        for shelf in TRAVELLING {
            for (key, value) in self.documents(*shelf, "")? {
                visit(Entry::Document { shelf: *shelf, key, value })?;
            }
        }
        let project_id =
            self.texts("SELECT project_id FROM projects WHERE project = ?1", &[])?.pop().unwrap_or_default();
        Ok(Origin { project_id, seq: self.last_seq()? })
    }

    /// Row by row: the ledger of a long history does not have to fit into memory.
    fn each(
        &self,
        sql: &str,
        map: impl Fn(&Row<'_>) -> rusqlite::Result<Entry>,
        visit: &mut Visit,
    ) -> Result<(), StoreError> {
        let explained = |error: rusqlite::Error| explain(self.path, &error);
        let mut statement = self.connection.prepare_cached(sql).map_err(explained)?;
        let mut rows = statement.query([PROJECT]).map_err(explained)?;
        while let Some(row) = rows.next().map_err(explained)? {
            visit(map(row).map_err(explained)?)?;
        }
        Ok(())
    }
}

/// A batch keeps what stands before a refusal; a history that breaks off has to go as a whole.
fn undo(error: StoreError) -> StoreError {
    match error {
        StoreError::Refused(refusal) => {
            StoreError::Damaged { place: "history".into(), cause: refusal.to_string() }
        }
        StoreError::Unavailable { .. } | StoreError::Damaged { .. } => error,
    }
}

impl Batch<'_> {
    /// Takes a history into a project that has none; the last event.
    pub(super) fn restore(&mut self, entries: Entries) -> Result<u64, StoreError> {
        let count = |table: &str| -> Result<u64, StoreError> {
            let sql = format!("SELECT count(*) FROM {table} WHERE project = ?1");
            let rows = self.first(&sql, [PROJECT], |row| row.get::<_, i64>(0))?;
            Ok(rows.unwrap_or_default().unsigned_abs())
        };
        let (events, operations) = (count("events")?, count("ledger")?);
        if events + operations > 0 {
            return Err(not_empty(events, operations));
        }
        self.guard()?;
        self.recent.clear();
        let mut replay = Replay::default();
        for entry in entries {
            entry.and_then(|entry| self.take(entry, &mut replay)).map_err(undo)?;
            if self.added.is_long() {
                self.settle()?;
            }
        }
        self.settle()?;
        Ok(replay.seq)
    }

    fn take(&mut self, entry: Entry, replay: &mut Replay) -> Result<(), StoreError> {
        match entry {
            Entry::Event(recorded) => {
                if recorded.seq != replay.seq + 1 {
                    return Err(out_of_order(replay.seq + 1, recorded.seq));
                }
                replay.apply(&recorded);
                // The clock that wrote this may have been ahead of ours; time never runs backwards.
                self.now = self.now.max(recorded.stamped.at);
                if let Some(state) = replay.features.get(&recorded.stamped.feature_id) {
                    let mut seq = recorded.seq - 1;
                    let change = Change::of(std::slice::from_ref(&recorded.stamped), state, &[], &mut seq)?;
                    self.seq = seq;
                    if let Some(change) = change {
                        let last = self.last(&change.feature.id)?;
                        self.write(change, last, None)?;
                    }
                }
            }
            Entry::Operation { operation_id, digest, envelope } => {
                let (operation_id, digest, envelope) = (&*operation_id, &*digest, &*envelope);
                self.enter(&Told { operation_id, digest, envelope })?;
            }
            Entry::Lease { name, epoch } => {
                let sql =
                    "INSERT INTO leases (project, name, holder, epoch, expires_at) VALUES (?1, ?2, '', ?3, 0)
                           ON CONFLICT (project, name) DO UPDATE SET epoch = max(epoch, ?3)";
                self.execute(sql, (PROJECT, name, epoch.cast_signed()))?;
            }
            Entry::Claim { subject, holder, epoch, state } => {
                let sql = "INSERT INTO claims (project, subject, holder, epoch, state, updated_at)
                           VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
                let now = self.now.as_millis();
                self.execute(sql, (PROJECT, subject, holder, epoch.cast_signed(), state.as_str(), now))?;
            }
            Entry::Document { shelf, key, .. } if !TRAVELLING.contains(&shelf) => {
                return Err(stays(shelf, &key));
            }
            Entry::Document { shelf, key, value } => self.shelve(shelf, &key, &value)?,
        }
        Ok(())
    }

    fn shelve(&mut self, shelf: Shelf, key: &str, value: &serde_json::Value) -> Result<(), StoreError> {
        self.place(shelf, key, Some(value), &crate::shelf::Expect::Anything).map(drop)
    }
}
