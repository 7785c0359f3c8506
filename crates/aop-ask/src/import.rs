//! Native calls as specs: what an agent asked through its own tool becomes a question spec.
//!
//! Every imported choice also takes other text, because the native tools do. A native call is not judged by
//! the rules of the tool; only what a spec cannot carry (two equal labels, say) is a violation, and its
//! pointer is that in the call; in arguments that are a text it goes on within them.

use crate::ids::Ids;
use crate::is_blank;
use crate::json::check_depth;
use crate::spec::read::flag;
use crate::spec::{QuestionSpec, is_snake_case};
use crate::violation::{Report, Violation, join, show};
use serde_json::{Value, json};
use std::borrow::Cow;

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
    let (wrapper, arguments) = arguments(call);
    let below = |found: Vec<Violation>| -> Vec<Violation> {
        // The topic is the caller's.
        let is_of_call = |found: &Violation| found.path.is_empty() || found.path.starts_with("/questions");
        let place = |found: &Violation| if is_of_call(found) { wrapper } else { "" };
        found
            .into_iter()
            .map(|found| Violation { path: format!("{}{}", place(&found), found.path), ..found })
            .collect()
    };
    let arguments = arguments.map_err(below)?;
    let Some(natives) = arguments.get("questions").and_then(Value::as_array) else {
        let mut report = Report::default();
        let message = format!("a native call has a list \"questions\", but this is {}", show(&arguments));
        report.add("not_a_call", "", message, "hand in the tool call's arguments: {\"questions\": […]}");
        return Err(below(report.into_violations()));
    };
    let (mut ids, mut report) = (Ids::default(), Report::default());
    let questions: Vec<Value> = natives
        .iter()
        .enumerate()
        .map(|(index, native)| {
            flags(&mut report, index, native);
            let header = text(native, "header");
            let wish = own_id(native).or(header).map(snake_case).filter(|id| !id.is_empty());
            let wish = wish.unwrap_or_else(|| format!("question_{}", index + 1));
            question(native, &ids.give(&wish), header)
        })
        .collect();
    let first = natives.first().and_then(|native| text(native, "header"));
    let topic = topic.or(first).unwrap_or(source);
    let spec = QuestionSpec::from_json(&json!({"version": 1, "topic": topic, "questions": questions}));
    let spec = spec.map_err(|violations| report.extend(violations)).ok();
    report.finish(spec).map_err(below)
}

/// A flag of the tool is a kind or a key of the spec. What is neither true nor false would be taken for one of the two.
fn flags(report: &mut Report, index: usize, native: &Value) {
    for key in ["multiSelect", "isSecret"] {
        if let Some(value) = native.get(key).filter(|value| !value.is_null()) {
            flag(report, &join("/questions", index), key, value);
        }
    }
}

/// The arguments, whether the call comes bare, as a tool use (`input`) or as a function call (`arguments`), and where they
/// stand in it.
fn arguments(call: &Value) -> (&'static str, Result<Cow<'_, Value>, Vec<Violation>>) {
    match (call.get("questions"), call.get("input"), call.get("arguments")) {
        (None, Some(input), _) => ("/input", Ok(Cow::Borrowed(input))),
        (None, None, Some(Value::String(text))) => {
            ("/arguments", crate::json::read(text.as_bytes()).map(Cow::Owned))
        }
        (None, None, Some(arguments)) => ("/arguments", Ok(Cow::Borrowed(arguments))),
        (Some(_), _, _) | (None, None, None) => ("", Ok(Cow::Borrowed(call))),
    }
}

fn question(native: &Value, id: &str, header: Option<&str>) -> Value {
    if !native.is_object() {
        // The spec is to complain of it.
        return native.clone();
    }
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
