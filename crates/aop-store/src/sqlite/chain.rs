//! The events of one feature. Each names the one before it; the last stands in the row of the feature.

use super::read::{Reader, recorded, seq_and_text};
use crate::error::StoreError;
use crate::rows::parse_question;
use aop_kernel::event::Recorded;
use aop_kernel::ids::FeatureId;
use aop_kernel::question::Question;
use aop_kernel::time::Timestamp;
use std::collections::HashSet;
use std::fmt::Write;
use std::ops::ControlFlow;

/// From the last event of feature `?2` back to the first after `?3`. A chain that a damaged file bends forwards ends
/// there.
macro_rules! chain {
    ($rest:literal) => {
        concat!(
            "WITH RECURSIVE chain (seq, previous) AS (
               SELECT e.seq, e.previous FROM features f CROSS JOIN events e ON e.seq = f.last
               WHERE f.project = ?1 AND f.feature_id = ?2 AND e.seq > ?3
               UNION ALL
               SELECT e.seq, e.previous FROM chain c CROSS JOIN events e ON e.seq = c.previous
               WHERE e.seq > ?3 AND e.seq < c.seq) ",
            $rest
        )
    };
}

/// Before all events.
const START: i64 = 0;

impl Reader<'_> {
    /// The first events after `after`.
    pub(super) fn events_of(
        &self,
        id: &FeatureId,
        after: i64,
        limit: i64,
    ) -> Result<Vec<Recorded>, StoreError> {
        let rows = self.rows(
            chain!(
                "SELECT e.seq, e.event FROM chain c CROSS JOIN events e ON e.seq = c.seq ORDER BY c.seq LIMIT ?4"
            ),
            &[&id.as_str(), &after, &limit],
            seq_and_text,
        )?;
        recorded(&rows)
    }

    /// The last events, newest first.
    pub(super) fn last_events(
        &self,
        id: &FeatureId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Recorded>, StoreError> {
        let before = before.and_then(|seq| i64::try_from(seq).ok()).unwrap_or(i64::MAX);
        let rows = self.rows(
            chain!(
                "SELECT e.seq, e.event FROM chain c CROSS JOIN events e ON e.seq = c.seq WHERE c.seq < ?4 LIMIT ?5"
            ),
            &[&id.as_str(), &START, &before, &i64::try_from(limit).unwrap_or(i64::MAX)],
            seq_and_text,
        )?;
        recorded(&rows)
    }

    /// The log of the feature in words.
    pub(super) fn log_of(&self, id: &FeatureId) -> Result<String, StoreError> {
        // Joined as it is read: a long history would be tens of thousands of small texts otherwise.
        let mut log = String::new();
        self.rows(
            chain!("SELECT e.at, e.line FROM chain c CROSS JOIN events e ON e.seq = c.seq ORDER BY c.seq"),
            &[&id.as_str(), &START],
            |row| {
                let at = Timestamp::from_millis(row.get(0)?);
                // Writing to a String cannot fail.
                let _ = writeln!(log, "- {at} {}", row.get_ref(1)?.as_str()?);
                Ok(())
            },
        )?;
        Ok(log)
    }

    /// The records of the questions that events from `since` on were about, and that are answered.
    pub(super) fn answered_since(&self, id: &FeatureId, since: u64) -> Result<Vec<String>, StoreError> {
        self.texts(
            chain!(
                "SELECT q.record FROM chain c CROSS JOIN events e ON e.seq = c.seq
                 CROSS JOIN questions q ON q.project = ?1 AND q.question_id = e.question_id
                 WHERE q.status = 'answered' GROUP BY q.question_id"
            ),
            &[&id.as_str(), &(since.cast_signed() - 1)],
        )
    }

    /// The questions answered last, newest first: as many as asked for, and those answered in the same moment as the
    /// last of them. Time goes forward along the events of a feature.
    pub(super) fn answered_last(&self, id: &FeatureId, limit: usize) -> Result<Vec<Question>, StoreError> {
        let (mut seen, mut answers) = (HashSet::new(), Vec::new());
        let mut oldest = None;
        self.each_row(
            chain!(
                "SELECT q.question_id, q.answered_at, q.record FROM chain c CROSS JOIN events e ON e.seq = c.seq
                 CROSS JOIN questions q ON q.project = ?1 AND q.question_id = e.question_id
                 WHERE q.status = 'answered'"
            ),
            &[&id.as_str(), &START],
            |row| {
                let at: i64 = row.get(1)?;
                if answers.len() >= limit && oldest != Some(at) {
                    return Ok(ControlFlow::Break(()));
                }
                if seen.insert(row.get::<_, String>(0)?) {
                    answers.push(row.get::<_, String>(2)?);
                    oldest = Some(at);
                }
                Ok(ControlFlow::Continue(()))
            },
        )?;
        answers.iter().map(|record| parse_question(record)).collect()
    }
}
