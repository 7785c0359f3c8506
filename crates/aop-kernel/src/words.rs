//! What a model is told about the end of its question. A human's answer, a default that policy applied, an expiry,
//! a refusal and a withdrawal each begin with words that none of the others use, and each says what to do next.

use crate::question::{Question, QuestionState, Resolution, ResolutionMode};
use serde_json::{Value, json};

/// The words; `secret` is the answer in clear where the record has it redacted. `None` while it is open.
pub fn ending(question: &Question, secret: Option<&Value>) -> Option<String> {
    told(question, secret, STOPPED)
}

/// The same for a turn that goes on behind it. A strict expiry has stopped the feature: that there is a turn again is
/// the doing of a person.
pub fn ending_before_a_turn(question: &Question, secret: Option<&Value>) -> Option<String> {
    told(question, secret, RETRIED)
}

/// `strict` is what a strict expiry of a question that held somebody up means.
fn told(question: &Question, secret: Option<&Value>, strict: &str) -> Option<String> {
    let (mut text, resolution) = match &question.state {
        QuestionState::Open => return None,
        QuestionState::Answered { by, resolution, .. } => {
            let answer = question.whole_answer(secret);
            let told = answer.map(|answer| answered(&answer, by, resolution.mode));
            (told.unwrap_or_else(|| LOST.to_owned()), resolution)
        }
        QuestionState::Expired { resolution } => {
            let strict = if question.asked.blocking { strict } else { UNANSWERED };
            (expired(resolution.mode).unwrap_or(strict).to_owned(), resolution)
        }
        QuestionState::Withdrawn { resolution } => (WITHDRAWN.to_owned(), resolution),
    };
    if let Resolution { note: Some(note), .. } = resolution {
        text.push_str(&format!(" The note left with it: {}", json!(note)));
    }
    Some(text)
}

/// An answer, and whose it is.
pub fn answered(answer: &Value, by: &str, mode: ResolutionMode) -> String {
    match mode {
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

/// No answer, and what the policy makes of that, where it lets the work go on.
fn expired(mode: ResolutionMode) -> Option<&'static str> {
    match mode {
        ResolutionMode::EngineJudgement => Some(
            "EXPIRED: nobody answered in time, and no answer will come. Decide yourself, and say in your report that \
             you did and that no human decided it.",
        ),
        ResolutionMode::DeclinedByPolicy => Some(
            "DECLINED: nobody answered in time, so this is not permitted. Do not do what you asked for. Go on without \
             it, or stop and say what is missing.",
        ),
        ResolutionMode::UserReply
        | ResolutionMode::Expired
        | ResolutionMode::DefaultByPolicy
        | ResolutionMode::Withdrawn => None,
    }
}

/// No answer, and the work is stopped.
const STOPPED: &str = "EXPIRED: nobody answered in time, nothing was decided, and the work has been stopped by policy. Do not \
    decide in the human's place. End your turn and say that the question went unanswered.";

/// No answer, and a person has sent the stopped work on.
const RETRIED: &str = "EXPIRED: nobody answered in time, and nothing was decided or permitted. A person has the work go on \
    without an answer. Do not decide in the human's place: go on with what does not depend on it, or ask again if you cannot.";

/// No answer to a question that held nobody up: nothing was stopped for it.
pub const UNANSWERED: &str = "EXPIRED: nobody answered in time, no answer will come, and nothing was decided or permitted. Do \
    not decide in the human's place: go on with what does not depend on it, or ask again if you cannot.";

/// Taken back.
pub const WITHDRAWN: &str = "WITHDRAWN: the question was taken back and will not be answered. Nothing was decided, and \
    nothing was permitted. Go on without the answer, or ask something else if you cannot.";

/// Answered, and the answer is gone.
pub const LOST: &str = "LOST: the question was answered with a secret that is no longer stored, so it cannot be told. Do \
    not guess it. Ask again if you need it, or go on without it.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_end_can_be_taken_for_another() {
        let answer = json!("yes");
        let texts = [
            answered(&answer, "human", ResolutionMode::UserReply),
            answered(&answer, "policy:default", ResolutionMode::DefaultByPolicy),
            expired(ResolutionMode::EngineJudgement).unwrap().to_owned(),
            expired(ResolutionMode::DeclinedByPolicy).unwrap().to_owned(),
            STOPPED.to_owned(),
            RETRIED.to_owned(),
            UNANSWERED.to_owned(),
            WITHDRAWN.to_owned(),
            LOST.to_owned(),
        ];
        for (place, text) in texts.iter().enumerate() {
            assert!(texts.iter().skip(place + 1).all(|other| other != text), "{text}");
            assert_eq!(text.contains("a human ("), place == 0, "only a human's answer names a human: {text}");
        }
        assert!(texts[1].contains("no human decided"), "{}", texts[1]);
    }
}
