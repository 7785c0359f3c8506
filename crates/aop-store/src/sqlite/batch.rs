//! Writing inside one transaction: the ledger, the snapshot, the kernel's decision, and the rows it gives.

use super::connect::{PROJECT, explain, unavailable};
use super::recent::{Kept, Recent};
use super::tail::Tail;
use crate::clock::Ids;
use crate::decide::decide;
use crate::error::StoreError;
use crate::port::Receipt;
use crate::rows::{Change, EventRow, in_list_order, parse_question, snapshot};
use aop_kernel::Envelope;
use aop_kernel::event::Snapshot;
use aop_kernel::ids::{FeatureId, QuestionId};
use aop_kernel::lifecycle::{self, Request};
use aop_kernel::policy::Rules;
use aop_kernel::question::Question;
use aop_kernel::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, Params, Row};
use serde_json::Value;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Due features that one call expires at most, so that a long backlog is worked off in several commits.
pub(super) const EXPIRE_AT_ONCE: usize = 256;

/// About as long is a record that was not written yet.
const RECORD: usize = 1_024;

/// What the caller of an operation is told.
pub(super) struct Told<'a> {
    pub(super) operation_id: &'a str,
    pub(super) digest: &'a str,
    pub(super) envelope: &'a str,
}

/// One open transaction, shared by the calls of a batch.
pub(super) struct Batch<'a> {
    pub(super) connection: &'a Connection,
    path: &'a Path,
    ids: &'a mut Ids,
    pub(super) recent: &'a mut Recent,
    /// What the tables do not hold yet, as of the last commit.
    pub(super) tail: Arc<Tail>,
    /// What this batch adds to that, or has in its place.
    pub(super) added: Tail,
    pub(super) instead: bool,
    pub(super) now: Timestamp,
    pub(super) seq: u64,
    /// The time that the last event tells, or whatever the file told before.
    told: Timestamp,
    /// Whether any row was written: then the time of this batch is time that has been used.
    wrote: Cell<bool>,
    /// Whether a secret was erased: then its older copies in the log have to go as well.
    erased: bool,
    company: Company,
    /// How the current member is undone without its neighbours.
    guard: Cell<Guard>,
    /// Why all of it failed, if it did: then there is nothing to commit.
    failed: Option<StoreError>,
    before: u64,
    touched: BTreeSet<FeatureId>,
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
    pub(super) added: Added,
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
            // Somebody else's rows, which are not at hand a second time: whoever comes next would read them again.
            batch.catch_up()?;
            batch.guard.set(Guard::Bare);
            batch.settle()?;
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
        self.still_open()?;
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.guard.set(Guard::Idle);
        let (seq, told, now) = (self.seq, self.told, self.now);
        let result = work(self);
        let failure = result.as_ref().err().filter(|error| !matches!(error, StoreError::Refused(_)));
        let guard = self.guard.get();
        if result.is_err() && guard == Guard::Idle || failure.is_some() && guard == Guard::Savepoint {
            (self.seq, self.told, self.now) = (seq, told, now);
        }
        let ended = match (guard, failure) {
            (Guard::Savepoint, None) => self.savepoint("RELEASE member"),
            (Guard::Savepoint, Some(_)) => self.undo(),
            (Guard::Idle, Some(_)) if self.company == Company::Others => Ok(()),
            (Guard::Idle | Guard::Bare, Some(failure)) => Err(failure.clone()),
            (Guard::Idle | Guard::Bare, None) => Ok(()),
        };
        if let Err(error) = ended {
            self.failed = Some(error.clone());
            return Err(error);
        }
        result
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
        Ok(Left { added: Added { before, last: seq, features: touched }, tail: added, instead, erased })
    }

    /// Decides one request and writes what follows from it.
    pub(super) fn submit(&mut self, request: &Request, rules: &Rules) -> Result<Receipt, StoreError> {
        if let Some(envelope) = self.replay(request)? {
            return Ok(Receipt { envelope, seq: self.seq, fresh: false });
        }
        let feature_id = request.command.feature_id();
        let (mut snapshot, mut bytes) = self.current(feature_id)?;
        if let Some(id) = request.command.question_id()
            && snapshot.question(id).is_none()
        {
            snapshot.questions.extend(self.question(feature_id, id)?);
        }
        let decision = decide(&snapshot, request, rules, self.now, self.ids, &mut self.seq)?;
        if let Some(expiry) = decision.expiry {
            self.write(expiry, None)?;
        }
        let (change, envelope) = match decision.outcome {
            Ok(outcome) => outcome,
            Err(refusal) => {
                self.recent.keep(feature_id.clone(), decision.state, bytes);
                return Err(refusal.into());
            }
        };
        bytes = if decision.state.open_questions().next().is_none() { 0 } else { bytes };
        bytes += change.as_ref().map_or(0, Change::len);
        let told = Told {
            operation_id: request.operation_id.as_str(),
            digest: &request.digest,
            envelope: envelope.as_str(),
        };
        match change {
            Some(change) => self.write(change, Some(told))?,
            None => self.enter(&told)?,
        }
        self.recent.keep(feature_id.clone(), decision.state, bytes);
        Ok(Receipt { envelope, seq: self.seq, fresh: true })
    }

    /// The first success of this operation, if there was one; a mismatch when it was another request.
    fn replay(&self, request: &Request) -> Result<Option<Envelope>, StoreError> {
        let id = request.operation_id.as_str();
        let words = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?));
        let found = match self.pending(|tail| tail.operations.get(id)) {
            Some(seq) => self.first("SELECT digest, envelope FROM events WHERE seq = ?1", [seq], words)?,
            None => self.first(
                "SELECT ifnull(l.digest, e.digest), ifnull(l.envelope, e.envelope)
                 FROM ledger l LEFT JOIN events e ON e.seq = l.seq WHERE l.project = ?1 AND l.operation_id = ?2",
                (PROJECT, id),
                words,
            )?,
        };
        match found {
            None => Ok(None),
            Some((digest, envelope)) if digest == request.digest => Ok(Some(Envelope::from_ledger(envelope))),
            Some(_) => Err(request.reuse_mismatch().into()),
        }
    }

    /// Expires what is due in at most [`EXPIRE_AT_ONCE`] features; how many changed.
    pub(super) fn expire(&mut self) -> Result<usize, StoreError> {
        self.settle()?;
        let due = self.all(
            "SELECT feature_id FROM questions WHERE project = ?1 AND status = 'open' AND expires_at <= ?2
             GROUP BY feature_id ORDER BY min(expires_at), feature_id LIMIT ?3",
            (PROJECT, self.now.as_millis(), EXPIRE_AT_ONCE.cast_signed()),
            |row| row.get::<_, String>(0),
        )?;
        let mut changed = 0;
        for feature_id in &due {
            let feature_id = FeatureId::parse(feature_id)?;
            let (snapshot, _) = self.current(&feature_id)?;
            let expiry = lifecycle::expire_due(&snapshot, self.now);
            if let Some(change) = Change::of(&expiry.events, &expiry.state, &expiry.secrets, &mut self.seq)? {
                // A failure among many features undoes all of them.
                self.guard()?;
                self.write(change, None)?;
                changed += 1;
            }
        }
        Ok(changed)
    }

    /// What is found among the rows that the tables do not hold yet.
    fn pending<'b, T: 'b>(&'b self, find: impl Fn(&'b Tail) -> Option<T>) -> Option<T> {
        find(&self.added).or_else(|| if self.instead { None } else { find(&self.tail) })
    }

    /// The feature and its open questions.
    pub(super) fn current(&mut self, feature_id: &FeatureId) -> Result<Kept, StoreError> {
        if let Some(kept) = self.recent.take(feature_id) {
            return Ok(kept);
        }
        if let Some(ended) = self.pending(|tail| tail.features.get(feature_id)) {
            let mut questions = ended.open.clone();
            in_list_order(&mut questions);
            let bytes = RECORD * (1 + questions.len());
            return Ok((Snapshot { feature: Some(ended.feature.clone()), questions }, bytes));
        }
        let (feature, open) = self
            .first(
                "SELECT record, open FROM features WHERE project = ?1 AND feature_id = ?2",
                (PROJECT, feature_id.as_str()),
                |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)),
            )?
            .unzip();
        let ids = open.iter().flat_map(|open| open.split_whitespace());
        let records = ids.filter_map(|id| self.record(feature_id, id).transpose());
        let records = records.collect::<Result<Vec<_>, _>>()?;
        let bytes = feature.iter().chain(&records).map(String::len).sum();
        Ok((snapshot(feature.as_deref(), &records)?, bytes))
    }

    /// One question of the feature.
    pub(super) fn question(
        &self,
        feature_id: &FeatureId,
        id: &QuestionId,
    ) -> Result<Option<Question>, StoreError> {
        if let Some(question) = self.pending(|tail| tail.questions.get(id)) {
            return Ok(Some(question).filter(|question| question.feature_id == *feature_id).cloned());
        }
        self.record(feature_id, id.as_str())?.map(|record| parse_question(&record)).transpose()
    }

    /// The record of one question of the feature, as the tables have it.
    fn record(&self, feature_id: &FeatureId, id: &str) -> Result<Option<String>, StoreError> {
        self.first(
            "SELECT record FROM questions WHERE project = ?1 AND question_id = ?2 AND feature_id = ?3",
            (PROJECT, id, feature_id.as_str()),
            |row| row.get(0),
        )
    }

    /// The last event of a feature.
    fn last(&self, feature_id: &FeatureId) -> Result<Option<i64>, StoreError> {
        if let Some(last) = self.pending(|tail| tail.features.get(feature_id).map(|ended| ended.last)) {
            return Ok(Some(last));
        }
        let sql = "SELECT last FROM features WHERE project = ?1 AND feature_id = ?2";
        self.first(sql, (PROJECT, feature_id.as_str()), |row| row.get(0))
    }

    /// Writes a change to the log; the other tables get it later. Secrets are in no log, and written at once.
    pub(super) fn write(&mut self, change: Change, told: Option<Told<'_>>) -> Result<(), StoreError> {
        let feature_id = &change.feature.id;
        self.touched.insert(feature_id.clone());
        if !change.secrets.is_empty() || change.wipes_secrets {
            self.guard()?;
        }
        for (question_id, answer) in &change.secrets {
            self.execute(
                "INSERT INTO secrets (project, question_id, feature_id, answer) VALUES (?1, ?2, ?3, ?4)",
                (PROJECT, question_id, feature_id.as_str(), answer),
            )?;
        }
        if change.wipes_secrets {
            let sql = "DELETE FROM secrets WHERE project = ?1 AND feature_id = ?2";
            self.erased |= self.execute(sql, (PROJECT, feature_id.as_str()))? > 0;
        }
        let mut previous = self.last(feature_id)?;
        let end = change.events.last().map(|row| row.seq);
        for row in &change.events {
            let told = told.as_ref().filter(|_| end == Some(row.seq));
            self.append(row, previous, told)?;
            previous = Some(row.seq);
        }
        if let (Some(told), Some(end)) = (told, end) {
            self.added.operations.insert(told.operation_id.to_owned(), end);
        }
        self.added.take(change, previous.unwrap_or_default());
        Ok(())
    }

    /// One event at the end of the log.
    fn append(
        &mut self,
        row: &EventRow,
        previous: Option<i64>,
        told: Option<&Told<'_>>,
    ) -> Result<(), StoreError> {
        if self.guard.get() == Guard::Idle {
            self.guard.set(Guard::Bare);
        }
        self.execute(
            "INSERT INTO events (project, seq, feature_id, previous, at, question_id, line, event, operation_id, digest, envelope)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            (
                PROJECT,
                row.seq,
                &row.feature_id,
                previous,
                row.at,
                &row.question_id,
                &row.line,
                &row.event,
                told.map(|told| told.operation_id),
                told.map(|told| told.digest),
                told.map(|told| told.envelope),
            ),
        )?;
        self.told = Timestamp::from_millis(row.at);
        Ok(())
    }

    /// An operation that has no event.
    pub(super) fn enter(&mut self, told: &Told<'_>) -> Result<(), StoreError> {
        self.execute(
            "INSERT INTO ledger (project, operation_id, digest, envelope) VALUES (?1, ?2, ?3, ?4)",
            (PROJECT, told.operation_id, told.digest, told.envelope),
        )
        .map(drop)
    }

    /// Writes what uses no time: nothing happens by it.
    pub(super) fn aside<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let wrote = self.wrote.get();
        let result = work(self);
        self.wrote.set(wrote);
        result
    }

    /// Erases a secret.
    pub(super) fn forget(&mut self, id: &QuestionId) -> Result<(), StoreError> {
        let sql = "DELETE FROM secrets WHERE project = ?1 AND question_id = ?2";
        self.erased |= self.execute(sql, (PROJECT, id.as_str()))? > 0;
        Ok(())
    }

    /// Puts a secret away.
    pub(super) fn entrust(&mut self, id: &QuestionId, answer: &Value) -> Result<(), StoreError> {
        self.settle()?;
        let sql = "INSERT OR REPLACE INTO secrets (project, question_id, feature_id, answer)
                   SELECT project, question_id, feature_id, ?3 FROM questions WHERE project = ?1 AND question_id = ?2";
        self.execute(sql, (PROJECT, id.as_str(), answer.to_string())).map(drop)
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
