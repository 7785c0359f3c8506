//! Codex, `codex exec --json`. Lines of `codex app-server` are told apart by their shape and handed on, so
//! one parser reads both.
//!
//! An item of type `error` is a warning. Only `turn.failed` is a failure. Messages have no beginning of their own; that
//! the model thinks again after it used a tool shows that another one has begun, whether it comes to words or not.

use super::codex_app::CodexApp;
use super::{Author, Covers, Ended, EventKind, LineFormat, Out, Piece, Text, ToolCall, Usage, number, text};
use serde_json::{Map, Value};

pub(super) const WORDS: &[&str] = &[
    "thread.started",
    "turn.started",
    "item.started",
    "agent_message",
    "reasoning",
    "turn.completed",
    "turn.failed",
    "error",
    // app-server
    "thread",
    "item/started",
    "agentMessage",
    "turn/started",
    "turn/completed",
    "thread/tokenUsage/updated",
    "item/tool/requestUserInput",
    "item/commandExecution/requestApproval",
    "item/fileChange/requestApproval",
    "item/permissions/requestApproval",
    "mcpServer/elicitation/request",
    "serverRequest/resolved",
];

/// What has to be remembered between lines.
#[derive(Debug, Default)]
pub(super) struct Codex {
    app: CodexApp,
    after_tool: AfterTool,
}

/// Whether a tool was used since the model last began to say something.
#[derive(Debug, Default)]
pub(super) struct AfterTool(bool);

impl AfterTool {
    /// Keeps up with an item: a tool, a thought or a message. A thought after a tool is another message without words
    /// so far, and that is an event.
    pub(super) fn item(&mut self, kind: Option<&str>, message: Option<String>, out: &mut Out<'_, '_>) {
        match kind {
            Some("reasoning") if self.0 => {
                self.0 = false;
                let (author, piece, text) = (Author::Main, Piece::Whole, String::new());
                out.send(EventKind::Text(Text { author, message, piece, text }));
            }
            Some("agent_message" | "agentMessage") => self.0 = false,
            Some(kind) if TOOLS.contains(&kind) => self.0 = true,
            Some(_) | None => {}
        }
    }
}

/// The items that are uses of a tool, in either protocol.
const TOOLS: &[&str] = &[
    "command_execution",
    "mcp_tool_call",
    "file_change",
    "web_search",
    "commandExecution",
    "mcpToolCall",
    "fileChange",
    "webSearch",
    "dynamicToolCall",
];

impl LineFormat for Codex {
    fn open_calls(&self) -> &[String] {
        &[]
    }

    fn object(&mut self, fields: &Map<String, Value>, out: &mut Out<'_, '_>) {
        match text(fields, "type") {
            Some("thread.started") => {
                if let Some(id) = text(fields, "thread_id") {
                    out.send(EventKind::Session(id.to_owned()));
                }
            }
            Some("turn.started") => {
                self.after_tool = AfterTool::default();
                out.send(EventKind::TurnStarted);
            }
            Some(kind @ ("item.started" | "item.completed")) => {
                if let Some(item) = fields.get("item").and_then(Value::as_object) {
                    self.after_tool.item(text(item, "type"), None, out);
                    exec_item(kind == "item.completed", item, out);
                }
            }
            Some("turn.completed") => {
                if let Some(usage) = fields.get("usage") {
                    out.send(EventKind::Usage(Usage {
                        covers: Covers::Session,
                        input_tokens: number(usage, "input_tokens"),
                        cached_input_tokens: number(usage, "cached_input_tokens"),
                        output_tokens: number(usage, "output_tokens"),
                        cost_usd: None,
                    }));
                }
                out.send(EventKind::Ended(Ended::Completed { text: None }));
            }
            Some("turn.failed") => {
                let message =
                    fields.get("error").and_then(|error| error.get("message")).and_then(Value::as_str);
                let message = message.unwrap_or("the turn failed without a reason").to_owned();
                out.send(EventKind::Ended(Ended::Failed(message)));
            }
            Some("error") => {
                let message = text(fields, "message").unwrap_or("an error without a message");
                out.send(EventKind::Error(message.to_owned()));
            }
            Some(_) => {}
            None => self.app.message(fields, out),
        }
    }
}

fn exec_item(completed: bool, item: &Map<String, Value>, out: &mut Out<'_, '_>) {
    let call_id = text(item, "id").unwrap_or_default().to_owned();
    match (text(item, "type"), completed) {
        (Some("agent_message"), true) => out.send(EventKind::Text(Text {
            author: Author::Main,
            message: None,
            piece: Piece::Whole,
            text: text(item, "text").unwrap_or_default().to_owned(),
        })),
        (Some("command_execution"), false) => {
            let input = item.get("command").cloned().unwrap_or_default();
            out.send(tool_call(call_id, "command_execution".to_owned(), input));
        }
        (Some("mcp_tool_call"), false) => {
            let part = |key| text(item, key).unwrap_or_default();
            let name = format!("mcp__{}__{}", part("server"), part("tool"));
            out.send(tool_call(call_id, name, item.get("arguments").cloned().unwrap_or_default()));
        }
        (Some(name @ ("file_change" | "web_search")), false) => {
            out.send(tool_call(call_id, name.to_owned(), Value::Object(item.clone())));
        }
        _ => {}
    }
}

pub(super) fn tool_call(call_id: String, name: String, input: Value) -> EventKind {
    EventKind::ToolCall(ToolCall { author: Author::Main, message: None, call_id, name, input })
}
