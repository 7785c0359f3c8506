//! The question spec: what is asked, written once and independent of the tool that will ask it.
//!
//! A [`QuestionSpec`] only exists in a valid state: every way in goes through the validator in `check`.
//! It keeps the document it was made from, so that comments, key order and explicit defaults survive
//! every round trip; the typed view beside it is what the rest of the crate works with.

mod check;
pub(crate) mod read;

pub(crate) use check::is_snake_case;

use crate::answer::{AnswerValue, Answers};
use crate::json;
use crate::violation::{Report, Violation, quote};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::Value;

/// Labels that adapters may use for themselves, so no author may.
pub const RESERVED_LABELS: [&str; 4] = ["__done__", "__more__", "__back__", "__other__"];

/// A valid set of questions to put to a human.
#[derive(Debug, Clone, PartialEq)]
pub struct QuestionSpec {
    document: Value,
    version: u64,
    topic: String,
    questions: Vec<Question>,
}

/// One question of a spec.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    id: String,
    header: String,
    question: String,
    kind: Kind,
    required: bool,
    options: Vec<Choice>,
    allow_other: bool,
    default: Option<AnswerValue>,
    secret: bool,
}

/// What an answer to a question looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One of the labels.
    SingleChoice,
    /// One or more of the labels.
    MultiChoice,
    /// Any text that is not blank.
    FreeText,
}

/// One option of a choice question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    label: String,
    description: String,
    preview: Option<String>,
    cluster: Option<String>,
}

impl QuestionSpec {
    /// Reads a spec from the bytes of a document.
    ///
    /// # Errors
    /// Every rule the document breaks.
    pub fn parse(bytes: &[u8]) -> Result<Self, Vec<Violation>> {
        let (document, report) = json::read_noting(bytes)?;
        check::spec(document, report)
    }

    /// Reads a spec from a JSON value.
    ///
    /// # Errors
    /// Every rule the document breaks.
    pub fn from_json(value: &Value) -> Result<Self, Vec<Violation>> {
        json::check_depth(value)?;
        check::spec(value.clone(), Report::default())
    }

    /// The document exactly as it was read, comments included.
    pub fn to_json(&self) -> Value {
        self.document.clone()
    }

    /// The author's version of the spec; its answer records carry the same.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// What the questions are about, for people who read logs.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// The questions, in the author's order. Never empty.
    pub fn questions(&self) -> &[Question] {
        &self.questions
    }

    /// The question with this id.
    pub fn question(&self, id: &str) -> Option<&Question> {
        self.questions.iter().find(|question| question.id == id)
    }

    /// Whether an answer to this spec must be kept from everybody but the asker.
    pub fn has_secret(&self) -> bool {
        self.questions.iter().any(|question| question.secret)
    }

    /// All declared defaults as one mapping, if they make a complete answer.
    ///
    /// Nothing in this crate applies it: a policy may, and must say that it did.
    pub fn declared_default(&self) -> Option<Answers> {
        let entries: Vec<_> = self
            .questions
            .iter()
            .filter_map(|question| Some((question.id.clone(), question.default.clone()?)))
            .collect();
        let answers = Answers::from_entries(entries);
        if answers.is_empty() {
            return None;
        }
        Answers::check(self, &answers.to_json()).ok()
    }
}

impl Question {
    /// The stable identifier under which the answer is recorded.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// A short display label.
    pub fn header(&self) -> &str {
        &self.header
    }

    /// The full prompt.
    pub fn question(&self) -> &str {
        &self.question
    }

    /// What an answer looks like.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether an answer record without this question is invalid.
    pub fn required(&self) -> bool {
        self.required
    }

    /// The options in the author's order; empty exactly for free text.
    pub fn options(&self) -> &[Choice] {
        &self.options
    }

    /// Whether a choice question also takes text that is no label.
    pub fn allow_other(&self) -> bool {
        self.allow_other
    }

    /// What the author recommends. Never applied by itself.
    pub fn default(&self) -> Option<&AnswerValue> {
        self.default.as_ref()
    }

    /// Whether the answer is for the asker's eyes only.
    pub fn secret(&self) -> bool {
        self.secret
    }

    /// What somebody answered, in a message; a secret stays secret even when it is wrong.
    pub(crate) fn named(&self, answer: &str) -> String {
        if self.secret { "this".to_owned() } else { quote(answer) }
    }

    /// Where `label` stands among the options. Linear: build an index before asking this in a loop.
    pub fn position(&self, label: &str) -> Option<usize> {
        self.options.iter().position(|option| option.label == label)
    }
}

impl Choice {
    /// What is shown, and what is recorded when it is chosen.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// What choosing it means.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Longer material to look at before choosing, in Markdown.
    pub fn preview(&self) -> Option<&str> {
        self.preview.as_deref()
    }

    /// The author's grouping, used when a tool cannot show all options at once.
    pub fn cluster(&self) -> Option<&str> {
        self.cluster.as_deref()
    }
}

impl Kind {
    /// Every kind with its name in documents.
    pub const NAMES: [(&'static str, Kind); 3] = [
        ("single_choice", Kind::SingleChoice),
        ("multi_choice", Kind::MultiChoice),
        ("free_text", Kind::FreeText),
    ];

    /// The name in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::SingleChoice => "single_choice",
            Kind::MultiChoice => "multi_choice",
            Kind::FreeText => "free_text",
        }
    }
}

impl Serialize for QuestionSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.document.serialize(serializer)
    }
}

/// Reads a record back. What was taken once stays readable, whatever is asked of new documents.
impl<'de> Deserialize<'de> for QuestionSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let taken = json::check_depth(&value).and_then(|()| check::spec(value, Report::of_taken()));
        taken.map_err(|violations| {
            D::Error::custom(format!("invalid question spec: {}", crate::violation::render(&violations)))
        })
    }
}
