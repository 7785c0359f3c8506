//! The sentences that dialogues add to an author's own. Labels are never touched; they stand verbatim.

use super::ask::Nav;
use super::route::Node;
use crate::answer::AnswerValue;
use crate::spec::Question;
use std::collections::HashSet;

/// How many labels a sentence lists before it only gives the first, the last and the count.
const LISTED: usize = 20;

/// What stands before the description of a default.
pub const RECOMMENDED: &str = "Recommended. ";

/// What marks a label of ours where an option has the same.
pub(crate) const SUFFIX: &str = " (aop)";

/// A question, and what its labels are looked up in for all of its steps.
pub(crate) struct Labels<'a> {
    pub(crate) question: &'a Question,
    all: HashSet<&'a str>,
    /// Those that the default names.
    pub(crate) recommended: HashSet<&'a str>,
}

impl<'a> Labels<'a> {
    pub(crate) fn of(question: &'a Question) -> Self {
        let recommended = match question.default() {
            Some(AnswerValue::One(label)) => HashSet::from([label.as_str()]),
            Some(AnswerValue::Many(labels)) => labels.iter().map(String::as_str).collect(),
            None => HashSet::new(),
        };
        let all = question.options().iter().map(|option| option.label()).collect();
        Labels { question, all, recommended }
    }
}

/// Makes labels of our own for one step that no label of the spec equals.
pub(crate) struct Names<'a> {
    pub(crate) labels: &'a Labels<'a>,
    given: HashSet<String>,
}

impl<'a> Names<'a> {
    pub(crate) fn new(labels: &'a Labels<'a>) -> Self {
        Names { labels, given: HashSet::new() }
    }

    /// The wish itself, or with the suffix ` (aop)` where it is taken.
    pub(crate) fn give(&mut self, wish: &str) -> String {
        let mut name = wish.to_owned();
        while self.labels.all.contains(name.as_str()) || self.given.contains(&name) {
            name.push_str(SUFFIX);
        }
        self.given.insert(name.clone());
        name
    }
}

/// The wished label of a routing item.
pub(crate) fn route_label(question: &Question, node: &Node) -> String {
    if let Node::Group { name: Some(name), .. } = node {
        return name.clone();
    }
    let leaves = node.leaves();
    let label = |index: Option<&usize>| {
        index.and_then(|index| question.options().get(*index)).map_or("", |option| option.label())
    };
    format!("{} … {}", cut(label(leaves.first()), 24), cut(label(leaves.last()), 24))
}

/// What a routing item leads to.
pub(crate) fn route_description(question: &Question, node: &Node, recommended: &HashSet<&str>) -> String {
    let leaves = node.leaves();
    let labels: Vec<&str> = leaves
        .iter()
        .filter_map(|index| question.options().get(*index))
        .map(|option| option.label())
        .collect();
    let mark = if labels.iter().any(|label| recommended.contains(label)) {
        "Contains what is recommended. "
    } else {
        ""
    };
    format!("{mark}Leads to {}", list(&labels))
}

/// Labels in a sentence: all of them up to twenty, else the first, the last and the count.
pub(crate) fn list(labels: &[&str]) -> String {
    match labels {
        [first, .., last] if labels.len() > LISTED => {
            format!("{} options, from “{first}” to “{last}”", labels.len())
        }
        _ => labels.iter().map(|label| format!("“{label}”")).collect::<Vec<_>>().join(", "),
    }
}

/// What was chosen so far, in a sentence; of a secret only how much.
pub(crate) fn chosen(question: &Question, picked: &[String]) -> String {
    if question.secret() {
        return picked.len().to_string();
    }
    list(&picked.iter().map(String::as_str).collect::<Vec<_>>())
}

/// What `Skip` does where the question does not come again.
pub(crate) const UNANSWERED: &str = "Leave this question unanswered";

/// What a navigation item does, told where it stands.
pub(crate) fn nav_description(nav: Nav, question: &Question, typing: bool) -> &'static str {
    match (nav, question.required()) {
        (Nav::AddAnother, _) => "Choose one more",
        (Nav::Done, _) => "That is all",
        (Nav::Back, _) if typing => {
            "Return to the question before this one. To answer, type into the free text field"
        }
        (Nav::Back, _) => "Return to the step before this one",
        (Nav::Skip, true) if typing => {
            "Leave it for now; it is required and will be asked again. To answer, type into the free text field"
        }
        (Nav::Skip, false) if typing => {
            "Leave this question unanswered. To answer, type into the free text field"
        }
        (Nav::Skip, true) => "Leave it for now; it is required and will be asked again",
        (Nav::Skip, false) => UNANSWERED,
    }
}

/// A text for display, on one line and no longer than `max` characters.
pub(crate) fn cut(text: &str, max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= max {
        return line;
    }
    let mut short: String = line.chars().take(max.saturating_sub(1)).collect();
    short.truncate(short.trim_end().len());
    short.push('…');
    short
}
