//! Reading what is urgent without reading all there is.

use super::link::Failure;
use super::read::{Param, Reader, rows_at_most};
use crate::port::{Inbox, QuestionPage};
use crate::rows::parse_question;
use aop_kernel::question::{Question, QuestionStatus};
use aop_kernel::tools::QuestionFilter;

/// How many are due, how many are open, and how many of those have a deadline; each counted no further than it matters.
const COUNTS: &str = "SELECT
    (SELECT count(*) FROM (SELECT FROM questions
        WHERE project = $1 AND status = 'open' AND expires_at <= $2 LIMIT 1) due),
    (SELECT count(*) FROM (SELECT FROM questions WHERE project = $1 AND status = 'open' LIMIT $3) found),
    (SELECT count(*) FROM (SELECT FROM questions
        WHERE project = $1 AND status = 'open' AND expires_at > $2 LIMIT $4) timed)";

impl Reader {
    /// A page of everything open, the most urgent first.
    pub(super) async fn inbox(&self, skip: usize, limit: usize) -> Result<Inbox, Failure> {
        let now = self.now().as_millis();
        let (countable, skipped) =
            (rows_at_most(Inbox::countable(skip, limit).saturating_add(1)), rows_at_most(skip));
        let rows = self.rows(COUNTS, &[&now, &countable, &skipped]).await?;
        let count = |column: usize| {
            rows.first().and_then(|row| usize::try_from(row.get::<_, i64>(column)).ok()).unwrap_or_default()
        };
        let (due, found, timed) = (count(0), count(1), count(2));
        if due > 0 {
            // What the clock has done to a feature may close more than the question that is due. Rare and short:
            // whoever watches the deadlines writes it down in the next moment.
            let filter = QuestionFilter::Only(QuestionStatus::Open);
            let page = QuestionPage { feature: None, filter, after: None, limit: usize::MAX };
            return Ok(Inbox::of(self.questions(&page).await?, skip, limit));
        }
        let mut items = self
            .page(
                "SELECT record FROM questions WHERE project = $1 AND status = 'open' AND expires_at > $2
                 ORDER BY expires_at, created_at, question_id LIMIT $3 OFFSET $4",
                &[&now, &rows_at_most(limit), &skipped],
            )
            .await?;
        if items.len() < limit {
            let (left, offset) = (rows_at_most(limit - items.len()), rows_at_most(skip - timed));
            let calm = self
                .page(
                    "SELECT record FROM questions WHERE project = $1 AND status = 'open' AND expires_at IS NULL
                     ORDER BY created_at, question_id LIMIT $2 OFFSET $3",
                    &[&left, &offset],
                )
                .await?;
            items.extend(calm);
        }
        Ok(Inbox::counted(found, skip, limit, items))
    }

    async fn page(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Question>, Failure> {
        let records = self.texts(sql, params).await?;
        Ok(records.iter().map(|record| parse_question(record)).collect::<Result<_, _>>()?)
    }
}
