//! Parsers of foreign bytes that nothing outside this crate calls, for the fuzz targets: each takes any bytes and
//! panics when a law is broken.

use crate::claude::{message, transcript};
use crate::codex::card::{self, Card};
use crate::codex::permission::Permission;
use crate::codex::rollout::Rollout;
use crate::codex::wire::{self, Message};
use crate::gemini::{session, settings};
use crate::process::frame;
use crate::scripted::scenario::Scenario;
use serde_json::Value;
use std::path::Path;

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'\n')
}

/// What `aop` and a guard say to each other: what was read is what stands there, and nothing behind it is touched.
pub fn guard_frames(bytes: &[u8]) {
    let mut rest = bytes;
    loop {
        let before = rest;
        let Ok(found) = frame::receive(&mut rest) else { return };
        let written = frame::encoded(found.kind, &found.bytes);
        assert_eq!(before, [written.as_slice(), rest].concat(), "a frame is not what was read");
    }
}

/// Lines of `codex app-server`: requests become questions or are turned down.
pub fn codex_server(bytes: &[u8]) {
    for line in lines(bytes) {
        let Message::Request { id, method, params } = wire::read(line) else { continue };
        if let Some(permission) = Permission::read(&method, &params, params.get("changes")) {
            let _ = permission.body();
            assert!(permission.decision(false) != permission.decision(true), "yes and no are the same");
        }
        let card = Card { call_id: id.to_string(), input: params, waits: true };
        assert!(card.words("no")["answers"].is_object());
        let _ = card::arguments(&[card.clone(), card], 1);
    }
}

/// Conversations as the engines keep them: whether a reply was delivered is read off them.
pub fn conversations(bytes: &[u8]) {
    const QUESTION: &str = "q_01J9ZQ4V7K3M2N1P0R5S6T7V8W";
    const CALL: Option<&str> = Some("call");
    let _ = message::seen(bytes, "call");
    let mut rollout = Rollout::default();
    for line in lines(bytes) {
        rollout.line(line);
        let held = transcript::line_holds(line, QUESTION, CALL);
        let says = |word: &str| String::from_utf8_lossy(line).contains(word);
        // Letters may be written as numbers in JSON; then the words are there and cannot be seen.
        assert!(!held || says(QUESTION) || says("call") || says("\\u"), "nothing there names the question");
    }
    for call in rollout.unanswered() {
        assert!(rollout.find_call(&call.call_id).is_some());
    }
    let _ = rollout.holds_reply(QUESTION, CALL);
    for message in session::Chat::read(bytes).messages {
        let _ = session::names(&message, QUESTION);
    }
}

/// A scenario of the scripted engine.
pub fn scenario(bytes: &[u8]) {
    let _ = serde_json::from_slice::<Scenario>(bytes);
}

/// The user's settings of Gemini CLI: whatever they are, our server and our hook are there afterwards.
pub fn gemini_settings(bytes: &[u8]) {
    let user: Value = settings::read(&String::from_utf8_lossy(bytes)).unwrap_or_default();
    let ours = settings::with_ours(user, Path::new("aop"));
    assert_eq!(ours["mcpServers"]["aop"]["command"], "aop");
    assert!(ours["hooks"]["AfterTool"].as_array().is_some_and(|hooks| !hooks.is_empty()));
}
