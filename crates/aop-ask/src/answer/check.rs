//! The rules that answers obey. A default is never filled in here: an absent answer is absent.

use super::{AnswerValue, Answers};
use crate::is_blank;
use crate::spec::{Kind, Question, QuestionSpec};
use crate::violation::{Report, Violation, join, nearest, quote, show};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// Checks a bare mapping that stands at `path` of its document.
pub(super) fn answers(spec: &QuestionSpec, path: &str, value: &Value) -> Result<Answers, Vec<Violation>> {
    let mut report = Report::default();
    let Some(map) = value.as_object() else {
        // It may be the answer to the one question that is secret.
        let found = if spec.has_secret() { "something else".to_owned() } else { show(value) };
        report.add(
            "wrong_type",
            path,
            format!("answers must be an object, but this is {found}"),
            "write {\"question_id\": answer, …}",
        );
        return Err(report.into_violations());
    };
    let known: HashMap<&str, ()> = spec.questions().iter().map(|q| (q.id(), ())).collect();
    for id in map.keys().filter(|id| !known.contains_key(id.as_str())) {
        let ids: Vec<&str> = spec.questions().iter().map(Question::id).take(50).collect();
        let near = nearest(id, &ids);
        let hint = match near {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("this spec asks {}", ids.join(", ")),
        };
        let (place, found) = if near.is_none() && spec.has_secret() {
            (path.to_owned(), "that one key has".to_owned())
        } else {
            (join(path, id), quote(id))
        };
        report.add("unknown_question", &place, format!("no question has the id {found}"), hint);
        if report.is_full() {
            break;
        }
    }
    let mut entries = Vec::new();
    for question in spec.questions() {
        let path = join(path, question.id());
        match map.get(question.id()) {
            Some(value) => {
                if let Some(value) = check_value(&mut report, &path, question, value) {
                    entries.push((question.id().to_owned(), value));
                }
            }
            None if question.required() => report.add(
                "required_unanswered",
                &path,
                format!("the required question \"{}\" is not answered", question.id()),
                "answer it; a default is never filled in by itself",
            ),
            None => {}
        }
    }
    report.finish(Some(Answers(entries)))
}

/// Checks the answer to one question.
pub(crate) fn check_value(
    report: &mut Report,
    path: &str,
    question: &Question,
    value: &Value,
) -> Option<AnswerValue> {
    match (question.kind(), value) {
        (Kind::SingleChoice, Value::String(text)) => {
            let labels = labels(question);
            choice(report, path, question, &labels, text).then(|| AnswerValue::One(text.clone()))
        }
        (Kind::FreeText, Value::String(text)) => {
            not_blank(report, path, question, text).then(|| AnswerValue::One(text.clone()))
        }
        (Kind::MultiChoice, Value::Array(items)) => many(report, path, question, items),
        (Kind::SingleChoice | Kind::MultiChoice | Kind::FreeText, _) => {
            let wanted = match question.kind() {
                Kind::SingleChoice => "one text",
                Kind::MultiChoice => "a list of texts",
                Kind::FreeText => "a text",
            };
            report.add(
                "wrong_type",
                path,
                format!(
                    "the answer to \"{}\" is {}, but must be {wanted}",
                    question.id(),
                    given(question, value)
                ),
                "leave an optional question out when it was not answered; null, \"\" and [] are not answers",
            );
            None
        }
    }
}

fn many(report: &mut Report, path: &str, question: &Question, items: &[Value]) -> Option<AnswerValue> {
    if items.is_empty() {
        report.add(
            "empty_list",
            path,
            format!("the answer to \"{}\" is an empty list", question.id()),
            "name at least one choice, or leave an optional question out",
        );
        return None;
    }
    let labels = labels(question);
    let mut seen = HashSet::new();
    let mut chosen = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        if report.is_full() {
            break;
        }
        let path = join(path, index);
        let Some(text) = item.as_str() else {
            let message = format!("a choice must be a text, but this is {}", given(question, item));
            report.add("wrong_type", &path, message, "write the label in quotes");
            continue;
        };
        if !choice(report, &path, question, &labels, text) {
            continue;
        }
        if seen.insert(text) {
            chosen.push(text.to_owned());
        } else {
            let message = format!("{} is chosen twice", question.named(text));
            report.add("duplicate_choice", &path, message, "name each choice once");
        }
    }
    (chosen.len() == items.len()).then_some(AnswerValue::Many(chosen))
}

fn labels(question: &Question) -> HashSet<&str> {
    question.options().iter().map(|option| option.label()).collect()
}

fn choice(report: &mut Report, path: &str, question: &Question, labels: &HashSet<&str>, text: &str) -> bool {
    if labels.contains(text) {
        return true;
    }
    if question.allow_other() {
        return not_blank(report, path, question, text);
    }
    let shown: Vec<&str> = question.options().iter().map(|option| option.label()).take(20).collect();
    let is_alike = |label: &&&str| !question.secret() && label.trim().eq_ignore_ascii_case(text.trim());
    let alike = shown.iter().find(is_alike);
    let hint = match alike {
        Some(label) => format!("did you mean {}? case and spaces count", quote(label)),
        None => {
            let list: Vec<String> = shown.iter().map(|label| quote(label)).collect();
            let more = question.options().len().saturating_sub(shown.len());
            let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("choose from {}{rest}", list.join(", "))
        }
    };
    let message = format!("{} is not an option of \"{}\"", question.named(text), question.id());
    report.add("not_an_option", path, message, hint);
    false
}

/// The same for any value.
fn given(question: &Question, value: &Value) -> String {
    if question.secret() { "something else".to_owned() } else { show(value) }
}

fn not_blank(report: &mut Report, path: &str, question: &Question, text: &str) -> bool {
    if is_blank(text) {
        let message = format!("the answer to \"{}\" is blank", question.id());
        report.add("blank", path, message, "write something, or leave an optional question out");
        return false;
    }
    true
}
