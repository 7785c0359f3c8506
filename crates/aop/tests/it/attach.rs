//! `aop attach`: the engine's own interface finds the conversation where the engine keeps it, and acts as the agent whose
//! it is. Programs that stand in for the engines write down what they were started with.

use crate::support::{Project, binary, finish};
use crate::terminal::on_terminal;
use aop_store::{Expect, Shelf, SqliteStore, Store, SystemClock};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::Arc;

const SESSION: &str = "01234567-89ab-4cde-8f01-23456789abcd";

/// How the interface of Codex is opened: nothing of it stays, and nothing of the environment is written down.
const CODEX: &str = "resume -c features.shell_snapshot=false --no-daemon";

/// What a stand-in does, unless it is asked for its version: it notes where it is, with which arguments and variables, and
/// what `aop` says to it.
const NOTES: &str = "[ \"$1\" = --version ] && exec echo codex-cli 0.166.0
pwd > \"$HOME/cwd\"; printf '%s\\n' \"$@\" > \"$HOME/args\"; env -0 > \"$HOME/env\"
aop answer --feature-id shop --question-id \"$(cat \"$HOME/question\")\" --answer yes > \"$HOME/answer\"";

/// A project whose planner has a session with this engine, in a folder whose name a shell would take apart.
async fn project(engine: &str, program: &str) -> Project {
    let project = Project::with_feature();
    let cwd = project.path("it's a folder");
    std::fs::create_dir_all(&cwd).unwrap();
    std::fs::create_dir_all(project.path("bin")).unwrap();
    let path = project.path("bin").join(program);
    std::fs::write(&path, format!("#!/bin/sh\n{NOTES}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let store = SqliteStore::open(&project.path(".aop"), Arc::new(SystemClock)).unwrap();
    let session = json!({"engine": engine, "session": SESSION, "cwd": cwd, "version": "1.0.0"});
    let placed = store.place(Shelf::Sessions, "shop/planner".into(), Some(session), Expect::Anything);
    assert!(placed.await.unwrap());
    std::fs::write(project.path("question"), project.ask("op-1")).unwrap();
    project
}

/// What a person has around: among it what no agent may have.
fn around<'a>(project: &Project, command: &'a mut Command) -> &'a mut Command {
    let aop = std::path::Path::new(binary()).parent().unwrap();
    let path = format!("{}:{}:/usr/bin:/bin", project.path("bin").display(), aop.display());
    command.env("PATH", path).env("HOME", project.root()).env("NO_COLOR", "1");
    command.env("AOP_STORE", "sqlite").env("AOP_TOKEN", "a person's").env("CLAUDECODE", "1")
}

/// What the stand-in was started with: its folder, arguments and variables; and what came of its answer.
fn noted(project: &Project) -> (String, String, BTreeMap<String, String>, Value) {
    let take = |name: &str| {
        let text = std::fs::read_to_string(project.path(name)).unwrap();
        std::fs::remove_file(project.path(name)).unwrap();
        text
    };
    let env = take("env");
    let env = env.split_terminator('\0').filter_map(|line| line.split_once('='));
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    (take("cwd"), take("args"), env, serde_json::from_str(&take("answer")).unwrap())
}

#[tokio::test]
async fn an_attached_interface_finds_its_conversation_and_acts_as_the_agent() {
    for (engine, program, args, home) in [
        ("claude-code", "claude", "--resume", None),
        ("codex", "codex", CODEX, Some(("CODEX_HOME", ".aop/engines/codex"))),
        ("gemini", "gemini", "--resume", Some(("GEMINI_CLI_HOME", ".aop/engines/gemini"))),
        ("iflow", "iflow", "--resume", None),
    ] {
        let project = project(engine, program).await;
        let attach = ["attach", "--feature-id", "shop", "--role", "planner"];
        let line = format!("{} {}", binary(), attach.join(" "));
        let opened = finish(around(&project, &mut on_terminal(&project, &line)));
        assert_eq!(opened.code, Some(1), "the stand-in ends as its answer did: {opened:?}");
        let exec = noted(&project);
        let print = [&attach[..], &["--print", "--json"]].concat();
        let data = finish(around(&project, &mut project.command(&print))).data();
        let shown = format!("{line} --print");
        let shown = finish(around(&project, &mut on_terminal(&project, &shown))).stdout.replace('\r', "");
        // Pasted into a shell, it does the same.
        finish(around(&project, Command::new("sh").env_clear().args(["-c", shown.trim()])));
        for (cwd, given, env, answer) in [exec, noted(&project)] {
            let folder = project.path("it's a folder").canonicalize().unwrap();
            assert_eq!(cwd.trim_end(), folder.to_str().unwrap());
            assert_eq!(given, format!("{}\n{SESSION}\n", args.replace(' ', "\n")));
            let agent: Value = serde_json::from_str(&env["AOP_AGENT"]).unwrap();
            assert_eq!((&agent["feature_id"], &agent["role"]), (&json!("shop"), &json!("planner")));
            assert_eq!(env["AOP_PROJECT"], project.root().to_str().unwrap());
            assert_eq!(env["AOP_STORE"], "sqlite");
            assert_eq!((env.get("AOP_TOKEN"), env.get("CLAUDECODE")), (None, None));
            if let Some((name, folder)) = home {
                assert_eq!(env[name], project.path(folder).to_str().unwrap());
            }
            for (name, value) in data["env"].as_object().unwrap() {
                assert_eq!(value, &env[name], "{name}");
            }
            assert_eq!(answer["error"]["code"], "forbidden_for_role", "{answer}");
        }
        let words: Vec<&str> = [program].into_iter().chain(args.split(' ')).chain([SESSION]).collect();
        assert_eq!(data["argv"], json!(words));
        assert_eq!(project.feature("shop")["status"], "awaiting_input");
    }
}
