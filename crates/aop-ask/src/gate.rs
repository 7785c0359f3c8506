//! Gates: an instruction packet may carry a spec, and then its step is blocked until a valid answer record
//! stands at the packet's `answer_path`.
//!
//! What a packet says and what a record at that place means is decided here. Reading files and resolving
//! symlinks is the caller's part; [`answer_path`] only refuses what no file system could make safe.

use crate::answer::AnswerSpec;
use crate::json;
use crate::spec::QuestionSpec;
use crate::spec::read::{object, text};
use crate::violation::{Report, Violation, quote};
use serde_json::Value;

/// File systems take 255 bytes; the record is first written under a somewhat longer name beside its own.
const LONGEST_NAME: usize = 240;

/// An instruction packet, as far as it concerns asking. Its other keys are somebody else's.
#[derive(Debug, Clone, PartialEq)]
pub struct Packet {
    gate: Option<Gate>,
}

/// What a packet demands before its step may start.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    /// What is asked.
    pub spec: QuestionSpec,
    /// Where the answer record has to stand, relative to the project's root.
    pub answer_path: String,
}

/// Whether a step may start.
#[derive(Debug, Clone, PartialEq)]
pub enum GateState {
    /// Nothing is asked.
    None,
    /// A valid record stands there.
    Open(Box<AnswerSpec>),
    /// No record stands there.
    Missing,
    /// Something stands there, but no valid record. It is reported and left alone.
    Invalid(Vec<Violation>),
}

impl Packet {
    /// Reads a packet from the bytes of a document.
    ///
    /// # Errors
    /// Every rule the packet, or the spec in it, breaks.
    pub fn parse(bytes: &[u8]) -> Result<Self, Vec<Violation>> {
        let (document, mut report) = json::read_noting(bytes)?;
        let gate = gate(&mut report, &document);
        report.finish(gate.map(|gate| Packet { gate }))
    }

    /// Reads a packet from a JSON value.
    ///
    /// # Errors
    /// Every rule the packet, or the spec in it, breaks.
    pub fn from_json(value: &Value) -> Result<Self, Vec<Violation>> {
        let mut report = Report::default();
        let gate = gate(&mut report, value);
        report.finish(gate.map(|gate| Packet { gate }))
    }

    /// What the packet demands, if anything.
    pub fn gate(&self) -> Option<&Gate> {
        self.gate.as_ref()
    }

    /// Judges the gate by the bytes at its `answer_path`; `None` when nothing stands there.
    pub fn judge(&self, record: Option<&[u8]>) -> GateState {
        match (&self.gate, record) {
            (None, _) => GateState::None,
            (Some(_), None) => GateState::Missing,
            (Some(gate), Some(bytes)) => match AnswerSpec::parse(&gate.spec, bytes) {
                Ok(record) => GateState::Open(Box::new(record)),
                Err(violations) => GateState::Invalid(violations),
            },
        }
    }
}

/// The gate, as `Some(None)` when the packet asks nothing.
#[expect(clippy::option_option, reason = "the outer level says whether the packet is sound")]
fn gate(report: &mut Report, value: &Value) -> Option<Option<Gate>> {
    let map = object(report, "", value, "an instruction packet")?;
    let spec = map.get("novel_ask").map(|value| {
        QuestionSpec::from_json(value).map_err(|violations| {
            let below = |v: Violation| Violation { path: format!("/novel_ask{}", v.path), ..v };
            report.extend(violations.into_iter().map(below).collect());
        })
    });
    let path = map.contains_key("answer_path").then(|| {
        let path = text(report, "", map, "answer_path")?;
        match answer_path(&path) {
            Ok(_) => Some(path),
            Err(reason) => {
                let hint = "name a file below the project's root, outside .aop/";
                let message = format!("answer_path is {}: {reason}", quote(&path));
                report.add("unsafe_path", "/answer_path", message, hint);
                None
            }
        }
    });
    match (spec, path) {
        (None, None) => Some(None),
        (Some(spec), Some(path)) => Some(Some(Gate { spec: spec.ok()?, answer_path: path? })),
        (Some(_), None) => {
            let hint = "add \"answer_path\": where the answer record is to be written";
            report.add("missing_key", "/answer_path", "novel_ask comes without answer_path", hint);
            None
        }
        (None, Some(_)) => {
            let hint = "add \"novel_ask\": the question spec, or remove answer_path";
            report.add("missing_key", "/novel_ask", "answer_path comes without novel_ask", hint);
            None
        }
    }
}

/// The components of an answer path with `.` and `..` resolved on paper.
///
/// # Errors
/// Why no project could hold a record there.
pub fn answer_path(path: &str) -> Result<Vec<&str>, &'static str> {
    // A backslash separates on some systems and not on others, so it is never a part of a safe name.
    if path.contains(['\0', '\\']) {
        return Err("it holds a character that no file name should");
    }
    if path.starts_with('/') || path.chars().nth(1) == Some(':') {
        return Err("it is absolute");
    }
    if path.ends_with('/') {
        return Err("it names a folder");
    }
    if path.split('/').any(|part| part.len() > LONGEST_NAME) {
        return Err("a name in it is longer than 240 bytes");
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop().ok_or("it leaves the project")?;
            }
            name => parts.push(name),
        }
    }
    match parts.first() {
        None => Err("it names no file"),
        Some(first) if first.eq_ignore_ascii_case(".aop") => Err("it is inside .aop/"),
        Some(_) if matches!(path.rsplit('/').next(), Some("." | "..")) => Err("it names a folder"),
        Some(_) => Ok(parts),
    }
}
