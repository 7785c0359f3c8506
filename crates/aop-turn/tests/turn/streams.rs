//! Each engine's stream, event by event.

use crate::support::*;
use aop_turn::native::{AskBody, Stage};
use aop_turn::stream::{Author, Covers, Ended, Event, EventKind, StreamParser, Usage};
use aop_turn::{Engine, TurnReader};
use serde_json::{Value, json};

fn events(engine: Engine, transcript: &[u8]) -> Vec<Event> {
    let mut found = Vec::new();
    let mut parser = StreamParser::new(engine);
    parser.feed(transcript, &mut |event| found.push(event));
    parser.finish(&mut |event| found.push(event));
    found
}

/// Events in a few words each.
fn told(engine: Engine, transcript: &[u8]) -> Vec<String> {
    events(engine, transcript)
        .into_iter()
        .map(|event| match event.kind {
            EventKind::TurnStarted => "turn".to_owned(),
            EventKind::Session(id) => format!("session {id}"),
            EventKind::Text(text) => format!("{:?} says {}", text.author, text.text),
            EventKind::ToolCall(call) => format!("{:?} uses {} ({})", call.author, call.name, call.call_id),
            EventKind::Ask(ask) => match ask.body {
                AskBody::Unusable(_) => format!("{:?} unusable {}", ask.stage, ask.call_id),
                AskBody::Card(_) | AskBody::Prompt(_) | AskBody::Permission { .. } => {
                    format!("{:?} ask {}", ask.stage, ask.call_id)
                }
            },
            EventKind::AskSettled { call_id } => format!("settled {call_id}"),
            EventKind::Usage(usage) => format!("usage {}/{}", usage.input_tokens, usage.output_tokens),
            EventKind::Ended(Ended::Completed { .. }) => "completed".to_owned(),
            EventKind::Ended(Ended::Failed(reason)) => format!("failed: {reason}"),
            EventKind::Error(message) => format!("error: {message}"),
            EventKind::Warning(message) => format!("warning: {message}"),
            EventKind::Malformed { .. } => "malformed".to_owned(),
            EventKind::Oversized { .. } => "oversized".to_owned(),
            EventKind::Other { .. } => "other".to_owned(),
        })
        .collect()
}

#[test]
fn claude_code() {
    let transcript = stream(&[
        claude::init(),
        claude::text("m1", "Let me ask."),
        claude::tool("m1", "toolu_1", "AskUserQuestion", &claude::card("Q?")),
        claude::can_use_tool("r1", "toolu_1", "AskUserQuestion", &claude::card("Q?")),
        claude::tool_result("toolu_1", "Postgres"),
        claude::tool("m2", "toolu_2", "Bash", &json!({"command": "ls"})),
        claude::tool_result("toolu_2", "a b c"),
        claude::sub_text("s1", "sub"),
        json!({"type": "system", "subtype": "task_progress"}),
        claude::text("m3", "Done."),
        claude::done("Done."),
    ]);
    assert_eq!(
        told(Engine::ClaudeCode, &transcript),
        [
            "turn",
            "session c-1",
            "Main says Let me ask.",
            "Main uses AskUserQuestion (toolu_1)",
            "Called ask toolu_1",
            "Waiting ask toolu_1",
            "settled toolu_1",
            "Main uses Bash (toolu_2)",
            "other",
            "Sub says sub",
            "other",
            "Main says Done.",
            "usage 10/2",
            "completed"
        ]
    );
}

#[test]
fn claude_code_cancels_a_request_that_another_surface_answered() {
    let transcript = stream(&[
        claude::can_use_tool("r1", "toolu_1", "Bash", &json!({"command": "ls"})),
        json!({"type": "control_cancel_request", "request_id": "r1"}),
        json!({"type": "control_request", "request_id": "r2", "request": {"subtype": "elicitation", "message": "Db?"}}),
        json!({"type": "control_request", "request_id": "r3", "request": {"subtype": "hook_callback"}}),
    ]);
    assert_eq!(
        told(Engine::ClaudeCode, &transcript),
        ["Waiting ask toolu_1", "settled toolu_1", "Waiting ask r2", "other"]
    );
}

#[test]
fn claude_code_says_why_it_failed_and_not_that_it_was_a_success() {
    let failed = |fields: Value| {
        let mut line = json!({"type": "result", "is_error": true});
        line.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        told(Engine::ClaudeCode, &stream(&[line])).pop().unwrap()
    };
    let key = "Invalid API key · Fix external API key";
    assert_eq!(failed(json!({"subtype": "success", "result": key})), format!("failed: {key}"));
    assert_eq!(failed(json!({"subtype": "success"})), "failed: it does not say why");
    assert_eq!(failed(json!({"subtype": "error_max_turns", "result": ""})), "failed: error_max_turns");
    let fields = json!({"subtype": "success", "terminal_reason": "api_error", "result": "400"});
    assert_eq!(failed(fields), "failed: api_error: 400");
}

#[test]
fn codex_exec() {
    let transcript = stream(&[
        codex::thread(),
        codex::started(),
        json!({"type": "item.completed", "item": {"id": "item_0", "type": "reasoning", "text": "hm"}}),
        json!({"type": "item.started", "item": {"id": "item_1", "type": "command_execution", "command": "ls"}}),
        codex::command("a b"),
        json!({"type": "item.started", "item": {"id": "item_2", "type": "mcp_tool_call", "server": "aop",
            "tool": "ask_user", "arguments": {"prompt": "?"}}}),
        codex::warning("low disk"),
        codex::error("Reconnecting 1/5"),
        codex::message("Done."),
        codex::completed(),
    ]);
    assert_eq!(
        told(Engine::Codex, &transcript),
        [
            "session x-1",
            "turn",
            "other",
            "Main uses command_execution (item_1)",
            "other",
            "Main uses mcp__aop__ask_user (item_2)",
            "other",
            "error: Reconnecting 1/5",
            "Main says Done.",
            "usage 500/50",
            "completed"
        ]
    );
}

#[test]
fn codex_app_server() {
    let transcript = stream(&[
        json!({"id": 1, "result": {"userAgent": "aop"}}),
        codex::app_thread("t-main"),
        codex::app("turn/started", json!({"threadId": "t-main", "turn": {"id": "u"}})),
        codex::app("turn/started", json!({"threadId": "t-sub", "turn": {"id": "v"}})),
        codex::app(
            "item/started",
            json!({"threadId": "t-main", "item": {"type": "commandExecution", "id": "c1", "command": "ls"}}),
        ),
        codex::app("item/agentMessage/delta", json!({"threadId": "t-main", "delta": "Us"})),
        codex::app_message("t-sub", "s1", "sub"),
        codex::request_user_input(0, "call_1", "Q?"),
        codex::resolved(7),
        codex::resolved(0),
        json!({"method": "item/commandExecution/requestApproval", "id": 1, "params": {"itemId": "c2", "command": "rm x"}}),
        codex::resolved(1),
        codex::app(
            "thread/tokenUsage/updated",
            json!({"threadId": "t-main", "tokenUsage": {"total": {"inputTokens": 9, "outputTokens": 1}}}),
        ),
        codex::app_message("t-main", "m1", "Using it."),
        codex::app_completed("completed"),
    ]);
    assert_eq!(
        told(Engine::Codex, &transcript),
        [
            "other",
            "session t-main",
            "turn",
            "other",
            "Main uses commandExecution (c1)",
            "other",
            "Sub says sub",
            "Waiting ask call_1",
            "other",
            "settled call_1",
            "Waiting ask c2",
            "settled c2",
            "usage 9/1",
            "Main says Using it.",
            "completed"
        ]
    );
}

#[test]
fn gemini_cli() {
    let transcript = stream(&[
        gemini::init(),
        gemini::user("go"),
        gemini::delta("Rea"),
        gemini::delta("ding."),
        gemini::tool("read__1", "read_file", &json!({"path": "x"})),
        gemini::tool_result("read__1", "content"),
        gemini::tool("ask__1", "ask_user", &json!({"questions": []})),
        json!({"type": "tool_result", "tool_id": "ask__1", "status": "error", "error": {"type": "tool_not_registered"}}),
        json!({"type": "error", "severity": "warning", "message": "slow"}),
        json!({"type": "error", "severity": "error", "message": "loop detected"}),
        gemini::success(),
    ]);
    assert_eq!(
        told(Engine::Gemini, &transcript),
        [
            "turn",
            "session g-1",
            "turn",
            "Main says Rea",
            "Main says ding.",
            "Main uses read_file (read__1)",
            "other",
            "Main uses ask_user (ask__1)",
            "Called unusable ask__1",
            "settled ask__1",
            "warning: slow",
            "error: loop detected",
            "usage 20/5",
            "completed"
        ]
    );
}

#[test]
fn iflow_text_and_block() {
    assert_eq!(
        told(Engine::Iflow, &iflow("Hello.")),
        ["Main says Hello.\n", "Main says \n", "session session-1", "usage 7/3", "completed"]
    );
    let inline = b"Done.<Execution Info>{\"session-id\":\"s\"}</Execution Info>";
    assert_eq!(told(Engine::Iflow, inline), ["Main says Done.", "session s", "completed"]);
}

#[test]
fn iflow_quotes_a_block_and_goes_on() {
    let transcript = b"It ends so:\n<Execution Info>{}</Execution Info>\n\nand that is all\n";
    let text: String = events(Engine::Iflow, transcript)
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Text(text) => Some(text.text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(text, "It ends so:\n<Execution Info>{}</Execution Info>\n\nand that is all\n");
    assert!(!told(Engine::Iflow, transcript).contains(&"completed".to_owned()));
}

#[test]
fn usage_says_what_it_covers() {
    for (engine, covers, cost) in [
        (Engine::ClaudeCode, Covers::Turn, Some(0.25)),
        (Engine::Codex, Covers::Session, None),
        (Engine::Gemini, Covers::Turn, None),
        (Engine::Iflow, Covers::Turn, None),
    ] {
        let mut reader = TurnReader::new(engine);
        reader.feed(&turn(engine, "x"));
        let Some(Usage { covers: found, cost_usd, .. }) = reader.finish().usage else { panic!("{engine}") };
        assert_eq!((found, cost_usd), (covers, cost), "{engine}");
    }
}

#[test]
fn ranges_point_at_the_lines() {
    let transcript = turn(Engine::Codex, "hello");
    for event in events(Engine::Codex, &transcript) {
        let line = &transcript[event.range.start as usize..event.range.end as usize];
        assert!(serde_json::from_slice::<Value>(line).is_ok());
    }
}

#[test]
fn garbage_between_the_lines_is_kept_and_skipped() {
    let mut transcript = b"npm warn \"assistant\" is noise\n\xff\xfe\0\n[]\n\n".to_vec();
    transcript.extend(turn(Engine::ClaudeCode, "hi"));
    let told = told(Engine::ClaudeCode, &transcript);
    assert_eq!(told[..3], ["malformed", "other", "other"]);
    assert_eq!(told.last().map(String::as_str), Some("completed"));
}

#[test]
fn the_type_may_come_last() {
    let line = br#"{"message":{"id":"m","content":[{"type":"text","text":"late"}]},"parent_tool_use_id":null,"type":"assistant"}"#;
    assert_eq!(told(Engine::ClaudeCode, line), ["Main says late"]);
}

#[test]
fn a_question_that_does_not_wait_is_told_apart() {
    let line = codex::app(
        "item/completed",
        json!({"threadId": "t", "item": {"type": "agentMessage", "id": "call_a", "text": "Which?\n- A",
            "delivery": "async", "questions": [{"title": "Which?", "options": ["A"]}]}}),
    );
    let found = events(Engine::Codex, &stream(&[line]));
    assert!(matches!(&found[0].kind, EventKind::Text(text) if text.author == Author::Main));
    assert!(matches!(&found[1].kind, EventKind::Ask(ask) if ask.stage == Stage::NotWaiting));
}
