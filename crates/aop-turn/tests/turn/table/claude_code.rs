//! Claude Code: sub-agents, deferred tools, failures that look like success.

use super::Expect::{Ask, Error};
use super::{DONE, check, row, summary};
use crate::support::{auto, claude, interactive, stream, turn};
use aop_turn::Engine::ClaudeCode;
use serde_json::{Value, json};

#[test]
fn claude_code_streams() {
    let say = |text| claude::text("m9", text);
    let card = claude::card("Which?");
    check(vec![
        row(
            "marker in tool output",
            ClaudeCode,
            stream(&[
                claude::init(),
                claude::tool("m1", "t1", "Bash", &json!({})),
                claude::tool_result("t1", DONE),
                say("Hm?"),
                claude::done("Hm?"),
            ]),
            interactive(),
            Ask("Hm?"),
        ),
        row(
            "marker in an earlier message",
            ClaudeCode,
            stream(&[
                claude::init(),
                claude::text("m1", DONE),
                say("Wait, which?"),
                claude::done("Wait, which?"),
            ]),
            interactive(),
            Ask("Wait, which?"),
        ),
        row(
            "marker in an earlier message, and only a thought in the last",
            ClaudeCode,
            stream(&[
                claude::init(),
                claude::text("m1", DONE),
                claude::tool("m1", "t1", "Bash", &json!({"command": "make test"})),
                claude::tool_result("t1", "3 FAILED"),
                claude::block("m2", json!({"type": "thinking", "thinking": "it failed"}), Value::Null),
                claude::done(""),
            ]),
            interactive(),
            Error("ENGINE_FAILED"),
        ),
        row(
            "a thought before the words of the same message",
            ClaudeCode,
            stream(&[
                claude::init(),
                claude::block("m1", json!({"type": "thinking", "thinking": "done"}), Value::Null),
                claude::text("m1", DONE),
                claude::block("m1", json!({"type": "thinking", "thinking": "really"}), Value::Null),
                claude::done(DONE),
            ]),
            interactive(),
            summary(),
        ),
        row(
            "a sub-agent's thought after the last message",
            ClaudeCode,
            stream(&[
                claude::init(),
                say(DONE),
                claude::block("s1", json!({"type": "thinking", "thinking": "hm"}), json!("p")),
                claude::done(DONE),
            ]),
            interactive(),
            summary(),
        ),
        row(
            "marker in an earlier turn of the process",
            ClaudeCode,
            stream(&[
                claude::init(),
                say(DONE),
                claude::done(DONE),
                claude::init(),
                claude::text("m2", "And now?"),
                claude::done("And now?"),
            ]),
            interactive(),
            Ask("And now?"),
        ),
        row(
            "a message in two blocks",
            ClaudeCode,
            stream(&[
                claude::init(),
                say("Done."),
                claude::sub_text("s1", "noise"),
                say(DONE),
                claude::done(DONE),
            ]),
            interactive(),
            summary(),
        ),
        row(
            "interleaved sub-agents",
            ClaudeCode,
            stream(&[
                claude::init(),
                claude::sub_text("s1", DONE),
                say("Which?"),
                claude::sub_text("s1", DONE),
                claude::done("Which?"),
            ]),
            interactive(),
            Ask("Which?"),
        ),
        row(
            "a sub-agent asks",
            ClaudeCode,
            stream(&[
                claude::init(),
                claude::block(
                    "s1",
                    json!({"type": "tool_use", "id": "t", "name": "AskUserQuestion", "input": card}),
                    json!("p"),
                ),
                say(DONE),
                claude::done(DONE),
            ]),
            interactive(),
            summary(),
        ),
        row(
            "deferred ask",
            ClaudeCode,
            stream(&[
                claude::init(),
                claude::tool("m1", "t1", "AskUserQuestion", &card),
                claude::deferred("t1", "AskUserQuestion", &card),
            ]),
            interactive().exit(0),
            Ask("Which?"),
        ),
        row(
            "deferred again on resume",
            ClaudeCode,
            stream(&[claude::deferred("t1", "AskUserQuestion", &card)]),
            interactive(),
            Ask("Which?"),
        ),
        row(
            "two asks in one message",
            ClaudeCode,
            stream(&[
                claude::init(),
                claude::tool("m1", "t1", "AskUserQuestion", &claude::card("One?")),
                claude::tool("m1", "t2", "AskUserQuestion", &claude::card("Two?")),
                claude::deferred("t2", "AskUserQuestion", &claude::card("Two?")),
            ]),
            interactive(),
            Ask("1. One?\n2. Two?"),
        ),
        row(
            "an ask that was answered within the turn",
            ClaudeCode,
            stream(&[
                claude::init(),
                claude::tool("m1", "t1", "AskUserQuestion", &card),
                claude::tool_result("t1", "SQLite"),
                say(DONE),
                claude::done(DONE),
            ]),
            auto(),
            summary(),
        ),
        row(
            "an ask that waits for the host while the process is killed",
            ClaudeCode,
            stream(&[
                claude::init(),
                claude::tool("m1", "t1", "AskUserQuestion", &card),
                claude::can_use_tool("r", "t1", "AskUserQuestion", &card),
            ]),
            interactive().exit(137),
            Ask("Which?"),
        ),
        row(
            "an ask that nobody handled, process killed",
            ClaudeCode,
            stream(&[claude::init(), claude::tool("m1", "t1", "AskUserQuestion", &card)]),
            interactive(),
            Error("ENGINE_STREAM_TRUNCATED"),
        ),
        row(
            "an unusable card",
            ClaudeCode,
            stream(&[claude::init(), claude::deferred("t1", "AskUserQuestion", &json!({"questions": []}))]),
            interactive(),
            Error("ASK_USER_PAYLOAD_INVALID"),
        ),
        row(
            "a deferred tool that is no ask",
            ClaudeCode,
            stream(&[claude::init(), claude::deferred("t1", "Bash", &json!({"command": "rm -r build"}))]),
            interactive(),
            Ask("Allow the engine to use Bash?\n\nrm -r build"),
        ),
        row(
            "an elicitation that was answered",
            ClaudeCode,
            stream(&[claude::init(), elicitation(), claude::text("m2", DONE), claude::done(DONE)]),
            auto(),
            summary(),
        ),
        row(
            "an elicitation that waits",
            ClaudeCode,
            stream(&[claude::init(), claude::text("m1", "Hm."), elicitation()]),
            interactive(),
            Ask("Sign in?\n\nhttp://127.0.0.1/x"),
        ),
        row(
            "API error reported as success",
            ClaudeCode,
            stream(&[
                claude::init(),
                say("API Error: 400"),
                claude::failed("success", "api_error", "API Error: 400"),
            ]),
            interactive(),
            Error("ENGINE_FAILED"),
        ),
        row(
            "too many turns",
            ClaudeCode,
            stream(&[claude::init(), say(DONE), claude::failed("error_max_turns", "max_turns", "")]),
            interactive(),
            Error("ENGINE_FAILED"),
        ),
        row(
            "truncated stream",
            ClaudeCode,
            stream(&[claude::init(), say(DONE)]),
            interactive(),
            Error("ENGINE_STREAM_TRUNCATED"),
        ),
        row(
            "truncated in the middle of a line",
            ClaudeCode,
            turn(ClaudeCode, DONE)[..300].to_vec(),
            interactive(),
            Error("ENGINE_STREAM_TRUNCATED"),
        ),
        row(
            "killed process",
            ClaudeCode,
            turn(ClaudeCode, DONE),
            interactive().exit(137),
            Error("ENGINE_FAILED"),
        ),
        row(
            "timeout",
            ClaudeCode,
            stream(&[claude::init(), say("working")]),
            interactive().timed_out(),
            Error("ENGINE_TIMEOUT"),
        ),
        row(
            "structured output without text",
            ClaudeCode,
            stream(&[
                claude::init(),
                claude::tool("m1", "t1", "StructuredOutput", &json!({"summary": "x"})),
                json!({"type": "result", "subtype": "success", "is_error": false, "result": "", "structured_output": {"summary": "x"}}),
            ]),
            auto().report(),
            summary(),
        ),
        row(
            "a replayed message",
            ClaudeCode,
            {
                let mut replay = claude::text("m0", DONE);
                replay["isReplay"] = json!(true);
                stream(&[claude::init(), replay, say("Which?"), claude::done("Which?")])
            },
            interactive(),
            Ask("Which?"),
        ),
        row(
            "an unreadable last message, with the engine's copy",
            ClaudeCode,
            {
                let mut bytes = stream(&[claude::init(), claude::text("m1", DONE)]);
                bytes.extend(b"{\"type\":\"assistant\",\"mess\n");
                bytes.extend(stream(&[claude::done("Which?")]));
                bytes
            },
            interactive(),
            Ask("Which?"),
        ),
    ]);
}

fn elicitation() -> Value {
    json!({"type": "control_request", "request_id": "r1", "request": {"subtype": "elicitation", "mode": "url",
        "message": "Sign in?", "url": "http://127.0.0.1/x"}})
}
