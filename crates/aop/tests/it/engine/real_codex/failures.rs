//! What goes wrong is named, and nothing of the user's is touched by anything.

use super::{DONE, Stage, ask, assert_done, is_alive, outcome, question, surroundings};
use crate::engine::until;
use aop_engine::{EngineError, Input, Progress, Surroundings, TurnReport, TurnRequest, driver};
use aop_testkit::{Engines, Program, Reply, Script};
use aop_turn::{Engine, Outcome, TurnErrorCode};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn error_code(outcome: &Outcome) -> TurnErrorCode {
    match outcome {
        Outcome::Error { code, .. } => *code,
        other => panic!("{other:?}"),
    }
}

/// A driver that finds this script as `codex`, and after it what the stage has.
fn with_program(stage: &mut Stage, script: &str) {
    let around = surroundings(&stage.home);
    with_program_around(stage, script, around);
}

/// The same with these variables.
fn with_program_around(stage: &mut Stage, script: &str, mut around: Surroundings) {
    let folder = stage.project.path("programs");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("codex");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = around.env.get_mut(std::ffi::OsStr::new("PATH")).unwrap();
    let folders = std::iter::once(folder).chain(std::env::split_paths(&path.clone()).collect::<Vec<_>>());
    *path = std::env::join_paths(folders).unwrap();
    stage.driver = driver(Engine::Codex, &around);
}

#[tokio::test]
async fn an_engine_that_dies_in_mid_turn_is_an_error_and_the_conversation_goes_on_after_it() {
    let stage = Stage::new(Script::new().then(Reply::never()).then(Reply::text(DONE)));
    let killer = async {
        while stage.model.main().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let group = format!("-{}", stage.process());
        Command::new("kill").args(["-9", "--", &group]).status().unwrap();
    };
    let (report, ()) = tokio::join!(stage.run(stage.start("one")), killer);
    assert_eq!(error_code(&outcome(&report)), TurnErrorCode::EngineFailed, "{:?}", outcome(&report));
    assert_eq!(report.process.exit_code, Some(137));
    let report = stage.run(stage.next("two", Input::Continue("Go on.".into()))).await;
    assert_done(&report);
    assert_eq!(stage.items(), ["user: Plan the shop."], "nothing was said to the model but its task");
}

#[tokio::test]
async fn an_engine_that_dies_before_its_turn_begins_is_a_failed_turn() {
    let mut stage = Stage::new(
        Script::new().then(ask("call_ask", &[question("db", &["x", "y"])])).then(Reply::text(DONE)),
    );
    let real = Engines::required().program(Program::Codex).display().to_string();
    // At its start, and when it is asked for the thread, of which nothing comes back then.
    let hello = r#"read hello; echo '{"id":1,"result":{}}'; read initialized; read thread"#;
    let dies = ["kill -9 $$", "echo killed >&2; kill -9 $$", "exit 3", &format!("{hello}; kill -9 $$")]
        .map(|death| format!("[ \"$1\" = --version ] && echo codex-cli 0.166.0 || {{ {death}; }}"));
    let killed = |report: &TurnReport| {
        assert_eq!(error_code(&outcome(report)), TurnErrorCode::EngineFailed, "{:?}", outcome(report));
        assert!(!report.delivered && report.asked.is_empty());
    };
    for (try_number, death) in dies.iter().enumerate() {
        with_program(&mut stage, death);
        killed(&stage.run(stage.start(&format!("zero-{try_number}"))).await);
    }
    with_program(&mut stage, &format!("exec {real} \"$@\""));
    let report = stage.run(stage.start("one")).await;
    let asked = &report.asked[0];
    stage.answer(asked, &json!({"db": "x"}));
    for (try_number, death) in dies.iter().enumerate() {
        with_program(&mut stage, death);
        killed(&stage.resume(&format!("two-{try_number}"), asked, "call_ask").await);
    }
    with_program(&mut stage, &format!("exec {real} \"$@\""));
    assert_done(&stage.resume("three", asked, "call_ask").await);
    assert_eq!(stage.model.results_of("call_ask").len(), 1);
}

#[tokio::test]
async fn an_engine_that_takes_too_long_is_ended() {
    let stage = Stage::new(Script::new().then(Reply::never()).then(Reply::never()));
    for (run, idle) in [("hard", false), ("idle", true)] {
        let mut request = stage.start(run);
        let limit = if idle { &mut request.limits.idle } else { &mut request.limits.hard };
        *limit = Duration::from_secs(2);
        let report = stage.run(request).await;
        assert_eq!(error_code(&outcome(&report)), TurnErrorCode::EngineTimeout, "{run}");
    }
}

#[tokio::test]
async fn a_model_that_refuses_is_an_error_with_its_words() {
    let stage = Stage::new(Script::new().then(Reply::error(400, "no such luck")));
    let report = stage.run(stage.start("one")).await;
    match outcome(&report) {
        Outcome::Error { code: TurnErrorCode::EngineFailed, message } => {
            assert!(message.contains("no such luck"), "{message}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn no_codex_an_old_one_and_none_at_all_are_told_apart() {
    let mut stage = Stage::new(Script::new());
    let mut around = surroundings(&stage.home);
    around.env.insert("PATH".into(), "/usr/bin:/bin".into());
    let nowhere = driver(Engine::Codex, &around);
    match nowhere.run(stage.start("one"), stage.host.clone()).await {
        Err(EngineError::NotInstalled { hint, .. }) => assert!(hint.contains("npm install"), "{hint}"),
        other => panic!("{other:?}"),
    }
    for (script, named) in [
        ("echo codex-cli 0.20.0", "older than"),
        ("echo I am not codex", "which is not a version"),
        (
            "[ \"$1\" = --version ] && echo codex-cli 0.166.0 || { echo no such command >&2; exit 2; }",
            "no such command",
        ),
        ("[ \"$1\" = --version ] && echo codex-cli 0.166.0 || yes garbage", "garbage"),
    ] {
        with_program(&mut stage, script);
        match stage.try_run(stage.start("one")).await {
            Err(EngineError::Unusable { cause, hint, .. }) => {
                assert!(cause.contains(named), "{script}: {cause}");
                assert!(!hint.is_empty());
            }
            other => panic!("{script}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn settings_that_codex_cannot_read_are_named() {
    let stage = Stage::new(Script::new());
    std::fs::write(stage.home.path().join(".codex/config.toml"), "model = [broken").unwrap();
    match stage.try_run(stage.start("one")).await {
        Err(EngineError::Unusable { cause, .. }) => assert!(cause.contains("config.toml"), "{cause}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_conversation_that_is_gone_is_named() {
    let stage = Stage::new(Script::new());
    let session = Some("01a1de11-71ac-7543-9960-dfdc4a8ad319".to_owned());
    let request = TurnRequest { session, ..stage.start("one") };
    match stage.try_run(request).await {
        Err(EngineError::ConversationGone { session, .. }) => assert!(session.starts_with("01a1de11")),
        other => panic!("{other:?}"),
    }
}

/// Every file below a folder with its content, its mode and what it links to.
fn files(folder: &Path) -> Vec<(String, Vec<u8>, u32)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let meta = std::fs::symlink_metadata(entry.path()).unwrap();
            if meta.is_dir() {
                folders.push(entry.path());
            }
            let content = if meta.is_file() { std::fs::read(entry.path()).unwrap() } else { Vec::new() };
            found.push((entry.path().display().to_string(), content, meta.permissions().mode()));
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn the_users_own_codex_stays_as_it_is_to_the_byte() {
    let stage = Stage::new(
        Script::new().then(ask("call_ask", &[question("db", &["x", "y"])])).then(Reply::text(DONE)),
    );
    let own = stage.home.path().join(".codex");
    std::fs::write(own.join("auth.json"), r#"{"OPENAI_API_KEY": "dummy"}"#).unwrap();
    std::fs::write(own.join("AGENTS.md"), "Be brief.").unwrap();
    let before = files(stage.home.path());
    // A repository is what Codex writes trust entries for.
    let work = stage.project.path("work");
    std::fs::create_dir_all(&work).unwrap();
    assert!(Command::new("git").args(["init", "-q"]).arg(&work).status().unwrap().success());
    let report = stage.run(stage.start("one")).await;
    stage.answer(&report.asked[0], &json!({"db": "x"}));
    assert_done(&stage.resume("two", &report.asked[0], "call_ask").await);
    assert_eq!(files(stage.home.path()), before);
    let home = stage.project.path(".aop/engines/codex");
    assert!(home.join("sessions").is_dir(), "the sessions are the project's");
    assert_eq!(std::fs::read_link(home.join("auth.json")).unwrap(), own.join("auth.json"));
    assert!(stage.model.conversation().unwrap().mentions("Be brief."), "the user's instructions hold");
}

#[tokio::test]
async fn the_environment_of_a_turn_is_written_down_nowhere() {
    let mut stage = Stage::new(Script::new());
    let mut around = surroundings(&stage.home);
    around.env.insert("PGPASSWORD".into(), "hunter2-of-the-database".into());
    // By the app-server, and by `codex exec`: the real program then says that it is older than it is.
    for (run, version) in [("one", "0.166.0"), ("two", "0.140.0")] {
        let real = Engines::required().program(Program::Codex);
        let says =
            format!("[ \"$1\" = --version ] && echo codex-cli {version} || exec {} \"$@\"", real.display());
        with_program_around(&mut stage, &says, around.clone());
        stage.model.extend(
            Script::new()
                .then(Reply::call(
                    "exec_command",
                    &format!("call_{run}"),
                    json!({"cmd": "echo $PGPASSWORD | wc -c"}),
                ))
                .then(Reply::text(DONE)),
        );
        assert_done(&stage.run(stage.start(run)).await);
        let returned = &stage.model.results_of(&format!("call_{run}"))[0];
        assert!(returned.contains("24"), "the command has the variable: {returned}");
        let holds = |content: &[u8]| content.windows(7).any(|window| window == b"hunter2");
        let found = files(&stage.project.path(".aop")).into_iter().filter(|(_, content, _)| holds(content));
        assert_eq!(found.map(|(path, ..)| path).collect::<Vec<_>>(), [""; 0], "{version}");
    }
}

/// Codex itself, with the conversation open: somebody else's process, or one left over from a turn.
fn other_writer(stage: &Stage, thread: &str, left_over: bool) -> Child {
    let engines = Engines::required();
    let mut command = stage.home.command(&engines.program(Program::Codex), &stage.project.path("work"));
    command.arg("app-server").env("CODEX_HOME", stage.project.path(".aop/engines/codex"));
    if left_over {
        command.env("AOP_TURN_MARK", "t_left_over");
    }
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let input = child.stdin.as_mut().unwrap();
    for message in [
        json!({"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "other", "title": "other", "version": "1"}}}),
        json!({"method": "initialized"}),
        json!({"id": 2, "method": "thread/resume", "params": {"threadId": thread, "excludeTurns": true}}),
    ] {
        writeln!(input, "{message}").unwrap();
    }
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let resumed = lines.find(|line| {
        let line: Value = serde_json::from_str(line.as_ref().unwrap()).unwrap();
        line["id"] == 2 && line["result"].is_object()
    });
    assert!(resumed.is_some());
    // The pipe stays with the child: a reader that is gone must not end it.
    std::thread::spawn(move || lines.for_each(drop));
    child
}

#[tokio::test]
async fn a_writer_left_over_from_a_turn_is_ended_and_anybody_elses_is_left_alone() {
    let stage = Stage::new(
        Script::new().then(ask("call_ask", &[question("db", &["x", "y"])])).then(Reply::text(DONE)),
    );
    let report = stage.run(stage.start("one")).await;
    let asked = &report.asked[0];
    stage.answer(asked, &json!({"db": "x"}));
    let thread = stage.host.session_ref().session;

    let mut person = other_writer(&stage, &thread, false);
    let end = stage.end(asked, "call_ask").await;
    let report = stage.run(stage.next("two", Input::Reply(Box::new(end)))).await;
    match outcome(&report) {
        // Tried again as any failed turn: the person may leave it at any moment.
        Outcome::Error { code: TurnErrorCode::EngineFailed, message } => {
            assert!(
                message.contains("has the conversation open") && message.contains("aop attach"),
                "{message}"
            );
        }
        other => panic!("{other:?}"),
    }
    assert!(!report.delivered);
    let pid = i32::try_from(person.id()).unwrap();
    assert!(is_alive(pid), "a person's own Codex is nobody's business");
    person.kill().unwrap();
    person.wait().unwrap();

    let mut left_over = other_writer(&stage, &thread, true);
    assert_done(&stage.resume("three", asked, "call_ask").await);
    until("the left-over process is gone", || !is_alive(i32::try_from(left_over.id()).unwrap()));
    left_over.wait().unwrap();
    assert_eq!(stage.model.results_of("call_ask").len(), 1);
}

#[tokio::test]
async fn an_answer_reaches_a_conversation_that_was_compacted_while_its_question_waited() {
    let stage = Stage::new(
        Script::new().then(ask("call_ask", &[question("db", &["x", "y"])])).then(Reply::text(DONE)),
    );
    let report = stage.run(stage.start("one")).await;
    let asked = &report.asked[0];
    // As a person does who has it open and types `/compact`.
    let thread = stage.host.session_ref().session;
    let mut person = other_writer(&stage, &thread, false);
    let compact = json!({"id": 3, "method": "thread/compact/start", "params": {"threadId": thread}});
    writeln!(person.stdin.as_mut().unwrap(), "{compact}").unwrap();
    let sessions = stage.project.path(".aop/engines/codex/sessions");
    let is_compacted = |content: &[u8]| String::from_utf8_lossy(content).contains("\"type\":\"compacted\"");
    until("it is compacted", || files(&sessions).iter().any(|(_, content, _)| is_compacted(content)));
    person.kill().unwrap();
    person.wait().unwrap();

    stage.answer(asked, &json!({"db": "y"}));
    assert_eq!(stage.holds(asked, "call_ask").await, Some(false));
    let report = stage.resume("two", asked, "call_ask").await;
    assert!(report.delivered);
    assert_done(&report);
    let told = stage.model.user_messages();
    let told: Vec<&String> = told.iter().filter(|text| text.contains(asked.as_str())).collect();
    let [told] = told.as_slice() else { panic!("{told:?}") };
    assert!(told.contains("Which db?") && told.contains(r#"{"db":"y"}"#), "{told}");
    assert_eq!(stage.holds(asked, "call_ask").await, Some(true));
}

#[tokio::test]
async fn a_version_that_cannot_ask_natively_asks_in_text_and_is_resumed_by_message() {
    let mut stage =
        Stage::new(Script::new().then(Reply::text("Which database shall I use?")).then(Reply::text(DONE)));
    // The real program, which only says that it is older than it is.
    let real = Engines::required().program(Program::Codex);
    with_program(
        &mut stage,
        &format!("[ \"$1\" = --version ] && echo codex-cli 0.140.0 || exec {} \"$@\"", real.display()),
    );
    let request = TurnRequest { instructions: "INSTRUCTIONS".into(), ..stage.start("one") };
    let report = stage.run(request).await;
    match outcome(&report) {
        Outcome::AskUser(asked) => assert_eq!(asked.interaction.prompt, "Which database shall I use?"),
        other => panic!("{other:?}"),
    }
    assert_eq!((report.asked.len(), report.session.as_ref()), (0, Some(&stage.host.session_ref())));
    let end = aop_engine::Reply {
        question_id: "q_1".into(),
        call_id: None,
        kind: aop_engine::ReplyKind::Answered,
        answer: json!("SQLite"),
        question: Value::Null,
        words: "The answer is: SQLite".into(),
        notes: String::new(),
        notes_are_secret: false,
    };
    let report = stage.run(stage.next("two", Input::Reply(Box::new(end)))).await;
    assert!(report.delivered);
    assert_done(&report);
    let told = stage.model.user_messages();
    assert_eq!(told.iter().filter(|text| text.contains("The answer is: SQLite")).count(), 1, "{told:?}");
    assert_eq!(told.iter().filter(|text| text.contains("INSTRUCTIONS")).count(), 1, "{told:?}");
    let held = stage.driver.holds_reply(
        stage.project.root().to_owned(),
        stage.host.session_ref(),
        "q_1".into(),
        None,
    );
    assert_eq!(held.await, Some(true));
}

#[tokio::test]
async fn what_the_agent_says_and_does_is_shown() {
    let call = Reply::call("exec_command", "call_cmd", json!({"cmd": "echo hello"}));
    let stage = Stage::new(Script::new().then(call).then(Reply::text(DONE)));
    assert_done(&stage.run(stage.start("one")).await);
    let progress = stage.host.progress.lock().unwrap();
    assert!(
        progress.iter().any(|shown| matches!(shown, Progress::Uses(what) if what.contains("echo hello")))
    );
    assert!(progress.contains(&Progress::Said(DONE.into())));
}

#[tokio::test]
async fn deliverables_can_be_written_where_the_turn_wants_them() {
    let stage = Stage::new(Script::new());
    let request = stage.start("one");
    let target = request.run_dir.join("artifacts/report.md");
    let cmd =
        format!("mkdir -p {0} && echo report > {1}", target.parent().unwrap().display(), target.display());
    stage.model.extend(
        Script::new()
            .then(Reply::call("exec_command", "call_cmd", json!({"cmd": cmd})))
            .then(Reply::text(DONE)),
    );
    assert_done(&stage.run(request).await);
    assert!(target.exists(), "{:?}", stage.model.results_of("call_cmd"));
}
