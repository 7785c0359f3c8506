//! What the last message may look like, in any engine.

use super::Expect::{Ask, Error, Final};
use super::{ASK, DONE, check, row, summary};
use crate::support::{Setup, auto, interactive, turn};
use aop_turn::Engine::{ClaudeCode, Codex, Gemini, Iflow};
use serde_json::json;

#[test]
fn messages() {
    check(vec![
        row("marker alone", ClaudeCode, turn(ClaudeCode, DONE), interactive(), summary()),
        row(
            "marker after prose",
            Codex,
            turn(Codex, &format!("All done.\n\n{DONE}")),
            interactive(),
            summary(),
        ),
        row(
            "marker in a fence",
            Gemini,
            turn(Gemini, &format!("Done.\n```json\n{DONE}\n```")),
            interactive(),
            summary(),
        ),
        row(
            "marker after a thought",
            Iflow,
            turn(Iflow, &format!("thinking…\n{DONE}")),
            interactive(),
            summary(),
        ),
        row(
            "marker inside a quoted example",
            ClaudeCode,
            turn(ClaudeCode, &format!("I will end with:\n```json\n{DONE}\n```\nOnce you agree. Do you?")),
            interactive(),
            Ask(
                "I will end with:\n```json\n{\"__SKILL_DONE__\": true, \"summary\": \"x\"}\n```\nOnce you agree. Do you?",
            ),
        ),
        row(
            "marker in a block quote",
            Codex,
            turn(Codex, &format!("> {DONE}")),
            auto(),
            Error("AUTO_COMPLETION_EVIDENCE_MISSING"),
        ),
        row(
            "marker in the middle of a line",
            Gemini,
            turn(Gemini, &format!("Result: {DONE}")),
            auto(),
            Error("AUTO_COMPLETION_EVIDENCE_MISSING"),
        ),
        row(
            "marker in a fence of another language",
            Iflow,
            turn(Iflow, &format!("```python\n{DONE}\n```")),
            auto(),
            Error("AUTO_COMPLETION_EVIDENCE_MISSING"),
        ),
        row(
            "marker in a fence within a fence",
            Codex,
            turn(Codex, &format!("````md\n```json\n{DONE}\n```\n````")),
            auto(),
            Error("AUTO_COMPLETION_EVIDENCE_MISSING"),
        ),
        row(
            "marker as a string",
            ClaudeCode,
            turn(ClaudeCode, "{\"__SKILL_DONE__\": \"true\"}"),
            interactive(),
            Ask("{\"__SKILL_DONE__\": \"true\"}"),
        ),
        row(
            "marker as a number",
            Codex,
            turn(Codex, "{\"__SKILL_DONE__\": 1}"),
            auto(),
            Error("AUTO_COMPLETION_EVIDENCE_MISSING"),
        ),
        row(
            "marker one level down",
            Gemini,
            turn(Gemini, "{\"result\": {\"__SKILL_DONE__\": true}}"),
            auto(),
            Error("AUTO_COMPLETION_EVIDENCE_MISSING"),
        ),
        row(
            "two markers, the last one counts",
            ClaudeCode,
            turn(ClaudeCode, &format!("{{\"__SKILL_DONE__\": true, \"n\": 1}}\n{DONE}")),
            interactive(),
            summary(),
        ),
        row(
            "an ask and a marker in one object",
            Codex,
            turn(Codex, "{\"__SKILL_DONE__\": true, \"outcome\": \"ask_user\"}"),
            interactive(),
            Final(json!({"outcome": "ask_user"})),
        ),
        row(
            "an ask, then a marker",
            Gemini,
            turn(Gemini, &format!("{ASK}\n{DONE}")),
            interactive(),
            summary(),
        ),
        row(
            "a marker, then an ask",
            Iflow,
            turn(Iflow, &format!("{DONE}\n{ASK}")),
            interactive(),
            Ask("Which?"),
        ),
        row("an ask", ClaudeCode, turn(ClaudeCode, ASK), interactive(), Ask("Which?")),
        row(
            "an ask in a fence after prose",
            Codex,
            turn(Codex, &format!("One thing.\n```json\n{ASK}\n```")),
            interactive(),
            Ask("Which?"),
        ),
        row("an ask in auto mode", Gemini, turn(Gemini, ASK), auto(), Error("AUTO_MODE_ASKED_USER")),
        row(
            "a malformed ask in auto mode",
            Gemini,
            turn(Gemini, "{\"__SKILL_DONE__\": false}"),
            auto(),
            Error("AUTO_MODE_ASKED_USER"),
        ),
        row(
            "an ask without prompt",
            Iflow,
            turn(Iflow, "{\"outcome\":\"ask_user\",\"interaction\":{\"interaction_id\":1}}"),
            interactive(),
            Error("ASK_USER_PAYLOAD_INVALID"),
        ),
        row(
            "an ask that also fits the schema",
            Codex,
            turn(Codex, "{\"__SKILL_DONE__\": false, \"message\": \"Sure?\"}"),
            Setup { schema: Some(json!({})), ..interactive() },
            Ask("Sure?"),
        ),
        row(
            "a prose question",
            ClaudeCode,
            turn(ClaudeCode, "Should I go on?"),
            interactive(),
            Ask("Should I go on?"),
        ),
        row(
            "a prose question in auto mode",
            ClaudeCode,
            turn(ClaudeCode, "Should I go on?"),
            auto(),
            Error("AUTO_COMPLETION_EVIDENCE_MISSING"),
        ),
        row(
            "a prose question at the limit",
            Codex,
            turn(Codex, "Go on?"),
            interactive().attempt(20, 20),
            Error("INTERACTIVE_MAX_ATTEMPT_EXCEEDED"),
        ),
        row(
            "valid JSON without marker",
            Gemini,
            turn(Gemini, "{\"summary\": \"x\"}"),
            interactive().report(),
            summary(),
        ),
        row(
            "valid JSON without marker, with prose before",
            Gemini,
            turn(Gemini, "Here:\n{\"summary\": \"x\"}"),
            interactive().report(),
            Ask("Here:\n{\"summary\": \"x\"}"),
        ),
        row(
            "valid JSON without marker and schema",
            Iflow,
            turn(Iflow, "{\"summary\": \"x\"}"),
            auto(),
            Error("AUTO_COMPLETION_EVIDENCE_MISSING"),
        ),
        row(
            "invalid JSON without marker",
            ClaudeCode,
            turn(ClaudeCode, "{\"summary\": 1}"),
            interactive().report(),
            Ask("{\"summary\": 1}"),
        ),
        row(
            "invalid JSON without marker in auto mode",
            ClaudeCode,
            turn(ClaudeCode, "{\"summary\": 1}"),
            auto().report(),
            Error("OUTPUT_SCHEMA_INVALID"),
        ),
        row(
            "a marker beside an invalid result",
            Codex,
            turn(Codex, "{\"__SKILL_DONE__\": true}"),
            interactive().report(),
            Error("OUTPUT_SCHEMA_INVALID"),
        ),
        row(
            "a marker beside an invalid result at the limit",
            Codex,
            turn(Codex, "{\"__SKILL_DONE__\": true}"),
            interactive().report().attempt(9, 9),
            Error("OUTPUT_SCHEMA_INVALID"),
        ),
        row(
            "a flat result",
            Codex,
            turn(
                Codex,
                "{\"__SKILL_DONE__\":true,\"summary\":\"x\",\"files\":null,\"message\":null,\"ui_hints\":null}",
            ),
            auto().report(),
            summary(),
        ),
        row(
            "a flat result of an engine that has no flat form",
            Gemini,
            turn(Gemini, "{\"__SKILL_DONE__\":true,\"summary\":\"x\",\"files\":null}"),
            auto().report(),
            Error("OUTPUT_SCHEMA_INVALID"),
        ),
        row(
            "a flat question",
            Codex,
            turn(
                Codex,
                "{\"__SKILL_DONE__\":false,\"summary\":null,\"files\":null,\"message\":\"Which?\",\"ui_hints\":null}",
            ),
            interactive().report(),
            Ask("Which?"),
        ),
        row(
            "an unknown request",
            Gemini,
            turn(Gemini, "{\"type\":\"REQUEST\",\"request\":{\"action\":\"fly\"}}"),
            auto(),
            Error("AUTO_COMPLETION_EVIDENCE_MISSING"),
        ),
        row(
            "a worker's request",
            Iflow,
            turn(
                Iflow,
                "{\"type\":\"REQUEST\",\"request\":{\"action\":\"ask_user_input\",\"prompt\":\"May I?\"}}",
            ),
            interactive(),
            Ask("May I?"),
        ),
        row("an empty message", Gemini, turn(Gemini, "  \n"), interactive(), Error("ENGINE_FAILED")),
    ]);
}

#[test]
fn what_is_read_otherwise_than_it_was_written_is_no_result_and_no_question() {
    let rows = |engine| {
        let of = |name, text: &str, setup, expect| row(name, engine, turn(engine, text), setup, expect);
        let number = || Setup { schema: Some(json!({"type": "object"})), ..interactive() };
        vec![
            of(
                "a question that also says it is done",
                "{\"__SKILL_DONE__\":false,\"message\":\"May I drop the table?\",\"__SKILL_DONE__\":true}",
                interactive(),
                Error("ASK_USER_PAYLOAD_INVALID"),
            ),
            of(
                "a result that also says it is not done",
                "{\"__SKILL_DONE__\":true,\"message\":\"Done.\",\"__SKILL_DONE__\":false}",
                interactive(),
                Error("ASK_USER_PAYLOAD_INVALID"),
            ),
            of(
                "a marker of which the one that is read is neither",
                "{\"__SKILL_DONE__\":true,\"message\":\"Done.\",\"__SKILL_DONE__\":null}",
                interactive(),
                Error("ASK_USER_PAYLOAD_INVALID"),
            ),
            of(
                "both in auto mode",
                "{\"__SKILL_DONE__\":false,\"message\":\"May I?\",\"__SKILL_DONE__\":true}",
                auto(),
                Error("AUTO_MODE_ASKED_USER"),
            ),
            of(
                "a key of the result twice",
                "Done.\n{\"__SKILL_DONE__\":true,\"id\":1,\"id\":2}",
                interactive(),
                Error("OUTPUT_SCHEMA_INVALID"),
            ),
            of(
                "a number of the result rounded",
                "{\"__SKILL_DONE__\":true,\"id\":123456789012345678901}",
                number(),
                Error("OUTPUT_SCHEMA_INVALID"),
            ),
            of(
                "a number of the result beyond all floats",
                "Done.\n{\"__SKILL_DONE__\":true,\"id\":[1e400]}",
                number(),
                Error("OUTPUT_SCHEMA_INVALID"),
            ),
            of(
                "half a character in the result",
                "{\"__SKILL_DONE__\":true,\"name\":\"\\ud800\"}",
                interactive(),
                Error("OUTPUT_SCHEMA_INVALID"),
            ),
            of(
                "a number of a question beyond all floats",
                "{\"__SKILL_DONE__\":false,\"message\":\"Which?\",\"options\":[1e400]}",
                interactive(),
                Error("ASK_USER_PAYLOAD_INVALID"),
            ),
            of("a key twice without marker", "{\"id\":1,\"id\":2}", number(), Ask("{\"id\":1,\"id\":2}")),
            of(
                "a key twice without marker in auto mode",
                "{\"id\":1,\"id\":2}",
                Setup { mode: auto().mode, ..number() },
                Error("OUTPUT_SCHEMA_INVALID"),
            ),
            of(
                "a key of a question twice",
                "{\"__SKILL_DONE__\":false,\"message\":\"Keep it?\",\"message\":\"Drop it?\"}",
                interactive(),
                Error("ASK_USER_PAYLOAD_INVALID"),
            ),
            of(
                "an option rounded",
                "{\"__SKILL_DONE__\":false,\"message\":\"Which?\",\"options\":[123456789012345678901,123456789012345678902]}",
                interactive(),
                Error("ASK_USER_PAYLOAD_INVALID"),
            ),
            of(
                "an action twice",
                "{\"type\":\"REQUEST\",\"request\":{\"action\":\"ask_user_input\",\"prompt\":\"Q?\",\"action\":\"fly\"}}",
                interactive(),
                Error("ASK_USER_PAYLOAD_INVALID"),
            ),
            of(
                "a number beside an unknown action, which asks nothing either way",
                "{\"type\":\"REQUEST\",\"request\":{\"action\":\"fly\",\"to\":123456789012345678901}}",
                interactive(),
                Ask("{\"type\":\"REQUEST\",\"request\":{\"action\":\"fly\",\"to\":123456789012345678901}}"),
            ),
            of(
                "so deep that nobody saw the marker twice",
                &format!(
                    "{{\"__SKILL_DONE__\":false,\"message\":\"May I?\",\"x\":{}{},\"__SKILL_DONE__\":true}}",
                    "[".repeat(70),
                    "]".repeat(70)
                ),
                interactive(),
                Error("OUTPUT_SCHEMA_INVALID"),
            ),
        ]
    };
    check([ClaudeCode, Codex, Gemini, Iflow].into_iter().flat_map(rows).collect());
}
