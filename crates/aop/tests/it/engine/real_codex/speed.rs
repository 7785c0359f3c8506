//! What `aop` adds to a turn. The figures are printed, not judged: they depend on the machine.

use super::{DONE, Stage, ask, assert_done, question};
use aop_testkit::{Engines, Program, Reply, Script};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

const ROUNDS: usize = 20;

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// The bare engine: the same server, the same thread, the same turn, and nobody in between.
fn bare_turn(stage: &Stage) {
    let program = Engines::required().program(Program::Codex);
    let mut command = stage.home.command(&program, &stage.project.path("work"));
    command.arg("app-server").env("CODEX_HOME", stage.project.path(".aop/engines/codex"));
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut until = |wanted: &dyn Fn(&Value) -> bool| loop {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        if wanted(&line) {
            return line;
        }
    };
    let hello = json!({"clientInfo": {"name": "bare", "title": "bare", "version": "1"}});
    writeln!(input, "{}", json!({"id": 1, "method": "initialize", "params": hello})).unwrap();
    until(&|line| line["id"] == 1);
    writeln!(input, "{}", json!({"method": "initialized"})).unwrap();
    let thread =
        json!({"approvalPolicy": "never", "sandbox": "workspace-write", "cwd": stage.project.path("work")});
    writeln!(input, "{}", json!({"id": 2, "method": "thread/start", "params": thread})).unwrap();
    let thread = until(&|line| line["id"] == 2)["result"]["thread"]["id"].clone();
    let turn = json!({"threadId": thread, "input": [{"type": "text", "text": "Plan the shop."}]});
    writeln!(input, "{}", json!({"id": 3, "method": "turn/start", "params": turn})).unwrap();
    until(&|line| line["method"] == "turn/completed");
    child.kill().unwrap();
    child.wait().unwrap();
}

fn bare_exec(stage: &Stage) {
    let program = Engines::required().program(Program::Codex);
    let mut command = stage.home.command(&program, &stage.project.path("work"));
    command.args(["exec", "--json", "--skip-git-repo-check", "--yolo", "Plan the shop."]);
    command.env("CODEX_HOME", stage.project.path(".aop/engines/codex"));
    assert!(command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success());
}

fn timed(run: impl FnOnce()) -> Duration {
    let began = Instant::now();
    run();
    began.elapsed()
}

#[tokio::test]
async fn the_overhead_of_a_turn_over_the_bare_engine_is_printed() {
    let mut script = Script::new();
    for _ in 0..=3 * ROUNDS {
        script = script.then(Reply::text(DONE));
    }
    let stage = Stage::new(script);
    assert_done(&stage.run(stage.start("first")).await);
    let (mut with, mut bare, mut exec) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let request = stage.start(&format!("run-{round}"));
        let began = Instant::now();
        let report = stage.driver.run(request, stage.host.clone()).await.unwrap();
        with.push(began.elapsed());
        assert_done(&report);
        bare.push(timed(|| bare_turn(&stage)));
        exec.push(timed(|| bare_exec(&stage)));
    }
    let (with, bare, exec) = (median(with), median(bare), median(exec));
    println!(
        "a turn, median of {ROUNDS}: aop {with:.0?}, bare app-server {bare:.0?}, bare exec {exec:.0?}; overhead over the \
         app-server {:.0} ms, over exec {:.0} ms",
        (with.as_secs_f64() - bare.as_secs_f64()) * 1e3,
        (with.as_secs_f64() - exec.as_secs_f64()) * 1e3,
    );
}

#[tokio::test]
async fn the_time_of_park_and_resume_is_printed() {
    let mut script = Script::new();
    for round in 0..ROUNDS {
        script = script
            .then(ask(&format!("call_{round}"), &[question("db", &["x", "y"])]))
            .then(Reply::text(DONE));
    }
    let stage = Stage::new(script);
    let (mut parks, mut resumes) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let began = Instant::now();
        let report =
            stage.driver.run(stage.start(&format!("ask-{round}")), stage.host.clone()).await.unwrap();
        parks.push(began.elapsed());
        stage.answer(&report.asked[0], &json!({"db": "x"}));
        let end = stage.end(&report.asked[0], &format!("call_{round}")).await;
        let request = stage.next(&format!("resume-{round}"), aop_engine::Input::Reply(Box::new(end)));
        let began = Instant::now();
        let report = stage.driver.run(request, stage.host.clone()).await.unwrap();
        resumes.push(began.elapsed());
        assert_done(&report);
    }
    println!(
        "ask and park {:.0?}, resume to the end {:.0?} (medians of {ROUNDS})",
        median(parks),
        median(resumes)
    );
}
