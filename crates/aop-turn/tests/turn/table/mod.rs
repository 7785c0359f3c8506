//! Transcripts and what they come to. One row, one way in which a turn can be misread.

mod claude_code;
mod codex_streams;
mod gemini_and_iflow;
mod messages;
mod odd_bytes;

use crate::support::{Setup, error_code, protocol};
use Expect::{Ask, Error, Final};
use aop_turn::Engine;
use serde_json::{Value, json};

const DONE: &str = "{\"__SKILL_DONE__\": true, \"summary\": \"x\"}";
const ASK: &str =
    "{\"outcome\": \"ask_user\", \"interaction\": {\"interaction_id\": \"i\", \"prompt\": \"Which?\"}}";

enum Expect {
    Final(Value),
    /// A question whose prompt is this.
    Ask(&'static str),
    Error(&'static str),
}

struct Row {
    name: &'static str,
    engine: Engine,
    transcript: Vec<u8>,
    setup: Setup,
    expect: Expect,
}

fn row(name: &'static str, engine: Engine, transcript: Vec<u8>, setup: Setup, expect: Expect) -> Row {
    Row { name, engine, transcript, setup, expect }
}

fn summary() -> Expect {
    Final(json!({"summary": "x"}))
}

fn check(rows: Vec<Row>) {
    for Row { name, engine, transcript, setup, expect } in rows {
        let verdict = setup.judge(engine, &transcript);
        let data = protocol(&verdict);
        let name = format!("{engine} / {name}: {data}");
        match expect {
            Final(expected) => assert_eq!(data["final_data"], expected, "{name}"),
            Ask(prompt) => assert_eq!(data["interaction"]["prompt"], prompt, "{name}"),
            Error(code) => assert_eq!(error_code(&verdict), Some(code), "{name}"),
        }
        assert_eq!(verdict.evidence.iter().filter(|piece| piece.counted).count(), 1, "{name}");
    }
}
