//! Several stores on one project, as several processes have them.

use super::{live, world};
use crate::contract::waking;
use crate::support::{new_project, question, question_id, wait};
use aop_kernel::role::{Caller, Role};
use aop_kernel::status::Status;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

#[test]
fn a_commit_of_another_process_wakes_whoever_waits() {
    let project = new_project();
    let (one, two) = (live(&project), live(&project));
    let mut changes = one.store.changes();
    wait(async {
        two.feature("a").await;
        changes.changed().await.unwrap();
        assert_eq!(*changes.borrow_and_update(), 1);
        // Told, not found out: the safety net looks once a second only.
        let start = Instant::now();
        for round in 0..10 {
            two.ask_aside("a").await;
            changes.changed().await.unwrap();
            let id = one.list("a", "open").await[0].clone();
            two.answer("a", &id, json!("x")).await.unwrap();
            changes.changed().await.unwrap();
            assert_eq!(*changes.borrow_and_update(), 3 + 2 * round);
        }
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    });
}

#[test]
fn a_commit_of_another_process_wakes_those_who_wait_for_its_feature() {
    let project = new_project();
    let (one, two) = (live(&project), live(&project));
    wait(waking::a_commit_of_another_process_wakes_those_who_wait_for_its_feature(&one, &two));
}

#[test]
fn a_commit_of_ours_right_behind_one_of_theirs_hides_nothing() {
    let project = new_project();
    let (one, two) = (live(&project), live(&project));
    wait(waking::a_commit_of_ours_right_behind_one_of_theirs_hides_nothing(&one, &two));
}

#[test]
fn what_was_acknowledged_is_there_for_every_other_process() {
    let project = new_project();
    let (one, two) = (world(&project), world(&project));
    wait(one.feature_in("a", Status::Qa));
    let id = wait(one.ask("a"));
    assert_eq!(wait(two.everything()), wait(one.everything()));
    let data = wait(two.answer("a", &id, json!("x"))).unwrap();
    assert_eq!(data["feature_status"], "qa");
    assert_eq!(wait(one.status("a")), Status::Qa);
    wait(one.check());
}

#[test]
fn time_never_runs_backwards_between_machines_whose_clocks_differ() {
    let project = new_project();
    let (one, two) = (world(&project), world(&project));
    one.later(3_600_000);
    wait(one.feature("a"));
    wait(two.feature("b"));
    let times: Vec<_> = wait(two.events()).iter().map(|event| event.stamped.at).collect();
    assert_eq!(times[0], times[1], "the second machine's clock is an hour behind");
    assert_eq!(wait(two.store.now()).unwrap(), times[0]);
}

#[test]
fn an_operation_id_counts_on_every_machine() {
    let project = new_project();
    let (one, two) = (world(&project), world(&project));
    wait(one.feature("a"));
    let input = question("a", json!({"operation_id": "once"}));
    let builder = Caller::new(Role::Builder);
    let first = wait(one.raw(&builder, "feature.question_create", &input)).unwrap();
    assert_eq!(wait(two.raw(&builder, "feature.question_create", &input)).unwrap(), first);
    wait(two.check());
}

#[test]
fn every_character_of_a_specification_survives() {
    let w = live(&new_project());
    let spec = "zero \u{0} and ünïcode \u{10ffff} and \\u0000\n";
    let create = json!({"feature_id": "a", "title": "nul \u{0} too", "spec": spec});
    wait(w.call(Role::Human, "feature.create", create)).unwrap();
    assert_eq!(wait(w.store.spec(crate::support::feature_id("a"))).unwrap().as_deref(), Some(spec));
    let id = wait(w.ask("a"));
    wait(w.answer("a", &id, json!("a nul \u{0} in an answer"))).unwrap();
    assert_eq!(wait(w.record(&id))["answer"], "a nul \u{0} in an answer");
    wait(w.check());
}

#[test]
fn a_forgotten_secret_is_gone_for_every_process() {
    let project = new_project();
    let (one, two) = (world(&project), world(&project));
    wait(one.feature("a"));
    let spec = json!({"version": 1, "topic": "t", "questions": [{"id": "key", "header": "Key",
        "question": "Key?", "kind": "free_text", "required": true, "secret": true}]});
    let data: Value = wait(one.ask_with("a", json!({"spec": spec}))).unwrap();
    let id = data["question_id"].as_str().unwrap();
    wait(one.answer("a", id, json!({"key": "battery-staple"}))).unwrap();
    let secret = wait(two.store.reveal(question_id(id))).unwrap();
    assert_eq!(secret, Some(json!({"key": "battery-staple"})));
    wait(two.store.forget(question_id(id))).unwrap();
    assert_eq!(wait(one.store.reveal(question_id(id))).unwrap(), None);
    wait(one.store.forget(question_id(id))).unwrap();
}
