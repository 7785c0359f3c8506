//! The text dialects: JSON objects at the end of a message that say "done" or "ask".

use super::{Ask, QuestionType, Reply};
use crate::interaction::{DecisionPolicy, Interaction, InteractionId, read_choice};
use crate::native::non_blank;
use aop_ask::spec::RESERVED_LABELS;
use serde_json::{Map, Value, json};

/// What an object at the end of a message says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Payload {
    /// The work is done; this is the result, without the marker.
    Done(Map<String, Value>),
    /// It asks.
    Ask(Box<Ask>),
    /// It claims to ask and lacks what that takes.
    MalformedAsk(String),
    /// A worker's request that we do not know.
    UnknownRequest(String),
    /// None of these.
    Other,
}

/// Reads the object. `attempt` becomes the id where the dialect has none.
pub(crate) fn read_payload(object: &Map<String, Value>, attempt: u32) -> Payload {
    let marker = object.get(crate::MARKER);
    if marker == Some(&Value::Bool(true)) {
        let mut rest = object.clone();
        rest.shift_remove(crate::MARKER);
        return Payload::Done(rest);
    }
    let ask = if object.get("outcome").and_then(Value::as_str) == Some("ask_user") {
        outcome_ask(object, attempt)
    } else if marker == Some(&Value::Bool(false)) {
        not_done_ask(object, attempt)
    } else if object.get("type").and_then(Value::as_str) == Some("REQUEST") {
        let request = object.get("request").and_then(Value::as_object);
        let action =
            request.and_then(|request| request.get("action")).and_then(Value::as_str).unwrap_or_default();
        match request {
            Some(request) if action == "ask_user_input" => worker_ask(request, attempt),
            _ => return Payload::UnknownRequest(action.to_owned()),
        }
    } else {
        return Payload::Other;
    };
    ask.map_or_else(Payload::MalformedAsk, |ask| Payload::Ask(Box::new(ask)))
}

/// `{"outcome":"ask_user","interaction":{…}}`
fn outcome_ask(object: &Map<String, Value>, attempt: u32) -> Result<Ask, String> {
    let fields =
        object.get("interaction").and_then(Value::as_object).ok_or("ask_user without an interaction")?;
    let id = InteractionId::read(fields.get("interaction_id"));
    let prompt = non_blank(fields.get("prompt"));
    match (id, prompt) {
        (Some(id), Some(prompt)) => {
            Ok(Ask::of(Interaction::open(id, attempt, prompt.to_owned()).with_fields(fields)))
        }
        (None, Some(_)) => Err("the interaction has no usable interaction_id".to_owned()),
        (Some(_), None) => Err("the interaction has no prompt".to_owned()),
        (None, None) => Err("the interaction has neither a usable interaction_id nor a prompt".to_owned()),
    }
}

/// `{"__SKILL_DONE__":false,"message":…,"ui_hints":{…}}`
fn not_done_ask(object: &Map<String, Value>, attempt: u32) -> Result<Ask, String> {
    let message =
        non_blank(object.get("message")).ok_or("not done, and no message that asks for anything")?;
    let id = InteractionId::Number(u64::from(attempt));
    Ok(Ask::of(Interaction::open(id, attempt, message.to_owned()).with_fields(object)))
}

/// `{"type":"REQUEST","request":{"action":"ask_user_input",…}}`
fn worker_ask(request: &Map<String, Value>, attempt: u32) -> Result<Ask, String> {
    let prompt = non_blank(request.get("prompt")).ok_or("the request asks without a prompt")?;
    let id = InteractionId::Number(u64::from(attempt));
    let interaction = Interaction::open(id, attempt, prompt.to_owned()).with_fields(request);
    Ok(with_record_fields(Ask::of(interaction), request))
}

/// Takes over the fields that a worker may set on the record itself. They also come with aop's own tool.
pub(super) fn with_record_fields(mut ask: Ask, fields: &Map<String, Value>) -> Ask {
    if let Some(name) = fields.get("question_type").and_then(Value::as_str) {
        ask.question_type = QuestionType::parse(name).unwrap_or(ask.question_type);
    }
    ask.details = match fields.get("details") {
        None | Some(Value::Null) => Value::Null,
        Some(details @ Value::Object(_)) => details.clone(),
        Some(other) => json!({"text": other}),
    };
    ask.blocking = fields.get("blocking").and_then(Value::as_bool).unwrap_or(true);
    ask.expected_answer = expected_answer(fields);
    if !ask.expected_answer.is_null() {
        ask.reply = Reply::AsExpected;
    }
    if ask.interaction.options.is_empty() {
        let choices = ask.expected_answer.get("choices").and_then(Value::as_array);
        ask.interaction.options = choices.into_iter().flatten().filter_map(read_choice).collect();
    }
    if matches!(ask.question_type, QuestionType::PermissionOverride | QuestionType::RiskAck) {
        ask.interaction.default_decision_policy = DecisionPolicy::Decline;
    }
    ask
}

/// What the record will enforce: the given expectation as far as it makes sense, else one made of `choices`, else
/// none. A model's slip in a side field must not cost the question.
fn expected_answer(fields: &Map<String, Value>) -> Value {
    if let Some(expected) = fields.get("expected_answer").filter(|expected| !expected.is_null()) {
        return usable_expectation(expected).map_or(Value::Null, Value::Object);
    }
    match distinct_texts(fields.get("choices")) {
        Some(choices) => {
            let allow_other = fields.get("allow_other").and_then(Value::as_bool).unwrap_or(false);
            json!({"kind": "single_choice", "choices": choices, "allow_other": allow_other})
        }
        None => Value::Null,
    }
}

/// Keeps what goes with the kind.
fn usable_expectation(expected: &Value) -> Option<Map<String, Value>> {
    let kind = expected.get("kind")?.as_str()?;
    let mut kept = Map::new();
    kept.insert("kind".into(), kind.into());
    match kind {
        "single_choice" | "multi_choice" => {
            let choices = distinct_texts(expected.get("choices"))?;
            let is_choice =
                |value: &Value| value.as_str().is_some_and(|text| choices.iter().any(|known| known == text));
            let default = expected.get("default").filter(|default| match kind {
                "single_choice" => is_choice(default),
                _ => distinct_texts(Some(default))
                    .is_some_and(|texts| texts.iter().all(|text| choices.contains(text))),
            });
            let allow_other = expected.get("allow_other").filter(|value| value.is_boolean());
            kept.insert("choices".into(), json!(choices));
            kept.extend(allow_other.map(|value| ("allow_other".to_owned(), value.clone())));
            kept.extend(default.map(|value| ("default".to_owned(), value.clone())));
        }
        "free_text" => {}
        "json" => {
            let schema = expected.get("schema").filter(|schema| schema.is_object() || schema.is_boolean());
            kept.extend(schema.map(|value| ("schema".to_owned(), value.clone())));
        }
        _ => return None,
    }
    Some(kept)
}

/// A list of distinct texts, none of them blank or a label that is reserved.
fn distinct_texts(value: Option<&Value>) -> Option<Vec<String>> {
    let items = value?.as_array()?.iter().map(|item| non_blank(Some(item)).map(str::to_owned));
    let items: Vec<String> = items.collect::<Option<_>>()?;
    let is_distinct = items.iter().enumerate().all(|(n, item)| !items[..n].contains(item));
    let is_free = !items.iter().any(|item| RESERVED_LABELS.contains(&item.as_str()));
    (is_distinct && is_free && !items.is_empty()).then_some(items)
}
