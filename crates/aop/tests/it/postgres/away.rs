//! A run whose database is gone: whoever stops it does not wait for the database.

use crate::run_support::{Running, ask, plan, script, workshop_in};
use crate::support::Project;
use aop_testkit::postgres::Server;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Less than a call is patient, and more than a slow machine needs.
const SOON: Duration = Duration::from_secs(20);

/// A run that waits for an answer, on a server of its own.
fn parked_run() -> (Server, Project, Running) {
    let server = Server::own("-c fsync=off");
    server.sql("postgres", "CREATE DATABASE team");
    let address = format!("{}?project=shop", server.address("team"));
    let project = workshop_in(Project::at(&address), "");
    script(&project, "a", &json!({"planner": [ask("May I?"), plan()]}));
    std::fs::write(project.path("a.md"), "# A\n").unwrap();
    let mut run = Running::start(&project, &["a.md"]);
    run.status("a", "awaiting_input");
    (server, project, run)
}

#[test]
fn a_run_that_is_stopped_while_its_database_is_away_ends_soon_and_with_130() {
    let (server, project, run) = parked_run();
    server.stop();
    let start = Instant::now();
    run.interrupt();
    let (code, lines) = run.end();
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    assert_eq!(code, Some(130), "{lines:#?}");
    let last = lines.last().unwrap();
    assert_eq!((&last["type"], &last["reason"]), (&json!("run.ended"), &json!("stopped")));
    assert_eq!(last["features"][0]["feature_id"], "a", "as it was last seen");

    server.start();
    let mut again = Running::start(&project, &[]);
    again.until("the next run", |line: &Value| line["type"] == "run.started");
    again.interrupt();
    assert_eq!(again.end().0, Some(130));
}

#[test]
fn a_second_ctrl_c_leaves_at_once_with_130() {
    let (server, _project, run) = parked_run();
    server.stop();
    let start = Instant::now();
    run.interrupt();
    // The first is heard when it is; until the run has ended, every further one is the second.
    while !run.has_ended() {
        run.interrupt();
        assert!(start.elapsed() < SOON, "it did not leave");
    }
    let (code, lines) = run.end();
    assert_eq!(code, Some(130), "{lines:#?}");
    assert_ne!(lines.last().unwrap()["type"], "run.ended", "it was not waited for");
}
