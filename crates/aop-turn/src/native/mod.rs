//! Questions that an engine asks through a tool of its own or through aop's, and permissions it asks for,
//! in one shape. Reading is total: what cannot be used becomes `AskBody::Unusable` with the reason, because a
//! turn that tried to ask and failed must be told apart from one that did not ask.

mod card;
mod spec;

pub use card::{CardOption, CardQuestion};
pub use spec::card_spec;

use aop_ask::is_blank;
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
        return AskBody::Unusable("the arguments of the asking tool are not an object".to_owned());
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

/// So much of an input stands in what a person is asked; all of it is in the details.
const MOST_OF_INPUT: usize = 4_000;

/// Reads a request for permission to run `tool`.
pub fn read_permission(tool: &str, input: &Value, reason: Option<&str>) -> AskBody {
    let told = telling_field(tool).and_then(|field| non_blank(input.get(field)));
    let action = told.map_or_else(|| whole(input), str::to_owned);
    let summary = match reason.filter(|reason| !is_blank(reason)) {
        Some(reason) => format!("{action}\n\nReason given: {reason}"),
        None => action,
    };
    AskBody::Permission { tool: tool.to_owned(), summary, input: input.clone() }
}

/// The field that says what a tool does, of those tools that are known. Of any other tool all of the input does: a field
/// with a likely name may be the agent's own words about what the rest of it does.
fn telling_field(tool: &str) -> Option<&'static str> {
    match tool {
        "Bash" | "command" => Some("command"),
        "Read" | "Write" | "Edit" | "MultiEdit" => Some("file_path"),
        "NotebookEdit" => Some("notebook_path"),
        "WebFetch" => Some("url"),
        "ExitPlanMode" => Some("plan"),
        // What Codex asks for, as its driver has described all of it.
        "file change" | "permissions" | "MCP tool" => Some("description"),
        _ => None,
    }
}

/// All of an input on one line, or its beginning and how much is missing.
fn whole(input: &Value) -> String {
    let text = input.to_string();
    match text.char_indices().nth(MOST_OF_INPUT) {
        Some((end, _)) => {
            let missing = text[end..].chars().count();
            format!("{}…\n\n[{missing} more characters of the input are in the details only]", &text[..end])
        }
        None => text,
    }
}

/// The text in a value, when it says something.
pub(crate) fn non_blank(value: Option<&Value>) -> Option<&str> {
    value.and_then(Value::as_str).filter(|text| !is_blank(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn summary(tool: &str, input: &Value) -> String {
        match read_permission(tool, input, None) {
            AskBody::Permission { summary, .. } => summary,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_permission_asks_for_what_is_done_and_not_for_what_the_agent_says_of_it() {
        let query = json!({"description": "Read the list of tables", "sql": "DROP TABLE users"});
        assert_eq!(summary("mcp__db__query", &query), query.to_string());
        let run = json!({"command": "make", "description": "look around"});
        assert_eq!(summary("Bash", &run), "make");
        assert_eq!(summary("mcp__db__run", &run), run.to_string());
        assert_eq!(
            summary("Bash", &json!({"description": "look around"})),
            r#"{"description":"look around"}"#
        );
        assert_eq!(summary("Write", &json!({"file_path": "/a", "content": "b"})), "/a");
    }

    #[test]
    fn a_long_input_says_how_much_of_it_is_not_shown() {
        let said = summary("mcp__db__query", &json!({"note": "x".repeat(MOST_OF_INPUT), "sql": "DROP"}));
        assert!(
            said.ends_with("xxx…\n\n[24 more characters of the input are in the details only]"),
            "{said}"
        );
    }
}
