//! What is wrong with a document, and where: the one shape in which every validator of this crate speaks.
//!
//! Validators do not stop at the first mistake. They walk the document with a [`Report`], note what they
//! find, and go on, so that an author repairs a file in one round.

use crate::is_blank;
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// How many violations one report holds. A hostile document could otherwise turn megabytes of input into
/// gigabytes of complaints; a person stops reading far earlier.
const MAX_VIOLATIONS: usize = 500;

/// How much of a pointer is kept; keys can be as long as the document.
const MAX_PATH: usize = 2000;

/// One broken rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The rule, by a name that never changes.
    pub code: &'static str,
    /// JSON pointer (RFC 6901) to the offending value; empty for the whole document.
    pub path: String,
    /// What is wrong: names the thing and the value.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = if self.path.is_empty() { "(document)" } else { &self.path };
        write!(f, "{path}: {} [{}]\n    hint: {}", self.message, self.code, self.hint)
    }
}

/// Renders violations for a person, one paragraph each.
pub fn render(violations: &[Violation]) -> String {
    violations.iter().fold(String::new(), |mut text, violation| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{violation}");
        text
    })
}

/// Collects violations during one walk over a document.
#[derive(Debug, Default)]
pub(crate) struct Report {
    violations: Vec<Violation>,
    /// The document was taken once, when less counted as blank.
    is_taken: bool,
}

impl Report {
    /// For a document that was taken before, maybe by an earlier version.
    pub(crate) fn of_taken() -> Self {
        Report { is_taken: true, ..Report::default() }
    }

    /// Whether a text says nothing.
    pub(crate) fn is_blank(&self, text: &str) -> bool {
        if self.is_taken { text.trim_start().is_empty() } else { is_blank(text) }
    }

    /// Notes a violation.
    pub(crate) fn add(
        &mut self,
        code: &'static str,
        path: &str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        match self.violations.len() {
            len if len < MAX_VIOLATIONS => self.violations.push(Violation {
                code,
                path: path.chars().take(MAX_PATH).collect(),
                message: message.into(),
                hint: hint.into(),
            }),
            MAX_VIOLATIONS => self.violations.push(Violation {
                code: "too_many_violations",
                path: String::new(),
                message: format!("more than {MAX_VIOLATIONS} violations; the rest is not listed"),
                hint: "repair the ones above and check again".to_owned(),
            }),
            _ => {}
        }
    }

    /// Takes over violations that another walk found.
    pub(crate) fn extend(&mut self, violations: Vec<Violation>) {
        for v in violations {
            self.add(v.code, &v.path, v.message, v.hint);
        }
    }

    /// Whether the report can take no more, so that walking on is pointless.
    pub(crate) fn is_full(&self) -> bool {
        self.violations.len() > MAX_VIOLATIONS
    }

    /// The value, if nothing was noted and there is one.
    pub(crate) fn finish<T>(self, value: Option<T>) -> Result<T, Vec<Violation>> {
        match value {
            Some(value) if self.violations.is_empty() => Ok(value),
            _ => Err(self.violations),
        }
    }

    /// Everything noted so far.
    pub(crate) fn into_violations(self) -> Vec<Violation> {
        self.violations
    }
}

/// The pointer to `key` below `path`.
pub(crate) fn join(path: &str, key: impl std::fmt::Display) -> String {
    let mut pointer = String::with_capacity(path.len() + 24);
    pointer.push_str(path);
    pointer.push('/');
    // Writing to a string does not fail.
    let _ = write!(pointer, "{key}");
    if pointer[path.len() + 1..].contains(['~', '/']) {
        let escaped = pointer[path.len() + 1..].replace('~', "~0").replace('/', "~1");
        pointer.truncate(path.len() + 1);
        pointer.push_str(&escaped);
    }
    pointer
}

/// A value as it may stand in a message: JSON, cut where it would drown the sentence.
pub(crate) fn show(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(map) if map.len() == 1 => "an object with 1 key".to_owned(),
        Value::Object(map) => format!("an object with {} keys", map.len()),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// The same without its words, which may be the answer to a secret question.
pub(crate) fn unsaid(value: &Value) -> String {
    match value {
        Value::String(_) => "a text".to_owned(),
        Value::Number(_) => "a number".to_owned(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => show(value),
    }
}

/// A text in quotes, cut after 60 characters.
pub(crate) fn quote(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// Notes every key of a closed object that is neither known nor a comment (`_…`).
pub(crate) fn close(report: &mut Report, path: &str, map: &Map<String, Value>, known: &[&str]) {
    let keys = map.keys().filter(|key| !key.starts_with('_'));
    unknown_keys(report, path, keys, known, "; a key that starts with _ is a comment");
}

/// The same for formats that have no comments.
pub(crate) fn close_strictly(report: &mut Report, path: &str, map: &Map<String, Value>, known: &[&str]) {
    unknown_keys(report, path, map.keys(), known, "");
}

fn unknown_keys<'a>(
    report: &mut Report,
    path: &str,
    keys: impl Iterator<Item = &'a String>,
    known: &[&str],
    comments: &str,
) {
    for key in keys.filter(|key| !known.contains(&key.as_str())) {
        let hint = match nearest(key, known) {
            Some(near) => format!("did you mean \"{near}\"?{}", comments.trim_start_matches(';')),
            None => format!("known keys are {}{comments}", known.join(", ")),
        };
        report.add("unknown_key", &join(path, key), format!("unknown key {}", quote(key)), hint);
    }
}

/// The known word that somebody most likely meant: with a typing mistake, or without its end.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    if word.len() > 64 {
        return None;
    }
    let word = word.to_lowercase();
    let near = known.iter().filter_map(|candidate| {
        let lower = candidate.to_lowercase();
        let distance = distance(&word, &lower);
        let is_slip = distance <= 2 && distance < lower.len();
        let is_beginning = word.len() >= 4 && lower.starts_with(&word);
        (is_slip || is_beginning).then_some((distance, *candidate))
    });
    near.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

/// Levenshtein distance of two short words.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_escape_slash_and_tilde() {
        assert_eq!(join("/a", "b/c~d"), "/a/b~1c~0d");
        assert_eq!(join("", 3), "/3");
    }

    #[test]
    fn a_typing_mistake_finds_the_word_it_meant_and_only_what_is_near_is_named() {
        assert_eq!(nearest("lable", &["label", "description"]), Some("label"));
        assert_eq!(nearest("Label", &["label"]), Some("label"));
        assert_eq!(nearest("colour", &["label", "id"]), None);
        let known = ["shop", "checkout-page", "FAILED"];
        for (typed, meant) in [
            ("shp", Some("shop")),
            ("Check-out-page", Some("checkout-page")),
            ("checkout", Some("checkout-page")),
            ("faild", Some("FAILED")),
            ("tax", None),
            ("che", None),
        ] {
            assert_eq!(nearest(typed, &known), meant, "{typed}");
        }
        assert_eq!(nearest("shop", &[]), None);
    }

    #[test]
    fn a_report_is_bounded() {
        let mut report = Report::default();
        for i in 0..10_000 {
            report.add("x", "", i.to_string(), "");
        }
        let violations = report.into_violations();
        assert_eq!(violations.len(), MAX_VIOLATIONS + 1);
        assert_eq!(violations.last().unwrap().code, "too_many_violations");
    }
}
