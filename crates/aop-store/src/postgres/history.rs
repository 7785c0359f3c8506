//! The whole history out of one snapshot, and back into an empty project in one transaction.

use super::Inside;
use super::link::{Failure, Length, unavailable};
use super::read::Reader;
use super::writer::{flush, load};
use crate::clock::Ids;
use crate::error::StoreError;
use crate::history::{Entries, Entry, Origin, TRAVELLING, Visit, not_empty, out_of_order, stays};
use crate::port::{ClaimState, EventPage};
use crate::rows::parse;
use aop_kernel::replay::Replay;
use deadpool_postgres::Object;
use std::cell::RefCell;

/// So many rows are read or written at once: a long history does not have to fit into memory.
const CHUNK: usize = 1_000;

impl Inside {
    /// Shows every entry; all of them are of one moment.
    pub(super) async fn history(&self, visit: Visit) -> Result<Origin, StoreError> {
        let visit = RefCell::new(Some(visit));
        self.read_for(Length::Any, async |reader| {
            // Whoever has seen half of it cannot be shown the beginning again.
            let Some(mut visit) = visit.borrow_mut().take() else { return Err(self.broke_off().into()) };
            reader.history(&mut visit).await
        })
        .await
    }

    fn broke_off(&self) -> StoreError {
        let cause = "the connection broke in the middle of the history";
        unavailable(self.link.options(), cause, "run the command again")
    }
}

impl Reader {
    async fn history(&self, visit: &mut Visit) -> Result<Origin, Failure> {
        let mut after = 0;
        loop {
            let chunk = self.events(&EventPage { after, feature: None, limit: CHUNK }).await?;
            let Some(last) = chunk.last() else { break };
            after = last.seq;
            chunk.into_iter().try_for_each(|recorded| visit(Entry::Event(recorded)))?;
        }
        let mut after = String::new();
        loop {
            let sql = "SELECT operation_id, digest, envelope FROM operations
                       WHERE project = $1 AND operation_id > $2 ORDER BY operation_id LIMIT $3";
            let rows = self.rows(sql, &[&after, &i64::try_from(CHUNK).unwrap_or(i64::MAX)]).await?;
            let Some(last) = rows.last() else { break };
            after = last.get(0);
            for row in &rows {
                let (operation_id, digest, envelope) = (row.get(0), row.get(1), row.get(2));
                visit(Entry::Operation { operation_id, digest, envelope })?;
            }
        }
        for row in self.rows("SELECT name, epoch FROM leases WHERE project = $1 ORDER BY name", &[]).await? {
            visit(Entry::Lease { name: row.get(0), epoch: row.get::<_, i64>(1).unsigned_abs() })?;
        }
        let sql = "SELECT subject, holder, epoch, state FROM claims WHERE project = $1 ORDER BY subject";
        for row in self.rows(sql, &[]).await? {
            let state = ClaimState::parse(row.get(3)).unwrap_or(ClaimState::Claimed);
            let epoch = row.get::<_, i64>(2).unsigned_abs();
            visit(Entry::Claim { subject: row.get(0), holder: row.get(1), epoch, state })?;
        }
        for shelf in TRAVELLING {
            let sql = "SELECT key, value FROM documents WHERE project = $1 AND shelf = $2 ORDER BY key";
            for row in self.rows(sql, &[&shelf.as_str()]).await? {
                let key: String = row.get(0);
                let value = parse(&format!("document {} {key}", shelf.as_str()), row.get(1))?;
                visit(Entry::Document { shelf: *shelf, key, value })?;
            }
        }
        let project = self.texts("SELECT project_id FROM projects WHERE project = $1", &[]).await?;
        Ok(Origin { project_id: project.into_iter().next().unwrap_or_default(), seq: self.last_seq() })
    }
}

/// Takes a history into a project that has none; the last event.
pub(super) async fn restore(inside: &Inside, ids: &mut Ids, entries: Entries) -> Result<u64, StoreError> {
    let entries = RefCell::new(Some(entries));
    inside
        .link
        .attempts(Length::Any, async |connection, _| {
            let Some(entries) = entries.borrow_mut().take() else { return Err(inside.broke_off().into()) };
            let seq = attempt(inside, ids, &connection, entries).await?;
            connection.batch_execute("COMMIT").await?;
            inside.wakes.raise(seq);
            inside.wakes.wake_all();
            Ok(seq)
        })
        .await
}

async fn attempt(
    inside: &Inside,
    ids: &mut Ids,
    connection: &Object,
    entries: Entries,
) -> Result<u64, Failure> {
    let mut batch = load(inside, ids, connection, &[], &[], &[]).await?;
    let sql = "SELECT (SELECT count(*) FROM events WHERE project = $1),
               (SELECT count(*) FROM operations WHERE project = $1)";
    let row = connection.query_one(sql, &[&inside.project]).await?;
    let (events, operations) = (row.get::<_, i64>(0).unsigned_abs(), row.get::<_, i64>(1).unsigned_abs());
    if events + operations > 0 {
        return Err(not_empty(events, operations).into());
    }
    let mut replay = Replay::default();
    for entry in entries {
        match entry? {
            Entry::Event(recorded) => {
                if recorded.seq != replay.seq + 1 {
                    return Err(out_of_order(replay.seq + 1, recorded.seq).into());
                }
                replay.apply(&recorded);
                if let Some(state) = replay.features.get(&recorded.stamped.feature_id) {
                    batch.take(&recorded, state)?;
                }
            }
            Entry::Operation { operation_id, digest, envelope } => {
                batch.writes.operations.push((operation_id, digest, envelope));
            }
            Entry::Document { shelf, key, .. } if !TRAVELLING.contains(&shelf) => {
                return Err(stays(shelf, &key).into());
            }
            other => take_row(inside, connection, other, batch.now.as_millis()).await?,
        }
        if batch.writes.len() >= CHUNK {
            flush(inside, connection, &std::mem::take(&mut batch.writes), batch.now, batch.seq).await?;
        }
    }
    flush(inside, connection, &batch.writes, batch.now, batch.seq).await?;
    Ok(replay.seq)
}

/// A lease, a claim or a document.
async fn take_row(inside: &Inside, connection: &Object, entry: Entry, now: i64) -> Result<(), Failure> {
    let project = inside.project;
    match entry {
        Entry::Lease { name, epoch } => {
            let sql = "INSERT INTO leases (project, name, holder, epoch, expires_at) VALUES ($1, $2, '', $3, 0)
                       ON CONFLICT (project, name) DO UPDATE SET epoch = greatest(leases.epoch, excluded.epoch)";
            let statement = connection.prepare_cached(sql).await?;
            connection.execute(&statement, &[&project, &name, &epoch.cast_signed()]).await?;
        }
        Entry::Claim { subject, holder, epoch, state } => {
            let sql = "INSERT INTO claims (project, subject, holder, epoch, state, updated_at)
                       VALUES ($1, $2, $3, $4, $5, $6)";
            let statement = connection.prepare_cached(sql).await?;
            let (epoch, state) = (epoch.cast_signed(), state.as_str());
            connection.execute(&statement, &[&project, &subject, &holder, &epoch, &state, &now]).await?;
        }
        Entry::Document { shelf, key, value } => {
            let sql = "INSERT INTO documents (project, shelf, key, value) VALUES ($1, $2, $3, $4)
                       ON CONFLICT (project, shelf, key) DO UPDATE SET value = excluded.value";
            let statement = connection.prepare_cached(sql).await?;
            connection.execute(&statement, &[&project, &shelf.as_str(), &key, &value.to_string()]).await?;
        }
        Entry::Event(_) | Entry::Operation { .. } => {}
    }
    Ok(())
}
