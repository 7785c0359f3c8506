//! Operations: what a retry gets back, what it may not be, and what happens when many come at once.

use crate::support::{World, feature_id, on_every_backend, question, wait, worker};
use aop_kernel::role::{Caller, Role};
use aop_kernel::status::Status;
use serde_json::{Value, json};
use std::sync::Barrier;

on_every_backend!(
    operation_replay_is_byte_equal_whatever_happened_since,
    operation_replay_knows_defaults_and_ignores_the_order_of_keys,
    operation_with_anything_else_is_a_mismatch,
    operation_that_failed_is_not_recorded,
    operation_authorisation_comes_before_replay,
    operation_id_is_in_every_mutating_success,
    operation_id_of_64_concurrent_callers_has_one_effect_and_64_equal_envelopes,
    answers_of_32_concurrent_people_have_one_winner_whom_all_others_are_told,
);

async fn operation_replay_is_byte_equal_whatever_happened_since(w: &World) {
    let human = Caller::new(Role::Human);
    let create = json!({"feature_id": "a", "title": "A", "operation_id": "1"});
    let first = w.raw(&human, "feature.create", &create).await.unwrap();
    let ask = question("a", json!({"operation_id": "2"}));
    let second = w.raw(&human, "feature.question_create", &ask).await.unwrap();
    w.policy(|policy| policy.enabled = false);
    w.later(10_000_000);
    w.store.expire().await.unwrap();
    w.cancel("a").await.unwrap();
    let events = w.events().await;
    assert_eq!(w.raw(&human, "feature.create", &create).await.unwrap().as_str(), first.as_str());
    assert_eq!(w.raw(&human, "feature.question_create", &ask).await.unwrap().as_str(), second.as_str());
    assert_eq!(w.events().await, events);
}

async fn operation_replay_knows_defaults_and_ignores_the_order_of_keys(w: &World) {
    w.feature("a").await;
    let choices = json!({"kind": "single_choice", "choices": ["x", "y"]});
    let brief = question("a", json!({"operation_id": "1", "expected_answer": choices}));
    let builder = Caller::new(Role::Builder);
    let first = w.raw(&builder, "feature.question_create", &brief).await.unwrap();
    let wordy = json!({"operation_id": "1", "interaction": null, "details": null, "spec": null,
        "expected_answer": {"allow_other": false, "choices": ["x", "y"], "kind": "single_choice", "default": null},
        "default_decision_policy": "engine_judgement", "blocking": true, "timeout_ms": null,
        "prompt": "Which way?", "question_type": "clarification", "session_id": "s1", "role": "builder",
        "feature_id": "a"});
    assert_eq!(w.raw(&builder, "feature.question_create", &wordy).await.unwrap(), first);
}

async fn operation_with_anything_else_is_a_mismatch(w: &World) {
    w.feature("a").await;
    w.feature("b").await;
    let first = question("a", json!({"operation_id": "1"}));
    w.raw(&Caller::new(Role::Builder), "feature.question_create", &first).await.unwrap();
    let others = [
        json!({"operation_id": "1", "prompt": "Which way??"}),
        json!({"operation_id": "1", "blocking": false}),
        json!({"operation_id": "1", "feature_id": "b"}),
        json!({"operation_id": "1", "details": {}}),
        json!({"operation_id": "1", "timeout_ms": 5_000}),
    ];
    for other in others {
        let call = w.call(Role::Builder, "feature.question_create", question("a", other));
        w.refuses("operation_id_reuse_mismatch", call).await;
    }
    let call = w.call(Role::Orchestrator, "feature.question_create", first);
    w.refuses("operation_id_reuse_mismatch", call).await;
    let note = json!({"feature_id": "a", "note": "hello", "operation_id": "1"});
    w.refuses("operation_id_reuse_mismatch", w.call(Role::Builder, "feature.log_append", note)).await;
}

async fn operation_that_failed_is_not_recorded(w: &World) {
    let note = json!({"feature_id": "a", "note": "hello", "operation_id": "1"});
    w.refuses("feature_not_found", w.call(Role::Human, "feature.log_append", note.clone())).await;
    w.feature("a").await;
    let other = json!({"feature_id": "a", "title": "A", "operation_id": "1"});
    w.refuses("feature_already_exists", w.call(Role::Human, "feature.create", other)).await;
    w.call(Role::Human, "feature.log_append", note).await.unwrap();
}

async fn operation_authorisation_comes_before_replay(w: &World) {
    w.feature("a").await;
    let id = w.ask("a").await;
    let input = json!({"feature_id": "a", "question_id": id, "answer": "left", "answered_by": "ann", "operation_id": "1"});
    w.call(Role::Human, "feature.question_answer", input.clone()).await.unwrap();
    w.refuses("forbidden_for_role", w.call(Role::Builder, "feature.question_answer", input)).await;
    let note = json!({"feature_id": "a", "note": "hello", "operation_id": "2"});
    w.call_as(&worker(Role::Builder, "a"), "feature.log_append", note.clone()).await.unwrap();
    w.refuses("forbidden_for_role", w.call_as(&worker(Role::Builder, "b"), "feature.log_append", note)).await;
}

async fn operation_id_is_in_every_mutating_success(w: &World) {
    w.feature("a").await;
    let carries = |data: Value| assert!(data["operation_id"].is_string(), "{data}");
    carries(w.transition("a", Status::Building).await.unwrap());
    carries(
        w.call(Role::Human, "feature.log_append", json!({"feature_id": "a", "note": "n"})).await.unwrap(),
    );
    let id = w.ask("a").await;
    carries(w.withdraw("a", &id).await.unwrap());
    carries(w.reopen("a", &id).await.unwrap());
    w.later(10_000_000);
    carries(w.retry("a").await.unwrap());
    carries(w.cancel("a").await.unwrap());
}

async fn operation_id_of_64_concurrent_callers_has_one_effect_and_64_equal_envelopes(w: &World) {
    w.feature("a").await;
    let input = question("a", json!({"operation_id": "once"}));
    let start = Barrier::new(64);
    let envelopes: Vec<String> = std::thread::scope(|scope| {
        let call = || {
            start.wait();
            let caller = Caller::new(Role::Builder);
            wait(w.raw(&caller, "feature.question_create", &input)).unwrap().as_str().to_owned()
        };
        let callers: Vec<_> = (0..64).map(|_| scope.spawn(call)).collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    assert!(envelopes.iter().all(|envelope| *envelope == envelopes[0]));
    assert_eq!(w.list("a", "all").await.len(), 1);
    let page = aop_store::EventPage { feature: Some(feature_id("a")), ..Default::default() };
    assert_eq!(w.store.events(page).await.unwrap().len(), 3, "created, asked, stopped");
}

async fn answers_of_32_concurrent_people_have_one_winner_whom_all_others_are_told(w: &World) {
    w.feature("a").await;
    let id = w.ask("a").await;
    let start = Barrier::new(32);
    let results: Vec<_> = std::thread::scope(|scope| {
        let people: Vec<_> = (0..32)
            .map(|number| {
                let (start, id) = (&start, &id);
                scope.spawn(move || {
                    start.wait();
                    wait(w.answer_as(&format!("person{number}"), "a", id, json!(format!("answer{number}"))))
                })
            })
            .collect();
        people.into_iter().map(|person| person.join().unwrap()).collect()
    });
    let record = w.record(&id).await;
    let (won, lost): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 31));
    for refusal in lost.into_iter().map(Result::unwrap_err) {
        assert_eq!(refusal.code.as_str(), "question_already_answered");
        assert_eq!(refusal.facts["answered_by"], record["answered_by"]);
        assert_eq!(refusal.facts["answer"], record["answer"]);
    }
}
