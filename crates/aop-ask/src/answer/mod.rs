//! Answers to a spec: the bare mapping, and the record that is kept for audit and resume.

mod check;
mod record;
mod time;

use crate::spec::QuestionSpec;
use crate::violation::Violation;
pub(crate) use check::check_value;
pub use record::AnswerSpec;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

/// The answer to one question.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AnswerValue {
    /// To a single choice (a label, or other text where allowed) or a free text question.
    One(String),
    /// To a multiple choice. Distinct and never empty once checked.
    Many(Vec<String>),
}

impl AnswerValue {
    /// As it stands in a record.
    pub fn to_json(&self) -> Value {
        match self {
            AnswerValue::One(text) => text.clone().into(),
            AnswerValue::Many(items) => items.clone().into(),
        }
    }
}

/// The order in which several options were picked carries no meaning.
impl PartialEq for AnswerValue {
    fn eq(&self, other: &Self) -> bool {
        fn sorted(items: &[String]) -> Vec<&str> {
            let mut items: Vec<&str> = items.iter().map(String::as_str).collect();
            items.sort_unstable();
            items
        }
        match (self, other) {
            (AnswerValue::One(a), AnswerValue::One(b)) => a == b,
            (AnswerValue::Many(a), AnswerValue::Many(b)) => sorted(a) == sorted(b),
            (AnswerValue::One(_), AnswerValue::Many(_)) | (AnswerValue::Many(_), AnswerValue::One(_)) => {
                false
            }
        }
    }
}

impl Eq for AnswerValue {}

/// A mapping from question id to answer that fits its spec, in the order of the spec's questions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answers(Vec<(String, AnswerValue)>);

impl Answers {
    /// Checks a bare mapping `{id: value}` against its spec.
    ///
    /// # Errors
    /// Every rule the mapping breaks.
    pub fn check(spec: &QuestionSpec, value: &Value) -> Result<Answers, Vec<Violation>> {
        check::answers(spec, "", value)
    }

    /// Takes entries that are known to fit, in the order of the spec's questions.
    pub(crate) fn from_entries(entries: Vec<(String, AnswerValue)>) -> Self {
        Answers(entries)
    }

    /// The answer to the question with this id.
    pub fn get(&self, id: &str) -> Option<&AnswerValue> {
        self.0.iter().find(|(known, _)| known == id).map(|(_, value)| value)
    }

    /// Ids and answers in the order of the spec's questions.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &AnswerValue)> {
        self.0.iter().map(|(id, value)| (id.as_str(), value))
    }

    /// Whether nothing was answered.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bare mapping.
    pub fn to_json(&self) -> Value {
        Value::Object(self.iter().map(|(id, value)| (id.to_owned(), value.to_json())).collect::<Map<_, _>>())
    }
}

impl Serialize for Answers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (id, value) in self.iter() {
            map.serialize_entry(id, value)?;
        }
        map.end()
    }
}
