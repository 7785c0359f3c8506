//! Reading what is urgent without reading all there is: the page people look at most.

use super::read::Reader;
use crate::error::StoreError;
use crate::port::{Inbox, QuestionPage};
use crate::rows::parse_question;
use aop_kernel::question::{Question, QuestionStatus};
use aop_kernel::tools::QuestionFilter;
use rusqlite::types::ToSql;

impl Reader<'_> {
    /// A page of everything open, the most urgent first.
    pub(super) fn inbox(&self, skip: usize, limit: usize) -> Result<Inbox, StoreError> {
        if self.something_is_due()? {
            // What the clock has done to a feature may close more than the question that is due.
            let filter = QuestionFilter::Only(QuestionStatus::Open);
            let page = QuestionPage { feature: None, filter, after: None, limit: usize::MAX };
            return Ok(Inbox::of(self.questions(&page)?, skip, limit));
        }
        self.urgent(skip, limit)
    }

    /// The same while nothing is due.
    pub(super) fn urgent(&self, skip: usize, limit: usize) -> Result<Inbox, StoreError> {
        let now = self.now()?.as_millis();
        let found = self.count(
            "SELECT 1 FROM questions WHERE project = ?1 AND status = 'open' LIMIT ?2",
            &[&signed(Inbox::countable(skip, limit).saturating_add(1))],
        )?;
        let mut items = self.page(
            "SELECT record FROM questions WHERE project = ?1 AND status = 'open' AND expires_at > ?2
             ORDER BY expires_at, created_at, question_id LIMIT ?3 OFFSET ?4",
            &[&now, &signed(limit), &signed(skip)],
        )?;
        if items.len() < limit {
            // Those with a deadline end on this page or before it: no more of them than this.
            let timed = self.count(
                "SELECT 1 FROM questions WHERE project = ?1 AND status = 'open' AND expires_at > ?2 LIMIT ?3",
                &[&now, &signed(skip)],
            )?;
            items.extend(self.page(
                "SELECT record FROM questions WHERE project = ?1 AND status = 'open' AND expires_at IS NULL
                 ORDER BY created_at, question_id LIMIT ?2 OFFSET ?3",
                &[&signed(limit - items.len()), &signed(skip - timed)],
            )?);
        }
        Ok(Inbox::counted(found, skip, limit, items))
    }

    fn page(&self, sql: &str, params: &[&dyn ToSql]) -> Result<Vec<Question>, StoreError> {
        // Read where it stands: the texts of a whole page are not kept for that.
        self.rows(sql, params, |row| Ok(parse_question(row.get_ref(0)?.as_str()?)))?.into_iter().collect()
    }

    fn count(&self, sql: &str, params: &[&dyn ToSql]) -> Result<usize, StoreError> {
        Ok(self.rows(sql, params, |_| Ok(()))?.len())
    }
}

/// A count as SQLite takes it.
fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
