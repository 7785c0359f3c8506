//! kill -9 at every named crash point. Afterwards the store is consistent, an acknowledged operation is
//! there, and an unacknowledged one is wholly there or wholly absent.

use crate::support::{Project, Run, question};
use serde_json::json;

/// Runs a command that dies by SIGKILL at the named point, before it acknowledged anything.
fn crash_at(project: &Project, point: &str, args: &[&str]) -> Run {
    let run = project.run_with(args, &[("AOP_CRASH_AT", point)]);
    assert_eq!(run.code, None, "it must die at {point}: {run:?}");
    assert_eq!(run.stdout, "", "nothing is acknowledged before {point}");
    run
}

fn ask_args(operation: &str) -> Vec<String> {
    let input = question("shop", operation).to_string();
    ["tool", "call", "feature.question_create", "--role", "builder", "--input", &input]
        .map(str::to_owned)
        .to_vec()
}

fn as_str(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

#[test]
fn before_the_commit_nothing_is_left_behind() {
    let project = Project::with_feature();
    crash_at(&project, "before_commit", &as_str(&ask_args("op-1")));
    assert_eq!(project.feature("shop")["status"], "planning");
    assert_eq!(project.run(&["questions", "--status", "all"]).data()["items"], json!([]));
    project.assert_healthy();
    project.ask("op-1");
}

#[test]
fn after_the_commit_everything_is_there_and_a_retry_gets_the_same_envelope() {
    let project = Project::with_feature();
    crash_at(&project, "after_commit", &as_str(&ask_args("op-1")));
    let listed = project.run(&["questions"]).data();
    let id = listed["items"][0]["question_id"].clone();
    assert_eq!(project.feature("shop")["open_question_id"], id);
    let retried = project.run(&as_str(&ask_args("op-1"))).data();
    assert_eq!(retried["question_id"], id, "the operation id settles what happened");
    project.assert_healthy();
}

#[test]
fn in_the_middle_of_a_projection_the_next_command_mends_the_files() {
    let project = Project::with_feature();
    crash_at(&project, "mid_projection", &as_str(&ask_args("op-1")));
    let id = project.feature("shop")["open_question_id"].as_str().unwrap().to_owned();
    assert_eq!(project.run(&["doctor"]).envelope()["data"]["healthy"], false, "the files are behind");
    project.create_feature("unrelated");
    project.assert_healthy();
    project.answer(&id, "yes").data();
    project.assert_healthy();
}

#[test]
fn during_the_first_start_init_can_be_run_again() {
    for point in ["first_start", "first_start_before_commit"] {
        let project = Project::empty();
        crash_at(&project, point, &["init"]);
        project.run(&["init"]).data();
        project.create_feature("shop");
        project.assert_healthy();
    }
}

#[test]
fn an_answer_cut_off_at_any_point_is_wholly_there_or_wholly_absent() {
    for (point, answered) in [("before_commit", false), ("after_commit", true), ("mid_projection", true)] {
        let project = Project::with_feature();
        let id = project.ask("op-1");
        let args = [
            "answer",
            "--feature-id",
            "shop",
            "--question-id",
            &id,
            "--answer",
            "yes",
            "--operation-id",
            "a-1",
        ];
        crash_at(&project, point, &args);
        let status = project.feature("shop")["status"].clone();
        assert_eq!(status, if answered { "planning" } else { "awaiting_input" }, "{point}");
        let retried = project.run(&args).data();
        assert_eq!(retried["resumed"], true, "{point}");
        project.answer(&id, "no").refused("question_already_answered", 1);
        project.assert_healthy();
    }
}
