//! Questions outside any feature that ended without an answer: no feature that is listed leads to their pages, where they
//! can be asked again. Found in the event log; what was found is kept, so a look costs what happened since the last one.

use super::markdown;
use super::words::When;
use aop_kernel::Refusal;
use aop_kernel::event::{Event, Recorded};
use aop_kernel::ids::QuestionId;
use aop_kernel::time::Timestamp;
use aop_kernel::tools::is_lone_feature;
use aop_store::{EventPage, Store};
use std::collections::VecDeque;

/// Events are read in pages of this …
const PAGE: usize = 500;
/// … and the log is looked through so far back, and no further.
const FAR_BACK: u64 = 2_000;
/// So many are remembered …
const KEPT: usize = 50;
/// … so many shown …
const SHOWN: usize = 10;
/// … and for so long.
const DAY: i64 = 86_400_000;

/// The last ones, in the order in which they ended.
#[derive(Debug, Default)]
pub(super) struct Lapsed {
    seen: u64,
    last: VecDeque<(Timestamp, QuestionId)>,
}

/// One of them in a list.
pub(super) struct Gone {
    pub(super) id: String,
    pub(super) prompt: String,
    pub(super) status: &'static str,
    pub(super) when: When,
}

impl Lapsed {
    /// Reads on; `end` is the last event that is known of.
    pub(super) async fn catch_up(&mut self, store: &dyn Store, end: u64) -> Result<(), Refusal> {
        self.seen = self.seen.max(end.saturating_sub(FAR_BACK));
        loop {
            let events = store.events(EventPage { after: self.seen, feature: None, limit: PAGE }).await?;
            events.iter().for_each(|event| self.take(event));
            if events.len() < PAGE {
                return Ok(());
            }
        }
    }

    fn take(&mut self, recorded: &Recorded) {
        self.seen = recorded.seq;
        let stamped = &recorded.stamped;
        match &stamped.event {
            Event::QuestionExpired { question_id, .. } | Event::QuestionWithdrawn { question_id, .. }
                if is_lone_feature(&stamped.feature_id) =>
            {
                self.last.push_back((stamped.at, question_id.clone()));
                if self.last.len() > KEPT {
                    self.last.pop_front();
                }
            }
            Event::QuestionOpened { question, .. } => {
                // The later one is open, and in the inbox.
                self.last.retain(|(_, id)| question.reopened_from.as_ref() != Some(id));
            }
            _ => {}
        }
    }

    /// Those that ended within a day, the latest first.
    pub(super) fn latest(&self, now: Timestamp) -> Vec<(Timestamp, QuestionId)> {
        let recent = self.last.iter().rev().filter(|(at, _)| now.as_millis() - at.as_millis() < DAY);
        recent.take(SHOWN).cloned().collect()
    }
}

impl Gone {
    pub(super) async fn of(
        store: &dyn Store,
        (at, id): (Timestamp, QuestionId),
        now: Timestamp,
    ) -> Result<Option<Self>, Refusal> {
        Ok(store.question(id).await?.map(|question| Gone {
            id: question.id.to_string(),
            prompt: markdown::asked_in_short(question.asked.question_type, &question.asked.prompt),
            status: question.state.status().as_str(),
            when: When::past(at, now),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::fixture::World;
    use aop_kernel::tools::Tool;
    use serde_json::json;

    #[tokio::test]
    async fn a_question_outside_any_feature_that_ended_without_an_answer_is_listed_until_it_is_asked_again() {
        let world = World::new().await;
        world.feature("shop", "Shop").await;
        let store = world.service.store.as_ref();
        let mut lapsed = Lapsed::default();
        let mut ids = Vec::new();
        let end = async |tool: Tool, id: &str| {
            let question = store.question(QuestionId::parse(id).unwrap()).await.unwrap().unwrap();
            let input = json!({"feature_id": question.feature_id, "question_id": id});
            world.try_call(tool, input).await.unwrap();
        };
        for number in 0..SHOWN + 2 {
            let id = world.ask_outside(&format!("Which {number}?")).await;
            end(Tool::QuestionWithdraw, &id).await;
            ids.push(id);
        }
        let others = world.ask("shop", json!({"blocking": false})).await;
        end(Tool::QuestionWithdraw, &others).await;
        world.ask_outside("Still open?").await;
        let now = store.now().await.unwrap();
        lapsed.catch_up(store, 0).await.unwrap();
        let shown: Vec<String> = lapsed.latest(now).iter().map(|(_, id)| id.to_string()).collect();
        assert_eq!(shown, ids.iter().rev().take(SHOWN).cloned().collect::<Vec<_>>());
        let gone = Gone::of(store, lapsed.latest(now)[0].clone(), now).await.unwrap().unwrap();
        assert_eq!((gone.prompt.as_str(), gone.status), ("Which 11?", "withdrawn"));
        end(Tool::QuestionReopen, &shown[0]).await;
        lapsed.catch_up(store, 0).await.unwrap();
        assert_eq!(lapsed.latest(now)[0].1.to_string(), shown[1]);
        assert!(lapsed.latest(now.plus_millis(86_400_000)).is_empty(), "a day later");
        let mut late = Lapsed::default();
        late.catch_up(store, 10 * FAR_BACK).await.unwrap();
        assert!(late.latest(now).is_empty(), "the whole log is never read");
    }
}
