//! MCP form elicitation: one flat form for all open questions. Text beside a choice has a field of its own,
//! `<id>__other`; ids never hold two underscores in a row, so the name is free. Defaults are only described:
//! a prefilled field could be sent off unread, and silence is no consent.

use super::{Heard, ask_again, malformed, members, stranger, wrapped};
use crate::dialogue::Protocol;
use crate::dialogue::ask::{Ask, Item, Mode, Said};
use crate::is_blank;
use crate::spec::QuestionSpec;
use crate::violation::{Violation, join};
use serde_json::{Map, Value};

/// The request's parameters.
pub(super) fn input(spec: &QuestionSpec, protocol: Protocol, asks: &[Ask<'_>]) -> Value {
    let message = match asks {
        [ask] => ask.text.clone(),
        _ => format!("{}: {} questions", spec.topic(), asks.len()),
    };
    let mut properties = Map::new();
    let mut required = Vec::new();
    for ask in asks {
        let id = ask.question.id();
        if !(ask.items.is_empty() && ask.mode != Mode::Text) {
            properties.insert(id.to_owned(), field(ask, protocol));
        }
        if ask.question.allow_other() {
            let description = "Your own answer, if none of the options fits";
            let title = format!("{}: other", ask.question.header());
            let field = members([
                ("type", "string".into()),
                ("title", title.into()),
                ("description", description.into()),
            ]);
            properties.insert(other(id), field);
        } else if ask.question.required() {
            required.push(Value::from(id));
        }
    }
    let kind = ("type", Value::from("object"));
    let properties = ("properties", Value::Object(properties));
    let schema = if required.is_empty() {
        members([kind, properties])
    } else {
        members([kind, properties, ("required", required.into())])
    };
    members([("message", message.into()), ("requestedSchema", schema)])
}

fn other(id: &str) -> String {
    format!("{id}__other")
}

fn field(ask: &Ask<'_>, protocol: Protocol) -> Value {
    let kind = |name: &str| ("type", Value::from(name));
    let title = ("title", Value::from(ask.question.header()));
    let description = ("description", Value::from(ask.text.as_str()));
    let options = || -> Value {
        let option =
            |item: &Item| members([("const", item.label.as_str().into()), ("title", title_of(item).into())]);
        ask.items.iter().map(option).collect()
    };
    match (ask.mode, protocol) {
        (Mode::Text, _) => members([kind("string"), title, description, ("minLength", 1.into())]),
        (Mode::Many, _) => {
            let items = members([("anyOf", options())]);
            members([kind("array"), title, description, ("minItems", 1.into()), ("items", items)])
        }
        (Mode::One, Protocol::V2025_11_25) => {
            members([kind("string"), title, description, ("oneOf", options())])
        }
        (Mode::One, Protocol::V2025_06_18) => {
            let names = ask.items.iter().map(|item| item.label.as_str()).collect();
            let titles = ask.items.iter().map(title_of).collect();
            members([kind("string"), title, description, ("enum", names), ("enumNames", titles)])
        }
    }
}

fn title_of(item: &Item) -> String {
    format!("{}: {}", item.label, item.description)
}

/// What `{"action": "accept|decline|cancel", "content": {…}}` says.
pub(super) fn heard(asks: &[Ask<'_>], reply: &Value) -> Result<Heard, Violation> {
    let wanted = "{\"action\": \"accept|decline|cancel\", \"content\": {…}}";
    let map = reply.as_object().ok_or_else(|| malformed("", reply, wanted))?;
    let mut content = match map.get("action").and_then(Value::as_str) {
        Some("decline" | "cancel") => return Ok(Heard::Escaped),
        Some("accept") => {
            let is_text = |ask: &Ask<'_>, key: &str| key == other(ask.question.id());
            wrapped(asks, map, "content", &["action", "_meta"], wanted, is_text)?
        }
        _ => return Err(malformed("/action", map.get("action").unwrap_or(&Value::Null), wanted)),
    };
    let mut said = Vec::with_capacity(asks.len());
    for ask in asks {
        let id = ask.question.id();
        let typed = match content.swap_remove(&other(id)) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text).filter(|text| !is_blank(text)),
            Some(value) => return Err(malformed(&join("/content", other(id)), &value, "a text")),
        };
        let value = content.swap_remove(id).unwrap_or_default();
        said.push(
            one(ask, &value, typed).map_err(|wanted| malformed(&join("/content", id), &value, wanted))?,
        );
    }
    if let Some(reason) = stranger(&content) {
        ask_again(&mut said, &reason);
    }
    Ok(Heard::Said(said))
}

fn one(ask: &Ask<'_>, value: &Value, typed: Option<String>) -> Result<Said, &'static str> {
    Ok(match (ask.mode, value, typed) {
        (_, Value::Null, None) => Said::Nothing,
        (Mode::Many, Value::Null, typed) => Said::Several { words: Vec::new(), typed },
        (Mode::One | Mode::Text, Value::Null, Some(text)) => Said::Typed(text),
        (Mode::Many, Value::Array(items), typed) => {
            let picked: Option<Vec<String>> =
                items.iter().map(|item| item.as_str().map(str::to_owned)).collect();
            Said::Several { words: picked.ok_or("a list of texts")?, typed }
        }
        (Mode::Many, _, _) => return Err("a list of texts"),
        (Mode::One | Mode::Text, Value::String(text), typed) if is_blank(text) => {
            typed.map_or(Said::Nothing, Said::Typed)
        }
        (Mode::Text, Value::String(text), None) => Said::Typed(text.clone()),
        (Mode::One, Value::String(label), None) => Said::Word(label.clone()),
        (Mode::One | Mode::Text, Value::String(label), Some(text)) => Said::Unclear(format!(
            "{} is chosen and {} is typed; give one of the two",
            ask.question.named(label),
            ask.question.named(&text)
        )),
        (Mode::One | Mode::Text, _, _) => return Err("a text"),
    })
}
