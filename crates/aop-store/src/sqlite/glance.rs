//! Reading little, as long as the clock has done nothing that is not written yet.

use super::connect::{self, PROJECT, explain};
use super::read::Reader;
use super::tail::Shared;
use crate::error::StoreError;
use crate::port::{Inbox, QuestionPage};
use crate::record::Record;
use crate::rows::parse_question;
use aop_kernel::ids::QuestionId;
use aop_kernel::question::{Question, QuestionStatus};
use aop_kernel::time::Timestamp;
use aop_kernel::tools::QuestionFilter;
use rusqlite::Connection;
use rusqlite::types::ToSql;
use std::path::Path;

/// To reach further than this takes long: whoever wants to write would have to wait.
const SHORT: usize = 1_000;

/// One look at the file. Where it gives nothing, a snapshot has to be read instead.
pub(super) struct Glance<'a> {
    pub(super) connection: &'a Connection,
    pub(super) path: &'a Path,
    pub(super) clock: Timestamp,
}

/// Whether anything is due at `?2`, or at the latest time ever used; `p` is the row of the project.
macro_rules! something_is_due {
    () => {
        "EXISTS (SELECT 1 FROM questions d WHERE d.project = ?1 AND d.status = 'open' AND d.expires_at <= max(?2,
           p.used_at, ifnull((SELECT e.at FROM events e WHERE e.seq = (SELECT max(seq) FROM events)), 0)))"
    };
}

/// Everything open, if the tables hold all that the log has and nothing is due. That is asked of the one row of the
/// project, which is looked at first: asked of the questions, it would be asked of each.
macro_rules! open_if_all_is_there {
    () => {
        concat!(
            "SELECT q.record FROM projects p CROSS JOIN questions q
             WHERE p.project = ?1 AND p.settled = ifnull((SELECT max(seq) FROM events), 0) AND NOT ",
            something_is_due!(),
            " AND q.project = p.project AND q.status = 'open'"
        )
    };
}

/// What one statement tells of a question.
struct Seen {
    last: u64,
    settled: u64,
    record: Option<String>,
    something_is_due: bool,
}

impl Glance<'_> {
    /// A question, unless it might be due, or somebody else wrote what the tables do not hold yet.
    pub(super) fn question(
        &self,
        id: &QuestionId,
        tail: &Shared,
    ) -> Result<Option<Option<Question>>, StoreError> {
        // Looked at first: what leaves it afterwards is in the tables by then.
        let (seq, is_empty, written) = {
            let tail = tail.look();
            let written = tail.questions.get(id).cloned();
            let written = written.map(|question| (tail.deadline(&question.feature_id), question));
            (tail.seq, tail.is_empty(), written)
        };
        if let Some((deadline, question)) = written {
            let (last, used) =
                connect::counters(self.connection).map_err(|error| explain(self.path, &error))?;
            let is_due = question.is_open() && deadline.is_some_and(|at| at <= used.max(self.clock));
            return Ok((last == seq && !is_due).then(|| Some((*question).clone())));
        }
        let seen = self.seen(id)?;
        if seen.last != seq && seen.last != seen.settled {
            return Ok(None);
        }
        let Some(record) = seen.record else { return Ok(Some(None)) };
        let question = parse_question(&record)?;
        let in_doubt = || {
            let tail = tail.look();
            (tail.seq, tail.is_empty()) != (seq, is_empty) || tail.deadline(&question.feature_id).is_some()
        };
        let is_certain = !question.is_open() || !seen.something_is_due && !in_doubt();
        Ok(is_certain.then_some(Some(question)))
    }

    fn seen(&self, id: &QuestionId) -> Result<Seen, StoreError> {
        let sql = concat!(
            "SELECT ifnull((SELECT max(seq) FROM events), 0), p.settled, q.record,
               CASE WHEN ifnull(q.status, 'open') = 'open' THEN ",
            something_is_due!(),
            " ELSE 0 END
             FROM projects p LEFT JOIN questions q ON q.project = p.project AND q.question_id = ?3
             WHERE p.project = ?1"
        );
        let run = || {
            self.prepare(sql)?.query_row((PROJECT, self.clock.as_millis(), id.as_str()), |row| {
                Ok(Seen {
                    last: row.get::<_, i64>(0)?.unsigned_abs(),
                    settled: row.get::<_, i64>(1)?.unsigned_abs(),
                    record: row.get(2)?,
                    something_is_due: row.get(3)?,
                })
            })
        };
        run().map_err(|error| explain(self.path, &error))
    }

    /// The records of a short page of everything open; nothing when something is due, the tables lack something, or
    /// there is none.
    pub(super) fn records(&self, page: &QuestionPage) -> Result<Option<Vec<Record>>, StoreError> {
        let open = QuestionFilter::Only(QuestionStatus::Open);
        if page.feature.is_some() || page.filter != open || page.limit > SHORT {
            return Ok(None);
        }
        let limit = i64::try_from(page.limit).unwrap_or(i64::MAX);
        let clock = self.clock.as_millis();
        match &page.after {
            None => self.page(
                concat!(open_if_all_is_there!(), " ORDER BY q.created_at, q.question_id LIMIT ?3"),
                &[&PROJECT, &clock, &limit],
            ),
            Some((at, id)) => self.page(
                concat!(
                    open_if_all_is_there!(),
                    " AND (q.created_at, q.question_id) > (?4, ?5) ORDER BY q.created_at, q.question_id LIMIT ?3"
                ),
                &[&PROJECT, &clock, &limit, &at.as_millis(), &id.as_str()],
            ),
        }
    }

    /// What is most urgent; nothing when something is due, the tables lack something, or the page is far down.
    pub(super) fn inbox(&self, skip: usize, limit: usize) -> Result<Option<Inbox>, StoreError> {
        if skip.saturating_add(limit) > SHORT {
            return Ok(None);
        }
        let reader = Reader::begin(self.connection, self.path, self.clock)?;
        if reader.is_behind()? || reader.something_is_due()? {
            return Ok(None);
        }
        reader.urgent(skip, limit).map(Some)
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
