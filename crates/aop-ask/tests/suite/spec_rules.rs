//! The rules of a question spec (contract 1.1).

use crate::support::{brief, platform, refused, spec, three_kinds, with};
use aop_ask::{AnswerValue, Kind, QuestionSpec};
use serde_json::{Value, json};

#[test]
fn seed_000_scenario_a_platform_binding_gate_is_representable() {
    let spec = spec(&platform());
    let question = &spec.questions()[0];
    assert_eq!((question.id(), question.kind()), ("platform", Kind::SingleChoice));
    assert!(question.required());
    assert!(!question.allow_other());
    assert_eq!(question.options()[1].label(), "Print");
}

#[test]
fn what_was_taken_once_is_read_back_although_it_would_be_refused_now() {
    let mut document = platform();
    document["questions"][0]["options"][0]["description"] = json!("\u{200b}");
    let refused = QuestionSpec::from_json(&document).unwrap_err();
    assert_eq!(refused.iter().map(|found| found.code).collect::<Vec<_>>(), ["blank"]);
    let read = serde_json::from_value::<QuestionSpec>(document.clone()).unwrap();
    assert_eq!(read.to_json(), document);
    document["questions"][0]["options"][0]["description"] = json!(" ");
    serde_json::from_value::<QuestionSpec>(document).unwrap_err();
}

#[test]
fn a_document_round_trips_exactly_with_comments_and_key_order() {
    let text = r#"{"_why":"first","topic":"t","version":3,"questions":[{"required":false,"id":"a","_n":[1],"header":"H","question":"Q?","kind":"single_choice","allow_other":false,"options":[{"description":"d","label":"L","preview":"","cluster":"c","_x":null}],"secret":false}]}"#;
    let spec = QuestionSpec::parse(text.as_bytes()).unwrap();
    assert_eq!(serde_json::to_string(&spec).unwrap(), text);
    assert_eq!(serde_json::from_str::<QuestionSpec>(text).unwrap(), spec);
}

#[test]
fn deserializing_goes_through_the_validator() {
    let error = serde_json::from_value::<QuestionSpec>(with(&platform(), "/topic", None)).unwrap_err();
    assert!(error.to_string().contains("/topic: topic is missing"), "{error}");
}

#[test]
fn every_violation_is_reported_at_once() {
    let broken = json!({
        "version": 0, "topic": " ", "colour": 1,
        "questions": [
            {"id": "A-b", "header": "", "question": "q", "kind": "single_choice", "required": "yes",
             "options": [{"label": "x", "description": "d"}, {"label": "x", "description": ""},
                         {"label": "__done__", "description": "d", "lable": 1}],
             "default": null},
            {"id": "b", "header": "h", "question": "q", "kind": "free_text", "required": true,
             "options": [], "allow_other": true, "default": "x"},
            {"id": "b", "header": "h", "question": "q", "kind": "many", "required": true},
            7,
        ],
    });
    assert_eq!(
        refused(&broken),
        [
            "unknown_key /colour",
            "invalid_version /version",
            "blank /topic",
            "invalid_id /questions/0/id",
            "blank /questions/0/header",
            "wrong_type /questions/0/required",
            "blank /questions/0/options/1/description",
            "duplicate_label /questions/0/options/1/label",
            "unknown_key /questions/0/options/2/lable",
            "reserved_label /questions/0/options/2/label",
            "wrong_type /questions/0/default",
            "not_for_free_text /questions/1/options",
            "not_for_free_text /questions/1/allow_other",
            "not_for_free_text /questions/1/default",
            "unknown_word /questions/2/kind",
            "duplicate_id /questions/2/id",
            "wrong_type /questions/3",
        ]
    );
}

#[test]
fn every_mandatory_key_is_missed() {
    for pointer in ["/version", "/topic", "/questions"] {
        assert_eq!(refused(&with(&platform(), pointer, None)), [format!("missing_key {pointer}")]);
    }
    for key in ["id", "header", "question", "kind", "required", "options"] {
        let pointer = format!("/questions/0/{key}");
        let found = refused(&with(&platform(), &pointer, None));
        assert!(found.contains(&format!("missing_key {pointer}")), "{found:?}");
        assert_eq!(found.len(), 1, "{found:?}");
    }
    for key in ["label", "description"] {
        let pointer = format!("/questions/0/options/1/{key}");
        assert_eq!(refused(&with(&platform(), &pointer, None)), [format!("missing_key {pointer}")]);
    }
}

#[test]
fn ids_are_snake_case() {
    for good in ["a", "a1", "a_b", "a_1", "long_name_2x"] {
        spec(&with(&platform(), "/questions/0/id", Some(json!(good))));
    }
    for bad in ["A", "1a", "_a", "a_", "a__b", "a-b", "a b", "é", "aB", "a\n"] {
        let found = refused(&with(&platform(), "/questions/0/id", Some(json!(bad))));
        assert_eq!(found, ["invalid_id /questions/0/id"], "{bad:?}");
    }
}

#[test]
fn version_is_an_integer_of_at_least_one() {
    for bad in [json!(0), json!(-1), json!(1.5), json!("1"), json!(null), json!(true), json!(1e30)] {
        assert_eq!(refused(&with(&platform(), "/version", Some(bad))), ["invalid_version /version"]);
    }
}

#[test]
fn a_default_is_a_label_or_a_list_of_distinct_labels_and_never_null() {
    let single = |value: Value| with(&platform(), "/questions/0/default", Some(value));
    spec(&single(json!("Print")));
    assert_eq!(refused(&single(json!("print"))), ["default_not_an_option /questions/0/default"]);
    assert_eq!(refused(&single(json!(["Web"]))), ["wrong_type /questions/0/default"]);
    assert_eq!(refused(&single(Value::Null)), ["wrong_type /questions/0/default"]);
    let multi = |value: Value| with(&three_kinds(), "/questions/1/default", Some(value));
    spec(&multi(json!(["Windows"])));
    assert_eq!(refused(&multi(json!("Linux"))), ["wrong_type /questions/1/default"]);
    assert_eq!(refused(&multi(json!([]))), ["empty_list /questions/1/default"]);
    assert_eq!(refused(&multi(json!(["Linux", "Linux"]))), ["duplicate_choice /questions/1/default/1"]);
    assert_eq!(
        refused(&multi(json!(["BeOS", 1]))),
        ["default_not_an_option /questions/1/default/0", "wrong_type /questions/1/default/1"]
    );
}

#[test]
fn a_default_is_judged_whatever_else_is_wrong() {
    let without_options = with(&platform(), "/questions/0/options", None);
    let default = |value: Value| with(&without_options, "/questions/0/default", Some(value));
    let both = ["missing_key /questions/0/options", "wrong_type /questions/0/default"];
    assert_eq!(refused(&default(Value::Null)), both);
    assert_eq!(refused(&default(json!(["Web"]))), both);
    assert_eq!(refused(&default(json!("Web"))), both[..1], "nobody knows the labels");
    let unknown = |value: Value| {
        with(&with(&platform(), "/questions/0/kind", None), "/questions/0/default", Some(value))
    };
    for (value, found) in [
        (Value::Null, "wrong_type /questions/0/default"),
        (json!("print"), "default_not_an_option /questions/0/default"),
        (json!([]), "empty_list /questions/0/default"),
    ] {
        assert_eq!(refused(&unknown(value)), ["missing_key /questions/0/kind", found]);
    }
    assert_eq!(refused(&unknown(json!(["Web"]))), ["missing_key /questions/0/kind"]);
}

#[test]
fn a_default_may_not_be_other_text_even_where_other_is_allowed() {
    let value = with(&three_kinds(), "/questions/1/default", Some(json!(["BeOS"])));
    assert_eq!(refused(&value), ["default_not_an_option /questions/1/default/0"]);
}

#[test]
fn navigation_labels_are_reserved() {
    for label in ["__done__", "__more__", "__back__", "__other__"] {
        let value = with(&platform(), "/questions/0/options/0/label", Some(json!(label)));
        assert_eq!(refused(&value), ["reserved_label /questions/0/options/0/label"]);
    }
}

#[test]
fn the_declared_default_is_complete_or_none() {
    let complete = spec(&three_kinds()).declared_default().unwrap();
    assert_eq!(complete.to_json(), json!({"channel": "Stable", "targets": ["Linux", "macOS"]}));
    let notes_required = with(&three_kinds(), "/questions/2/required", Some(json!(true)));
    assert_eq!(spec(&notes_required).declared_default(), None);
    assert_eq!(spec(&platform()).declared_default(), None);
    let nothing_declared = with(&platform(), "/questions/0/required", Some(json!(false)));
    assert_eq!(spec(&nothing_declared).declared_default(), None);
}

#[test]
fn one_secret_question_makes_a_secret_spec() {
    assert!(!spec(&platform()).has_secret());
    assert!(spec(&with(&platform(), "/questions/0/secret", Some(json!(true)))).has_secret());
}

#[test]
fn duplicate_keys_are_violations_not_lost_values() {
    let violations = QuestionSpec::parse(br#"{"version":1,"version":2,"topic":"t"}"#).unwrap_err();
    assert_eq!(brief(&violations), ["duplicate_key /version", "missing_key /questions"]);
}

#[test]
fn ten_thousand_bad_options_give_a_bounded_report() {
    let value = with(&platform(), "/questions/0/options", Some(json!(vec![1; 10_000])));
    assert!(refused(&value).len() <= 501);
}

#[test]
fn the_order_of_several_picks_carries_no_meaning() {
    let many = |items: &[&str]| AnswerValue::Many(items.iter().map(|s| (*s).to_owned()).collect());
    assert_eq!(many(&["a", "b"]), many(&["b", "a"]));
    assert_ne!(many(&["a"]), AnswerValue::One("a".to_owned()));
}
