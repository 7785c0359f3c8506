//! What is left of a turn once its stream is over: the last message, the asks that wait, how it ended.
//!
//! A transcript may be hundreds of megabytes; this keeps the running message and a bounded list of
//! sightings, nothing else.

use crate::engine::Engine;
use crate::evidence::{Evidence, EvidenceKind};
use crate::native::{NativeAsk, Stage};
use crate::quote::{excerpt, inline};
use crate::stream::{Author, Ended, Event, EventKind, Piece, StreamParser, Text, Usage};
use std::ops::Range;

/// A message beyond this keeps its end: that is where evidence stands.
const MAX_MESSAGE_BYTES: usize = 8 << 20;
/// Sightings beyond this tell nobody anything new.
const MAX_SIGHTINGS: usize = 100;

/// So many warnings of an engine are passed on.
const MAX_WARNINGS: usize = 8;

/// The main agent's last message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its words.
    pub text: String,
    /// The lines that carried it.
    pub range: Range<u64>,
    /// Its beginning was dropped for its length.
    pub cut: bool,
    id: Option<String>,
    /// Something came after it, so the next delta begins another message.
    closed: bool,
}

/// A native ask that has no answer in the stream.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingAsk {
    /// What is asked, and how far it has got.
    pub ask: NativeAsk,
    /// The line that carried it last.
    pub range: Range<u64>,
}

/// What is left of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// Whose turn it was.
    pub engine: Engine,
    /// The engine's handle for resuming.
    pub session: Option<String>,
    /// Tokens and money.
    pub usage: Option<Usage>,
    /// The main agent's last message.
    pub message: Option<Message>,
    /// Native asks without an answer.
    pub asks: Vec<PendingAsk>,
    /// How the turn ended; nothing if the stream stops before.
    pub ended: Option<(Ended, Range<u64>)>,
    /// The last problem the engine reported.
    pub error: Option<(String, Range<u64>)>,
    /// What else the engine wants to be known.
    pub warnings: Vec<String>,
    /// An unreadable line after the last message that may have been a later one.
    pub lost: Option<Range<u64>>,
    /// What was seen and is no evidence, for `--explain`.
    pub sightings: Vec<Evidence>,
    /// Where the stream ends.
    pub length: u64,
}

/// Reads a turn as its bytes come.
#[derive(Debug)]
pub struct TurnReader {
    parser: StreamParser,
    turn: Turn,
}

impl TurnReader {
    /// A reader at the beginning of a transcript.
    pub fn new(engine: Engine) -> Self {
        let turn = Turn {
            engine,
            session: None,
            usage: None,
            message: None,
            asks: Vec::new(),
            ended: None,
            error: None,
            warnings: Vec::new(),
            lost: None,
            sightings: Vec::new(),
            length: 0,
        };
        TurnReader { parser: StreamParser::new(engine), turn }
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.turn.length += bytes.len() as u64;
        let turn = &mut self.turn;
        self.parser.feed(bytes, &mut |event| turn.apply(event));
    }

    /// Takes the end of the stream.
    pub fn finish(self) -> Turn {
        let TurnReader { parser, mut turn } = self;
        parser.finish(&mut |event| turn.apply(event));
        turn
    }
}

impl Turn {
    fn apply(&mut self, event: Event) {
        let Event { range, kind } = event;
        match kind {
            EventKind::TurnStarted => {
                self.message_is_history("it belongs to an earlier turn");
                self.message = None;
                self.asks.clear();
                self.ended = None;
                self.error = None;
                self.warnings.clear();
                self.lost = None;
            }
            EventKind::Session(id) => self.session = Some(id),
            EventKind::Usage(usage) => self.usage = Some(usage),
            EventKind::Text(text) => self.text(text, range),
            EventKind::ToolCall(call) if call.author == Author::Main => self.tool_call(call.message, range),
            EventKind::ToolCall(_) => {}
            EventKind::Ask(ask) => self.ask(ask, range),
            EventKind::AskSettled { call_id } => {
                self.asks.retain(|pending| pending.ask.call_id != call_id);
                self.saw(EvidenceKind::NativeAsk, range, "it was answered or refused within the turn");
            }
            EventKind::Ended(ended) => self.ended = Some((ended, range)),
            EventKind::Error(message) => {
                self.saw(EvidenceKind::EngineError, range.clone(), "errors count by how the turn ends");
                self.error = Some((message, range));
            }
            EventKind::Warning(message) => {
                let message = inline(&excerpt(&message));
                if self.warnings.len() < MAX_WARNINGS && !self.warnings.contains(&message) {
                    self.warnings.push(message);
                }
            }
            EventKind::Malformed { may_be_message } | EventKind::Oversized { may_be_message } => {
                if may_be_message {
                    self.lost = Some(range.clone());
                }
                self.saw(EvidenceKind::UnreadableLine, range, "it could not be read");
            }
            EventKind::Other { mentions_marker: true } => {
                self.saw(EvidenceKind::DoneMarker, range, "it is not in a message of the main agent");
            }
            EventKind::Other { mentions_marker: false } => {}
        }
    }

    fn text(&mut self, text: Text, range: Range<u64>) {
        if text.author == Author::Sub {
            if text.text.contains(crate::MARKER) {
                self.saw(EvidenceKind::DoneMarker, range, "a sub-agent wrote it");
            }
            return;
        }
        self.lost = None;
        let continues = self.message.as_ref().is_some_and(|message| match text.piece {
            Piece::Delta => !message.closed,
            Piece::Whole => message.id.is_some() && message.id == text.message,
        });
        if !continues {
            self.new_message(text.message, range.clone());
        }
        let Some(message) = &mut self.message else { return };
        if text.piece == Piece::Whole && !message.text.is_empty() {
            message.text.push('\n');
        }
        // A text of its own ends itself; only its message id can join another one to it.
        message.closed = text.piece == Piece::Whole;
        message.text.push_str(&text.text);
        message.range.end = range.end;
        if message.text.len() > 2 * MAX_MESSAGE_BYTES {
            let mut cut = message.text.len() - MAX_MESSAGE_BYTES;
            while !message.text.is_char_boundary(cut) {
                cut += 1;
            }
            message.text.drain(..cut);
            message.cut = true;
        }
    }

    fn tool_call(&mut self, id: Option<String>, range: Range<u64>) {
        let same = self.message.as_ref().is_some_and(|message| id.is_none() || message.id == id);
        if !same && id.is_some() {
            self.lost = None;
            self.new_message(id, range);
        } else if let Some(message) = &mut self.message {
            message.closed = true;
        }
    }

    fn ask(&mut self, ask: NativeAsk, range: Range<u64>) {
        match self.asks.iter_mut().find(|pending| pending.ask.call_id == ask.call_id) {
            // The same call further on: the message it belongs to was known from the first time.
            Some(known) => {
                let message = ask.message.or_else(|| known.ask.message.take());
                *known = PendingAsk { ask: NativeAsk { message, ..ask }, range };
            }
            None => self.asks.push(PendingAsk { ask, range }),
        }
    }

    fn new_message(&mut self, id: Option<String>, range: Range<u64>) {
        self.message_is_history("it is in an earlier message");
        // What the model called and the engine never answered ends with the message; what waits, waits on.
        self.asks.retain(|pending| pending.ask.stage == Stage::Waiting);
        self.message = Some(Message { text: String::new(), range, cut: false, id, closed: false });
    }

    fn message_is_history(&mut self, why: &str) {
        if let Some(message) = &self.message
            && message.text.contains(crate::MARKER)
        {
            self.saw(EvidenceKind::DoneMarker, message.range.clone(), why);
        }
    }

    fn saw(&mut self, kind: EvidenceKind, range: Range<u64>, why: &str) {
        if self.sightings.len() < MAX_SIGHTINGS {
            self.sightings.push(Evidence { kind, range, counted: false, why: why.to_owned() });
        }
    }
}
