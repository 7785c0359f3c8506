//! What an engine asked, whichever way it asked: by a tool of its own, in one of the text dialects, or in
//! plain prose. Ends in the arguments of `feature.question_create`.

mod dialect;
mod native;
mod question;

pub(crate) use dialect::{Payload, read_payload};
pub(crate) use native::from_native;
pub use question::question_arguments;

use crate::engine::words;
use crate::interaction::{Interaction, InteractionId, Kind};
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

/// One ask, complete.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// What is shown.
    pub interaction: Interaction,
    /// What it is about.
    pub question_type: QuestionType,
    /// Whether the feature waits for it.
    pub blocking: bool,
    /// Facts beside the prompt.
    pub details: Value,
    /// What the record enforces; `null` takes any text.
    pub expected_answer: Value,
    /// A `QuestionSpec`, where people can be given a form.
    pub spec: Option<Value>,
    /// The engine's calls that wait for the answer. Empty when the answer is the next message.
    pub calls: Vec<String>,
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
            details: Value::Null,
            expected_answer: Value::Null,
            spec: None,
            calls: Vec::new(),
        }
    }
}
