//! The reference store: everything in memory, every promise checked on the spot. Slower and stricter than the
//! real ones; it stops at once when the tables and the log disagree or a record does not survive its own JSON.

use crate::clock::{Clock, Ids};
use crate::error::StoreError;
use crate::history::{Entries, Entry, Origin, TRAVELLING, Visit, not_empty, out_of_order, stays};
use crate::port::{
    Claim, ClaimState, EventPage, FeatureFiles, FeaturePage, FeatureView, Lease, Pending, QuestionPage,
    Receipt, Store,
};
use crate::shelf::{Expect, Shelf};
use aop_kernel::Envelope;
use aop_kernel::event::{Event, Recorded, Snapshot, Stamped};
use aop_kernel::feature::Feature;
use aop_kernel::ids::{FeatureId, QuestionId};
use aop_kernel::lifecycle::{self, Moment, Request, Secret, expire_due};
use aop_kernel::policy::Rules;
use aop_kernel::question::{Question, QuestionState};
use aop_kernel::replay::Replay;
use aop_kernel::time::Timestamp;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// A store that forgets everything when it is dropped.
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    committed: watch::Sender<u64>,
}

struct State {
    ids: Ids,
    last_at: Timestamp,
    log: Vec<Recorded>,
    /// The log replayed from its own JSON, to compare the tables with.
    replay: Replay,
    /// How often something was written; refusals and retries write nothing.
    writes: u64,
    features: BTreeMap<FeatureId, Snapshot>,
    specs: BTreeMap<FeatureId, String>,
    operations: BTreeMap<String, (String, Envelope)>,
    secrets: BTreeMap<QuestionId, (FeatureId, Value)>,
    leases: BTreeMap<String, (String, Lease)>,
    claims: BTreeMap<String, Claim>,
    documents: BTreeMap<(Shelf, String), Value>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let state = State::new();
        MemoryStore { clock, state: Mutex::new(state), committed: watch::Sender::new(0) }
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
            self.committed.send_replace(state.log.len() as u64);
        }
        result
    }

    fn read<T>(&self, work: impl FnOnce(&State, Timestamp) -> T) -> T {
        let state = self.lock();
        let now = self.clock.now().max(state.last_at);
        work(&state, now)
    }
}

impl State {
    fn new() -> Self {
        State {
            ids: Ids::new(),
            last_at: Timestamp::from_millis(0),
            log: Vec::new(),
            replay: Replay::default(),
            writes: 0,
            features: BTreeMap::new(),
            specs: BTreeMap::new(),
            operations: BTreeMap::new(),
            secrets: BTreeMap::new(),
            leases: BTreeMap::new(),
            claims: BTreeMap::new(),
            documents: BTreeMap::new(),
        }
    }

    /// Takes one entry of a history.
    fn take(&mut self, entry: Entry) -> Result<(), StoreError> {
        self.writes += 1;
        match entry {
            Entry::Event(recorded) => {
                let next = self.log.len() as u64 + 1;
                if recorded.seq != next {
                    return Err(out_of_order(next, recorded.seq));
                }
                self.last_at = self.last_at.max(recorded.stamped.at);
                let id = recorded.stamped.feature_id.clone();
                self.record(&id, &[recorded.stamped], &[]);
            }
            Entry::Operation { operation_id, digest, envelope } => {
                self.operations.insert(operation_id, (digest, Envelope::from_ledger(envelope)));
            }
            Entry::Lease { name, epoch } => {
                let lease = Lease { epoch, expires_at: Timestamp::from_millis(0) };
                self.leases.insert(name, (String::new(), lease));
            }
            Entry::Claim { subject, holder, epoch, state } => {
                self.claims.insert(subject, Claim { holder, epoch, state });
            }
            Entry::Document { shelf, key, .. } if !TRAVELLING.contains(&shelf) => {
                return Err(stays(shelf, &key));
            }
            Entry::Document { shelf, key, value } => {
                self.documents.insert((shelf, key), value);
            }
        }
        Ok(())
    }

    fn submit(&mut self, request: &Request, rules: &Rules, now: Timestamp) -> Result<Receipt, StoreError> {
        if let Some((digest, envelope)) = self.operations.get(request.operation_id.as_str()) {
            if *digest != request.digest {
                return Err(request.reuse_mismatch().into());
            }
            return Ok(Receipt { envelope: envelope.clone(), seq: self.log.len() as u64, fresh: false });
        }
        let id = request.command.feature_id();
        self.expire(id, now);
        let snapshot = self.features.get(id).cloned().unwrap_or_default();
        let moment = Moment { now, question_id: self.ids.question(now)? };
        let outcome = lifecycle::apply(&snapshot, request, &moment, rules)?;
        self.record(id, &outcome.events, outcome.secret.as_slice());
        let entry = (request.digest.clone(), outcome.envelope.clone());
        self.operations.insert(request.operation_id.to_string(), entry);
        Ok(Receipt { envelope: outcome.envelope, seq: self.log.len() as u64, fresh: true })
    }

    fn expire(&mut self, id: &FeatureId, now: Timestamp) -> bool {
        let Some(snapshot) = self.features.get(id) else { return false };
        let expiry = expire_due(snapshot, now);
        self.record(id, &expiry.events, &expiry.secrets);
        !expiry.events.is_empty()
    }

    fn record(&mut self, id: &FeatureId, events: &[Stamped], secrets: &[Secret]) {
        self.writes += events.len() as u64;
        for stamped in events {
            if let Event::FeatureCreated { spec: Some(spec), .. } = &stamped.event {
                self.specs.insert(id.clone(), spec.clone());
            }
            self.features.entry(id.clone()).or_default().evolve(stamped);
            self.log.push(Recorded { seq: self.log.len() as u64 + 1, stamped: stamped.clone() });
        }
        for secret in secrets {
            self.secrets.insert(secret.question_id.clone(), (id.clone(), secret.answer.clone()));
        }
        if self.features.get(id).and_then(|s| s.feature.as_ref()).is_some_and(|f| f.status.is_terminal()) {
            self.secrets.retain(|_, (feature, _)| feature != id);
        }
    }

    /// The state as the clock leaves it.
    fn view(&self, now: Timestamp) -> BTreeMap<&FeatureId, Snapshot> {
        self.features.iter().map(|(id, snapshot)| (id, expire_due(snapshot, now).state)).collect()
    }

    fn questions(&self, now: Timestamp) -> Vec<Question> {
        let mut all: Vec<Question> =
            self.view(now).into_values().flat_map(|snapshot| snapshot.questions).collect();
        all.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        all
    }

    fn recent_answers(&self, id: &FeatureId, limit: usize, now: Timestamp) -> Vec<Question> {
        let mut answers: Vec<(Timestamp, Question)> = self
            .questions(now)
            .into_iter()
            .filter(|question| question.feature_id == *id)
            .filter_map(|question| match question.state {
                QuestionState::Answered { at, .. } => Some((at, question)),
                QuestionState::Open | QuestionState::Expired { .. } | QuestionState::Withdrawn { .. } => None,
            })
            .collect();
        answers.sort_by_key(|(at, question)| std::cmp::Reverse((*at, question.id.clone())));
        answers.into_iter().take(limit).map(|(_, question)| question).collect()
    }

    /// Every event after the first so many survives being written down, and the tables of the features it
    /// touched are what the log says.
    fn verify_since(&mut self, events: usize) -> Result<(), StoreError> {
        for recorded in &self.log[events..] {
            let text = serde_json::to_string(recorded).map_err(|error| damaged(&error.to_string()))?;
            let back: Recorded =
                serde_json::from_str(&text).map_err(|error| damaged(&format!("{error}: {text}")))?;
            if back != *recorded {
                return Err(damaged(&format!("event {} does not survive its JSON: {text}", recorded.seq)));
            }
            self.replay.apply(&back);
        }
        let same = |id: &FeatureId| self.replay.features.get(id) == self.features.get(id);
        if self.log[events..].iter().all(|recorded| same(&recorded.stamped.feature_id)) {
            Ok(())
        } else {
            Err(damaged("the log and the tables disagree"))
        }
    }

    /// All tables are what the whole log says.
    fn verify(&self) -> Result<(), StoreError> {
        let mut replay = Replay::default();
        self.log.iter().for_each(|recorded| replay.apply(recorded));
        let same = replay.features == self.features && replay == self.replay;
        if same { Ok(()) } else { Err(damaged("the log and the tables disagree")) }
    }
}

fn damaged(cause: &str) -> StoreError {
    StoreError::Damaged { place: "memory".into(), cause: cause.into() }
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
        ready(Ok(self.read(|state, now| state.view(now).remove(&id).and_then(|snapshot| snapshot.feature))))
    }

    fn spec(&self, id: FeatureId) -> Pending<'_, Option<String>> {
        ready(Ok(self.read(|state, _| state.specs.get(&id).cloned())))
    }

    fn features(&self, page: FeaturePage) -> Pending<'_, Vec<Feature>> {
        ready(Ok(self.read(|state, now| {
            let features = state.view(now).into_values().filter_map(|snapshot| snapshot.feature);
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

    fn recent_answers(&self, id: FeatureId, limit: usize) -> Pending<'_, Vec<Question>> {
        ready(Ok(self.read(|state, now| state.recent_answers(&id, limit, now))))
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
            let mut questions = snapshot.questions.clone();
            questions.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
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
        self.committed.subscribe()
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
        ready(self.write(|state, now| {
            let epoch = match state.leases.get(&name) {
                None => 1,
                Some((_, lease)) if lease.expires_at <= now => lease.epoch + 1,
                Some((owner, lease)) if *owner == holder => lease.epoch,
                Some(_) => return Ok(None),
            };
            let lease = Lease { epoch, expires_at: now.plus_millis(ttl_ms) };
            state.leases.insert(name, (holder, lease));
            state.writes += 1;
            Ok(Some(lease))
        }))
    }

    fn release_lease(&self, name: String, epoch: u64) -> Pending<'_, ()> {
        ready(self.write(|state, _| {
            if let Some((_, lease)) = state.leases.get_mut(&name).filter(|(_, lease)| lease.epoch == epoch) {
                lease.expires_at = Timestamp::from_millis(0);
                state.writes += 1;
            }
            Ok(())
        }))
    }

    fn claim(&self, subject: String, holder: String, epoch: u64) -> Pending<'_, Claim> {
        ready(self.write(|state, _| {
            let claim = match state.claims.get(&subject) {
                None => Claim { holder, epoch, state: ClaimState::Claimed },
                Some(old) if old.state != ClaimState::Delivered && old.epoch < epoch => {
                    Claim { holder, epoch, state: old.state }
                }
                Some(old) => return Ok(old.clone()),
            };
            state.claims.insert(subject, claim.clone());
            state.writes += 1;
            Ok(claim)
        }))
    }

    fn advance_claim(&self, subject: String, epoch: u64, to: ClaimState) -> Pending<'_, bool> {
        ready(self.write(|state, _| {
            let held = |claim: &&mut Claim| {
                claim.epoch == epoch && claim.state != ClaimState::Delivered && claim.state <= to
            };
            match state.claims.get_mut(&subject).filter(held) {
                Some(claim) => {
                    claim.state = to;
                    state.writes += 1;
                    Ok(true)
                }
                None => Ok(false),
            }
        }))
    }

    fn document(&self, shelf: Shelf, key: String) -> Pending<'_, Option<Value>> {
        ready(Ok(self.read(|state, _| state.documents.get(&(shelf, key)).cloned())))
    }

    fn documents(&self, shelf: Shelf, prefix: String) -> Pending<'_, Vec<(String, Value)>> {
        ready(Ok(self.read(|state, _| {
            let here =
                state.documents.iter().filter(|((on, key), _)| *on == shelf && key.starts_with(&prefix));
            here.map(|((_, key), value)| (key.clone(), value.clone())).collect()
        })))
    }

    fn place(&self, shelf: Shelf, key: String, value: Option<Value>, expect: Expect) -> Pending<'_, bool> {
        ready(self.write(|state, now| {
            let key = (shelf, key);
            let holds = match &expect {
                Expect::Anything => true,
                Expect::Absent => !state.documents.contains_key(&key),
                Expect::Value(value) => state.documents.get(&key) == Some(value),
                Expect::Lease { name, epoch } => state
                    .leases
                    .get(name)
                    .is_some_and(|(_, lease)| lease.epoch == *epoch && lease.expires_at > now),
            };
            if holds {
                match value {
                    Some(value) => state.documents.insert(key, value),
                    None => state.documents.remove(&key),
                };
                state.writes += 1;
            }
            Ok(holds)
        }))
    }

    fn history(&self, mut visit: Visit) -> Pending<'_, Origin> {
        ready(self.read(|state, _| {
            let events = state.log.iter().map(|recorded| Entry::Event(recorded.clone()));
            let operations = state.operations.iter().map(|(id, (digest, envelope))| Entry::Operation {
                operation_id: id.clone(),
                digest: digest.clone(),
                envelope: envelope.as_str().to_owned(),
            });
            let leases = state
                .leases
                .iter()
                .map(|(name, (_, lease))| Entry::Lease { name: name.clone(), epoch: lease.epoch });
            let claims = state.claims.iter().map(|(subject, claim)| Entry::Claim {
                subject: subject.clone(),
                holder: claim.holder.clone(),
                epoch: claim.epoch,
                state: claim.state,
            });
            let documents = state.documents.iter().filter(|((shelf, _), _)| TRAVELLING.contains(shelf));
            let documents = documents.map(|((shelf, key), value)| Entry::Document {
                shelf: *shelf,
                key: key.clone(),
                value: value.clone(),
            });
            events.chain(operations).chain(leases).chain(claims).chain(documents).try_for_each(&mut visit)?;
            Ok(Origin { project_id: "memory".to_owned(), seq: state.log.len() as u64 })
        }))
    }

    fn restore(&self, entries: Entries) -> Pending<'_, u64> {
        ready(self.write(|state, _| {
            if !state.log.is_empty() || !state.operations.is_empty() {
                return Err(not_empty(state.log.len() as u64, state.operations.len() as u64));
            }
            let mut restored = State::new();
            restored.last_at = state.last_at;
            for entry in entries {
                restored.take(entry?)?;
            }
            restored.writes += state.writes;
            // What never travels stays where it is.
            restored.leases.extend(std::mem::take(&mut state.leases));
            restored.documents.extend(std::mem::take(&mut state.documents));
            *state = restored;
            Ok(state.log.len() as u64)
        }))
    }

    fn verify(&self) -> Pending<'_, Vec<String>> {
        ready(Ok(
            self.read(|state, _| state.verify().err().map(|error| error.to_string()).into_iter().collect())
        ))
    }
}
