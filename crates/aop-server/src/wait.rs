//! Waiting for a human: woken by commits of any process on the feature, by the question's own deadline, by the end of patience, and
//! when nobody listens any more. Nothing is lost with a wait; the question is in the store.

use aop_kernel::ids::QuestionId;
use aop_kernel::question::Question;
use aop_kernel::{ErrorCode, Refusal};
use aop_store::{Service, Store};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// What a wait needs.
pub(crate) struct Wait<'a> {
    pub(crate) service: &'a Service,
    /// Becomes true when nobody listens any more.
    pub(crate) closed: &'a watch::Receiver<bool>,
    /// How long at most.
    pub(crate) patience: Duration,
}

impl Wait<'_> {
    /// The question when it is closed, or as it stands when the wait is over.
    pub(crate) async fn until_closed(&self, asked: &Question) -> Result<Question, Refusal> {
        let store = self.service.store.as_ref();
        let mut changes = store.changes_of(&asked.feature_id);
        let mut closed = self.closed.clone();
        let end = Instant::now() + self.patience;
        loop {
            // Marked as seen before reading, so that an answer in between wakes the wait below.
            changes.borrow_and_update();
            let question = question(store, &asked.id).await?;
            let now = store.now().await?;
            if !question.is_open() {
                if question.expires_at.is_some_and(|deadline| deadline <= now) {
                    // Perhaps the clock closed it and nobody has written that down yet.
                    store.expire().await?;
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
                gone = closed.changed() => {
                    if gone.is_err() {
                        return Ok(question);
                    }
                }
            }
        }
    }
}

/// One question that has to be there.
pub(crate) async fn question(store: &dyn Store, id: &QuestionId) -> Result<Question, Refusal> {
    store.question(id.clone()).await?.ok_or_else(|| {
        Refusal::new(ErrorCode::QuestionNotFound, format!("no question {id}")).fact("question_id", id)
    })
}
