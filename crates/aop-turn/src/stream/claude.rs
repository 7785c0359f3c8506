//! Claude Code, `--output-format stream-json`.
//!
//! One line per content block; blocks of one message share its id. Lines of sub-agents carry
//! `parent_tool_use_id`. Success is told by `is_error`, never by `subtype`.

use super::{Author, Covers, Ended, EventKind, LineFormat, Out, Piece, Text, ToolCall, Usage, number, text};
use crate::native::{NativeAsk, Stage, is_ask_tool, read_ask, read_permission};
use serde_json::{Map, Value};

pub(super) const WORDS: &[&str] =
    &["assistant", "result", "init", "control_request", "control_cancel_request"];

/// More open questions than this in one turn are no questions.
const MAX_OPEN_CALLS: usize = 64;

/// What has to be remembered between lines.
#[derive(Debug, Default)]
pub(super) struct Claude {
    session_known: bool,
    open_calls: Vec<String>,
    /// Requests to the host: their id and the call they are about; of an elicitation, its own id.
    requests: Vec<(String, String)>,
    /// The message that the main agent is at.
    message: Option<String>,
    /// Whether the main agent has said or done anything in this turn.
    has_spoken: bool,
}

impl LineFormat for Claude {
    fn open_calls(&self) -> &[String] {
        &self.open_calls
    }

    fn object(&mut self, fields: &Map<String, Value>, out: &mut Out<'_, '_>) {
        if fields.get("isReplay").and_then(Value::as_bool) == Some(true) {
            return;
        }
        match text(fields, "type") {
            Some("system") if text(fields, "subtype") == Some("init") => {
                out.send(EventKind::TurnStarted);
                self.message = None;
                self.has_spoken = false;
                self.session(fields, out);
            }
            Some("assistant") => self.assistant(fields, out),
            Some("user") => self.tool_results(fields, out),
            Some("control_request") => self.request(fields, out),
            Some("control_cancel_request") => {
                let id = text(fields, "request_id");
                if let Some((_, call)) =
                    self.requests.iter().find(|(request, _)| Some(request.as_str()) == id)
                {
                    let call_id = call.clone();
                    self.settle(call_id, out);
                }
            }
            Some("result") => self.result(fields, out),
            _ => {}
        }
    }
}

impl Claude {
    fn session(&mut self, fields: &Map<String, Value>, out: &mut Out<'_, '_>) {
        if let (Some(id), false) = (text(fields, "session_id"), self.session_known) {
            self.session_known = true;
            out.send(EventKind::Session(id.to_owned()));
        }
    }

    fn assistant(&mut self, fields: &Map<String, Value>, out: &mut Out<'_, '_>) {
        let Some(message) = fields.get("message") else { return };
        let author = match fields.get("parent_tool_use_id") {
            None | Some(Value::Null) => Author::Main,
            Some(_) => Author::Sub,
        };
        let id = message.get("id").and_then(Value::as_str).map(str::to_owned);
        self.has_spoken |= author == Author::Main;
        let begins = author == Author::Main && id != self.message;
        if begins {
            self.message.clone_from(&id);
            self.settle_elicitations(out);
        }
        let write = |text: &str| {
            let (message, text) = (id.clone(), text.to_owned());
            EventKind::Text(Text { author, message, piece: Piece::Whole, text })
        };
        let is_silent = |block: &Value| !matches!(block["type"].as_str(), Some("text" | "tool_use"));
        match message.get("content") {
            Some(Value::String(words)) => out.send(write(words)),
            Some(Value::Array(blocks)) => {
                if begins && blocks.iter().all(is_silent) {
                    // A thought, perhaps. The message before it is not the last one any more.
                    out.send(write(""));
                }
                for block in blocks {
                    match block.get("type").and_then(Value::as_str) {
                        Some("text") => {
                            let words = block.get("text").and_then(Value::as_str).unwrap_or_default();
                            out.send(write(words));
                        }
                        Some("tool_use") => self.tool_use(author, id.clone(), block, out),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    fn tool_use(&mut self, author: Author, message: Option<String>, block: &Value, out: &mut Out<'_, '_>) {
        let part = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (call_id, name) = (part("id"), part("name"));
        let input = block.get("input").cloned().unwrap_or_default();
        let ask = (author == Author::Main && is_ask_tool(&name)).then(|| NativeAsk {
            call_id: call_id.clone(),
            message: message.clone(),
            stage: Stage::Called,
            body: read_ask(&input),
        });
        out.send(EventKind::ToolCall(ToolCall { author, message, call_id, name, input }));
        if let Some(ask) = ask {
            self.open(ask, out);
        }
    }

    fn request(&mut self, fields: &Map<String, Value>, out: &mut Out<'_, '_>) {
        let Some(request) = fields.get("request") else { return };
        let request_id = text(fields, "request_id").unwrap_or_default().to_owned();
        let part = |key: &str| request.get(key).and_then(Value::as_str);
        let (call_id, body) = match part("subtype") {
            Some("can_use_tool") => {
                let tool = part("tool_name").unwrap_or_default();
                let input = request.get("input").cloned().unwrap_or_default();
                let body = if is_ask_tool(tool) {
                    read_ask(&input)
                } else {
                    read_permission(tool, &input, part("decision_reason").or(part("description")))
                };
                (part("tool_use_id").unwrap_or(&request_id).to_owned(), body)
            }
            Some("elicitation") => (request_id.clone(), read_ask(request)),
            _ => return,
        };
        self.requests.push((request_id, call_id.clone()));
        self.requests.truncate(MAX_OPEN_CALLS);
        self.open(NativeAsk { call_id, message: None, stage: Stage::Waiting, body }, out);
    }

    fn open(&mut self, ask: NativeAsk, out: &mut Out<'_, '_>) {
        let id = &ask.call_id;
        if !id.is_empty() && !self.open_calls.contains(id) && self.open_calls.len() < MAX_OPEN_CALLS {
            self.open_calls.push(id.clone());
        }
        out.send(EventKind::Ask(ask));
    }

    fn tool_results(&mut self, fields: &Map<String, Value>, out: &mut Out<'_, '_>) {
        let content = fields.get("message").and_then(|message| message.get("content"));
        for block in content.and_then(Value::as_array).into_iter().flatten() {
            let call = block.get("tool_use_id").and_then(Value::as_str);
            if let Some(call) = call.filter(|call| self.open_calls.iter().any(|open| open == call)) {
                self.settle(call.to_owned(), out);
            }
        }
    }

    /// The reply to an elicitation goes to the MCP server and shows nowhere; that the agent speaks again does.
    fn settle_elicitations(&mut self, out: &mut Out<'_, '_>) {
        let is_elicitation = |(request, call): &mut (String, String)| request == call;
        for (_, call_id) in self.requests.extract_if(.., is_elicitation).collect::<Vec<_>>() {
            self.settle(call_id, out);
        }
    }

    fn settle(&mut self, call_id: String, out: &mut Out<'_, '_>) {
        self.open_calls.retain(|open| *open != call_id);
        out.send(EventKind::AskSettled { call_id });
    }

    fn result(&mut self, fields: &Map<String, Value>, out: &mut Out<'_, '_>) {
        self.session(fields, out);
        if let Some(usage) = fields.get("usage") {
            out.send(EventKind::Usage(Usage {
                covers: Covers::Turn,
                input_tokens: number(usage, "input_tokens"),
                cached_input_tokens: number(usage, "cache_read_input_tokens"),
                output_tokens: number(usage, "output_tokens"),
                cost_usd: fields.get("total_cost_usd").and_then(Value::as_f64),
            }));
        }
        let subtype = text(fields, "subtype").unwrap_or_default();
        let is_error = fields.get("is_error").and_then(Value::as_bool).unwrap_or(false);
        if is_error || subtype.starts_with("error") {
            return out.send(EventKind::Ended(Ended::Failed(failure(fields, subtype))));
        }
        if let Some(deferred) = fields.get("deferred_tool_use").filter(|deferred| deferred.is_object()) {
            let part = |key: &str| deferred.get(key).and_then(Value::as_str).unwrap_or_default();
            let input = deferred.get("input").cloned().unwrap_or_default();
            let body = if is_ask_tool(part("name")) {
                read_ask(&input)
            } else {
                read_permission(part("name"), &input, None)
            };
            let call_id = part("id").to_owned();
            self.open(NativeAsk { call_id, message: None, stage: Stage::Waiting, body }, out);
        }
        // With `--json-schema` the object is the answer, and the text only its copy.
        let structured = fields.get("structured_output").filter(|value| value.is_object());
        let text = match structured {
            Some(object) => Some(object.to_string()),
            None => text(fields, "result").map(str::to_owned),
        };
        // A hook of the user's own that refuses what the agent was told is reported as if the agent had said so.
        let is_refusal = !self.has_spoken && structured.is_none() && self.open_calls.is_empty();
        if let Some(words) = text.as_ref().filter(|words| is_refusal && !words.trim().is_empty()) {
            return out.send(EventKind::Ended(Ended::Failed(words.clone())));
        }
        out.send(EventKind::Ended(Ended::Completed { text }));
    }
}

fn failure(fields: &Map<String, Value>, subtype: &str) -> String {
    let errors = fields.get("errors").and_then(Value::as_array).into_iter().flatten();
    let mut parts: Vec<&str> = errors.filter_map(Value::as_str).collect();
    if parts.is_empty() {
        parts.extend(text(fields, "result").filter(|words| !words.trim().is_empty()));
    }
    // An error may call itself "success" (a refused key does); that is no cause.
    let cause = ["terminal_reason", "stop_reason"].iter().find_map(|key| text(fields, key));
    match (cause.or(Some(subtype).filter(|subtype| !["", "success"].contains(subtype))), parts.is_empty()) {
        (Some(cause), false) => format!("{cause}: {}", parts.join("; ")),
        (None, false) => parts.join("; "),
        (cause, true) => cause.unwrap_or("it does not say why").to_owned(),
    }
}
