//! The events of one feature. Each names the one before it; the last stands in the row of the feature.

use super::connect::explain;
use super::read::{Reader, recorded, seq_and_text};
use crate::error::StoreError;
use crate::rows::{answered_at, parse_question};
use aop_kernel::event::Recorded;
use aop_kernel::ids::FeatureId;
use aop_kernel::question::Question;
use aop_kernel::time::Timestamp;
use rusqlite::Row;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::ControlFlow::{self, Break, Continue};

/// Before all events.
const START: i64 = 0;

/// An event that is further back than this is looked up by its number; others in between are passed over.
const NEAR: i64 = 8;

impl Reader<'_> {
    /// Goes from the last event back to the first after `after`, and shows each. The statement gives all events from a
    /// number back, of any feature: first the number, then that of the event before it of the same feature.
    fn walk<T>(
        &self,
        id: &FeatureId,
        after: i64,
        sql: &str,
        map: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
        mut show: impl FnMut(i64, T) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<(), StoreError> {
        let last = self.rows(
            "SELECT last FROM features WHERE project = ?1 AND feature_id = ?2",
            &[&id.as_str()],
            |row| row.get::<_, i64>(0),
        )?;
        #[cfg(test)]
        super::plan::note(self.connection, sql);
        let explained = |error: rusqlite::Error| explain(self.path, &error);
        let mut statement = self.connection.prepare_cached(sql).map_err(explained)?;
        let mut next = last.into_iter().next().filter(|seq| *seq > after);
        while let Some(first) = next {
            let mut rows = statement.query([first]).map_err(explained)?;
            let mut near = first;
            while let Some(seq) = next.filter(|seq| near - seq <= NEAR) {
                let row = rows.next().map_err(explained)?;
                let number = row.map(|row| row.get::<_, i64>(0)).transpose().map_err(explained)?;
                let row = match (number, row) {
                    (Some(number), Some(row)) if number == seq => row,
                    (Some(number), _) if number > seq => continue,
                    _ => {
                        let cause = "it is missing from the log".to_owned();
                        return Err(StoreError::Damaged { place: format!("event {seq}"), cause });
                    }
                };
                let read = || Ok((row.get::<_, Option<i64>>(1)?, map(row)?));
                let (previous, event) = read().map_err(explained)?;
                if show(seq, event)?.is_break() {
                    return Ok(());
                }
                near = seq;
                // A chain that a damaged file bends forwards ends there.
                next = previous.filter(|previous| (after + 1..seq).contains(previous));
            }
        }
        Ok(())
    }

    /// The numbers of the events after `after` and before `before`, newest first: so many.
    fn numbers(&self, id: &FeatureId, after: i64, before: i64, limit: usize) -> Result<Vec<i64>, StoreError> {
        let mut numbers = Vec::new();
        self.walk(
            id,
            after,
            "SELECT seq, previous FROM events WHERE seq <= ?1 ORDER BY seq DESC",
            |_| Ok(()),
            |seq, ()| {
                if numbers.len() >= limit {
                    return Ok(Break(()));
                }
                numbers.extend((seq < before).then_some(seq));
                Ok(Continue(()))
            },
        )?;
        Ok(numbers)
    }

    /// The questions that events after `after` were about, newest first, as often as there are such events.
    fn questions_about(
        &self,
        id: &FeatureId,
        after: i64,
        mut show: impl FnMut(String) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<(), StoreError> {
        self.walk(
            id,
            after,
            "SELECT seq, previous, question_id FROM events WHERE seq <= ?1 ORDER BY seq DESC",
            |row| row.get::<_, Option<String>>(2),
            |_, question| question.map_or(Ok(Continue(())), &mut show),
        )
    }

    fn events_by_number(&self, numbers: impl Iterator<Item = i64>) -> Result<Vec<Recorded>, StoreError> {
        let mut rows = Vec::new();
        for seq in numbers {
            let sql = "SELECT seq, event FROM events WHERE project = ?1 AND seq = ?2";
            rows.extend(self.rows(sql, &[&seq], seq_and_text)?);
        }
        recorded(&rows)
    }

    /// The first events after `after`.
    pub(super) fn events_of(
        &self,
        id: &FeatureId,
        after: i64,
        limit: usize,
    ) -> Result<Vec<Recorded>, StoreError> {
        let numbers = self.numbers(id, after, i64::MAX, usize::MAX)?;
        self.events_by_number(numbers.into_iter().rev().take(limit))
    }

    /// The last events, newest first.
    pub(super) fn last_events(
        &self,
        id: &FeatureId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Recorded>, StoreError> {
        let before = before.and_then(|seq| i64::try_from(seq).ok()).unwrap_or(i64::MAX);
        let numbers = self.numbers(id, START, before, limit)?;
        self.events_by_number(numbers.into_iter())
    }

    /// The log of the feature in words.
    pub(super) fn log_of(&self, id: &FeatureId) -> Result<String, StoreError> {
        let mut lines = Vec::new();
        self.walk(
            id,
            START,
            "SELECT seq, previous, at, line FROM events WHERE seq <= ?1 ORDER BY seq DESC",
            |row| {
                let (at, line) = (Timestamp::from_millis(row.get(2)?), row.get_ref(3)?.as_str()?);
                // Room for all of it: to grow there would cost more than to write it.
                let mut text = String::with_capacity(line.len() + 32);
                let _ = writeln!(text, "- {at} {line}");
                Ok(text)
            },
            |_, line| {
                lines.push(line);
                Ok(Continue(()))
            },
        )?;
        lines.reverse();
        Ok(lines.concat())
    }

    /// The answered questions that events from `since` on were about.
    pub(super) fn answered_since(&self, id: &FeatureId, since: u64) -> Result<Vec<Question>, StoreError> {
        let mut about = BTreeSet::new();
        self.questions_about(id, since.cast_signed() - 1, |question| {
            about.insert(question);
            Ok(Continue(()))
        })?;
        let mut questions = Vec::new();
        for id in &about {
            // One that cannot be understood holds up no other.
            questions.extend(self.answered(id)?.and_then(|record| parse_question(&record).ok()));
        }
        Ok(questions)
    }

    /// The questions answered last, newest first: as many as asked for, and those answered in the same moment as the
    /// last of them. Time goes forward along the events of a feature.
    pub(super) fn answered_last(&self, id: &FeatureId, limit: usize) -> Result<Vec<Question>, StoreError> {
        let (mut seen, mut answers) = (BTreeSet::new(), Vec::<Question>::new());
        self.questions_about(id, START, |id| {
            let record = if seen.contains(&id) { None } else { self.answered(&id)? };
            seen.insert(id);
            let Some(record) = record else { return Ok(Continue(())) };
            let question = parse_question(&record)?;
            if answers.len() >= limit && !same_moment(answers.last(), &question) {
                return Ok(Break(()));
            }
            answers.push(question);
            Ok(Continue(()))
        })?;
        Ok(answers)
    }

    /// The record of a question, if it is answered.
    fn answered(&self, id: &str) -> Result<Option<String>, StoreError> {
        let mut record = self.texts(
            "SELECT record FROM questions WHERE project = ?1 AND question_id = ?2 AND status = 'answered'",
            &[&id],
        )?;
        Ok(record.pop())
    }
}

fn same_moment(last: Option<&Question>, next: &Question) -> bool {
    last.is_some_and(|last| answered_at(last) == answered_at(next))
}
