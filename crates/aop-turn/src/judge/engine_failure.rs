//! Step 1: did the engine fail? A turn that broke off has no meaning, whatever its last words are.
//!
//! An engine that waits with a question has not failed: it is killed or leaves while it waits, because that is
//! how it is parked.

use super::{Judge, Process};
use crate::ask::Payload;
use crate::engine::Engine;
use crate::evidence::EvidenceKind;
use crate::native::Stage;
use crate::outcome::{EXECUTION_INFO_MISSING, Outcome, TurnErrorCode};
use crate::stream::Ended;

impl Judge<'_> {
    pub(super) fn engine_failure(&mut self, payload: &Payload) -> Option<Outcome> {
        let turn = self.turn;
        let end = turn.length..turn.length;
        if let Some((Ended::Failed(reason), range)) = &turn.ended {
            self.note(EvidenceKind::TurnEnd, range, true, "the engine reports a failure");
            return Some(failed(format!("the engine failed: {reason}")));
        }
        if self.waits() {
            if self.rules.process != Process::default() && self.broke_off_waiting() {
                self.note(EvidenceKind::Process, &end, false, "it waited with a question");
            }
            return None;
        }
        if self.rules.process.timed_out {
            self.note(EvidenceKind::Process, &end, true, "the process took too long");
            let message = cut(format!("the engine did not finish in time{}", self.reason()));
            return Some(Outcome::Error { code: TurnErrorCode::EngineTimeout, message });
        }
        if let Some(code) = self.rules.process.exit_code.filter(|code| *code != 0) {
            self.note(EvidenceKind::Process, &end, true, "the process did not exit with 0");
            return Some(failed(format!("the engine exited with {code}{}", self.reason())));
        }
        match &turn.ended {
            Some((_, range)) => {
                self.note(EvidenceKind::TurnEnd, range, false, "the engine reports the end of the turn");
                self.given_up().or_else(|| self.lost_message())
            }
            None => self.without_end(payload),
        }
    }

    /// Whether the engine waits with a question.
    fn waits(&self) -> bool {
        self.turn.asks.iter().any(|pending| pending.ask.stage == Stage::Waiting)
    }

    /// Whether the turn was cut off, in whatever way, while the engine waited with a question.
    pub(super) fn broke_off_waiting(&self) -> bool {
        let process = self.rules.process;
        let failed = process.timed_out || process.exit_code.is_some_and(|code| code != 0);
        self.waits() && (failed || self.turn.ended.is_none())
    }

    /// What the engine said of it, to be put behind something.
    fn reason(&self) -> String {
        self.turn.error.as_ref().map(|(reason, _)| format!(": {reason}")).unwrap_or_default()
    }

    fn without_end(&mut self, payload: &Payload) -> Option<Outcome> {
        let turn = self.turn;
        if let Some((reason, range)) = &turn.error {
            self.note(EvidenceKind::EngineError, range, true, "the stream stops after it");
            return Some(failed(format!("the engine failed: {reason}")));
        }
        // iFlow's text has no frame but the block at its end. A text that closes with a payload, or a process
        // that is known to have exited well, is complete without it.
        let is_complete = self.rules.process.exit_code == Some(0) || *payload != Payload::Other;
        if turn.engine == Engine::Iflow && is_complete && turn.lost.is_none() {
            self.warnings.push(EXECUTION_INFO_MISSING.to_owned());
            return None;
        }
        let end = turn.length..turn.length;
        self.note(EvidenceKind::TurnEnd, &end, true, "the stream stops before the end of the turn");
        let message = match turn.length {
            0 => "the engine wrote nothing".to_owned(),
            length => format!("the stream stops after {length} bytes, before the end of the turn"),
        };
        Some(Outcome::Error { code: TurnErrorCode::EngineStreamTruncated, message })
    }

    /// Gemini CLI reports success also of a turn that it breaks off itself, as at its limit of turns in a session. An error
    /// after which the model said something was none that ended it.
    fn given_up(&mut self) -> Option<Outcome> {
        let turn = self.turn;
        let (reason, range) = turn.error.as_ref().filter(|_| turn.engine == Engine::Gemini)?;
        if turn.message.as_ref().is_some_and(|message| message.range.end > range.start) {
            return None;
        }
        self.note(EvidenceKind::EngineError, range, true, "the model said nothing after it");
        Some(failed(format!("the engine failed: {reason}")))
    }

    /// A line after the last message that we read may have been a later one. Judging the earlier one in its
    /// place could take an old result for the new one; the engine's own copy of the text avoids that.
    fn lost_message(&mut self) -> Option<Outcome> {
        let range = self.turn.lost.clone()?;
        if let Some((Ended::Completed { text: Some(text) }, _)) = &self.turn.ended
            && !text.trim().is_empty()
        {
            return None;
        }
        self.note(EvidenceKind::UnreadableLine, &range, true, "it may have been the last message");
        let message =
            format!("bytes {} to {} may hold the last message and cannot be read", range.start, range.end);
        Some(Outcome::Error { code: TurnErrorCode::EngineStreamTruncated, message })
    }
}

fn failed(message: String) -> Outcome {
    Outcome::Error { code: TurnErrorCode::EngineFailed, message: cut(message) }
}

/// An error can be a page of some server in between, and people and the next turn are to read it: of more than this the
/// middle is left to the transcript.
const LONGEST: usize = 4_000;

fn cut(message: String) -> String {
    let length = message.chars().count();
    if length <= LONGEST {
        return message;
    }
    let part = |from: usize, count: usize| message.chars().skip(from).take(count).collect::<String>();
    let tail = LONGEST / 4;
    format!("{} […] {}", part(0, LONGEST - tail), part(length - tail, tail))
}
