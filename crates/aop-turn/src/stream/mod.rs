//! Engine output to events, byte by byte as it comes.
//!
//! A parser takes any bytes in any portions, never fails and never panics; the same bytes give the same
//! events however they are cut. Lines that cannot matter are recognised by what they do not contain and
//! are never parsed: most of a transcript is tool output.

mod claude;
mod codex;
mod codex_app;
mod event;
mod gemini;
mod iflow;
mod json_line;
mod lines;
mod relevance;
mod scripted;

pub use event::{Author, Covers, Ended, Event, EventKind, Piece, Text, ToolCall, Usage};

use crate::engine::Engine;
use lines::{Line, LineSplitter};
use relevance::Relevance;
use serde_json::{Map, Value};
use std::ops::Range;

/// Where events go.
pub type Sink<'a> = dyn FnMut(Event) + 'a;

/// Reads one engine's output.
#[derive(Debug)]
pub struct StreamParser {
    splitter: LineSplitter,
    dialect: Dialect,
}

#[derive(Debug)]
enum Dialect {
    Claude(Relevance, claude::Claude),
    Codex(Relevance, codex::Codex),
    Gemini(Relevance, gemini::Gemini),
    Iflow(iflow::Iflow),
    Scripted(Relevance, scripted::Scripted),
}

/// What the line formats have in common: an object per line, some of them worth reading.
trait LineFormat {
    /// Calls that asked and have no answer yet. A line that names one is always read.
    fn open_calls(&self) -> &[String];
    /// Reads one object. Whatever it does not know it reports as nothing, and the caller keeps the range.
    fn object(&mut self, fields: &Map<String, Value>, out: &mut Out<'_, '_>);
}

/// Sends the events of one line, all with the line's range.
struct Out<'a, 'b> {
    range: Range<u64>,
    sink: &'a mut Sink<'b>,
    sent: bool,
}

impl Out<'_, '_> {
    fn send(&mut self, kind: EventKind) {
        self.sent = true;
        (self.sink)(Event { range: self.range.clone(), kind });
    }
}

impl StreamParser {
    /// A parser at the beginning of a stream.
    pub fn new(engine: Engine) -> Self {
        let dialect = match engine {
            Engine::ClaudeCode => Dialect::Claude(Relevance::new(claude::WORDS), claude::Claude::default()),
            Engine::Codex => Dialect::Codex(Relevance::new(codex::WORDS), codex::Codex::default()),
            Engine::Gemini => Dialect::Gemini(Relevance::new(gemini::WORDS), gemini::Gemini::default()),
            Engine::Iflow => Dialect::Iflow(iflow::Iflow::default()),
            Engine::Scripted => Dialect::Scripted(Relevance::new(scripted::WORDS), scripted::Scripted),
        };
        StreamParser { splitter: LineSplitter::default(), dialect }
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut Sink<'_>) {
        let dialect = &mut self.dialect;
        self.splitter.feed(bytes, |line| dialect.line(line, sink));
    }

    /// Takes the end of the stream.
    pub fn finish(mut self, sink: &mut Sink<'_>) {
        let dialect = &mut self.dialect;
        self.splitter.finish(|line| dialect.line(line, sink));
        match &mut self.dialect {
            Dialect::Iflow(iflow) => iflow.finish(sink),
            Dialect::Claude(..) | Dialect::Codex(..) | Dialect::Gemini(..) | Dialect::Scripted(..) => {}
        }
    }
}

impl Dialect {
    fn line(&mut self, line: Line<'_>, sink: &mut Sink<'_>) {
        match self {
            Dialect::Claude(relevance, format) => json_line(relevance, format, line, sink),
            Dialect::Codex(relevance, format) => json_line(relevance, format, line, sink),
            Dialect::Gemini(relevance, format) => json_line(relevance, format, line, sink),
            Dialect::Iflow(iflow) => iflow.line(line, sink),
            Dialect::Scripted(relevance, format) => json_line(relevance, format, line, sink),
        }
    }
}

fn json_line(relevance: &Relevance, format: &mut impl LineFormat, line: Line<'_>, sink: &mut Sink<'_>) {
    let Line { range, bytes, oversized } = line;
    if bytes.is_empty() {
        return;
    }
    let relevant = relevance.is_relevant(bytes, format.open_calls());
    if oversized {
        return sink(Event { range, kind: EventKind::Oversized { may_be_message: relevant } });
    }
    if !relevant {
        let mentions_marker = relevance.mentions_marker(bytes);
        return sink(Event { range, kind: EventKind::Other { mentions_marker } });
    }
    match json_line::parse_object(bytes) {
        Some(fields) => {
            let mut out = Out { range, sink, sent: false };
            format.object(&fields, &mut out);
            if !out.sent {
                out.send(EventKind::Other { mentions_marker: relevance.mentions_marker(bytes) });
            }
        }
        None => {
            let may_be_message = json_line::trim(bytes).starts_with(b"{");
            sink(Event { range, kind: EventKind::Malformed { may_be_message } });
        }
    }
}

fn text<'a>(fields: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    fields.get(key).and_then(Value::as_str)
}

fn number(value: &Value, key: &str) -> u64 {
    value.get(key).and_then(Value::as_u64).unwrap_or(0)
}
