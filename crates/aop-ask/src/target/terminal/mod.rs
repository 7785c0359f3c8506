//! A prompt on a terminal: one question at a time, all options at once. The binary draws it; what it draws
//! and what it hands back is fixed here, so that `aop answer` and `aop ask` share every rule of dialogues.

use super::{malformed, shown};
use crate::dialogue::ask::{Ask, Mode, Said};
use crate::is_blank;
use crate::violation::Violation;
use serde_json::{Value, json};

/// The prompt to draw.
pub(super) fn input(asks: &[Ask<'_>]) -> Value {
    // One question per request; an empty list never gets here.
    let Some(ask) = asks.first() else { return json!({}) };
    let kind = match ask.mode {
        Mode::One => "select",
        Mode::Many => "multi_select",
        Mode::Text => "text",
    };
    let options: Vec<Value> = ask.items.iter().map(|item| shown(item, true)).collect();
    json!({
        "id": ask.question.id(), "header": ask.question.header(), "question": ask.text, "kind": kind,
        "options": options, "required": ask.question.required(), "allow_other": ask.question.allow_other(),
        "secret": ask.question.secret(),
    })
}

/// What `{"selected": ["…"], "text": "…"}` says; both members are optional.
pub(super) fn said(asks: &[Ask<'_>], reply: &Value) -> Result<Said, Violation> {
    let wanted = "{\"selected\": [\"…\"], \"text\": \"…\"}";
    let map = reply.as_object().ok_or_else(|| malformed("", reply, wanted))?;
    if map.keys().any(|key| !matches!(key.as_str(), "selected" | "text")) {
        return Err(malformed("", reply, wanted));
    }
    let Some(ask) = asks.first() else { return Ok(Said::Nothing) };
    let typed = match map.get("text") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()).filter(|text| !is_blank(text)),
        Some(other) => return Err(malformed("/text", other, "a text")),
    };
    let picked = match map.get("selected") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| item.as_str().map(str::to_owned))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| malformed("/selected", &map["selected"], "a list of texts"))?,
        Some(other) => return Err(malformed("/selected", other, "a list of texts")),
    };
    Ok(match (ask.mode, picked.as_slice(), typed) {
        (_, [], None) => Said::Nothing,
        (Mode::Many, _, typed) => Said::Several { words: picked, typed },
        (Mode::One | Mode::Text, [], Some(text)) => Said::Typed(text),
        (Mode::One | Mode::Text, [label], None) => Said::Word(label.clone()),
        (Mode::One | Mode::Text, [label, ..], _) => {
            let label = ask.question.named(label);
            Said::Unclear(format!("one answer is expected here, but more than {label} came back"))
        }
    })
}
