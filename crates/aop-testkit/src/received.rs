//! What a fake model received.

use crate::wire::Wire;
use serde_json::Value;

/// Who sent a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The agent that the test started.
    Main,
    /// An agent that the agent started.
    SubAgent,
    /// The program on its own behalf: titles, summaries, routing, counting.
    Helper,
}

/// What a model is told about one of its calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The model's name for the call.
    pub call_id: String,
    /// The result as one text.
    pub text: String,
    /// Whether it is marked as a failure, where the wire format can say so.
    pub is_error: bool,
}

/// One request. Keys of any kind are not kept.
#[derive(Debug, Clone)]
pub struct Received {
    /// The format it came in.
    pub wire: Wire,
    /// `POST`, mostly.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Headers by their lower-case names, without those that carry credentials.
    pub headers: Vec<(String, String)>,
    /// The body as sent.
    pub body: Value,
    /// Who sent it.
    pub part: Part,
}

impl Received {
    /// The results of calls in the conversation that this request carries, in order. The programs send the whole
    /// conversation each time, so "the model was told once" is a matter of one request.
    pub fn tool_results(&self) -> Vec<ToolResult> {
        self.wire.tool_results(&self.body)
    }

    /// The results of one call.
    pub fn results_of(&self, call_id: &str) -> Vec<String> {
        let all = self.tool_results().into_iter();
        all.filter(|result| result.call_id == call_id).map(|result| result.text).collect()
    }

    /// The texts that came as the user's, in order. The programs add reminders of their own among them.
    pub fn user_messages(&self) -> Vec<String> {
        self.wire.user_messages(&self.body)
    }

    /// Names of the tools that the model may call.
    pub fn tools(&self) -> Vec<String> {
        self.wire.tools(&self.body)
    }

    /// Whether any text in the request contains this.
    pub fn mentions(&self, text: &str) -> bool {
        mentions(&self.body, text)
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

fn mentions(value: &Value, text: &str) -> bool {
    match value {
        Value::String(found) => found.contains(text),
        Value::Array(items) => items.iter().any(|item| mentions(item, text)),
        Value::Object(fields) => fields.values().any(|field| mentions(field, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
