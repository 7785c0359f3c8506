//! The use cases: a tool call in, an envelope out. The command line, MCP and HTTP all come through here and
//! hold no rules of their own.

use crate::port::{FeaturePage, QuestionPage, Receipt, Store};
use aop_kernel::context::Context;
use aop_kernel::feature::FeatureRecord;
use aop_kernel::ids::{FeatureId, QuestionId};
use aop_kernel::lifecycle::{Request, feature_not_found};
use aop_kernel::policy::Rules;
use aop_kernel::question::{Question, QuestionState};
use aop_kernel::role::Caller;
use aop_kernel::status::{ActivityState, Held};
use aop_kernel::time::Timestamp;
use aop_kernel::tools::{Call, Query, QuestionFilter, Tool, parse};
use aop_kernel::{Envelope, Refusal};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use ulid::Ulid;

/// A store together with the rules its project is run by.
#[derive(Clone)]
pub struct Service {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The rules.
    pub rules: Arc<Rules>,
    at_work: Option<AtWork>,
}

/// Whether anybody works on the project in this moment.
pub type AtWork = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync>;

/// A list as it stands inside an envelope.
#[derive(Debug, Serialize)]
pub struct Items<T> {
    /// What is listed.
    pub items: Vec<T>,
}

/// A name for an operation whose caller gave it none. Every door makes them alike, and so does the benchmark.
pub fn fresh_operation() -> String {
    format!("op_{}", Ulid::generate())
}

impl Service {
    /// One that knows nothing of runs: who works on what is as the log says.
    pub fn new(store: Arc<dyn Store>, rules: Arc<Rules>) -> Self {
        Service { store, rules, at_work: None }
    }

    /// The same for a project whose runs can be looked for.
    pub fn noticing(self, at_work: AtWork) -> Self {
        Service { at_work: Some(at_work), ..self }
    }

    /// Whether anybody works on the project in this moment. Where that cannot be known, the log is believed.
    pub async fn is_at_work(&self) -> bool {
        match &self.at_work {
            Some(at_work) => at_work().await,
            None => true,
        }
    }

    /// Runs a tool by name.
    pub async fn call(
        &self,
        tool: Tool,
        caller: &Caller,
        input: &Value,
        surface: &'static str,
    ) -> Result<Envelope, Refusal> {
        match parse(tool, caller, input, surface, &self.rules)? {
            Call::Mutate(request) => Ok(self.submit(*request).await?.envelope),
            Call::Read(query) => self.read(query).await,
        }
    }

    /// Commits one mutation.
    pub async fn submit(&self, request: Request) -> Result<Receipt, Refusal> {
        Ok(self.store.submit(request, Arc::clone(&self.rules)).await?)
    }

    /// Answers one query.
    pub async fn read(&self, query: Query) -> Result<Envelope, Refusal> {
        match query {
            Query::Feature(id) => Ok(Envelope::success(&self.feature(&id).await?)),
            Query::Features { status, all, only } => {
                let items = self.features(FeaturePage { status, adhoc: all, only }).await?;
                Ok(Envelope::success(&Items { items }))
            }
            Query::Context(query) => {
                let context = self.context(&query.feature_id, query.history_limit as usize).await?;
                Ok(Envelope::success(&context))
            }
            Query::Questions { feature_id, status } => {
                let items = self.questions_of(&feature_id, status).await?;
                Ok(Envelope::success(&Items { items }))
            }
        }
    }

    /// The record of one feature.
    pub async fn feature(&self, id: &FeatureId) -> Result<FeatureRecord, Refusal> {
        let feature = self.store.feature(id.clone()).await?.ok_or_else(|| feature_not_found(id))?;
        let mut record = feature.record(Held::No);
        self.lay_down([&mut record.activity_state]).await;
        Ok(record)
    }

    /// A turn that was cut off with its run has no end in the log, but nobody works on it.
    async fn lay_down<'a>(&self, states: impl IntoIterator<Item = &'a mut ActivityState>) {
        let working = states.into_iter().filter(|state| **state == ActivityState::Working);
        let working: Vec<&mut ActivityState> = working.collect();
        if !working.is_empty() && !self.is_at_work().await {
            working.into_iter().for_each(|state| *state = ActivityState::Idle);
        }
    }

    /// The records of features.
    pub async fn features(&self, page: FeaturePage) -> Result<Vec<FeatureRecord>, Refusal> {
        let features = self.store.features(page).await?;
        let mut records: Vec<FeatureRecord> =
            features.iter().map(|feature| feature.record(Held::No)).collect();
        self.lay_down(records.iter_mut().map(|record| &mut record.activity_state)).await;
        Ok(records)
    }

    /// The questions of one feature that exists.
    pub async fn questions_of(
        &self,
        id: &FeatureId,
        filter: QuestionFilter,
    ) -> Result<Vec<Question>, Refusal> {
        self.store.feature(id.clone()).await?.ok_or_else(|| feature_not_found(id))?;
        let page = QuestionPage { feature: Some(id.clone()), filter, after: None, limit: usize::MAX };
        Ok(self.store.questions(page).await?)
    }

    /// Questions of a feature asked at or after this time, oldest first.
    pub async fn questions_since(
        &self,
        feature: &FeatureId,
        since: Timestamp,
    ) -> Result<Vec<Question>, Refusal> {
        let before = Timestamp::from_millis(since.as_millis() - 1);
        let last = QuestionId::from_ulid("7ZZZZZZZZZZZZZZZZZZZZZZZZZ")?;
        let (feature, after) = (Some(feature.clone()), Some((before, last)));
        let page = QuestionPage { feature, filter: QuestionFilter::All, after, limit: usize::MAX };
        Ok(self.store.questions(page).await?)
    }

    /// The question itself, or the one by which a person asked it again. There may be several, each asked again from any
    /// before it: the last that is open is waited for, else the last answer counts, else the last of them tells the end.
    pub async fn last_asked(&self, question: Question) -> Result<Question, Refusal> {
        if matches!(question.state, QuestionState::Open | QuestionState::Answered { .. }) {
            return Ok(question);
        }
        let later = self.questions_since(&question.feature_id, question.created_at).await?;
        let (mut family, mut known) = (BTreeSet::from([&question.id]), 0);
        // Time may have stood still between them, so their order says nothing.
        while known < family.len() {
            known = family.len();
            let is_next =
                |next: &&Question| next.reopened_from.as_ref().is_some_and(|old| family.contains(old));
            let next: Vec<&QuestionId> = later.iter().filter(is_next).map(|next| &next.id).collect();
            family.extend(next);
        }
        family.remove(&question.id);
        let again = later.iter().filter(|again| family.contains(&again.id));
        let last = again.max_by_key(|again| match again.state {
            QuestionState::Open => 2,
            QuestionState::Answered { .. } => 1,
            QuestionState::Expired { .. } | QuestionState::Withdrawn { .. } => 0,
        });
        Ok(last.cloned().unwrap_or(question))
    }

    /// What a turn is told.
    pub async fn context(&self, id: &FeatureId, history_limit: usize) -> Result<Context, Refusal> {
        let view = self.store.view(id.clone(), history_limit).await?.ok_or_else(|| feature_not_found(id))?;
        let mut context = Context::new(&view.feature, view.spec, Held::No, view.open, view.answers);
        self.lay_down([&mut context.state.activity_state]).await;
        Ok(context)
    }
}
