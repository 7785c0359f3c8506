//! iFlow, `-p`: plain text, and at its end an `<Execution Info>` block with session and usage.
//!
//! The text may quote such a block, so one counts only when nothing but blanks follows it. Until that is
//! known it is held back.

use super::json_line::{parse_object, trim};
use super::lines::Line;
use super::{Author, Covers, Ended, Event, EventKind, Piece, Sink, Text, Usage, number, text};
use serde_json::Value;
use std::ops::Range;

const OPEN: &[u8] = b"<Execution Info>";
const CLOSE: &[u8] = b"</Execution Info>";
/// A block is a few hundred bytes; what grows beyond this is text.
const MAX_BLOCK_BYTES: usize = 64 << 10;

/// The block that may turn out to be the end.
#[derive(Debug, Default)]
pub(super) struct Iflow {
    held: Vec<u8>,
    held_range: Range<u64>,
}

impl Iflow {
    pub(super) fn line(&mut self, line: Line<'_>, sink: &mut Sink<'_>) {
        let Line { range, bytes, oversized } = line;
        if oversized {
            self.release(sink);
            return sink(Event { range, kind: EventKind::Oversized { may_be_message: true } });
        }
        // Most lines have no angle bracket at all, and looking for one byte is cheap.
        let opening = memchr::memchr(b'<', bytes).and_then(|_| memchr::memmem::rfind(bytes, OPEN));
        if !self.held.is_empty() && (opening.is_some() || (self.is_closed() && !trim(bytes).is_empty())) {
            self.release(sink);
        }
        match opening {
            Some(start) => {
                let (before, block) = bytes.split_at(start);
                let middle = range.start + start as u64;
                if !before.is_empty() {
                    write(before, "", range.start..middle, sink);
                }
                self.held_range = middle..range.end;
                self.hold(block, range.end, sink);
            }
            None if self.held.is_empty() => write(bytes, "\n", range, sink),
            None => self.hold(bytes, range.end, sink),
        }
    }

    /// Decides whether what was held back is the block.
    pub(super) fn finish(&mut self, sink: &mut Sink<'_>) {
        let range = self.held_range.clone();
        let block = trim(&self.held);
        let Some(inner) = block.strip_prefix(OPEN) else { return };
        let Some(info) = inner.strip_suffix(CLOSE).and_then(parse_object) else {
            // Opened and never properly closed: the stream broke off in the block.
            return sink(Event { range, kind: EventKind::Malformed { may_be_message: true } });
        };
        let mut send = |kind| sink(Event { range: range.clone(), kind });
        if let Some(id) = text(&info, "session-id") {
            send(EventKind::Session(id.to_owned()));
        }
        if let Some(usage) = info.get("tokenUsage") {
            let tokens = |names: [&str; 2]| names.iter().map(|name| number(usage, name)).find(|n| *n > 0);
            send(EventKind::Usage(Usage {
                covers: Covers::Turn,
                input_tokens: tokens(["input", "inputTokens"]).unwrap_or(0),
                cached_input_tokens: 0,
                output_tokens: tokens(["output", "outputTokens"]).unwrap_or(0),
                cost_usd: None,
            }));
        }
        send(match info.get("error").filter(|error| !error.is_null()) {
            Some(Value::String(message)) => EventKind::Ended(Ended::Failed(message.clone())),
            Some(other) => EventKind::Ended(Ended::Failed(other.to_string())),
            None => EventKind::Ended(Ended::Completed { text: None }),
        });
    }

    fn is_closed(&self) -> bool {
        memchr::memmem::find(&self.held, CLOSE).is_some()
    }

    fn hold(&mut self, bytes: &[u8], end: u64, sink: &mut Sink<'_>) {
        self.held.extend_from_slice(bytes);
        self.held.push(b'\n');
        self.held_range.end = end;
        if self.held.len() > MAX_BLOCK_BYTES {
            self.release(sink);
        }
    }

    fn release(&mut self, sink: &mut Sink<'_>) {
        if !self.held.is_empty() {
            write(&self.held, "", self.held_range.clone(), sink);
            self.held.clear();
        }
    }
}

fn write(bytes: &[u8], end: &str, range: Range<u64>, sink: &mut Sink<'_>) {
    let mut text = String::with_capacity(bytes.len() + end.len());
    text.push_str(&String::from_utf8_lossy(bytes));
    text.push_str(end);
    if text.contains('\0') {
        text = text.replace('\0', "");
    }
    let kind = EventKind::Text(Text { author: Author::Main, message: None, piece: Piece::Delta, text });
    sink(Event { range, kind });
}
