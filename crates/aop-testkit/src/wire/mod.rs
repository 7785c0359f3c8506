//! The wire formats of the model services, as far as the agent programs need them. One file per service.

mod anthropic;
mod gemini;
mod openai;

use crate::received::{Part, Received, ToolResult};
use crate::script::Call;
use serde_json::{Value, json};

/// A service's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Anthropic Messages, for Claude Code.
    Anthropic,
    /// OpenAI Responses, for Codex.
    OpenAi,
    /// Gemini `generateContent`, for Gemini CLI.
    Gemini,
}

/// A body to answer with.
#[derive(Debug)]
pub(crate) enum Answer {
    /// One JSON document.
    Document(Value),
    /// A stream of events, all at once.
    Events(String),
}

impl Wire {
    /// What comes after host and port in the base URL.
    pub(crate) fn base_path(self) -> &'static str {
        match self {
            Wire::Anthropic | Wire::Gemini => "",
            Wire::OpenAi => "/v1",
        }
    }

    /// Whether a POST to this path asks the model to say something.
    pub(crate) fn asks_model(self, path: &str) -> bool {
        let path = path.split('?').next().unwrap_or_default();
        match self {
            Wire::Anthropic => path.ends_with("/messages"),
            Wire::OpenAi => path.ends_with("/responses"),
            Wire::Gemini => path.ends_with(":streamGenerateContent") || path.ends_with(":generateContent"),
        }
    }

    /// Who sent it.
    pub(crate) fn part(self, path: &str, headers: &[(String, String)], body: &Value) -> Part {
        match self {
            Wire::Anthropic => anthropic::part(headers, body),
            Wire::OpenAi => openai::part(headers, body),
            Wire::Gemini => gemini::part(path, body),
        }
    }

    /// The answer to a request that is not the script's business.
    pub(crate) fn helped(self, request: &Received) -> Answer {
        match self {
            Wire::Anthropic => anthropic::helped(request),
            Wire::OpenAi if self.asks_model(&request.path) => self.said(request, Some("ok"), &[]),
            Wire::OpenAi => Answer::Document(json!({})),
            Wire::Gemini => gemini::helped(request),
        }
    }

    /// A message of the model.
    pub(crate) fn said(self, request: &Received, text: Option<&str>, calls: &[Call]) -> Answer {
        match self {
            Wire::Anthropic => anthropic::said(request, text, calls),
            Wire::OpenAi => openai::said(request, text, calls),
            Wire::Gemini => gemini::said(request, text, calls),
        }
    }

    pub(crate) fn tool_results(self, body: &Value) -> Vec<ToolResult> {
        match self {
            Wire::Anthropic => anthropic::tool_results(body),
            Wire::OpenAi => openai::tool_results(body),
            Wire::Gemini => gemini::tool_results(body),
        }
    }

    pub(crate) fn user_messages(self, body: &Value) -> Vec<String> {
        match self {
            Wire::Anthropic => anthropic::user_messages(body),
            Wire::OpenAi => openai::user_messages(body),
            Wire::Gemini => gemini::user_messages(body),
        }
    }

    pub(crate) fn tools(self, body: &Value) -> Vec<String> {
        match self {
            Wire::Anthropic => anthropic::tools(body),
            Wire::OpenAi => openai::tools(body),
            Wire::Gemini => gemini::tools(body),
        }
    }
}

/// The items of a list, or none.
fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A text, or the texts of a list of blocks, or the JSON of anything else.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
            texts.join("\n")
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// One server-sent event with a name.
fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}
