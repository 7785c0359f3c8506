//! A question is asked, nothing is left, a person answers, and the model gets the answer as the output of its call.

use super::{DONE, Stage, WithPerson, answer_in, ask, assert_done, is_alive, outcome, question};
use crate::support::Project;
use aop_engine::Input;
use aop_kernel::question::QuestionState;
use aop_testkit::{Call, Reply, Script};
use aop_turn::Outcome;
use serde_json::{Value, json};
use std::sync::Arc;

const MANY: [&str; 7] =
    ["Postgres (Recommended)", "SQLite", "MySQL", "DuckDB", "Redis", "Files", "None at all"];

fn two_questions() -> Reply {
    ask("call_ask", &[question("db_choice", &MANY), question("Look & Feel", &["Plain", "Fancy"])])
}

fn labels(question: &Value) -> Vec<&str> {
    question["options"].as_array().unwrap().iter().map(|option| option["label"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn two_questions_are_asked_parked_answered_and_returned_as_the_output_of_the_call() {
    let stage = Stage::new(Script::new().then(two_questions()).then(Reply::text(DONE)));
    let report = stage.run(stage.start("one")).await;
    assert!(!is_alive(stage.process()));
    assert!(matches!(outcome(&report), Outcome::AskUser(_)), "{:?}", outcome(&report));
    let [asked] = report.asked.as_slice() else { panic!("{:?}", report.asked) };
    assert_eq!(report.session, Some(stage.host.session_ref()));

    let record = json!(stage.host.question(asked).await);
    assert_eq!(labels(&record["spec"]["questions"][0]), MANY);
    assert_eq!(labels(&record["spec"]["questions"][1]), ["Plain", "Fancy"]);
    assert_eq!(stage.holds(asked, "call_ask").await, Some(false));

    stage.answer(asked, &json!({"db_choice": "None at all", "look_feel": "as the old one"}));
    let report = stage.resume("two", asked, "call_ask").await;
    assert!(report.delivered);
    assert_done(&report);
    let told = r#"{"answers":{"db_choice":{"answers":["None at all"]},"Look & Feel":{"answers":["None of the above","user_note: as the old one"]}}}"#;
    assert_eq!(stage.model.results_of("call_ask"), [told]);
    assert_eq!(
        stage.items(),
        ["user: Plan the shop.", "function_call call_ask", "function_call_output call_ask"],
        "nothing else is said to the model"
    );
    assert_eq!(stage.model.main().len(), 2);
    assert_eq!(stage.holds(asked, "call_ask").await, Some(true));
}

#[tokio::test]
async fn a_text_for_the_whole_card_is_passed_on_as_such() {
    let stage = Stage::new(Script::new().then(two_questions()).then(Reply::text(DONE)));
    let report = stage.run(stage.start("one")).await;
    stage.answer(&report.asked[0], &json!("whatever you like"));
    assert_done(&stage.resume("two", &report.asked[0], "call_ask").await);
    let told: Value = serde_json::from_str(&stage.model.results_of("call_ask")[0]).unwrap();
    assert_eq!(
        told["answers"]["db_choice"]["answers"],
        json!(["None of the above", "user_note: whatever you like"])
    );
}

#[tokio::test]
async fn two_asks_in_one_message_become_one_form_and_both_get_their_outputs() {
    let calls = [
        Call::new("request_user_input", "call_a", json!({"questions": [question("db", &["x", "y"])]})),
        Call::new("exec_command", "call_cmd", json!({"cmd": "echo ran > ran.txt"})),
        Call::new("request_user_input", "call_b", json!({"questions": [question("db", &["v", "w"])]})),
    ];
    let stage = Stage::new(Script::new().then(Reply::calls(calls)).then(Reply::text(DONE)));
    let report = stage.run(stage.start("one")).await;
    let [asked] = report.asked.as_slice() else { panic!("{:?}", report.asked) };
    stage.answer(asked, &json!({"db": "y", "db_2": "v"}));
    assert_done(&stage.resume("two", asked, "call_a").await);
    assert_eq!(stage.model.results_of("call_a"), [r#"{"answers":{"db":{"answers":["y"]}}}"#]);
    assert_eq!(stage.model.results_of("call_b"), [r#"{"answers":{"db":{"answers":["v"]}}}"#]);
    let command = stage.model.results_of("call_cmd");
    assert!(command.len() == 1 && command[0].contains("not run"), "{command:?}");
    assert!(!stage.project.path("work/ran.txt").exists(), "what stood behind the question was not run");
}

#[tokio::test]
async fn a_command_before_the_question_keeps_its_real_output() {
    let calls = [
        Call::new("exec_command", "call_cmd", json!({"cmd": "echo really ran"})),
        Call::new("request_user_input", "call_a", json!({"questions": [question("db", &["x", "y"])]})),
    ];
    let stage = Stage::new(Script::new().then(Reply::calls(calls)).then(Reply::text(DONE)));
    let report = stage.run(stage.start("one")).await;
    stage.answer(&report.asked[0], &json!({"db": "x"}));
    assert_done(&stage.resume("two", &report.asked[0], "call_a").await);
    assert!(stage.model.results_of("call_cmd")[0].contains("really ran"));
    assert_eq!(stage.model.results_of("call_a").len(), 1);
}

#[tokio::test]
async fn an_answer_that_came_before_the_park_was_complete_is_delivered_like_any_other() {
    let stage = Stage::new(Script::new().then(two_questions()).then(Reply::text(DONE)));
    let project = stage.project.root().to_owned();
    // The person is as quick as can be: the answer stands before the driver knows that the question does.
    let person = move |asked: &str| {
        let answer = r#"{"db_choice": "SQLite", "look_feel": "Plain"}"#;
        assert!(answer_in(&project, asked, answer), "the answer is taken");
    };
    let host = Arc::new(WithPerson { inner: stage.host.clone(), person: Box::new(person) });
    let report = stage.driver.run(stage.start("one"), host).await.unwrap();
    let [asked] = report.asked.as_slice() else { panic!("{:?}", report.asked) };
    assert!(matches!(stage.host.question(asked).await.state, QuestionState::Answered { .. }));
    assert_done(&stage.resume("two", asked, "call_ask").await);
    assert_eq!(stage.model.results_of("call_ask").len(), 1);
}

#[tokio::test]
async fn a_question_that_expired_or_was_taken_back_returns_its_words() {
    for way in ["expired", "withdrawn"] {
        let settings = "policy:\n  execution:\n    human_input:\n      strict: false\n";
        let stage = Stage::of(
            Project::with_settings(settings),
            Script::new().then(two_questions()).then(Reply::text(DONE)),
        );
        let report = stage.run(stage.start("one")).await;
        let asked = &report.asked[0];
        let end = match way {
            // The policy of the small host is the default one; what the driver is told is what counts here.
            "expired" => aop_engine::Reply {
                question_id: asked.clone(),
                call_id: Some("call_ask".into()),
                kind: aop_engine::ReplyKind::Unanswered,
                answer: Value::Null,
                question: json!(stage.host.question(asked).await),
                words: "Nobody answered in time. Decide for yourself.".into(),
                notes: String::new(),
                notes_are_secret: false,
            },
            _ => {
                let args = ["withdraw", "--feature-id", "shop", "--question-id", asked];
                stage.project.run(&args).data();
                stage.end(asked, "call_ask").await
            }
        };
        let words = end.words.clone();
        let report = stage.run(stage.next("two", Input::Reply(Box::new(end)))).await;
        assert!(report.delivered);
        assert_done(&report);
        assert_eq!(stage.model.results_of("call_ask"), [words], "{way}");
    }
}

#[tokio::test]
async fn the_same_reply_twice_is_told_once() {
    let stage = Stage::new(
        Script::new().then(two_questions()).then(Reply::text("working on it")).then(Reply::text(DONE)),
    );
    let report = stage.run(stage.start("one")).await;
    let asked = &report.asked[0];
    stage.answer(asked, &json!({"db_choice": "SQLite", "look_feel": "Plain"}));
    stage.resume("two", asked, "call_ask").await;
    let report = stage.resume("three", asked, "call_ask").await;
    assert!(report.delivered);
    assert_done(&report);
    assert_eq!(stage.model.results_of("call_ask").len(), 1);
}

#[tokio::test]
async fn another_message_goes_on_in_the_same_conversation_and_brings_new_instructions_along_once() {
    let stage =
        Stage::new(Script::new().then(Reply::text("one")).then(Reply::text("two")).then(Reply::text(DONE)));
    let mut request = stage.start("one");
    request.instructions = "INSTRUCTIONS-A".into();
    stage.run(request).await;
    for (run, instructions) in [("two", "INSTRUCTIONS-A"), ("three", "INSTRUCTIONS-B")] {
        let mut request = stage.next(run, Input::Message(format!("Now {run}.")));
        request.instructions = instructions.into();
        stage.run(request).await;
    }
    let conversation = stage.model.conversation().unwrap().body.to_string();
    assert_eq!(conversation.matches("INSTRUCTIONS-A").count(), 1);
    assert_eq!(conversation.matches("INSTRUCTIONS-B").count(), 1);
    assert_eq!(
        stage.items(),
        ["user: Plan the shop.", "assistant: one", "user: Now two.", "assistant: two", "user: Now three."]
    );
}

#[tokio::test]
async fn a_parked_agent_is_no_process() {
    let stage = Stage::new(Script::new().then(two_questions()));
    stage.run(stage.start("one")).await;
    assert!(!stage.project.path(".aop/runs/one/process.json").exists());
}

#[tokio::test]
async fn a_card_that_nobody_can_be_shown_is_told_so_and_the_turn_goes_on() {
    let stage = Stage::new(Script::new().then(ask("call_ask", &[])).then(Reply::text(DONE)));
    assert_done(&stage.run(stage.start("one")).await);
    assert!(stage.model.results_of("call_ask")[0].contains("no questions"));
}

#[tokio::test]
async fn several_agents_of_a_project_work_at_the_same_time() {
    let mut script = Script::new();
    for _ in 0..5 {
        script = script.then(Reply::text(DONE));
    }
    let stage = Stage::new(script);
    assert_done(&stage.run(stage.start("zero")).await);
    // Everything is made afresh but what is known of the program: all four come to an empty home at the same moment.
    let home = stage.project.path(".aop/engines/codex");
    let known = std::fs::read(home.join("aop-version.json")).unwrap();
    std::fs::remove_dir_all(&home).unwrap();
    std::fs::create_dir(&home).unwrap();
    std::fs::write(home.join("aop-version.json"), known).unwrap();
    let run = |name: &'static str| stage.driver.run(stage.start(name), stage.host.clone());
    let reports = tokio::join!(run("one"), run("two"), run("three"), run("four"));
    let reports = [reports.0, reports.1, reports.2, reports.3].map(Result::unwrap);
    reports.iter().for_each(assert_done);
    let mut sessions: Vec<String> =
        reports.into_iter().map(|report| report.session.unwrap().session).collect();
    sessions.sort();
    sessions.dedup();
    assert_eq!(sessions.len(), 4);
}
