//! What a change looks like as rows, and rows as records again: the part of every database that is the same.

use crate::error::StoreError;
use aop_kernel::event::{Event, Recorded, Snapshot, Stamped};
use aop_kernel::feature::Feature;
use aop_kernel::ids::{FeatureId, QuestionId};
use aop_kernel::lifecycle::Secret;
use aop_kernel::question::{Question, QuestionState};
use aop_kernel::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::sync::Arc;

/// A row of the log of events, together with its line in words.
#[derive(Debug, Clone)]
pub(crate) struct EventRow {
    pub(crate) seq: i64,
    pub(crate) feature_id: Arc<str>,
    pub(crate) at: i64,
    pub(crate) question_id: Option<Arc<str>>,
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

impl FeatureRow {
    pub(crate) fn of(feature: &Feature) -> Result<Self, StoreError> {
        Ok(FeatureRow { columns: feature_columns(feature), record: json(feature)? })
    }
}

impl QuestionRow {
    pub(crate) fn of(question: &Question) -> Result<Self, StoreError> {
        Ok(QuestionRow { columns: question_columns(question), record: json(question)? })
    }
}

/// Everything that some events of one feature change.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) events: Vec<EventRow>,
    pub(crate) spec: Option<String>,
    pub(crate) feature: Arc<Feature>,
    /// The questions that are open then.
    pub(crate) open: Vec<Arc<Question>>,
    /// Those that the events are about.
    pub(crate) questions: Vec<Arc<Question>>,
    /// Question id and answer.
    pub(crate) secrets: Vec<(String, String)>,
    /// The feature is over: none of its secrets may stay.
    pub(crate) wipes_secrets: bool,
}

impl Change {
    /// How long its events are.
    pub(crate) fn len(&self) -> usize {
        self.events.iter().map(|row| row.event.len()).sum()
    }

    /// What follows from these events; `state` is the state after them. `None` when nothing happened. The events are
    /// counted on from `seq`.
    pub(crate) fn of(
        events: &[Stamped],
        state: &Snapshot,
        secrets: &[Secret],
        seq: &mut u64,
    ) -> Result<Option<Self>, StoreError> {
        let Some(mut change) = Change::written(events.iter(), state) else { return Ok(None) };
        for stamped in events {
            *seq += 1;
            change.events.push(event_row(*seq, stamped)?);
        }
        change.secrets = secrets.iter().map(|s| (s.question_id.to_string(), s.answer.to_string())).collect();
        Ok(Some(change))
    }

    /// The same for events that are written already.
    pub(crate) fn written<'a>(
        mut events: impl Iterator<Item = &'a Stamped> + Clone,
        state: &Snapshot,
    ) -> Option<Self> {
        let feature = state.feature.as_ref().filter(|_| events.clone().next().is_some())?;
        let is_touched = |question: &Question| {
            events.clone().any(|stamped| stamped.event.question_id() == Some(&question.id))
        };
        let (mut open, mut questions) = (Vec::new(), Vec::new());
        for question in &state.questions {
            let (is_open, is_touched) = (question.is_open(), is_touched(question));
            open.extend(is_open.then(|| Arc::clone(question)));
            questions.extend(is_touched.then(|| Arc::clone(question)));
        }
        Some(Change {
            events: Vec::new(),
            spec: events.find_map(|stamped| match &stamped.event {
                Event::FeatureCreated { spec, .. } => spec.clone(),
                _ => None,
            }),
            feature: Arc::clone(feature),
            open,
            questions,
            secrets: Vec::new(),
            wipes_secrets: feature.status.is_terminal(),
        })
    }
}

fn event_row(seq: u64, stamped: &Stamped) -> Result<EventRow, StoreError> {
    Ok(EventRow {
        seq: seq.cast_signed(),
        feature_id: stamped.feature_id.shared(),
        at: stamped.at.as_millis(),
        question_id: stamped.event.question_id().map(QuestionId::shared),
        line: aop_kernel::log::sentence(stamped),
        event: json(stamped)?,
    })
}

pub(crate) fn feature_columns(feature: &Feature) -> FeatureColumns {
    let (id, status) = (feature.id.as_str().to_owned(), feature.status.as_str().to_owned());
    (id, status, feature.adhoc, feature.version.cast_signed())
}

pub(crate) fn question_columns(question: &Question) -> QuestionColumns {
    (
        question.id.as_str().to_owned(),
        question.feature_id.as_str().to_owned(),
        question.state.status().as_str().to_owned(),
        question.created_at.as_millis(),
        question.expires_at.map(Timestamp::as_millis),
        answered_at(question).map(Timestamp::as_millis),
    )
}

/// The ids of a feature's open questions as one text, in their own order.
pub(crate) fn open_ids<'a>(open: impl Iterator<Item = &'a Question>) -> String {
    let mut ids: Vec<&str> = open.map(|question| question.id.as_str()).collect();
    ids.sort_unstable();
    ids.join(" ")
}

/// When a question was answered, if it was.
pub(crate) fn answered_at(question: &Question) -> Option<Timestamp> {
    match question.state {
        QuestionState::Answered { at, .. } => Some(at),
        QuestionState::Open | QuestionState::Expired { .. } | QuestionState::Withdrawn { .. } => None,
    }
}

/// The order of every list of questions.
pub(crate) fn in_list_order(questions: &mut [impl Borrow<Question>]) {
    questions.sort_by(|a, b| {
        let (a, b) = (a.borrow(), b.borrow());
        (a.created_at, &a.id).cmp(&(b.created_at, &b.id))
    });
}

/// Everything of a feature that a command is decided on, from its record and those of its open questions.
pub(crate) fn snapshot(
    feature: Option<&str>,
    open: impl IntoIterator<Item: AsRef<str>>,
) -> Result<Snapshot, StoreError> {
    let questions = open.into_iter().map(|record| parse_question(record.as_ref()).map(Arc::new));
    let mut questions = questions.collect::<Result<Vec<_>, _>>()?;
    in_list_order(&mut questions);
    let feature = feature.map(parse_feature).transpose()?.map(Arc::new);
    Ok(Snapshot { feature, questions })
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
pub(crate) fn parse<'a, T: Deserialize<'a>>(place: &str, text: &'a str) -> Result<T, StoreError> {
    serde_json::from_str(text)
        .map_err(|error| StoreError::Damaged { place: place.into(), cause: error.to_string() })
}

pub(crate) fn json(value: &impl Serialize) -> Result<String, StoreError> {
    // As long as most records are: to grow there in steps would copy each of them several times. The allocator has less
    // to do below 1 KiB.
    let mut text = String::with_capacity(1_000);
    aop_kernel::json::write(&mut text, value)
        .map_err(|error| StoreError::Damaged { place: "record".into(), cause: error.to_string() })?;
    Ok(text)
}
