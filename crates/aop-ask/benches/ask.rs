//! Parse and validate, and the first native request, from small specs to ten thousand options.
//!
//! Wanted: a ten-question spec below 50 µs for either, and growth no worse than n log n.

use aop_ask::{Dialogue, Options, QuestionSpec, Step, Target};
use divan::{Bencher, black_box};
use serde_json::{Value, json};

fn main() {
    divan::main();
}

fn options(count: usize) -> Vec<Value> {
    (0..count).map(|i| json!({"label": format!("Option {i}"), "description": "What it means"})).collect()
}

/// Ten questions as people write them: choices of three, one of several choices, one free text.
fn ten_questions() -> Vec<u8> {
    let questions: Vec<Value> = (0..10)
        .map(|i| {
            let mut question = json!({"id": format!("question_{i}"), "header": "Header", "required": true,
                                      "question": format!("Which way shall number {i} go?")});
            match i {
                8 => question["kind"] = "free_text".into(),
                _ => {
                    question["kind"] = if i == 9 { "multi_choice" } else { "single_choice" }.into();
                    question["options"] = options(3).into();
                }
            }
            question
        })
        .collect();
    json!({"version": 1, "topic": "bench", "questions": questions}).to_string().into_bytes()
}

fn one_question(kind: &str, count: usize) -> Vec<u8> {
    let question = json!({"id": "pick", "header": "Pick", "question": "Which?", "kind": kind, "required": true,
                          "options": options(count)});
    json!({"version": 1, "topic": "bench", "questions": [question]}).to_string().into_bytes()
}

fn first_request(spec: &QuestionSpec, target: Target) -> Option<Step> {
    Dialogue::start(spec.clone(), target, Options::default()).ok().map(|dialogue| dialogue.next())
}

#[divan::bench]
fn parse_ten_questions(bencher: Bencher<'_, '_>) {
    let bytes = ten_questions();
    bencher.bench(|| QuestionSpec::parse(black_box(&bytes)));
}

#[divan::bench(args = Target::ALL.map(Target::as_str))]
fn compile_ten_questions(bencher: Bencher<'_, '_>, name: &str) {
    let target = Target::ALL.into_iter().find(|target| target.as_str() == name);
    let spec = QuestionSpec::parse(&ten_questions()).ok();
    if let (Some(spec), Some(target)) = (spec, target) {
        let dialogue = Dialogue::start(spec, target, Options::default()).ok();
        bencher.bench(|| dialogue.as_ref().map(|dialogue| black_box(dialogue).next()));
    }
}

#[divan::bench(args = [10, 100, 1_000, 10_000])]
fn parse_options(bencher: Bencher<'_, '_>, count: usize) {
    let bytes = one_question("multi_choice", count);
    bencher.bench(|| QuestionSpec::parse(black_box(&bytes)));
}

#[divan::bench(args = [10, 100, 1_000, 10_000])]
fn route_options_for_codex(bencher: Bencher<'_, '_>, count: usize) {
    if let Ok(spec) = QuestionSpec::parse(&one_question("single_choice", count)) {
        bencher.bench(|| first_request(black_box(&spec), Target::Codex));
    }
}
