//! How the first step of a spec looks in each tool, drawn with characters. An impression, not a promise: the
//! tools draw themselves.

use crate::output::Reply;
use crate::output::style::{bold, clean, cyan};
use aop_ask::{Dialogue, Options, QuestionSpec, Step, Target};
use aop_kernel::Envelope;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// All targets, one below the other.
pub(super) fn reply(spec: &QuestionSpec) -> Reply {
    let mut previews = Map::new();
    let mut text = String::new();
    for target in Target::ALL {
        let drawn = draw(spec, target);
        // Writing to a string does not fail.
        let _ = write!(text, "{}\n{}\n", bold(&cyan(&format!("── {} ", target.as_str()))), frame(&drawn));
        previews.insert(target.as_str().to_owned(), drawn.into());
    }
    Reply::ok(Envelope::success(&json!({"previews": previews})), text)
}

fn draw(spec: &QuestionSpec, target: Target) -> String {
    let dialogue = match Dialogue::start(spec.clone(), target, Options::default()) {
        Ok(dialogue) => dialogue,
        Err(violation) => return format!("not asked here: {}", violation.message),
    };
    let Step::Ask(request) = dialogue.next() else { return String::new() };
    let input = &request.input;
    clean(&match target {
        Target::ClaudeCode | Target::Codex => cards(input),
        Target::StrictText => input["prompt"].as_str().unwrap_or_default().to_owned(),
        Target::Elicitation => form(input),
        Target::Terminal => card(input),
    })
}

fn cards(input: &Value) -> String {
    let cards = input["questions"].as_array().into_iter().flatten();
    cards.map(card).collect::<Vec<_>>().join("\n")
}

/// One question with its options.
fn card(native: &Value) -> String {
    let text = |key: &str| native[key].as_str().unwrap_or_default();
    let many = native["multiSelect"] == true || native["kind"] == "multi_select";
    let mut drawn = format!("[{}] {}\n", text("header"), text("question"));
    for option in native["options"].as_array().into_iter().flatten() {
        drawn.push_str(&line(many, option["label"].as_str(), option["description"].as_str()));
    }
    if native.get("kind").is_none() || native["kind"] == "text" || native["allow_other"] == true {
        drawn.push_str("  … type something else\n");
    }
    drawn
}

fn line(many: bool, label: Option<&str>, description: Option<&str>) -> String {
    let mark = if many { "[ ]" } else { "( )" };
    let gap = if description.is_some() { "  " } else { "" };
    format!("  {mark} {}{gap}{}\n", label.unwrap_or_default(), description.unwrap_or_default())
}

/// The fields of an elicitation.
fn form(input: &Value) -> String {
    let mut drawn = format!("{}\n", input["message"].as_str().unwrap_or_default());
    let required: Vec<&str> = input["requestedSchema"]["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (id, field) in input["requestedSchema"]["properties"].as_object().into_iter().flatten() {
        let star = if required.contains(&id.as_str()) { " *" } else { "" };
        let title = field["title"].as_str().unwrap_or(id);
        let _ = writeln!(drawn, "{title}{star}: {}", field["description"].as_str().unwrap_or_default());
        let many = field["type"] == "array";
        let options = if many { &field["items"]["anyOf"] } else { &field["oneOf"] };
        match options.as_array() {
            Some(options) => {
                options.iter().for_each(|option| drawn.push_str(&line(many, option["title"].as_str(), None)))
            }
            None => drawn.push_str("  [____________________]\n"),
        }
    }
    drawn
}

fn frame(text: &str) -> String {
    text.trim_end().lines().map(|line| format!("│ {line}\n")).collect()
}
