//! Putting a question to the human at this terminal: arrow keys, several choices, free text, Esc. What is asked
//! and what a reply means is the terminal dialogue's business; this draws it.

mod beside;
mod draw;

pub(crate) use beside::Beside;

use crate::output::style::clean;
use crate::output::talk;
use aop_ask::{Dialogue, OnEscape, Options, QuestionSpec, Step, Target};
use aop_kernel::question::{AnswerKind, Question};
use aop_kernel::{ErrorCode, Refusal};
use serde_json::{Value, json};
use std::io::IsTerminal;

/// How a prompt ended.
pub(crate) enum Reply {
    /// With this answer.
    Answer(Value),
    /// With Esc: not now.
    Skipped,
    /// With Ctrl-C: stop everything.
    Interrupted,
}

/// Whether a person can be asked here: keys come in from a terminal and the prompt is drawn on one.
pub(crate) fn possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks until the answer is complete, or the human does not want to.
pub(crate) fn ask(question: &Question) -> Result<Reply, Refusal> {
    let asked = &question.asked;
    if asked.expected_answer.as_ref().is_some_and(|expected| expected.kind == AnswerKind::Json) {
        return json_value(&asked.prompt);
    }
    match &asked.spec {
        Some(spec) => form(spec.clone()),
        None => Ok(match form(as_spec(question)?)? {
            Reply::Answer(mapping) => Reply::Answer(mapping[ONLY].clone()),
            other => other,
        }),
    }
}

/// Asks a whole form; the answer is its bare mapping.
pub(crate) fn form(spec: QuestionSpec) -> Result<Reply, Refusal> {
    let options = Options { on_escape: OnEscape::Defer, ..Options::default() };
    let mut dialogue = Dialogue::start(spec, Target::Terminal, options)
        .map_err(|violation| Refusal::new(ErrorCode::Internal, violation.message))?;
    loop {
        let request = match dialogue.next() {
            Step::Done(answers) => return Ok(Reply::Answer(answers.to_json())),
            Step::Escaped { .. } => return Ok(Reply::Skipped),
            Step::Ask(request) => request,
        };
        let reply = match draw::draw(&request.input) {
            Ok(reply) => reply,
            Err(draw::Stop::Interrupted) => return Ok(Reply::Interrupted),
            Err(draw::Stop::Failed(cause)) => {
                return Err(Refusal::new(
                    ErrorCode::Internal,
                    format!("the prompt could not be shown: {cause}"),
                )
                .hint("answer with --answer or --answer-file instead"));
            }
        };
        dialogue.reply(&reply).map_err(|violation| Refusal::new(ErrorCode::Internal, violation.message))?;
    }
}

/// The one field of a question that is no form.
const ONLY: &str = "answer";

/// A question with choices or free text, as a form of one field, so that there is one way to ask.
fn as_spec(question: &Question) -> Result<QuestionSpec, Refusal> {
    let asked = &question.asked;
    let expected = asked.expected_answer.as_ref();
    let choices = expected.and_then(|expected| expected.choices.as_ref());
    let mut field = json!({"id": ONLY, "header": "Answer", "question": asked.prompt, "required": true});
    match (choices, expected.map(|expected| expected.kind)) {
        (Some(choices), Some(kind)) => {
            let options: Vec<Value> =
                choices.iter().map(|choice| json!({"label": choice, "description": choice})).collect();
            field["kind"] = json!(kind);
            field["options"] = json!(options);
            let other = expected.and_then(|expected| expected.allow_other) == Some(true);
            field["allow_other"] = json!(other || asked.interaction.is_some());
        }
        (_, _) => field["kind"] = json!("free_text"),
    }
    let build = |field: &Value| {
        QuestionSpec::from_json(&json!({"version": 1, "topic": "question", "questions": [field]}))
    };
    // Choices that no form can have (reserved labels) are typed instead.
    let typed = json!({"id": ONLY, "header": "Answer", "question": asked.prompt, "required": true, "kind": "free_text"});
    build(&field).or_else(|_| build(&typed)).map_err(|violations| {
        let found = violations.first().map(|found| found.message.clone()).unwrap_or_default();
        Refusal::new(ErrorCode::Internal, format!("question {} cannot be asked here: {found}", question.id))
    })
}

/// Asks for JSON until it is some.
fn json_value(prompt: &str) -> Result<Reply, Refusal> {
    loop {
        let question = format!("{prompt}\n\nThe answer, as JSON:");
        let input = json!({"kind": "text", "question": question, "required": true});
        match draw::draw(&input) {
            Ok(reply) if reply["escaped"] == true => return Ok(Reply::Skipped),
            Ok(reply) => {
                match aop_ask::json::read_plainly(reply["text"].as_str().unwrap_or_default().as_bytes()) {
                    Ok(value) => return Ok(Reply::Answer(value)),
                    Err(error) => talk(&clean(&format!("that is not JSON: {error}"))),
                }
            }
            Err(draw::Stop::Interrupted) => return Ok(Reply::Interrupted),
            Err(draw::Stop::Failed(cause)) => {
                return Err(Refusal::new(
                    ErrorCode::Internal,
                    format!("the prompt could not be shown: {cause}"),
                ));
            }
        }
    }
}
