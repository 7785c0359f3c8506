//! Evidence to outcome, in one fixed order.
//!
//! 1. The engine failed: error.
//! 2. The done marker: final.
//! 3. An ask: a question.
//! 4. The whole message fits the output schema: final, with a warning.
//! 5. Otherwise the message is a question in prose.
//!
//! In auto mode 3 and 5 are errors. Strong evidence comes before asks and soft evidence after them: a question
//! taken for the result is the worst mistake this order can make.

mod engine_failure;

use crate::ask::{Ask, Payload, from_native, read_tail};
use crate::engine::{Engine, Mode};
use crate::evidence::{Evidence, EvidenceKind};
use crate::flat::project_back;
use crate::interaction::InteractionId;
use crate::native::{NativeAsk, Stage};
use crate::outcome::{
    ASK_LEFT_OUT, COMPLETED_WITHOUT_DONE_MARKER, ENGINE_WARNING, Outcome, TurnErrorCode,
    UNKNOWN_REQUEST_ACTION,
};
use crate::quote::{excerpt, inline};
use crate::stream::Ended;
use crate::tail::{Flaw, Tail, closing_object};
use crate::turn::{PendingAsk, Turn};
use aop_ask::is_blank;
use serde_json::{Map, Value};
use std::ops::Range;

/// Checks an instance against a schema: `Ok`, or every reason. Comes from outside, this crate validates
/// nothing itself.
pub type SchemaCheck<'a> = dyn Fn(&Value, &Value) -> Result<(), Vec<String>> + 'a;

/// What the result has to look like.
#[derive(Clone, Copy)]
pub struct OutputSchema<'a> {
    /// The schema.
    pub schema: &'a Value,
    /// Who checks.
    pub check: &'a SchemaCheck<'a>,
}

/// What is known of the process, beside what it wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Process {
    /// How it exited, where that is known; a signal counts as 128 plus its number.
    pub exit_code: Option<i32>,
    /// It was stopped because it took too long.
    pub timed_out: bool,
}

/// The rules of this turn.
#[derive(Clone, Copy)]
pub struct Rules<'a> {
    /// Whether a human may be asked.
    pub mode: Mode,
    /// Which attempt of the role in this phase it is, from 1.
    pub attempt: u32,
    /// The last attempt that may end without completion evidence is the one before this.
    pub max_attempt: u32,
    /// What the result has to look like, if anybody cares.
    pub schema: Option<OutputSchema<'a>>,
    /// What is known of the process.
    pub process: Process,
}

/// The outcome, and how it came about.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// What the turn came to.
    pub outcome: Outcome,
    /// What did not change the outcome and should be known.
    pub warnings: Vec<String>,
    /// Every piece of evidence, in the order of the transcript.
    pub evidence: Vec<Evidence>,
    /// Why an output, strong or soft, failed its schema. This is what a repair turn can repair.
    pub schema_reasons: Vec<String>,
}

/// Judges a turn. Total: every turn has exactly one outcome.
pub fn judge(turn: &Turn, rules: &Rules<'_>) -> Verdict {
    let mut judge = Judge {
        turn,
        rules,
        warnings: turn.warnings.iter().map(|warning| format!("{ENGINE_WARNING}: {warning}")).collect(),
        evidence: turn.sightings.clone(),
        schema_reasons: Vec::new(),
    };
    let outcome = judge.outcome();
    let Judge { warnings, mut evidence, schema_reasons, .. } = judge;
    evidence.sort_by_key(|piece| piece.range.start);
    Verdict { outcome, warnings, evidence, schema_reasons }
}

impl Verdict {
    /// What should be known where another question, recorded meanwhile, is the end of the turn in place of this one.
    pub fn beside_a_question(&self) -> Vec<String> {
        let Outcome::AskUser(ask) = &self.outcome else { return Vec::new() };
        let is_counted = |piece: &Evidence| piece.counted && piece.kind == EvidenceKind::AskPayload;
        let passed_over = self.evidence.iter().any(is_counted).then(|| in_text(ask));
        self.warnings.iter().cloned().chain(passed_over).collect()
    }
}

/// The warning that an ask in the text of a message is put to nobody.
fn in_text(ask: &Ask) -> String {
    let asked = inline(&excerpt(&ask.interaction.prompt));
    format!(
        "{ASK_LEFT_OUT}: \"{asked}\" (in the text) stands beside another question, which is put to a person"
    )
}

struct Judge<'a> {
    turn: &'a Turn,
    rules: &'a Rules<'a>,
    warnings: Vec<String>,
    evidence: Vec<Evidence>,
    schema_reasons: Vec<String>,
}

impl Judge<'_> {
    fn outcome(&mut self) -> Outcome {
        let (text, range) = self.message();
        let tail = self.tail(&text, &range);
        let payload = tail.as_ref().map_or(Payload::Other, |tail| read_tail(tail, self.rules.attempt));
        if let Some(failure) = self.engine_failure(&payload) {
            return failure;
        }
        match payload {
            // What an engine said before a question with which it broke off is not the result of the turn.
            Payload::Done(_) | Payload::Unreadable(_) if self.broke_off_waiting() => {}
            Payload::Done(data) => return self.strong(data, &range),
            Payload::Unreadable(why) => {
                return self.unfit(&range, "cannot be read as it was written", vec![why]);
            }
            Payload::Ask(_) | Payload::MalformedAsk(_) | Payload::UnknownRequest(_) | Payload::Other => {}
        }
        if let Some(outcome) = self.native_ask() {
            if let Outcome::AskUser(_) = outcome {
                self.pass_over(payload, &range);
            }
            return outcome;
        }
        if let Some(outcome) = self.payload_ask(payload, &range) {
            return outcome;
        }
        match tail.filter(|tail| tail.whole).and_then(|tail| self.soft(tail, &range)) {
            Some(outcome) => outcome,
            None => self.prose(text, range),
        }
    }

    /// The main agent's last message. The engine's own copy stands in where we could not read it.
    fn message(&self) -> (String, Range<u64>) {
        let end = self.turn.length;
        let message = self.turn.message.as_ref().filter(|message| !is_blank(&message.text));
        let copy = match &self.turn.ended {
            Some((Ended::Completed { text: Some(text) }, range)) if !is_blank(text) => Some((text, range)),
            _ => None,
        };
        match (message, copy) {
            (Some(message), _) if self.turn.lost.is_none() => (message.text.clone(), message.range.clone()),
            (_, Some((text, range))) => (text.clone(), range.clone()),
            (Some(message), None) => (message.text.clone(), message.range.clone()),
            (None, None) => (String::new(), end..end),
        }
    }

    fn tail(&mut self, text: &str, range: &Range<u64>) -> Option<Tail> {
        match closing_object(text) {
            Ok(mut tail) => {
                tail.whole &= !self.turn.message.as_ref().is_some_and(|message| message.cut);
                Some(tail)
            }
            Err(why) => {
                if text.contains(crate::MARKER) {
                    self.note(EvidenceKind::DoneMarker, range, false, why);
                }
                None
            }
        }
    }

    /// Step 2.
    fn strong(&mut self, data: Map<String, Value>, range: &Range<u64>) -> Outcome {
        match self.checked(data) {
            Ok(data) => {
                self.note(EvidenceKind::DoneMarker, range, true, "the last message ends with it");
                Outcome::Final { data }
            }
            Err(reasons) => self.unfit(range, "does not fit its schema", reasons),
        }
    }

    /// The work is done, and its result is none that could be taken.
    fn unfit(&mut self, range: &Range<u64>, how: &str, reasons: Vec<String>) -> Outcome {
        self.note(EvidenceKind::DoneMarker, range, true, &format!("the result beside it {how}"));
        let message = format!("the result {how}: {}", reasons.join("; "));
        self.schema_reasons = reasons;
        Outcome::Error { code: TurnErrorCode::OutputSchemaInvalid, message }
    }

    /// Step 3, by tool.
    fn native_ask(&mut self) -> Option<Outcome> {
        let pending: Vec<&PendingAsk> = self.pending_asks().collect();
        let range = pending.first()?.range.clone();
        let asks: Vec<&NativeAsk> = pending.iter().map(|pending| &pending.ask).collect();
        let ask = from_native(&asks, self.rules.attempt);
        Some(self.ask(EvidenceKind::NativeAsk, &range, ask))
    }

    /// Step 3, by text.
    fn payload_ask(&mut self, payload: Payload, range: &Range<u64>) -> Option<Outcome> {
        match payload {
            Payload::Ask(ask) => Some(self.ask(EvidenceKind::AskPayload, range, Ok(*ask))),
            Payload::MalformedAsk(reason) => Some(self.ask(EvidenceKind::AskPayload, range, Err(reason))),
            Payload::UnknownRequest(action) => {
                self.warnings.push(format!("{UNKNOWN_REQUEST_ACTION}: '{action}'"));
                self.note(EvidenceKind::Request, range, false, "nobody knows this action");
                None
            }
            Payload::Done(_) | Payload::Unreadable(_) | Payload::Other => None,
        }
    }

    /// What stands in the text of a message whose ask by tool counts.
    fn pass_over(&mut self, payload: Payload, range: &Range<u64>) {
        let asked = match payload {
            Payload::Ask(ask) => in_text(&ask),
            Payload::MalformedAsk(reason) => format!("{ASK_LEFT_OUT}: in the text: {reason}"),
            request @ Payload::UnknownRequest(_) => return drop(self.payload_ask(request, range)),
            Payload::Done(_) | Payload::Unreadable(_) | Payload::Other => return,
        };
        self.note(EvidenceKind::AskPayload, range, false, "it asks by tool as well, and that counts");
        self.warnings.push(asked);
    }

    fn ask(&mut self, kind: EvidenceKind, range: &Range<u64>, ask: Result<Ask, String>) -> Outcome {
        if self.rules.mode == Mode::Auto {
            self.note(kind, range, true, "it asks, and nobody is there in auto mode");
            let message = match &ask {
                Ok(ask) => format!("asked although nobody is there: {}", excerpt(&ask.interaction.prompt)),
                Err(reason) => format!("asked although nobody is there, and not even properly: {reason}"),
            };
            return Outcome::Error { code: TurnErrorCode::AutoModeAskedUser, message };
        }
        if let Some(limit) = self.at_limit() {
            self.note(kind, range, true, "it asks at the last attempt");
            return limit;
        }
        match ask {
            Ok(mut ask) => {
                self.note(kind, range, true, "it asks");
                self.warnings.append(&mut ask.warnings);
                Outcome::AskUser(Box::new(ask))
            }
            Err(reason) => {
                self.note(kind, range, true, &reason);
                Outcome::Error { code: TurnErrorCode::AskUserPayloadInvalid, message: reason }
            }
        }
    }

    /// Step 4.
    fn soft(&mut self, tail: Tail, range: &Range<u64>) -> Option<Outcome> {
        self.rules.schema?;
        let checked = match tail.flaw {
            Some(Flaw { why, .. }) => Err(vec![why]),
            None => self.checked(tail.object),
        };
        match checked {
            Ok(data) => {
                self.note(EvidenceKind::Output, range, true, "the whole message fits the output schema");
                // In auto mode nothing else was to be expected, so there is nothing to warn of.
                if self.rules.mode == Mode::Interactive {
                    self.warnings.push(COMPLETED_WITHOUT_DONE_MARKER.to_owned());
                }
                Some(Outcome::Final { data })
            }
            Err(reasons) => {
                let counted = self.rules.mode == Mode::Auto;
                self.note(EvidenceKind::Output, range, counted, "the message fails the output schema");
                let message = format!("the result does not fit its schema: {}", reasons.join("; "));
                self.schema_reasons = reasons;
                counted.then_some(Outcome::Error { code: TurnErrorCode::OutputSchemaInvalid, message })
            }
        }
    }

    /// Step 5.
    fn prose(&mut self, text: String, range: Range<u64>) -> Outcome {
        if self.rules.mode == Mode::Auto {
            self.note(EvidenceKind::Message, &range, true, "it does not say that the work is done");
            let message = "the turn ended without a result".to_owned();
            return Outcome::Error { code: TurnErrorCode::AutoCompletionEvidenceMissing, message };
        }
        if let Some(limit) = self.at_limit() {
            self.note(EvidenceKind::Message, &range, true, "no completion evidence at the last attempt");
            return limit;
        }
        if is_blank(&text) {
            self.note(EvidenceKind::Message, &range, true, "there is no message that could be a question");
            let message = "the engine ended its turn without a message".to_owned();
            return Outcome::Error { code: TurnErrorCode::EngineFailed, message };
        }
        self.note(EvidenceKind::Message, &range, true, "it is taken as a question in prose");
        let attempt = self.rules.attempt;
        let prompt = text.trim().to_owned();
        Outcome::AskUser(Box::new(Ask::open(InteractionId::Number(u64::from(attempt)), attempt, prompt)))
    }

    /// Asks that nobody answered: those the engine waits with, and, once the turn has ended, those of its
    /// last message.
    fn pending_asks(&self) -> impl Iterator<Item = &PendingAsk> {
        let has_ended = self.turn.ended.is_some();
        self.turn.asks.iter().filter(move |pending| match pending.ask.stage {
            Stage::Waiting => true,
            Stage::Called | Stage::NotWaiting => has_ended,
        })
    }

    fn at_limit(&self) -> Option<Outcome> {
        let Rules { attempt, max_attempt, .. } = *self.rules;
        (attempt >= max_attempt).then(|| Outcome::Error {
            code: TurnErrorCode::InteractiveMaxAttemptExceeded,
            message: format!("attempt {attempt} of {max_attempt} ended without completion evidence"),
        })
    }

    /// The result, when it fits. Codex's structured output has every optional field as `null`; that form is
    /// taken back before it is given up.
    fn checked(&self, object: Map<String, Value>) -> Result<Map<String, Value>, Vec<String>> {
        let Some(OutputSchema { schema, check }) = self.rules.schema else { return Ok(object) };
        let reasons = match check(schema, &Value::Object(object.clone())) {
            Ok(()) => return Ok(object),
            Err(reasons) => reasons,
        };
        if self.turn.engine == Engine::Codex {
            let projected = project_back(schema, &object);
            if projected != object && check(schema, &Value::Object(projected.clone())).is_ok() {
                return Ok(projected);
            }
        }
        Err(reasons)
    }

    fn note(&mut self, kind: EvidenceKind, range: &Range<u64>, counted: bool, why: &str) {
        self.evidence.push(Evidence { kind, range: range.clone(), counted, why: why.to_owned() });
    }
}
