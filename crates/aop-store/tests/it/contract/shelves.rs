//! Documents on shelves: the last word stands, and what was expected is checked with the write.

use crate::support::{World, on_every_backend};
use aop_store::{Expect, Shelf};
use serde_json::json;

on_every_backend!(
    a_document_stands_where_it_was_placed_and_nowhere_else,
    documents_are_listed_by_the_beginning_of_their_keys_in_order,
    a_document_is_placed_only_if_what_was_expected_holds,
    what_a_former_holder_of_a_lease_writes_is_refused,
);

async fn a_document_stands_where_it_was_placed_and_nowhere_else(w: &World) {
    let put = async |shelf, key: &str, value| {
        w.store.place(shelf, key.into(), value, Expect::Anything).await.unwrap()
    };
    assert!(put(Shelf::Runs, "r", Some(json!({"n": 1}))).await);
    assert!(put(Shelf::Runs, "r", Some(json!({"n": 2}))).await);
    assert_eq!(w.store.document(Shelf::Runs, "r".into()).await.unwrap(), Some(json!({"n": 2})));
    assert_eq!(w.store.document(Shelf::Notes, "r".into()).await.unwrap(), None);
    assert!(put(Shelf::Runs, "r", None).await);
    assert_eq!(w.store.document(Shelf::Runs, "r".into()).await.unwrap(), None);
    assert!(put(Shelf::Runs, "r", None).await, "taking away what is not there is no error");
}

async fn documents_are_listed_by_the_beginning_of_their_keys_in_order(w: &World) {
    for key in ["b/2", "a%/1", "b/1", "b", "bc", "a_/1"] {
        w.store.place(Shelf::Notes, key.into(), Some(json!(key)), Expect::Anything).await.unwrap();
    }
    let keys = async |prefix: &str| -> Vec<String> {
        let found = w.store.documents(Shelf::Notes, prefix.into()).await.unwrap();
        found.into_iter().map(|(key, _)| key).collect()
    };
    assert_eq!(keys("b/").await, ["b/1", "b/2"]);
    assert_eq!(keys("a%").await, ["a%/1"], "no character is a pattern");
    assert_eq!(keys("a_").await, ["a_/1"]);
    assert_eq!(keys("").await, ["a%/1", "a_/1", "b", "b/1", "b/2", "bc"]);
}

async fn a_document_is_placed_only_if_what_was_expected_holds(w: &World) {
    let put = async |value: i64, expect| {
        w.store.place(Shelf::Results, "k".into(), Some(json!(value)), expect).await.unwrap()
    };
    assert!(!put(1, Expect::Value(json!(0))).await, "there is none");
    assert!(put(1, Expect::Absent).await);
    assert!(!put(2, Expect::Absent).await);
    assert!(!put(2, Expect::Value(json!(0))).await);
    assert!(put(2, Expect::Value(json!(1))).await);
    assert_eq!(w.store.document(Shelf::Results, "k".into()).await.unwrap(), Some(json!(2)));
}

async fn what_a_former_holder_of_a_lease_writes_is_refused(w: &World) {
    let put = async |value: i64, epoch| {
        let expect = Expect::Lease { name: "run".into(), epoch };
        w.store.place(Shelf::Sessions, "a/planner".into(), Some(json!(value)), expect).await.unwrap()
    };
    assert!(!put(1, 1).await, "nobody holds it");
    let first = w.store.acquire_lease("run".into(), "one".into(), 1_000).await.unwrap().unwrap();
    assert!(put(1, first.epoch).await);
    w.later(1_000);
    assert!(!put(2, first.epoch).await, "it has run out");
    let second = w.store.acquire_lease("run".into(), "two".into(), 1_000).await.unwrap().unwrap();
    assert!(!put(2, first.epoch).await);
    assert!(put(3, second.epoch).await);
    assert_eq!(w.store.document(Shelf::Sessions, "a/planner".into()).await.unwrap(), Some(json!(3)));
}
