//! What the reference store knows, and what a request does to it.

use crate::clock::Ids;
use crate::error::StoreError;
use crate::port::{Claim, Lease, Receipt};
use crate::shelf::Shelf;
use aop_kernel::Envelope;
use aop_kernel::event::{Event, Recorded, Snapshot, Stamped};
use aop_kernel::ids::{FeatureId, QuestionId};
use aop_kernel::lifecycle::{self, Moment, Request, Secret, expire_due};
use aop_kernel::policy::Rules;
use aop_kernel::question::{Question, QuestionState};
use aop_kernel::replay::Replay;
use aop_kernel::time::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) struct State {
    pub(super) ids: Ids,
    pub(super) last_at: Timestamp,
    pub(super) log: Vec<Recorded>,
    /// The log replayed from its own JSON, to compare the tables with.
    pub(super) replay: Replay,
    /// How often something was written; refusals and retries write nothing.
    pub(super) writes: u64,
    pub(super) features: BTreeMap<FeatureId, Snapshot>,
    pub(super) specs: BTreeMap<FeatureId, String>,
    pub(super) operations: BTreeMap<String, (String, Envelope)>,
    pub(super) secrets: BTreeMap<QuestionId, (FeatureId, Value)>,
    pub(super) leases: BTreeMap<String, (String, Lease)>,
    pub(super) claims: BTreeMap<String, Claim>,
    pub(super) documents: BTreeMap<(Shelf, String), Value>,
}

impl State {
    pub(super) fn new() -> Self {
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

    pub(super) fn submit(
        &mut self,
        request: &Request,
        rules: &Rules,
        now: Timestamp,
    ) -> Result<Receipt, StoreError> {
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

    pub(super) fn expire(&mut self, id: &FeatureId, now: Timestamp) -> bool {
        let Some(snapshot) = self.features.get(id) else { return false };
        let expiry = expire_due(snapshot, now);
        self.record(id, &expiry.events, &expiry.secrets);
        !expiry.events.is_empty()
    }

    pub(super) fn record(&mut self, id: &FeatureId, events: &[Stamped], secrets: &[Secret]) {
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
    pub(super) fn view(&self, now: Timestamp) -> BTreeMap<&FeatureId, Snapshot> {
        self.features.iter().map(|(id, snapshot)| (id, expire_due(snapshot, now).state)).collect()
    }

    pub(super) fn questions(&self, now: Timestamp) -> Vec<Question> {
        let mut all: Vec<Question> = self
            .view(now)
            .into_values()
            .flat_map(|snapshot| snapshot.questions)
            .map(Arc::unwrap_or_clone)
            .collect();
        all.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        all
    }

    pub(super) fn recent_answers(&self, id: &FeatureId, limit: usize, now: Timestamp) -> Vec<Question> {
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
    pub(super) fn verify_since(&mut self, events: usize) -> Result<(), StoreError> {
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
    pub(super) fn verify(&self) -> Result<(), StoreError> {
        let mut replay = Replay::default();
        self.log.iter().for_each(|recorded| replay.apply(recorded));
        let same = replay.features == self.features && replay == self.replay;
        if same { Ok(()) } else { Err(damaged("the log and the tables disagree")) }
    }
}

fn damaged(cause: &str) -> StoreError {
    StoreError::Damaged { place: "memory".into(), cause: cause.into() }
}
