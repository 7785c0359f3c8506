//! Native calls as specs: what an agent asked through its own tool becomes a question spec.
//!
//! Every imported choice also takes other text, because the native tools do. A native call is not judged by
//! the rules of the tool; only what a spec cannot carry (two equal labels, say) is a violation, and its
//! pointer is the same in the call and in the spec.

use crate::is_blank;
use crate::json::check_depth;
use crate::spec::read::flag;
use crate::spec::{QuestionSpec, is_snake_case};
use crate::violation::{Report, Violation, join, show};
use serde_json::{Value, json};
use std::collections::HashSet;

/// A call of Claude Code's `AskUserQuestion` as a spec.
///
/// # Errors
/// The call holds no questions, or something a spec cannot carry.
pub fn claude_code(call: &Value, topic: Option<&str>) -> Result<QuestionSpec, Vec<Violation>> {
    import(call, topic, "claude-code", |_| None)
}

/// A call of Codex's `request_user_input` as a spec.
///
/// # Errors
/// The call holds no questions, or something a spec cannot carry.
pub fn codex(call: &Value, topic: Option<&str>) -> Result<QuestionSpec, Vec<Violation>> {
    import(call, topic, "codex", |native| native.get("id").and_then(Value::as_str))
}

fn import(
    call: &Value,
    topic: Option<&str>,
    source: &str,
    own_id: impl Fn(&Value) -> Option<&str>,
) -> Result<QuestionSpec, Vec<Violation>> {
    check_depth(call)?;
    let arguments = arguments(call);
    let Some(natives) = arguments.as_ref().and_then(|arguments| arguments.get("questions")?.as_array())
    else {
        let mut report = Report::default();
        let message = format!("a native call has a list \"questions\", but this is {}", show(call));
        report.add("not_a_call", "", message, "hand in the tool call's arguments: {\"questions\": […]}");
        return Err(report.into_violations());
    };
    let (mut ids, mut report) = (HashSet::new(), Report::default());
    let questions: Vec<Value> = natives
        .iter()
        .enumerate()
        .map(|(index, native)| {
            flags(&mut report, index, native);
            let header = text(native, "header");
            let wish = own_id(native).or(header).map(snake_case).filter(|id| !id.is_empty());
            let wish = wish.unwrap_or_else(|| format!("question_{}", index + 1));
            question(native, &unique(wish, &mut ids), header)
        })
        .collect();
    let first = natives.first().and_then(|native| text(native, "header"));
    let topic = topic.or(first).unwrap_or(source);
    let spec = QuestionSpec::from_json(&json!({"version": 1, "topic": topic, "questions": questions}));
    let spec = spec.map_err(|violations| report.extend(violations)).ok();
    report.finish(spec)
}

/// A flag of the tool is a kind or a key of the spec. What is neither true nor false would be taken for one of the two.
fn flags(report: &mut Report, index: usize, native: &Value) {
    for key in ["multiSelect", "isSecret"] {
        if let Some(value) = native.get(key).filter(|value| !value.is_null()) {
            flag(report, &join("/questions", index), key, value);
        }
    }
}

/// The arguments, whether the call comes bare, as a tool use (`input`) or as a function call (`arguments`).
fn arguments(call: &Value) -> Option<Value> {
    match (call.get("questions"), call.get("input"), call.get("arguments")) {
        (Some(_), _, _) => Some(call.clone()),
        (None, Some(input), _) => Some(input.clone()),
        (None, None, Some(Value::String(text))) => crate::json::read(text.as_bytes()).ok(),
        (None, None, Some(arguments)) => Some(arguments.clone()),
        (None, None, None) => None,
    }
}

fn question(native: &Value, id: &str, header: Option<&str>) -> Value {
    let mut question = json!({
        "id": id,
        "header": odd(native, "header").unwrap_or_else(|| header.unwrap_or("Question").into()),
        "question": native.get("question").cloned().unwrap_or_default(),
    });
    let multi = native.get("multiSelect") == Some(&Value::Bool(true));
    let free = matches!(native.get("options"), None | Some(Value::Null));
    let kind = match (free, multi) {
        (true, _) => "free_text",
        (false, true) => "multi_choice",
        (false, false) => "single_choice",
    };
    question["kind"] = kind.into();
    question["required"] = true.into();
    if !free {
        question["options"] = match native.get("options") {
            Some(Value::Array(options)) => options.iter().map(option).collect(),
            other => other.cloned().unwrap_or_default(),
        };
        question["allow_other"] = true.into();
    }
    if native.get("isSecret") == Some(&Value::Bool(true)) {
        question["secret"] = true.into();
    }
    question
}

/// An option; tools take a blank description, a spec does not, so the label stands in.
fn option(native: &Value) -> Value {
    let Some(label) = native.get("label") else { return native.clone() };
    let description = text(native, "description").map_or_else(|| label.clone(), Value::from);
    let description = odd(native, "description").unwrap_or(description);
    let mut option = json!({"label": label, "description": description});
    if let Some(preview) = native.get("preview").filter(|preview| !preview.is_null()) {
        option["preview"] = preview.clone();
    }
    option
}

/// What is no text where one belongs: the spec is to complain of it.
fn odd(native: &Value, key: &str) -> Option<Value> {
    native.get(key).filter(|value| !value.is_null() && !value.is_string()).cloned()
}

fn text<'a>(native: &'a Value, key: &str) -> Option<&'a str> {
    native.get(key).and_then(Value::as_str).filter(|text| !is_blank(text))
}

/// The nearest id: ASCII letters and digits in lower case, everything else as one underscore.
fn snake_case(text: &str) -> String {
    if is_snake_case(text) {
        return text.to_owned();
    }
    let mut id = String::new();
    for c in text.chars() {
        match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() => id.push(c),
            _ if id.is_empty() || id.ends_with('_') => {}
            _ => id.push('_'),
        }
    }
    let id = id.trim_end_matches('_');
    if id.starts_with(|c: char| c.is_ascii_digit()) { format!("q_{id}") } else { id.to_owned() }
}

fn unique(wish: String, taken: &mut HashSet<String>) -> String {
    let mut id = wish.clone();
    let mut count = 1;
    while !taken.insert(id.clone()) {
        count += 1;
        id = format!("{wish}_{count}");
    }
    id
}
