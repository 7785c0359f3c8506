//! The acceptance criteria of the human-input specification (its section 14), by number, with the real binary. The first
//! and the fourth stand in `running.rs`; the seventh, that the one command of CI fails when any of these breaks, is that
//! they are here.

use crate::run_support::{Running, ask, events, plan, script, workshop};
use crate::support::Project;
use serde_json::{Value, json};

/// A project whose only feature asks in its first phase, and the run that waits for the answer.
fn waiting() -> (Project, Running, Value) {
    let project = workshop("");
    script(&project, "shop", &json!({"planner": [ask("Which?"), plan()]}));
    project.create_feature("shop");
    let mut run = Running::start(&project, &[]);
    let question = run.question("shop");
    run.status("shop", "awaiting_input");
    (project, run, question)
}

/// The way of a feature's status, in order.
fn way(project: &Project) -> Vec<String> {
    let moves = events(project, "shop", "feature.status_changed");
    moves.iter().map(|event| event["to"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn s14_2_the_status_becomes_awaiting_input_in_the_same_way_every_time() {
    let ways: Vec<Vec<String>> = (0..2)
        .map(|_| {
            let (project, run, question) = waiting();
            let feature = project.feature("shop");
            assert_eq!(feature["status"], "awaiting_input");
            assert_eq!(feature["open_question_id"], question["question_id"]);
            assert_eq!(feature["resume_status"], "planning");
            project.answer_to(&question, "yes").data();
            assert_eq!(run.end().0, Some(0));
            way(&project)
        })
        .collect();
    assert_eq!(ways[0], ["awaiting_input", "planning", "building", "qa", "ready_to_merge"]);
    assert_eq!(ways[0], ways[1]);
}

#[test]
fn s14_3_no_wave_executes_for_a_feature_with_an_open_blocking_question() {
    let (project, run, question) = waiting();
    project.answer_to(&question, "yes").data();
    assert_eq!(run.end().0, Some(0));
    let log = project.run(&["log", "--feature-id", "shop"]).data()["items"].as_array().unwrap().clone();
    let place = |kind: &str| log.iter().position(|event| event["type"] == kind).unwrap();
    let meanwhile = &log[place("question.opened")..place("question.answered")];
    let begun = ["turn.began", "check.began", "merge.began"];
    assert!(
        meanwhile.iter().all(|event| !begun.contains(&event["type"].as_str().unwrap())),
        "{meanwhile:#?}"
    );
}

#[test]
fn s14_5_a_feature_resumes_from_its_recorded_phase_after_the_answer() {
    let (project, mut run, question) = waiting();
    project.answer_to(&question, "yes").data();
    run.status("shop", "planning");
    let began = run.until("the turn that goes on", |line| line["type"] == "turn.began");
    assert_eq!((began["role"].as_str(), &began["reply_to"]), (Some("planner"), &question["question_id"]));
    assert_eq!(run.end().0, Some(0));
}

#[test]
fn s14_6_status_questions_and_answer_are_all_an_operator_needs() {
    let (project, run, _) = waiting();
    let status = project.run(&["status"]).data();
    let waits = &status["features"][0];
    assert_eq!(
        (waits["status"].as_str(), waits["open_question_count"].as_u64()),
        (Some("awaiting_input"), Some(1))
    );
    let listed = project.run(&["questions"]).data();
    let listed = &listed["items"][0];
    assert_eq!(listed["question_id"], waits["open_question_id"]);
    project.answer_to(listed, "no").data();
    assert_eq!(run.end().0, Some(0));
    let status = project.run(&["status"]).data();
    assert_eq!(status["features"][0]["open_question_count"], 0);
    let answered = project.run(&["questions", "--status", "answered"]).data();
    assert_eq!(
        (&answered["items"][0]["answer"], &answered["items"][0]["answered_by"]),
        (&json!("no"), &json!("human"))
    );
}
