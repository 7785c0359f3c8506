//! A feature whose engine failed rests before the next try, and is in nobody's way meanwhile.

use crate::run_rules::spec;
use crate::run_support::{Running, ask, events, plan, script, workshop};
use crate::support::Project;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

/// A project where one feature is worked on at a time, whose builder is a program that fails and notes that it was
/// started. The search path with that program comes along.
fn limited(run: &str) -> (Project, String) {
    let project = workshop("");
    let settings = "engines: { default: scripted, roles: { builder: claude-code } }";
    std::fs::write(project.path("aop.yaml"), format!("{settings}\nrun: {{ max_parallel: 1, {run} }}\n"))
        .unwrap();
    let bin = project.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let starts = project.path("starts").display().to_string();
    let version = "[ \"$1\" = --version ] && { echo '2.1.325 (Claude Code)'; exit; }";
    std::fs::write(bin.join("claude"), format!("#!/bin/sh\n{version}\necho x >> '{starts}'\nexit 3\n"))
        .unwrap();
    std::fs::set_permissions(bin.join("claude"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    script(&project, "default", &json!({}));
    (project, format!("{}:{path}", bin.display()))
}

/// Starts a run of these features.
fn start(project: &Project, path: &str, features: &[&str]) -> Running {
    let specs: Vec<String> = features.iter().map(|feature| spec(project, feature)).collect();
    let specs: Vec<&str> = specs.iter().map(String::as_str).collect();
    Running::start_with(project, &specs, &[("PATH", path)])
}

/// Waits until the engine of a feature has failed, and when it is tried again is said behind that.
fn fails(run: &mut Running, feature: &str, again: &str) {
    let said = format!("the next turn begins in {again}");
    run.until(&format!("the end of the turn of {feature}"), |line| {
        line["feature_id"] == feature && line["type"] == "turn.ended"
    });
    run.until(&format!("that {feature} is tried again"), |line| {
        line["feature_id"] == feature && line["note"] == said.as_str()
    });
}

fn starts(project: &Project) -> usize {
    std::fs::read_to_string(project.path("starts")).unwrap_or_default().lines().count()
}

#[test]
fn a_feature_that_rests_after_its_engine_failed_takes_no_place_from_one_that_was_answered() {
    let (project, path) = limited("retry_wait_s: 600");
    script(&project, "asks", &json!({"planner": [ask("Which?"), plan()]}));
    let mut run = start(&project, &path, &["asks", "limited"]);
    let question = run.question("asks");
    fails(&mut run, "limited", "10 minutes");
    project.answer_to(&question, "yes").data();
    run.status("asks", "building");
    fails(&mut run, "asks", "10 minutes");
    assert_eq!(starts(&project), 2, "and each of them rests");
    run.interrupt();
    let (_, lines) = run.end();
    let end: Vec<&Value> = lines.iter().filter(|line| line["type"] == "run.ended").collect();
    assert_eq!(end.len(), 1, "a run that is stopped waits for no rest: {lines:#?}");
    let mut again = Running::start_with(&project, &[], &[("PATH", &path)]);
    fails(&mut again, "limited", "15 minutes");
}

#[test]
fn a_feature_that_has_rested_is_tried_again_by_itself() {
    let (project, path) = limited("retry_wait_s: 1, retries: 1");
    let mut run = start(&project, &path, &["limited"]);
    fails(&mut run, "limited", "1 second");
    let blocked = run.status("limited", "blocked");
    assert!(blocked["reason"].to_string().contains("failed 2 times in a row"), "{blocked}");
    assert_eq!((run.end().0, starts(&project)), (Some(3), 2));
}

#[test]
fn a_person_who_sends_a_resting_feature_on_or_ends_it_is_not_kept_waiting() {
    let (project, path) = limited("retry_wait_s: 600");
    script(&project, "asks", &json!({"planner": [ask("Which?"), plan()]}));
    // A run has nothing to do for a blocked feature, and would end without another one.
    let mut run = start(&project, &path, &["asks", "limited"]);
    fails(&mut run, "limited", "10 minutes");
    project.run(&["send", "--feature-id", "limited", "Try the other model."]).data();
    let block = json!({"feature_id": "limited", "to": "blocked", "operation_id": "block"});
    project.tool("feature.transition", "human", &block).data();
    run.status("limited", "blocked");
    project.run(&["retry", "--feature-id", "limited"]).data();
    // What failed before counts no more, so it is the first wait again.
    fails(&mut run, "limited", "10 minutes");
    assert_eq!((starts(&project), events(&project, "limited", "turn.ended").len()), (2, 3));
    for feature in ["asks", "limited"] {
        project.run(&["cancel", "--feature-id", feature]).data();
    }
    let (_, lines) = run.end();
    assert!(lines.iter().any(|line| line["type"] == "run.ended"), "{lines:#?}");
}
