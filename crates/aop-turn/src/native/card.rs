//! The question cards of Claude Code, Codex and Gemini: nearly the same, never quite.

use super::{AskBody, non_blank};
use aop_ask::is_blank;
use serde_json::Value;
use std::collections::HashSet;

/// One question of a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardQuestion {
    /// The engine's id of the question, where it has one.
    pub id: Option<String>,
    /// A short heading, where there is one.
    pub header: Option<String>,
    /// The question itself.
    pub question: String,
    /// What to choose from; empty for a free text.
    pub options: Vec<CardOption>,
    /// Whether several may be chosen.
    pub multi: bool,
    /// Whether the answer is to be kept from everybody else.
    pub secret: bool,
}

/// One choice of a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardOption {
    /// What is chosen.
    pub label: String,
    /// What it means.
    pub description: Option<String>,
    /// A longer look at it.
    pub preview: Option<String>,
}

/// Reads a list of questions. One unusable question makes the card unusable: showing the rest would drop
/// something the agent wants to know.
pub(super) fn read(questions: &Value) -> AskBody {
    let Some(items) = questions.as_array().filter(|items| !items.is_empty()) else {
        return AskBody::Unusable("the card has no questions".to_owned());
    };
    let mut card = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        match read_question(item) {
            Some(question) => card.push(question),
            None => return AskBody::Unusable(format!("question {} of the card has no text", index + 1)),
        }
    }
    AskBody::Card(card)
}

fn read_question(item: &Value) -> Option<CardQuestion> {
    // Codex's asynchronous form calls the text `title` and has bare strings for options.
    let question = non_blank(item.get("question")).or_else(|| non_blank(item.get("title")))?;
    let (mut options, mut known) = (Vec::new(), HashSet::new());
    for option in item.get("options").and_then(Value::as_array).into_iter().flatten() {
        let Some(label) = option.as_str().or_else(|| option.get("label").and_then(Value::as_str)) else {
            continue;
        };
        // Codex forwards repeated labels; the second one could never be told from the first.
        if is_blank(label) || !known.insert(label) {
            continue;
        }
        options.push(CardOption {
            label: label.to_owned(),
            description: non_blank(option.get("description")).map(str::to_owned),
            preview: non_blank(option.get("preview")).map(str::to_owned),
        });
    }
    if options.is_empty() && item.get("type").and_then(Value::as_str) == Some("yesno") {
        options = ["Yes", "No"]
            .map(|label| CardOption { label: label.to_owned(), description: None, preview: None })
            .into();
    }
    let flag = |key: &str| item.get(key).and_then(Value::as_bool).unwrap_or(false);
    Some(CardQuestion {
        id: non_blank(item.get("id")).map(str::to_owned),
        header: non_blank(item.get("header")).map(str::to_owned),
        question: question.to_owned(),
        options,
        multi: flag("multiSelect") || flag("multiple"),
        secret: flag("isSecret"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn of_many_labels_each_is_kept_once_and_in_its_order() {
        // Compared one by one, these would be ten thousand million comparisons.
        let labels: Vec<String> = (0..100_000).chain(0..50_000).map(|n| format!("L{n}")).collect();
        let AskBody::Card(card) = read(&json!([{"question": "Which?", "options": labels}])) else {
            panic!("no card")
        };
        let kept: Vec<&String> = card[0].options.iter().map(|option| &option.label).collect();
        assert_eq!(kept, labels[..100_000].iter().collect::<Vec<_>>());
    }
}
