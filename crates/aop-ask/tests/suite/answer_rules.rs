//! The rules of an answer record (contract 1.2).

use crate::support::{brief, platform, spec, three_kinds, with};
use aop_ask::{AnswerSpec, Answers, QuestionSpec};
use serde_json::{Value, json};

fn record(answers: Value) -> Value {
    json!({
        "version": 2, "topic": "release", "answers": answers,
        "answered_at": "2026-03-04T22:00:00.000Z", "answered_by": "human",
    })
}

fn release() -> QuestionSpec {
    spec(&three_kinds())
}

fn refused(value: &Value) -> Vec<String> {
    brief(&AnswerSpec::from_json(&release(), value).unwrap_err())
}

#[test]
fn seed_000_scenario_answer_record_is_written_and_validated() {
    let spec = spec(&platform());
    let answers = Answers::check(&spec, &json!({"platform": "Web"})).unwrap();
    let written = AnswerSpec::new(&spec, &answers, "2026-03-04T22:00:00.000Z", "human").unwrap();
    let bytes = serde_json::to_vec(&written).unwrap();
    let reloaded = AnswerSpec::parse(&spec, &bytes).unwrap();
    assert_eq!(reloaded, written);
    assert_eq!(
        reloaded.to_json(),
        json!({"version": 1, "topic": "init", "answers": {"platform": "Web"},
               "answered_at": "2026-03-04T22:00:00.000Z", "answered_by": "human"})
    );
}

#[test]
fn a_secret_answer_that_is_wrong_stands_in_no_message() {
    let choice = with(&platform(), "/questions/0/secret", Some(json!(true)));
    let several = with(&choice, "/questions/0/kind", Some(json!("multi_choice")));
    let wrong = [
        (&choice, json!("hunter2")),
        (&choice, json!(["hunter2"])),
        (&several, json!(["Web", "hunter2"])),
        (&several, json!("hunter2")),
        (&several, json!([{"hunter2": 1}])),
    ];
    for (document, answer) in wrong {
        let refused = Answers::check(&spec(document), &json!({"platform": answer})).unwrap_err();
        let told = format!("{refused:?}");
        assert!(!told.contains("hunter2") && told.contains("platform"), "{told}");
    }
    for whole in [json!("hunter2"), json!({"hunter2": "Web"})] {
        let told = format!("{:?}", Answers::check(&spec(&choice), &whole).unwrap_err());
        assert!(!told.contains("hunter2"), "{told}");
        let told = format!("{:?}", Answers::check(&spec(&platform()), &whole).unwrap_err());
        assert!(told.contains("hunter2"), "what is no secret is named: {told}");
    }
}

#[test]
fn a_secret_that_stands_where_its_record_belongs_is_not_told() {
    let secret = spec(&with(&platform(), "/questions/0/secret", Some(json!(true))));
    for whole in [json!("hunter2"), json!(271_828), json!(["hunter2"]), json!(true), json!(null)] {
        let bytes = serde_json::to_vec(&whole).unwrap();
        for found in [AnswerSpec::parse(&secret, &bytes), AnswerSpec::from_json(&secret, &whole)] {
            let found = found.unwrap_err();
            assert_eq!(brief(&found), ["wrong_type "]);
            let told = format!("{found:?}");
            assert!(!told.contains("hunter2") && !told.contains("271"), "{told}");
        }
    }
    let told = format!("{:?}", AnswerSpec::from_json(&spec(&platform()), &json!("hunter2")).unwrap_err());
    assert!(told.contains("hunter2"), "what is no secret is named: {told}");
}

#[test]
fn answers_come_out_in_the_order_of_the_questions() {
    let answers = json!({"notes": "none", "targets": ["Windows", "Linux"], "channel": "Beta"});
    let answers = Answers::check(&release(), &answers).unwrap();
    assert_eq!(
        serde_json::to_string(&answers).unwrap(),
        r#"{"channel":"Beta","targets":["Windows","Linux"],"notes":"none"}"#
    );
}

#[test]
fn a_required_question_is_answered_and_its_default_is_not_applied() {
    assert_eq!(refused(&record(json!({}))), ["required_unanswered /answers/channel"]);
}

#[test]
fn null_blank_and_empty_are_no_answers() {
    for (answer, code) in [
        (json!({"channel": "Beta", "targets": []}), "empty_list /answers/targets"),
        (json!({"channel": "Beta", "targets": null}), "wrong_type /answers/targets"),
        (json!({"channel": "Beta", "targets": [" "]}), "blank /answers/targets/0"),
        (json!({"channel": "Beta", "notes": ""}), "blank /answers/notes"),
        (json!({"channel": "Beta", "notes": " \n\t"}), "blank /answers/notes"),
        (json!({"channel": null}), "wrong_type /answers/channel"),
        (json!({"channel": ""}), "not_an_option /answers/channel"),
    ] {
        assert_eq!(refused(&record(answer)), [code]);
    }
}

#[test]
fn choice_answers_are_labels_unless_other_is_allowed() {
    for wrong in ["stable", "Stable ", "Nightly"] {
        assert_eq!(refused(&record(json!({"channel": wrong}))), ["not_an_option /answers/channel"]);
    }
    let other = record(json!({"channel": "Beta", "targets": ["BeOS, the last", "Linux"]}));
    assert!(AnswerSpec::from_json(&release(), &other).is_ok());
    let twice = record(json!({"channel": "Beta", "targets": ["BeOS", "BeOS"]}));
    assert_eq!(refused(&twice), ["duplicate_choice /answers/targets/1"]);
}

#[test]
fn value_types_match_the_kind() {
    for (answer, code) in [
        (json!({"channel": ["Beta"]}), "wrong_type /answers/channel"),
        (json!({"channel": "Beta", "targets": "Linux"}), "wrong_type /answers/targets"),
        (json!({"channel": "Beta", "targets": [1]}), "wrong_type /answers/targets/0"),
        (json!({"channel": "Beta", "notes": ["x"]}), "wrong_type /answers/notes"),
        (json!([]), "wrong_type /answers"),
    ] {
        assert_eq!(refused(&record(answer)), [code]);
    }
}

#[test]
fn unknown_ids_are_refused() {
    let value = record(json!({"channel": "Beta", "chanel": "Beta", "_note": "x"}));
    assert_eq!(refused(&value), ["unknown_question /answers/chanel", "unknown_question /answers/_note"]);
}

#[test]
fn the_record_is_a_closed_object_with_comments() {
    let value = record(json!({"channel": "Beta"}));
    assert_eq!(refused(&with(&value, "/extra", Some(json!(1)))), ["unknown_key /extra"]);
    let commented = with(&value, "/_by", Some(json!({"shift": "night"})));
    assert_eq!(AnswerSpec::from_json(&release(), &commented).unwrap().to_json(), commented);
    for key in ["version", "topic", "answers", "answered_at", "answered_by"] {
        let pointer = format!("/{key}");
        assert_eq!(refused(&with(&value, &pointer, None)), [format!("missing_key {pointer}")]);
    }
}

#[test]
fn version_and_topic_equal_the_specs() {
    let value = record(json!({"channel": "Beta"}));
    for (pointer, other) in [("/version", json!(1)), ("/version", json!("2")), ("/topic", json!("Release"))] {
        assert_eq!(refused(&with(&value, pointer, Some(other))), [format!("spec_mismatch {pointer}")]);
    }
}

#[test]
fn answered_at_is_a_real_time_and_answered_by_is_somebody() {
    let value = record(json!({"channel": "Beta"}));
    for time in ["2026-02-30T00:00:00Z", "2026-03-04T24:00:00Z", "2026-03-04T22:00:00", "yesterday"] {
        assert_eq!(refused(&with(&value, "/answered_at", Some(json!(time)))), ["invalid_time /answered_at"]);
    }
    assert_eq!(refused(&with(&value, "/answered_by", Some(json!("  ")))), ["blank /answered_by"]);
}
