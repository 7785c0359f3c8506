//! The ten edge cases of the first design, and its lists of unit and command-line tests, by number.

use crate::support::{World, on_every_backend, question};
use aop_kernel::role::{Caller, Role};
use aop_kernel::status::Status;
use serde_json::json;

on_every_backend!(
    edge_01_a_duplicate_create_replays_the_first_envelope,
    edge_02_a_second_blocking_question_is_a_conflict,
    edge_03_an_answer_to_an_unknown_question_is_not_found,
    edge_04_an_answer_to_an_answered_question_replays_or_is_refused,
    edge_05_a_terminal_feature_closes_its_question_as_withdrawn,
    edge_08_open_questions_survive_a_takeover_and_stay_answerable,
    edge_09_a_free_message_while_waiting_answers_nothing,
    edge_10_an_answer_without_any_session_persists_and_resumes,
    unit_13_1_question_create_transitions_state_to_awaiting_input,
    unit_13_1_answer_transitions_to_recorded_resume_status,
    unit_13_1_duplicate_open_question_is_rejected,
    unit_13_1_answer_idempotency_and_replay_behavior,
    cli_13_3_questions_are_listed_open_ones_only_in_a_fixed_order,
    cli_13_3_answer_closes_the_question_and_reports_the_resumed_status,
);

async fn edge_01_a_duplicate_create_replays_the_first_envelope(w: &World) {
    w.feature("a").await;
    let input = question("a", json!({"operation_id": "once"}));
    let builder = Caller::new(Role::Builder);
    let first = w.raw(&builder, "feature.question_create", &input).await.unwrap();
    let events = w.events().await;
    w.later(60_000);
    let second = w.raw(&builder, "feature.question_create", &input).await.unwrap();
    assert_eq!(first.as_str(), second.as_str());
    assert_eq!(w.events().await, events);
    assert_eq!(w.list("a", "all").await.len(), 1);
}

async fn edge_02_a_second_blocking_question_is_a_conflict(w: &World) {
    w.feature("a").await;
    w.ask("a").await;
    w.refuses("question_conflict_open", w.ask_with("a", json!({"prompt": "another"}))).await;
}

async fn edge_03_an_answer_to_an_unknown_question_is_not_found(w: &World) {
    w.feature("a").await;
    w.feature("b").await;
    let elsewhere = w.ask("b").await;
    for id in ["q_01J9ZQ4V7K3M2N1P0R5S6T7V8W", &elsewhere] {
        let refusal = w.refuses("question_not_found", w.answer("a", id, json!("x"))).await;
        assert_eq!((&refusal.facts["question_id"], &refusal.facts["feature_id"]), (&json!(id), &json!("a")));
    }
}

async fn edge_04_an_answer_to_an_answered_question_replays_or_is_refused(w: &World) {
    w.feature("a").await;
    let id = w.ask("a").await;
    let input = json!({"feature_id": "a", "question_id": id, "answer": "left", "answered_by": "ann", "operation_id": "once"});
    let human = Caller::new(Role::Human);
    let first = w.raw(&human, "feature.question_answer", &input).await.unwrap();
    let again = w.raw(&human, "feature.question_answer", &input).await.unwrap();
    assert_eq!(first, again);
    w.refuses("question_already_answered", w.answer("a", &id, json!("left"))).await;
}

async fn edge_05_a_terminal_feature_closes_its_question_as_withdrawn(w: &World) {
    w.feature("a").await;
    let id = w.ask("a").await;
    w.cancel("a").await.unwrap();
    assert_eq!(w.status("a").await, Status::Failed);
    assert_eq!(w.show("a").await.status_reason.as_deref(), Some("cancelled"));
    assert_eq!(w.record(&id).await["status"], "withdrawn");
    assert_eq!(w.list("a", "all").await, [id]);
}

async fn edge_08_open_questions_survive_a_takeover_and_stay_answerable(w: &World) {
    w.feature_in("a", Status::Building).await;
    let old = w.store.acquire_lease("run".into(), "old".into(), 500).await.unwrap().unwrap();
    w.store.claim("turn:a".into(), "old".into(), old.epoch).await.unwrap();
    let id = w.ask("a").await;
    w.later(1_000);
    let new = w.store.acquire_lease("run".into(), "new".into(), 500).await.unwrap().unwrap();
    let claim = w.store.claim("turn:a".into(), "new".into(), new.epoch).await.unwrap();
    assert_eq!((claim.holder.as_str(), claim.epoch), ("new", new.epoch));
    assert_eq!(w.list("a", "open").await, [id.as_str()]);
    let data = w.answer("a", &id, json!("left")).await.unwrap();
    assert_eq!(data["feature_status"], "building");
}

async fn edge_09_a_free_message_while_waiting_answers_nothing(w: &World) {
    w.feature("a").await;
    let id = w.ask("a").await;
    let record = w.record(&id).await;
    let input = json!({"feature_id": "a", "note": "left"});
    w.call(Role::Human, "feature.log_append", input).await.unwrap();
    assert_eq!(w.record(&id).await, record);
    assert_eq!(w.status("a").await, Status::AwaitingInput);
}

async fn edge_10_an_answer_without_any_session_persists_and_resumes(w: &World) {
    w.feature_in("a", Status::Building).await;
    let id = w.ask_with("a", json!({"session_id": "gone"})).await.unwrap()["question_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let data = w.answer("a", &id, json!("left")).await.unwrap();
    assert_eq!(data["resumed"], true);
    assert_eq!(w.context("a").await["human_input"]["latest_answer"]["answer"], "left");
}

async fn unit_13_1_question_create_transitions_state_to_awaiting_input(w: &World) {
    w.feature("a").await;
    w.ask("a").await;
    assert_eq!(w.status("a").await, Status::AwaitingInput);
}

async fn unit_13_1_answer_transitions_to_recorded_resume_status(w: &World) {
    w.feature_in("a", Status::Qa).await;
    let id = w.ask("a").await;
    let recorded = w.record(&id).await["resume_status"].clone();
    w.answer("a", &id, json!("left")).await.unwrap();
    assert_eq!(json!(w.status("a").await), recorded);
}

async fn unit_13_1_duplicate_open_question_is_rejected(w: &World) {
    w.feature("a").await;
    let first = w.ask("a").await;
    w.refuses("question_conflict_open", w.ask_with("a", json!({}))).await;
    assert_eq!(w.list("a", "all").await, [first]);
}

async fn unit_13_1_answer_idempotency_and_replay_behavior(w: &World) {
    w.feature("a").await;
    let id = w.ask("a").await;
    let mut input = json!({"feature_id": "a", "question_id": id, "answer": "left", "answered_by": "ann", "operation_id": "once"});
    let human = Caller::new(Role::Human);
    let first = w.raw(&human, "feature.question_answer", &input).await.unwrap();
    w.cancel("a").await.unwrap();
    assert_eq!(w.raw(&human, "feature.question_answer", &input).await.unwrap(), first, "also after the end");
    input["answer"] = json!("right");
    let refusal = w.raw(&human, "feature.question_answer", &input).await.unwrap_err();
    assert_eq!(refusal.code.as_str(), "operation_id_reuse_mismatch");
}

async fn cli_13_3_questions_are_listed_open_ones_only_in_a_fixed_order(w: &World) {
    w.policy(|policy| policy.max_open_questions_per_feature = 9);
    w.feature("a").await;
    let mut asked = Vec::new();
    for step in [0, 0, 5, 0, -3] {
        w.later(step);
        asked.push(w.ask_aside("a").await);
    }
    let closed = asked.remove(1);
    w.answer("a", &closed, json!("x")).await.unwrap();
    assert_eq!(w.list("a", "open").await, asked);
}

async fn cli_13_3_answer_closes_the_question_and_reports_the_resumed_status(w: &World) {
    w.feature_in("a", Status::ReadyToMerge).await;
    let id = w.ask("a").await;
    let data = w.answer("a", &id, json!("merge it")).await.unwrap();
    assert_eq!(data["question_status"], "answered");
    assert_eq!(data["feature_status"], "ready_to_merge");
    assert_eq!(w.list("a", "open").await, Vec::<String>::new());
}
