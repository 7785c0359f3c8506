//! Real agent programs end to end: `aop run` takes a feature through all three roles, with a question in each phase,
//! against a fake model. `cargo xtask test-engines` runs these.

use crate::run_support::{Running, assert_nothing_left, events, git, workshop};
use crate::support::Project;
use aop_testkit::{Call, CleanHome, Engines, FakeModel, Gate, Received, Reply, Script, Wire};
use serde_json::{Value, json};

/// The results of the three roles, with the marker.
const RESULTS: [&str; 3] = [
    r#"{"__SKILL_DONE__": true, "summary": "a plan", "steps": ["build it"]}"#,
    r#"{"__SKILL_DONE__": true, "summary": "built", "files_changed": ["hello.txt"]}"#,
    r#"{"__SKILL_DONE__": true, "verdict": "pass", "summary": "good"}"#,
];
const NOTE: &str = "Use the existing date picker";
/// What is answered in every phase.
pub(crate) const SCRIPTED_ANSWER: &str = "Right";
/// How the end of a question begins where it is told in words.
const TOLD: &str = "The end of your question";
const QUESTIONS: [&str; 3] = ["Which shop?", "May I?", "Accept the risk?"];

/// A model that asks in every phase and finishes when it has its answer.
pub(crate) fn script(ask: impl Fn(&str, &str) -> Reply) -> Script {
    let mut script = Script::new();
    for (number, result) in RESULTS.iter().enumerate() {
        script = script.then(ask(&format!("call_{number}"), QUESTIONS[number])).then(Reply::text(result));
    }
    script
}

pub(crate) fn card(question: &str) -> Value {
    json!({"id": "choice", "header": "Choice", "question": question, "multiSelect": false,
        "options": [{"label": "Left", "description": "the left one"}, {"label": "Right", "description": "the right one"}]})
}

/// Runs a feature to its end, answering the same in every phase. What each call was answered with, as the model saw it.
fn travel(project: &Project, engine: &str, model: &FakeModel, home: &CleanHome) -> Vec<String> {
    let variables: Vec<(&str, &str)> =
        home.variables().iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    let spec = project.path("shop.md");
    std::fs::write(&spec, "# The shop\n\nBuild a shop.\n").unwrap();
    let mut run = Running::start_with(project, &["--engine", engine, spec.to_str().unwrap()], &variables);
    for (number, status) in ["planning", "building", "qa"].iter().enumerate() {
        let question = run.question("shop");
        assert!(question["prompt"].as_str().unwrap().contains(QUESTIONS[number]), "{question}");
        assert_eq!(question["resume_status"], *status);
        assert_eq!(question["engine_ref"]["engine"], engine);
        run.until("the end of the turn", |line| line["type"] == "turn.ended");
        assert_nothing_left(project);
        if number == 0 {
            project.run(&["send", "--feature-id", "shop", "--role", "builder", NOTE]).data();
        }
        project.answer_to(&question, SCRIPTED_ANSWER).data();
    }
    let (code, lines) = run.end();
    assert_eq!(code, Some(0), "{lines:#?}");
    assert_eq!(project.feature("shop")["status"], "ready_to_merge");
    assert_eq!(project.feature("shop")["engine"], engine);
    let began = events(project, "shop", "turn.began");
    assert_eq!(began.len(), 6, "in each phase one turn that asked and one that went on: {began:#?}");
    assert!(!git(project, &["rev-parse", "aop/shop"]).is_empty());
    project.assert_healthy();
    assert_eq!(
        (model.main().len(), model.unscripted()),
        (6, 0),
        "the model was asked for what its script says"
    );
    let requests = model.main();
    let noted: Vec<usize> =
        requests.iter().map(|request| request.body.to_string().matches(NOTE).count()).collect();
    assert_eq!(noted, [0, 0, 1, 1, 0, 0], "a note stands in the builder's conversation alone, once");
    (0..3).flat_map(|number| requests[2 * number + 1].results_of(&format!("call_{number}"))).collect()
}

fn stage(wire: Wire, script: Script) -> (Project, FakeModel, CleanHome) {
    let project = workshop("");
    let model = FakeModel::start(wire, script).unwrap();
    let home = CleanHome::new(&project.path(".aop/home"), &Engines::required(), &model).unwrap();
    (project, model, home)
}

#[test]
fn claude_code_takes_a_feature_through_all_three_roles_with_a_question_in_each() {
    let ask =
        |call: &str, text: &str| Reply::call("AskUserQuestion", call, json!({"questions": [card(text)]}));
    let (project, model, home) = stage(Wire::Anthropic, script(ask));
    let told = travel(&project, "claude-code", &model, &home);
    assert_eq!(told.len(), 3, "each answer came as the result of its call, once: {told:?}");
    assert!(told.iter().all(|told| told.contains(SCRIPTED_ANSWER)), "{told:?}");
}

#[test]
fn codex_takes_a_feature_through_all_three_roles_with_a_question_in_each() {
    let ask =
        |call: &str, text: &str| Reply::call("request_user_input", call, json!({"questions": [card(text)]}));
    let (project, model, home) = stage(Wire::OpenAi, script(ask));
    let told = travel(&project, "codex", &model, &home);
    assert_eq!(told.len(), 3, "each answer came as the output of its call, once: {told:?}");
    assert!(told.iter().all(|told| told.contains(SCRIPTED_ANSWER)), "{told:?}");
}

#[test]
fn codex_that_asks_without_waiting_does_nothing_while_its_feature_waits_and_is_told_once() {
    let questions = json!([{"title": QUESTIONS[0], "options": ["Left", "Right"]}]);
    let ask = Call::new("request_user_input_async", "call_0", json!({"questions": questions}));
    let is_meanwhile = |request: &Received| request.mentions("call_0") && !request.mentions(TOLD);
    let change = Reply::call("exec_command", "call_1", json!({"cmd": "touch made"})).after(&Gate::closed());
    let mut script = Script::new().then(Reply::calls([ask.of("functions")])).when(is_meanwhile, change);
    for result in RESULTS {
        script = script.then(Reply::text(result));
    }
    let (project, model, home) = stage(Wire::OpenAi, script);
    let settings = home.path().join(".codex/config.toml");
    let newer = std::fs::read_to_string(&settings).unwrap().replace("gpt-5.5", "gpt-6.1-sol");
    std::fs::write(settings, newer).unwrap();
    let variables: Vec<(&str, &str)> =
        home.variables().iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    let spec = project.path("shop.md");
    std::fs::write(&spec, "# The shop\n\nBuild a shop.\n").unwrap();
    let mut run = Running::start_with(&project, &["--engine", "codex", spec.to_str().unwrap()], &variables);
    let question = run.question("shop");
    run.until("the end of the turn", |line| line["type"] == "turn.ended");
    assert_nothing_left(&project);
    assert_eq!(project.feature("shop")["status"], "awaiting_input");
    assert!(!project.path(".aop/worktrees/shop/made").exists());
    project.answer_to(&question, "Left").data();
    let (code, lines) = run.end();
    assert_eq!(code, Some(0), "{lines:#?}");
    let planner = model.main().into_iter().rfind(|request| request.mentions("call_0")).unwrap();
    let ends = planner.user_messages().into_iter().filter(|text| text.contains(TOLD));
    assert_eq!(ends.count(), 1);
    project.assert_healthy();
}
