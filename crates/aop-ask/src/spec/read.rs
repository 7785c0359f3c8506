//! Reads single members of a document and complains about each mistake in one way, for all validators of
//! the crate.

use crate::violation::{Report, join, nearest, show};
use serde_json::{Map, Value};

pub(crate) fn object<'a>(
    report: &mut Report,
    path: &str,
    value: &'a Value,
    what: &str,
) -> Option<&'a Map<String, Value>> {
    if value.as_object().is_none() {
        let message = format!("{what} must be an object, but this is {}", show(value));
        report.add("wrong_type", path, message, "write a JSON object: { … }");
    }
    value.as_object()
}

pub(crate) fn list<'a>(report: &mut Report, path: &str, value: &'a Value) -> Option<&'a Vec<Value>> {
    if value.as_array().is_none() {
        report.add(
            "wrong_type",
            path,
            format!("expected a list, but this is {}", show(value)),
            "write [ … ]",
        );
    }
    value.as_array()
}

pub(crate) fn member<'a>(
    report: &mut Report,
    path: &str,
    map: &'a Map<String, Value>,
    key: &str,
) -> Option<&'a Value> {
    let value = map.get(key);
    if value.is_none() {
        let message = format!("{key} is missing");
        report.add("missing_key", &join(path, key), message, format!("add \"{key}\": {}", example(key)));
    }
    value
}

/// What the value of a missing key could look like.
fn example(key: &str) -> &'static str {
    match key {
        "version" => "1",
        "required" => "true or false",
        "kind" => "\"single_choice\", \"multi_choice\" or \"free_text\"",
        "id" => "\"snake_case_name\"",
        "intent" => "\"select_one\", for instance",
        "on_escape" => "\"terminate\", \"return_previous\" or \"defer\"",
        "answered_at" => "\"2026-03-04T22:00:00.000Z\", for instance",
        "answered_by" => "\"human\", or a name",
        "questions" | "options" | "steps" | "source_prompts" | "mapped_step_ids" | "transitions" => "[ … ]",
        "answers" | "create" => "{ … }",
        "source_options_count" => "the number of options in the source",
        "emit" | "emit_update_plan" | "single_in_progress" => "true",
        _ => "\"…\"",
    }
}

pub(crate) fn string(report: &mut Report, path: &str, value: &Value) -> Option<String> {
    if value.as_str().is_none() {
        report.add(
            "wrong_type",
            path,
            format!("expected a text, but this is {}", show(value)),
            "write \"…\"",
        );
    }
    value.as_str().map(str::to_owned)
}

/// A mandatory text that is not blank.
pub(crate) fn text(report: &mut Report, path: &str, map: &Map<String, Value>, key: &str) -> Option<String> {
    let value = member(report, path, map, key)?;
    match value.as_str() {
        // Pointers are only put together for complaints; most documents deserve none.
        Some(text) if !report.is_blank(text) => Some(text.to_owned()),
        Some(_) => {
            let hint = "write something that people can read";
            report.add("blank", &join(path, key), format!("{key} is blank"), hint);
            None
        }
        None => string(report, &join(path, key), value),
    }
}

pub(crate) fn flag(report: &mut Report, path: &str, key: &str, value: &Value) -> Option<bool> {
    if value.as_bool().is_none() {
        report.add(
            "wrong_type",
            &join(path, key),
            format!("{key} is {}, but must be true or false", show(value)),
            "write true or false, without quotes",
        );
    }
    value.as_bool()
}

pub(crate) fn optional_flag(
    report: &mut Report,
    path: &str,
    map: &Map<String, Value>,
    key: &str,
) -> Option<bool> {
    map.get(key).map_or(Some(false), |value| flag(report, path, key, value))
}

/// A mandatory text that is one of a few words.
pub(crate) fn one_of<'a>(
    report: &mut Report,
    path: &str,
    map: &Map<String, Value>,
    key: &str,
    words: &[&'a str],
) -> Option<&'a str> {
    let value = member(report, path, map, key)?;
    let found = value.as_str().and_then(|text| words.iter().find(|word| **word == text));
    if found.is_none() {
        let near = value.as_str().and_then(|text| nearest(text, words));
        report.add(
            "unknown_word",
            &join(path, key),
            format!("{key} is {}, which is none of {}", show(value), words.join(", ")),
            near.map_or("choose one of them".to_owned(), |near| format!("did you mean \"{near}\"?")),
        );
    }
    found.copied()
}
