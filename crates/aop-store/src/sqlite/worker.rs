//! One transaction on the connection that writes: the lock, begin, the work, commit. And moving the log into the
//! file.

use super::batch::{Added, Batch, Company};
use super::bell::ring;
use super::connect::{BUSY_TIMEOUT, explain, open_lock, open_writer};
use super::recent::Recent;
use super::site::Site;
use super::tail::Shared;
use crate::clock::{Clock, Ids};
use crate::error::StoreError;
use crate::fault::crash_point;
use rusqlite::Connection;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

/// After so many pages in SQLite's log, a few hundred transitions, they are moved into the database file, off the
/// callers' path. Whoever opens the file after a crash reads all of them first.
const CHECKPOINT_PAGES: i32 = 220;

/// How long readers may delay the erasure of a secret's older copies before it is put off.
const READER_PATIENCE: Duration = Duration::from_millis(250);

/// What writes: the connection, the lock, and what commits are made with.
pub(super) struct Worker {
    site: Arc<Site>,
    pub(super) connection: Connection,
    /// Makes the writers of all processes one fair queue; taken before a transaction and given back by it.
    pub(super) lock: File,
    clock: Arc<dyn Clock>,
    ids: Ids,
    recent: Recent,
    tail: Shared,
    pages: Arc<AtomicI32>,
    /// A secret was erased, and older copies of its page may still stand in SQLite's log.
    erased: Arc<AtomicBool>,
}

impl Worker {
    pub(super) fn new(
        site: Arc<Site>,
        clock: Arc<dyn Clock>,
        spare: Option<Connection>,
        tail: Shared,
        erased: Arc<AtomicBool>,
    ) -> Result<Self, StoreError> {
        let path = &site.path;
        let mut connection = open_writer(path, spare)?;
        let pages = Arc::new(AtomicI32::new(0));
        let seen = Arc::clone(&pages);
        connection
            .wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, count| {
                seen.store(count, Ordering::Relaxed);
                Ok(())
            }))
            .map_err(|error| explain(path, &error))?;
        let lock = open_lock(path)?;
        // Both were opened by their path. Kept, one on another file would pass every check once ours is back in its place.
        site.check()?;
        let (ids, recent) = (Ids::new(), Recent::default());
        Ok(Worker { site, connection, lock, clock, ids, recent, tail, pages, erased })
    }

    /// One transaction around the work, by whoever holds the lock; gives the lock back. The result is what
    /// was committed.
    pub(super) fn transact(
        &mut self,
        company: Company,
        work: &mut dyn FnMut(&mut Batch<'_>),
    ) -> Result<Added, StoreError> {
        let result = self.commit(company, work);
        if self.erased.load(Ordering::Relaxed) {
            self.erased.store(!empty_log(&self.connection), Ordering::Relaxed);
        }
        self.unlock();
        if result.is_ok() {
            ring(&self.lock);
        }
        result
    }

    /// Brings the tables up to the log, by whoever holds the lock; gives the lock back. The result is what was
    /// committed, of which it adds nothing. After an error this worker is to be let go: it might go on without syncs.
    pub(super) fn settle(&mut self) -> Result<Added, StoreError> {
        self.synchronous("NORMAL")?;
        // A member that fails alone fails its commit.
        let added = self.commit(Company::Alone, &mut |batch| drop(batch.member(Batch::settle)));
        self.unlock();
        self.synchronous("FULL")?;
        added
    }

    fn unlock(&self) {
        // Closing the file would release it as well; an error here changes nothing that was decided.
        let _ = self.lock.unlock();
    }

    fn synchronous(&self, how: &str) -> Result<(), StoreError> {
        self.connection
            .pragma_update(None, "synchronous", how)
            .map_err(|error| explain(&self.site.path, &error))
    }

    fn commit(
        &mut self,
        company: Company,
        work: &mut dyn FnMut(&mut Batch<'_>),
    ) -> Result<Added, StoreError> {
        // Under the lock: what is written to a file that was removed or replaced would be acknowledged and lost.
        self.site.check()?;
        let path = &self.site.path;
        let run = |sql: &str| {
            // Prepared once: parsing these few words again for each commit is a noticeable part of it.
            let statement = self.connection.prepare_cached(sql);
            statement.and_then(|mut statement| statement.execute(())).map_err(|error| explain(path, &error))
        };
        let result = run("BEGIN IMMEDIATE").and_then(|_| {
            let (now, recent, tail) = (self.clock.now(), &mut self.recent, Arc::clone(&self.tail.look()));
            let mut batch = Batch::begin(&self.connection, path, now, &mut self.ids, recent, tail, company)?;
            work(&mut batch);
            let left = batch.finish()?;
            crash_point("before_commit");
            run("COMMIT")?;
            crash_point("after_commit");
            self.erased.fetch_or(left.erased, Ordering::Relaxed);
            self.tail.publish(left.tail, left.instead, left.log.last);
            Ok(left.log)
        });
        if result.is_err() {
            self.recent.clear();
        }
        if result.is_err() && !self.connection.is_autocommit() {
            // When even this fails the connection is beyond use, and the next BEGIN says so.
            let _ = run("ROLLBACK");
        }
        result
    }

    /// Whether its commit was the last of all.
    pub(super) fn wrote_last(&self) -> bool {
        self.recent.is_current(&self.connection).unwrap_or_default()
    }

    pub(super) fn checkpoint_is_due(&self) -> bool {
        self.pages.load(Ordering::Relaxed) > CHECKPOINT_PAGES
    }

    /// Moves the log into the file. A reader in the way only postpones it.
    pub(super) fn checkpoint_if_due(&mut self) {
        if !self.checkpoint_is_due() {
            return;
        }
        let moved =
            self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get::<_, i64>(0));
        if moved.is_ok() {
            self.pages.store(0, Ordering::Relaxed);
        }
    }
}

/// Moves the whole log into the file and empties it, so that no older copy of a page is left. Whoever reads
/// at this moment is in the way; then it is tried again after the next commit.
fn empty_log(connection: &Connection) -> bool {
    let empty = || {
        connection.busy_timeout(READER_PATIENCE)?;
        let busy = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
        connection.busy_timeout(BUSY_TIMEOUT)?;
        busy
    };
    empty() == Ok(0)
}
