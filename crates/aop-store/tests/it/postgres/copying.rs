//! A project goes from a file to a server and back, and nothing of it is lost.

use super::world;
use crate::support::{Backend, World, new_project, question_id, wait};
use aop_kernel::role::{Caller, Role};
use aop_store::{ClaimState, Entry, Expect, Shelf, StoreError, copy};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// Everything a project can have, a good deal of each.
async fn furnish(w: &World) -> String {
    for number in 0..40 {
        let feature = format!("f{number}");
        let create = json!({"feature_id": feature, "title": "t", "spec": format!("words \u{0} of {number}")});
        w.call(Role::Human, "feature.create", create).await.unwrap();
        let id = w.ask(&feature).await;
        if number % 2 == 0 {
            w.answer(&feature, &id, json!("x")).await.unwrap();
        }
    }
    let spec = json!({"version": 1, "topic": "t", "questions": [{"id": "key", "header": "Key",
        "question": "Key?", "kind": "free_text", "required": true, "secret": true}]});
    let data = w.ask_with("f0", json!({"spec": spec})).await.unwrap();
    let secret = data["question_id"].as_str().unwrap().to_owned();
    w.answer("f0", &secret, json!({"key": "staple"})).await.unwrap();
    for shelf in Shelf::ALL {
        w.store
            .place(*shelf, "k".into(), Some(json!({"on": shelf.as_str()})), Expect::Anything)
            .await
            .unwrap();
    }
    let lease = w.store.acquire_lease("run".into(), "one".into(), 1_000).await.unwrap().unwrap();
    w.store.claim("turn".into(), "one".into(), lease.epoch).await.unwrap();
    w.store.advance_claim("turn".into(), lease.epoch, ClaimState::Delivered).await.unwrap();
    secret
}

async fn entries(w: &World) -> Vec<Entry> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let visit = move |entry| {
        sink.lock().unwrap().push(entry);
        Ok(())
    };
    w.store.history(Box::new(visit)).await.unwrap();
    seen.lock().unwrap().clone()
}

#[test]
fn a_copy_to_a_server_and_back_to_a_file_has_everything() {
    wait(async {
        let file = World::new(Backend::Sqlite);
        let secret = furnish(&file).await;
        let server = world(&new_project());
        let there = copy(file.store.as_ref(), server.store.as_ref()).await.unwrap();
        assert_eq!((there.tokens, there.secrets), (1, 1));
        let other = World::new(Backend::Sqlite);
        let back = copy(server.store.as_ref(), other.store.as_ref()).await.unwrap();
        assert_eq!(back, there);
        for copied in [&server, &other] {
            assert_eq!(entries(copied).await, entries(&file).await);
            let revealed = copied.store.reveal(question_id(&secret)).await.unwrap();
            assert_eq!(revealed, Some(json!({"key": "staple"})));
            let token = copied.store.document(Shelf::Tokens, "k".into()).await.unwrap();
            assert_eq!(token, Some(json!({"on": "tokens"})));
            copied.check().await;
        }
        // Work goes on where it was: what was asked before can be answered, what was done is not done again.
        let open = other.list("f1", "open").await;
        assert_eq!(server.list("f1", "open").await, open);
    });
}

#[test]
fn a_copy_into_a_project_that_holds_something_is_refused() {
    wait(async {
        let file = World::new(Backend::Sqlite);
        furnish(&file).await;
        let server = world(&new_project());
        server.feature("mine").await;
        let before = entries(&server).await;
        let refused = copy(file.store.as_ref(), server.store.as_ref()).await.unwrap_err();
        let StoreError::Refused(refusal) = refused else { panic!("{refused}") };
        assert_eq!(refusal.code.as_str(), "project_not_empty");
        assert_eq!(entries(&server).await, before);
        let retry: Value = json!({"feature_id": "mine", "note": "n", "operation_id": "n"});
        server.raw(&Caller::new(Role::Human), "feature.log_append", &retry).await.unwrap();
        server.check().await;
    });
}
