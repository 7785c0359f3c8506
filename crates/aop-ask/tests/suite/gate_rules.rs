//! Instruction packets and their gates (contract 1.3).

use crate::support::{brief, platform, with};
use aop_ask::gate::{GateState, Packet};
use serde_json::{Value, json};

fn packet() -> Value {
    json!({"step": "draft", "model": {"any": "thing"}, "novel_ask": platform(), "answer_path": "answers/init.json"})
}

fn refused(value: &Value) -> Vec<String> {
    brief(&Packet::from_json(value).unwrap_err())
}

#[test]
fn seed_000_scenario_step_is_blocked_until_gate_is_answered() {
    let packet = Packet::from_json(&packet()).unwrap();
    assert_eq!(packet.judge(None), GateState::Missing);
    let record = json!({"version": 1, "topic": "init", "answers": {"platform": "Web"},
                        "answered_at": "2026-03-04T22:00:00Z", "answered_by": "human"});
    match packet.judge(Some(record.to_string().as_bytes())) {
        GateState::Open(found) => assert_eq!(found.to_json(), record),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_record_that_is_present_but_invalid_blocks_and_is_reported() {
    let packet = Packet::from_json(&packet()).unwrap();
    for (bytes, found) in [
        (&b""[..], "json_syntax "),
        (b"{}", "missing_key /version"),
        (br#"{"version":1,"topic":"init","answers":{"platform":"TV"},"answered_at":"2026-03-04T22:00:00Z","answered_by":"x"}"#,
         "not_an_option /answers/platform"),
    ] {
        match packet.judge(Some(bytes)) {
            GateState::Invalid(violations) => assert_eq!(brief(&violations)[0], found),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_packet_without_a_question_has_no_gate_and_other_keys_are_left_alone() {
    let packet = Packet::from_json(&json!({"whatever": [1, 2], "answers": null})).unwrap();
    assert_eq!(packet.judge(None), GateState::None);
}

#[test]
fn spec_and_path_come_together_or_not_at_all() {
    assert_eq!(refused(&with(&packet(), "/answer_path", None)), ["missing_key /answer_path"]);
    assert_eq!(refused(&with(&packet(), "/novel_ask", None)), ["missing_key /novel_ask"]);
    assert_eq!(refused(&json!([])), ["wrong_type "]);
}

#[test]
fn violations_of_the_spec_are_reported_below_it() {
    let broken = with(&packet(), "/novel_ask/topic", Some(json!("")));
    let broken = with(&broken, "/answer_path", Some(json!("../x.json")));
    assert_eq!(refused(&broken), ["blank /novel_ask/topic", "unsafe_path /answer_path"]);
}

#[test]
fn the_answer_path_stays_inside_the_project_and_outside_aop() {
    for good in ["a.json", "a/b.json", "./a.json", "a/../b.json", "a/.aop/b.json", "x/..y/z"] {
        Packet::from_json(&with(&packet(), "/answer_path", Some(json!(good)))).unwrap();
    }
    for bad in [
        "/etc/passwd",
        "../a.json",
        "a/../../b",
        "..",
        ".",
        "a/..",
        "a/",
        ".aop/x.json",
        "./.aop/x",
        "a/../.aop/x",
        ".AOP/x",
        "C:/x",
        "a\\..\\b",
        "a\0b",
        "x/.",
    ] {
        assert_eq!(
            refused(&with(&packet(), "/answer_path", Some(json!(bad)))),
            ["unsafe_path /answer_path"],
            "{bad}"
        );
    }
    assert_eq!(refused(&with(&packet(), "/answer_path", Some(json!(" ")))), ["blank /answer_path"]);
}
