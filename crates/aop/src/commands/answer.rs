//! `aop answer`: answers a question by arguments, from a file, from standard input, or at the terminal.

use super::which::feature_of;
use crate::cli::Global;
use crate::input::read_text;
use crate::output::question::answered as recorded;
use crate::output::style::{clean, dim};
use crate::output::table::cut;
use crate::output::{CommandResult, Reply, Screen};
use crate::project::{Project, Session, operation_id};
use crate::prompt;
use aop_kernel::ids::{FeatureId, OperationId, QuestionId};
use aop_kernel::question::{AnswerKind, Asked, Question, QuestionState};
use aop_kernel::tools::Tool;
use aop_kernel::{Envelope, ErrorCode, Refusal};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Answer a question; the first valid answer stands
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aop answer --feature-id checkout --question-id q_01… --answer PostgreSQL
  aop answer --feature-id checkout --question-id q_01… --answer '[\"A\", \"B\"]'
  aop answer --feature-id checkout --question-id q_01… --answer-file form.json
  aop answer q_01… PostgreSQL     the same in short
  aop answer                      on a terminal: walk through all that waits")]
pub(crate) struct AnswerArgs {
    /// The question's id
    #[arg(value_name = "QUESTION_ID", group = "which", conflicts_with = "question_id")]
    question: Option<String>,
    /// The answer, as --answer takes it
    #[arg(value_name = "ANSWER", conflicts_with_all = ["answer", "answer_file"])]
    value: Option<String>,
    /// The feature's id (default: that of the question; alone: walk through what waits in it)
    #[arg(long)]
    feature_id: Option<String>,
    /// The question's id
    #[arg(long, group = "which")]
    question_id: Option<String>,
    /// The answer: text for a choice or free text, JSON for several choices, JSON and forms; - is standard input
    #[arg(
        long,
        value_name = "VALUE",
        requires = "which",
        conflicts_with = "answer_file",
        allow_hyphen_values = true
    )]
    answer: Option<String>,
    /// Read the answer from a file; - is standard input
    #[arg(long, value_name = "FILE", requires = "which")]
    answer_file: Option<PathBuf>,
    /// Who answers
    #[arg(long, value_name = "WHO", default_value = "human")]
    answered_by: String,
    /// Makes a retry of this command safe: the same id never answers twice
    #[arg(long)]
    operation_id: Option<String>,
}

/// Answers one question by its arguments; what is missing is asked for at the terminal.
pub(crate) fn run(global: &Global, screen: &Screen, args: &AnswerArgs) -> CommandResult {
    let by_hand = screen.is_text() && prompt::possible();
    let text = match (args.answer.as_ref().or(args.value.as_ref()), &args.answer_file) {
        (Some(text), _) if text == "-" => Some(read_lines(Path::new("-"))?),
        (Some(text), _) => Some(text.clone()),
        (None, Some(path)) => Some(read_lines(path)?),
        (None, None) if by_hand => None,
        (None, None) => return Err(incomplete()),
    };
    let feature_id = args.feature_id.as_deref().map(FeatureId::parse).transpose()?;
    let question_id = args.question_id.as_deref().or(args.question.as_deref());
    let question_id = question_id.map(QuestionId::parse).transpose()?;
    let operation = operation_id(args.operation_id.as_deref())?;
    let session = Project::find(global)?.open()?;
    let (Some(question_id), Some(text)) = (&question_id, text) else {
        return super::walk::run(&session, feature_id, question_id, &args.answered_by);
    };
    let feature_id = &match feature_id {
        Some(id) => id,
        None => feature_of(&session, question_id)?,
    };
    let question = session.wait(session.store().question(question_id.clone()))?;
    let read = read_value(&text, question.as_ref());
    // Whether an answer is still taken comes first, also where there is none to be read: null is none to any question.
    let answer = read.as_ref().unwrap_or(&Value::Null);
    let sent = send(&session, feature_id, question_id, answer, &args.answered_by, &operation);
    let envelope = match (sent, read) {
        (Err(refusal), Err(unread)) if refusal.code == ErrorCode::QuestionInvalidAnswer => Err(unread),
        (sent, _) => sent,
    }?;
    let text = told(&session, &envelope);
    Ok(Reply::ok(envelope, text))
}

/// Sends the answer through the one tool that takes answers.
pub(crate) fn send(
    session: &Session,
    feature_id: &FeatureId,
    question_id: &QuestionId,
    answer: &Value,
    answered_by: &str,
    operation_id: &OperationId,
) -> Result<Envelope, Refusal> {
    let input = json!({"feature_id": feature_id, "question_id": question_id, "answer": answer,
        "answered_by": answered_by, "operation_id": operation_id});
    session.call(Tool::QuestionAnswer, &input)
}

/// How much of an answer is repeated.
const REPEATED: usize = 200;

/// What a person is told after answering.
pub(crate) fn told(session: &Session, envelope: &Envelope) -> String {
    let data = envelope.data();
    let id = data["question_id"].as_str().unwrap_or_default();
    // As it is recorded, which is without secrets. What cannot be read any more stands all the same.
    let question =
        QuestionId::parse(id).ok().and_then(|id| session.wait(session.store().question(id)).ok().flatten());
    let answer = question.and_then(|question| match &question.state {
        QuestionState::Answered { answer, .. } => Some(recorded(&question.asked, answer)),
        QuestionState::Open | QuestionState::Expired { .. } | QuestionState::Withdrawn { .. } => None,
    });
    let answered = match answer {
        Some(answer) => format!("Answered {}: {}", dim(id), cut(&clean(&answer), REPEATED)),
        None => format!("Answered {}.", dim(id)),
    };
    let feature = FeatureId::parse(data["feature_id"].as_str().unwrap_or_default());
    let feature = feature.and_then(|id| session.wait(session.service.feature(&id)));
    // What `aop ask` made for one question is worked on by nobody. The answer stands, whatever can be said of the rest.
    if feature.is_ok_and(|feature| !feature.adhoc) {
        return format!("{answered}\n{}", super::runners::way_of(session, &data, "feature_status"));
    }
    answered
}

fn incomplete() -> Refusal {
    Refusal::invalid_argument("a question's id and an answer (or --answer-file) are needed without a terminal")
        .hint("`aop answer QUESTION_ID ANSWER`; `aop questions` lists what is open, and on a terminal `aop answer` alone walks through it")
}

/// A file without the end of its last line, which is not of the answer, also as other systems write it. An argument is
/// taken to the letter.
fn read_lines(path: &Path) -> Result<String, Refusal> {
    let text = read_text(path)?;
    let line = text.strip_suffix("\r\n").or_else(|| text.strip_suffix('\n'));
    Ok(line.unwrap_or(&text).to_owned())
}

/// Whether any text is taken as it is.
fn takes_text(asked: &Asked) -> bool {
    let kind = asked.expected_answer.as_ref().map(|expected| expected.kind);
    matches!(kind, Some(AnswerKind::SingleChoice | AnswerKind::FreeText))
}

/// Reads VALUE the way the question expects it: text, JSON, or whichever it is when nothing is expected.
fn read_value(text: &str, question: Option<&Question>) -> Result<Value, Refusal> {
    let as_text = || Value::String(text.to_owned());
    let Some(question) = question else { return Ok(as_text()) };
    let parsed = aop_ask::json::read_plainly(text.as_bytes());
    let asked = &question.asked;
    // Also where it says two things at once, or a number that cannot be kept.
    let is_json = serde_json::from_str::<&RawValue>(text).is_ok();
    let not_json = |error: &str| {
        let (what, hint) = if is_json {
            (
                "cannot be kept as it is",
                "say each key once, and write a number that is too long or too large as text",
            )
        } else {
            ("is not JSON", "quote it for the shell, for instance '[\"A\", \"B\"]' or '{\"id\": \"value\"}'")
        };
        let reason = format!("the answer {what}: {error}");
        Refusal::new(
            ErrorCode::QuestionInvalidAnswer,
            format!("not a valid answer to {}: {reason}", question.id),
        )
        .hint(hint)
        .fact("question_id", &question.id)
        .fact("reasons", [reason])
    };
    // An object all the same: it is not taken for a text.
    let is_object = || is_json && text.trim_start().starts_with('{');
    let parsed = match parsed {
        Err(error) if !takes_text(asked) && is_object() => return Err(not_json(&error)),
        parsed => parsed,
    };
    match asked.expected_answer.as_ref().map(|expected| expected.kind) {
        Some(AnswerKind::SingleChoice | AnswerKind::FreeText) => Ok(as_text()),
        Some(AnswerKind::MultiChoice | AnswerKind::Json) => parsed.map_err(|error| not_json(&error)),
        Some(AnswerKind::Form) => match (parsed, asked.spec.as_ref().map(|spec| spec.questions())) {
            (Ok(object @ Value::Object(_)), _) => Ok(object),
            (Ok(list @ Value::Array(_)), Some([only])) => Ok(json!({only.id(): list})),
            (_, Some([only])) if only.kind() == aop_ask::Kind::MultiChoice => {
                Ok(json!({only.id(): [as_text()]}))
            }
            (_, Some([only])) => Ok(json!({only.id(): as_text()})),
            (_, _) if asked.interaction.is_some() => Ok(as_text()),
            (Ok(other), _) => Ok(other),
            (Err(error), _) => Err(not_json(&error)),
        },
        None => match parsed {
            Ok(object @ Value::Object(_)) => Ok(object),
            _ => Ok(as_text()),
        },
    }
}
