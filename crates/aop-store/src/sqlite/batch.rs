//! One open transaction and the calls that share it: how it begins and ends, and how one of them is undone.

use super::connect::{PROJECT, explain, unavailable};
use super::recent::Recent;
use super::tail::Tail;
use crate::clock::Ids;
use crate::error::StoreError;
use aop_kernel::ids::FeatureId;
use aop_kernel::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, Params, Row};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// So many rows that others have left in the log alone may stay there.
const FEW: usize = 12;

/// One open transaction, shared by the calls of a batch.
pub(super) struct Batch<'a> {
    pub(super) connection: &'a Connection,
    path: &'a Path,
    pub(super) ids: &'a mut Ids,
    pub(super) recent: &'a mut Recent,
    /// What the tables do not hold yet, as of the last commit.
    pub(super) tail: Arc<Tail>,
    /// What this batch adds to that, or has in its place.
    pub(super) added: Tail,
    pub(super) instead: bool,
    pub(super) now: Timestamp,
    pub(super) seq: u64,
    /// The time that the last event tells, or whatever the file told before.
    pub(super) told: Timestamp,
    /// Whether any row was written: then the time of this batch is time that has been used.
    wrote: Cell<bool>,
    /// Whether a secret was erased: then its older copies in the log have to go as well.
    pub(super) erased: bool,
    company: Company,
    /// How the current member is undone without its neighbours.
    guard: Cell<Guard>,
    /// Why all of it failed, if it did: then there is nothing to commit.
    failed: Option<StoreError>,
    before: u64,
    pub(super) touched: BTreeSet<FeatureId>,
}

/// What a commit added to the log.
pub(super) struct Added {
    /// The last event before it.
    pub(super) before: u64,
    /// The last event of the project.
    pub(super) last: u64,
    /// The features of the events in between.
    pub(super) features: BTreeSet<FeatureId>,
}

/// Whether a member shares its commit with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Company {
    /// It has the transaction to itself: if it fails, all of it goes.
    Alone,
    /// Others are in it: each can be undone for itself.
    Others,
}

/// What a member has written so far decides what has to be undone when the medium fails it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Guard {
    /// It has written nothing.
    Idle,
    /// It stands on a savepoint.
    Savepoint,
    /// It has only added to the log, as nearly all do, and a savepoint would cost as much again: if it fails behind that,
    /// the batch fails as a whole, and everybody in it is told so.
    Bare,
}

/// What a commit leaves behind.
pub(super) struct Left {
    pub(super) log: Added,
    /// What the tables do not hold of it, or of all.
    pub(super) tail: Tail,
    pub(super) instead: bool,
    /// Whether a secret was erased.
    pub(super) erased: bool,
}

impl<'a> Batch<'a> {
    /// Starts a batch. Its time is the clock's, but never earlier than that of any commit before.
    pub(super) fn begin(
        connection: &'a Connection,
        path: &'a Path,
        clock: Timestamp,
        ids: &'a mut Ids,
        recent: &'a mut Recent,
        tail: Arc<Tail>,
        company: Company,
    ) -> Result<Self, StoreError> {
        let mut counters = || Ok((recent.revise(connection)?, recent.counters(connection)?));
        let (current, (seq, used)) = counters().map_err(|error| explain(path, &error))?;
        let now = clock.max(used);
        let mut batch = Batch {
            connection,
            path,
            ids,
            recent,
            tail,
            added: Tail::default(),
            instead: false,
            now,
            seq,
            told: used,
            wrote: Cell::new(false),
            erased: false,
            company,
            guard: Cell::new(Guard::Idle),
            failed: None,
            before: seq,
            touched: BTreeSet::new(),
        };
        if !current {
            batch.catch_up()?;
            // Of somebody else's rows a few are found out again by whoever comes next, and no more.
            if batch.added.len() > FEW {
                batch.guard.set(Guard::Bare);
                batch.settle()?;
            }
        }
        Ok(batch)
    }

    /// Runs one member: what it wrote goes away when the medium failed it. A refusal keeps what the clock did
    /// before it.
    ///
    /// Some failures (a full disk among them) make SQLite roll back the whole transaction. Then nothing more
    /// is written: a savepoint would begin a transaction of its own and commit its member alone.
    pub(super) fn member<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let before = self.admit()?;
        let result = work(self);
        self.dismiss(before, result.as_ref().err())?;
        result
    }

    /// Before a member: the last event, the time it tells and the time now.
    fn admit(&self) -> Result<(u64, Timestamp, Timestamp), StoreError> {
        self.still_open()?;
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.guard.set(Guard::Idle);
        Ok((self.seq, self.told, self.now))
    }

    /// After a member, with what was before it and how it failed, if it did.
    fn dismiss(
        &mut self,
        before: (u64, Timestamp, Timestamp),
        error: Option<&StoreError>,
    ) -> Result<(), StoreError> {
        let failure = error.filter(|error| !matches!(error, StoreError::Refused(_)));
        let guard = self.guard.get();
        if error.is_some() && guard == Guard::Idle || failure.is_some() && guard == Guard::Savepoint {
            (self.seq, self.told, self.now) = before;
        }
        let ended = match (guard, failure) {
            (Guard::Savepoint, None) => self.savepoint("RELEASE member"),
            (Guard::Savepoint, Some(_)) => self.undo(),
            (Guard::Idle, Some(_)) if self.company == Company::Others => Ok(()),
            (Guard::Idle | Guard::Bare, Some(failure)) => Err(failure.clone()),
            (Guard::Idle | Guard::Bare, None) => Ok(()),
        };
        if let Err(error) = &ended {
            self.failed = Some(error.clone());
        }
        ended
    }

    /// Undoes what the member wrote behind its savepoint. What the batch knew of the log may have been of it too.
    fn undo(&mut self) -> Result<(), StoreError> {
        self.still_open()?;
        self.savepoint("ROLLBACK TO member")?;
        self.savepoint("RELEASE member")?;
        self.recent.clear();
        self.catch_up()
    }

    /// Puts the member on a savepoint before it writes; it has none when there is nobody beside it.
    pub(super) fn guard(&self) -> Result<(), StoreError> {
        if self.guard.get() == Guard::Idle {
            match self.company {
                Company::Alone => self.guard.set(Guard::Bare),
                Company::Others => {
                    self.savepoint("SAVEPOINT member")?;
                    self.guard.set(Guard::Savepoint);
                }
            }
        }
        Ok(())
    }

    /// Lets the member add to the log without a savepoint, unless it has one.
    pub(super) fn go_bare(&self) {
        if self.guard.get() == Guard::Idle {
            self.guard.set(Guard::Bare);
        }
    }

    /// Whether there is still a transaction to write in.
    fn still_open(&self) -> Result<(), StoreError> {
        if self.connection.is_autocommit() {
            let cause = "the transaction was rolled back as a whole";
            return Err(unavailable(self.path, cause, "run the command again; nothing of it was written"));
        }
        Ok(())
    }

    fn savepoint(&self, sql: &str) -> Result<(), StoreError> {
        let run = || self.connection.prepare_cached(sql)?.execute(());
        run().map(drop).map_err(|error| explain(self.path, &error))
    }

    /// Writes down the time unless an event tells it.
    pub(super) fn finish(self) -> Result<Left, StoreError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.still_open()?;
        self.guard.set(Guard::Bare);
        if self.wrote.get() && self.told < self.now {
            let sql = "UPDATE projects SET used_at = ?2 WHERE project = ?1";
            self.execute(sql, (PROJECT, self.now.as_millis()))?;
        }
        if self.wrote.get() {
            self.recent.count(self.seq, self.now);
        }
        let Batch { before, seq, touched, added, instead, erased, .. } = self;
        Ok(Left { log: Added { before, last: seq, features: touched }, tail: added, instead, erased })
    }

    /// Writes what uses no time: nothing happens by it.
    pub(super) fn aside<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let wrote = self.wrote.get();
        let result = work(self);
        self.wrote.set(wrote);
        result
    }

    /// Runs one statement; how many rows it changed.
    pub(super) fn execute(&self, sql: &str, params: impl Params) -> Result<usize, StoreError> {
        #[cfg(test)]
        super::plan::note(self.connection, sql);
        self.guard()?;
        let run = || self.connection.prepare_cached(sql)?.execute(params);
        let rows = run().map_err(|error| explain(self.path, &error))?;
        self.wrote.set(self.wrote.get() || rows > 0);
        Ok(rows)
    }

    /// Runs one statement for each of these, of which every one writes a row.
    pub(super) fn execute_each<P: Params>(
        &self,
        sql: &str,
        all: impl IntoIterator<Item = P>,
    ) -> Result<(), StoreError> {
        #[cfg(test)]
        super::plan::note(self.connection, sql);
        self.guard()?;
        let run = || {
            let mut statement = self.connection.prepare_cached(sql)?;
            all.into_iter().try_for_each(|params| statement.execute(params).map(drop))
        };
        run().map_err(|error| explain(self.path, &error))?;
        self.wrote.set(true);
        Ok(())
    }

    pub(super) fn first<T>(
        &self,
        sql: &str,
        params: impl Params,
        map: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        #[cfg(test)]
        super::plan::note(self.connection, sql);
        let run = || self.connection.prepare_cached(sql)?.query_row(params, map).optional();
        run().map_err(|error| explain(self.path, &error))
    }

    pub(super) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        map: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        #[cfg(test)]
        super::plan::note(self.connection, sql);
        let run = || {
            self.connection.prepare_cached(sql)?.query_map(params, map)?.collect::<rusqlite::Result<Vec<T>>>()
        };
        run().map_err(|error| explain(self.path, &error))
    }
}
