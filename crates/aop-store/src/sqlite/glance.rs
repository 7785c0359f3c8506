//! Reading with one statement, as long as the clock has done nothing that is not written yet.

use super::connect::{PROJECT, explain};
use crate::error::StoreError;
use crate::port::QuestionPage;
use crate::record::Record;
use crate::rows::parse_question;
use aop_kernel::ids::QuestionId;
use aop_kernel::question::{Question, QuestionStatus};
use aop_kernel::time::Timestamp;
use aop_kernel::tools::QuestionFilter;
use rusqlite::types::ToSql;
use rusqlite::{Connection, OptionalExtension};
use std::path::Path;

/// One look at the file. Where it gives nothing, a snapshot has to be read instead.
pub(super) struct Glance<'a> {
    pub(super) connection: &'a Connection,
    pub(super) path: &'a Path,
    pub(super) clock: Timestamp,
}

/// Whether anything is due at `?2`, or at the latest time ever used.
macro_rules! something_is_due {
    () => {
        "EXISTS (SELECT 1 FROM questions d WHERE d.project = ?1 AND d.status = 'open' AND d.expires_at <= max(?2,
           (SELECT p.last_at FROM projects p WHERE p.project = ?1),
           ifnull((SELECT e.at FROM events e WHERE e.seq = (SELECT max(seq) FROM events)), 0)))"
    };
}

impl Glance<'_> {
    /// A question, unless it might be due.
    pub(super) fn question(&self, id: &QuestionId) -> Result<Option<Option<Question>>, StoreError> {
        let sql = concat!(
            "SELECT q.record, CASE WHEN q.status = 'open' THEN ",
            something_is_due!(),
            " ELSE 0 END FROM questions q WHERE q.project = ?1 AND q.question_id = ?3"
        );
        let run = || {
            self.prepare(sql)?
                .query_row((PROJECT, self.clock.as_millis(), id.as_str()), |row| {
                    Ok((row.get::<_, String>(0)?, row.get::<_, bool>(1)?))
                })
                .optional()
        };
        match run().map_err(|error| explain(self.path, &error))? {
            Some((_, true)) => Ok(None),
            Some((record, false)) => Ok(Some(Some(parse_question(&record)?))),
            None => Ok(Some(None)),
        }
    }

    /// The records of a page of everything open; nothing when something is due, or there is none.
    pub(super) fn records(&self, page: &QuestionPage) -> Result<Option<Vec<Record>>, StoreError> {
        let open = QuestionFilter::Only(QuestionStatus::Open);
        let (None, true) = (&page.feature, page.filter == open) else { return Ok(None) };
        let limit = i64::try_from(page.limit).unwrap_or(i64::MAX);
        let clock = self.clock.as_millis();
        match &page.after {
            None => self.page(
                concat!(
                    "SELECT record FROM questions WHERE project = ?1 AND status = 'open' AND NOT ",
                    something_is_due!(),
                    " ORDER BY created_at, question_id LIMIT ?3"
                ),
                &[&PROJECT, &clock, &limit],
            ),
            Some((at, id)) => self.page(
                concat!(
                    "SELECT record FROM questions WHERE project = ?1 AND status = 'open' AND NOT ",
                    something_is_due!(),
                    " AND (created_at, question_id) > (?4, ?5) ORDER BY created_at, question_id LIMIT ?3"
                ),
                &[&PROJECT, &clock, &limit, &at.as_millis(), &id.as_str()],
            ),
        }
    }

    fn page(&self, sql: &str, params: &[&dyn ToSql]) -> Result<Option<Vec<Record>>, StoreError> {
        let run = || {
            let mut statement = self.prepare(sql)?;
            let records = statement.query_map(params, |row| Ok(Record::stored(row.get(0)?)))?;
            records.collect::<rusqlite::Result<Vec<_>>>()
        };
        let records = run().map_err(|error| explain(self.path, &error))?;
        Ok(Some(records).filter(|records| !records.is_empty()))
    }

    fn prepare(&self, sql: &str) -> rusqlite::Result<rusqlite::CachedStatement<'_>> {
        #[cfg(test)]
        super::plan::note(self.connection, sql);
        self.connection.prepare_cached(sql)
    }
}
