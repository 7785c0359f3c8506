//! What engines print. Every stream parser owes for any bytes: the same events however the bytes are cut, ranges
//! within the stream, and a turn that has exactly one outcome.

use aop_turn::stream::{Event, StreamParser};
use aop_turn::{Engine, Mode, Process, Rules, TurnReader, judge};

/// The first byte says where to cut, the rest is the stream.
fn check(engine: Engine, data: &[u8]) {
    let Some((&cut, stream)) = data.split_first() else { return };
    let whole = events(engine, stream, stream.len().max(1));
    assert_eq!(whole, events(engine, stream, usize::from(cut) + 1), "the cut changed the events");
    for event in &whole {
        assert!(event.range.start <= event.range.end && event.range.end <= stream.len() as u64);
    }
    judged(engine, stream);
}

/// Judges the stream in both modes.
fn judged(engine: Engine, stream: &[u8]) {
    let mut reader = TurnReader::new(engine);
    reader.feed(stream);
    let turn = reader.finish();
    for &mode in Mode::ALL {
        let rules = Rules { mode, attempt: 1, max_attempt: 2, schema: None, process: Process::default() };
        let verdict = judge(&turn, &rules);
        assert_eq!(verdict.evidence.iter().filter(|piece| piece.counted).count(), 1);
    }
}

fn events(engine: Engine, stream: &[u8], portion: usize) -> Vec<Event> {
    let mut found = Vec::new();
    let mut parser = StreamParser::new(engine);
    for bytes in stream.chunks(portion) {
        parser.feed(bytes, &mut |event| found.push(event));
    }
    parser.finish(&mut |event| found.push(event));
    found
}

pub(crate) fn claude_code(data: &[u8]) {
    check(Engine::ClaudeCode, data);
}

/// Both forms of Codex: the lines of `codex exec` and the messages of its server.
pub(crate) fn codex(data: &[u8]) {
    check(Engine::Codex, data);
}

pub(crate) fn gemini(data: &[u8]) {
    check(Engine::Gemini, data);
}

pub(crate) fn iflow(data: &[u8]) {
    check(Engine::Iflow, data);
}

pub(crate) fn scripted(data: &[u8]) {
    check(Engine::Scripted, data);
}

/// The last message: any text, in a stream that is otherwise in order. The envelopes that agents end with are found
/// in it.
pub(crate) fn message(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let item = serde_json::json!({"type": "item.completed", "item": {"type": "agent_message", "text": text}});
    check(Engine::Codex, format!("~{item}\n{{\"type\":\"turn.completed\"}}\n").as_bytes());
}
