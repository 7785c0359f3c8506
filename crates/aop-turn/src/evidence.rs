//! Pieces of evidence, as `aop turn judge --explain` lists them.

use crate::engine::words;
use serde::Serialize;
use std::ops::Range;

words! {
    /// What a piece of evidence is.
    EvidenceKind {
        /// What is known of the process, not of the stream.
        Process "process",
        /// The engine's own account of how the turn ended.
        TurnEnd "turn_end",
        /// A problem the engine reported.
        EngineError "engine_error",
        /// A line that could not be read.
        UnreadableLine "unreadable_line",
        /// The done marker, wherever it stands.
        DoneMarker "done_marker",
        /// An ask by tool, or a request for permission.
        NativeAsk "native_ask",
        /// An ask in one of the text dialects.
        AskPayload "ask_payload",
        /// A worker's `REQUEST` that is no ask.
        Request "request",
        /// The message as a JSON object, held against the output schema.
        Output "output",
        /// The message as such.
        Message "message",
    }
}

/// One piece of evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// What it is.
    pub kind: EvidenceKind,
    /// Where it stands in the transcript.
    #[serde(serialize_with = "as_pair")]
    pub range: Range<u64>,
    /// Whether it decided the outcome.
    pub counted: bool,
    /// Why it did or did not.
    pub why: String,
}

fn as_pair<S: serde::Serializer>(range: &Range<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    [range.start, range.end].serialize(serializer)
}
