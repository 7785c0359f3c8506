//! The driver of Gemini CLI with programs that only stand in for it: missing, too old, or talking nonsense. How the
//! real one behaves is in `real_gemini.rs`.

use super::host::{StoreHost, turn};
use super::{around, is_alive};
use crate::support::Project;
use aop_engine::{Driver, EngineError, Input, Progress, Surroundings, TurnReport, driver};
use aop_turn::{Engine, Mode, Outcome, Rules, judge};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

/// A package as npm installs it, with a script for a program.
fn stand_in(project: &Project, version: &str, script: &str) -> Box<dyn Driver> {
    let package = project.path("node_modules/@google/gemini-cli");
    let (bundle, bin) = (package.join("bundle"), project.path("bin"));
    std::fs::create_dir_all(&bundle).unwrap();
    std::fs::create_dir_all(&bin).unwrap();
    let about = json!({"name": "@google/gemini-cli", "version": version});
    std::fs::write(package.join("package.json"), about.to_string()).unwrap();
    let program = bundle.join("gemini.js");
    std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink(&program, bin.join("gemini")).unwrap();
    driver(Engine::Gemini, &with_path(project))
}

fn with_path(project: &Project) -> Surroundings {
    let mut around = around(project.root());
    let path = format!("{}:/usr/bin:/bin", project.path("bin").display());
    around.env.insert("PATH".into(), path.into());
    around
}

async fn run(project: &Project, driver: &dyn Driver) -> (Result<TurnReport, EngineError>, Option<i32>) {
    let host = StoreHost::new(project);
    let report = driver.run(turn(project, "r1", Input::Message("Go.".into())), host.clone()).await;
    let progress = host.progress.lock().unwrap();
    let started = progress.iter().find_map(|progress| match progress {
        Progress::Started { pgid, .. } => Some(*pgid),
        Progress::Said(_) | Progress::Uses(_) => None,
    });
    (report, started)
}

#[tokio::test]
async fn a_program_that_is_not_installed_or_too_old_is_named_with_the_way_out() {
    let project = Project::with_feature();
    std::fs::create_dir(project.path("bin")).unwrap();
    let missing = driver(Engine::Gemini, &with_path(&project));
    match run(&project, missing.as_ref()).await {
        (Err(EngineError::NotInstalled { hint, .. }), None) => {
            assert!(hint.contains("npm install -g @google/gemini-cli"), "{hint}");
        }
        other => panic!("{other:?}"),
    }
    let old = stand_in(&project, "0.40.2", "echo never started > started");
    match run(&project, old.as_ref()).await {
        (Err(EngineError::Unusable { cause, hint, .. }), None) => {
            assert!(
                cause.contains("0.40.2") && cause.contains("0.61.0") && hint.contains("npm"),
                "{cause} {hint}"
            );
        }
        other => panic!("{other:?}"),
    }
    assert!(!project.path("work/started").exists());
}

#[tokio::test]
async fn nonsense_is_an_error_and_never_a_result_or_a_question() {
    for script in
        ["head -c 100000 /dev/urandom", "echo '{\"type\":\"tool_use\"'; exit 3", "true", "kill -9 $$"]
    {
        let project = Project::with_feature();
        let driver = stand_in(&project, "0.61.0", script);
        let (report, started) = run(&project, driver.as_ref()).await;
        let report = report.unwrap();
        assert!(!is_alive(started.unwrap()));
        assert!(report.asked.is_empty());
        let process = report.process;
        let rules = Rules { mode: Mode::Interactive, attempt: 1, max_attempt: 20, schema: None, process };
        let outcome = judge(&report.turn, &rules).outcome;
        assert!(matches!(outcome, Outcome::Error { .. }), "{script}: {outcome:?}");
        assert_eq!(project.run(&["questions"]).data()["items"], json!([]));
    }
}

#[tokio::test]
async fn settings_of_the_user_that_cannot_be_read_are_named() {
    let project = Project::with_feature();
    let driver = stand_in(&project, "0.61.0", "true");
    std::fs::create_dir(project.path(".gemini")).unwrap();
    std::fs::write(project.path(".gemini/settings.json"), "{ not json").unwrap();
    match run(&project, driver.as_ref()).await {
        (Err(EngineError::Unusable { cause, .. }), None) => {
            assert!(cause.contains("settings.json"), "{cause}")
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(std::fs::read_to_string(project.path(".gemini/settings.json")).unwrap(), "{ not json");
}
