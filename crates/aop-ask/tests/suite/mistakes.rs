//! The thirty most likely mistakes in a spec, and what a human reads about each.

use crate::support::{three_kinds, with};
use aop_ask::QuestionSpec;
use aop_ask::violation::render;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Mistakes in a document that is at least JSON.
pub(crate) fn documents() -> Vec<(&'static str, Value)> {
    let good = three_kinds();
    let edit = |pointer: &str, new: Value| with(&good, pointer, Some(new));
    let without = |pointer: &str| with(&good, pointer, None);
    vec![
        ("not an object", json!([good.clone()])),
        ("version missing", without("/version")),
        ("version as text", edit("/version", json!("2"))),
        ("version zero", edit("/version", json!(0))),
        ("topic blank", edit("/topic", json!("  "))),
        ("questions missing", without("/questions")),
        ("no questions", edit("/questions", json!([]))),
        ("questions as object", edit("/questions", json!({"channel": "Stable"}))),
        ("misspelt key", with(&edit("/questions/0/requierd", json!(true)), "/questions/0/required", None)),
        ("invented key", edit("/questions/0/priority", json!("high"))),
        ("id in camel case", edit("/questions/0/id", json!("releaseChannel"))),
        ("id with hyphen", edit("/questions/0/id", json!("release-channel"))),
        ("duplicate ids", edit("/questions/1/id", json!("channel"))),
        ("header missing", without("/questions/0/header")),
        ("question blank", edit("/questions/0/question", json!(""))),
        ("kind misspelt", edit("/questions/0/kind", json!("single-choice"))),
        ("kind unknown", edit("/questions/0/kind", json!("dropdown"))),
        ("required as text", edit("/questions/0/required", json!("yes"))),
        ("options missing", without("/questions/0/options")),
        ("options empty", with(&edit("/questions/0/options", json!([])), "/questions/0/default", None)),
        (
            "options as texts",
            with(&edit("/questions/0/options", json!(["Stable", "Beta"])), "/questions/0/default", None),
        ),
        ("description missing", without("/questions/0/options/1/description")),
        ("duplicate labels", edit("/questions/0/options/1/label", json!("Stable"))),
        ("reserved label", edit("/questions/0/options/1/label", json!("__other__"))),
        ("default is no label", edit("/questions/0/default", json!("stable"))),
        ("default null", edit("/questions/0/default", Value::Null)),
        ("default not a list", edit("/questions/1/default", json!("Linux"))),
        ("other text as default", edit("/questions/1/default", json!(["BeOS"]))),
        ("options on free text", edit("/questions/2/options", json!([{"label": "x", "description": "y"}]))),
    ]
}

#[test]
fn what_a_human_reads_about_the_thirty_most_likely_mistakes() {
    let mut text = String::new();
    for (number, (name, document)) in documents().iter().enumerate() {
        let violations = QuestionSpec::from_json(document).unwrap_err();
        writeln!(text, "{}. {name}\n{}", number + 1, render(&violations)).unwrap();
    }
    let unclosed = br#"{"version": 1, "topic": "t", "questions": [}"#;
    let violations = QuestionSpec::parse(unclosed).unwrap_err();
    writeln!(text, "30. broken JSON\n{}", render(&violations)).unwrap();
    insta::assert_snapshot!(text);
}
