//! Secrets: shown to nobody, kept apart, erased when they were delivered or the feature ends.

use crate::support::{QUARTER, World, on_every_backend, question_id};
use aop_kernel::status::Status;
use aop_store::Projector;
use serde_json::{Value, json};

on_every_backend!(
    secret_is_redacted_everywhere_and_revealed_only_by_reveal,
    secret_is_erased_by_forget,
    secret_is_erased_when_the_feature_ends,
    secret_free_text_for_a_whole_card_is_redacted_as_a_whole,
    secret_default_is_put_away_like_an_answer,
    a_form_without_secret_answers_hides_nothing,
);

const SECRET: &str = "hunter2-correct-horse";

fn card() -> Value {
    json!({"version": 1, "topic": "t", "questions": [
        {"id": "user", "header": "User", "question": "Who?", "kind": "free_text", "required": true},
        {"id": "key", "header": "Key", "question": "Key?", "kind": "free_text", "required": false, "secret": true}]})
}

async fn answered(w: &World, feature: &str) -> String {
    w.feature_in(feature, Status::Building).await;
    let id = w.ask_with(feature, json!({"spec": card()})).await.unwrap()["question_id"]
        .as_str()
        .unwrap()
        .to_owned();
    w.answer(feature, &id, json!({"user": "root", "key": SECRET})).await.unwrap();
    id
}

async fn secret_is_redacted_everywhere_and_revealed_only_by_reveal(w: &World) {
    let id = answered(w, "a").await;
    let shown = json!({"user": "root", "key": {"redacted": true}});
    assert_eq!(w.record(&id).await["answer"], shown);
    let lost = w.refuses("question_already_answered", w.answer("a", &id, json!({"user": "x"}))).await;
    assert_eq!(lost.facts["answer"], shown);
    Projector::new(w.dir()).catch_up(w.store.as_ref()).await.unwrap();
    let mut visible = vec![
        format!("{:?}", w.everything().await),
        w.context("a").await.to_string(),
        json!(w.events().await).to_string(),
        w.log("a").await.join("\n"),
        lost.to_json().to_string(),
    ];
    visible.extend(files(&w.dir().join("features")));
    assert!(visible.len() > 8, "the files were read");
    assert!(visible.iter().all(|text| !text.contains(SECRET)), "{visible:?}");
    let revealed = w.store.reveal(question_id(&id)).await.unwrap();
    assert_eq!(revealed, Some(json!({"user": "root", "key": SECRET})));
}

/// The contents of every file below a folder.
fn files(dir: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(
            |path| if path.is_dir() { files(&path) } else { vec![std::fs::read_to_string(path).unwrap()] },
        )
        .collect()
}

async fn secret_is_erased_by_forget(w: &World) {
    let id = answered(w, "a").await;
    w.store.forget(question_id(&id)).await.unwrap();
    assert_eq!(w.store.reveal(question_id(&id)).await.unwrap(), None);
    w.store.forget(question_id(&id)).await.unwrap();
    assert_eq!(w.record(&id).await["answer"]["user"], "root", "the rest of the answer stays");
}

async fn secret_is_erased_when_the_feature_ends(w: &World) {
    let (ended, kept) = (answered(w, "ended").await, answered(w, "kept").await);
    w.cancel("ended").await.unwrap();
    assert_eq!(w.store.reveal(question_id(&ended)).await.unwrap(), None);
    assert!(w.store.reveal(question_id(&kept)).await.unwrap().is_some());
}

async fn secret_free_text_for_a_whole_card_is_redacted_as_a_whole(w: &World) {
    w.feature("a").await;
    let changes = json!({"spec": card(), "interaction": {"kind": "open_text"}});
    let id = w.ask_with("a", changes).await.unwrap()["question_id"].as_str().unwrap().to_owned();
    w.answer("a", &id, json!(SECRET)).await.unwrap();
    assert_eq!(w.record(&id).await["answer"], json!({"redacted": true}));
    assert_eq!(w.store.reveal(question_id(&id)).await.unwrap(), Some(json!(SECRET)));
}

async fn secret_default_is_put_away_like_an_answer(w: &World) {
    w.policy(|policy| policy.strict = false);
    w.feature("a").await;
    let default = json!({"user": "root", "key": SECRET});
    let changes = json!({"spec": card(), "default_decision_policy": "use_default",
        "expected_answer": {"kind": "form", "default": default}});
    let id = w.ask_with("a", changes).await.unwrap()["question_id"].as_str().unwrap().to_owned();
    w.later(QUARTER);
    w.store.expire().await.unwrap();
    assert_eq!(w.record(&id).await["answer"], json!({"user": "root", "key": {"redacted": true}}));
    assert_eq!(w.store.reveal(question_id(&id)).await.unwrap(), Some(default));
}

async fn a_form_without_secret_answers_hides_nothing(w: &World) {
    w.feature("a").await;
    let id =
        w.ask_with("a", json!({"spec": card()})).await.unwrap()["question_id"].as_str().unwrap().to_owned();
    w.answer("a", &id, json!({"user": "root"})).await.unwrap();
    assert_eq!(w.record(&id).await["answer"], json!({"user": "root"}));
    assert_eq!(w.store.reveal(question_id(&id)).await.unwrap(), None);
}
