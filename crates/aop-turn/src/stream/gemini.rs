//! Gemini CLI, `--output-format stream-json`.
//!
//! A message comes in deltas that end where something else begins. A tool that our hook stopped shows as a
//! `stop_execution` error while the run itself reports success: that is how Gemini parks.

use super::codex::tool_call;
use super::{Author, Covers, Ended, EventKind, LineFormat, Out, Piece, Text, Usage, number, text};
use crate::native::{NativeAsk, Stage, is_ask_tool, read_ask};
use serde_json::{Map, Value};

pub(super) const WORDS: &[&str] = &["init", "message", "tool_use", "result", "error"];

const MAX_OPEN_CALLS: usize = 64;

/// What has to be remembered between lines.
#[derive(Debug, Default)]
pub(super) struct Gemini {
    open_calls: Vec<String>,
    asks: Vec<NativeAsk>,
    /// What went wrong last: the line that ends the turn often says no more than that something did.
    error: Option<String>,
}

impl LineFormat for Gemini {
    fn open_calls(&self) -> &[String] {
        &self.open_calls
    }

    fn object(&mut self, fields: &Map<String, Value>, out: &mut Out<'_, '_>) {
        match text(fields, "type") {
            Some("init") => {
                out.send(EventKind::TurnStarted);
                if let Some(id) = text(fields, "session_id") {
                    out.send(EventKind::Session(id.to_owned()));
                }
            }
            Some("message") => message(fields, out),
            Some("tool_use") => self.tool_use(fields, out),
            Some("tool_result") => self.tool_result(fields, out),
            // Warnings travel under the same type.
            Some("error") if text(fields, "severity") == Some("warning") => {
                out.send(EventKind::Warning(text(fields, "message").unwrap_or("a warning").to_owned()));
            }
            Some("error") => {
                let message = text(fields, "message").unwrap_or("an error").to_owned();
                self.error = Some(message.clone());
                out.send(EventKind::Error(message));
            }
            Some("result") => result(fields, self.error.take(), out),
            _ => {}
        }
    }
}

impl Gemini {
    fn tool_use(&mut self, fields: &Map<String, Value>, out: &mut Out<'_, '_>) {
        let name = text(fields, "tool_name").unwrap_or_default().to_owned();
        let call_id = text(fields, "tool_id").unwrap_or_default().to_owned();
        let input = fields.get("parameters").cloned().unwrap_or_default();
        let is_ask = is_ask_tool(&name);
        let body = is_ask.then(|| read_ask(&input));
        out.send(tool_call(call_id.clone(), name, input));
        if let Some(body) = body {
            let ask = NativeAsk { call_id: call_id.clone(), message: None, stage: Stage::Called, body };
            if !call_id.is_empty() && self.open_calls.len() < MAX_OPEN_CALLS {
                self.open_calls.push(call_id);
                self.asks.push(ask.clone());
            }
            out.send(EventKind::Ask(ask));
        }
    }

    fn tool_result(&mut self, fields: &Map<String, Value>, out: &mut Out<'_, '_>) {
        let Some(call) = text(fields, "tool_id") else { return };
        let Some(index) = self.asks.iter().position(|ask| ask.call_id == call) else { return };
        let ask = self.asks.remove(index);
        self.open_calls.retain(|open| open != call);
        let error = fields.get("error").and_then(|error| error.get("type")).and_then(Value::as_str);
        out.send(match error {
            Some("stop_execution") => EventKind::Ask(NativeAsk { stage: Stage::Waiting, ..ask }),
            _ => EventKind::AskSettled { call_id: ask.call_id },
        });
    }
}

fn message(fields: &Map<String, Value>, out: &mut Out<'_, '_>) {
    match text(fields, "role") {
        Some("assistant") => {
            let is_delta = fields.get("delta").and_then(Value::as_bool).unwrap_or(false);
            out.send(EventKind::Text(Text {
                author: Author::Main,
                message: None,
                piece: if is_delta { Piece::Delta } else { Piece::Whole },
                text: text(fields, "content").unwrap_or_default().to_owned(),
            }));
        }
        Some("user") => out.send(EventKind::TurnStarted),
        _ => {}
    }
}

fn result(fields: &Map<String, Value>, error: Option<String>, out: &mut Out<'_, '_>) {
    if let Some(stats) = fields.get("stats") {
        out.send(EventKind::Usage(Usage {
            covers: Covers::Turn,
            input_tokens: number(stats, "input_tokens"),
            cached_input_tokens: number(stats, "cached"),
            output_tokens: number(stats, "output_tokens"),
            cost_usd: None,
        }));
    }
    let ended = match text(fields, "status") {
        Some("success") => Ended::Completed { text: None },
        status => {
            let message = fields.get("error").and_then(|error| error.get("message")).and_then(Value::as_str);
            let message = message.map(str::to_owned).or(error);
            Ended::Failed(message.unwrap_or_else(|| status.unwrap_or("the result has no status").to_owned()))
        }
    };
    out.send(EventKind::Ended(ended));
}
