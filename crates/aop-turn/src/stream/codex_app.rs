//! The messages of `codex app-server`: one JSON object per line, requests and notifications with `method`,
//! replies without.
//!
//! A server request that asks (for input, for approval, for an elicitation) waits until its reply; that it
//! was replied to shows as `serverRequest/resolved`. Threads other than the first are sub-agents.

use super::codex::{AfterTool, tool_call};
use super::{Author, Covers, Ended, EventKind, Out, Piece, Text, Usage, number, text};
use crate::native::{NativeAsk, Stage, read_ask, read_permission};
use serde_json::{Map, Value};

/// What has to be remembered between messages.
#[derive(Debug, Default)]
pub(super) struct CodexApp {
    thread: Option<String>,
    /// Requests that wait: their JSON-RPC id and the call they are about.
    waiting: Vec<(Value, String)>,
    after_tool: AfterTool,
}

impl CodexApp {
    pub(super) fn message(&mut self, fields: &Map<String, Value>, out: &mut Out<'_, '_>) {
        let Some(method) = text(fields, "method") else { return self.reply(fields, out) };
        let Some(params) = fields.get("params").and_then(Value::as_object) else { return };
        if method == "thread/started" {
            return self.thread_known(params.get("thread"), out);
        }
        let author = self.author(params);
        match method {
            "turn/started" if author == Author::Main => {
                self.after_tool = AfterTool::default();
                out.send(EventKind::TurnStarted);
            }
            "item/started" | "item/completed" => {
                if let Some(item) = params.get("item").and_then(Value::as_object) {
                    if author == Author::Main {
                        let id = text(item, "id").map(str::to_owned);
                        self.after_tool.item(text(item, "type"), id, out);
                    }
                    item_event(method == "item/completed", author, item, out);
                }
            }
            "thread/tokenUsage/updated" if author == Author::Main => token_usage(params, out),
            "turn/completed" if author == Author::Main => turn_completed(params, out),
            "error" if author == Author::Main => {
                let error =
                    params.get("error").and_then(|error| error.get("message")).and_then(Value::as_str);
                let message = error.or(text(params, "message")).unwrap_or("an error without a message");
                out.send(EventKind::Error(message.to_owned()));
            }
            "serverRequest/resolved" => self.resolved(params, out),
            _ => self.server_request(method, fields, params, out),
        }
    }

    /// A reply to one of our own requests: it tells the thread, or why there is none.
    fn reply(&mut self, fields: &Map<String, Value>, out: &mut Out<'_, '_>) {
        if let Some(result) = fields.get("result") {
            self.thread_known(result.get("thread"), out);
        }
        if let Some(message) =
            fields.get("error").and_then(|error| error.get("message")).and_then(Value::as_str)
        {
            out.send(EventKind::Error(message.to_owned()));
        }
    }

    fn thread_known(&mut self, thread: Option<&Value>, out: &mut Out<'_, '_>) {
        let id = thread.and_then(|thread| thread.get("id")).and_then(Value::as_str);
        if let (Some(id), None) = (id, &self.thread) {
            self.thread = Some(id.to_owned());
            out.send(EventKind::Session(id.to_owned()));
        }
    }

    fn author(&self, params: &Map<String, Value>) -> Author {
        match (&self.thread, text(params, "threadId")) {
            (Some(main), Some(thread)) if main != thread => Author::Sub,
            _ => Author::Main,
        }
    }

    fn server_request(
        &mut self,
        method: &str,
        fields: &Map<String, Value>,
        params: &Map<String, Value>,
        out: &mut Out<'_, '_>,
    ) {
        let input = Value::Object(params.clone());
        let reason = text(params, "reason");
        let body = match method {
            "item/tool/requestUserInput" | "mcpServer/elicitation/request" => read_ask(&input),
            "item/commandExecution/requestApproval" => read_permission("command", &input, reason),
            "item/fileChange/requestApproval" => read_permission("file change", &input, reason),
            "item/permissions/requestApproval" => read_permission("permissions", &input, reason),
            _ => return,
        };
        let Some(id) = fields.get("id") else { return };
        let call_id = text(params, "itemId").map_or_else(|| id.to_string(), str::to_owned);
        // After a reconnect the server delivers a pending request again, under the same id.
        self.waiting.retain(|(known, _)| known != id);
        self.waiting.push((id.clone(), call_id.clone()));
        out.send(EventKind::Ask(NativeAsk { call_id, message: None, stage: Stage::Waiting, body }));
    }

    fn resolved(&mut self, params: &Map<String, Value>, out: &mut Out<'_, '_>) {
        let request = params.get("requestId");
        if let Some(index) = self.waiting.iter().position(|(id, _)| Some(id) == request) {
            let (_, call_id) = self.waiting.remove(index);
            out.send(EventKind::AskSettled { call_id });
        }
    }
}

fn item_event(completed: bool, author: Author, item: &Map<String, Value>, out: &mut Out<'_, '_>) {
    let id = text(item, "id").unwrap_or_default().to_owned();
    match (text(item, "type"), completed) {
        (Some("agentMessage"), true) => {
            let words = text(item, "text").unwrap_or_default().to_owned();
            let message = Some(id.clone());
            out.send(EventKind::Text(Text {
                author,
                message: message.clone(),
                piece: Piece::Whole,
                text: words,
            }));
            if let (Some(questions @ Value::Array(_)), Author::Main) = (item.get("questions"), author) {
                let mut arguments = Map::new();
                arguments.insert("questions".into(), questions.clone());
                let body = read_ask(&Value::Object(arguments));
                out.send(EventKind::Ask(NativeAsk { call_id: id, message, stage: Stage::NotWaiting, body }));
            }
        }
        (Some("commandExecution"), false) if author == Author::Main => {
            out.send(tool_call(
                id,
                "commandExecution".to_owned(),
                item.get("command").cloned().unwrap_or_default(),
            ));
        }
        (Some("mcpToolCall"), false) if author == Author::Main => {
            let part = |key| text(item, key).unwrap_or_default();
            let name = format!("mcp__{}__{}", part("server"), part("tool"));
            out.send(tool_call(id, name, item.get("arguments").cloned().unwrap_or_default()));
        }
        (Some(name @ ("fileChange" | "webSearch" | "dynamicToolCall")), false) if author == Author::Main => {
            out.send(tool_call(id, name.to_owned(), Value::Object(item.clone())));
        }
        _ => {}
    }
}

fn token_usage(params: &Map<String, Value>, out: &mut Out<'_, '_>) {
    if let Some(total) = params.get("tokenUsage").and_then(|usage| usage.get("total")) {
        out.send(EventKind::Usage(Usage {
            covers: Covers::Session,
            input_tokens: number(total, "inputTokens"),
            cached_input_tokens: number(total, "cachedInputTokens"),
            output_tokens: number(total, "outputTokens"),
            cost_usd: None,
        }));
    }
}

fn turn_completed(params: &Map<String, Value>, out: &mut Out<'_, '_>) {
    let turn = params.get("turn");
    let ended = match turn.and_then(|turn| turn.get("status")).and_then(Value::as_str) {
        Some("completed") => Ended::Completed { text: None },
        status => {
            let error = turn.and_then(|turn| turn.get("error")).and_then(|error| error.get("message"));
            let status = status.unwrap_or("ended without a status");
            Ended::Failed(match error.and_then(Value::as_str) {
                Some(message) => format!("turn {status}: {message}"),
                None => format!("turn {status}"),
            })
        }
    };
    out.send(EventKind::Ended(ended));
}
