//! A batch of mutations in memory: what the database said about the features they name goes in, the kernel
//! decides one after the other, and the rows of all of them come out, to be written by one statement.

use crate::clock::Ids;
use crate::decide::decide;
use crate::error::StoreError;
use crate::port::Receipt;
use crate::rows::{Change, EventRow, FeatureRow, QuestionRow, parse_question, snapshot};
use aop_kernel::Envelope;
use aop_kernel::event::{Recorded, Snapshot};
use aop_kernel::ids::{FeatureId, QuestionId};
use aop_kernel::lifecycle::{self, Request};
use aop_kernel::policy::Rules;
use aop_kernel::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The state that the members of one batch share.
pub(super) struct Batch<'a> {
    pub(super) now: Timestamp,
    pub(super) seq: u64,
    ids: &'a mut Ids,
    /// Operation id to digest and envelope: the ledger's, and this batch's own.
    ledger: BTreeMap<String, (String, String)>,
    features: BTreeMap<String, Loaded>,
    named: BTreeMap<String, String>,
    pub(super) writes: Writes,
}

/// A feature as the database has it, read when it is needed first, and as the batch has left it.
enum Loaded {
    Rows { feature: Option<String>, open: Vec<String> },
    State(Snapshot),
}

/// Rows to write, each at most once.
#[derive(Default)]
pub(super) struct Writes {
    pub(super) events: Vec<EventRow>,
    pub(super) features: BTreeMap<String, FeatureRow>,
    pub(super) questions: BTreeMap<String, QuestionRow>,
    /// Operation id, digest, envelope.
    pub(super) operations: Vec<(String, String, String)>,
    /// Feature and specification.
    pub(super) specs: Vec<(String, String)>,
    /// Question, feature, answer.
    pub(super) secrets: Vec<(String, String, String)>,
    /// Features whose secrets have to go.
    pub(super) wipes: Vec<String>,
}

impl<'a> Batch<'a> {
    pub(super) fn new(now: Timestamp, seq: u64, ids: &'a mut Ids) -> Self {
        Batch {
            now,
            seq,
            ids,
            ledger: BTreeMap::new(),
            features: BTreeMap::new(),
            named: BTreeMap::new(),
            writes: Writes::default(),
        }
    }

    /// An operation that was done before.
    pub(super) fn know_operation(&mut self, id: String, digest: String, envelope: String) {
        self.ledger.insert(id, (digest, envelope));
    }

    pub(super) fn know_feature(&mut self, id: String, record: String) {
        if let Loaded::Rows { feature, .. } = self.rows_of(id) {
            *feature = Some(record);
        }
    }

    pub(super) fn know_open(&mut self, feature: String, record: String) {
        if let Loaded::Rows { open, .. } = self.rows_of(feature) {
            open.push(record);
        }
    }

    /// A closed question that some member names.
    pub(super) fn know_named(&mut self, id: String, record: String) {
        self.named.insert(id, record);
    }

    fn rows_of(&mut self, feature: String) -> &mut Loaded {
        self.features.entry(feature).or_insert_with(|| Loaded::Rows { feature: None, open: Vec::new() })
    }

    /// Decides one request and keeps what follows from it. `settled` is the envelope that an earlier attempt of
    /// this very call came to, if its fate was unknown: found in the ledger, it was ours.
    pub(super) fn submit(
        &mut self,
        request: &Request,
        rules: &Rules,
        settled: Option<&str>,
    ) -> Result<Receipt, StoreError> {
        if let Some((digest, envelope)) = self.ledger.get(request.operation_id.as_str()) {
            if *digest != request.digest {
                return Err(request.reuse_mismatch().into());
            }
            let fresh = settled == Some(envelope.as_str());
            return Ok(Receipt { envelope: Envelope::from_ledger(envelope.clone()), seq: self.seq, fresh });
        }
        let feature_id = request.command.feature_id();
        let before = self.snapshot(feature_id, request.command.question_id())?;
        // Counted aside: a member that fails half-way must leave no gap.
        let mut seq = self.seq;
        let decision = decide(&before, request, rules, self.now, self.ids, &mut seq)?;
        self.seq = seq;
        self.keep(decision.expiry)?;
        self.features.insert(feature_id.to_string(), Loaded::State(decision.state));
        let (change, envelope) = decision.outcome?;
        self.keep(change)?;
        let entry = (request.operation_id.to_string(), request.digest.clone(), envelope.as_str().to_owned());
        self.ledger.insert(entry.0.clone(), (entry.1.clone(), entry.2.clone()));
        self.writes.operations.push(entry);
        Ok(Receipt { envelope, seq: self.seq, fresh: true })
    }

    /// Expires what is due in a feature; whether anything was.
    pub(super) fn expire(&mut self, feature_id: &FeatureId) -> Result<bool, StoreError> {
        let before = self.snapshot(feature_id, None)?;
        let expiry = lifecycle::expire_due(&before, self.now);
        let mut seq = self.seq;
        let change = Change::of(&expiry.events, &expiry.state, &expiry.secrets, &mut seq)?;
        self.seq = seq;
        let changed = change.is_some();
        self.keep(change)?;
        self.features.insert(feature_id.to_string(), Loaded::State(expiry.state));
        Ok(changed)
    }

    /// Takes an event of another store's history; `state` is that of its feature after it.
    pub(super) fn take(&mut self, recorded: &Recorded, state: &Snapshot) -> Result<(), StoreError> {
        let mut seq = recorded.seq - 1;
        let change = Change::of(std::slice::from_ref(&recorded.stamped), state, &[], &mut seq)?;
        self.seq = seq;
        // The clock that wrote this may have been ahead of ours; time never runs backwards.
        self.now = self.now.max(recorded.stamped.at);
        self.keep(change)?;
        Ok(())
    }

    /// The feature, its open questions and the named one, as the members before have left them.
    fn snapshot(
        &mut self,
        feature_id: &FeatureId,
        question_id: Option<&QuestionId>,
    ) -> Result<Snapshot, StoreError> {
        let mut found = match self.features.get(feature_id.as_str()) {
            None => Snapshot::default(),
            Some(Loaded::Rows { feature, open }) => snapshot(feature.as_deref(), open)?,
            Some(Loaded::State(state)) => state.clone(),
        };
        if let Some(id) = question_id
            && found.question(id).is_none()
            && let Some(record) = self.named.get(id.as_str())
        {
            let question = parse_question(record)?;
            found.questions.extend((question.feature_id == *feature_id).then(|| Arc::new(question)));
        }
        found.questions.retain(|question| question.is_open() || Some(&question.id) == question_id);
        // Closed ones stand behind the open ones, as if they had been read for this member alone.
        found.questions.sort_by_key(|question| !question.is_open());
        Ok(found)
    }

    fn keep(&mut self, change: Option<Change>) -> Result<(), StoreError> {
        let Some(change) = change else { return Ok(()) };
        let writes = &mut self.writes;
        let feature_id = change.feature.id.to_string();
        writes.events.extend(change.events);
        writes.specs.extend(change.spec.map(|spec| (feature_id.clone(), spec)));
        for question in &change.questions {
            let row = QuestionRow::of(question)?;
            // What a later member needs of a question that is closed by now.
            self.named.insert(row.columns.0.clone(), row.record.clone());
            writes.questions.insert(row.columns.0.clone(), row);
        }
        writes
            .secrets
            .extend(change.secrets.into_iter().map(|(id, answer)| (id, feature_id.clone(), answer)));
        if change.wipes_secrets {
            writes.secrets.retain(|(_, feature, _)| *feature != feature_id);
            writes.wipes.push(feature_id.clone());
        }
        writes.features.insert(feature_id, FeatureRow::of(&change.feature)?);
        Ok(())
    }
}

impl Writes {
    /// Whether there is nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.operations.is_empty()
    }

    /// How many rows there are, about.
    pub(super) fn len(&self) -> usize {
        self.events.len() + self.operations.len()
    }
}
