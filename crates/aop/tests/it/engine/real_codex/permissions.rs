//! With `permissions: ask`, what Codex wants to do beyond its sandbox becomes a question, and the process stays.

use super::{DONE, Stage, WithPerson, agents_of, answer_in, assert_done, is_alive};
use crate::engine::until;
use aop_engine::{Input, TurnRequest};
use aop_testkit::{Call, Reply, Script};
use aop_turn::Mode;
use aop_turn::command::Permissions;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A command that wants out of the sandbox and leaves a trace.
fn command(call: &str) -> Reply {
    let input = json!({"cmd": "echo ran >> ran.txt; echo it-ran", "sandbox_permissions": "require_escalated",
        "justification": "the network is needed"});
    Reply::call("exec_command", call, input)
}

fn request(stage: &Stage) -> TurnRequest {
    TurnRequest { permissions: Permissions::Ask, ..stage.start("one") }
}

fn person(stage: &Stage, answer: &str) -> Arc<WithPerson> {
    let (project, answer) = (stage.project.root().to_owned(), answer.to_owned());
    let person = move |asked: &str| {
        assert_eq!(agents_of(&project).len().min(1), 1, "the process is kept");
        assert!(answer_in(&project, asked, &answer));
    };
    Arc::new(WithPerson { inner: stage.host.clone(), person: Box::new(person) })
}

fn runs(stage: &Stage) -> usize {
    std::fs::read_to_string(stage.project.path("work/ran.txt")).unwrap_or_default().lines().count()
}

#[tokio::test]
async fn an_allowed_command_runs_and_a_denied_one_does_not() {
    for (answer, ran) in [("allow", 1), ("deny", 0), ("no, use the cache instead", 0), ("yes", 0)] {
        let stage = Stage::new(Script::new().then(command("call_cmd")).then(Reply::text(DONE)));
        let report = stage.driver.run(request(&stage), person(&stage, answer)).await.unwrap();
        assert_done(&report);
        assert_eq!(runs(&stage), ran, "{answer}");
        let asked = json!(stage.host.question(&stage.host.questions().await[0]).await);
        assert_eq!(asked["question_type"], "permission_override");
        let prompt = asked["prompt"].as_str().unwrap();
        assert!(prompt.contains("it-ran") && prompt.contains("the network is needed"), "{prompt}");
        let told = &stage.model.results_of("call_cmd")[0];
        assert_eq!(!told.contains("Rejected"), ran == 1, "{told}");
        let words = stage.model.user_messages().iter().any(|text| text.contains(answer));
        assert_eq!(words, !["allow", "deny"].contains(&answer), "words of the person reach the model");
    }
}

#[tokio::test]
async fn a_change_of_files_outside_is_shown_with_its_content() {
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = outside.path().join("new.txt");
    let patch = format!("*** Begin Patch\n*** Add File: {}\n+hello there\n*** End Patch", file.display());
    for (answer, exists) in [("deny", false), ("allow", true)] {
        let call = Call::new("apply_patch", "call_patch", Value::String(patch.clone()));
        let stage = Stage::new(Script::new().then(Reply::calls([call])).then(Reply::text(DONE)));
        assert_done(&stage.driver.run(request(&stage), person(&stage, answer)).await.unwrap());
        let asked = stage.host.question(&stage.host.questions().await[0]).await.asked;
        assert!(asked.prompt.contains("new.txt") && asked.prompt.contains("hello there"), "{}", asked.prompt);
        assert_eq!(file.exists(), exists);
    }
}

#[tokio::test]
async fn nobody_is_asked_in_auto_mode_and_nothing_is_allowed() {
    let stage = Stage::new(Script::new().then(command("call_cmd")).then(Reply::text(DONE)));
    let report = stage.run(TurnRequest { mode: Mode::Auto, ..request(&stage) }).await;
    assert_done(&report);
    assert_eq!((runs(&stage), stage.host.questions().await.len()), (0, 0));
    assert!(stage.model.user_messages().iter().any(|text| text.contains("The permission is not given")));
}

#[tokio::test]
async fn a_process_that_dies_meanwhile_is_told_in_words_and_the_permission_holds_for_the_same_command_once() {
    for (answer, ran) in [("allow", 1), ("deny", 0)] {
        let script =
            Script::new().then(command("call_one")).then(command("call_two")).then(Reply::text(DONE));
        let stage = Stage::new(script);
        // The machine takes the process away while the person thinks.
        let killer = {
            let host = stage.host.clone();
            let project = stage.project.root().to_owned();
            move |_: &str| {
                let pgid = host.progress.lock().unwrap().iter().find_map(|progress| match progress {
                    aop_engine::Progress::Started { pgid, .. } => Some(*pgid),
                    _ => None,
                });
                let group = format!("-{}", pgid.unwrap());
                std::process::Command::new("kill").args(["-9", "--", &group]).status().unwrap();
                until("the engine is gone", || !is_alive(pgid.unwrap()));
                let _ = &project;
            }
        };
        let host = Arc::new(WithPerson { inner: stage.host.clone(), person: Box::new(killer) });
        let report = stage.driver.run(request(&stage), host).await.unwrap();
        let [asked] = report.asked.as_slice() else { panic!("{:?}", report.asked) };
        stage.answer(asked, &json!(answer));
        let end = stage.end(asked, "call_one").await;
        let mut next = stage.next("two", Input::Reply(Box::new(end)));
        next.permissions = Permissions::Ask;
        let report = match answer {
            "allow" => stage.run(next).await,
            // The model tries again all the same, and is asked about again.
            _ => stage.driver.run(next, person(&stage, "deny")).await.unwrap(),
        };
        assert!(report.delivered);
        assert_done(&report);
        assert_eq!(runs(&stage), ran, "{answer}");
        let told = stage.model.results_of("call_one");
        let words = if answer == "allow" { "It is allowed now" } else { "permission was not given" };
        assert!(told.len() == 1 && told[0].contains(words), "{told:?}");
        assert_eq!(stage.host.questions().await.len(), if answer == "allow" { 1 } else { 2 });
    }
}

#[tokio::test]
async fn the_time_a_person_takes_is_not_the_engines() {
    let stage = Stage::new(Script::new().then(command("call_cmd")).then(Reply::text(DONE)));
    let mut request = request(&stage);
    // Less than the person takes; the engine itself is never silent for so long.
    request.limits.idle = Duration::from_millis(1500);
    let host = stage.host.clone();
    let slow = async {
        let asked = host.nth_question(1).await;
        tokio::time::sleep(Duration::from_millis(2500)).await;
        stage.answer(&asked, &json!("allow"));
    };
    let (report, ()) = tokio::join!(stage.run(request), slow);
    assert_done(&report);
    assert_eq!(runs(&stage), 1);
}

/// An MCP server with one tool that asks the person before it answers. It is no more than this test needs.
const SERVER: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}}' ;;
    *'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"pick","description":"Picks.","inputSchema":{"type":"object","properties":{"what":{"type":"string"}}}}]}}' ;;
    *'"tools/call"'*) call=$id; echo '{"jsonrpc":"2.0","id":900,"method":"elicitation/create","params":{"message":"Which one?","requestedSchema":{"type":"object","properties":{"db":{"type":"string"}},"required":["db"]}}}' ;;
    *'"action"'*) said=$(printf '%s' "$line" | tr -d '"{}'); echo '{"jsonrpc":"2.0","id":'$call',"result":{"content":[{"type":"text","text":"'"$said"'"}]}}' ;;
  esac
done
"#;

#[tokio::test]
async fn a_tool_of_an_mcp_server_needs_a_permission_and_what_the_server_asks_is_a_question_too() {
    let call = Call::new("pick", "call_pick", json!({"what": "a database"})).of("mcp__other");
    let stage = Stage::new(Script::new().then(Reply::calls([call])).then(Reply::text(DONE)));
    let server = stage.project.path("server.sh");
    std::fs::write(&server, SERVER).unwrap();
    let path = stage.home.path().join(".codex/config.toml");
    let settings = std::fs::read_to_string(&path).unwrap();
    let servers = format!(
        "[mcp_servers.other]\ncommand = \"/bin/sh\"\nargs = [\"{}\"]\nomit_tools_from = [\"deferred\"]\n",
        server.display()
    );
    std::fs::write(&path, format!("{settings}{servers}")).unwrap();
    let project = stage.project.root().to_owned();
    let count = AtomicUsize::new(0);
    let person = move |asked: &str| {
        let answer = ["allow", r#"{"db": "sqlite"}"#][count.fetch_add(1, Ordering::Relaxed)];
        assert!(answer_in(&project, asked, answer));
    };
    let host = Arc::new(WithPerson { inner: stage.host.clone(), person: Box::new(person) });
    assert_done(&stage.driver.run(request(&stage), host).await.unwrap());
    let asked = stage.host.questions().await;
    assert_eq!(asked.len(), 2);
    let permission = stage.host.question(&asked[0]).await.asked;
    assert!(
        permission.prompt.contains("pick") && permission.prompt.contains("a database"),
        "{}",
        permission.prompt
    );
    assert_eq!(stage.host.question(&asked[1]).await.asked.prompt, "other: Which one?");
    let told = stage.model.results_of("call_pick");
    assert!(
        told.len() == 1 && told[0].contains("action:accept") && told[0].contains("db:sqlite"),
        "{told:?}"
    );
}
