//! What a mutation does inside its transaction: the ledger, the snapshot, the kernel's decision, and the events it gives.

use super::batch::Batch;
use super::connect::PROJECT;
use super::recent::Kept;
use super::tail::Tail;
use crate::decide::{EXPIRE_AT_ONCE, decide};
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
use rusqlite::Row;
use serde_json::Value;
use std::sync::Arc;

/// About as long is a record that was not written yet.
const RECORD: usize = 1_024;

/// What the caller of an operation is told.
pub(super) struct Told<'a> {
    pub(super) operation_id: &'a str,
    pub(super) digest: &'a str,
    pub(super) envelope: &'a str,
}

impl Batch<'_> {
    /// Decides one request and writes what follows from it.
    pub(super) fn submit(&mut self, request: &Request, rules: &Rules) -> Result<Receipt, StoreError> {
        if let Some(envelope) = self.replay(request)? {
            return Ok(Receipt { envelope, seq: self.seq, fresh: false });
        }
        let feature_id = request.command.feature_id();
        let Kept { state, mut last, mut bytes } = self.state(feature_id, request.command.question_id())?;
        let decision = decide(&state, request, rules, self.now, self.ids, &mut self.seq)?;
        let state = decision.state;
        if let Some(expiry) = decision.expiry {
            last = self.write(expiry, last, None)?;
        }
        let (change, envelope) = match decision.outcome {
            Ok(outcome) => outcome,
            Err(refusal) => {
                self.recent.keep(feature_id.clone(), Kept { state, last, bytes });
                return Err(refusal.into());
            }
        };
        bytes = if state.open_questions().next().is_none() { 0 } else { bytes };
        bytes += change.as_ref().map_or(0, Change::len);
        let told = Told {
            operation_id: request.operation_id.as_str(),
            digest: &request.digest,
            envelope: envelope.as_str(),
        };
        match change {
            Some(change) => last = self.write(change, last, Some(told))?,
            None => self.enter(&told)?,
        }
        self.recent.keep(feature_id.clone(), Kept { state, last, bytes });
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
            let Kept { state, last, .. } = self.current(&feature_id)?;
            let expiry = lifecycle::expire_due(&state, self.now);
            if let Some(change) = Change::of(&expiry.events, &expiry.state, &expiry.secrets, &mut self.seq)? {
                // A failure among many features undoes all of them.
                self.guard()?;
                self.write(change, last, None)?;
                changed += 1;
            }
        }
        Ok(changed)
    }

    /// What is found among the rows that the tables do not hold yet.
    fn pending<'b, T: 'b>(&'b self, find: impl Fn(&'b Tail) -> Option<T>) -> Option<T> {
        find(&self.added).or_else(|| if self.instead { None } else { find(&self.tail) })
    }

    /// The feature, its open questions and the one that is named.
    fn state(&mut self, feature_id: &FeatureId, named: Option<&QuestionId>) -> Result<Kept, StoreError> {
        let mut kept = self.current(feature_id)?;
        if let Some(id) = named.filter(|id| kept.state.question(id).is_none()) {
            kept.state.questions.extend(self.question(feature_id, id)?);
        }
        Ok(kept)
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
            let state = Snapshot { feature: Some(ended.feature.clone()), questions };
            return Ok(Kept { state, last: Some(ended.last), bytes });
        }
        // Nearly always there is at most one open question, and it comes along.
        let found = self.first(
            "SELECT f.record, f.open, f.last, q.record FROM features f
             LEFT JOIN questions q ON q.project = ?1 AND q.question_id = f.open AND q.feature_id = ?2
             WHERE f.project = ?1 AND f.feature_id = ?2",
            (PROJECT, feature_id.as_str()),
            |row| {
                let (feature, question) = (row.get_ref(0)?.as_str()?, row.get_ref(3)?.as_str_or_null()?);
                let bytes = feature.len() + question.map_or(0, str::len);
                let several = question.is_none().then(|| row.get::<_, String>(1)).transpose()?;
                Ok((snapshot(Some(feature), question), bytes, row.get(2)?, several))
            },
        )?;
        let Some((state, bytes, last, several)) = found else { return Ok(Kept::default()) };
        let mut kept = Kept { state: state?, last, bytes };
        for id in several.iter().flat_map(|ids| ids.split_whitespace()) {
            if let Some(record) = self.record(feature_id, id)? {
                kept.bytes += record.len();
                kept.state.questions.push(Arc::new(parse_question(&record)?));
            }
        }
        in_list_order(&mut kept.state.questions);
        Ok(kept)
    }

    /// One question of the feature.
    fn question(&self, feature_id: &FeatureId, id: &QuestionId) -> Result<Option<Arc<Question>>, StoreError> {
        if let Some(question) = self.pending(|tail| tail.questions.get(id)) {
            return Ok((question.feature_id == *feature_id).then(|| Arc::clone(question)));
        }
        self.record(feature_id, id.as_str())?.map(|record| parse_question(&record).map(Arc::new)).transpose()
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
    pub(super) fn last(&self, feature_id: &FeatureId) -> Result<Option<i64>, StoreError> {
        if let Some(last) = self.pending(|tail| tail.features.get(feature_id).map(|ended| ended.last)) {
            return Ok(Some(last));
        }
        let sql = "SELECT last FROM features WHERE project = ?1 AND feature_id = ?2";
        self.first(sql, (PROJECT, feature_id.as_str()), |row| row.get(0))
    }

    /// Writes a change to the log, behind the last event of its feature, and gives the last that there is then; the
    /// other tables get it later. Secrets are in no log, and written at once.
    pub(super) fn write(
        &mut self,
        change: Change,
        mut last: Option<i64>,
        told: Option<Told<'_>>,
    ) -> Result<Option<i64>, StoreError> {
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
        if let Some(end) = self.append(&change.events, last, told.as_ref())? {
            self.added.operations.extend(told.map(|told| (told.operation_id.to_owned(), end)));
            last = Some(end);
        }
        self.added.take(change, last.unwrap_or_default());
        Ok(last)
    }

    /// Events at the end of the log, the last of them with what the caller is told; where that one stands.
    fn append(
        &mut self,
        rows: &[EventRow],
        mut previous: Option<i64>,
        told: Option<&Told<'_>>,
    ) -> Result<Option<i64>, StoreError> {
        let Some(end) = rows.last() else { return Ok(None) };
        self.go_bare();
        self.execute_each(
            "INSERT INTO events (project, seq, feature_id, previous, at, question_id, line, event, operation_id, digest, envelope)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            rows.iter().map(|row| {
                let told = told.filter(|_| row.seq == end.seq);
                (
                    PROJECT,
                    row.seq,
                    &row.feature_id,
                    previous.replace(row.seq),
                    row.at,
                    &row.question_id,
                    &row.line,
                    &row.event,
                    told.map(|told| told.operation_id),
                    told.map(|told| told.digest),
                    told.map(|told| told.envelope),
                )
            }),
        )?;
        self.told = Timestamp::from_millis(end.at);
        Ok(Some(end.seq))
    }

    /// An operation that has no event.
    pub(super) fn enter(&mut self, told: &Told<'_>) -> Result<(), StoreError> {
        self.execute(
            "INSERT INTO ledger (project, operation_id, digest, envelope) VALUES (?1, ?2, ?3, ?4)",
            (PROJECT, told.operation_id, told.digest, told.envelope),
        )
        .map(drop)
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
}
