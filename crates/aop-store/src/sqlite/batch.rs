//! Writing inside one transaction: the ledger, the snapshot, the kernel's decision, and the rows it gives.

use super::connect::{PROJECT, explain, unavailable};
use super::recent::{Kept, Recent};
use crate::clock::Ids;
use crate::decide::decide;
use crate::error::StoreError;
use crate::port::Receipt;
use crate::rows::{Change, QuestionRow, parse_question, snapshot};
use aop_kernel::Envelope;
use aop_kernel::ids::{FeatureId, QuestionId};
use aop_kernel::lifecycle::{self, Request};
use aop_kernel::policy::Rules;
use aop_kernel::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, Params, Row};
use serde_json::Value;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::Path;

/// Due features that one call expires at most, so that a long backlog is worked off in several commits.
pub(super) const EXPIRE_AT_ONCE: usize = 256;

/// One open transaction, shared by the calls of a batch.
pub(super) struct Batch<'a> {
    connection: &'a Connection,
    path: &'a Path,
    ids: &'a mut Ids,
    pub(super) recent: &'a mut Recent,
    pub(super) now: Timestamp,
    pub(super) seq: u64,
    /// The time that the last event tells, or whatever the file told before.
    told: Timestamp,
    /// Whether any row was written: then the time of this batch is time that has been used.
    wrote: Cell<bool>,
    /// Whether a secret was erased: then its older copies in the log have to go as well.
    erased: bool,
    company: Company,
    /// Why the only member failed, if it did: then there is nothing to commit.
    failed: Option<StoreError>,
    before: u64,
    touched: BTreeSet<String>,
}

/// What a commit added to the log.
pub(super) struct Added {
    /// The last event before it.
    pub(super) before: u64,
    /// The last event of the project.
    pub(super) last: u64,
    /// The features of the events in between.
    pub(super) features: BTreeSet<String>,
}

/// Whether a member shares its commit with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Company {
    /// It has the transaction to itself: if it fails, all of it goes.
    Alone,
    /// Others are in it: each stands on a savepoint of its own.
    Others,
}

impl<'a> Batch<'a> {
    /// Starts a batch. Its time is the clock's, but never earlier than that of any commit before.
    pub(super) fn begin(
        connection: &'a Connection,
        path: &'a Path,
        clock: Timestamp,
        ids: &'a mut Ids,
        recent: &'a mut Recent,
        company: Company,
    ) -> Result<Self, StoreError> {
        let mut counters = || {
            recent.revise(connection)?;
            recent.counters(connection)
        };
        let (seq, used) = counters().map_err(|error| explain(path, &error))?;
        let now = clock.max(used);
        Ok(Batch {
            connection,
            path,
            ids,
            recent,
            now,
            seq,
            told: used,
            wrote: Cell::new(false),
            erased: false,
            company,
            failed: None,
            before: seq,
            touched: BTreeSet::new(),
        })
    }

    /// Runs one member on a savepoint: what it wrote goes away when the medium failed it. A refusal keeps
    /// what the clock did before it.
    ///
    /// Some failures (a full disk among them) make SQLite roll back the whole transaction. Then nothing more
    /// is written: a savepoint would begin a transaction of its own and commit its member alone.
    pub(super) fn member<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.still_open()?;
        if self.company == Company::Alone {
            // No savepoint: what it would undo is the whole transaction.
            let result = work(self);
            self.failed =
                result.as_ref().err().filter(|error| !matches!(error, StoreError::Refused(_))).cloned();
            return result;
        }
        let (seq, told, now) = (self.seq, self.told, self.now);
        self.savepoint("SAVEPOINT member")?;
        let result = work(self);
        if !matches!(result, Ok(_) | Err(StoreError::Refused(_))) {
            (self.seq, self.told, self.now) = (seq, told, now);
            self.still_open()?;
            self.savepoint("ROLLBACK TO member")?;
        }
        self.savepoint("RELEASE member")?;
        result
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

    /// Writes down the time unless an event tells it; the result is what the batch adds, and whether a secret was
    /// erased.
    pub(super) fn finish(self) -> Result<(Added, bool), StoreError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.still_open()?;
        if self.wrote.get() && self.told < self.now {
            let sql = "UPDATE projects SET last_at = ?2 WHERE project = ?1";
            self.execute(sql, (PROJECT, self.now.as_millis()))?;
        }
        if self.wrote.get() {
            self.recent.count(self.seq, self.now);
        }
        Ok((Added { before: self.before, last: self.seq, features: self.touched }, self.erased))
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
            let record = self.question(feature_id, id.as_str())?;
            snapshot.questions.extend(record.map(|record| parse_question(&record)).transpose()?);
        }
        let decision = decide(&snapshot, request, rules, self.now, self.ids, &mut self.seq)?;
        self.write(decision.expiry.as_ref())?;
        let (change, envelope) = match decision.outcome {
            Ok(outcome) => outcome,
            Err(refusal) => {
                self.recent.keep(feature_id.clone(), decision.state, bytes);
                return Err(refusal.into());
            }
        };
        self.write(change.as_ref())?;
        self.execute(
            "INSERT INTO operations (project, operation_id, digest, envelope) VALUES (?1, ?2, ?3, ?4)",
            (PROJECT, request.operation_id.as_str(), &request.digest, envelope.as_str()),
        )?;
        bytes = if decision.state.open_questions().next().is_none() { 0 } else { bytes };
        bytes += change.as_ref().map_or(0, Change::len);
        self.recent.keep(feature_id.clone(), decision.state, bytes);
        Ok(Receipt { envelope, seq: self.seq, fresh: true })
    }

    /// The first success of this operation, if there was one; a mismatch when it was another request.
    fn replay(&self, request: &Request) -> Result<Option<Envelope>, StoreError> {
        let found = self.first(
            "SELECT digest, envelope FROM operations WHERE project = ?1 AND operation_id = ?2",
            (PROJECT, request.operation_id.as_str()),
            |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)),
        )?;
        match found {
            None => Ok(None),
            Some((digest, envelope)) if digest == request.digest => Ok(Some(Envelope::from_ledger(envelope))),
            Some(_) => Err(request.reuse_mismatch().into()),
        }
    }

    /// Expires what is due in at most [`EXPIRE_AT_ONCE`] features; how many changed.
    pub(super) fn expire(&mut self) -> Result<usize, StoreError> {
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
            let change = Change::of(&expiry.events, &expiry.state, &expiry.secrets, &mut self.seq)?;
            changed += usize::from(change.is_some());
            self.write(change.as_ref())?;
        }
        Ok(changed)
    }

    /// The feature and its open questions.
    fn current(&mut self, feature_id: &FeatureId) -> Result<Kept, StoreError> {
        if let Some(kept) = self.recent.take(feature_id) {
            return Ok(kept);
        }
        let (feature, open) = self
            .first(
                "SELECT record, open FROM features WHERE project = ?1 AND feature_id = ?2",
                (PROJECT, feature_id.as_str()),
                |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)),
            )?
            .unzip();
        let ids = open.iter().flat_map(|open| open.split_whitespace());
        let records = ids.filter_map(|id| self.question(feature_id, id).transpose());
        let records = records.collect::<Result<Vec<_>, _>>()?;
        let bytes = feature.iter().chain(&records).map(String::len).sum();
        Ok((snapshot(feature.as_deref(), &records)?, bytes))
    }

    /// The record of one question of the feature.
    fn question(&self, feature_id: &FeatureId, id: &str) -> Result<Option<String>, StoreError> {
        self.first(
            "SELECT record FROM questions WHERE project = ?1 AND question_id = ?2 AND feature_id = ?3",
            (PROJECT, id, feature_id.as_str()),
            |row| row.get(0),
        )
    }

    /// Writes the rows of a change.
    pub(super) fn write(&mut self, change: Option<&Change>) -> Result<(), StoreError> {
        let Some(change) = change else { return Ok(()) };
        let mut previous = None;
        for row in &change.events {
            self.execute(
                "INSERT INTO events (project, seq, feature_id, previous, at, question_id, line, event)
                 VALUES (?1, ?2, ?3, ifnull(?4, (SELECT last FROM features WHERE project = ?1 AND feature_id = ?3)),
                     ?5, ?6, ?7, ?8)",
                (PROJECT, row.seq, &row.feature_id, previous, row.at, &row.question_id, &row.line, &row.event),
            )?;
            self.told = Timestamp::from_millis(row.at);
            previous = Some(row.seq);
        }
        let (feature_id, status, adhoc, version) = &change.feature.columns;
        if !self.touched.contains(feature_id) {
            self.touched.insert(feature_id.clone());
        }
        if let Some(spec) = &change.spec {
            self.execute(
                "INSERT INTO specs (project, feature_id, spec) VALUES (?1, ?2, ?3)",
                (PROJECT, feature_id, spec),
            )?;
        }
        self.execute(
            "INSERT INTO features (project, feature_id, status, adhoc, version, record, open, last)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT (project, feature_id)
             DO UPDATE SET status = ?3, version = ?5, record = ?6, open = ?7, last = ?8",
            (PROJECT, feature_id, status, adhoc, version, &change.feature.record, &change.open, previous),
        )?;
        for QuestionRow { columns: (id, feature, status, created, expires, answered), record } in
            &change.questions
        {
            self.execute(
                "INSERT INTO questions (project, question_id, feature_id, status, created_at, expires_at, answered_at, record)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
                 ON CONFLICT (project, question_id) DO UPDATE SET status = ?4, answered_at = ?7, record = ?8",
                (PROJECT, id, feature, status, created, expires, answered, record),
            )?;
        }
        for (question_id, answer) in &change.secrets {
            self.execute(
                "INSERT INTO secrets (project, question_id, feature_id, answer) VALUES (?1, ?2, ?3, ?4)",
                (PROJECT, question_id, feature_id, answer),
            )?;
        }
        if change.wipes_secrets {
            let sql = "DELETE FROM secrets WHERE project = ?1 AND feature_id = ?2";
            self.erased |= self.execute(sql, (PROJECT, feature_id))? > 0;
        }
        Ok(())
    }

    /// Erases a secret.
    pub(super) fn forget(&mut self, id: &QuestionId) -> Result<(), StoreError> {
        let sql = "DELETE FROM secrets WHERE project = ?1 AND question_id = ?2";
        self.erased |= self.execute(sql, (PROJECT, id.as_str()))? > 0;
        Ok(())
    }

    /// Puts a secret away.
    pub(super) fn entrust(&mut self, id: &QuestionId, answer: &Value) -> Result<(), StoreError> {
        let sql = "INSERT OR REPLACE INTO secrets (project, question_id, feature_id, answer)
                   SELECT project, question_id, feature_id, ?3 FROM questions WHERE project = ?1 AND question_id = ?2";
        self.execute(sql, (PROJECT, id.as_str(), answer.to_string())).map(drop)
    }

    /// Runs one statement; how many rows it changed.
    pub(super) fn execute(&self, sql: &str, params: impl Params) -> Result<usize, StoreError> {
        #[cfg(test)]
        super::plan::note(self.connection, sql);
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

    fn all<T>(
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
