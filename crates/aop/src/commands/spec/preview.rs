//! How a spec looks in each tool, drawn with characters: call after call, and of a question that takes several steps
//! the first. An impression, not a promise: the tools draw themselves.

use crate::output::Reply;
use crate::output::style::{bold, clean, cyan};
use aop_ask::{Dialogue, Options, QuestionSpec, Step, Target};
use aop_kernel::Envelope;
use serde_json::{Map, Value, json};
use std::collections::HashSet;
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

/// Between two calls of one tool.
const THEN: &str = "\n… then\n\n";

/// No tool that asks with cards takes more questions in one call.
const MOST: usize = 4;

fn draw(spec: &QuestionSpec, target: Target) -> String {
    let mut calls = Vec::new();
    let mut left = spec.to_json();
    let questions = left["questions"].take();
    let mut questions = questions.as_array().map_or(&[][..], Vec::as_slice);
    // The questions that one call leaves are a spec of their own, until there are none; as many of them as a call may take.
    let most = match target {
        Target::ClaudeCode | Target::Codex | Target::Terminal => MOST,
        Target::StrictText | Target::Elicitation => usize::MAX,
    };
    while !questions.is_empty() {
        left["questions"] = questions.iter().take(most).cloned().collect();
        let Ok(spec) = QuestionSpec::from_json(&left) else { break };
        let dialogue = match Dialogue::start(spec, target, Options::default()) {
            Ok(dialogue) => dialogue,
            Err(violation) => return format!("not asked here: {}", violation.message),
        };
        let Step::Ask(request) = dialogue.next() else { break };
        let input = &request.input;
        let (drawn, count) = match target {
            Target::ClaudeCode | Target::Codex => {
                (cards(input), input["questions"].as_array().map_or(1, Vec::len))
            }
            Target::StrictText => (input["prompt"].as_str().unwrap_or_default().to_owned(), usize::MAX),
            Target::Elicitation => (form(input), usize::MAX),
            Target::Terminal => (card(input), 1),
        };
        calls.push(drawn);
        questions = questions.get(count..).unwrap_or_default();
    }
    clean(&calls.join(THEN))
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
    let required: HashSet<&str> = input["requestedSchema"]["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (id, field) in input["requestedSchema"]["properties"].as_object().into_iter().flatten() {
        let star = if required.contains(id.as_str()) { " *" } else { "" };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_of_questions_are_drawn_call_by_call_without_reading_all_of_them_for_each_call() {
        let question = |n: usize| {
            json!({"id": format!("q{n}"), "header": "H", "question": format!("Question {n}?"),
                "kind": "single_choice", "required": true,
                "options": [{"label": "A", "description": "a"}, {"label": "B", "description": "b"}]})
        };
        let questions: Vec<Value> = (0..6_000).map(question).collect();
        let spec = json!({"version": 1, "topic": "t", "questions": questions});
        let spec = QuestionSpec::from_json(&spec).unwrap();
        // Reading all of them for each call took minutes.
        for target in Target::ALL {
            assert_eq!(draw(&spec, target).matches("Question ").count(), 6_000, "{target:?}");
        }
    }

    #[test]
    fn a_preview_draws_every_question_also_where_a_tool_needs_several_calls() {
        let question = |n: usize| {
            json!({"id": format!("q{n}"), "header": "H", "question": format!("Question {n}?"),
                "kind": "free_text", "required": true})
        };
        let questions: Vec<Value> = (0..9).map(question).collect();
        let spec = json!({"version": 1, "topic": "t", "questions": questions});
        let spec = QuestionSpec::from_json(&spec).unwrap();
        for (target, calls) in Target::ALL.into_iter().zip([3, 3, 1, 1, 9]) {
            let drawn = draw(&spec, target);
            assert_eq!(drawn.matches(THEN).count() + 1, calls, "{target:?}: {drawn}");
            for n in 0..9 {
                assert_eq!(drawn.matches(&format!("Question {n}?")).count(), 1, "{target:?}: {drawn}");
            }
        }
    }
}
