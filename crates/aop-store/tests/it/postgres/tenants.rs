//! Projects are tenants of one database: no call on one of them reaches another, with whatever ids it is made.

use super::world;
use crate::support::{World, feature_id, new_project, question, question_id, wait};
use aop_kernel::role::{Caller, Role};
use aop_kernel::status::Status;
use aop_kernel::tools::QuestionFilter;
use aop_store::{ClaimState, EventPage, Expect, FeaturePage, PostgresOptions, QuestionPage, Shelf};
use serde_json::{Value, json};

/// A project with one of everything.
async fn furnished(options: &PostgresOptions) -> (World, String) {
    let w = world(options);
    let create = json!({"feature_id": "a", "title": "A", "spec": "words"});
    w.call(Role::Human, "feature.create", create).await.unwrap();
    w.transition("a", Status::Building).await.unwrap();
    let spec = json!({"version": 1, "topic": "t", "questions": [{"id": "key", "header": "Key",
        "question": "Key?", "kind": "free_text", "required": true, "secret": true}]});
    let data = w.ask_with("a", json!({"spec": spec})).await.unwrap();
    let secret = data["question_id"].as_str().unwrap().to_owned();
    w.answer("a", &secret, json!({"key": "hidden"})).await.unwrap();
    let builder = Caller::new(Role::Builder);
    w.raw(&builder, "feature.question_create", &question("a", json!({"operation_id": "shared"})))
        .await
        .unwrap();
    w.store.acquire_lease("run".into(), "one".into(), 60_000).await.unwrap().unwrap();
    w.store.claim("turn:a".into(), "one".into(), 1).await.unwrap();
    w.store.place(Shelf::Notes, "k".into(), Some(json!("mine")), Expect::Anything).await.unwrap();
    (w, secret)
}

/// Everything a store can show.
async fn everything(w: &World, secret: &str) -> Value {
    let lease = w.store.acquire_lease("run".into(), "thief".into(), 1).await.unwrap();
    assert_eq!(lease, None, "the lease is still held by its holder");
    let files = w.store.feature_files(feature_id("a"), 0).await.unwrap().unwrap();
    let claim = w.store.claim("turn:a".into(), "one".into(), 1).await.unwrap();
    json!([
        w.everything().await.0,
        w.everything().await.1,
        w.events().await,
        w.store.reveal(question_id(secret)).await.unwrap(),
        w.store.document(Shelf::Notes, "k".into()).await.unwrap(),
        (claim.holder, claim.epoch, claim.state.as_str()),
        (files.questions, files.log, files.spec),
        w.store.next_deadline().await.unwrap(),
    ])
}

#[test]
fn no_call_can_reach_another_project() {
    wait(async {
        let (theirs, secret) = furnished(&new_project()).await;
        let open = theirs.list("a", "open").await[0].clone();
        let before = everything(&theirs, &secret).await;
        let w = world(&new_project());
        nothing_is_seen(&w, &secret, &open).await;
        // The same names in a project of its own, and everything done to them that can be done.
        w.feature("a").await;
        for id in [&secret, &open] {
            w.refuses("question_not_found", w.answer("a", id, json!("x"))).await;
            w.refuses("question_not_found", w.withdraw("a", id)).await;
            w.refuses("question_not_found", w.reopen("a", id)).await;
        }
        let builder = Caller::new(Role::Builder);
        let input = question("a", json!({"operation_id": "shared", "prompt": "Another?"}));
        w.raw(&builder, "feature.question_create", &input).await.unwrap();
        w.store.forget(question_id(&secret)).await.unwrap();
        let lease = w.store.acquire_lease("run".into(), "two".into(), 60_000).await.unwrap().unwrap();
        w.store.release_lease("run".into(), lease.epoch).await.unwrap();
        assert_eq!(w.store.claim("turn:a".into(), "two".into(), 7).await.unwrap().holder, "two");
        assert!(w.store.advance_claim("turn:a".into(), 7, ClaimState::Delivered).await.unwrap());
        assert!(w.store.place(Shelf::Notes, "k".into(), Some(json!("x")), Expect::Absent).await.unwrap());
        assert!(w.store.place(Shelf::Notes, "k".into(), None, Expect::Value(json!("x"))).await.unwrap());
        w.later(100_000_000);
        w.store.expire().await.unwrap();
        w.cancel("a").await.unwrap();
        w.check().await;
        assert_eq!(everything(&theirs, &secret).await, before);
        theirs.check().await;
    });
}

/// Every read, with the other project's ids.
async fn nothing_is_seen(w: &World, secret: &str, open: &str) {
    let a = || feature_id("a");
    assert_eq!(w.everything().await, (Vec::new(), Vec::new()));
    assert_eq!(w.events().await, Vec::new());
    assert!(w.store.feature(a()).await.unwrap().is_none());
    assert!(w.store.view(a(), 9).await.unwrap().is_none());
    assert!(w.store.feature_files(a(), 0).await.unwrap().is_none());
    assert_eq!(w.store.spec(a()).await.unwrap(), None);
    assert_eq!(w.store.changed_since(0).await.unwrap(), (Vec::new(), 0));
    assert_eq!(w.store.next_deadline().await.unwrap(), None);
    for id in [secret, open] {
        assert_eq!(w.store.question(question_id(id)).await.unwrap(), None);
        assert_eq!(w.store.reveal(question_id(id)).await.unwrap(), None);
    }
    let page = EventPage { feature: Some(a()), ..EventPage::default() };
    assert_eq!(w.store.events(page).await.unwrap(), Vec::new());
    let page = FeaturePage { only: Some(a()), ..FeaturePage::default() };
    assert_eq!(w.store.features(page).await.unwrap(), Vec::new());
    let page = QuestionPage { feature: Some(a()), filter: QuestionFilter::All, after: None, limit: 9 };
    assert_eq!(w.store.questions(page).await.unwrap(), Vec::new());
    assert_eq!(w.store.document(Shelf::Notes, "k".into()).await.unwrap(), None);
    assert_eq!(w.store.documents(Shelf::Notes, String::new()).await.unwrap(), Vec::new());
    assert!(!w.store.advance_claim("turn:a".into(), 1, ClaimState::Delivered).await.unwrap());
    // The other project took its lease at this very time.
    let epoch = w.store.now().await.unwrap().as_millis().unsigned_abs();
    let lease = Expect::Lease { name: "run".into(), epoch };
    assert!(!w.store.place(Shelf::Notes, "k".into(), Some(json!("x")), lease).await.unwrap());
    assert_eq!(w.store.verify().await.unwrap(), Vec::<String>::new());
}

/// The rule behind it, read from the source: there is no statement on a table that does not name the project.
#[test]
fn every_statement_names_the_project() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/postgres");
    let mut statements = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        for literal in text.split('"').skip(1).step_by(2) {
            let about = |word: &str| literal.contains(word);
            let tables = [
                "features",
                "questions",
                "events",
                "operations",
                "secrets",
                "leases",
                "claims",
                "documents",
                "specs",
            ];
            let touches = tables.iter().any(|table| {
                ["FROM ", "INTO ", "UPDATE ", "JOIN "].iter().any(|verb| about(&format!("{verb}{table}")))
            });
            if touches {
                statements += 1;
                assert!(about("project") && about("$1"), "{}: {literal}", path.display());
            }
        }
    }
    assert!(statements > 30, "{statements}");
}
