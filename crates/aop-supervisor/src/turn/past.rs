//! What the log says about a turn: which ends of questions its role has yet to be told, and what it asked in words
//! before it was cut off. Read off events, so that it is the same whoever looks, and after any crash.

use super::Turn;
use crate::phase;
use crate::runner::Stop;
use aop_kernel::event::{Event, Recorded};
use aop_kernel::ids::{FeatureId, QuestionId};
use aop_kernel::question::Question;
use aop_kernel::work::TurnEnd;
use aop_store::Store;
use std::collections::BTreeMap;

/// So many events are read at a time.
const PAGE: usize = 64;

impl Turn<'_> {
    /// The role's questions that hold nobody up and whose end it is told with this turn, oldest first: they were closed
    /// after the beginning of the last turn that has read what it began with, and before the beginning of this one.
    /// What is closed later is for the next turn, also when this one is cut off and goes on.
    pub(super) async fn closed_meanwhile(&self) -> Result<Vec<Question>, Stop> {
        let ends = self.ends_meanwhile().await?;
        let mut found = Vec::new();
        for question in self.own_aside(ends.untold).await? {
            if !self.was_told(&question).await? {
                found.push(question);
            }
        }
        found.reverse();
        // Whoever committed that they were read may have been killed before their secrets were forgotten.
        for question in self.own_aside(ends.told_last).await? {
            self.context.store().forget(question.id).await?;
        }
        Ok(found)
    }

    /// Those among these that are the role's, hold nobody up and are closed.
    async fn own_aside(&self, ids: Vec<QuestionId>) -> Result<Vec<Question>, Stop> {
        let mut found = Vec::new();
        for id in ids {
            let question = self.context.store().question(id).await?.ok_or(Stop::Stale)?;
            let is_own = question.asked.role == phase::kernel_role(self.role) && !question.asked.blocking;
            found.extend(Some(question).filter(|question| is_own && !question.is_open()));
        }
        Ok(found)
    }

    /// All that were closed in that time and not asked again since, and in that of the turn before, latest first.
    async fn ends_meanwhile(&self) -> Result<Ends, Stop> {
        let own = phase::kernel_role(self.role);
        let mut past = Past::of(self.context.store(), &self.feature.id);
        let (mut has_begun, mut last_read, mut is_before) = (false, None, false);
        let (mut ends, mut again) = (Ends::default(), Vec::new());
        while let Some(recorded) = past.before().await? {
            match recorded.stamped.event {
                Event::QuestionOpened { question, .. } => again.extend(question.reopened_from.clone()),
                Event::TurnBegan { claim, .. } if !has_begun => has_begun = claim == self.claim,
                Event::TurnEnded { claim, role, end } if has_begun && role == own && has_read(&end) => {
                    last_read = Some(claim);
                }
                Event::TurnBegan { claim, .. } if last_read.as_ref() == Some(&claim) => {
                    if is_before {
                        break;
                    }
                    (is_before, last_read) = (true, None);
                }
                Event::QuestionAnswered { question_id, .. }
                | Event::QuestionExpired { question_id, .. }
                | Event::QuestionWithdrawn { question_id, .. }
                    if has_begun && !again.contains(&question_id) =>
                {
                    let of = if is_before { &mut ends.told_last } else { &mut ends.untold };
                    of.push(question_id);
                }
                _ => {}
            }
        }
        Ok(ends)
    }

    /// The question that this turn asked in words, if it came so far, as it was asked last.
    pub(super) async fn asked_in_words(&self) -> Result<Option<Question>, Stop> {
        let operation = self.text_operation()?.into_operation();
        let mut past = Past::of(self.context.store(), &self.feature.id);
        let mut again = BTreeMap::new();
        while let Some(recorded) = past.before().await? {
            match recorded.stamped.event {
                Event::QuestionOpened { question, .. }
                    if recorded.stamped.operation_id.as_ref() == Some(&operation) =>
                {
                    let asked = again.remove(&question.id).unwrap_or_else(|| question.id.clone());
                    return Ok(self.context.store().question(asked).await?);
                }
                Event::QuestionOpened { question, .. } => {
                    if let Some(old) = &question.reopened_from {
                        let last = again.remove(&question.id).unwrap_or_else(|| question.id.clone());
                        again.insert(old.clone(), last);
                    }
                }
                Event::TurnBegan { claim, .. } if claim == self.claim => break,
                _ => {}
            }
        }
        Ok(None)
    }
}

/// Questions that were closed.
#[derive(Default)]
struct Ends {
    /// For this turn.
    untold: Vec<QuestionId>,
    /// For the last one that has read what it began with.
    told_last: Vec<QuestionId>,
}

/// Whether a turn that ended so has read what it began with. Of one that failed nobody knows more than that a reply
/// reached its session.
fn has_read(end: &TurnEnd) -> bool {
    match end {
        TurnEnd::Final { .. } => true,
        TurnEnd::AskUser { unread, .. } => !unread,
        TurnEnd::Error { delivered, .. } => *delivered,
    }
}

/// The events of a feature, from the last one back.
struct Past<'a> {
    store: &'a dyn Store,
    feature: &'a FeatureId,
    /// The earliest of a page stands last.
    page: std::vec::IntoIter<Recorded>,
    earliest: Option<u64>,
}

impl<'a> Past<'a> {
    fn of(store: &'a dyn Store, feature: &'a FeatureId) -> Self {
        Past { store, feature, page: Vec::new().into_iter(), earliest: None }
    }

    /// The event before the last one given.
    async fn before(&mut self) -> Result<Option<Recorded>, Stop> {
        if self.page.as_slice().is_empty() {
            let page = self.store.last_events(self.feature.clone(), self.earliest, PAGE).await?;
            self.page = page.into_iter();
        }
        let recorded = self.page.next();
        self.earliest = recorded.as_ref().map(|recorded| recorded.seq).or(self.earliest);
        Ok(recorded)
    }
}
