//! Codex: warnings that look like errors, requests that wait, threads that are not ours.

use super::Expect::{Ask, Error};
use super::{DONE, check, row, summary};
use crate::support::{auto, codex, interactive, stream};
use aop_turn::Engine::Codex;
use serde_json::{Value, json};

#[test]
fn codex_streams() {
    let app_start =
        || vec![codex::app_thread("t-main"), codex::app("turn/started", json!({"threadId": "t-main"}))];
    let app = |rest: Vec<Value>| stream(&[app_start(), rest].concat());
    check(vec![
        row(
            "marker in command output",
            Codex,
            stream(&[
                codex::thread(),
                codex::started(),
                codex::message("Hm?"),
                codex::command(DONE),
                codex::completed(),
            ]),
            interactive(),
            Ask("Hm?"),
        ),
        row(
            "marker before a command, and only a thought after it",
            Codex,
            stream(&[
                codex::started(),
                codex::message(DONE),
                codex::command_started(),
                codex::command("3 FAILED"),
                codex::reasoning(),
                codex::completed(),
            ]),
            interactive(),
            Error("ENGINE_FAILED"),
        ),
        row(
            "a thought after the last message, and no tool between them",
            Codex,
            stream(&[
                codex::started(),
                codex::command_started(),
                codex::command("ok"),
                codex::message(DONE),
                codex::reasoning(),
                codex::completed(),
            ]),
            interactive(),
            summary(),
        ),
        row(
            "app-server: marker before a command, and only a thought after it",
            Codex,
            app(vec![
                codex::app_message("t-main", "m", DONE),
                codex::app_item("item/started", "t-main", "c", "commandExecution"),
                codex::app_item("item/started", "t-main", "r", "reasoning"),
                codex::app_item("item/completed", "t-main", "r", "reasoning"),
                codex::app_completed("completed"),
            ]),
            interactive(),
            Error("ENGINE_FAILED"),
        ),
        row(
            "app-server: a sub-agent's thought after the last message",
            Codex,
            app(vec![
                codex::app_item("item/started", "t-main", "c", "commandExecution"),
                codex::app_message("t-main", "m", DONE),
                codex::app_item("item/started", "t-sub", "d", "commandExecution"),
                codex::app_item("item/started", "t-sub", "r", "reasoning"),
                codex::app_completed("completed"),
            ]),
            interactive(),
            summary(),
        ),
        row(
            "a warning is no failure",
            Codex,
            stream(&[codex::started(), codex::warning("w"), codex::message(DONE), codex::completed()]),
            auto(),
            summary(),
        ),
        row(
            "a passing error is no failure",
            Codex,
            stream(&[
                codex::started(),
                codex::error("Reconnecting"),
                codex::message(DONE),
                codex::completed(),
            ]),
            auto(),
            summary(),
        ),
        row(
            "a failed turn",
            Codex,
            stream(&[codex::started(), codex::message(DONE), codex::failed("401")]),
            interactive(),
            Error("ENGINE_FAILED"),
        ),
        row(
            "an error and then nothing",
            Codex,
            stream(&[codex::started(), codex::error("no room")]),
            interactive(),
            Error("ENGINE_FAILED"),
        ),
        row(
            "truncated stream",
            Codex,
            stream(&[codex::thread(), codex::started(), codex::message(DONE)]),
            interactive(),
            Error("ENGINE_STREAM_TRUNCATED"),
        ),
        row("nothing at all", Codex, Vec::new(), interactive(), Error("ENGINE_STREAM_TRUNCATED")),
        row(
            "resumed stream with replayed items",
            Codex,
            stream(&[
                codex::thread(),
                codex::message(DONE),
                codex::started(),
                codex::message("Which?"),
                codex::completed(),
            ]),
            interactive(),
            Ask("Which?"),
        ),
        row(
            "an unreadable last message",
            Codex,
            {
                let mut bytes = stream(&[codex::started(), codex::message(DONE)]);
                bytes.extend(b"{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"te\n");
                bytes.extend(stream(&[codex::completed()]));
                bytes
            },
            interactive(),
            Error("ENGINE_STREAM_TRUNCATED"),
        ),
        row(
            "app-server: an ask that waits, killed",
            Codex,
            app(vec![codex::request_user_input(0, "c1", "Which?")]),
            interactive().exit(137),
            Ask("Which?"),
        ),
        row(
            "app-server: an ask that waits behind a result, killed",
            Codex,
            app(vec![codex::app_message("t-main", "m", DONE), codex::request_user_input(0, "c1", "Which?")]),
            interactive().exit(137),
            Ask("Which?"),
        ),
        row(
            "app-server: an ask that waits behind a result, cut off",
            Codex,
            app(vec![codex::app_message("t-main", "m", DONE), codex::request_user_input(0, "c1", "Which?")]),
            interactive(),
            Ask("Which?"),
        ),
        row(
            "app-server: an ask that waits behind a result in auto mode, cut off",
            Codex,
            app(vec![codex::app_message("t-main", "m", DONE), codex::request_user_input(0, "c1", "Which?")]),
            auto(),
            Error("AUTO_MODE_ASKED_USER"),
        ),
        row(
            "app-server: an ask delivered twice",
            Codex,
            app(vec![
                codex::request_user_input(0, "c1", "Which?"),
                codex::request_user_input(0, "c1", "Which?"),
            ]),
            interactive(),
            Ask("Which?"),
        ),
        row(
            "app-server: an ask that was answered",
            Codex,
            app(vec![
                codex::request_user_input(0, "c1", "?"),
                codex::resolved(0),
                codex::app_message("t-main", "m", DONE),
                codex::app_completed("completed"),
            ]),
            auto(),
            summary(),
        ),
        row(
            "app-server: an approval",
            Codex,
            app(vec![
                json!({"method": "item/commandExecution/requestApproval", "id": 0, "params": {"threadId": "t-main", "itemId": "c", "command": "rm x", "reason": "tidy"}}),
            ]),
            interactive(),
            Ask("Allow the engine to use command?\n\nrm x\n\nReason given: tidy"),
        ),
        row(
            "app-server: interrupted",
            Codex,
            app(vec![codex::app_message("t-main", "m", DONE), codex::app_completed("interrupted")]),
            interactive(),
            Error("ENGINE_FAILED"),
        ),
        row(
            "app-server: a sub-agent's message",
            Codex,
            app(vec![
                codex::app_message("t-main", "m", "Which?"),
                codex::app_message("t-sub", "s", DONE),
                codex::app_completed("completed"),
            ]),
            interactive(),
            Ask("Which?"),
        ),
        row(
            "app-server: a resume that fails",
            Codex,
            stream(&[json!({"id": 2, "error": {"code": -32600, "message": "no rollout"}})]),
            interactive(),
            Error("ENGINE_FAILED"),
        ),
        row(
            "app-server: a question that does not wait, and the turn goes on",
            Codex,
            app(vec![
                async_question(),
                codex::app_message("t-main", "m", DONE),
                codex::app_completed("completed"),
            ]),
            auto(),
            summary(),
        ),
        row(
            "app-server: a question that does not wait at the end",
            Codex,
            app(vec![async_question(), codex::app_completed("completed")]),
            interactive(),
            Ask("Which?"),
        ),
        row(
            "app-server: thread history in a reply",
            Codex,
            stream(&[
                json!({"id": 2, "result": {"thread": {"id": "t-main", "turns": [{"items": [{"type": "agentMessage", "text": DONE}]}]}}}),
                codex::app("turn/started", json!({"threadId": "t-main"})),
                codex::app_message("t-main", "m", "Which?"),
                codex::app_completed("completed"),
            ]),
            interactive(),
            Ask("Which?"),
        ),
    ]);
}

fn async_question() -> Value {
    codex::app(
        "item/completed",
        json!({"threadId": "t-main", "item": {"type": "agentMessage", "id": "a", "text": "Which?\n- A\n- B",
        "delivery": "async", "questions": [{"title": "Which?", "options": ["A", "B"]}]}}),
    )
}
