//! The answer record: the answers with who gave them and when, checked against the spec they answer.

use super::{Answers, check, time};
use crate::json;
use crate::spec::QuestionSpec;
use crate::spec::read::{member, text};
use crate::violation::{Report, Violation, close, show, unsaid};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

const KEYS: [&str; 5] = ["version", "topic", "answers", "answered_at", "answered_by"];

/// A complete, valid answer to a spec.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerSpec {
    version: u64,
    topic: String,
    answers: Answers,
    answered_at: String,
    answered_by: String,
    comments: Map<String, Value>,
}

impl AnswerSpec {
    /// Makes a record from answers that fit `spec`.
    ///
    /// # Errors
    /// The time is no RFC 3339 time with a zone, the name is blank, or the answers fit another spec.
    pub fn new(
        spec: &QuestionSpec,
        answers: &Answers,
        answered_at: &str,
        answered_by: &str,
    ) -> Result<Self, Vec<Violation>> {
        AnswerSpec::from_json(
            spec,
            &json!({
                "version": spec.version(), "topic": spec.topic(), "answers": answers,
                "answered_at": answered_at, "answered_by": answered_by,
            }),
        )
    }

    /// Reads a record from the bytes of a document.
    ///
    /// # Errors
    /// Every rule the document breaks.
    pub fn parse(spec: &QuestionSpec, bytes: &[u8]) -> Result<Self, Vec<Violation>> {
        let (document, mut report) = json::read_noting(bytes)?;
        let record = record(&mut report, spec, &document);
        report.finish(record)
    }

    /// Reads a record from a JSON value.
    ///
    /// # Errors
    /// Every rule the document breaks.
    pub fn from_json(spec: &QuestionSpec, value: &Value) -> Result<Self, Vec<Violation>> {
        json::check_depth(value)?;
        let mut report = Report::default();
        let record = record(&mut report, spec, value);
        report.finish(record)
    }

    /// The record as a document; keys in the order of the format, comments last.
    pub fn to_json(&self) -> Value {
        let mut value = json!({
            "version": self.version, "topic": self.topic, "answers": self.answers,
            "answered_at": self.answered_at, "answered_by": self.answered_by,
        });
        if let Some(map) = value.as_object_mut() {
            map.extend(self.comments.clone());
        }
        value
    }

    /// What was answered.
    pub fn answers(&self) -> &Answers {
        &self.answers
    }

    /// The version of the spec that was answered.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The topic of the spec that was answered.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// When, as RFC 3339.
    pub fn answered_at(&self) -> &str {
        &self.answered_at
    }

    /// By whom.
    pub fn answered_by(&self) -> &str {
        &self.answered_by
    }
}

impl Serialize for AnswerSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

fn record(report: &mut Report, spec: &QuestionSpec, value: &Value) -> Option<AnswerSpec> {
    let Some(map) = value.as_object() else {
        // It may be the answer to the one question that is secret.
        let found = if spec.has_secret() { unsaid(value) } else { show(value) };
        let message = format!("an answer record must be an object, but this is {found}");
        report.add("wrong_type", "", message, "write a JSON object: { … }");
        return None;
    };
    close(report, "", map, &KEYS);
    same(report, map, "version", &json!(spec.version()));
    same(report, map, "topic", &json!(spec.topic()));
    let answers = member(report, "", map, "answers").map(|value| check::answers(spec, "/answers", value));
    let answers = match answers {
        Some(Ok(answers)) => Some(answers),
        Some(Err(violations)) => {
            report.extend(violations);
            None
        }
        None => None,
    };
    let answered_at = text(report, "", map, "answered_at");
    if let Some(Err(reason)) = answered_at.as_deref().map(time::check) {
        report.add(
            "invalid_time",
            "/answered_at",
            format!("answered_at is {}: {reason}", show(&map["answered_at"])),
            "write an RFC 3339 time with a zone, for instance 2026-03-04T22:00:00.000Z",
        );
    }
    let answered_by = text(report, "", map, "answered_by");
    Some(AnswerSpec {
        version: spec.version(),
        topic: spec.topic().to_owned(),
        answers: answers?,
        answered_at: answered_at?,
        answered_by: answered_by?,
        comments: map
            .iter()
            .filter(|(key, _)| key.starts_with('_'))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect(),
    })
}

/// Notes when a member that is copied from the spec differs from it.
fn same(report: &mut Report, map: &Map<String, Value>, key: &'static str, wanted: &Value) {
    let Some(found) = member(report, "", map, key) else { return };
    if found != wanted {
        report.add(
            "spec_mismatch",
            &format!("/{key}"),
            format!("{key} is {}, but the spec's is {}", show(found), show(wanted)),
            "copy it from the spec, or check against the spec that was really asked",
        );
    }
}
