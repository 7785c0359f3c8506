//! What a stream is made of, once the differences between engines are gone.

use crate::native::NativeAsk;
use serde_json::Value;
use std::ops::Range;

/// One thing an engine said or did, and where in the raw transcript it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Bytes of the transcript: the line (without its end) that carried the event.
    pub range: Range<u64>,
    /// What happened.
    pub kind: EventKind,
}

/// The kinds of event.
#[derive(Debug, Clone, PartialEq)]
pub enum EventKind {
    /// A new turn begins. What was said before is history.
    TurnStarted,
    /// The engine's own name for this conversation, with which it can be resumed.
    Session(String),
    /// Something an agent wrote.
    Text(Text),
    /// An agent uses a tool.
    ToolCall(ToolCall),
    /// An agent asks through a tool, or the engine asks for permission.
    Ask(NativeAsk),
    /// A question asked before got an answer, or was refused; either way it no longer waits.
    AskSettled {
        /// The call that was asked by.
        call_id: String,
    },
    /// Tokens and money.
    Usage(Usage),
    /// The turn is over.
    Ended(Ended),
    /// The engine reports a problem. Whether it is fatal shows only in how the turn ends.
    Error(String),
    /// The engine reports something that is no problem of its own, and that people should know.
    Warning(String),
    /// A line that looked relevant and could not be read.
    Malformed {
        /// It begins like an object, so it may have been a message of the main agent.
        may_be_message: bool,
    },
    /// A line too long to keep.
    Oversized {
        /// It may have been a message of the main agent.
        may_be_message: bool,
    },
    /// Anything else. Kept as a range, never interpreted.
    Other {
        /// The done marker's name occurs in it, which `--explain` mentions.
        mentions_marker: bool,
    },
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    /// The agent that was given the task.
    Main,
    /// An agent that the main agent started. Its words are no evidence.
    Sub,
}

/// How a text relates to the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// A text of its own (engines that number their messages may still join several).
    Whole,
    /// Continues the running message.
    Delta,
}

/// Something an agent wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// Who wrote it.
    pub author: Author,
    /// The engine's id of the message it belongs to, where it has one.
    pub message: Option<String>,
    /// Whether it continues the running message.
    pub piece: Piece,
    /// The words.
    pub text: String,
}

/// An agent uses a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// Who uses it.
    pub author: Author,
    /// The engine's id of the message it belongs to, where it has one.
    pub message: Option<String>,
    /// The engine's id of the call.
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// What it was called with.
    pub input: Value,
}

/// What a number of tokens or an amount of money covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Covers {
    /// This turn alone.
    Turn,
    /// The whole conversation so far.
    Session,
}

/// Tokens and money, as far as the engine tells.
#[derive(Debug, Clone, PartialEq)]
pub struct Usage {
    /// What the counts cover.
    pub covers: Covers,
    /// Tokens read.
    pub input_tokens: u64,
    /// Of these, tokens that came from a cache.
    pub cached_input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// US dollars for the whole conversation, where the engine counts them.
    pub cost_usd: Option<f64>,
}

/// How a turn ended, by the engine's own account.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// It came to its end.
    Completed {
        /// The final text, where the engine repeats it.
        text: Option<String>,
    },
    /// It failed, for this reason.
    Failed(String),
}
