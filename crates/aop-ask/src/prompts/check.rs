//! The rules of a Canonical Prompt Spec, object by object. Where answers lead is judged in `graph`.

use super::sync::task_sync;
use super::{END, ESCAPES, INTENTS, MAX_OPTIONS, TWO_STAGE_ROUTING, graph};
use crate::json;
use crate::spec::read::{list, member, object, one_of, string, text};
use crate::violation::{Report, Violation, close_strictly, join, quote, show};
use serde_json::{Map, Value};
use std::collections::HashSet;

const DOCUMENT_KEYS: [&str; 6] = ["protocol", "version", "source", "source_prompts", "steps", "task_sync"];
const STEP_KEYS: [&str; 7] = ["id", "intent", "question", "options", "on_escape", "max_choices", "next"];
const OPTION_KEYS: [&str; 3] = ["label", "description", "implication"];
const PROMPT_KEYS: [&str; 5] =
    ["id", "source_phase", "source_options_count", "mapped_step_ids", "overflow_strategy"];

/// What is wrong with a document, and what is merely doubtful.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Findings {
    /// The document cannot be used.
    pub errors: Vec<Violation>,
    /// The document can be used; somebody should look.
    pub warnings: Vec<Violation>,
}

/// Checks the bytes of a document.
pub fn check(bytes: &[u8]) -> Findings {
    match json::read_noting(bytes) {
        Ok((value, errors)) => judge(errors, &value),
        Err(errors) => Findings { errors, warnings: Vec::new() },
    }
}

/// Checks a JSON value.
pub fn check_json(value: &Value) -> Findings {
    if let Err(errors) = json::check_depth(value) {
        return Findings { errors, warnings: Vec::new() };
    }
    judge(Report::default(), value)
}

fn judge(mut errors: Report, value: &Value) -> Findings {
    let mut warnings = Report::default();
    document(&mut errors, &mut warnings, value);
    Findings { errors: errors.into_violations(), warnings: warnings.into_violations() }
}

fn document(errors: &mut Report, warnings: &mut Report, value: &Value) {
    let Some(map) = object(errors, "", value, "a prompt spec") else { return };
    close_strictly(errors, "", map, &DOCUMENT_KEYS);
    pattern(errors, map, "protocol", is_protocol, "lower-case letters, digits and hyphens, from a letter on");
    pattern(errors, map, "version", is_version, "three numbers, for instance 1.0.0");
    pattern(
        errors,
        map,
        "source",
        |source| source.len() > 3 && source.ends_with(".md"),
        "the name of an .md file",
    );
    let steps = items(errors, map, "steps");
    let step_ids = ids(errors, "/steps", &steps);
    for (index, step_value) in steps.iter().enumerate() {
        step(errors, &join("/steps", index), step_value);
    }
    let prompts = items(errors, map, "source_prompts");
    ids(errors, "/source_prompts", &prompts);
    for (index, prompt) in prompts.iter().enumerate() {
        source_prompt(errors, &join("/source_prompts", index), prompt, &step_ids);
    }
    if let Some(value) = map.get("task_sync") {
        task_sync(errors, value);
    }
    graph::judge(errors, warnings, &steps, &prompts);
}

fn pattern(
    report: &mut Report,
    map: &Map<String, Value>,
    key: &str,
    fits: impl Fn(&str) -> bool,
    form: &str,
) {
    if !map.contains_key(key) {
        let message = format!("{key} is missing");
        return report.add("missing_key", &join("", key), message, format!("add \"{key}\": {form}"));
    }
    let Some(value) = text(report, "", map, key) else { return };
    if !fits(&value) {
        let message = format!("{key} is {}, which is not {form}", quote(&value));
        report.add("invalid_format", &join("", key), message, format!("write {form}"));
    }
}

fn is_protocol(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

fn is_version(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    parts.len() == 3 && parts.iter().all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
}

/// A mandatory list with at least one item.
fn items<'a>(report: &mut Report, map: &'a Map<String, Value>, key: &str) -> Vec<&'a Value> {
    let path = join("", key);
    let found = member(report, "", map, key).and_then(|value| list(report, &path, value));
    if found.is_some_and(Vec::is_empty) {
        report.add("empty_list", &path, format!("{key} is empty"), "a prompt spec has at least one");
    }
    found.map(|items| items.iter().collect()).unwrap_or_default()
}

/// Notes ids that stand twice; gives those there are.
fn ids<'a>(report: &mut Report, path: &str, items: &[&'a Value]) -> HashSet<&'a str> {
    let mut seen = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        if let Some(id) = item.get("id").and_then(Value::as_str)
            && !seen.insert(id)
        {
            let path = join(&join(path, index), "id");
            report.add(
                "duplicate_id",
                &path,
                format!("the id {} is taken", quote(id)),
                "give each its own id",
            );
        }
    }
    seen
}

fn step(report: &mut Report, path: &str, value: &Value) {
    let Some(map) = object(report, path, value, "a step") else { return };
    close_strictly(report, path, map, &STEP_KEYS);
    if text(report, path, map, "id").as_deref() == Some(END) {
        let hint = "choose another id; a next_step of \"end\" ends the protocol";
        report.add("reserved_id", &join(path, "id"), "a step may not be called \"end\"", hint);
    }
    let intent = one_of(report, path, map, "intent", &INTENTS);
    text(report, path, map, "question");
    one_of(report, path, map, "on_escape", &ESCAPES);
    options(report, path, map);
    max_choices(report, path, map, intent);
    if let Some(next) = map.get("next") {
        transitions(report, &join(path, "next"), next);
    }
}

fn options(report: &mut Report, path: &str, map: &Map<String, Value>) {
    let Some(value) = member(report, path, map, "options") else { return };
    let path = join(path, "options");
    let Some(items) = list(report, &path, value) else { return };
    if !(2..=MAX_OPTIONS).contains(&items.len()) {
        report.add(
            "option_count",
            &path,
            format!("a step has two or three options, but this one has {}", items.len()),
            "split it: route by cluster first, then pick inside the cluster; never merge options",
        );
    }
    let mut seen = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        let path = join(&path, index);
        let Some(map) = object(report, &path, item, "an option") else { continue };
        close_strictly(report, &path, map, &OPTION_KEYS);
        let label = text(report, &path, map, "label");
        text(report, &path, map, "description");
        if let Some(implication) = map.get("implication") {
            string(report, &join(&path, "implication"), implication);
        }
        if let Some(label) = label
            && !seen.insert(label.clone())
        {
            let message = format!("the label {} stands twice in this step", quote(&label));
            report.add("duplicate_label", &join(&path, "label"), message, "give each option its own label");
        }
    }
}

fn max_choices(report: &mut Report, path: &str, map: &Map<String, Value>, intent: Option<&str>) {
    let path = join(path, "max_choices");
    match (intent, map.get("max_choices")) {
        (Some("select_many"), None) => report.add(
            "missing_key",
            &path,
            "select_many needs max_choices",
            "add \"max_choices\": 1 and loop with a step \"add another?\"",
        ),
        (_, None) => {}
        (_, Some(value)) => match value.as_u64() {
            Some(1) => {}
            Some(2 | 3) if intent != Some("select_many") => report.add(
                "invalid_max_choices",
                &path,
                format!("max_choices is {value}, but only select_many takes more than 1"),
                "remove max_choices, or make the intent select_many",
            ),
            Some(2 | 3) => {}
            _ => {
                let message = format!("max_choices is {}, but must be 1, 2 or 3", show(value));
                report.add("invalid_max_choices", &path, message, "write 1, 2 or 3");
            }
        },
    }
}

fn transitions(report: &mut Report, path: &str, value: &Value) {
    let Some(items) = list(report, path, value) else { return };
    for (index, item) in items.iter().enumerate() {
        let path = join(path, index);
        let Some(map) = object(report, &path, item, "a transition") else { continue };
        close_strictly(report, &path, map, &["answer", "next_step"]);
        text(report, &path, map, "answer");
        text(report, &path, map, "next_step");
    }
}

fn source_prompt(report: &mut Report, path: &str, value: &Value, steps: &HashSet<&str>) {
    let Some(map) = object(report, path, value, "a source prompt") else { return };
    close_strictly(report, path, map, &PROMPT_KEYS);
    text(report, path, map, "id");
    text(report, path, map, "source_phase");
    let count = member(report, path, map, "source_options_count").and_then(|value| {
        let count = value.as_u64().filter(|count| *count >= 2);
        if count.is_none() {
            let path = join(path, "source_options_count");
            let message =
                format!("source_options_count is {}, but must be an integer of at least 2", show(value));
            report.add("invalid_count", &path, message, "count the options of the source's question");
        }
        count
    });
    let strategy = strategy(report, path, map, count);
    let Some(value) = member(report, path, map, "mapped_step_ids") else { return };
    let path = join(path, "mapped_step_ids");
    let Some(mapped) = list(report, &path, value) else { return };
    let least = if strategy { 2 } else { 1 };
    if mapped.len() < least {
        let message = format!("{} steps are mapped, but at least {least} are due", mapped.len());
        report.add(
            "too_few_steps",
            &path,
            message,
            "routing has a step for the cluster and one for the pick",
        );
    }
    let mut seen = HashSet::new();
    for (index, item) in mapped.iter().enumerate() {
        let path = join(&path, index);
        let Some(id) = string(report, &path, item) else { continue };
        if !steps.contains(id.as_str()) {
            let message = format!("no step has the id {}", quote(&id));
            report.add("unknown_step", &path, message, "name an existing step");
        }
        if !seen.insert(id.clone()) {
            report.add(
                "duplicate_id",
                &path,
                format!("the step {} is mapped twice", quote(&id)),
                "name it once",
            );
        }
    }
}

/// Whether the prompt is routed.
fn strategy(report: &mut Report, path: &str, map: &Map<String, Value>, count: Option<u64>) -> bool {
    let overflow = count.is_some_and(|count| count > MAX_OPTIONS as u64);
    let path = join(path, "overflow_strategy");
    match map.get("overflow_strategy") {
        Some(Value::String(name)) if name == TWO_STAGE_ROUTING => return true,
        Some(Value::String(name)) if name == "none" && !overflow => {}
        None if !overflow => {}
        found => {
            let message = match found {
                None => format!("{} options do not fit into one step", count.unwrap_or_default()),
                Some(value) => format!("overflow_strategy is {}", show(value)),
            };
            let hint = "write \"overflow_strategy\": \"two_stage_routing\"; options are never merged";
            report.add("overflow_strategy", &path, message, hint);
        }
    }
    overflow
}
