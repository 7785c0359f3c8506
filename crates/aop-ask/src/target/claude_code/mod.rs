//! Claude Code's `AskUserQuestion`: one to four questions, two to four options each; replies are keyed by
//! the full question text, and several labels arrive joined by a comma and a space. Beside them the human may write a
//! note to a question (`annotations`), and a reply to the whole card (`response`).

use super::{answers, ask_again, malformed, members, picked_and_typed, short_header, shown, stranger};
use crate::dialogue::ask::{Ask, Mode, Said};
use crate::dialogue::joined;
use crate::is_blank;
use crate::violation::{Violation, join, quote};
use serde_json::{Map, Value};

/// What stands beside the answers: what was asked and from where, which comes back as it was, and what else was said.
const BESIDE: &[&str] = &["questions", "metadata", "annotations", "response"];

/// The tool's arguments.
pub(super) fn input(asks: &[Ask<'_>]) -> Value {
    let questions: Vec<Value> = asks.iter().map(question).collect();
    members([("questions", questions.into())])
}

fn question(ask: &Ask<'_>) -> Value {
    let options: Vec<Value> = ask.items.iter().map(|item| shown(item, true)).collect();
    members([
        ("question", ask.text.as_str().into()),
        ("header", short_header(ask.question.header()).into()),
        ("options", options.into()),
        ("multiSelect", (ask.mode == Mode::Many).into()),
    ])
}

/// What `{"answers": {"<question text>": "<label or text>"}}` says.
pub(super) fn said(asks: &[Ask<'_>], reply: &Value) -> Result<Vec<Said>, Violation> {
    let (mut answers, mut notes) = (answers(asks, reply, BESIDE)?, notes(reply)?);
    let mut said = Vec::with_capacity(asks.len());
    for ask in asks {
        let answer = take(&mut answers, asks, ask).map_or(Ok(Said::Nothing), |value| one(ask, &value))?;
        said.push(match (answer, take(&mut notes, asks, ask)) {
            (Said::Nothing, Some(Value::String(note))) => Said::Typed(note),
            (answer, None) => answer,
            (_, Some(_)) => picked_and_typed(ask),
        });
    }
    let mut reasons: Vec<String> = stranger(&answers).or_else(|| stranger(&notes)).into_iter().collect();
    reasons.extend(whole_card(asks, reply, &mut said)?);
    if !reasons.is_empty() {
        ask_again(&mut said, &reasons.join("; "));
    }
    Ok(said)
}

/// What the human wrote beside the answers, by question. The `preview` that stands there too is the chosen option's.
fn notes(reply: &Value) -> Result<Map<String, Value>, Violation> {
    let wanted = "{\"annotations\": {\"…\": {\"notes\": \"…\"}}}";
    let annotations = match reply.get("annotations") {
        None | Some(Value::Null) => return Ok(Map::new()),
        Some(Value::Object(annotations)) => annotations,
        Some(other) => return Err(malformed("/annotations", other, wanted)),
    };
    let mut notes = Map::new();
    for (text, annotation) in annotations {
        let place = join("/annotations", text);
        let annotation = match annotation {
            Value::Null => continue,
            Value::Object(annotation) => annotation,
            other => return Err(malformed(&place, other, wanted)),
        };
        match annotation.get("notes") {
            None | Some(Value::Null) => {}
            Some(Value::String(note)) if is_blank(note) => {}
            Some(note @ Value::String(_)) => {
                notes.insert(text.clone(), note.clone());
            }
            Some(other) => return Err(malformed(&join(&place, "notes"), other, wanted)),
        }
    }
    Ok(notes)
}

/// The entry for an ask: under its full text, or under the spec's own question where no other ask of this
/// request has the same.
fn take(answers: &mut Map<String, Value>, asks: &[Ask<'_>], ask: &Ask<'_>) -> Option<Value> {
    let own = ask.question.question();
    let alone = asks.iter().filter(|other| other.question.question() == own).count() == 1;
    answers.shift_remove(&ask.text).or_else(|| if alone { answers.shift_remove(own) } else { None })
}

fn one(ask: &Ask<'_>, value: &Value) -> Result<Said, Violation> {
    match value {
        Value::Null => Ok(Said::Nothing),
        Value::String(text) if is_blank(text) => Ok(Said::Nothing),
        Value::String(text) => Ok(word(ask, text)),
        // Not what the tool sends today, but what it accepts, and unmistakable.
        Value::Array(items) => {
            let labels: Option<Vec<String>> =
                items.iter().map(|item| item.as_str().map(str::to_owned)).collect();
            match (labels, ask.mode) {
                (Some(words), Mode::Many) => Ok(Said::Several { words, typed: None }),
                (Some(picked), Mode::One | Mode::Text) => match picked.as_slice() {
                    [] => Ok(Said::Nothing),
                    [label] => Ok(Said::Word(label.clone())),
                    _ => Ok(Said::Unclear("one answer is expected here, but several came back".to_owned())),
                },
                (None, _) => Err(malformed(&join("/answers", &ask.text), value, "a text")),
            }
        }
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            Err(malformed(&join("/answers", &ask.text), value, "a text"))
        }
    }
}

fn word(ask: &Ask<'_>, text: &str) -> Said {
    if ask.mode != Mode::Many {
        return Said::Word(text.to_owned());
    }
    let labels: Vec<&str> = ask.items.iter().map(|item| item.label.as_str()).collect();
    match joined::split(text, &labels) {
        Some(picked) => Said::Several { words: picked.into_iter().map(str::to_owned).collect(), typed: None },
        None => Said::Unclear(format!("{} is not made of the options alone", ask.question.named(text))),
    }
}

/// The human may reply to the whole card instead of to a question (`response`). With one question on the card it is
/// that question's reply, unless it has one already; else this is why it cannot be taken.
fn whole_card(asks: &[Ask<'_>], reply: &Value, said: &mut [Said]) -> Result<Option<String>, Violation> {
    let text = match reply.get("response") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) if is_blank(text) => return Ok(None),
        Some(Value::String(text)) => text,
        Some(other) => return Err(malformed("/response", other, "a text")),
    };
    Ok(match (asks, said) {
        ([ask], [entry @ Said::Nothing]) => {
            *entry = word(ask, text);
            None
        }
        ([ask], _) => {
            let text = ask.question.named(text);
            Some(format!("{text} came beside the answer; give one of the two"))
        }
        (asks, _) => {
            // Nobody knows which of the questions it answers.
            let secret = asks.iter().find(|ask| ask.question.secret());
            let text = secret.map_or_else(|| quote(text), |ask| ask.question.named(text));
            Some(format!("{text} answers the card as a whole; answer each question"))
        }
    })
}
