//! The targets: each folder turns asks into one tool's native request, and that tool's native reply into
//! what the human said. They decide nothing; the walk does.

mod claude_code;
mod codex;
mod elicitation;
mod strict_text;
mod terminal;

use crate::dialogue::ask::{Ask, Item, Said};
use crate::dialogue::{Protocol, Request, Target};
use crate::spec::QuestionSpec;
use crate::violation::{Violation, join, quote, unsaid};
use serde_json::{Map, Value};

/// What came back from a tool.
#[derive(Debug)]
pub(crate) enum Heard {
    Escaped,
    /// One entry per ask, in the same order.
    Said(Vec<Said>),
}

/// The native request for `asks`.
pub(crate) fn request(target: Target, spec: &QuestionSpec, protocol: Protocol, asks: &[Ask<'_>]) -> Request {
    let (tool, input) = match target {
        Target::ClaudeCode => ("AskUserQuestion", claude_code::input(asks)),
        Target::Codex => ("request_user_input", codex::input(asks)),
        Target::StrictText => ("strict-text", strict_text::input(spec, asks)),
        Target::Elicitation => ("elicitation/create", elicitation::input(spec, protocol, asks)),
        Target::Terminal => ("terminal", terminal::input(asks)),
    };
    Request { tool, input }
}

/// What a native reply says to `asks`.
pub(crate) fn heard(target: Target, asks: &[Ask<'_>], reply: &Value) -> Result<Heard, Violation> {
    match target {
        Target::ClaudeCode => claude_code::said(asks, reply).map(Heard::Said),
        Target::Codex => codex::said(asks, reply).map(Heard::Said),
        Target::StrictText => strict_text::said(asks, reply).map(Heard::Said),
        Target::Elicitation => elicitation::heard(asks, reply),
        Target::Terminal => terminal::said(asks, reply).map(|said| Heard::Said(vec![said])),
    }
}

/// A value that this tool never returns.
fn malformed(path: &str, value: &Value, wanted: &str) -> Violation {
    Violation {
        code: "malformed_reply",
        path: path.to_owned(),
        message: format!("this is {}, but the tool's reply is {wanted}", unsaid(value)),
        hint: "hand in the tool's reply exactly as it came back".to_owned(),
    }
}

/// The member `answers` of a reply; absent or null means that nothing was answered. `beside` names the other members that
/// the tool has.
fn answers(asks: &[Ask<'_>], reply: &Value, beside: &[&str]) -> Result<Map<String, Value>, Violation> {
    let wanted = "{\"answers\": {…}}";
    let map = reply.as_object().ok_or_else(|| malformed("", reply, wanted))?;
    wrapped(asks, map, "answers", beside, wanted, |_, _| false)
}

/// What a reply has in its wrapper. One that has nothing there and says something beside it is refused, and so is one that
/// answers what was asked beside it: answers that stand bare would be lost. `is_field` says which keys are a question's own in
/// this tool, apart from its id and its text.
fn wrapped(
    asks: &[Ask<'_>],
    map: &Map<String, Value>,
    wrapper: &str,
    beside: &[&str],
    wanted: &str,
    is_field: impl Fn(&Ask<'_>, &str) -> bool,
) -> Result<Map<String, Value>, Violation> {
    let said = match map.get(wrapper) {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(said)) => said.clone(),
        Some(other) => return Err(malformed(&join("", wrapper), other, wanted)),
    };
    let is_known = |key: &str| key == wrapper || beside.contains(&key);
    let is_of = |ask: &Ask<'_>, key: &str| {
        [ask.question.id(), ask.question.question(), ask.text.as_str()].contains(&key) || is_field(ask, key)
    };
    let is_asked = |key: &str| asks.iter().any(|ask| is_of(ask, key));
    let is_empty = said.values().all(is_blank);
    let lost = |key: &str| !is_known(key) && (is_empty || is_asked(key));
    match map.iter().find(|(key, value)| lost(key) && !is_blank(value)) {
        Some((key, value)) => Err(malformed(&join("", key), value, wanted)),
        None => Ok(said),
    }
}

/// Why a reply cannot stand that says something to what was not asked.
fn stranger(left: &Map<String, Value>) -> Option<String> {
    let (key, _) = left.iter().find(|(_, value)| !is_blank(value))?;
    Some(format!("the reply names {}, which was not asked", quote(key)))
}

/// Whether a value holds no word: an empty field says nothing, whatever it is called.
fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => crate::is_blank(text),
        Value::Array(items) => items.iter().all(is_blank),
        Value::Object(map) => map.values().all(is_blank),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Asks again with the reason, so that nothing the human said is dropped in silence: what was left unanswered, or
/// everything where nothing was.
fn ask_again(said: &mut [Said], reason: &str) {
    let all = !said.contains(&Said::Nothing);
    for entry in said.iter_mut().filter(|entry| all || **entry == Said::Nothing) {
        *entry = Said::Unclear(reason.to_owned());
    }
}

/// A text beside a pick may change what the pick means, and an answer has no place for it.
fn picked_and_typed(ask: &Ask<'_>) -> Said {
    let reason = if ask.takes_text() {
        "an option and a text came back; choose the option or type, not both"
    } else {
        "this question takes an option without a note"
    };
    Said::Unclear(reason.to_owned())
}

/// A header for display in at most twelve characters.
fn short_header(header: &str) -> String {
    crate::dialogue::wording::cut(header, 12)
}

/// An object with exactly these members, which are moved into it. `json!` would copy each of them, and
/// requests are made of little else.
fn members<const N: usize>(members: [(&str, Value); N]) -> Value {
    let mut map = Map::with_capacity(N);
    for (key, value) in members {
        map.insert(key.to_owned(), value);
    }
    Value::Object(map)
}

/// An option as both agent tools and the terminal show it.
fn shown(item: &Item, with_preview: bool) -> Value {
    let label = ("label", Value::from(item.label.as_str()));
    let description = ("description", Value::from(item.description.as_str()));
    match item.preview.as_deref().filter(|_| with_preview) {
        Some(preview) => members([label, description, ("preview", preview.into())]),
        None => members([label, description]),
    }
}
