//! Reading: every query runs on one snapshot of the file and shows what is due as already expired.

use super::connect::{PROJECT, explain};
use crate::error::StoreError;
use crate::overlay::Overlay;
use crate::port::{EventPage, FeatureFiles, FeaturePage, QuestionPage};
use crate::record::Record;
use crate::rows::{
    in_list_order, parse, parse_changed, parse_event, parse_feature, parse_question, snapshot,
};
use aop_kernel::event::{Recorded, Snapshot};
use aop_kernel::feature::Feature;
use aop_kernel::ids::{FeatureId, QuestionId};
use aop_kernel::lifecycle::expire_due;
use aop_kernel::question::{Question, QuestionStatus};
use aop_kernel::time::Timestamp;
use aop_kernel::tools::QuestionFilter;
use rusqlite::types::ToSql;
use rusqlite::{Connection, OptionalExtension, Row};
use serde_json::Value;
use std::cell::OnceCell;
use std::path::Path;

/// One snapshot of the file, and the time it is looked at.
pub(super) struct Reader<'a> {
    pub(super) connection: &'a Connection,
    pub(super) path: &'a Path,
    clock: Timestamp,
    now: OnceCell<Timestamp>,
}

impl<'a> Reader<'a> {
    pub(super) fn begin(
        connection: &'a Connection,
        path: &'a Path,
        clock: Timestamp,
    ) -> Result<Self, StoreError> {
        let begin = || connection.prepare_cached("BEGIN")?.execute(());
        begin().map_err(|error| explain(path, &error))?;
        Ok(Reader { connection, path, clock, now: OnceCell::new() })
    }

    /// The time, but never earlier than that of any commit in this snapshot.
    pub(super) fn now(&self) -> Result<Timestamp, StoreError> {
        if let Some(now) = self.now.get() {
            return Ok(*now);
        }
        let (_, used) = self.counters()?;
        Ok(*self.now.get_or_init(|| self.clock.max(used)))
    }

    /// The feature with its open questions, as the clock leaves them.
    pub(super) fn view(&self, id: &FeatureId) -> Result<Snapshot, StoreError> {
        Ok(expire_due(&self.committed(id)?, self.now()?).state)
    }

    fn committed(&self, id: &FeatureId) -> Result<Snapshot, StoreError> {
        let feature = self
            .texts("SELECT record FROM features WHERE project = ?1 AND feature_id = ?2", &[&id.as_str()])?;
        snapshot(feature.first().map(String::as_str), &self.open_records(id)?)
    }

    /// The records of a feature's open questions.
    fn open_records(&self, id: &FeatureId) -> Result<Vec<String>, StoreError> {
        let open =
            self.texts("SELECT open FROM features WHERE project = ?1 AND feature_id = ?2", &[&id.as_str()])?;
        let mut records = Vec::new();
        for id in open.iter().flat_map(|open| open.split_whitespace()) {
            records.extend(self.record(id)?);
        }
        Ok(records)
    }

    fn record(&self, id: &str) -> Result<Option<String>, StoreError> {
        let mut found =
            self.texts("SELECT record FROM questions WHERE project = ?1 AND question_id = ?2", &[&id])?;
        Ok(found.pop())
    }

    /// Whether the clock has done anything that is not written yet. Rare and short: whoever watches the deadlines
    /// writes it down in the next moment.
    pub(super) fn something_is_due(&self) -> Result<bool, StoreError> {
        let due = self.rows(
            "SELECT 1 FROM questions WHERE project = ?1 AND status = 'open' AND expires_at <= ?2 LIMIT 1",
            &[&self.now()?.as_millis()],
            |row| row.get::<_, i64>(0),
        )?;
        Ok(!due.is_empty())
    }

    /// What is due and not written yet, of one feature or of all. Usually nothing.
    fn overlay(&self, only: Option<&FeatureId>) -> Result<Overlay, StoreError> {
        let due = self.texts(
            "SELECT DISTINCT feature_id FROM questions WHERE project = ?1 AND status = 'open' AND expires_at <= ?2",
            &[&self.now()?.as_millis()],
        )?;
        let mut overlay = Overlay::default();
        for id in due {
            let id = FeatureId::parse(&id)?;
            if only.is_some_and(|only| *only != id) {
                continue;
            }
            overlay.add(&self.committed(&id)?, self.now()?);
        }
        Ok(overlay)
    }

    pub(super) fn spec(&self, id: &FeatureId) -> Result<Option<String>, StoreError> {
        let found =
            self.texts("SELECT spec FROM specs WHERE project = ?1 AND feature_id = ?2", &[&id.as_str()])?;
        Ok(found.into_iter().next())
    }

    pub(super) fn features(&self, page: &FeaturePage) -> Result<Vec<Feature>, StoreError> {
        let overlay = self.overlay(page.only.as_ref())?;
        let records = match &page.only {
            Some(id) => self.texts(
                "SELECT record FROM features WHERE project = ?1 AND feature_id = ?2",
                &[&id.as_str()],
            )?,
            None => self.texts(
                "SELECT record FROM features WHERE project = ?1 AND (adhoc = 0 OR ?2) ORDER BY feature_id",
                &[&page.adhoc],
            )?,
        };
        let rows = records.iter().map(|record| parse_feature(record)).collect::<Result<Vec<_>, _>>()?;
        Ok(overlay.features(page, rows))
    }

    pub(super) fn question(&self, id: &QuestionId) -> Result<Option<Question>, StoreError> {
        let Some(record) = self.record(id.as_str())? else { return Ok(None) };
        let question = parse_question(&record)?;
        if !question.is_open() || !self.something_is_due()? {
            return Ok(Some(question));
        }
        Ok(self.view(&question.feature_id)?.question(id).cloned())
    }

    pub(super) fn questions(&self, page: &QuestionPage) -> Result<Vec<Question>, StoreError> {
        let overlay = self.overlay(page.feature.as_ref())?;
        let limit = page.limit.saturating_add(overlay.len());
        let rows = match page.open_of_one() {
            Some(feature) => self.open_rows(page, feature, limit)?,
            None => self
                .question_rows(page, limit)?
                .iter()
                .map(|record| parse_question(record))
                .collect::<Result<_, _>>()?,
        };
        Ok(overlay.questions(page, rows))
    }

    pub(super) fn records(&self, page: &QuestionPage) -> Result<Vec<Record>, StoreError> {
        if page.open_of_one().is_some() || self.something_is_due()? {
            return self.questions(page)?.iter().map(Record::of).collect();
        }
        Ok(self.question_rows(page, page.limit)?.into_iter().map(Record::stored).collect())
    }

    fn question_rows(&self, page: &QuestionPage, limit: usize) -> Result<Vec<String>, StoreError> {
        let mut sql = String::new();
        let mut values: Vec<Box<dyn ToSql>> = Vec::new();
        let mut bind = |condition: &str, value: Box<dyn ToSql>, sql: &mut String| {
            values.push(value);
            sql.push_str(&condition.replace("{}", &format!("?{}", values.len() + 1)));
        };
        match page.filter {
            QuestionFilter::All => {}
            QuestionFilter::Only(QuestionStatus::Open) => {
                // Spelled out, because only then SQLite may use the index that has the open ones alone.
                let now = self.now()?.as_millis();
                let open = " AND status = 'open' AND (expires_at IS NULL OR expires_at > {})";
                bind(open, Box::new(now), &mut sql);
            }
            QuestionFilter::Only(status) => bind(" AND status = {}", Box::new(status.as_str()), &mut sql),
        }
        if let Some(feature) = &page.feature {
            bind(" AND feature_id = {}", Box::new(feature.as_str().to_owned()), &mut sql);
        }
        if let Some((at, id)) = &page.after {
            bind(" AND (created_at, question_id) > ({}, ", Box::new(at.as_millis()), &mut sql);
            bind("{})", Box::new(id.as_str().to_owned()), &mut sql);
        }
        let mut sql = match (page.filter, &page.feature) {
            // Each status has its order in the index, and they are merged: to sort them would be to read them all.
            (QuestionFilter::All, None) => {
                let of = |status: &QuestionStatus| {
                    format!(
                        "SELECT record, created_at, question_id FROM questions WHERE project = ?1 AND status = '{}'{sql}",
                        status.as_str()
                    )
                };
                QuestionStatus::ALL.iter().map(of).collect::<Vec<_>>().join(" UNION ALL ")
            }
            _ => format!("SELECT record FROM questions WHERE project = ?1{sql}"),
        };
        values.push(Box::new(i64::try_from(limit).unwrap_or(-1)));
        sql.push_str(&format!(" ORDER BY created_at, question_id LIMIT ?{}", values.len() + 1));
        let borrowed: Vec<&dyn ToSql> = values.iter().map(AsRef::as_ref).collect();
        self.texts(&sql, &borrowed)
    }

    /// The open questions of one feature that belong on the page and are not due.
    fn open_rows(
        &self,
        page: &QuestionPage,
        feature: &FeatureId,
        limit: usize,
    ) -> Result<Vec<Question>, StoreError> {
        let now = self.now()?;
        let mut open = self
            .open_records(feature)?
            .iter()
            .map(|record| parse_question(record))
            .collect::<Result<Vec<_>, _>>()?;
        open.retain(|question| {
            let is_after =
                |(at, id): &(Timestamp, QuestionId)| (question.created_at, &question.id) > (*at, id);
            question.is_open() && !question.is_due(now) && page.after.as_ref().is_none_or(is_after)
        });
        in_list_order(&mut open);
        open.truncate(limit);
        Ok(open)
    }

    pub(super) fn recent_answers(&self, id: &FeatureId, limit: usize) -> Result<Vec<Question>, StoreError> {
        Ok(self.overlay(Some(id))?.answers(self.answered_last(id, limit)?, limit))
    }

    pub(super) fn next_deadline(&self) -> Result<Option<Timestamp>, StoreError> {
        let sql = "SELECT min(expires_at) FROM questions WHERE project = ?1 AND status = 'open' AND expires_at IS NOT NULL";
        #[cfg(test)]
        super::plan::note(self.connection, sql);
        let run =
            || self.connection.prepare_cached(sql)?.query_row([PROJECT], |row| row.get::<_, Option<i64>>(0));
        run().map(|at| at.map(Timestamp::from_millis)).map_err(|error| explain(self.path, &error))
    }

    pub(super) fn events(&self, page: &EventPage) -> Result<Vec<Recorded>, StoreError> {
        let after = page.after.cast_signed();
        if let Some(feature) = &page.feature {
            let limit = if page.limit == 0 { usize::MAX } else { page.limit };
            return self.events_of(feature, after, limit);
        }
        let limit = if page.limit == 0 { -1 } else { i64::try_from(page.limit).unwrap_or(-1) };
        let rows = self.rows(
            "SELECT seq, event FROM events WHERE project = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
            &[&after, &limit],
            seq_and_text,
        )?;
        recorded(&rows)
    }

    pub(super) fn changed_since(&self, seq: u64) -> Result<(Vec<(FeatureId, u64)>, u64), StoreError> {
        let rows = self.rows(
            "SELECT min(seq), feature_id FROM events WHERE project = ?1 AND seq > ?2 GROUP BY feature_id",
            &[&seq.cast_signed()],
            seq_and_text,
        )?;
        Ok((parse_changed(rows)?, self.last_seq()?))
    }

    /// The last event there is.
    pub(super) fn last_seq(&self) -> Result<u64, StoreError> {
        Ok(self.counters()?.0)
    }

    /// Whether the tables lack something that the log has.
    pub(super) fn is_behind(&self) -> Result<bool, StoreError> {
        super::connect::is_behind(self.connection).map_err(|error| explain(self.path, &error))
    }

    /// The last event that the tables hold.
    pub(super) fn settled(&self) -> Result<u64, StoreError> {
        let settled =
            self.rows("SELECT settled FROM projects WHERE project = ?1", &[], |row| row.get::<_, i64>(0))?;
        Ok(settled.first().map_or(0, |seq| seq.unsigned_abs()))
    }

    fn counters(&self) -> Result<(u64, Timestamp), StoreError> {
        super::connect::counters(self.connection).map_err(|error| explain(self.path, &error))
    }

    pub(super) fn feature_files(
        &self,
        id: &FeatureId,
        since: u64,
    ) -> Result<Option<FeatureFiles>, StoreError> {
        let Some(feature) = self.committed(id)?.feature else { return Ok(None) };
        // Joined as they are read: a long history would be tens of thousands of small texts otherwise.
        let mut questions = String::new();
        self.rows(
            "SELECT record FROM questions WHERE project = ?1 AND feature_id = ?2 ORDER BY created_at, question_id",
            &[&id.as_str()],
            |row| {
                questions.push_str(if questions.is_empty() { "" } else { ",\n" });
                questions.push_str(row.get_ref(0)?.as_str()?);
                Ok(())
            },
        )?;
        let mut forms = self.answered_since(id, since)?;
        forms.retain(|question| question.asked.spec.is_some());
        Ok(Some(FeatureFiles { spec: self.spec(id)?, feature, questions, log: self.log_of(id)?, forms }))
    }

    pub(super) fn secret(&self, id: &QuestionId) -> Result<Option<Value>, StoreError> {
        let found = self
            .texts("SELECT answer FROM secrets WHERE project = ?1 AND question_id = ?2", &[&id.as_str()])?;
        found.first().map(|text| parse(&format!("secret of {id}"), text)).transpose()
    }

    /// Every stored event, for a replay, with the time and the question that stand beside it. Some at a time: the log
    /// may be long.
    pub(super) fn each_event(
        &self,
        mut take: impl FnMut(Recorded, i64, Option<String>),
    ) -> Result<(), StoreError> {
        let mut after = 0;
        loop {
            let rows = self.rows(
                "SELECT seq, event, at, question_id FROM events WHERE project = ?1 AND seq > ?2
                 ORDER BY seq LIMIT 1000",
                &[&after],
                |row| Ok((seq_and_text(row)?, row.get(2)?, row.get(3)?)),
            )?;
            let Some(((last, _), ..)) = rows.last() else { return Ok(()) };
            after = last.cast_signed();
            for ((seq, text), at, question_id) in rows {
                take(parse_event(seq, &text)?, at, question_id);
            }
        }
    }

    /// The first column of every row, with the project as the first parameter.
    pub(super) fn texts(&self, sql: &str, params: &[&dyn ToSql]) -> Result<Vec<String>, StoreError> {
        self.rows(sql, params, |row| row.get(0))
    }

    pub(super) fn rows<T>(
        &self,
        sql: &str,
        params: &[&dyn ToSql],
        map: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let mut all: Vec<&dyn ToSql> = vec![&PROJECT];
        all.extend(params);
        #[cfg(test)]
        super::plan::note(self.connection, sql);
        let run = || {
            self.connection
                .prepare_cached(sql)?
                .query_map(all.as_slice(), map)?
                .collect::<rusqlite::Result<Vec<T>>>()
        };
        run().map_err(|error| explain(self.path, &error))
    }

    /// What SQLite itself thinks of the file; `ok` when all is well.
    pub(super) fn integrity(&self) -> Result<String, StoreError> {
        let run = || {
            self.connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0)).optional()
        };
        run().map(Option::unwrap_or_default).map_err(|error| explain(self.path, &error))
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        let end = || self.connection.prepare_cached("COMMIT")?.execute(());
        // When even this fails the connection is beyond use, and the next BEGIN says so.
        let _ = end();
    }
}

pub(super) fn recorded(rows: &[(u64, String)]) -> Result<Vec<Recorded>, StoreError> {
    rows.iter().map(|(seq, text)| parse_event(*seq, text)).collect()
}

pub(super) fn seq_and_text(row: &Row<'_>) -> rusqlite::Result<(u64, String)> {
    Ok((row.get::<_, i64>(0)?.unsigned_abs(), row.get(1)?))
}
