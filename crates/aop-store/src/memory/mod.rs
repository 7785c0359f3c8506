//! The reference store: everything in memory, every promise checked on the spot. Slower and stricter than the
//! real ones; it stops at once when the tables and the log disagree or a record does not survive its own JSON.

mod history;
mod holding;
mod state;

use crate::clock::Clock;
use crate::error::StoreError;
use crate::history::{Entries, Origin, Visit};
use crate::port::{
    Claim, ClaimState, EventPage, FeatureFiles, FeaturePage, FeatureView, Lease, Pending, QuestionPage,
    Receipt, Store,
};
use crate::rows::in_list_order;
use crate::shelf::{Expect, Shelf};
use crate::wakes::Wakes;
use aop_kernel::event::{Recorded, Snapshot};
use aop_kernel::feature::Feature;
use aop_kernel::ids::{FeatureId, QuestionId};
use aop_kernel::lifecycle::Request;
use aop_kernel::policy::Rules;
use aop_kernel::question::{Question, QuestionState};
use aop_kernel::time::Timestamp;
use serde_json::Value;
use state::State;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// A store that forgets everything when it is dropped.
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    wakes: Wakes,
}

impl MemoryStore {
    /// An empty store.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        MemoryStore { clock, state: Mutex::new(State::new()), wakes: Wakes::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write<T: Send>(
        &self,
        work: impl FnOnce(&mut State, Timestamp) -> Result<T, StoreError> + Send,
    ) -> Result<T, StoreError> {
        let mut state = self.lock();
        let now = self.clock.now().max(state.last_at);
        let (writes, events) = (state.writes, state.log.len());
        let result = work(&mut state, now);
        if state.writes > writes {
            state.last_at = state.last_at.max(now);
        }
        if state.log.len() > events {
            state.verify_since(events)?;
            let features = state.log[events..].iter().map(|recorded| recorded.stamped.feature_id.as_str());
            self.wakes.committed(events as u64, state.log.len() as u64, features);
        }
        result
    }

    fn read<T>(&self, work: impl FnOnce(&State, Timestamp) -> T) -> T {
        let state = self.lock();
        let now = self.clock.now().max(state.last_at);
        work(&state, now)
    }
}

/// A future that is ready at once.
fn ready<'a, T: Send + 'a>(result: Result<T, StoreError>) -> Pending<'a, T> {
    Box::pin(std::future::ready(result))
}

impl Store for MemoryStore {
    fn submit(&self, request: Request, rules: Arc<Rules>) -> Pending<'_, Receipt> {
        ready(self.write(move |state, now| state.submit(&request, &rules, now)))
    }

    fn expire(&self) -> Pending<'_, usize> {
        ready(self.write(|state, now| {
            let deadline = |snapshot: &Snapshot| {
                snapshot.questions.iter().filter(|question| question.is_due(now)).map(|q| q.expires_at).min()
            };
            let due =
                state.features.iter().filter_map(|(id, snapshot)| Some((deadline(snapshot)?, id.clone())));
            let due: BTreeSet<_> = due.collect();
            Ok(due.iter().filter(|(_, id)| state.expire(id, now)).count())
        }))
    }

    fn next_deadline(&self) -> Pending<'_, Option<Timestamp>> {
        ready(Ok(self.read(|state, _| {
            let questions = state.features.values().flat_map(|snapshot| &snapshot.questions);
            questions.filter(|question| question.is_open()).filter_map(|question| question.expires_at).min()
        })))
    }

    fn now(&self) -> Pending<'_, Timestamp> {
        ready(Ok(self.read(|_, now| now)))
    }

    fn feature(&self, id: FeatureId) -> Pending<'_, Option<Feature>> {
        ready(Ok(self.read(|state, now| state.view(now).remove(&id).and_then(Snapshot::into_feature))))
    }

    fn spec(&self, id: FeatureId) -> Pending<'_, Option<String>> {
        ready(Ok(self.read(|state, _| state.specs.get(&id).cloned())))
    }

    fn features(&self, page: FeaturePage) -> Pending<'_, Vec<Feature>> {
        ready(Ok(self.read(|state, now| {
            let features = state.view(now).into_values().filter_map(Snapshot::into_feature);
            features
                .filter(|feature| page.status.is_none_or(|status| feature.status == status))
                .filter(|feature| match &page.only {
                    Some(only) => feature.id == *only,
                    None => page.adhoc || !feature.adhoc,
                })
                .collect()
        })))
    }

    fn question(&self, id: QuestionId) -> Pending<'_, Option<Question>> {
        ready(Ok(self.read(|state, now| state.questions(now).into_iter().find(|question| question.id == id))))
    }

    fn questions(&self, page: QuestionPage) -> Pending<'_, Vec<Question>> {
        ready(Ok(self.read(|state, now| {
            let questions = state.questions(now).into_iter();
            questions
                .filter(|question| page.feature.as_ref().is_none_or(|id| question.feature_id == *id))
                .filter(|question| page.filter.admits(question.state.status()))
                .filter(|question| {
                    page.after.as_ref().is_none_or(|(at, id)| (question.created_at, &question.id) > (*at, id))
                })
                .take(page.limit)
                .collect()
        })))
    }

    fn view(&self, id: FeatureId, answers: usize) -> Pending<'_, Option<FeatureView>> {
        ready(Ok(self.read(|state, now| {
            let feature = state.view(now).remove(&id)?.feature?;
            let own = state.questions(now).into_iter().filter(|question| question.feature_id == id);
            let open = own.filter(Question::is_open).collect();
            let answers = state.recent_answers(&id, answers, now);
            Some(FeatureView { feature, spec: state.specs.get(&id).cloned(), open, answers })
        })))
    }

    fn events(&self, page: EventPage) -> Pending<'_, Vec<Recorded>> {
        ready(Ok(self.read(|state, _| {
            let limit = if page.limit == 0 { usize::MAX } else { page.limit };
            let after = state.log.iter().filter(|recorded| recorded.seq > page.after);
            after
                .filter(|recorded| page.feature.as_ref().is_none_or(|id| recorded.stamped.feature_id == *id))
                .take(limit)
                .cloned()
                .collect()
        })))
    }

    fn changed_since(&self, seq: u64) -> Pending<'_, (Vec<(FeatureId, u64)>, u64)> {
        ready(Ok(self.read(|state, _| {
            let mut first = BTreeMap::new();
            for recorded in state.log.iter().filter(|recorded| recorded.seq > seq) {
                first.entry(recorded.stamped.feature_id.clone()).or_insert(recorded.seq);
            }
            (first.into_iter().collect(), state.log.len() as u64)
        })))
    }

    fn feature_files(&self, id: FeatureId, since: u64) -> Pending<'_, Option<FeatureFiles>> {
        ready(Ok(self.read(|state, _| {
            let snapshot = state.features.get(&id)?;
            let mut questions: Vec<Question> =
                snapshot.questions.iter().map(|question| (**question).clone()).collect();
            in_list_order(&mut questions);
            let own = || state.log.iter().filter(|recorded| recorded.stamped.feature_id == id);
            let touched = |question: &Question| {
                own().any(|recorded| {
                    recorded.seq >= since && recorded.stamped.event.question_id() == Some(&question.id)
                })
            };
            let answered = |question: &Question| matches!(question.state, QuestionState::Answered { .. });
            Some(FeatureFiles {
                feature: snapshot.feature.clone()?,
                spec: state.specs.get(&id).cloned(),
                forms: questions
                    .iter()
                    .filter(|question| {
                        question.asked.spec.is_some() && answered(question) && touched(question)
                    })
                    .cloned()
                    .collect(),
                questions: questions
                    .iter()
                    .filter_map(|question| serde_json::to_string(question).ok())
                    .collect::<Vec<_>>()
                    .join(",\n"),
                log: own()
                    .map(|recorded| {
                        format!(
                            "- {} {}\n",
                            recorded.stamped.at,
                            aop_kernel::log::sentence(&recorded.stamped)
                        )
                    })
                    .collect(),
            })
        })))
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.wakes.all()
    }

    fn changes_of(&self, feature: &FeatureId) -> watch::Receiver<()> {
        self.wakes.of(feature)
    }

    fn reveal(&self, id: QuestionId) -> Pending<'_, Option<Value>> {
        ready(Ok(self.read(|state, _| state.secrets.get(&id).map(|(_, answer)| answer.clone()))))
    }

    fn forget(&self, id: QuestionId) -> Pending<'_, ()> {
        ready(self.write(|state, _| {
            state.writes += u64::from(state.secrets.remove(&id).is_some());
            Ok(())
        }))
    }

    fn entrust(&self, id: QuestionId, answer: Value) -> Pending<'_, ()> {
        ready(self.write(|state, now| {
            let question = state.questions(now).into_iter().find(|question| question.id == id);
            if let Some(question) = question {
                state.secrets.insert(id, (question.feature_id, answer));
                state.writes += 1;
            }
            Ok(())
        }))
    }

    fn acquire_lease(&self, name: String, holder: String, ttl_ms: u64) -> Pending<'_, Option<Lease>> {
        ready(self.write(|state, now| Ok(state.acquire_lease(name, holder, ttl_ms, now))))
    }

    fn release_lease(&self, name: String, epoch: u64) -> Pending<'_, ()> {
        ready(self.write(|state, _| {
            state.release_lease(&name, epoch);
            Ok(())
        }))
    }

    fn claim(&self, subject: String, holder: String, epoch: u64) -> Pending<'_, Claim> {
        ready(self.write(|state, _| Ok(state.claim(subject, holder, epoch))))
    }

    fn advance_claim(&self, subject: String, epoch: u64, to: ClaimState) -> Pending<'_, bool> {
        ready(self.write(|state, _| Ok(state.advance_claim(&subject, epoch, to))))
    }

    fn document(&self, shelf: Shelf, key: String) -> Pending<'_, Option<Value>> {
        ready(Ok(self.read(|state, _| state.documents.get(&(shelf, key)).cloned())))
    }

    fn documents(&self, shelf: Shelf, prefix: String) -> Pending<'_, Vec<(String, Value)>> {
        ready(Ok(self.read(|state, _| state.documents(shelf, &prefix))))
    }

    fn place(&self, shelf: Shelf, key: String, value: Option<Value>, expect: Expect) -> Pending<'_, bool> {
        ready(self.write(|state, now| Ok(state.place(shelf, key, value, &expect, now))))
    }

    fn history(&self, visit: Visit) -> Pending<'_, Origin> {
        ready(self.read(|state, _| state.history(visit)))
    }

    fn restore(&self, entries: Entries) -> Pending<'_, u64> {
        ready(self.write(|state, _| state.restore(entries)))
    }

    fn verify(&self) -> Pending<'_, Vec<String>> {
        ready(Ok(
            self.read(|state, _| state.verify().err().map(|error| error.to_string()).into_iter().collect())
        ))
    }
}
