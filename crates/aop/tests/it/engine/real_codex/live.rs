//! Answers while the process runs: the warm window, nobody to ask, and questions that the engine does not wait for.

use super::super::host::FEATURE;
use super::{DONE, Stage, WithPerson, answer_in, ask, assert_done, outcome, question};
use aop_engine::TurnRequest;
use aop_testkit::{Call, Gate, Received, Reply, Script};
use aop_turn::{Mode, Outcome};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

fn one_question() -> Reply {
    ask("call_ask", &[question("db", &["Postgres", "SQLite"])])
}

#[tokio::test]
async fn within_the_warm_window_the_answer_is_given_live_and_once() {
    let stage = Stage::new(Script::new().then(one_question()).then(Reply::text(DONE)));
    let project = stage.project.root().to_owned();
    let person = move |asked: &str| assert!(answer_in(&project, asked, r#"{"db": "SQLite"}"#));
    let host = Arc::new(WithPerson { inner: stage.host.clone(), person: Box::new(person) });
    let request = TurnRequest { warm: Duration::from_secs(60), ..stage.start("one") };
    let report = stage.driver.run(request, host).await.unwrap();
    assert_done(&report);
    assert_eq!(stage.model.results_of("call_ask"), [r#"{"answers":{"db":{"answers":["SQLite"]}}}"#]);
    assert_eq!(stage.model.main().len(), 2);
}

#[tokio::test]
async fn after_the_warm_window_the_agent_is_parked_and_resumed_as_ever() {
    let stage = Stage::new(Script::new().then(one_question()).then(Reply::text(DONE)));
    let request = TurnRequest { warm: Duration::from_millis(150), ..stage.start("one") };
    let report = stage.run(request).await;
    let [asked] = report.asked.as_slice() else { panic!("{:?}", report.asked) };
    stage.answer(asked, &json!({"db": "SQLite"}));
    assert_done(&stage.resume("two", asked, "call_ask").await);
    assert_eq!(stage.model.results_of("call_ask"), [r#"{"answers":{"db":{"answers":["SQLite"]}}}"#]);
}

#[tokio::test]
async fn a_form_that_two_calls_share_is_answered_live_for_both() {
    let calls = ["call_a", "call_b"]
        .map(|id| Call::new("request_user_input", id, json!({"questions": [question(id, &["x", "y"])]})));
    let stage = Stage::new(Script::new().then(Reply::calls(calls)).then(Reply::text(DONE)));
    let project = stage.project.root().to_owned();
    let person = move |asked: &str| assert!(answer_in(&project, asked, r#"{"call_a": "x", "call_b": "y"}"#));
    let host = Arc::new(WithPerson { inner: stage.host.clone(), person: Box::new(person) });
    let request = TurnRequest { warm: Duration::from_secs(60), ..stage.start("one") };
    assert_done(&stage.driver.run(request, host).await.unwrap());
    assert_eq!(stage.model.results_of("call_a"), [r#"{"answers":{"call_a":{"answers":["x"]}}}"#]);
    assert_eq!(stage.model.results_of("call_b"), [r#"{"answers":{"call_b":{"answers":["y"]}}}"#]);
    assert_eq!(stage.host.questions().await.len(), 1);
}

#[tokio::test]
async fn in_auto_mode_and_at_the_attempt_limit_nobody_is_asked_and_the_turn_goes_on() {
    for (mode, may_ask, words) in [
        (Mode::Auto, true, "Nobody is available"),
        (Mode::Interactive, false, "asked as often as this phase allows"),
    ] {
        let stage = Stage::new(Script::new().then(one_question()).then(Reply::text(DONE)));
        let report = stage.run(TurnRequest { mode, may_ask, ..stage.start("one") }).await;
        assert_done(&report);
        let told: Value = serde_json::from_str(&stage.model.results_of("call_ask")[0]).unwrap();
        let told = told["answers"]["db"]["answers"][0].as_str().unwrap();
        assert!(told.contains(words), "{told}");
        assert_eq!(stage.host.questions().await, [""; 0]);
    }
}

/// The newer models can ask without waiting for the answer.
fn call_on(call: &str) -> Call {
    let questions =
        json!([{"title": "Which database?", "options": ["Postgres", "SQLite"]}, {"title": "Name?"}]);
    Call::new("request_user_input_async", call, json!({"questions": questions})).of("functions")
}

fn ask_on(call: &str) -> Reply {
    Reply::calls([call_on(call)])
}

/// A model that would go on meanwhile, if it were asked.
fn goes_on(gate: &Gate) -> Script {
    let change = Reply::call("exec_command", "call_change", json!({"cmd": "touch made"})).after(gate);
    let unanswered = |request: &Received| request.mentions("call_on") && !request.mentions("the end of q_");
    Script::new().then(ask_on("call_on")).when(unanswered, change).then(Reply::text(DONE))
}

#[tokio::test]
async fn a_question_that_does_not_wait_parks_at_once_and_is_answered_by_message_once() {
    let stage = Stage::with_model("gpt-6.1-sol", goes_on(&Gate::closed()));
    let report = stage.run(stage.start("one")).await;
    let [asked] = report.asked.as_slice() else { panic!("{:?}", report.asked) };
    assert!(!stage.project.path("work/made").exists(), "nothing is done while the feature waits");
    assert_eq!(stage.project.feature(FEATURE)["status"], "awaiting_input");
    assert_eq!(stage.holds(asked, "call_on").await, Some(false), "accepted is not answered");
    stage.answer(asked, &json!({"question_1": "SQLite", "question_2": "shop"}));
    let report = stage.resume("two", asked, "call_on").await;
    assert!(report.delivered);
    assert_done(&report);
    let told = stage.model.user_messages();
    assert_eq!(told.iter().filter(|text| text.contains(asked.as_str())).count(), 1, "{told:?}");
    assert_eq!(stage.model.results_of("call_on"), [r#"{"accepted":true}"#]);
    assert_eq!(stage.holds(asked, "call_on").await, Some(true));
    let again = stage.resume("three", asked, "call_on").await;
    assert!(again.delivered);
    assert_eq!(stage.model.user_messages().iter().filter(|text| text.contains(asked.as_str())).count(), 1);
}

#[tokio::test]
async fn a_question_that_is_answered_in_the_moment_it_is_asked_is_told_once_although_nobody_waits() {
    let stage = Stage::with_model("gpt-6.1-sol", goes_on(&Gate::closed()));
    let project = stage.project.root().to_owned();
    let answer = r#"{"question_1": "SQLite", "question_2": "shop"}"#;
    let person = move |asked: &str| assert!(answer_in(&project, asked, answer));
    let host = Arc::new(WithPerson { inner: stage.host.clone(), person: Box::new(person) });
    let report = stage.driver.run(stage.start("one"), host).await.unwrap();
    let [asked] = report.asked.as_slice() else { panic!("{:?}", report.asked) };
    assert_done(&stage.resume("two", asked, "call_on").await);
    assert_eq!(stage.model.user_messages().iter().filter(|text| text.contains(asked.as_str())).count(), 1);
}

#[tokio::test]
async fn a_question_that_waits_behind_one_that_does_not_is_told_to_ask_again() {
    let wait = Call::new("request_user_input", "call_b", json!({"questions": [question("b", &["x", "y"])]}));
    let asks = Reply::calls([call_on("call_on"), wait.of("functions")]);
    let stage = Stage::with_model("gpt-6.1-sol", Script::new().then(asks).then(Reply::text(DONE)));
    let report = stage.run(stage.start("one")).await;
    let [first] = report.asked.as_slice() else { panic!("{:?}", report.asked) };
    stage.answer(first, &json!("SQLite, shop"));
    let report = stage.resume("two", first, "call_on").await;
    assert!(report.delivered && !matches!(outcome(&report), Outcome::Error { .. }), "{:?}", outcome(&report));
    let told = stage.model.results_of("call_b");
    assert!(told.len() == 1 && told[0].contains("Ask again"), "{told:?}");
    assert!(stage.model.user_messages().iter().any(|text| text.contains(first.as_str())));
}
