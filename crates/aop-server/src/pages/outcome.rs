//! How a question ended: by whom, with what, and whether a person or a policy decided.

use super::words::{self, When};
use aop_kernel::question::{Asked, Question, QuestionState, Resolution, ResolutionMode, redacted};
use aop_kernel::time::Timestamp;
use serde_json::Value;

/// The end of a question.
pub(crate) struct Outcome {
    /// `answered`, `expired` or `withdrawn`.
    pub(crate) status: &'static str,
    pub(crate) headline: String,
    /// Whether no person decided.
    pub(crate) policy: bool,
    pub(crate) explanation: &'static str,
    pub(crate) when: Option<When>,
    pub(crate) door: Option<String>,
    pub(crate) note: Option<String>,
    pub(crate) values: Vec<Given>,
    /// Whether a form was sent in which nothing was filled in: every field was optional.
    pub(crate) blank: bool,
}

/// One answered field.
pub(crate) struct Given {
    pub(crate) header: Option<String>,
    pub(crate) texts: Vec<String>,
    pub(crate) secret: bool,
}

impl Outcome {
    /// `None` while it is open.
    pub(crate) fn of(question: &Question, now: Timestamp) -> Option<Self> {
        Some(match &question.state {
            QuestionState::Open => return None,
            QuestionState::Answered { answer, at, by, resolution } => {
                let headline = match resolution.mode {
                    ResolutionMode::DefaultByPolicy => "Decided by policy, not by a person".to_owned(),
                    _ => format!("{by} answered"),
                };
                Outcome {
                    when: Some(When::past(*at, now)),
                    values: values(&question.asked, answer),
                    blank: answer.as_object().is_some_and(serde_json::Map::is_empty)
                        && question.asked.spec.is_some(),
                    ..Outcome::closed(question, headline, resolution)
                }
            }
            QuestionState::Expired { resolution } => Outcome {
                when: question.expires_at.map(|at| When::past(at, now)),
                ..Outcome::closed(question, "Nobody answered in time".to_owned(), resolution)
            },
            QuestionState::Withdrawn { resolution } => {
                Outcome::closed(question, "Withdrawn".to_owned(), resolution)
            }
        })
    }

    fn closed(question: &Question, headline: String, resolution: &Resolution) -> Self {
        let policy = resolution.surface == "policy";
        Outcome {
            status: question.state.status().as_str(),
            headline,
            policy,
            explanation: words::mode(resolution.mode, &question.asked),
            when: None,
            door: (!policy).then(|| words::door(&resolution.surface)),
            note: resolution.note.clone().filter(|_| !policy),
            values: Vec::new(),
            blank: false,
        }
    }

    /// Whether the question can be asked again.
    pub(crate) fn can_reopen(&self) -> bool {
        self.status != "answered"
    }
}

/// An answer, field by field.
fn values(asked: &Asked, answer: &Value) -> Vec<Given> {
    let (Some(spec), Value::Object(mapping)) = (&asked.spec, answer) else {
        return vec![value(None, answer)];
    };
    if *answer == redacted() {
        return vec![value(None, answer)];
    }
    let fields = spec.questions().iter();
    fields
        .filter_map(|field| Some(value(Some(field.header().to_owned()), mapping.get(field.id())?)))
        .collect()
}

fn value(header: Option<String>, answer: &Value) -> Given {
    if *answer == redacted() {
        return Given { header, texts: Vec::new(), secret: true };
    }
    let texts = match answer {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) if items.iter().all(Value::is_string) => {
            items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
        }
        other => vec![format!("{other:#}")],
    };
    Given { header, texts, secret: false }
}
