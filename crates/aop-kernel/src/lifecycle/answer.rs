//! Answering: the first valid answer closes the question and sends the feature back; every later one is told
//! who was first.

use super::{Draft, Outcome, Secret, resume_events};
use crate::code::ErrorCode;
use crate::envelope::Refusal;
use crate::event::Event;
use crate::feature::Feature;
use crate::ids::{FeatureId, QuestionId, quoted};
use crate::policy::Rules;
use crate::question::{Question, QuestionState, QuestionStatus, ResolutionMode, ResumeStatus, redacted};
use crate::status::Status;
use serde::Serialize;
use serde_json::Value;

/// `feature.question_answer`
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the fields are the arguments of the contract's table")]
pub struct Answer {
    pub feature_id: FeatureId,
    pub question_id: QuestionId,
    pub answer: Value,
    pub answered_by: String,
}

/// What the answerer is told.
#[derive(Serialize)]
struct Answered<'a> {
    question_id: &'a QuestionId,
    question_status: QuestionStatus,
    feature_id: &'a FeatureId,
    feature_status: Status,
    resume_status: Option<ResumeStatus>,
    resumed: bool,
}

impl Answer {
    pub(super) fn apply(&self, mut draft: Draft<'_>, rules: &Rules) -> Result<Outcome, Refusal> {
        draft.feature()?;
        let question = draft.question(&self.question_id)?;
        refuse_terminal(&draft)?;
        still_open(question, Some(draft.feature()?))?;
        let answer =
            question.asked.accept(&self.answer, rules).map_err(|reasons| invalid(question, reasons))?;
        let (shown, secret) = question.asked.redact(answer);
        let was_waiting = draft.status() == Status::AwaitingInput;
        let resume_status = question.resume_status.clone();
        let resumed = resume_events(question, draft.state.feature.as_deref());
        let resolution = draft.resolution(ResolutionMode::UserReply, None);
        draft.emit(Event::QuestionAnswered {
            question_id: self.question_id.clone(),
            answer: shown,
            answered_by: self.answered_by.clone(),
            resolution,
        });
        resumed.into_iter().for_each(|event| draft.emit(event));
        let data = Answered {
            question_id: &self.question_id,
            question_status: QuestionStatus::Answered,
            feature_id: &self.feature_id,
            feature_status: draft.status(),
            resume_status,
            resumed: was_waiting && draft.status() != Status::AwaitingInput,
        };
        let secret = secret.map(|answer| Secret { question_id: self.question_id.clone(), answer });
        Ok(Outcome { secret, ..draft.finish(&data) })
    }
}

fn refuse_terminal(draft: &Draft<'_>) -> Result<(), Refusal> {
    let feature = draft.feature()?;
    if !feature.status.is_terminal() {
        return Ok(());
    }
    Err(Refusal::new(
        ErrorCode::QuestionAnswerNotAllowedInTerminalState,
        format!("feature '{}' is {}; its questions take no more answers", feature.id, feature.status),
    )
    .fact("feature_id", &feature.id)
    .fact("status", feature.status))
}

/// Refuses a closed question of this feature, and says how it was closed and by whom.
pub fn still_open(question: &Question, feature: Option<&Feature>) -> Result<(), Refusal> {
    let id = &question.id;
    let closed = |how: &str| {
        let feature = &question.feature_id;
        let refusal = Refusal::new(ErrorCode::QuestionClosed, format!("question {id} {how}"))
            .hint(format!("ask it again with `aop reopen --feature-id {feature} --question-id {id}`"))
            .fact("question_id", id)
            .fact("status", question.state.status());
        Err(refusal)
    };
    match &question.state {
        QuestionState::Open => Ok(()),
        QuestionState::Answered { answer, at, by, resolution } => Err(Refusal::new(
            ErrorCode::QuestionAlreadyAnswered,
            format!(
                "question {id} was answered by {by} at {at} with {}; the first answer stands",
                shown(answer)
            ),
        )
        .hint(after_the_first(question, feature))
        .fact("question_id", id)
        .fact("answered_by", by)
        .fact("answered_at", at)
        .fact("answer", answer)
        .fact("mode", resolution.mode)),
        QuestionState::Expired { .. } => closed(&format!(
            "expired at {}",
            question.expires_at.map(|at| at.to_string()).unwrap_or_default()
        )),
        QuestionState::Withdrawn { .. } => closed("was withdrawn"),
    }
}

/// What is left to whoever wants more of a feature that is over.
pub const MADE_ANEW: &str =
    "make a new feature of what is left to do: `aop features create --feature-id ID --title TITLE`";

/// What is left to whoever wants another answer than the first: a word for the next turn, where one may come.
fn after_the_first(question: &Question, feature: Option<&Feature>) -> String {
    match feature {
        Some(feature) if feature.adhoc => "if the answer must change, ask again with `aop ask`".to_owned(),
        Some(feature) if feature.status.is_terminal() => {
            format!("feature '{}' is {}; if the answer must change, {MADE_ANEW}", feature.id, feature.status)
        }
        Some(_) | None if question.asked.has_secret() => format!(
            "if the answer must change, have the agent ask again with `aop send --feature-id {} NOTE`; the note is read at the \
             beginning of the next turn and stands in the log, so leave the secret out of it",
            question.feature_id
        ),
        Some(_) | None => format!(
            "if the answer must change, tell the agent with `aop send --feature-id {} NOTE`: the note is read at the beginning \
             of the next turn",
            question.feature_id
        ),
    }
}

/// A recorded answer in a message. What is secret has been taken out of the record already.
fn shown(answer: &Value) -> String {
    match answer {
        Value::String(text) => quoted(text),
        secret if *secret == redacted() => "a secret".to_owned(),
        other => quoted(&other.to_string()),
    }
}

fn invalid(question: &Question, reasons: Vec<String>) -> Refusal {
    let kind = question.asked.expected_answer.as_ref().map(|expected| expected.kind);
    Refusal::new(
        ErrorCode::QuestionInvalidAnswer,
        format!("not a valid answer to {}: {}", question.id, reasons.join("; ")),
    )
    .hint(match kind.map(|kind| kind.as_str()) {
        Some("multi_choice") => {
            "give a JSON list of choices, for instance '[\"A\", \"B\"]'; the question is still open"
                .to_owned()
        }
        Some("form") => "give a JSON object of question id to value; the question is still open".to_owned(),
        Some("json") => "give JSON that satisfies the schema; the question is still open".to_owned(),
        Some(_) | None => "answer again; the question is still open".to_owned(),
    })
    .fact("question_id", &question.id)
    .fact("reasons", reasons)
    .fact("expected_answer", &question.asked.expected_answer)
}
