//! The host of a turn: keeps its session and its questions durably, hands over answers that come while the engine
//! still waits, and shows what it does.

use super::Turn;
use super::brief;
use super::ended::ask_operation;
use super::session::{self, Kept};
use crate::SURFACE;
use crate::phase;
use crate::runner::{Context, Stop};
use aop_engine::words::{NO_MORE, NOBODY, NOT_PERMITTED};
use aop_engine::{Asked, Host, HostError, Pending, Progress, Reply, SessionRef};
use aop_kernel::feature::Feature;
use aop_kernel::ids::QuestionId;
use aop_kernel::question::{EngineRef, Question, QuestionType};
use aop_kernel::role::Caller;
use aop_kernel::tools::{Tool, own_request};
use aop_kernel::{ErrorCode, Refusal};
use aop_store::{ClaimState, Shelf, crash_point};
use aop_turn::quote::inline;
use aop_turn::{Engine, Mode, Role};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// One turn's host.
pub(super) struct TurnHost {
    context: Arc<Context>,
    feature: Feature,
    role: Role,
    claim: String,
    reply_to: Option<QuestionId>,
    epoch: u64,
    attempt: u32,
    mode: Mode,
    engine: Engine,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    session: Option<SessionRef>,
    /// Questions whose end was handed over live.
    handed: Vec<QuestionId>,
    failure: Option<Stop>,
}

impl Turn<'_> {
    /// Which session of which engine asks.
    pub(super) async fn engine_ref(&self, call_id: Option<String>) -> Result<Option<EngineRef>, Stop> {
        let session = session::load(self.context, &self.feature.id, self.role).await?;
        Ok(session.map(|kept| engine_ref(&kept.session, call_id)))
    }
}

fn engine_ref(session: &SessionRef, call_id: Option<String>) -> EngineRef {
    EngineRef {
        engine: session.engine.as_str().to_owned(),
        session: session.session.clone(),
        call_id,
        cwd: session.cwd.display().to_string(),
        version: session.version.clone(),
    }
}

impl TurnHost {
    pub(super) fn new(turn: &Turn<'_>, session: Option<SessionRef>) -> Self {
        TurnHost {
            context: Arc::clone(turn.context),
            feature: turn.feature.clone(),
            role: turn.role,
            claim: turn.claim.clone(),
            reply_to: turn.reply_to.clone(),
            epoch: turn.epoch,
            attempt: turn.attempt,
            mode: turn.mode,
            engine: turn.engine,
            state: Mutex::new(State { session, ..State::default() }),
        }
    }

    /// The conversation to go on with.
    pub(super) fn session_handle(&self) -> Option<String> {
        self.state().session.as_ref().map(|session| session.session.clone())
    }

    /// Why the turn could not go on.
    pub(super) fn failure(&self, error: HostError) -> Stop {
        let kept = self.state().failure.take();
        kept.unwrap_or_else(|| Refusal::new(ErrorCode::Internal, error.0).into())
    }

    /// The engine has read what it was handed live, all but these.
    pub(super) async fn settled(&self, unsettled: &[String]) -> Result<(), Stop> {
        let handed = std::mem::take(&mut self.state().handed);
        for id in handed.into_iter().filter(|id| !unsettled.iter().any(|open| open == id.as_str())) {
            self.context
                .store()
                .advance_claim(format!("reply:{id}"), self.epoch, ClaimState::Delivered)
                .await?;
            self.context.store().forget(id).await?;
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Plain data, whole after any panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, stop: Stop) -> HostError {
        let error = HostError(stop.to_string());
        self.state().failure = Some(stop);
        error
    }

    /// A view of the turn, for what is written there once.
    fn turn(&self) -> Turn<'_> {
        Turn {
            context: &self.context,
            feature: self.feature.clone(),
            role: self.role,
            engine: self.engine,
            claim: self.claim.clone(),
            reply_to: self.reply_to.clone(),
            epoch: self.epoch,
            attempt: self.attempt,
            mode: self.mode,
        }
    }

    async fn keep_session(&self, session: SessionRef) -> Result<(), Stop> {
        let known = self.state().session.as_ref() == Some(&session);
        if !known {
            let key = session::key(&self.feature.id, self.role);
            let document = Kept::document(&session, self.context.runner_id.as_deref());
            self.context.place(&self.feature.id, Shelf::Sessions, key, Some(document)).await?;
            self.state().session = Some(session);
            crash_point("session_kept");
        }
        Ok(())
    }

    async fn record(&self, arguments: Value, call_id: String) -> Result<Asked, Stop> {
        let settings = &self.context.settings;
        let turn = self.turn();
        if self.mode == Mode::Auto {
            return Ok(Asked::Refused(nobody_for(&arguments).to_owned()));
        }
        if self.attempt >= settings.max_attempt {
            return Ok(Asked::Refused(NO_MORE.to_owned()));
        }
        let mut input = arguments;
        input["feature_id"] = json!(self.feature.id);
        input["role"] = json!(phase::kernel_role(self.role));
        input["session_id"] = json!(turn.session_name());
        let id = ask_operation(&self.claim, &call_id)?;
        let caller = Caller { role: phase::kernel_role(self.role), feature: Some(self.feature.id.clone()) };
        let (tool, rules) = (Tool::QuestionCreate, &self.context.service.rules);
        let request = match own_request(tool, &caller, &input, id, SURFACE, rules) {
            Ok(request) => request,
            Err(refusal) => return Ok(Asked::Refused(refused(&refusal))),
        };
        let session = self.state().session.clone();
        let request = match session {
            Some(session) => request.asked_by(engine_ref(&session, Some(call_id))),
            None => request,
        };
        let receipt = match self.context.service.submit(request).await {
            Ok(receipt) => receipt,
            Err(refusal) if refusal.code == ErrorCode::StoreUnavailable => return Err(refusal.into()),
            Err(refusal) => return Ok(Asked::Refused(refused(&refusal))),
        };
        crash_point("question_recorded");
        let id = QuestionId::parse(receipt.envelope.data()["question_id"].as_str().unwrap_or_default())?;
        let question = self.context.store().question(id.clone()).await?.ok_or(Stop::Stale)?;
        if !question.asked.blocking && question.is_open() {
            return Ok(Asked::Refused(format!(
                "Your question is recorded as {id} and does not hold you up: go on. Its answer comes with a later message."
            )));
        }
        match self.hand_over(&question).await? {
            Some(reply) => Ok(Asked::Settled(Box::new(reply))),
            None => Ok(Asked::Recorded { question_id: id.to_string() }),
        }
    }

    /// The end of a question, if it has one and nobody else delivers it.
    async fn hand_over(&self, question: &Question) -> Result<Option<Reply>, Stop> {
        if question.is_open() {
            return Ok(None);
        }
        let run = self.context.lease.info.run_id.to_string();
        let subject = format!("reply:{}", question.id);
        let claim = self.context.store().claim(subject.clone(), run.clone(), self.epoch).await?;
        let ours = claim.holder == run && claim.epoch == self.epoch && claim.state != ClaimState::Delivered;
        if !ours || !self.context.store().advance_claim(subject, self.epoch, ClaimState::Spawned).await? {
            return Ok(None);
        }
        self.state().handed.push(question.id.clone());
        Ok(Some(brief::reply(&self.turn(), question).await?))
    }

    async fn wait_for(&self, question_id: String, patience: Duration) -> Result<Option<Reply>, Stop> {
        let id = QuestionId::parse(&question_id)?;
        let until = tokio::time::Instant::now() + patience;
        let mut changes = self.context.store().changes_of(&self.feature.id);
        loop {
            changes.borrow_and_update();
            let question = self.context.store().question(id.clone()).await?.ok_or(Stop::Stale)?;
            if !question.is_open() {
                return self.hand_over(&question).await;
            }
            if tokio::time::timeout_at(until, changes.changed()).await.is_err() {
                return Ok(None);
            }
        }
    }
}

/// What an engine is told that asks where nobody may be asked: permission is never assumed.
fn nobody_for(arguments: &Value) -> &'static str {
    let grants = QuestionType::named_in(arguments).is_some_and(QuestionType::grants);
    if grants { NOT_PERMITTED } else { NOBODY }
}

fn refused(refusal: &Refusal) -> String {
    format!("Your question was not taken: {}. {}", inline(&refusal.message), inline(&refusal.hint))
}

impl Host for TurnHost {
    fn session(&self, session: SessionRef) -> Pending<'_, Result<(), HostError>> {
        Box::pin(async move { self.keep_session(session).await.map_err(|stop| self.failed(stop)) })
    }

    fn ask(&self, arguments: Value, call_id: String) -> Pending<'_, Result<Asked, HostError>> {
        Box::pin(async move { self.record(arguments, call_id).await.map_err(|stop| self.failed(stop)) })
    }

    fn await_reply(
        &self,
        question_id: String,
        patience: Duration,
    ) -> Pending<'_, Result<Option<Reply>, HostError>> {
        Box::pin(async move { self.wait_for(question_id, patience).await.map_err(|stop| self.failed(stop)) })
    }

    fn progress(&self, progress: Progress) {
        match progress {
            Progress::Started { .. } => self.context.started(&self.feature.id, &self.claim),
            Progress::Said(text) => self.context.say(&self.feature.id, &text),
            Progress::Uses(tool) => self.context.say(&self.feature.id, &format!("uses {tool}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nobody_may_be_asked_permission_is_never_assumed() {
        for (asked, told) in [
            ("clarification", NOBODY),
            ("external_decision", NOBODY),
            ("permission_override", NOT_PERMITTED),
            ("risk_ack", NOT_PERMITTED),
        ] {
            assert_eq!(nobody_for(&json!({"question_type": asked})), told, "{asked}");
        }
        assert_eq!(nobody_for(&json!({"prompt": "Which?"})), NOBODY);
    }
}
