//! Reading what is urgent or recent without reading all there is: the pages people look at most.

use super::link::Failure;
use super::read::{Param, Reader, rows_at_most};
use crate::port::{Inbox, QuestionPage};
use crate::rows::{parse_event, parse_question};
use aop_kernel::event::Recorded;
use aop_kernel::ids::FeatureId;
use aop_kernel::question::QuestionStatus;
use aop_kernel::tools::QuestionFilter;

/// How many are open, counted no further than it matters, and whether any of them is due.
const OPEN: &str = "
    SELECT (SELECT count(*) FROM (SELECT FROM questions WHERE project = $1 AND status = 'open' LIMIT $3) found),
        EXISTS (SELECT FROM questions WHERE project = $1 AND status = 'open' AND expires_at <= $2)";

/// In the order of `questions_urgent`, in which those without a deadline come last.
const URGENT: &str = "
    SELECT record FROM questions WHERE project = $1 AND status = 'open'
    ORDER BY expires_at, created_at, question_id LIMIT $2 OFFSET $3";

impl Reader {
    /// A page of everything open, the most urgent first.
    pub(super) async fn inbox(&self, skip: usize, limit: usize) -> Result<Inbox, Failure> {
        let now = self.now().as_millis();
        let (most, first) = (rows_at_most(limit), i64::try_from(skip).unwrap_or(i64::MAX));
        let countable = rows_at_most(Inbox::countable(skip, limit).saturating_add(1));
        let (clock, page): ([Param<'_>; 2], [Param<'_>; 2]) = ([&now, &countable], [&most, &first]);
        let (counts, records) = tokio::join!(self.rows(OPEN, &clock), self.texts(URGENT, &page));
        let counts = counts?;
        if counts.first().is_some_and(|row| row.get(1)) {
            // What the clock has done to a feature may close more than the question that is due. Rare and short:
            // whoever watches the deadlines writes it down in the next moment.
            let filter = QuestionFilter::Only(QuestionStatus::Open);
            let page = QuestionPage { feature: None, filter, after: None, limit: usize::MAX };
            return Ok(Inbox::of(self.questions(&page).await?, skip, limit));
        }
        let items = records?.iter().map(|record| parse_question(record)).collect::<Result<_, _>>()?;
        let found = counts.first().map_or(0, |row| row.get::<_, i64>(0));
        Ok(Inbox::counted(usize::try_from(found).unwrap_or_default(), skip, limit, items))
    }

    /// The last events of a feature, newest first.
    pub(super) async fn last_events(
        &self,
        id: &FeatureId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Recorded>, Failure> {
        let before = before.and_then(|seq| i64::try_from(seq).ok()).unwrap_or(i64::MAX);
        let sql = "SELECT seq, event FROM events WHERE project = $1 AND feature_id = $2 AND seq < $3
                   ORDER BY seq DESC LIMIT $4";
        let rows = self.rows(sql, &[&id.as_str(), &before, &rows_at_most(limit)]).await?;
        let events = rows.iter().map(|row| parse_event(row.get::<_, i64>(0).unsigned_abs(), row.get(1)));
        Ok(events.collect::<Result<_, _>>()?)
    }
}
