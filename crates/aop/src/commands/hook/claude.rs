//! Claude Code's hook. It answers by the record: none yet, commit it and put the call aside; open, put it aside again;
//! closed, tell the end. A call is known by conversation and call id, so that the same call is one question, however
//! often the engine runs the hook for it.

use crate::agent;
use crate::cli::Global;
use crate::project::{Project, Session};
use aop_engine::claude::{
    Asks, Concern, Decision, HookCall, HookTurn, Noted, Waits, Word, answered_input, asks_of_message, word,
};
use aop_engine::words::{NO_MORE, NOBODY, NOT_PERMITTED, READ_FIRST};
use aop_kernel::ids::{FeatureId, QuestionId};
use aop_kernel::own::{OwnId, OwnOperation};
use aop_kernel::question::{EngineRef, Question, QuestionState, ResolutionMode};
use aop_kernel::role::Role;
use aop_kernel::tools::{QuestionFilter, Tool, own_request};
use aop_kernel::{ErrorCode, Refusal, words};
use aop_store::crash_point;
use aop_turn::Mode;
use aop_turn::ask::question_arguments;
use aop_turn::command::Permissions;
use serde_json::{Value, json};
use std::io::Read;
use std::path::Path;
use std::time::Duration;

/// What this door is called in records.
const SURFACE: &str = "hook";

/// How long a call that asks beside another one waits for that one to be recorded.
const SIBLING_PATIENCE: Duration = Duration::from_secs(20);

const ASKED_TOGETHER: &str = "This card is put to the person together with your other question of the same message, as one form. The \
    answers to both come as the result of that other call. Do not ask this again.";
const ASK_AGAIN: &str = "A person is already being asked something else in this moment, and only one card can wait at a time. \
    Nothing was recorded for this one: ask it again once the other is answered.";
const WAIT_FOR_TURN: &str = "A person is already being asked something else in this moment, so nobody could be asked to permit this \
    yet, and it did not run. Call it again once the other is answered.";

const NOT_WHAT_WAS_SHOWN: &str = "A person allowed something else under this call's id, and what was allowed is what was shown. This did \
    not run. If you need it, call it again, and a person is asked about it.";

/// Reads the engine's call and gives the answer in its form.
pub(super) fn answer(global: &Global, turn: &Path) -> Result<Option<Value>, Refusal> {
    let turn = HookTurn::load(turn).map_err(|error| {
        Refusal::new(ErrorCode::Internal, format!("{} cannot be read: {error}", turn.display()))
    })?;
    let mut text = String::new();
    std::io::stdin().lock().read_to_string(&mut text).map_err(|error| {
        Refusal::new(ErrorCode::Internal, format!("the hook's input cannot be read: {error}"))
    })?;
    let call = HookCall::parse(&text).map_err(|cause| Refusal::new(ErrorCode::Internal, cause))?;
    let concern = call.concern(turn.permissions());
    match concern {
        Concern::None => return Ok(Decision::Pass.to_json()),
        Concern::Plan => return Ok(Decision::Allow(call.tool_input, String::new()).to_json()),
        Concern::Question | Concern::Permission => {}
    }
    let global = Global { project: Some(turn.project.clone()), json: global.json };
    let session = Project::find(&global)?.open_as(agent::caller(Role::Builder, None)?)?;
    let hook = Hook { feature: FeatureId::parse(&turn.feature_id)?, turn, call, concern, session };
    Ok(hook.decide()?.to_json())
}

struct Hook {
    feature: FeatureId,
    turn: HookTurn,
    call: HookCall,
    concern: Concern,
    session: Session,
}

impl Hook {
    fn decide(&self) -> Result<Decision, Refusal> {
        if let Some(question) = self.session.wait(self.recorded(&self.call.tool_use_id))? {
            return self.by_record(&question);
        }
        if self.turn.more_follows {
            return Ok(deny(READ_FIRST));
        }
        match (self.turn.mode(), self.concern, self.turn.permissions()) {
            (Mode::Auto, Concern::Question, _) => return Ok(deny(NOBODY)),
            (Mode::Auto, _, Permissions::Ask) => return Ok(deny(NOT_PERMITTED)),
            _ if !self.turn.may_ask => return Ok(deny(NO_MORE)),
            _ => {}
        }
        let mut siblings = Asks::new();
        if self.concern == Concern::Question && self.call.agent_id.is_none() {
            siblings = asks_of_message(&self.turn.run_dir, &self.call);
            let first = siblings.first().map(|(id, _)| id.clone()).unwrap_or_default();
            if first != self.call.tool_use_id {
                return self.beside(&first);
            }
            siblings.remove(0);
        }
        self.ask(&siblings)
    }

    /// The question of a call of this conversation.
    async fn recorded(&self, call_id: &str) -> Result<Option<Question>, Refusal> {
        let questions = self.session.service.questions_of(&self.feature, QuestionFilter::All).await?;
        Ok(questions.into_iter().rev().find(|question| {
            question.asked.engine_ref.as_ref().is_some_and(|engine| {
                engine.session == self.call.session_id && engine.call_id.as_deref() == Some(call_id)
            })
        }))
    }

    /// Commits the question of this call and of those beside it.
    fn ask(&self, siblings: &Asks) -> Result<Decision, Refusal> {
        let ask = match self.call.ask(siblings, self.turn.attempt) {
            Ok(ask) => ask,
            Err(reason) => return Ok(deny(&format!("Your question cannot be shown to anybody: {reason}."))),
        };
        let role = self.session.caller.role;
        let mut arguments = Value::Object(question_arguments(&ask));
        arguments["feature_id"] = json!(self.feature);
        arguments["role"] = json!(role);
        arguments["session_id"] = json!(format!("{role}-{}", self.feature));
        let (tool, rules) = (Tool::QuestionCreate, &self.session.service.rules);
        let request = own_request(tool, &self.session.caller, &arguments, self.operation()?, SURFACE, rules);
        match request.and_then(|request| self.session.submit(request.asked_by(self.engine_ref()))) {
            Ok(envelope) => {
                crash_point("hook_recorded");
                let id = QuestionId::parse(envelope.data()["question_id"].as_str().unwrap_or_default())?;
                // Also if it was answered in this very moment: the answer is told by whoever claims its delivery.
                self.put_aside(&self.question(&id)?)
            }
            Err(refusal) => self.refused(refusal),
        }
    }

    /// The same call is the same operation.
    fn operation(&self) -> Result<OwnId, Refusal> {
        OwnOperation::Claude.id(format_args!("{}:{}", self.call.session_id, self.call.tool_use_id))
    }

    fn engine_ref(&self) -> EngineRef {
        EngineRef {
            engine: "claude-code".to_owned(),
            session: self.call.session_id.clone(),
            call_id: Some(self.call.tool_use_id.clone()),
            cwd: self.turn.cwd.display().to_string(),
            version: Some(self.turn.version.clone()),
        }
    }

    /// A question that the kernel does not take is told to the model; a store that cannot be reached blocks.
    fn refused(&self, refusal: Refusal) -> Result<Decision, Refusal> {
        match (refusal.code, self.concern) {
            (ErrorCode::StoreUnavailable | ErrorCode::Internal, _) => Err(refusal),
            (ErrorCode::QuestionConflictOpen, Concern::Question) => Ok(deny(ASK_AGAIN)),
            (ErrorCode::QuestionConflictOpen, _) => Ok(deny(WAIT_FOR_TURN)),
            (ErrorCode::UnsupportedOperation, Concern::Question) => Ok(deny(NOBODY)),
            (ErrorCode::UnsupportedOperation, _) => Ok(deny(NOT_PERMITTED)),
            _ => Ok(deny(&format!("Your question was not taken: {}. {}", refusal.message, refusal.hint))),
        }
    }

    /// A call whose card belongs to the form of the first call of its message.
    fn beside(&self, first: &str) -> Result<Decision, Refusal> {
        let within = async { tokio::time::timeout(SIBLING_PATIENCE, self.once_recorded(first)).await };
        let question = self.session.wait(within).unwrap_or(Ok(None))?;
        let is_together = question.is_some_and(|question| self.is_part_of(&question));
        Ok(deny(if is_together { ASKED_TOGETHER } else { ASK_AGAIN }))
    }

    /// The question of a call that may be recorded only now; none when the store tells of no change any more.
    async fn once_recorded(&self, call_id: &str) -> Result<Option<Question>, Refusal> {
        let mut changes = self.session.store().changes_of(&self.feature);
        loop {
            let question = self.recorded(call_id).await?;
            if question.is_some() || changes.changed().await.is_err() {
                return Ok(question);
            }
        }
    }

    fn is_part_of(&self, question: &Question) -> bool {
        let Ok(ask) = self.call.ask(&Asks::new(), self.turn.attempt) else { return false };
        let own =
            ask.spec.as_ref().and_then(|spec| spec["questions"].as_array()).cloned().unwrap_or_default();
        let prompt = &question.asked.prompt;
        !own.is_empty()
            && own.iter().all(|own| own["question"].as_str().is_some_and(|text| prompt.contains(text)))
    }

    fn by_record(&self, question: &Question) -> Result<Decision, Refusal> {
        if question.is_open() { self.put_aside(question) } else { self.ended(question) }
    }

    /// Leaves it to the driver who delivers the end of the question, and when.
    fn put_aside(&self, question: &Question) -> Result<Decision, Refusal> {
        let waits = self.patience();
        if waits == Waits::No {
            self.note(question, waits)?;
            return Ok(Decision::Defer);
        }
        match self.wait(question, waits)? {
            Some(ended) => self.ended(&ended),
            None => Ok(Decision::Defer),
        }
    }

    fn patience(&self) -> Waits {
        if self.call.agent_id.is_some() {
            Waits::ToTheEnd
        } else if self.turn.warm_ms > 0 {
            Waits::Warm
        } else {
            Waits::No
        }
    }

    /// Waits until the driver says what to do. It claims the delivery, so that no other turn delivers too. It ends this
    /// process when it goes.
    fn wait(&self, question: &Question, waits: Waits) -> Result<Option<Question>, Refusal> {
        self.note(question, waits)?;
        loop {
            match word(&self.turn.run_dir, question.id.as_str()) {
                Some(Word::Deliver) => return self.question(&question.id).map(Some),
                Some(Word::PutAside) => return Ok(None),
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    fn note(&self, question: &Question, waits: Waits) -> Result<(), Refusal> {
        let noted =
            Noted { question_id: question.id.to_string(), call_id: self.call.tool_use_id.clone(), waits };
        noted.note(&self.turn.run_dir).map_err(|error| {
            let place = self.turn.run_dir.display();
            Refusal::new(ErrorCode::Internal, format!("the question cannot be noted in {place}: {error}"))
        })
    }

    /// The end of a question in the engine's form, with what else the agent is to read.
    fn ended(&self, question: &Question) -> Result<Decision, Refusal> {
        Ok(self.end(question)?.with(self.turn.beside(&self.call.tool_use_id)))
    }

    fn end(&self, question: &Question) -> Result<Decision, Refusal> {
        let secret = self.session.wait(self.session.store().reveal(question.id.clone()))?;
        let told = words::ending_before_a_turn(question, secret.as_ref()).unwrap_or_default();
        // An answer whose secret is gone is none: the words say so.
        let whole = question.whole_answer(secret.as_ref());
        let (QuestionState::Answered { resolution, .. }, Some(answer)) = (&question.state, whole) else {
            return Ok(Decision::Deny(told));
        };
        Ok(match self.concern {
            // What policy decided must not look like a person's answer, and the engine would say that it is one.
            _ if resolution.mode == ResolutionMode::DefaultByPolicy => Decision::Deny(told),
            // The ids of a call are the agent's to choose: a person allowed what they saw, not an id.
            Concern::Permission if answer == "allow" && !self.call.is_shown_in(&question.asked.details) => {
                deny(NOT_WHAT_WAS_SHOWN)
            }
            Concern::Permission if answer == "allow" => {
                Decision::Allow(self.call.tool_input.clone(), String::new())
            }
            Concern::Permission => Decision::Deny(format!("Not permitted. {told}")),
            Concern::Question | Concern::Plan | Concern::None => {
                let spec = question.asked.spec.as_ref().map(|spec| spec.to_json());
                let input = answered_input(&self.call.tool_input, spec.as_ref(), &answer);
                Decision::Allow(input, String::new())
            }
        })
    }

    fn question(&self, id: &QuestionId) -> Result<Question, Refusal> {
        self.session.wait(self.session.store().question(id.clone()))?.ok_or_else(|| {
            Refusal::new(ErrorCode::QuestionNotFound, format!("no question {id}")).fact("question_id", id)
        })
    }
}

fn deny(words: &str) -> Decision {
    Decision::Deny(words.to_owned())
}
