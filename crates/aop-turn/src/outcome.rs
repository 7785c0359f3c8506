//! The three ways a turn can end, and the codes of the third. Whatever the engine, nothing else leaves here.

use crate::ask::Ask;
use crate::engine::words;
use serde_json::{Map, Value, json};

words! {
    /// Why a turn is an error.
    TurnErrorCode {
        /// The process or the engine failed.
        EngineFailed "ENGINE_FAILED",
        /// It took too long.
        EngineTimeout "ENGINE_TIMEOUT",
        /// The stream stops before the turn's end.
        EngineStreamTruncated "ENGINE_STREAM_TRUNCATED",
        /// The result does not fit its schema, or is not what was written.
        OutputSchemaInvalid "OUTPUT_SCHEMA_INVALID",
        /// It asked without saying what.
        AskUserPayloadInvalid "ASK_USER_PAYLOAD_INVALID",
        /// No completion evidence at the last attempt.
        InteractiveMaxAttemptExceeded "INTERACTIVE_MAX_ATTEMPT_EXCEEDED",
        /// Nobody is there to ask, and nothing says that the work is done.
        AutoCompletionEvidenceMissing "AUTO_COMPLETION_EVIDENCE_MISSING",
        /// It asked although nobody is there.
        AutoModeAskedUser "AUTO_MODE_ASKED_USER",
    }
}

impl TurnErrorCode {
    /// Whether the same turn may be tried again. Running out of attempts is final: the feature fails.
    pub fn retryable(self) -> bool {
        self != TurnErrorCode::InteractiveMaxAttemptExceeded
    }

    /// Whether it was the program that failed, not what its model said: what it needs may be back a little later.
    pub fn is_engines(self) -> bool {
        use TurnErrorCode::{EngineFailed, EngineStreamTruncated, EngineTimeout};
        matches!(self, EngineFailed | EngineStreamTruncated | EngineTimeout)
    }

    /// What it means, and what to do about it.
    pub fn page(self) -> (&'static str, &'static str) {
        match self {
            TurnErrorCode::EngineFailed => (
                "The agent program could not be started, broke off or reported an error of its own.",
                "Look at `aop log --feature-id ID` for its words: a login, a limit or the network are the usual causes. Then `aop retry --feature-id ID`.",
            ),
            TurnErrorCode::EngineTimeout => (
                "The agent said nothing for too long, or its turn took too long, and was ended.",
                "`aop retry --feature-id ID` continues it in the same conversation.",
            ),
            TurnErrorCode::EngineStreamTruncated => (
                "What the agent printed stops before the end of its turn.",
                "`aop retry --feature-id ID`; when it comes back, look at the agent program itself.",
            ),
            TurnErrorCode::OutputSchemaInvalid => (
                "The agent finished with a result that does not have the form its role requires.",
                "`aop retry --feature-id ID`, with `aop send --feature-id ID NOTE` before it if it needs to be told something.",
            ),
            TurnErrorCode::AskUserPayloadInvalid => (
                "The agent asked, but its question cannot be shown to anybody.",
                "`aop retry --feature-id ID`; with `aop send` you can answer in advance.",
            ),
            TurnErrorCode::InteractiveMaxAttemptExceeded => (
                "The agent used up the attempts of its phase without saying that its work is done; the last one ended with a question, or in words that are not a result.",
                "The feature has failed. Make the specification clearer, or allow more attempts (`run.max_attempt` in aop.yaml), and run it under another file name.",
            ),
            TurnErrorCode::AutoCompletionEvidenceMissing => (
                "In mode auto the agent stopped without saying that its work is done.",
                "`aop retry --feature-id ID`, or let it ask: `aop features mode ID interactive`.",
            ),
            TurnErrorCode::AutoModeAskedUser => (
                "The agent asked although it was told that nobody is there (mode auto).",
                "Let it ask: `aop features mode ID interactive`, then `aop retry --feature-id ID`.",
            ),
        }
    }
}

/// Soft completion in interactive mode.
pub const COMPLETED_WITHOUT_DONE_MARKER: &str = "INTERACTIVE_COMPLETED_WITHOUT_DONE_MARKER";
/// A worker requested an action that nobody knows.
pub const UNKNOWN_REQUEST_ACTION: &str = "UNKNOWN_REQUEST_ACTION";
/// A field that came with a question does not make sense and was not taken over.
pub const ASK_FIELD_LEFT_OUT: &str = "ASK_FIELD_LEFT_OUT";
/// What was asked beside the question that is put to a person, and cannot stand in one form with it.
pub const ASK_LEFT_OUT: &str = "ASK_LEFT_OUT";
/// The engine has warned of something, in its own words.
pub const ENGINE_WARNING: &str = "ENGINE_WARNING";
/// iFlow's text is complete by its own account, but the block after it is missing.
pub const EXECUTION_INFO_MISSING: &str = "EXECUTION_INFO_MISSING";

/// What a turn came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The work is done.
    Final {
        /// The result.
        data: Map<String, Value>,
    },
    /// A human is needed.
    AskUser(Box<Ask>),
    /// It failed.
    Error {
        /// Why, for programs.
        code: TurnErrorCode,
        /// Why, for people.
        message: String,
    },
}

impl Outcome {
    /// The object of the turn protocol.
    pub fn to_json(&self, warnings: &[String]) -> Map<String, Value> {
        let value = match self {
            Outcome::Final { data } => json!({"outcome": "final", "final_data": data, "warnings": warnings}),
            Outcome::AskUser(ask) => {
                json!({"outcome": "ask_user", "interaction": ask.interaction, "warnings": warnings})
            }
            Outcome::Error { code, message } => {
                json!({"outcome": "error", "error": {"code": code, "message": message}, "warnings": warnings})
            }
        };
        match value {
            Value::Object(fields) => fields,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Map::new()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_the_attempt_limit_names_both_ways_to_reach_it() {
        let (meaning, _) = TurnErrorCode::InteractiveMaxAttemptExceeded.page();
        assert!(meaning.contains("ended with a question, or in words"), "{meaning}");
    }
}
