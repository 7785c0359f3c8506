//! What a model is told about its question: how it ended, in the kernel's words, or that it is still open.

use aop_kernel::question::{Question, QuestionState, ResolutionMode};
use aop_kernel::words;
use serde_json::{Value, json};

/// The `data` of `ask_user` and `await_answer`.
pub(super) fn told(question: &Question, secret: Option<Value>) -> Value {
    let mut data = json!({"status": status(question), "question_id": question.id});
    let text = words::ending(question, secret.as_ref()).unwrap_or_else(|| pending(question));
    if let Some(answer) = question.whole_answer(secret.as_ref()) {
        data["answer"] = answer;
    }
    if let QuestionState::Answered { by, .. } = &question.state {
        data["answered_by"] = json!(by);
    }
    data["text"] = json!(text);
    data
}

/// The same for a client that is not the asker, when the answer holds a secret.
pub(super) fn withheld(question: &Question) -> Value {
    let mut data = told(question, None);
    data["text"] = json!(WITHHELD);
    data
}

/// The same where nobody may be asked: there is no question then. Permission is never assumed, whatever the engine is
/// told of other questions.
pub(super) fn refused(why: &str, grants: bool) -> Value {
    declined(if grants { NOT_PERMITTED } else { why })
}

/// Nothing was asked, for this reason.
pub(super) fn declined(why: &str) -> Value {
    json!({"status": "declined", "text": format!("DECLINED: {why}")})
}

/// Nobody may be asked who could permit it.
const NOT_PERMITTED: &str = "nobody can be asked who could permit this, so it is not permitted. Go on without it, or stop \
    and say what is missing.";

/// Answered, and not for this client.
const WITHHELD: &str = "SECRET: the question was answered with a secret that only its asker is shown. Do not guess it. If \
    you asked it before your connection was restarted, make the same ask_user call again.";

fn status(question: &Question) -> &'static str {
    match &question.state {
        QuestionState::Open => "pending",
        QuestionState::Answered { .. } => "answered",
        QuestionState::Expired { resolution } if resolution.mode == ResolutionMode::DeclinedByPolicy => {
            "declined"
        }
        QuestionState::Expired { .. } => "expired",
        QuestionState::Withdrawn { .. } => "withdrawn",
    }
}

fn pending(question: &Question) -> String {
    format!(
        "PENDING: no human has answered yet. The question is kept and stays open. Call await_answer with \
         question_id {} to go on waiting. Until it is answered, do not ask it again, do not guess the answer, and do \
         nothing that depends on it; work that does not depend on it may go on.",
        question.id
    )
}
