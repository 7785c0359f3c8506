//! Waiting for one feature: woken by every commit that touches it, whoever makes it, and by no other.

use crate::support::{QUARTER, World, feature_id, on_every_backend, question_id};
use aop_kernel::role::Role;
use aop_store::Entry;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch::Receiver;

on_every_backend!(
    a_commit_wakes_those_who_wait_for_its_feature_and_nobody_else,
    a_commit_between_reading_and_waiting_is_not_missed,
    what_writes_nothing_wakes_nobody,
    the_clock_wakes_those_whose_question_it_closes,
    a_restored_history_wakes_those_who_wait_for_its_features,
    every_one_of_many_who_wait_is_woken,
);

/// Far more than any commit takes to be noticed.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn waiter(w: &World, feature: &str) -> Receiver<()> {
    w.store.changes_of(&feature_id(feature))
}

pub(crate) async fn woken(wait: &mut Receiver<()>) {
    tokio::time::timeout(LIMIT, wait.changed()).await.expect("woken in the end").unwrap();
}

pub(crate) async fn note(w: &World, feature: &str) {
    let note = json!({"feature_id": feature, "note": "n"});
    w.call(Role::Human, "feature.log_append", note).await.unwrap();
}

async fn a_commit_wakes_those_who_wait_for_its_feature_and_nobody_else(w: &World) {
    w.feature("a").await;
    w.feature("b").await;
    let (mut a, mut also_a, b) = (waiter(w, "a"), waiter(w, "a"), waiter(w, "b"));
    let mut unborn = waiter(w, "unborn");
    for _ in 0..20 {
        note(w, "a").await;
        woken(&mut a).await;
        woken(&mut also_a).await;
    }
    assert!(!b.has_changed().unwrap() && !unborn.has_changed().unwrap());
    w.feature("unborn").await;
    woken(&mut unborn).await;
    assert!(!b.has_changed().unwrap());
}

async fn a_commit_between_reading_and_waiting_is_not_missed(w: &World) {
    w.feature("a").await;
    let id = w.ask("a").await;
    let mut wait = waiter(w, "a");
    assert!(w.store.question(question_id(&id)).await.unwrap().unwrap().is_open());
    w.answer("a", &id, json!("x")).await.unwrap();
    assert!(wait.has_changed().unwrap(), "announced before it was answered");
    woken(&mut wait).await;
    assert!(!w.store.question(question_id(&id)).await.unwrap().unwrap().is_open());
}

async fn what_writes_nothing_wakes_nobody(w: &World) {
    w.feature("a").await;
    let wait = waiter(w, "a");
    let again = json!({"feature_id": "a", "title": "t"});
    w.refuses("feature_already_exists", w.call(Role::Human, "feature.create", again)).await;
    w.store.acquire_lease("run".into(), "one".into(), 1_000).await.unwrap();
    assert!(!wait.has_changed().unwrap());
}

async fn the_clock_wakes_those_whose_question_it_closes(w: &World) {
    for name in ["a", "b", "c"] {
        w.feature(name).await;
    }
    w.ask("a").await;
    w.ask("b").await;
    let (mut a, mut b, c) = (waiter(w, "a"), waiter(w, "b"), waiter(w, "c"));
    w.later(QUARTER + 1);
    assert_eq!(w.store.expire().await.unwrap(), 2);
    woken(&mut a).await;
    woken(&mut b).await;
    assert!(!c.has_changed().unwrap());
}

async fn a_restored_history_wakes_those_who_wait_for_its_features(w: &World) {
    let source = World::new(crate::support::Backend::Memory);
    source.feature("a").await;
    let entries: Arc<Mutex<Vec<Entry>>> = Arc::default();
    let sink = Arc::clone(&entries);
    let visit = move |entry| {
        sink.lock().unwrap().push(entry);
        Ok(())
    };
    source.store.history(Box::new(visit)).await.unwrap();
    let entries = entries.lock().unwrap().clone();
    let mut wait = waiter(w, "a");
    w.store.restore(Box::new(entries.into_iter().map(Ok))).await.unwrap();
    woken(&mut wait).await;
}

async fn every_one_of_many_who_wait_is_woken(w: &World) {
    let names: Vec<String> = (0..40).map(|number| format!("f{number}")).collect();
    for name in &names {
        w.feature(name).await;
    }
    let mut waits: Vec<_> = names.iter().map(|name| waiter(w, name)).collect();
    for (number, name) in names.iter().enumerate() {
        note(w, name).await;
        woken(&mut waits[number]).await;
        let later = &waits[number + 1..];
        assert!(later.iter().all(|wait| !wait.has_changed().unwrap()), "nobody behind {name}");
    }
}

/// Of two stores on one project, as two processes have them.
pub(crate) async fn a_commit_of_another_process_wakes_those_who_wait_for_its_feature(
    one: &World,
    two: &World,
) {
    let (mut a, mut c, unborn) = (waiter(one, "a"), waiter(one, "c"), waiter(one, "unborn"));
    two.feature("a").await;
    woken(&mut a).await;
    for _ in 0..20 {
        note(two, "a").await;
        woken(&mut a).await;
    }
    two.feature("c").await;
    woken(&mut c).await;
    assert!(!unborn.has_changed().unwrap());
}

/// Of two stores on one project: ours, whose commit is announced at once, comes right behind that of the other.
pub(crate) async fn a_commit_of_ours_right_behind_one_of_theirs_hides_nothing(one: &World, two: &World) {
    one.feature("ours").await;
    two.feature("theirs").await;
    let (mut ours, mut theirs) = (waiter(one, "ours"), waiter(one, "theirs"));
    for _ in 0..50 {
        ours.mark_unchanged();
        theirs.mark_unchanged();
        note(two, "theirs").await;
        note(one, "ours").await;
        assert!(ours.has_changed().unwrap(), "announced before it was answered");
        woken(&mut theirs).await;
    }
}
