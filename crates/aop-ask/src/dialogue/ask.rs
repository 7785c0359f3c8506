//! What passes between a question's walk and a target: one [`Ask`] is one native question, one [`Said`] is
//! what the human said to it, stripped of the tool's wire format.

use super::wording::SUFFIX;
use crate::answer::AnswerValue;
use crate::spec::Question;

/// One native question, before a target gives it its wire format.
#[derive(Debug)]
pub(crate) struct Ask<'a> {
    /// Which question of the spec it belongs to.
    pub(crate) index: usize,
    pub(crate) question: &'a Question,
    /// The spec's question, verbatim, and below it whatever else the human has to know at this step.
    pub(crate) text: String,
    pub(crate) mode: Mode,
    /// Options of the spec, routes and navigation, in display order.
    pub(crate) items: Vec<Item>,
}

/// How the human replies to an ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Picks one item.
    One,
    /// Picks several items at once.
    Many,
    /// Types text; there are no items.
    Text,
}

/// Something that can be picked.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) label: String,
    pub(crate) description: String,
    pub(crate) preview: Option<String>,
    pub(crate) role: Role,
}

/// What picking an item means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The option with this index in the question.
    Pick(usize),
    /// The child with this index in the current routing step.
    Route(usize),
    Nav(Nav),
}

/// Navigation, offered after everything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nav {
    AddAnother,
    Done,
    Skip,
    Back,
}

impl Nav {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Nav::AddAnother => "Add another",
            Nav::Done => "Done",
            Nav::Skip => "Skip",
            Nav::Back => "Back",
        }
    }

    /// Whether a label is navigation, also where an option of the spec is called the same.
    pub(crate) fn is_label(label: &str) -> bool {
        let plain = label.trim_end_matches(SUFFIX);
        [Nav::AddAnother, Nav::Done, Nav::Skip, Nav::Back].iter().any(|nav| nav.label() == plain)
    }
}

/// What the human said to one ask.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Said {
    /// Nothing. Never consent.
    Nothing,
    /// A label or free text; most tools do not tell which.
    Word(String),
    /// Free text, even if it reads like navigation.
    Typed(String),
    /// Several labels or texts, and perhaps one text typed beside them.
    Several { words: Vec<String>, typed: Option<String> },
    /// A complete answer, already checked.
    Answer(AnswerValue),
    /// Something that cannot be taken, and why: a sentence for the human.
    Unclear(String),
}

impl Ask<'_> {
    /// The item with this label.
    pub(crate) fn item(&self, label: &str) -> Option<&Item> {
        self.items.iter().find(|item| item.label == label)
    }

    /// Whether typed text can be an answer here.
    pub(crate) fn takes_text(&self) -> bool {
        self.mode == Mode::Text || self.question.allow_other() || self.question.options().is_empty()
    }
}
