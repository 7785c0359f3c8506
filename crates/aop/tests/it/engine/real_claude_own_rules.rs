//! Claude Code, the real program, where what others wrote, or a rule or hook of the user's own, would have it do something
//! else than it is told.

use super::real_claude::{DONE, Stage, ask, assert_final, card, only, verdict};
use aop_engine::Input;
use aop_testkit::{Reply, Script};
use aop_turn::Outcome;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

/// The user's own settings.
fn own(stage: &Stage, settings: &Value) {
    let path = stage.home.join(".claude/settings.json");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, settings.to_string()).unwrap();
}

/// A hook of the user's own for this event.
fn hook(stage: &Stage, event: &str, matcher: &str, script: &str) {
    let path = stage.home.join("hook.sh");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    own(
        stage,
        &json!({"hooks": {event: [{"matcher": matcher, "hooks": [{"type": "command", "command": path}]}]}}),
    );
}

#[tokio::test]
async fn what_others_wrote_pulls_no_file_into_a_message() {
    let stage = Stage::new(Script::new().then(Reply::text(DONE)));
    let secret = stage.project.path("secret.txt");
    std::fs::write(&secret, "TOP-SECRET-77").unwrap();
    let path = secret.display();
    let said = format!("@{path} and @\"{path}\" and\n@{path}, says bob@example.com");
    assert_final(&stage.run(stage.turn("r1", Input::Message(said))).await);
    let body = stage.model.main()[0].body.to_string();
    assert!(!body.contains("TOP-SECRET-77"), "{body}");
    assert!(body.contains(&format!("\\\\@{path} and")), "{body}");
}

#[tokio::test]
async fn an_answer_whose_call_somebody_else_was_to_permit_is_told_in_words() {
    let stage = Stage::new(
        Script::new()
            .then(ask("toolu_1", &[card("Which?", false)]))
            .then(Reply::text("Hm."))
            .then(Reply::text(DONE)),
    );
    own(&stage, &json!({"permissions": {"ask": ["AskUserQuestion"]}}));
    let id = stage.start().await.asked.remove(0);
    stage.answer(&id, "SQLite");
    let done = stage.run(stage.resume("r2", &id).await).await;
    assert_final(&done);
    assert!(done.delivered);
    let told = stage.model.main();
    let last = told.last().unwrap().body["messages"].as_array().unwrap().last().unwrap().to_string();
    assert!(last.contains(&id) && last.contains("SQLite"), "{last}");
}

#[tokio::test]
async fn a_message_that_a_hook_of_the_users_refuses_is_a_failed_turn_and_no_question() {
    let stage = Stage::new(Script::new().then(Reply::text(DONE)));
    hook(&stage, "UserPromptSubmit", "", "echo 'no keys in prompts' >&2; exit 2");
    let report = stage.start().await;
    match verdict(&report).outcome {
        Outcome::Error { message, .. } => assert!(message.contains("no keys in prompts"), "{message}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(stage.model.main().len(), 0, "the model was not asked");
}

#[tokio::test]
async fn an_agent_whose_question_a_hook_of_the_users_refuses_does_not_go_on_while_it_waits() {
    let go_on = Reply::call("Bash", "toolu_2", json!({"command": "touch made", "description": "goes on"}));
    let stage = Stage::new(
        Script::new().then(ask("toolu_1", &[card("Which?", false)])).then(go_on).then(Reply::text(DONE)),
    );
    hook(&stage, "PreToolUse", "AskUserQuestion", "echo 'no questions here' >&2; exit 2");
    let parked = stage.start().await;
    let id = only(&parked.asked);
    stage.assert_nothing_runs().await;
    assert!(!stage.project.path("work/made").exists(), "it went on");
    // Of a conversation that has hardly begun the engine may have written nothing down yet; then it is told in another one.
    if !stage.has_conversation() {
        return;
    }
    stage.answer(id, "SQLite");
    stage.run(stage.resume("r2", id).await).await;
    let told = stage.model.main();
    let last = told.last().unwrap().body["messages"].to_string();
    assert!(last.contains("SQLite"), "{last}");
}
