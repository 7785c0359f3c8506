//! Waiting for a human: woken by commits of any process, by the question's own deadline, and by the end of
//! patience. Nothing is lost with a wait; the question is in the store.

use super::Handler;
use aop_kernel::ids::QuestionId;
use aop_kernel::question::Question;
use aop_kernel::{ErrorCode, Refusal};
use rmcp::RoleServer;
use rmcp::service::RequestContext;
use std::time::Duration;
use tokio::time::Instant;

impl Handler {
    /// The question when it is closed, or as it stands when patience is over or nobody listens any more.
    pub(super) async fn until_closed(
        &self,
        asked: &Question,
        context: &RequestContext<RoleServer>,
    ) -> Result<Question, Refusal> {
        let store = &self.service.store;
        let mut changes = self.wakes.of(&asked.feature_id);
        let mut closed = self.closed.clone();
        let end = Instant::now() + self.patience;
        loop {
            // Marked as seen before reading, so that an answer in between wakes the wait below.
            changes.borrow_and_update();
            let question = self.question(&asked.id).await?;
            let now = store.now().await?;
            if !question.is_open() {
                if question.expires_at.is_some_and(|deadline| deadline <= now) {
                    // Perhaps the clock closed it and nobody has written that down yet.
                    store.expire().await?;
                    self.files.changed();
                }
                return Ok(question);
            }
            if Instant::now() >= end || *closed.borrow() {
                return Ok(question);
            }
            let due = question.expires_at.map(|at| at.as_millis().saturating_sub(now.as_millis()));
            let due = due.map(|left| Instant::now() + Duration::from_millis(left.unsigned_abs() + 1));
            tokio::select! {
                changed = changes.changed() => {
                    if changed.is_err() {
                        return Ok(question);
                    }
                }
                () = tokio::time::sleep_until(due.map_or(end, |due| due.min(end))) => {}
                _ = closed.changed() => {}
                () = context.ct.cancelled() => return Ok(question),
            }
        }
    }

    /// One question that has to be there.
    pub(super) async fn question(&self, id: &QuestionId) -> Result<Question, Refusal> {
        self.service.store.question(id.clone()).await?.ok_or_else(|| {
            Refusal::new(ErrorCode::QuestionNotFound, format!("no question {id}")).fact("question_id", id)
        })
    }
}
