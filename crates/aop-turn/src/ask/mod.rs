//! What an engine asked, whichever way it asked: by a tool of its own, in one of the text dialects, or in
//! plain prose. Ends in the arguments of `feature.question_create`.

mod dialect;
mod expectation;
mod native;
mod question;
mod record;
mod together;

pub(crate) use dialect::{Payload, read_tail};
pub use native::from_native;
pub use question::question_arguments;

use crate::engine::words;
use crate::interaction::{Interaction, InteractionId, Kind};
use crate::outcome::ASK_FIELD_LEFT_OUT;
use serde_json::Value;

words! {
    /// What a question is about, for the record.
    QuestionType {
        /// Something is unclear.
        Clarification "clarification",
        /// Something needs a permission.
        PermissionOverride "permission_override",
        /// Somebody outside has to decide.
        ExternalDecision "external_decision",
        /// A risk has to be accepted.
        RiskAck "risk_ack",
    }
}

/// What a reply is held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// Any text will do, whatever the kind: an engine's own interaction.
    Open,
    /// What the record expects, because the asker said so in the record's own terms.
    AsExpected,
}

/// One ask, complete.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// What is shown.
    pub interaction: Interaction,
    /// What it is about.
    pub question_type: QuestionType,
    /// Whether the feature waits for it.
    pub blocking: bool,
    /// What a reply is held to.
    pub reply: Reply,
    /// Facts beside the prompt: an object, or `null`.
    pub details: Value,
    /// What the record enforces; `null` takes any text.
    pub expected_answer: Value,
    /// A `QuestionSpec`, where people can be given a form.
    pub spec: Option<Value>,
    /// The engine's calls that wait for the answer. Empty when the answer is the next message.
    pub calls: Vec<WaitingCall>,
    /// What came with it and was left out, and why.
    pub warnings: Vec<String>,
}

/// A call that waits. Several may share one form; each gets the answers to its own questions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingCall {
    /// The engine's id of the call.
    pub call_id: String,
    /// How many of the form's questions are its own, in order; 0 where there is no card.
    pub questions: usize,
}

impl Ask {
    /// A question in prose: the message is the prompt.
    pub fn open(id: InteractionId, attempt: u32, prompt: String) -> Self {
        Ask::of(Interaction::open(id, attempt, prompt))
    }

    fn of(interaction: Interaction) -> Self {
        let question_type = match interaction.kind {
            Kind::RiskAck => QuestionType::RiskAck,
            Kind::ChooseOne | Kind::Confirm | Kind::FillFields | Kind::OpenText | Kind::UploadFiles => {
                QuestionType::Clarification
            }
        };
        Ask {
            interaction,
            question_type,
            blocking: true,
            reply: Reply::Open,
            details: Value::Null,
            expected_answer: Value::Null,
            spec: None,
            calls: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// The warning that a field of an ask was not taken over.
fn left_out(field: &str, why: &str) -> String {
    format!("{ASK_FIELD_LEFT_OUT}: {field}: {why}")
}
