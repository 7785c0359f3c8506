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
            if question.state.is_closed_by_clock() {
                // Perhaps nobody has written that down yet.
                store.expire().await?;
            }
            if !question.is_open() || Instant::now() >= end || *closed.borrow() {
                return Ok(question);
            }
            let due = match question.expires_at {
                None => end,
                Some(at) => {
                    let left = at.as_millis().saturating_sub(store.now().await?.as_millis());
                    end.min(Instant::now() + Duration::from_millis(left.unsigned_abs() + 1))
                }
            };
            tokio::select! {
                changed = changes.changed() => {
                    if changed.is_err() {
                        return Ok(question);
                    }
                }
                () = tokio::time::sleep_until(due) => {}
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::fixture::World;
    use aop_kernel::policy::{HumanInput, Rules};
    use aop_store::EventPage;
    use serde_json::json;
    use std::sync::Arc;

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_the_clock_ended_has_that_written_down_whatever_policy_decided() {
        for (strict, status) in [(true, "expired"), (false, "answered")] {
            let mut world = World::new().await;
            let human_input = HumanInput { strict, ..world.service.rules.human_input.clone() };
            world.service.rules = Arc::new(Rules { human_input, ..(*world.service.rules).clone() });
            world.feature("shop", "Shop").await;
            let expected = json!({"kind": "single_choice", "choices": ["a", "b"], "default": "a"});
            let asked = json!({"timeout_ms": 1_000, "expected_answer": expected, "default_decision_policy": "use_default"});
            let id = QuestionId::parse(&world.ask("shop", asked).await).unwrap();
            let store = world.service.store.as_ref();
            let asked = question(store, &id).await.unwrap();
            let before = store.last().await.unwrap();
            world.clock.advance(1_000);
            let (_switch, closed) = watch::channel(false);
            let wait = Wait { service: &world.service, closed: &closed, patience: Duration::from_secs(9) };
            let ended = wait.until_closed(&asked).await.unwrap();
            assert_eq!(ended.state.status().as_str(), status);
            let page = EventPage { after: before, feature: None, limit: 0 };
            assert!(!store.events(page).await.unwrap().is_empty(), "{status}: it is in the log");
        }
    }
}
