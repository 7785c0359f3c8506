//! A history goes out of one store and into another: everything a later command could ask about is there.

use crate::support::{START, World, on_every_backend, question, question_id};
use aop_kernel::role::{Caller, Role};
use aop_kernel::time::Timestamp;
use aop_store::{ClaimState, Entry, Expect, ManualClock, MemoryStore, Shelf, Store, StoreError};
use serde_json::json;
use std::sync::{Arc, Mutex};

on_every_backend!(
    a_restored_history_is_the_same_history_and_the_same_state,
    a_retry_after_a_restore_gets_the_first_envelope,
    what_was_done_once_is_not_done_again_after_a_restore,
    credentials_runners_and_secret_answers_stay_where_they_are,
    a_history_is_only_taken_into_an_empty_project,
    a_history_that_breaks_off_leaves_nothing,
    time_does_not_run_backwards_after_a_restore,
);

async fn entries(store: &dyn Store) -> Vec<Entry> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let visit = move |entry| {
        sink.lock().unwrap().push(entry);
        Ok(())
    };
    let origin = store.history(Box::new(visit)).await.unwrap();
    let seen = seen.lock().unwrap().clone();
    let events = seen.iter().filter(|entry| matches!(entry, Entry::Event(_))).count() as u64;
    assert_eq!(origin.seq, events, "the origin names the last event");
    assert!(!origin.project_id.is_empty());
    seen
}

async fn restore(store: &dyn Store, entries: Vec<Entry>) -> Result<u64, StoreError> {
    store.restore(Box::new(entries.into_iter().map(Ok))).await
}

/// Another store with a history: two features, one answered question, one open, one refused call.
async fn elsewhere() -> World {
    let w = World::new(crate::support::Backend::Memory);
    w.feature("shop").await;
    w.feature("other").await;
    let asked = w.ask("shop").await;
    w.later(5);
    w.answer("shop", &asked, json!("north")).await.unwrap();
    w.ask("other").await;
    w
}

async fn a_restored_history_is_the_same_history_and_the_same_state(w: &World) {
    let source = elsewhere().await;
    w.later(5);
    let history = entries(source.store.as_ref()).await;
    let text = serde_json::to_string(&history).unwrap();
    let read: Vec<Entry> = serde_json::from_str(&text).unwrap();
    assert_eq!(read, history, "an entry survives being written down");
    let last = restore(w.store.as_ref(), read).await.unwrap();
    assert_eq!(last, source.events().await.len() as u64);
    assert_eq!(entries(w.store.as_ref()).await, history);
    assert_eq!(w.everything().await, source.everything().await);
    assert_eq!(w.log("shop").await, source.log("shop").await);
    w.check().await;
    let open = w.list("other", "open").await;
    let answer = json!({"feature_id": "other", "question_id": open[0], "answer": "on",
        "answered_by": "ann", "operation_id": "new"});
    w.call(Role::Human, "feature.question_answer", answer).await.unwrap();
}

async fn a_retry_after_a_restore_gets_the_first_envelope(w: &World) {
    let source = World::new(crate::support::Backend::Memory);
    source.feature("shop").await;
    let caller = Caller::new(Role::Builder);
    let ask = question("shop", json!({"operation_id": "once"}));
    let first = source.raw(&caller, "feature.question_create", &ask).await.unwrap();
    restore(w.store.as_ref(), entries(source.store.as_ref()).await).await.unwrap();
    let again = w.raw(&caller, "feature.question_create", &ask).await.unwrap();
    assert_eq!(again, first, "byte for byte");
    let other = question("shop", json!({"operation_id": "once", "prompt": "Another?"}));
    let refused = w.raw(&caller, "feature.question_create", &other).await.unwrap_err();
    assert_eq!(refused.code.as_str(), "operation_id_reuse_mismatch");
}

async fn what_was_done_once_is_not_done_again_after_a_restore(w: &World) {
    let source = elsewhere().await;
    let lease = source.store.acquire_lease("run".into(), "one".into(), 60_000).await.unwrap().unwrap();
    source.store.claim("turn/1".into(), "one".into(), lease.epoch).await.unwrap();
    source.store.advance_claim("turn/1".into(), lease.epoch, ClaimState::Delivered).await.unwrap();
    restore(w.store.as_ref(), entries(source.store.as_ref()).await).await.unwrap();
    let found = w.store.claim("turn/1".into(), "two".into(), 9).await.unwrap();
    assert_eq!((found.holder.as_str(), found.state), ("one", ClaimState::Delivered));
    let next = w.store.acquire_lease("run".into(), "two".into(), 1_000).await.unwrap().unwrap();
    assert!(next.epoch > lease.epoch, "a former holder stays fenced off");
}

async fn credentials_runners_and_secret_answers_stay_where_they_are(w: &World) {
    let source = World::new(crate::support::Backend::Memory);
    source.feature("shop").await;
    for shelf in Shelf::ALL {
        source.store.place(*shelf, "k".into(), Some(json!("v")), Expect::Anything).await.unwrap();
    }
    let spec = json!({"version": 1, "topic": "key", "questions": [{"id": "key", "header": "Key",
        "question": "Which key?", "kind": "free_text", "required": true, "secret": true}]});
    let asked = source.ask_with("shop", json!({"spec": spec})).await.unwrap();
    let asked = asked["question_id"].as_str().unwrap().to_owned();
    source.answer("shop", &asked, json!({"key": "hunter2"})).await.unwrap();
    let history = entries(source.store.as_ref()).await;
    assert!(!serde_json::to_string(&history).unwrap().contains("hunter2"), "no entry shows a secret");
    restore(w.store.as_ref(), history).await.unwrap();
    assert_eq!(w.store.reveal(question_id(&asked)).await.unwrap(), None);
    let mut travelled = Vec::new();
    for shelf in Shelf::ALL {
        if w.store.document(*shelf, "k".into()).await.unwrap().is_some() {
            travelled.push(*shelf);
        }
    }
    assert_eq!(travelled, [Shelf::Sessions, Shelf::Runs, Shelf::Notes, Shelf::Results]);
    let smuggled = Entry::Document { shelf: Shelf::Tokens, key: "k".into(), value: json!({}) };
    let empty = MemoryStore::new(Arc::new(ManualClock::at(Timestamp::from_millis(START))));
    assert!(restore(&empty, vec![smuggled]).await.is_err());
}

async fn a_history_is_only_taken_into_an_empty_project(w: &World) {
    w.feature("mine").await;
    let history = entries(elsewhere().await.store.as_ref()).await;
    let before = entries(w.store.as_ref()).await;
    let refused = restore(w.store.as_ref(), history).await.unwrap_err();
    let StoreError::Refused(refusal) = refused else { panic!("{refused}") };
    assert_eq!(refusal.code.as_str(), "project_not_empty");
    assert!(refusal.message.contains("1 events"), "{refusal}");
    assert_eq!(entries(w.store.as_ref()).await, before);
}

async fn a_history_that_breaks_off_leaves_nothing(w: &World) {
    let history = entries(elsewhere().await.store.as_ref()).await;
    let mut gap = history.clone();
    gap.remove(1);
    assert!(restore(w.store.as_ref(), gap).await.unwrap_err().to_string().contains("event 2"));
    let broken = StoreError::Refused(aop_kernel::Refusal::invalid_argument("line 9 is torn"));
    let torn = history.clone().into_iter().map(Ok).chain([Err(broken)]);
    assert!(w.store.restore(Box::new(torn)).await.unwrap_err().to_string().contains("line 9"));
    assert_eq!(entries(w.store.as_ref()).await, []);
    w.check().await;
    restore(w.store.as_ref(), history).await.unwrap();
}

async fn time_does_not_run_backwards_after_a_restore(w: &World) {
    let source = World::new(crate::support::Backend::Memory);
    source.later(3_600_000);
    source.feature("ahead").await;
    restore(w.store.as_ref(), entries(source.store.as_ref()).await).await.unwrap();
    let later = json!({"feature_id": "later", "title": "later", "operation_id": "new"});
    w.call(Role::Human, "feature.create", later).await.unwrap();
    assert_eq!(w.show("later").await.created_at.as_millis(), START + 3_600_000);
}
