//! The driver of Claude Code with programs that only stand in for it: one that has lost a conversation, one that does not
//! go. How the real one behaves is in `real_claude.rs`.

use super::host::{StoreHost, turn};
use super::{around, is_alive};
use crate::mcp_client::Client;
use crate::support::{Project, finish, question, tree};
use aop_engine::words::READ_FIRST;
use aop_engine::{Driver, EngineError, Input, Limits, Progress, Reply, ReplyKind, TurnRequest, driver};
use aop_turn::{Engine, Mode, Outcome, Rules, judge};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

const SESSION: &str = "01234567-89ab-4cde-8f01-23456789abcd";

/// A program of that name, which also notes that it was started.
fn stand_in(project: &Project, script: &str) -> Box<dyn Driver> {
    let bin = project.path("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let program = bin.join("claude");
    let version = "[ \"$1\" = --version ] && { echo '2.1.325 (Claude Code)'; exit; }";
    let text = format!("#!/bin/sh\n{version}\necho started >> \"$HOME/starts\"\n{script}\n");
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut around = around(project.root());
    around.env.insert("PATH".into(), format!("{}:/usr/bin:/bin", bin.display()).into());
    driver(Engine::ClaudeCode, &around)
}

/// The turn that tells this session the end of its question.
fn answered(project: &Project) -> TurnRequest {
    let reply = Reply {
        question_id: "q_1".into(),
        call_id: Some("toolu_1".into()),
        kind: ReplyKind::Answered,
        answer: json!("yes"),
        question: json!({}),
        words: "The end of your question q_1: yes".into(),
        notes: String::new(),
        notes_are_secret: false,
    };
    TurnRequest { session: Some(SESSION.into()), ..turn(project, "r1", Input::Reply(Box::new(reply))) }
}

fn starts(project: &Project) -> usize {
    std::fs::read_to_string(project.path("starts")).unwrap_or_default().lines().count()
}

#[tokio::test]
async fn a_conversation_without_a_transcript_is_gone_and_nothing_is_started_or_kept() {
    let project = Project::with_feature();
    let driver = stand_in(&project, "true");
    let host = StoreHost::new(&project);
    match driver.run(answered(&project), host.clone()).await {
        Err(EngineError::ConversationGone { session, .. }) => assert_eq!(session, SESSION),
        other => panic!("{other:?}"),
    }
    assert_eq!(starts(&project), 0);
    assert!(host.progress.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_conversation_that_the_program_does_not_find_is_gone() {
    let project = Project::with_feature();
    let driver = stand_in(&project, "echo \"No conversation found with session ID: $5\" >&2; exit 1");
    let transcripts = project.path(".claude/projects/p");
    std::fs::create_dir_all(&transcripts).unwrap();
    std::fs::write(transcripts.join(format!("{SESSION}.jsonl")), "{}\n").unwrap();
    let message = TurnRequest { input: Input::Message("Go.".into()), ..answered(&project) };
    for request in [answered(&project), message] {
        match driver.run(request, StoreHost::new(&project)).await {
            Err(EngineError::ConversationGone { session, cause, .. }) => {
                assert!(session == SESSION && cause.contains("No conversation found"), "{session} {cause}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(starts(&project), 2, "each was tried once");
}

#[tokio::test]
async fn a_turn_that_ended_counts_although_its_process_does_not_go() {
    let project = Project::with_feature();
    let said = |message: &str, text: &str| json!({"type": "assistant", "message": {"id": message, "content": [{"type": "text", "text": text}]}});
    let result =
        |text: &str| json!({"type": "result", "subtype": "success", "is_error": false, "result": text});
    let done = "{\"__SKILL_DONE__\": true}";
    // Another turn of the same process follows the end of the first, and then nothing but silence.
    let init = json!({"type": "system", "subtype": "init", "session_id": SESSION});
    let lines: [Value; 5] = [said("m1", "Hm?"), result("Hm?"), init, said("m2", done), result(done)];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(project.path("lines"), text).unwrap();
    let driver = stand_in(&project, "cat \"$HOME/lines\"; sleep 1000");
    let host = StoreHost::new(&project);
    let limits = Limits { linger: Duration::from_millis(50), ..Limits::default() };
    let request = TurnRequest { limits, ..turn(&project, "r1", Input::Message("Go.".into())) };
    let report = driver.run(request, host.clone()).await.unwrap();
    let process = report.process;
    let rules = Rules { mode: Mode::Interactive, attempt: 1, max_attempt: 20, schema: None, process };
    assert!(matches!(judge(&report.turn, &rules).outcome, Outcome::Final { .. }), "{report:?}");
    let progress = host.progress.lock().unwrap();
    let pids: Vec<i32> = progress
        .iter()
        .filter_map(|progress| match progress {
            Progress::Started { pgid, .. } => Some(*pgid),
            Progress::Said(_) | Progress::Uses(_) => None,
        })
        .collect();
    assert!(!pids.is_empty() && pids.iter().all(|pid| !is_alive(*pid)), "{pids:?}");
}

/// The model's side of both is in `real_claude.rs`.
#[tokio::test]
async fn what_is_secret_or_too_long_beside_an_answer_goes_to_standard_input_and_into_no_file() {
    for (notes, notes_are_secret) in [("hunter2".to_owned(), true), ("hunter2 ".repeat(1_200), false)] {
        let project = Project::with_feature();
        let transcript = project.path(".claude/projects/p").join(format!("{SESSION}.jsonl"));
        std::fs::create_dir_all(transcript.parent().unwrap()).unwrap();
        std::fs::write(&transcript, "{}\n").unwrap();
        let told = json!({"type": "user", "message": {"content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "yes"}]}});
        let result = json!({"type": "result", "subtype": "success", "is_error": false, "result": "ok"});
        let script = format!(
            "n=$(wc -l < \"$HOME/starts\"); cp -r \"$HOME/.aop/runs\" \"$HOME/seen-$n\"; cat > \"$HOME/told-$n\"
            echo '{told}' >> \"{}\"; echo '{result}'",
            transcript.display()
        );
        let driver = stand_in(&project, &script);
        let mut request = answered(&project);
        request.instructions = "Deliver here.".to_owned();
        let Input::Reply(reply) = &mut request.input else { panic!() };
        (reply.notes, reply.notes_are_secret) = (notes.clone(), notes_are_secret);
        let report = driver.run(request, StoreHost::new(&project)).await.unwrap();
        assert!(report.delivered, "{report:?}");
        let read = |file: &str| std::fs::read_to_string(project.path(file)).unwrap();
        assert_eq!(starts(&project), 2);
        assert_eq!((read("told-1"), read("told-2")), (String::new(), format!("{notes}\n\nDeliver here.")));
        let follows = |run: &str| serde_json::from_str::<Value>(&read(run)).unwrap()["more_follows"].clone();
        assert_eq!(
            (follows("seen-1/r1/hook.json"), follows("seen-2/r1/hook.json")),
            (true.into(), false.into())
        );
        for folder in [".aop", "seen-1", "seen-2"] {
            for (path, content) in tree(&project.path(folder)) {
                let holds = content.windows(7).any(|window| window == b"hunter2");
                assert!(!holds, "{}", path.display());
            }
        }
    }
}

#[tokio::test]
async fn what_follows_an_answer_and_was_not_read_to_its_end_counts_as_undelivered() {
    let project = Project::with_feature();
    let transcript = project.path(".claude/projects/p").join(format!("{SESSION}.jsonl"));
    std::fs::create_dir_all(transcript.parent().unwrap()).unwrap();
    let told = json!({"type": "user", "message": {"content": [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "yes"}]}});
    std::fs::write(&transcript, format!("{told}\n")).unwrap();
    let request = |notes: &str| {
        let mut request = answered(&project);
        let Input::Reply(reply) = &mut request.input else { panic!() };
        (reply.notes, reply.notes_are_secret) = (notes.to_owned(), true);
        request
    };
    let driver = stand_in(&project, "exit 1");
    assert!(!driver.run(request("hunter2"), StoreHost::new(&project)).await.unwrap().delivered);
    // The call has its result by now, so nothing waits; only the rest is told.
    let nothing = "No deferred tool marker found in the resumed session";
    let script = format!(
        "text=$(cat); [ -n \"$text\" ] || {{ echo '{nothing}' >&2; exit 1; }}; echo \"$text\" > \"$HOME/told\""
    );
    let driver = stand_in(&project, &script);
    assert!(driver.run(request("hunter2"), StoreHost::new(&project)).await.unwrap().delivered);
    assert_eq!(std::fs::read_to_string(project.path("told")).unwrap(), "hunter2\n");
}

#[tokio::test]
async fn an_agent_that_has_more_to_read_asks_nothing_before_it_has_read_it() {
    let project = Project::with_feature();
    let transcript = project.path(".claude/projects/p").join(format!("{SESSION}.jsonl"));
    std::fs::create_dir_all(transcript.parent().unwrap()).unwrap();
    std::fs::write(&transcript, "{}\n").unwrap();
    let result = json!({"type": "result", "subtype": "success", "is_error": false, "result": "ok"});
    let kept = "n=$(wc -l < \"$HOME/starts\"); for name in AOP_AGENT AOP_ENGINE; do
        printenv $name > \"$HOME/$name-$n\"; done";
    let driver = stand_in(&project, &format!("cat > /dev/null; {kept}; echo '{result}'"));
    let mut request = answered(&project);
    let Input::Reply(reply) = &mut request.input else { panic!() };
    (reply.notes, reply.notes_are_secret) = ("hunter2".to_owned(), true);
    driver.run(request, StoreHost::new(&project)).await.unwrap();
    let read = |file: &str| std::fs::read_to_string(project.path(file)).unwrap().trim_end().to_owned();
    // What the engine starts finds what the engine found.
    let found =
        |process: &str| ["AOP_AGENT", "AOP_ENGINE"].map(|name| (name, read(&format!("{name}-{process}"))));
    let client = |process: &str| {
        let found = found(process);
        let variables = [(found[0].0, found[0].1.as_str()), (found[1].0, found[1].1.as_str())];
        Client::start_with(&project, &["--wait-ms", "0"], &variables, &json!({}))
    };
    let mut first = client("1");
    for kind in ["clarification", "permission_override"] {
        let told = first.data("ask_user", &json!({"prompt": "Which?", "question_type": kind}));
        assert_eq!(told, json!({"status": "declined", "text": format!("DECLINED: {READ_FIRST}")}));
    }
    let refused = first.refused("feature.question_create", &question("shop", "o"), "unsupported_operation");
    assert_eq!(refused["message"], READ_FIRST);
    let input = question("shop", "o").to_string();
    let create = ["tool", "call", "feature.question_create", "--input", &input];
    for command in [&["ask", "Which?"][..], &create] {
        let refused = finish(project.command(command).envs(found("1")));
        assert!(refused.stdout.contains(READ_FIRST), "{command:?}: {refused:?}");
    }
    let look = ["tool", "call", "feature.get", "--input", r#"{"feature_id": "shop"}"#];
    assert_eq!(finish(project.command(&look).envs(found("1"))).data()["feature_id"], "shop");
    assert_eq!(client("2").data("ask_user", &json!({"prompt": "Which?"}))["status"], "pending");
}
