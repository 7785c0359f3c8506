//! The envelope: the one shape in which every door answers, and the refusal that fills its error side.

use crate::code::ErrorCode;
use crate::ids::OperationId;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Why a request was refused: a code, a sentence that names the thing and the value, and the next step.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// Which rule said no.
    pub code: ErrorCode,
    /// A lower-case fragment that names the thing and the value.
    pub message: String,
    /// The next command to type.
    pub hint: String,
    /// Further facts for programs, merged into `details`.
    pub facts: Map<String, Value>,
}

impl Refusal {
    /// A refusal whose hint is the code's own remedy.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Refusal { code, message: message.into(), hint: code.page().remedy.to_owned(), facts: Map::new() }
    }

    /// Replaces the hint by one that fits this case better.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Adds one fact to the details.
    #[must_use]
    pub fn fact(mut self, key: &str, value: impl Serialize) -> Self {
        self.facts.insert(key.to_owned(), json!(value));
        self
    }

    /// Why an answer was not taken, each reason for itself.
    pub fn reasons(&self) -> Vec<String> {
        let listed = self.facts.get("reasons").and_then(Value::as_array);
        let listed: Vec<String> =
            listed.into_iter().flatten().filter_map(|reason| Some(reason.as_str()?.to_owned())).collect();
        if listed.is_empty() { vec![self.message.clone()] } else { listed }
    }

    /// Shorthand for the commonest refusal.
    pub fn invalid_argument(message: impl Into<String>) -> Self {
        Refusal::new(ErrorCode::InvalidArgument, message)
    }

    /// The error side of the envelope.
    pub fn to_json(&self) -> Value {
        let mut details = Map::new();
        details.insert("retryable".into(), self.code.retryable().into());
        details.insert("requires_human".into(), self.code.requires_human().into());
        details.insert("hint".into(), self.hint.clone().into());
        details.extend(self.facts.clone());
        json!({"ok": false, "error": {"code": self.code, "message": self.message, "details": details}})
    }
}

/// The success side of the envelope, as text. Text, because a replay must return the first success byte
/// for byte, whatever a later version of the program would print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope(String);

impl Envelope {
    /// Wraps `data` into a success.
    pub fn success(data: &impl Serialize) -> Self {
        #[derive(Serialize)]
        struct Success<'a, T> {
            ok: bool,
            data: &'a T,
        }
        let text = serde_json::to_string(&Success { ok: true, data })
            .unwrap_or_else(|error| unreachable!("data of an envelope is always serializable: {error}"));
        Envelope(text)
    }

    /// Wraps what a mutation comes to: `data` is an object and gets the operation id.
    pub(crate) fn committed(data: &impl Serialize, operation_id: &OperationId) -> Self {
        #[derive(Serialize)]
        struct Data<'a, T> {
            #[serde(flatten)]
            data: &'a T,
            operation_id: &'a OperationId,
        }
        #[derive(Serialize)]
        struct Success<'a, T> {
            ok: bool,
            data: Data<'a, T>,
        }
        // As long as most: to grow there in steps would copy it several times.
        let mut text = String::with_capacity(256);
        crate::json::write(&mut text, &Success { ok: true, data: Data { data, operation_id } })
            .unwrap_or_else(|error| unreachable!("data of an envelope is always serializable: {error}"));
        Envelope(text)
    }

    /// Takes back a text that `success` or `committed` made and the ledger kept.
    pub fn from_ledger(text: String) -> Self {
        Envelope(text)
    }

    /// The text, one line.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The `data` member.
    pub fn data(&self) -> Value {
        serde_json::from_str::<Value>(&self.0)
            .ok()
            .and_then(|mut v| v.get_mut("data").map(Value::take))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_carries_code_message_hint_and_facts() {
        let refusal = Refusal::new(ErrorCode::FeatureNotFound, "no feature 'x'").fact("feature_id", "x");
        let json = refusal.to_json();
        assert_eq!(json["ok"], false);
        assert_eq!(json["error"]["code"], "feature_not_found");
        assert_eq!(json["error"]["details"]["retryable"], false);
        assert_eq!(json["error"]["details"]["feature_id"], "x");
        assert!(
            json["error"]["details"]["hint"].as_str().is_some_and(|hint| hint.contains("aop features list"))
        );
    }

    #[test]
    fn what_a_mutation_comes_to_ends_with_its_operation() {
        let operation = OperationId::parse("op").unwrap();
        let text = |data: Value| Envelope::committed(&data, &operation).as_str().to_owned();
        assert_eq!(text(json!({"a": 1})), r#"{"ok":true,"data":{"a":1,"operation_id":"op"}}"#);
        assert_eq!(text(json!({})), r#"{"ok":true,"data":{"operation_id":"op"}}"#);
    }

    #[test]
    fn a_success_is_one_line_with_ok_first() {
        let envelope = Envelope::success(&json!({"a": 1}));
        assert_eq!(envelope.as_str(), r#"{"ok":true,"data":{"a":1}}"#);
        assert_eq!(envelope.data(), json!({"a": 1}));
    }
}
