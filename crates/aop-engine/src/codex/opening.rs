//! How a turn begins: what the conversation holds already, what it is given, and which of its asks nobody has seen yet.
//!
//! A conversation can have been cut off anywhere. What the rollout says decides: a call without an output gets its
//! output, a call that was interrupted for good is told in a message instead, and nothing is said twice.

use super::card::{AskedCall, Card, asked_calls};
use super::permission;
use super::rollout::{Call, Output, Rollout};
use crate::port::{Input, Reply};
use serde_json::{Value, json};

/// What a call is told that stood behind a question in the same message: Codex runs nothing while it asks.
const NOT_RUN: &str = "This call was not run: the turn was put aside while a person answered another call of the same \
                       message. Call it again if it is still needed.";
/// What a call is told that asked something which nobody could be shown at the time.
const NOT_ASKED: &str = "This question has not been put to anybody, because another one came first. Ask again if you \
                         still need to know.";
/// What a model is told that has nothing left to answer to.
const GO_ON: &str = "The turn was cut off after your last message. Go on from there.";

/// How the reply that a turn begins with reaches the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    /// There is none.
    None,
    /// It is there already.
    Held,
    /// As the output of the call that asked.
    Item,
    /// As a message.
    Message,
}

/// The beginning of a turn.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Opening {
    /// Items that the conversation gets before the turn.
    pub(super) items: Vec<Value>,
    /// The message that the turn begins with.
    pub(super) message: Option<String>,
    /// How the reply gets there.
    pub(super) delivery: Delivery,
    /// Calls that wait for an answer and were never put to anybody.
    pub(super) unasked: Vec<Card>,
    /// A permission that was given and could not be used, because the process was gone.
    pub(super) granted: Option<Value>,
}

impl Opening {
    fn nothing() -> Self {
        Opening {
            items: Vec::new(),
            message: None,
            delivery: Delivery::None,
            unasked: Vec::new(),
            granted: None,
        }
    }

    /// The beginning of a turn in a new conversation.
    pub(super) fn first(input: &Input) -> Option<Self> {
        match input {
            Input::Message(text) => Some(Opening { message: Some(text.clone()), ..Opening::nothing() }),
            Input::Reply(_) | Input::Continue(_) => None,
        }
    }

    /// The beginning of a turn in this conversation. Standing instructions are in it from its start; a message that
    /// brings others along brings them as the engine's own kind of instruction.
    pub(super) fn next(input: &Input, instructions: &str, rollout: &Rollout) -> Self {
        match input {
            Input::Message(text) => {
                let known = instructions.trim().is_empty() || rollout.was_told(instructions);
                let items = if known { Vec::new() } else { vec![instruction(instructions)] };
                Opening { items, message: Some(text.clone()), ..Opening::nothing() }
            }
            Input::Reply(reply) => Opening::reply(reply, rollout),
            Input::Continue(words) => Opening {
                message: rollout.model_spoke_last.then(|| words.clone()),
                unasked: unasked(rollout, &[]),
                ..Opening::nothing()
            },
        }
    }

    fn reply(reply: &Reply, rollout: &Rollout) -> Self {
        let calls = asked_calls(reply);
        let mut opening = Opening { unasked: unasked(rollout, &calls), ..Opening::nothing() };
        if rollout.holds_reply(&reply.question_id, reply.call_id.as_deref()) {
            opening.delivery = Delivery::Held;
            opening.message = rollout.model_spoke_last.then(|| GO_ON.to_owned());
            return opening;
        }
        let is_permission = permission::is_permission(&reply.question);
        for call in &calls {
            let Some(waiting) = rollout.find_call(&call.call_id).filter(|known| is_open(known, call)) else {
                continue;
            };
            let output =
                if is_permission { permission::told_later(reply).into() } else { call.returns(reply) };
            let output = output.as_str().map_or_else(|| output.to_string(), str::to_owned);
            opening.items.push(waiting.form.output(&call.call_id, &output));
        }
        if is_permission {
            opening.granted = permission::granted(reply);
        } else if !opening.items.is_empty() {
            let others = rollout.unanswered().filter(|call| !call.asks() && !call.is_asynchronous());
            opening.items.extend(others.map(|call| call.form.output(&call.call_id, NOT_RUN)));
        }
        if opening.items.is_empty() {
            opening.delivery = Delivery::Message;
            opening.message =
                Some(if is_permission { permission::told_by_message(reply) } else { told(reply) });
            // A message starts a turn, so there is no more time to ask what was not asked.
            for card in opening.unasked.drain(..) {
                opening.items.extend(
                    rollout.find_call(&card.call_id).map(|call| call.form.output(&card.call_id, NOT_ASKED)),
                );
            }
        } else {
            opening.delivery = Delivery::Item;
        }
        opening
    }

    /// Gives a call that was never put to anybody its output after all.
    pub(super) fn settle(&mut self, call_id: &str, output: &Value) {
        let output = output.as_str().map_or_else(|| output.to_string(), str::to_owned);
        self.items.push(super::rollout::Form::Function.output(call_id, &output));
    }
}

/// The call still waits for what it asked.
fn is_open(known: &Call, asked: &AskedCall) -> bool {
    asked.waits && known.output == Output::Missing
}

fn unasked(rollout: &Rollout, asked: &[AskedCall]) -> Vec<Card> {
    let is_new = |call: &&Call| call.asks() && !asked.iter().any(|known| known.call_id == call.call_id);
    let card =
        |call: &Call| Card { call_id: call.call_id.clone(), input: call.arguments.clone(), waits: true };
    rollout.unanswered().filter(is_new).map(card).collect()
}

/// The end of a question as a message. It names the question, so that it is found in the conversation later.
pub(super) fn told(reply: &Reply) -> String {
    named(&reply.words, &reply.question_id)
}

/// Words about a question, with its name.
pub(super) fn named(words: &str, question_id: &str) -> String {
    if words.contains(question_id) {
        words.to_owned()
    } else {
        format!("{words}\n\n(This is about question {question_id}.)")
    }
}

fn instruction(text: &str) -> Value {
    json!({"type": "message", "role": "developer", "content": [{"type": "input_text", "text": text}]})
}
