//! The scripted engine: a process of ours that plays a scenario. Its lines say what they are and nothing else.

use super::codex::tool_call;
use super::{Author, Ended, EventKind, LineFormat, Out, Piece, Text, text};
use crate::native::{NativeAsk, Stage, read_ask};
use serde_json::{Map, Value};

pub(super) const WORDS: &[&str] = &["started", "said", "ask", "settled", "wrote", "ended", "failed"];

/// Nothing has to be remembered between lines.
#[derive(Debug, Default)]
pub(super) struct Scripted;

impl LineFormat for Scripted {
    fn open_calls(&self) -> &[String] {
        &[]
    }

    fn object(&mut self, fields: &Map<String, Value>, out: &mut Out<'_, '_>) {
        let call_id = || text(fields, "call_id").unwrap_or_default().to_owned();
        match text(fields, "type") {
            Some("started") => {
                out.send(EventKind::TurnStarted);
                if let Some(session) = text(fields, "session") {
                    out.send(EventKind::Session(session.to_owned()));
                }
            }
            Some("said") => out.send(EventKind::Text(Text {
                author: Author::Main,
                message: None,
                piece: Piece::Whole,
                text: text(fields, "text").unwrap_or_default().to_owned(),
            })),
            Some("ask") => {
                let body = read_ask(&Value::Object(fields.clone()));
                let (call_id, stage) = (call_id(), Stage::Waiting);
                out.send(EventKind::Ask(NativeAsk { call_id, message: None, stage, body }));
            }
            Some("settled") => out.send(EventKind::AskSettled { call_id: call_id() }),
            Some("wrote") => {
                let path = fields.get("path").cloned().unwrap_or_default();
                out.send(tool_call(call_id(), "write".to_owned(), path));
            }
            Some("ended") => out.send(EventKind::Ended(Ended::Completed { text: None })),
            Some("failed") => {
                let reason = text(fields, "message").unwrap_or("the scenario fails here");
                out.send(EventKind::Ended(Ended::Failed(reason.to_owned())));
            }
            _ => {}
        }
    }
}
