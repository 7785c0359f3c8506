//! Codex's `request_user_input`: one to three questions, two or three options each, one pick per question;
//! replies are keyed by the question's id. Its terminal sends typed text as an entry `user_note: …` beside
//! the highlighted label.

use super::{answers, ask_again, malformed, members, picked_and_typed, short_header, shown, stranger};
use crate::dialogue::ask::{Ask, Role, Said};
use crate::is_blank;
use crate::violation::{Violation, join};
use serde_json::Value;

const NOTE: &str = "user_note: ";
const NONE_OF_THEM: &str = "None of the above";

/// The tool's arguments.
pub(super) fn input(asks: &[Ask<'_>]) -> Value {
    let questions: Vec<Value> = asks.iter().map(question).collect();
    members([("questions", questions.into())])
}

fn question(ask: &Ask<'_>) -> Value {
    let options: Vec<Value> = ask.items.iter().map(|item| shown(item, false)).collect();
    members([
        ("id", ask.question.id().into()),
        ("header", short_header(ask.question.header()).into()),
        ("question", ask.text.as_str().into()),
        ("options", options.into()),
    ])
}

/// What `{"answers": {"<id>": {"answers": ["…"]}}}` says.
pub(super) fn said(asks: &[Ask<'_>], reply: &Value) -> Result<Vec<Said>, Violation> {
    let mut answers = answers(asks, reply, &[])?;
    let mut said = Vec::with_capacity(asks.len());
    for ask in asks {
        let value = answers.shift_remove(ask.question.id());
        said.push(value.map_or(Ok(Said::Nothing), |value| one(ask, &value))?);
    }
    if let Some(reason) = stranger(&answers) {
        ask_again(&mut said, &reason);
    }
    Ok(said)
}

fn one(ask: &Ask<'_>, value: &Value) -> Result<Said, Violation> {
    let path = join("/answers", ask.question.id());
    let wanted = "{\"answers\": [\"…\"]}";
    let items = match value {
        Value::Null => return Ok(Said::Nothing),
        Value::Object(map) => match map.get("answers") {
            None | Some(Value::Null) => return Ok(Said::Nothing),
            Some(Value::Array(items)) => items,
            Some(other) => return Err(malformed(&join(&path, "answers"), other, wanted)),
        },
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return Err(malformed(&path, value, wanted));
        }
    };
    let mut words = Vec::new();
    let mut notes = Vec::new();
    for item in items {
        let text = item.as_str().ok_or_else(|| malformed(&join(&path, "answers"), item, wanted))?;
        match text.strip_prefix(NOTE).filter(|_| ask.item(text).is_none()) {
            Some(note) if !is_blank(note) => notes.push(note),
            None if !is_blank(text) => words.push(text),
            Some(_) | None => {}
        }
    }
    words.retain(|word| *word != NONE_OF_THEM || ask.item(word).is_some());
    Ok(match (words.as_slice(), notes.as_slice()) {
        ([], []) => Said::Nothing,
        ([word], []) => Said::Word((*word).to_owned()),
        ([], [note]) => Said::Typed((*note).to_owned()),
        ([word], [note]) => beside(ask, word, note),
        _ => Said::Unclear("one answer is expected here, but several came back".to_owned()),
    })
}

/// Text typed beside a highlighted label.
fn beside(ask: &Ask<'_>, word: &str, note: &str) -> Said {
    // Navigation and the tool's own entry are merely where the cursor stood while the answer was typed.
    let passed_over = match ask.item(word).map(|item| item.role) {
        Some(Role::Pick(_)) => word == NONE_OF_THEM,
        Some(Role::Route(_) | Role::Nav(_)) => true,
        None => false,
    };
    if ask.takes_text() && passed_over { Said::Typed(note.to_owned()) } else { picked_and_typed(ask) }
}
