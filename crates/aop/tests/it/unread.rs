//! Whoever reads what goes on may pause, or never come back: nothing else waits for them.

use crate::run_support::{PATIENCE, ask, plan, script, workshop};
use crate::support::Project;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write, pipe};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// A pipe without room. It is full of empty lines.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = pipe().unwrap();
    let waits = fcntl_getfl(&writer).unwrap();
    fcntl_setfl(&writer, waits | OFlags::NONBLOCK).unwrap();
    while writer.write(b"\n").is_ok() {}
    fcntl_setfl(&writer, waits).unwrap();
    (reader, writer)
}

/// Waits for what has to come.
fn until(what: &str, mut came: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !came() {
        assert!(Instant::now() < deadline, "{what} did not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn send(signal: &str, pid: u32) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

/// What is started, and ended when the test is over.
struct Unread(Child);

impl Unread {
    /// Starts a command of which nothing is read.
    fn start(project: &Project, args: &[&str], out: PipeWriter) -> Self {
        Unread(project.command(args).stdout(out).spawn().unwrap())
    }

    /// The exit code, once there is one.
    fn end(mut self) -> Option<i32> {
        let mut status = None;
        until("the end", || {
            status = self.0.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap().code()
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A project with a specification, and the arguments that run it.
fn shop(planner: &Value) -> (Project, [&'static str; 2]) {
    let project = workshop("");
    std::fs::write(project.path("shop.md"), "# A shop\n").unwrap();
    script(&project, "shop", &json!({"planner": planner}));
    (project, ["run", "shop.md"])
}

/// Where the shop stands, once it is there.
fn is_shop(project: &Project, status: &str) -> bool {
    project.run(&["status"]).data()["features"][0]["status"] == status
}

#[test]
fn a_run_goes_on_while_its_reader_pauses_and_all_of_it_is_read_later() {
    let (project, args) = shop(&json!([plan()]));
    let (reader, out) = full_pipe();
    let run = Unread::start(&project, &args, out);
    until("its end", || is_shop(&project, "ready_to_merge"));
    let lines = BufReader::new(reader).lines().map(Result::unwrap).filter(|line| !line.is_empty());
    let lines: Vec<Value> = lines.map(|line| serde_json::from_str(&line).unwrap()).collect();
    assert_eq!(run.end(), Some(0));
    assert_eq!(lines.first().unwrap()["type"], "run.started");
    assert_eq!(lines.last().unwrap()["type"], "run.ended");
    let told: Vec<u64> = lines.iter().filter_map(|line| line["seq"].as_u64()).collect();
    let log = project.run(&["log"]).data()["items"].as_array().unwrap().len() as u64;
    assert_eq!(told, (1..=log).collect::<Vec<_>>());
}

#[test]
fn a_run_that_nobody_reads_gives_the_project_back_and_leaves_at_the_second_signal() {
    let (project, args) = shop(&json!([ask("Which?"), plan()]));
    let (_reader, out) = full_pipe();
    let mut run = Unread::start(&project, &args, out);
    until("a question", || is_shop(&project, "awaiting_input"));
    send("-TERM", run.0.id());
    until("the project", || project.run(&["status"]).data()["at_work"] == false);
    assert_eq!(run.0.try_wait().unwrap(), None, "its last lines may still be read");
    send("-INT", run.0.id());
    assert_eq!(run.end(), Some(130));
}
