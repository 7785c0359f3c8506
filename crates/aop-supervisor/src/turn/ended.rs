//! What came of a turn, as a commit: the next status, a question, another try, or the end of trying.

use super::{Owed, Turn};
use crate::SURFACE;
use crate::gate::short_digest;
use crate::phase::{self, result_name};
use crate::room::{full, is_full};
use crate::runner::Stop;
use crate::settings::wait_after;
use aop_engine::TurnReport;
use aop_kernel::feature::Feature;
use aop_kernel::ids::QuestionId;
use aop_kernel::lifecycle::{Command, EndTurn};
use aop_kernel::own::{OwnId, OwnOperation};
use aop_kernel::policy::Rules;
use aop_kernel::question::Question;
use aop_kernel::role::{Caller, Role as KernelRole};
use aop_kernel::status::Status;
use aop_kernel::tools::{Tool, own_request, runner_request};
use aop_kernel::work::TurnEnd;
use aop_kernel::{ErrorCode, Refusal};
use aop_store::{ClaimState, Shelf, crash_point};
use aop_turn::ask::{Ask, question_arguments};
use aop_turn::{Engine, Outcome, Role, TurnErrorCode, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// What came of a turn.
pub(super) struct Ended {
    how: How,
    warnings: Vec<String>,
    transcript: Option<PathBuf>,
    delivered: bool,
}

enum How {
    Final(Map<String, Value>),
    Recorded { id: QuestionId, blocking: bool, also: Vec<QuestionId>, unread: bool },
    Ask(Box<Ask>),
    Error { code: String, message: String, again: Again },
    Left { to: Status },
}

/// When a turn that failed is tried again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Again {
    Never,
    /// What a model said wrongly it can say rightly at once.
    AtOnce,
    /// What an engine needs may be away for a while.
    Later,
}

impl Again {
    fn after(code: TurnErrorCode) -> Self {
        match (code.retryable(), code.is_engines()) {
            (false, _) => Again::Never,
            (true, false) => Again::AtOnce,
            (true, true) => Again::Later,
        }
    }
}

impl Ended {
    /// A question was recorded for it. What else is owed to its session is told beside that; so is what the turn began
    /// with, unless the session has it (`heard`).
    pub(super) fn asked(question: &Question, owed: &[Owed], heard: bool) -> Self {
        let (id, blocking) = (question.id.clone(), question.asked.blocking);
        let others = owed.iter().rev().filter(|owed| owed.question.id != id);
        let also = others.map(|owed| owed.question.id.clone()).collect();
        let how = How::Recorded { id, blocking, also, unread: !heard };
        Ended { how, warnings: Vec::new(), transcript: None, delivered: heard }
    }

    /// The engine could not do it.
    pub(super) fn failed(message: String, delivered: bool) -> Self {
        let code = ErrorCode::EngineFailed.as_str().to_owned();
        let how = How::Error { code, message, again: Again::Later };
        Ended { how, warnings: Vec::new(), transcript: None, delivered }
    }

    /// The feature is in another phase since it was cut off, and its engine is not started for it again.
    pub(super) fn left(to: Status) -> Self {
        Ended { how: How::Left { to }, warnings: Vec::new(), transcript: None, delivered: false }
    }

    /// As the evidence says.
    pub(super) fn judged(verdict: Verdict, report: &TurnReport) -> Self {
        let how = match verdict.outcome {
            Outcome::Final { data } => How::Final(data),
            Outcome::AskUser(ask) => How::Ask(ask),
            Outcome::Error { code, message } => {
                How::Error { code: code.as_str().to_owned(), message, again: Again::after(code) }
            }
        };
        Ended {
            how,
            warnings: verdict.warnings,
            transcript: Some(report.transcript.clone()),
            delivered: true,
        }
    }

    /// Whether nobody knows that the engine has read what it was given: it failed, or was cut off.
    pub(super) fn is_unsure(&self) -> bool {
        matches!(self.how, How::Error { .. } | How::Left { .. } | How::Recorded { unread: true, .. })
    }

    /// Whether the session has what the turn began with: it came to an end of its own, or the reply is known to be there.
    pub(super) fn was_heard(&self) -> bool {
        !self.is_unsure() || self.delivered
    }

    /// Something that should be known, beside what came of it.
    pub(super) fn with_warning(mut self, warning: String) -> Self {
        self.warnings.push(warning);
        self
    }

    /// Whether the reply that it began with has reached the session. What ended by itself has read it.
    pub(super) fn having(mut self, delivered: bool) -> Self {
        if self.is_unsure() {
            self.delivered = delivered;
        }
        self
    }
}

impl Turn<'_> {
    /// Commits the end.
    pub(super) async fn end(&self, ended: Ended) -> Result<(), Stop> {
        let delivered = ended.delivered;
        let mut warnings = ended.warnings;
        let mut wait = None;
        let is_left = matches!(ended.how, How::Left { .. });
        let (end, to) = match ended.how {
            How::Final(result) => self.finished(result).await?,
            How::Recorded { id, blocking, also, unread } => {
                (TurnEnd::AskUser { question_id: id, blocking, also, unread }, None)
            }
            How::Ask(ask) => self.ask(&ask, &mut warnings).await?,
            How::Error { code, message, again } => {
                wait = self.wait(again);
                self.failed(code, message, again, delivered)
            }
            How::Left { to } => (TurnEnd::cut_off(to, delivered), None),
        };
        crash_point("turn_judged");
        let failure = Failure::of(&end);
        let notes = warnings.iter().map(|warning| format!("{}: warning: {warning}", self.claim));
        let mut notes: Vec<String> = notes.collect();
        if let (TurnEnd::Error { .. }, Some(path)) = (&end, &ended.transcript) {
            let path = path.strip_prefix(&self.context.settings.root).unwrap_or(path);
            notes.push(format!("transcript: {}", path.display()));
        }
        let wait = wait.filter(|wait: &Duration| to.is_none() && !wait.is_zero());
        if let Some(wait) = wait {
            notes.push(format!("the next turn begins in {}", in_words(wait)));
        }
        let command = Command::EndTurn(Box::new(EndTurn {
            feature_id: self.feature.id.clone(),
            claim: self.claim.clone(),
            epoch: self.epoch,
            end,
            notes,
            to,
        }));
        let id = format!("{}:{}:{}", self.claim, self.epoch, self.feature.version);
        self.context.submit(runner_request(command, OwnOperation::End.id(id)?, SURFACE)).await?;
        crash_point("turn_ended");
        if let Some(wait) = wait {
            self.context.rest(&self.feature.id, wait);
            self.context.say(&self.feature.id, &format!("tries again in {}", in_words(wait)));
        }
        if delivered || self.reply_to.is_none() {
            self.context.store().advance_claim(self.claim.clone(), self.epoch, ClaimState::Delivered).await?;
        }
        if let Some(id) = self.reply_to.as_ref().filter(|_| delivered) {
            // The session has it now: the store forgets its secrets.
            self.context.store().forget(id.clone()).await?;
        }
        // What its engine could do nothing for is none of its failures.
        if is_left { Ok(()) } else { self.keep_failure(failure).await }
    }

    /// The work of the phase is done: kept, and where it leads.
    async fn finished(
        &self,
        result: Map<String, Value>,
    ) -> Result<(TurnEnd, Option<(Status, String)>), Stop> {
        let goes_on = phase::goes_on(self.role, &result);
        let mut commit = None;
        if self.role == Role::Builder || self.role == Role::Qa {
            let summary = result.get("summary").and_then(Value::as_str).unwrap_or("work");
            let message = format!("{}: {}", self.feature.id, aop_kernel::log::one_line(summary));
            let made = self.context.git.commit_all(&self.feature.id, &message).await;
            commit = Some(made.map_err(|error| Refusal::from(error.stopping(&self.feature.id)))?);
        }
        let key = format!("{}/{}", self.feature.id, result_name(self.role));
        let document = json!({"claim": self.claim, "result": result, "commit": commit});
        self.context.place(&self.feature.id, Shelf::Results, key, Some(document)).await?;
        let to = match (self.role, goes_on) {
            (Role::Planner, _) => Some((Status::Building, String::new())),
            // The checks decide.
            (Role::Builder, _) | (Role::Qa, true) => None,
            (Role::Qa, false) => Some(self.context.back_to_builder(&self.feature, "qa says fail")),
        };
        Ok((TurnEnd::Final { result, goes_on }, to))
    }

    /// It asked in words: the question is recorded here.
    async fn ask(
        &self,
        ask: &Ask,
        warnings: &mut Vec<String>,
    ) -> Result<(TurnEnd, Option<(Status, String)>), Stop> {
        let mut arguments = question_arguments(ask);
        warnings.extend(without_bad_schema(&mut arguments, &self.context.service.rules));
        warnings.extend(without_bad_default(&mut arguments, &self.context.service.rules));
        arguments.insert("feature_id".into(), json!(self.feature.id));
        arguments.insert("role".into(), json!(phase::kernel_role(self.role)));
        arguments.insert("session_id".into(), json!(self.session_name()));
        let caller = Caller::new(KernelRole::Orchestrator);
        let rules = &self.context.service.rules;
        let (tool, arguments) = (Tool::QuestionCreate, Value::Object(arguments));
        let id = self.text_operation()?;
        let recorded = match own_request(tool, &caller, &arguments, id, SURFACE, rules) {
            Ok(request) => {
                let request = match self.engine_ref(None).await? {
                    Some(engine) => request.asked_by(engine),
                    None => request,
                };
                self.context.service.submit(request).await
            }
            Err(refusal) => Err(refusal),
        };
        match recorded {
            Ok(receipt) => {
                let id = receipt.envelope.data()["question_id"].as_str().unwrap_or_default().to_owned();
                let (question_id, blocking) = (QuestionId::parse(&id)?, ask.blocking);
                Ok((TurnEnd::AskUser { question_id, blocking, also: Vec::new(), unread: false }, None))
            }
            Err(refusal) if refusal.code == ErrorCode::StoreUnavailable => Err(refusal.into()),
            Err(refusal) if is_full(&refusal) => {
                // Nothing that the engine could say would make room.
                let refusal = full(refusal, &self.feature.id);
                let code = refusal.code.as_str().to_owned();
                let message = format!("its question was refused: {}", refusal.message);
                let reason = format!("the {} asks, and {message}: {}", self.role, refusal.hint);
                let end = TurnEnd::Error { code, message, delivered: true };
                Ok((end, Some((Status::Blocked, reason))))
            }
            Err(refusal) => {
                let message = format!("its question was refused: {}", refusal.message);
                Ok(self.failed(refusal.code.as_str().to_owned(), message, Again::AtOnce, true))
            }
        }
    }

    /// It failed: once more, or a person has to look, or it is over.
    fn failed(
        &self,
        code: String,
        message: String,
        again: Again,
        delivered: bool,
    ) -> (TurnEnd, Option<(Status, String)>) {
        let id = &self.feature.id;
        let to = if again == Again::Never {
            Some((Status::Failed, format!("{code}: {message}")))
        } else if self.feature.work.failures >= self.context.settings.retries {
            let tries = self.feature.work.failures + 1;
            let reason = format!(
                "the {} failed {tries} times in a row, last with {code}: {message} (see `aop log --feature-id {id}`, then `aop retry --feature-id {id}`)",
                self.role
            );
            Some((Status::Blocked, reason))
        } else {
            None
        };
        (TurnEnd::Error { code, message, delivered }, to)
    }

    /// How long the next turn has to wait. A scripted engine needs nothing that could be away.
    fn wait(&self, again: Again) -> Option<Duration> {
        let waits = again == Again::Later && self.engine != Engine::Scripted;
        waits.then(|| wait_after(self.feature.work.failures + 1, self.context.settings.retry_wait))
    }

    /// Keeps why the turn failed for the next one of the role, or forgets why an earlier one did.
    async fn keep_failure(&self, failure: Option<Failure>) -> Result<(), Stop> {
        let key = failure_key(&self.feature, self.role);
        let known = self.context.store().document(Shelf::Results, key.clone()).await?;
        let document = failure.map(|failure| json!(failure));
        if known == document {
            return Ok(());
        }
        self.context.place(&self.feature.id, Shelf::Results, key, document).await
    }

    /// What the asker's session is called in a record.
    pub(super) fn session_name(&self) -> String {
        format!("{}-{}", phase::kernel_role(self.role), self.feature.id)
    }

    /// The operation of the question that this turn asks in words: with it the turn ends, so there is one.
    pub(super) fn text_operation(&self) -> Result<OwnId, Refusal> {
        ask_operation(&self.claim, "text")
    }
}

fn in_words(time: Duration) -> String {
    match (time.as_secs(), time.as_secs() / 60) {
        (1, _) => "1 second".to_owned(),
        (seconds, minutes) if seconds < 120 || seconds != minutes * 60 => format!("{seconds} seconds"),
        (_, minutes) => format!("{minutes} minutes"),
    }
}

/// Why the last turn of a role failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) code: String,
    pub(crate) message: String,
}

impl Failure {
    fn of(end: &TurnEnd) -> Option<Self> {
        match end {
            TurnEnd::Error { code, message, .. } => {
                Some(Failure { code: code.clone(), message: message.clone() })
            }
            TurnEnd::Final { .. } | TurnEnd::AskUser { .. } => None,
        }
    }
}

/// The key of the last failure.
pub(super) fn failure_key(feature: &Feature, role: Role) -> String {
    format!("{}/{}-failure", feature.id, phase::kernel_role(role))
}

/// Takes a schema away that nothing can be held to; what to say about it. A slip in it must not cost the question.
fn without_bad_schema(arguments: &mut Map<String, Value>, rules: &Rules) -> Option<String> {
    let expected = arguments.get_mut("expected_answer")?.as_object_mut()?;
    let reasons = (rules.check_schema)(expected.get("schema")?).err()?;
    expected.shift_remove("schema");
    let what = format!(
        "the answer is held to no schema, because the one that came with the question is unusable: {}",
        reasons.join("; ")
    );
    match arguments.get_mut("details") {
        Some(Value::Object(details)) => drop(details.insert("schema".into(), json!(what))),
        _ => drop(arguments.insert("details".into(), json!({"schema": what}))),
    }
    Some(what)
}

/// Takes a default away that the schema beside it refuses; what to say about it, without what may be a secret.
fn without_bad_default(arguments: &mut Map<String, Value>, rules: &Rules) -> Option<String> {
    let expected = arguments.get_mut("expected_answer")?.as_object_mut()?;
    (rules.check_instance)(expected.get("schema")?, expected.get("default")?).err()?;
    expected.shift_remove("default");
    Some("there is no default, because the schema that came with the question refuses it".to_owned())
}

/// Names the question that a call of a turn asks.
pub(super) fn ask_operation(claim: &str, call: &str) -> Result<OwnId, Refusal> {
    OwnOperation::Ask.id(format_args!("{claim}:{}", short_digest(call)))
}

/// So that a reader sees which code is final.
#[cfg(test)]
mod tests {
    use super::*;
    use aop_turn::TurnErrorCode;

    fn rules() -> Rules {
        Rules {
            human_input: Default::default(),
            check_schema: aop_schema::check_schema,
            check_instance: aop_schema::check_instance,
        }
    }

    #[test]
    fn a_default_that_its_schema_refuses_is_left_out() {
        let arguments = |default: &str| {
            let expected = json!({"kind": "free_text", "schema": {"maxLength": 4}, "default": default});
            json!({"expected_answer": expected}).as_object().cloned().unwrap()
        };
        let (mut good, mut bad) = (arguments("shop"), arguments("a shop"));
        assert_eq!(without_bad_default(&mut good, &rules()), None);
        assert_eq!(good, arguments("shop"));
        assert!(without_bad_default(&mut bad, &rules()).is_some());
        assert_eq!(bad["expected_answer"], json!({"kind": "free_text", "schema": {"maxLength": 4}}));
    }

    #[test]
    fn a_schema_that_is_none_is_left_out_and_the_question_says_so() {
        let rules = rules();
        let arguments = |schema: Value, details: Value| {
            let expected = json!({"kind": "json", "schema": schema});
            json!({"expected_answer": expected, "details": details}).as_object().cloned().unwrap()
        };
        let mut usable = arguments(json!({"type": "object"}), Value::Null);
        assert_eq!(without_bad_schema(&mut usable, &rules), None);
        assert_eq!(usable, arguments(json!({"type": "object"}), Value::Null));
        for details in [Value::Null, json!({"paths": ["a"]})] {
            let mut bad = arguments(json!({"type": "bogus"}), details.clone());
            let what = without_bad_schema(&mut bad, &rules).unwrap();
            assert_eq!(bad["expected_answer"], json!({"kind": "json"}));
            assert_eq!(
                (&bad["details"]["schema"], &bad["details"]["paths"]),
                (&json!(what), &details["paths"])
            );
        }
    }

    #[test]
    fn only_running_out_of_attempts_is_final() {
        for code in TurnErrorCode::ALL {
            assert_eq!(code.retryable(), *code != TurnErrorCode::InteractiveMaxAttemptExceeded);
        }
    }
}
