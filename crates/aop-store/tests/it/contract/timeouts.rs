//! What a timeout does when it is not strict: the table of the contract, for each policy and type.

use crate::support::{QUARTER, World, on_every_backend};
use aop_kernel::status::Status;
use serde_json::{Value, json};

on_every_backend!(
    timeout_not_strict_by_policy_and_type,
    timeout_use_default_takes_the_expected_answers_default,
    timeout_use_default_takes_the_forms_defaults_only_when_they_make_an_answer,
    timeout_use_default_records_a_form_as_a_bare_mapping,
    timeout_not_strict_of_a_non_blocking_question_moves_nothing,
);

/// Asks, lets the time run out, and shows the record.
async fn timed_out(w: &World, feature: &str, changes: Value) -> Value {
    w.policy(|policy| policy.strict = false);
    w.feature_in(feature, Status::Qa).await;
    let id = w.ask_with(feature, changes).await.unwrap()["question_id"].as_str().unwrap().to_owned();
    w.later(QUARTER);
    w.store.expire().await.unwrap();
    w.record(&id).await
}

async fn timeout_not_strict_by_policy_and_type(w: &World) {
    let free = ["clarification", "external_decision"];
    let careful = ["permission_override", "risk_ack"];
    let policies = [Value::Null, json!("engine_judgement"), json!("use_default"), json!("decline")];
    for (row, policy) in policies.iter().enumerate() {
        for (column, kind) in free.iter().chain(&careful).enumerate() {
            let changes = json!({"question_type": kind, "default_decision_policy": policy,
                "expected_answer": {"kind": "free_text", "default": "go"}});
            let feature = format!("f{row}{column}");
            let record = timed_out(w, &feature, changes).await;
            let expected = match policy.as_str() {
                _ if careful.contains(kind) => ("expired", "declined_by_policy", Value::Null, Value::Null),
                Some("decline") => ("expired", "declined_by_policy", Value::Null, Value::Null),
                Some("use_default") => {
                    ("answered", "default_by_policy", json!("go"), json!("policy:default"))
                }
                _ => ("expired", "engine_judgement", Value::Null, Value::Null),
            };
            let found = (
                record["status"].as_str().unwrap(),
                record["resolution"]["mode"].as_str().unwrap(),
                record["answer"].clone(),
                record["answered_by"].clone(),
            );
            assert_eq!(found, expected, "{policy} {kind}");
            assert_eq!(record["resolution"]["surface"], "policy");
            assert_eq!(w.status(&feature).await, Status::Qa, "back to where it was");
        }
    }
}

async fn timeout_use_default_takes_the_expected_answers_default(w: &World) {
    let with =
        |expected: Value| json!({"default_decision_policy": "use_default", "expected_answer": expected});
    let multi = json!({"kind": "multi_choice", "choices": ["x", "y"], "default": ["y"]});
    let record = timed_out(w, "declared", with(multi)).await;
    assert_eq!((&record["status"], &record["answer"]), (&json!("answered"), &json!(["y"])));
    assert!(record["answered_at"].is_string());
    let record = timed_out(w, "undeclared", with(json!({"kind": "free_text"}))).await;
    assert_eq!(record["resolution"]["mode"], "engine_judgement");
    let record = timed_out(w, "nothing", json!({"default_decision_policy": "use_default"})).await;
    assert_eq!(record["resolution"]["mode"], "engine_judgement");
    assert_eq!(record["answer"], Value::Null);
}

fn form(required_text: bool) -> Value {
    json!({"version": 1, "topic": "t", "questions": [
        {"id": "way", "header": "Way", "question": "Which?", "kind": "single_choice", "required": true,
         "default": "R",
         "options": [{"label": "L", "description": "left"}, {"label": "R", "description": "right"}]},
        {"id": "why", "header": "Why", "question": "Why?", "kind": "free_text", "required": required_text}]})
}

async fn timeout_use_default_takes_the_forms_defaults_only_when_they_make_an_answer(w: &World) {
    let with = |spec: Value| json!({"default_decision_policy": "use_default", "spec": spec});
    let record = timed_out(w, "complete", with(form(false))).await;
    assert_eq!((&record["status"], &record["answer"]), (&json!("answered"), &json!({"way": "R"})));
    let record = timed_out(w, "partial", with(form(true))).await;
    assert_eq!((&record["status"], &record["answer"]), (&json!("expired"), &Value::Null));
    assert_eq!(record["resolution"]["mode"], "engine_judgement");
}

/// A form's answer is the bare mapping, also when its default was declared as a whole answer record.
async fn timeout_use_default_records_a_form_as_a_bare_mapping(w: &World) {
    let whole = json!({"version": 1, "topic": "t", "answers": {"way": "L"}, "answered_by": "human",
        "answered_at": "2026-03-04T22:00:00Z"});
    let changes = json!({"default_decision_policy": "use_default", "spec": form(false),
        "expected_answer": {"kind": "form", "default": whole}});
    let record = timed_out(w, "a", changes).await;
    assert_eq!((&record["answer"], &record["answered_by"]), (&json!({"way": "L"}), &json!("policy:default")));
}

async fn timeout_not_strict_of_a_non_blocking_question_moves_nothing(w: &World) {
    let record = timed_out(w, "a", json!({"blocking": false})).await;
    assert_eq!(record["resolution"]["mode"], "engine_judgement");
    assert_eq!(w.status("a").await, Status::Qa);
}
