//! The text dialects: JSON objects at the end of a message that say "done" or "ask".

use super::{Ask, record::with_record_fields};
use crate::interaction::{Interaction, InteractionId};
use crate::native::non_blank;
use crate::tail::Tail;
use serde_json::{Map, Value};

/// What an object at the end of a message says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Payload {
    /// The work is done; this is the result, without the marker.
    Done(Map<String, Value>),
    /// The work is done, and what was written as its result is not what was read.
    Unreadable(String),
    /// It asks.
    Ask(Box<Ask>),
    /// It claims to ask and lacks what that takes.
    MalformedAsk(String),
    /// A worker's request that we do not know.
    UnknownRequest(String),
    /// None of these.
    Other,
}

/// Reads what a message ends with. Where that is not what was written, it is no result and no question, but what it claims
/// to be: an ask, also where it cannot be told whether it is one.
pub(crate) fn read_tail(tail: &Tail, attempt: u32) -> Payload {
    let payload = read_payload(&tail.object, attempt);
    let Some(flaw) = &tail.flaw else { return payload };
    match payload {
        Payload::Done(_) if !flaw.is_of_marker() => Payload::Unreadable(flaw.why.clone()),
        // It asks nothing whatever else stands in it.
        Payload::UnknownRequest(_) if !flaw.is_of_request() => payload,
        Payload::Other if !flaw.is_of_marker() => payload,
        Payload::Done(_)
        | Payload::Unreadable(_)
        | Payload::Other
        | Payload::Ask(_)
        | Payload::MalformedAsk(_)
        | Payload::UnknownRequest(_) => Payload::MalformedAsk(flaw.why.clone()),
    }
}

/// Reads the object. `attempt` becomes the id where the dialect has none.
pub(super) fn read_payload(object: &Map<String, Value>, attempt: u32) -> Payload {
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
