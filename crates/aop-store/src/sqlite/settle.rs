//! Bringing the tables up to the log. It costs nothing of what a caller waits for, and no sync: what the tables hold can
//! be told from the log at any time, and is, when the process that wrote there has gone.

use super::batch::Batch;
use super::connect::PROJECT;
use super::recent::Kept;
use super::tail::{Ended, Tail};
use crate::error::StoreError;
use crate::rows::{Change, FeatureRow, QuestionRow, open_ids, parse_event};
use aop_kernel::event::{Event, Recorded};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Batch<'_> {
    /// Finds out from the log what the tables do not hold yet.
    pub(super) fn catch_up(&mut self) -> Result<(), StoreError> {
        (self.added, self.instead) = (Tail::default(), true);
        let rows = self.all(
            "SELECT seq, event, operation_id FROM events
             WHERE seq > (SELECT settled FROM projects WHERE project = ?1) ORDER BY seq",
            [PROJECT],
            |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, Option<String>>(2)?)),
        )?;
        let mut events = Vec::with_capacity(rows.len());
        for (seq, text, operation) in rows {
            events.push((parse_event(seq.unsigned_abs(), &text)?, text.len()));
            self.added.operations.extend(operation.map(|operation| (operation, seq)));
        }
        // What a command does to a feature stands together, and its records are made once for all of that.
        events
            .chunk_by(|(one, _), (next, _)| one.stamped.feature_id == next.stamped.feature_id)
            .try_for_each(|run| self.redo(run))
    }

    /// Does again what these events say, which are all of one feature.
    fn redo(&mut self, run: &[(Recorded, usize)]) -> Result<(), StoreError> {
        let events = run.iter().map(|(recorded, _)| &recorded.stamped);
        let [(first, _), ..] = run else { return Ok(()) };
        let feature_id = &first.stamped.feature_id;
        let mut kept = match first.stamped.event {
            Event::FeatureCreated { .. } => Kept::default(),
            _ => self.current(feature_id)?,
        };
        events.clone().for_each(|event| kept.state.evolve(event));
        kept.bytes += run.iter().map(|(_, length)| length).sum::<usize>();
        kept.last = run.last().map(|(recorded, _)| recorded.seq.cast_signed());
        if let Some((change, last)) = Change::written(events, &kept.state).zip(kept.last) {
            self.added.take(change, last);
            self.recent.keep(feature_id.clone(), kept);
        }
        Ok(())
    }

    /// Writes the rows that the tables do not hold yet.
    pub(super) fn settle(&mut self) -> Result<(), StoreError> {
        let earlier = if self.instead { Arc::default() } else { Arc::clone(&self.tail) };
        if earlier.is_empty() && self.added.is_empty() {
            return Ok(());
        }
        self.guard()?;
        let later = std::mem::take(&mut self.added);
        self.instead = true;
        self.aside(|batch| {
            for (id, spec) in earlier.specs.iter().chain(&later.specs) {
                let sql = "INSERT INTO specs (project, feature_id, spec) VALUES (?1, ?2, ?3)";
                batch.execute(sql, (PROJECT, id.as_str(), spec))?;
            }
            for (_, ended) in latest(&earlier.features, &later.features) {
                batch.settle_feature(ended)?;
            }
            for (_, question) in latest(&earlier.questions, &later.questions) {
                batch.settle_question(&QuestionRow::of(question)?)?;
            }
            for (id, seq) in latest(&earlier.operations, &later.operations) {
                let sql = "INSERT INTO ledger (project, operation_id, seq) VALUES (?1, ?2, ?3)";
                batch.execute(sql, (PROJECT, id, seq))?;
            }
            let sql = "UPDATE projects SET settled = ?2 WHERE project = ?1";
            batch.execute(sql, (PROJECT, batch.seq.cast_signed())).map(drop)
        })
    }

    fn settle_feature(&self, ended: &Ended) -> Result<(), StoreError> {
        let FeatureRow { columns: (feature_id, status, adhoc, version), record } =
            FeatureRow::of(&ended.feature)?;
        let open = open_ids(ended.open.iter().map(|question| &**question));
        self.execute(
            "INSERT INTO features (project, feature_id, status, adhoc, version, record, open, last)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT (project, feature_id)
             DO UPDATE SET status = ?3, version = ?5, record = ?6, open = ?7, last = ?8",
            (PROJECT, feature_id, status, adhoc, version, record, open, ended.last),
        )
        .map(drop)
    }

    fn settle_question(&self, row: &QuestionRow) -> Result<(), StoreError> {
        let (id, feature, status, created, expires, answered) = &row.columns;
        self.execute(
            "INSERT INTO questions (project, question_id, feature_id, status, created_at, expires_at, answered_at, record)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT (project, question_id) DO UPDATE SET status = ?4, answered_at = ?7, record = ?8",
            (PROJECT, id, feature, status, created, expires, answered, &row.record),
        )
        .map(drop)
    }
}

/// The rows of both in order, the later one where both have one.
fn latest<'a, K: Ord, T>(earlier: &'a BTreeMap<K, T>, later: &'a BTreeMap<K, T>) -> BTreeMap<&'a K, &'a T> {
    earlier.iter().chain(later).collect()
}
