//! Asking and waiting: what `aop ask` and `aop packet ask` share. The question is durable before anybody is
//! asked; it can be answered at this terminal or anywhere else, and whichever is first ends the wait.

use crate::output::question::{above_prompt, answered, card, to_answer, to_reopen};
use crate::output::style::{clean, dim, yellow};
use crate::output::when::relative;
use crate::output::{talk, warn};
use crate::project::{Interrupts, SURFACE, Session, operation_id};
use crate::prompt::{self, QUIET, Typing, typed_out};
use aop_ask::QuestionSpec;
use aop_kernel::ids::{OperationId, QuestionId};
use aop_kernel::policy::HumanInput;
use aop_kernel::question::{Question, QuestionState, ResolutionMode};
use aop_kernel::role::Role;
use aop_kernel::time::Timestamp;
use aop_kernel::tools::{lone_feature, question_request};
use aop_kernel::{ErrorCode, Refusal};
use jiff::SignedDuration;
use serde_json::{Value, json};
use std::io::IsTerminal;

/// What is asked.
pub(crate) struct Asking<'a> {
    pub(crate) prompt: &'a str,
    pub(crate) expected: Option<Value>,
    pub(crate) spec: Option<QuestionSpec>,
    pub(crate) feature_id: Option<&'a str>,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) question_type: &'a str,
    pub(crate) operation: OperationId,
}

/// A question that has come to its end.
pub(crate) struct Closed {
    pub(crate) question: Question,
    /// The answer with its secrets, if there is one.
    pub(crate) answer: Option<Value>,
}

/// What came of the wait.
pub(crate) enum Waited {
    /// The question has come to its end.
    Closed(Closed),
    /// The wait was interrupted; the question stays open. Without one, before it was known to be stored: then the
    /// session is to be forgotten, for dropping it would wait for the store and might ask yet.
    Left(Option<Question>),
}

/// Asks and waits.
pub(crate) fn put(session: &Session, asking: &Asking<'_>) -> Result<Waited, Refusal> {
    // Before the question is there: whoever sees it may interrupt.
    let mut interrupts = session.notice_interrupts()?;
    let Some(question) = create(session, asking, &mut interrupts)? else {
        talk(&format!(
            "Stopped while the store was busy: the question may be stored or not. To find out and go on, {}; \
             it is asked once.",
            again(&asking.operation)
        ));
        return Ok(Waited::Left(None));
    };
    if let Some(line) = cut_short(asking.timeout_ms, &session.service.rules.human_input) {
        warn(&line);
    }
    let mut here = None;
    // Also when stdout is a pipe (`answer=$(aop ask …)`): the person sees stderr.
    if std::io::stderr().is_terminal() && question.is_open() {
        // An agent's own terminal is no place for an answer.
        if prompt::possible() && !session.caller.role.is_worker() {
            talk(&above_prompt(&question));
            talk(&dim(
                "Answer here or elsewhere. Esc: keep waiting without answering. Ctrl-C: quit; the question stays open.",
            ));
            here = Some(prompt::Beside::start(question.clone(), None));
        } else {
            talk(&card(&question));
            talk(&dim("Waiting for an answer … (Ctrl-C stops waiting; the question stays open)"));
        }
    }
    let closed = wait_until_closed(session, &question, here, interrupts, &asking.operation);
    let away = closed.as_ref().is_err_and(|refusal| refusal.code == ErrorCode::StoreUnavailable);
    if away || matches!(closed, Ok(None)) {
        let unless = if away { ", unless an answer came through" } else { "" };
        talk(&format!(
            "The question stays open as {}{unless}. Answer it with\n  {}\nTo go on waiting, {}.",
            question.id,
            to_answer(question.id.as_str()),
            again(&asking.operation)
        ));
    }
    let Some(question) = closed? else { return Ok(Waited::Left(Some(question))) };
    session.project_files();
    let answer = match &question.state {
        QuestionState::Answered { at, by, .. } => {
            // The asker is the one who may see a secret.
            let secret = session.wait(session.store().reveal(question.id.clone()))?;
            Some(question.whole_answer(secret.as_ref()).ok_or_else(|| erased(&question.id, *at, by))?)
        }
        QuestionState::Open | QuestionState::Expired { .. } | QuestionState::Withdrawn { .. } => None,
    };
    Ok(Waited::Closed(Closed { question, answer }))
}

/// How to go on after an interrupted wait.
pub(crate) fn again(operation: &OperationId) -> String {
    format!("run the same command with --operation-id {operation}")
}

impl Closed {
    /// The asker has the answer now: the store forgets its secrets. That it could not changes nothing for the asker.
    pub(crate) fn delivered(&self, session: &Session) {
        let secret = self.question.asked.spec.as_ref().is_some_and(QuestionSpec::has_secret);
        if !secret || self.answer.is_none() {
            return;
        }
        if let Err(error) = session.wait(session.store().forget(self.question.id.clone())) {
            let id = &self.question.id;
            warn(&format!(
                "the answer to {id} is told, but its secret is still stored: {error} (it is erased when it is told again, or \
                 when its feature ends)"
            ));
        }
    }
}

/// What to tell whoever asked for more time than the policy gives.
fn cut_short(wanted: Option<u64>, policy: &HumanInput) -> Option<String> {
    let (wanted, given) = (wanted?, policy.timeout_for(wanted)?);
    let time = |ms: u64| format!("{:#}", SignedDuration::from_millis(i64::try_from(ms).unwrap_or(i64::MAX)));
    (given < wanted).then(|| {
        format!(
            "--timeout {} is cut to {}, the limit that policy.execution.human_input.timeout_ms in aop.yaml sets",
            time(wanted),
            time(given)
        )
    })
}

/// Creates the question, or finds it again under the same operation id, as a person asked it last. `None` when it was
/// interrupted.
fn create(
    session: &Session,
    asking: &Asking<'_>,
    interrupts: &mut Interrupts,
) -> Result<Option<Question>, Refusal> {
    let given =
        asking.feature_id.map(str::to_owned).or_else(|| session.own_feature().map(|id| id.to_string()));
    let role = session.caller.role;
    let input = json!({
        "feature_id": given.clone().unwrap_or_else(|| lone_feature(&asking.operation)),
        "role": role,
        "session_id": if role == Role::Human { "aop-ask".to_owned() } else { format!("aop-ask-{role}") },
        "question_type": asking.question_type,
        "prompt": asking.prompt,
        "expected_answer": asking.expected,
        "spec": asking.spec,
        "timeout_ms": asking.timeout_ms,
        "operation_id": asking.operation,
    });
    let request = question_request(&session.caller, &input, SURFACE, &session.service.rules)?;
    let request = if given.is_some() { request } else { request.bringing_feature(asking.prompt.to_owned()) };
    let Some(envelope) = session.submit_patiently(interrupts, request).transpose()? else { return Ok(None) };
    let id = QuestionId::parse(envelope.data()["question_id"].as_str().unwrap_or_default())?;
    let question = session.wait(session.store().question(id.clone()))?.ok_or_else(|| vanished(&id))?;
    session.wait(session.service.last_asked(question)).map(Some)
}

/// The question as it is now. `None` when the look was interrupted.
fn look(
    session: &Session,
    id: &QuestionId,
    interrupts: &mut Interrupts,
) -> Result<Option<Question>, Refusal> {
    let looked = session.wait_patiently(interrupts, session.store().question(id.clone()));
    looked.map(|found| found?.ok_or_else(|| vanished(id))).transpose()
}

/// Sleeps until the question is closed: woken by commits of any process on its feature, by the deadline, and by an
/// answer given at this terminal. `None` when the human pressed Ctrl-C.
fn wait_until_closed(
    session: &Session,
    asked: &Question,
    mut here: Option<prompt::Beside>,
    mut interrupts: Interrupts,
    operation: &OperationId,
) -> Result<Option<Question>, Refusal> {
    let id = &asked.id;
    let mut changes = session.store().changes_of(&asked.feature_id);
    loop {
        // Marked as seen before reading, so that an answer in between wakes the wait below.
        changes.borrow_and_update();
        let Some(question) = look(session, id, &mut interrupts)? else { return Ok(None) };
        if !question.is_open() {
            if let Some(typing) = here.take().and_then(prompt::Beside::take_away) {
                talk(&taken_away(&question, operation));
                if typing == Typing::Yes {
                    // The question is closed: whether somebody wants to stop makes no difference any more, nor whether
                    // the terminal could be waited for.
                    let _ = session.wait_patiently(&mut interrupts, typed_out(Some(QUIET)));
                }
            }
            if question.state.is_closed_by_clock() {
                // Perhaps nobody has written that down yet.
                session.wait(session.store().expire())?;
            }
            return Ok(Some(question));
        }
        let now = session.wait(session.store().now())?;
        let left = prompt::time_left(&question, now);
        let said = session.wait_patiently(&mut interrupts, async {
            tokio::select! {
                said = prompt::Beside::next(&mut here) => Some(said),
                // Either way the question is looked at again.
                _ = tokio::time::timeout(left, changes.changed()) => None,
            }
        });
        let Some(said) = said else { return Ok(None) };
        match said {
            None => {}
            Some(Ok(prompt::Reply::Skipped)) => {
                talk(&dim("Left open; still waiting for an answer from elsewhere. Ctrl-C stops waiting."));
            }
            Some(Ok(prompt::Reply::Interrupted)) => return Ok(None),
            Some(Err(refusal)) => return Err(refusal),
            Some(Ok(prompt::Reply::Answer(answer))) => {
                let operation = operation_id(None)?;
                let sent = crate::commands::answer::send(
                    session,
                    &question.feature_id,
                    id,
                    &answer,
                    "human",
                    &operation,
                );
                if let Err(refusal) = sent {
                    if refusal.code == ErrorCode::StoreUnavailable {
                        return Err(refusal);
                    }
                    talk(&format!("{} {}", yellow("not taken:"), clean(&refusal.message)));
                    // Closed meanwhile: the loop sees it. Still open: the human says it again.
                    let again = refusal.code == ErrorCode::QuestionInvalidAnswer;
                    here = again.then(|| prompt::Beside::start(question, Some(answer)));
                }
            }
        }
    }
}

/// Why a prompt is gone that nobody has answered.
fn taken_away(question: &Question, operation: &OperationId) -> String {
    match &question.state {
        QuestionState::Expired { .. } => match to_reopen(question) {
            None => "Nobody answered in time; the question expired, and its feature failed.".to_owned(),
            Some(command) => format!(
                "Nobody answered in time; the question expired. Ask it again with\n  {command}\nThen, to wait for it, {}.",
                again(operation)
            ),
        },
        QuestionState::Answered { answer, resolution, .. }
            if resolution.mode != ResolutionMode::UserReply =>
        {
            let default = clean(&answered(&question.asked, answer));
            format!("Nobody answered in time; the declared default applies by policy: {default}")
        }
        QuestionState::Answered { at, by, .. } => {
            format!("Answered elsewhere, by {} {}.", clean(by), relative(*at))
        }
        QuestionState::Withdrawn { .. } => "Withdrawn elsewhere.".to_owned(),
        QuestionState::Open => "It is still open.".to_owned(),
    }
}

/// What stands in the place of a secret is no answer.
fn erased(id: &QuestionId, at: Timestamp, by: &str) -> Refusal {
    let told = format!("question {id} was answered by {by} at {at} with a secret that is no longer stored");
    Refusal::new(ErrorCode::QuestionAlreadyAnswered, told)
        .hint("a secret is kept until it was told once; ask again with another --operation-id, or with none, and have it given again")
        .fact("question_id", id)
        .fact("answered_by", by)
        .fact("answered_at", at)
}

fn vanished(id: &QuestionId) -> Refusal {
    Refusal::new(ErrorCode::Internal, format!("question {id} was committed and cannot be found"))
}
