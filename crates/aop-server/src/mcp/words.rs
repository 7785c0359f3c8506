//! What a model is told about its question. A human's answer, a default that policy applied, an expiry, a refusal,
//! a withdrawal and "not yet" each begin with words that none of the others use, and each says what to do next.

use aop_kernel::question::{Question, QuestionState, Resolution, ResolutionMode};
use serde_json::{Value, json};

/// The `data` of `ask_user` and `await_answer`.
pub(super) fn told(question: &Question, secret: Option<Value>) -> Value {
    let mut data = json!({"status": status(question), "question_id": question.id});
    let mut text = match &question.state {
        QuestionState::Open => pending(question),
        QuestionState::Answered { answer, by, resolution, .. } => {
            let answer = secret.unwrap_or_else(|| answer.clone());
            let text = answered(&answer, by, resolution);
            data["answer"] = answer;
            data["answered_by"] = json!(by);
            text
        }
        QuestionState::Expired { resolution } => expired(resolution.mode).to_owned(),
        QuestionState::Withdrawn { .. } => WITHDRAWN.to_owned(),
    };
    if let Some(note) = resolution(question).and_then(|resolution| resolution.note.as_deref()) {
        text.push_str(&format!(" The note left with it: {}", json!(note)));
    }
    data["text"] = json!(text);
    data
}

fn resolution(question: &Question) -> Option<&Resolution> {
    match &question.state {
        QuestionState::Open => None,
        QuestionState::Answered { resolution, .. }
        | QuestionState::Expired { resolution }
        | QuestionState::Withdrawn { resolution } => Some(resolution),
    }
}

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

fn answered(answer: &Value, by: &str, resolution: &Resolution) -> String {
    match resolution.mode {
        ResolutionMode::DefaultByPolicy => format!(
            "DEFAULT: nobody answered in time, and no human decided this. The default declared with the question \
             applies by policy: {answer}. Go on with it, and say in your report that it was the default."
        ),
        ResolutionMode::UserReply
        | ResolutionMode::Expired
        | ResolutionMode::EngineJudgement
        | ResolutionMode::DeclinedByPolicy
        | ResolutionMode::Withdrawn => {
            format!("ANSWERED: a human ({}) answered: {answer}. Act on this answer.", json!(by))
        }
    }
}

fn expired(mode: ResolutionMode) -> &'static str {
    match mode {
        ResolutionMode::EngineJudgement => {
            "EXPIRED: nobody answered in time, and no answer will come. Decide yourself, and say in your report that \
             you did and that no human decided it."
        }
        ResolutionMode::DeclinedByPolicy => {
            "DECLINED: nobody answered in time, so this is not permitted. Do not do what you asked for. Go on without \
             it, or stop and say what is missing."
        }
        ResolutionMode::UserReply
        | ResolutionMode::Expired
        | ResolutionMode::DefaultByPolicy
        | ResolutionMode::Withdrawn => {
            "EXPIRED: nobody answered in time, nothing was decided, and the work has been stopped by policy. Do not \
             decide in the human's place. End your turn and say that the question went unanswered."
        }
    }
}

const WITHDRAWN: &str = "WITHDRAWN: the question was taken back and will not be answered. Nothing was decided, and \
    nothing was permitted. Go on without the answer, or ask something else if you cannot.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_end_can_be_taken_for_another() {
        let resolution = |mode| Resolution { mode, surface: "t".into(), operation_id: None, note: None };
        let answer = json!("yes");
        let texts = [
            answered(&answer, "human", &resolution(ResolutionMode::UserReply)),
            answered(&answer, "policy:default", &resolution(ResolutionMode::DefaultByPolicy)),
            expired(ResolutionMode::EngineJudgement).to_owned(),
            expired(ResolutionMode::DeclinedByPolicy).to_owned(),
            expired(ResolutionMode::Expired).to_owned(),
            WITHDRAWN.to_owned(),
        ];
        for (place, text) in texts.iter().enumerate() {
            assert!(texts.iter().skip(place + 1).all(|other| other != text), "{text}");
            assert_eq!(text.contains("a human ("), place == 0, "only a human's answer names a human: {text}");
        }
        assert!(texts[1].contains("no human decided"), "{}", texts[1]);
    }
}
