//! Questions that an engine asks through a tool of its own or through aop's, and permissions it asks for,
//! in one shape. Reading is total: what cannot be used becomes `AskBody::Unusable` with the reason, because a
//! turn that tried to ask and failed must be told apart from one that did not ask.

mod card;
mod spec;

pub use card::{CardOption, CardQuestion};
pub use spec::card_spec;

use serde_json::{Map, Value};

/// A question or a request for permission that came by a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct NativeAsk {
    /// The engine's id of the call; the answer goes there.
    pub call_id: String,
    /// The engine's id of the message that asked, where it has one.
    pub message: Option<String>,
    /// How far the call has got.
    pub stage: Stage,
    /// What is asked.
    pub body: AskBody,
}

/// How far a native ask has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The model made the call. Whether anybody will be asked is open.
    Called,
    /// The engine has handed it on and waits, or has parked itself for it.
    Waiting,
    /// The engine has handed it on and does not wait for the reply.
    NotWaiting,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub enum AskBody {
    /// A card with one or more questions.
    Card(Vec<CardQuestion>),
    /// The arguments of aop's own `ask_user` tool; `prompt` is present and not blank.
    Prompt(Map<String, Value>),
    /// The engine's own permission prompt.
    Permission {
        /// The tool that wants to run.
        tool: String,
        /// What it wants to do, for people.
        summary: String,
        /// What it was called with.
        input: Value,
    },
    /// It claims to ask and cannot be shown to anybody, for this reason.
    Unusable(String),
}

/// Whether a tool of this name asks a human. Engines put a server's name in front of MCP tools, each in its
/// own way.
pub fn is_ask_tool(name: &str) -> bool {
    let bare = name.strip_prefix("mcp__aop__").or_else(|| name.strip_prefix("mcp_aop_")).unwrap_or(name);
    matches!(bare, "AskUserQuestion" | "ask_user" | "ask_human" | "ask_user_question" | "request_user_input")
}

/// Reads the arguments of an asking tool: a card where there are `questions`, else a single prompt.
pub fn read_ask(input: &Value) -> AskBody {
    let Value::Object(fields) = input else {
        return AskBody::Unusable("the arguments of the asking tool are no object".to_owned());
    };
    if let Some(questions) = fields.get("questions") {
        return card::read(questions);
    }
    if fields.get("spec").is_some_and(Value::is_object) && non_blank(fields.get("prompt")).is_none() {
        // A form may stand for itself; its topic is the heading people see.
        let topic = fields.get("spec").and_then(|spec| non_blank(spec.get("topic")));
        let mut fields = fields.clone();
        fields.insert("prompt".into(), topic.unwrap_or("Please fill in the form.").into());
        return AskBody::Prompt(fields);
    }
    for key in ["prompt", "question", "message"] {
        if let Some(prompt) = non_blank(fields.get(key)) {
            // An MCP server may send people to a page; without its address the message says nothing.
            let prompt = match non_blank(fields.get("url")) {
                Some(url) => Value::from(format!("{prompt}\n\n{url}")),
                None => Value::from(prompt),
            };
            let mut fields = fields.clone();
            fields.insert("prompt".into(), prompt);
            return AskBody::Prompt(fields);
        }
    }
    AskBody::Unusable("the asking tool was called without a prompt".to_owned())
}

/// Reads a request for permission to run `tool`.
pub fn read_permission(tool: &str, input: &Value, reason: Option<&str>) -> AskBody {
    let action = ["command", "file_path", "path", "url", "plan", "description"]
        .iter()
        .find_map(|key| non_blank(input.get(*key)))
        .map_or_else(|| input.to_string(), str::to_owned);
    let summary = match reason.filter(|reason| !reason.trim().is_empty()) {
        Some(reason) => format!("{action}\n\nReason given: {reason}"),
        None => action,
    };
    AskBody::Permission { tool: tool.to_owned(), summary, input: input.clone() }
}

/// The text in a value, when it says something.
pub(crate) fn non_blank(value: Option<&Value>) -> Option<&str> {
    value.and_then(Value::as_str).filter(|text| !text.trim().is_empty())
}
