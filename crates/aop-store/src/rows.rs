//! What a change looks like as rows, and rows as records again: the part of every database that is the same.

use crate::error::StoreError;
use aop_kernel::event::{Event, Recorded, Snapshot, Stamped};
use aop_kernel::feature::Feature;
use aop_kernel::ids::{FeatureId, QuestionId};
use aop_kernel::lifecycle::Secret;
use aop_kernel::question::{Question, QuestionState};
use aop_kernel::time::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;

/// A row of the log of events, together with its line in words.
#[derive(Debug, Clone)]
pub(crate) struct EventRow {
    pub(crate) seq: i64,
    pub(crate) feature_id: String,
    pub(crate) at: i64,
    pub(crate) question_id: Option<String>,
    pub(crate) line: String,
    pub(crate) event: String,
}

/// A row of the table of features.
#[derive(Debug, Clone)]
pub(crate) struct FeatureRow {
    pub(crate) columns: FeatureColumns,
    pub(crate) record: String,
}

/// What stands beside the record to be searched by: id, status, adhoc, version.
pub(crate) type FeatureColumns = (String, String, bool, i64);

/// A row of the table of questions.
#[derive(Debug, Clone)]
pub(crate) struct QuestionRow {
    pub(crate) columns: QuestionColumns,
    pub(crate) record: String,
}

/// What stands beside the record to be searched by: id, feature, status, created, expires, answered.
pub(crate) type QuestionColumns = (String, String, String, i64, Option<i64>, Option<i64>);

/// Everything that some events of one feature change.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) events: Vec<EventRow>,
    pub(crate) spec: Option<String>,
    pub(crate) feature: FeatureRow,
    pub(crate) questions: Vec<QuestionRow>,
    /// Question id and answer.
    pub(crate) secrets: Vec<(String, String)>,
    /// The feature is over: none of its secrets may stay.
    pub(crate) wipes_secrets: bool,
}

impl Change {
    /// The rows of these events; `state` is the state after them. `None` when nothing happened. The events are
    /// counted on from `seq`.
    pub(crate) fn of(
        events: &[Stamped],
        state: &Snapshot,
        secrets: &[Secret],
        seq: &mut u64,
    ) -> Result<Option<Self>, StoreError> {
        let Some(feature) = state.feature.as_ref().filter(|_| !events.is_empty()) else { return Ok(None) };
        let mut touched = BTreeSet::new();
        let mut change = Change {
            events: Vec::with_capacity(events.len()),
            spec: None,
            feature: FeatureRow { columns: feature_columns(feature), record: json(feature)? },
            questions: Vec::new(),
            secrets: secrets.iter().map(|s| (s.question_id.to_string(), s.answer.to_string())).collect(),
            wipes_secrets: feature.status.is_terminal(),
        };
        for stamped in events {
            *seq += 1;
            change.events.push(event_row(*seq, stamped)?);
            match &stamped.event {
                Event::FeatureCreated { spec: Some(spec), .. } => change.spec = Some(spec.clone()),
                event => touched.extend(event.question_id()),
            }
        }
        for question in touched.into_iter().filter_map(|id| state.question(id)) {
            let row = QuestionRow { columns: question_columns(question), record: json(question)? };
            change.questions.push(row);
        }
        Ok(Some(change))
    }
}

fn event_row(seq: u64, stamped: &Stamped) -> Result<EventRow, StoreError> {
    Ok(EventRow {
        seq: seq.cast_signed(),
        feature_id: stamped.feature_id.to_string(),
        at: stamped.at.as_millis(),
        question_id: stamped.event.question_id().map(QuestionId::to_string),
        line: aop_kernel::log::sentence(stamped),
        event: json(stamped)?,
    })
}

pub(crate) fn feature_columns(feature: &Feature) -> FeatureColumns {
    (feature.id.to_string(), feature.status.to_string(), feature.adhoc, feature.version.cast_signed())
}

pub(crate) fn question_columns(question: &Question) -> QuestionColumns {
    (
        question.id.to_string(),
        question.feature_id.to_string(),
        question.state.status().as_str().to_owned(),
        question.created_at.as_millis(),
        question.expires_at.map(Timestamp::as_millis),
        answered_at(question).map(Timestamp::as_millis),
    )
}

/// When a question was answered, if it was.
pub(crate) fn answered_at(question: &Question) -> Option<Timestamp> {
    match question.state {
        QuestionState::Answered { at, .. } => Some(at),
        QuestionState::Open | QuestionState::Expired { .. } | QuestionState::Withdrawn { .. } => None,
    }
}

/// The order of every list of questions.
pub(crate) fn in_list_order(questions: &mut [Question]) {
    questions.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
}

/// Everything of a feature that a command is decided on, from its record and those of its open questions.
pub(crate) fn snapshot(feature: Option<&str>, open: &[String]) -> Result<Snapshot, StoreError> {
    let mut questions = open.iter().map(|record| parse_question(record)).collect::<Result<Vec<_>, _>>()?;
    in_list_order(&mut questions);
    Ok(Snapshot { feature: feature.map(parse_feature).transpose()?, questions })
}

pub(crate) fn parse_feature(record: &str) -> Result<Feature, StoreError> {
    parse("feature record", record)
}

pub(crate) fn parse_question(record: &str) -> Result<Question, StoreError> {
    parse("question record", record)
}

pub(crate) fn parse_event(seq: u64, text: &str) -> Result<Recorded, StoreError> {
    Ok(Recorded { seq, stamped: parse(&format!("event {seq}"), text)? })
}

/// First events of features, as a database gives them.
pub(crate) fn parse_changed(rows: Vec<(u64, String)>) -> Result<Vec<(FeatureId, u64)>, StoreError> {
    rows.into_iter().map(|(first, id)| Ok((FeatureId::parse(&id)?, first))).collect()
}

/// Reads one JSON text; `place` names it when it cannot be understood.
pub(crate) fn parse<T: DeserializeOwned>(place: &str, text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text)
        .map_err(|error| StoreError::Damaged { place: place.into(), cause: error.to_string() })
}

pub(crate) fn json(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value)
        .map_err(|error| StoreError::Damaged { place: "record".into(), cause: error.to_string() })
}
