//! `aop engine list` and `aop engine doctor --self-test` with the installed programs, and what `aop` adds to a turn.

use super::real_claude::{DONE, Stage, assert_final};
use crate::support::{Project, finish};
use aop_engine::Input;
use aop_testkit::{Engines, Program, Reply, Script};
use std::time::Instant;

fn engine(args: &[&str]) -> crate::support::Run {
    let project = Project::empty();
    let mut command = project.command(args);
    command.env("PATH", Engines::required().search_path());
    finish(&mut command)
}

#[test]
fn claude_codex_and_gemini_pass_their_self_test() {
    for name in ["claude-code", "codex", "gemini", "scripted"] {
        let run = engine(&["engine", "doctor", name, "--self-test"]);
        let data = run.data();
        assert_eq!(data["usable"], true, "{data:#}");
        let names: Vec<&str> =
            data["checks"].as_array().unwrap().iter().map(|check| check["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["program", "ask", "park", "resume"]);
    }
}

#[test]
fn claude_is_listed_with_its_version_and_what_it_can_do() {
    let data = engine(&["engine", "list"]).data();
    let claude = &data["engines"][0];
    assert_eq!((claude["engine"].as_str(), claude["state"].as_str()), (Some("claude-code"), Some("tested")));
    assert_eq!(claude["version"].as_str().unwrap(), Program::Claude.version());
    assert_eq!(claude["capabilities"]["inject_answer"], true);
    assert_eq!(data["engines"][4]["state"], "built_in");
}

/// Printed, not asserted: `cargo xtask test-engines` with `--no-capture` shows it.
#[tokio::test]
async fn claude_with_and_without_aop_takes_so_long() {
    const TURNS: usize = 20;
    let script = (0..2 * TURNS).fold(Script::new(), |script, _| script.then(Reply::text(DONE)));
    let stage = Stage::new(script);
    let program = Engines::required().program(Program::Claude);
    let (mut bare, mut with) = (Vec::new(), Vec::new());
    for turn in 0..TURNS {
        let start = Instant::now();
        let mut command = tokio::process::Command::new(&program);
        // The same flags, so that the difference is what aop adds.
        command.args([
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            "--permission-mode",
            "bypassPermissions",
        ]);
        command.args(["--permission-prompt-tool", "stdio", "--include-partial-messages", "go"]);
        command.env_clear().envs(&stage.around.env).env("IS_SANDBOX", "1").current_dir(stage.project.root());
        assert!(command.stdin(std::process::Stdio::null()).output().await.unwrap().status.success());
        bare.push(start.elapsed());
        let start = Instant::now();
        assert_final(&stage.run(stage.turn(&format!("r{turn}"), Input::Message("go".into()))).await);
        with.push(start.elapsed());
    }
    bare.sort();
    with.sort();
    println!(
        "median of {TURNS} turns: bare {:?}, with aop {:?} (debug build)",
        bare[TURNS / 2],
        with[TURNS / 2]
    );
}
