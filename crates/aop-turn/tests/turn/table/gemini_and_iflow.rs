//! Gemini: deltas and parking by hook. iFlow: text without a frame.

use super::Expect::{Ask, Error, Final};
use super::{DONE, check, row, summary};
use crate::support::{Setup, auto, gemini, iflow, interactive, stream};
use aop_turn::Engine::{Gemini, Iflow};
use aop_turn::Outcome;
use serde_json::{Value, json};

#[test]
fn gemini_and_iflow_streams() {
    let ask = |input: &Value| gemini::tool("a1", "mcp_aop_ask_human", input);
    let start = || vec![gemini::init(), gemini::user("go")];
    let of = |rest: Vec<Value>| stream(&[start(), rest].concat());
    check(vec![
        row(
            "deltas join",
            Gemini,
            of(vec![gemini::delta("{\"__SKILL_DONE__\":"), gemini::delta("true}"), gemini::success()]),
            auto(),
            Final(json!({})),
        ),
        row(
            "deltas before a tool are another message",
            Gemini,
            of(vec![
                gemini::delta(DONE),
                gemini::tool("r", "read_file", &json!({})),
                gemini::tool_result("r", "x"),
                gemini::delta("Hm?"),
                gemini::success(),
            ]),
            interactive(),
            Ask("Hm?"),
        ),
        row(
            "marker in tool output",
            Gemini,
            of(vec![
                gemini::tool("r", "read_file", &json!({})),
                gemini::tool_result("r", DONE),
                gemini::delta("Hm?"),
                gemini::success(),
            ]),
            interactive(),
            Ask("Hm?"),
        ),
        row(
            "parked by the hook",
            Gemini,
            of(vec![ask(&json!({"prompt": "Which?"})), gemini::stopped("a1"), gemini::success()]),
            interactive(),
            Ask("Which?"),
        ),
        row(
            "parked in auto mode",
            Gemini,
            of(vec![ask(&json!({"prompt": "Which?"})), gemini::stopped("a1"), gemini::success()]),
            auto(),
            Error("AUTO_MODE_ASKED_USER"),
        ),
        row(
            "parked without a prompt",
            Gemini,
            of(vec![ask(&json!({})), gemini::stopped("a1"), gemini::success()]),
            interactive(),
            Error("ASK_USER_PAYLOAD_INVALID"),
        ),
        row(
            "an answered ask",
            Gemini,
            of(vec![
                ask(&json!({"prompt": "?"})),
                gemini::tool_result("a1", "A"),
                gemini::delta(DONE),
                gemini::success(),
            ]),
            auto(),
            summary(),
        ),
        row(
            "API error",
            Gemini,
            of(vec![gemini::delta(DONE), gemini::failed("quota")]),
            interactive(),
            Error("ENGINE_FAILED"),
        ),
        row(
            "truncated stream",
            Gemini,
            of(vec![gemini::delta(DONE)]),
            interactive(),
            Error("ENGINE_STREAM_TRUNCATED"),
        ),
        row(
            "resumed stream with replayed messages",
            Gemini,
            stream(&[
                gemini::init(),
                gemini::user("go"),
                gemini::delta(DONE),
                gemini::user("more"),
                gemini::delta("Hm?"),
                gemini::success(),
            ]),
            interactive(),
            Ask("Hm?"),
        ),
        row(
            "iflow: truncated in the text",
            Iflow,
            b"I was about to".to_vec(),
            interactive(),
            Error("ENGINE_STREAM_TRUNCATED"),
        ),
        row(
            "iflow: truncated in the block",
            Iflow,
            iflow(DONE)[..80].to_vec(),
            interactive(),
            Error("ENGINE_STREAM_TRUNCATED"),
        ),
        row("iflow: no block after a payload", Iflow, DONE.as_bytes().to_vec(), interactive(), summary()),
        row("iflow: no block, exited well", Iflow, b"Which?".to_vec(), interactive().exit(0), Ask("Which?")),
        row("iflow: failed process", Iflow, iflow(DONE), interactive().exit(1), Error("ENGINE_FAILED")),
    ]);
}

/// What a person is told when an engine failed: its own words, and no more of them than can be read.
#[test]
fn a_failed_turn_is_told_in_the_engines_own_words_and_briefly() {
    let said = |setup: &Setup, rest: &[Value]| {
        let lines = [&[gemini::init(), gemini::user("go")], rest].concat();
        match setup.judge(Gemini, &stream(&lines)).outcome {
            Outcome::Error { message, .. } => message,
            other => panic!("{other:?}"),
        }
    };
    let error = |text: &str| json!({"type": "error", "severity": "error", "message": text});
    let result = json!({"type": "result", "status": "error", "stats": {}});
    let blocked = "The model response was blocked due to safety settings.";
    assert_eq!(said(&auto(), &[error(blocked), result.clone()]), format!("the engine failed: {blocked}"));
    assert_eq!(said(&auto(), &[result]), "the engine failed: error");
    let waits = "Reconnecting... waiting for network";
    let timeout = format!("the engine did not finish in time: {waits}");
    assert_eq!(said(&auto().timed_out(), &[error(waits)]), timeout);
    let page = said(&auto(), &[gemini::failed(&format!("503 {} end", "x".repeat(3_000_000)))]);
    assert!(page.starts_with("the engine failed: 503 x") && page.ends_with("x end"), "{page}");
    assert_eq!(page.chars().count(), 4_005);
}

/// Gemini CLI says `success` of a turn that it broke off itself.
#[test]
fn an_error_of_gemini_after_the_last_words_of_its_model_is_a_failure_and_a_warning_is_passed_on() {
    let line = |severity: &str, text: &str| json!({"type": "error", "severity": severity, "message": text});
    let judged = |rest: &[Value]| {
        let lines = [&[gemini::init(), gemini::user("go")], rest, &[gemini::success()]].concat();
        interactive().judge(Gemini, &stream(&lines))
    };
    let limit = || line("error", "Maximum session turns exceeded");
    let read = || [gemini::tool("r", "read_file", &json!({})), gemini::tool_result("r", "x")];
    for before in [vec![], vec![gemini::delta("I look.")], vec![gemini::delta(DONE)]] {
        let verdict = judged(&[&before[..], &read(), &[limit()]].concat());
        match verdict.outcome {
            Outcome::Error { code, message } => {
                let failed = ("ENGINE_FAILED", "the engine failed: Maximum session turns exceeded");
                assert_eq!((code.as_str(), message.as_str()), failed);
            }
            other => panic!("{other:?}"),
        }
    }
    for goes_on in [
        [gemini::delta("Wh"), limit(), gemini::delta("ich?")],
        [limit(), gemini::delta("Wh"), gemini::delta("ich?")],
    ] {
        let verdict = judged(&goes_on);
        assert!(matches!(verdict.outcome, Outcome::AskUser(ref ask) if ask.interaction.prompt == "Which?"));
    }
    let asked = gemini::tool("a1", "mcp_aop_ask_human", &json!({"prompt": "Which?"}));
    let parked = judged(&[limit(), asked, gemini::stopped("a1")]);
    assert!(matches!(parked.outcome, Outcome::AskUser(_)), "who waits with a question has not failed");

    let looped = line("warning", "Loop detected,\nstopping execution");
    let verdict = judged(&[gemini::delta("I look."), looped.clone(), looped]);
    assert!(matches!(verdict.outcome, Outcome::AskUser(_)));
    assert_eq!(verdict.warnings, ["ENGINE_WARNING: Loop detected, stopping execution"]);
}
