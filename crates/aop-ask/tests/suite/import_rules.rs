//! Native calls become specs.

use crate::support::brief;
use aop_ask::{Kind, import};
use serde_json::{Value, json};

#[test]
fn an_ask_user_question_call_becomes_a_spec_that_also_takes_other_text() {
    let call = json!({"questions": [
        {"question": "Which database?", "header": "Data base", "multiSelect": false, "options": [
            {"label": "Postgres", "description": ""}, {"label": "SQLite", "description": "One file", "preview": "`db`"}]},
        {"question": "Which features?", "header": "Data base", "multiSelect": true, "options": [
            {"label": "Auth", "description": "d"}, {"label": "Export", "description": "d"}]}]});
    let spec = import::claude_code(&call, None).unwrap();
    let ids: Vec<_> = spec.questions().iter().map(|q| (q.id(), q.kind(), q.allow_other())).collect();
    assert_eq!(ids, [("data_base", Kind::SingleChoice, true), ("data_base_2", Kind::MultiChoice, true)]);
    assert_eq!(spec.topic(), "Data base");
    assert_eq!(spec.questions()[0].options()[0].description(), "Postgres");
    assert_eq!(spec.questions()[0].options()[1].preview(), Some("`db`"));
    let tool_use = json!({"type": "tool_use", "name": "AskUserQuestion", "input": call});
    assert_eq!(import::claude_code(&tool_use, None).unwrap(), spec);
}

#[test]
fn a_request_user_input_call_keeps_its_ids_where_a_spec_can() {
    let call = json!({"questions": [
        {"id": "db_choice", "header": "DB", "question": "Which?", "options": [{"label": "A", "description": "d"}]},
        {"id": "DB-Choice", "header": "DB", "question": "Which again?", "options": [{"label": "A", "description": "d"}]},
        {"id": "7", "header": "", "question": "Token?", "options": null, "isSecret": true}]});
    let spec = import::codex(&call, Some("setup")).unwrap();
    let ids: Vec<_> = spec.questions().iter().map(aop_ask::Question::id).collect();
    assert_eq!(ids, ["db_choice", "db_choice_2", "q_7"]);
    assert!(spec.questions()[2].secret());
    assert_eq!(spec.questions()[2].kind(), Kind::FreeText);
    let function_call = json!({"type": "function_call", "arguments": call.to_string()});
    assert_eq!(import::codex(&function_call, Some("setup")).unwrap(), spec);
}

#[test]
fn what_a_spec_cannot_carry_is_a_violation_at_the_same_place() {
    let call = json!({"questions": [{"question": "", "header": "H", "options": [
        {"label": "A", "description": "d"}, {"label": "A", "description": "d"}, {"description": "d"}]}]});
    assert_eq!(
        brief(&import::claude_code(&call, None).unwrap_err()),
        [
            "blank /questions/0/question",
            "duplicate_label /questions/0/options/1/label",
            "missing_key /questions/0/options/2/label"
        ]
    );
    let odd = json!({"questions": [{"question": "Q?", "header": 5, "multiSelect": "yes", "isSecret": 1, "options": [
        {"label": "A", "description": 5}, {"label": "B", "description": "d", "preview": 5}]}]});
    assert_eq!(
        brief(&import::claude_code(&odd, None).unwrap_err()),
        [
            "wrong_type /questions/0/multiSelect",
            "wrong_type /questions/0/isSecret",
            "wrong_type /questions/0/header",
            "wrong_type /questions/0/options/0/description",
            "wrong_type /questions/0/options/1/preview",
        ]
    );
    for call in [json!([]), json!({}), json!("x")] {
        assert_eq!(brief(&import::codex(&call, None).unwrap_err()), ["not_a_call "]);
    }
}

#[test]
fn what_is_wrong_with_a_wrapped_call_is_told_at_its_place_within_the_wrapper() {
    let call = json!({"questions": [
        {"question": "Q?", "header": "H", "isSecret": 1, "options": [{"label": "A", "description": "d"}]},
        {"question": "", "header": "H", "options": [{"label": "A", "description": "d"}]}, 5]});
    let paths = |wrapper: &str| {
        let found = [
            ("wrong_type", "/questions/0/isSecret"),
            ("blank", "/questions/1/question"),
            ("wrong_type", "/questions/2"),
        ];
        found.map(|(code, path)| format!("{code} {wrapper}{path}"))
    };
    let refused = |call: Value| import::codex(&call, None).unwrap_err();
    assert_eq!(brief(&refused(call.clone())), paths(""));
    assert_eq!(brief(&refused(json!({"input": call}))), paths("/input"));
    assert_eq!(brief(&refused(json!({"arguments": call}))), paths("/arguments"));
    let written = refused(json!({"arguments": call.to_string()}));
    assert_eq!(brief(&written), paths("/arguments"));
    assert!(written[2].message.ends_with("but this is 5"), "{}", written[2].message);
    assert_eq!(brief(&refused(json!({"input": 1}))), ["not_a_call /input"]);
    let broken = refused(json!({"arguments": "{\"questions\": [}"}));
    assert_eq!(brief(&broken), ["json_syntax /arguments"]);
    assert!(broken[0].message.contains("column 16"), "{}", broken[0].message);
    let topic = import::codex(&json!({"input": {"questions": [call["questions"][0]]}}), Some(" "));
    assert_eq!(brief(&topic.unwrap_err())[1], "blank /topic");
}

#[test]
fn a_card_of_many_questions_with_one_header_takes_time_in_proportion_to_them() {
    // Numbered from 2 each time, these would be five thousand million looks.
    let one =
        json!({"question": "Q?", "header": "Data base", "options": [{"label": "A", "description": "d"}]});
    let spec = import::claude_code(&json!({"questions": vec![one; 100_000]}), None).unwrap();
    assert_eq!(spec.questions().last().map(aop_ask::Question::id), Some("data_base_100000"));
}
