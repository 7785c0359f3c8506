//! How a turn begins: what the conversation holds already, what it is given, and which of its asks nobody has seen yet.
//!
//! A conversation can have been cut off anywhere. What the rollout says decides: a call without an output gets its
//! output, a call that was interrupted for good or compacted away is told in a message instead, and nothing is said twice.

use super::card::{AskedCall, Card, asked_calls};
use super::permission;
use super::rollout::{Call, Output, Rollout};
use crate::port::{Input, Reply};
use crate::words::join;
use aop_turn::quote::quoted;
use serde_json::{Value, json};

/// What a call is told that stood behind a question in the same message: Codex runs nothing while it asks.
const NOT_RUN: &str = "This call was not run: the turn was put aside while a person answered another call of the same \
                       message. Call it again if it is still needed.";
/// What a call is told that asked something which nobody could be shown at the time.
const NOT_ASKED: &str = "This question has not been put to anybody, because another one came first. Ask again if you \
                         still need to know.";
/// The same of what was asked without waiting, and accepted by the engine before it was killed.
const NOT_ASKED_EITHER: &str = "What you asked after that by `request_user_input_async` has not been put to anybody, \
                                because this question came first. Ask again if you still need to know.";
/// What the engine itself returns from a call that asks without waiting.
const ACCEPTED: &str = "{\"accepted\":true}";
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
            Input::Reply(reply) => {
                let mut opening = Opening::reply(reply, rollout);
                opening.items.extend((!reply.notes.is_empty()).then(|| instruction(&reply.notes)));
                opening
            }
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
        let first = calls.first().map(|call| call.call_id.as_str()).or(reply.call_id.as_deref());
        if rollout.holds_reply(&reply.question_id, first) {
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
        // The call that the question is known by comes last: once its output is there, the others' are.
        opening.items.reverse();
        if opening.items.is_empty() {
            opening.delivery = Delivery::Message;
            let words =
                if is_permission { permission::told_by_message(reply) } else { told_later(reply, rollout) };
            // The engine was killed the moment that the question was recorded, and may have gone on until then.
            let behind: Vec<&Call> = asked_behind(rollout, &calls).collect();
            let is_accepted = behind.iter().any(|call| call.output == Output::Given);
            opening.message = Some(join(&words, if is_accepted { NOT_ASKED_EITHER } else { "" }));
            let own =
                rollout.unanswered().filter(|call| calls.iter().any(|asked| asked.call_id == call.call_id));
            opening.items.extend(own.map(|call| call.form.output(&call.call_id, ACCEPTED)));
            let unseen = behind.iter().filter(|call| call.output == Output::Missing);
            opening.items.extend(unseen.map(|call| call.form.output(&call.call_id, NOT_ASKED)));
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

/// Calls that ask without waiting and stand behind the one that asked this question. Nobody has seen them.
fn asked_behind<'a>(rollout: &'a Rollout, asked: &'a [AskedCall]) -> impl Iterator<Item = &'a Call> {
    let is_asked = |call: &Call| asked.iter().any(|asked| !asked.waits && asked.call_id == call.call_id);
    let from = rollout.calls.iter().rposition(is_asked).unwrap_or(rollout.calls.len());
    rollout.calls[from..].iter().skip(1).filter(|call| call.is_asynchronous())
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

/// The same in a conversation that went on without it: where that was made shorter, the model may not remember what it
/// asked, and is told that too.
pub(super) fn told_later(reply: &Reply, rollout: &Rollout) -> String {
    let asked = reply.question["prompt"].as_str().filter(|_| rollout.is_compacted);
    let asked = asked.map(|asked| format!("You had asked:\n\n{}", quoted(asked))).unwrap_or_default();
    join(&asked, &told(reply))
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

#[cfg(test)]
mod tests {
    use super::super::card::arguments;
    use super::*;
    use crate::port::ReplyKind;

    fn call(call_id: &str, name: &str) -> Value {
        let questions = json!({"questions": [{"id": call_id, "header": "H", "question": "?",
            "options": [{"label": "x", "description": "x"}]}]});
        json!({"type": "function_call", "name": name, "arguments": questions.to_string(), "call_id": call_id})
    }

    fn output(call_id: &str, output: &str) -> Value {
        json!({"type": "function_call_output", "call_id": call_id, "output": output})
    }

    /// The reply to the question that these calls made together.
    fn reply(calls: &[&str], waits: bool) -> Input {
        let card = |call_id: &&str| {
            let questions = json!([{"id": call_id, "question": "?", "options": ["x"]}]);
            Card { call_id: (*call_id).to_owned(), input: json!({"questions": questions}), waits }
        };
        let cards: Vec<Card> = calls.iter().map(card).collect();
        Input::Reply(Box::new(Reply {
            question_id: "q_1".into(),
            call_id: calls.first().map(|call| (*call).to_owned()),
            kind: ReplyKind::Answered,
            answer: calls.iter().map(|call| ((*call).to_owned(), json!("x"))).collect(),
            question: arguments(&cards, 1).unwrap(),
            words: "the words".into(),
            notes: String::new(),
            notes_are_secret: false,
        }))
    }

    fn opened(input: &Input, items: &[Value]) -> Opening {
        Opening::next(input, "", &Rollout::of(items))
    }

    fn outputs(opening: &Opening) -> Vec<(&str, &str)> {
        opening
            .items
            .iter()
            .map(|item| (item["call_id"].as_str().unwrap(), item["output"].as_str().unwrap()))
            .collect()
    }

    #[test]
    fn every_call_of_a_form_gets_its_output_and_the_one_it_is_known_by_the_last() {
        let items =
            [call("a", "request_user_input"), call("c", "exec_command"), call("b", "request_user_input")];
        let opening = opened(&reply(&["a", "b"], true), &items);
        let told = outputs(&opening);
        assert_eq!(told.iter().map(|(call, _)| *call).collect::<Vec<_>>(), ["c", "b", "a"]);
        assert_eq!(told[0].1, NOT_RUN);
        assert_eq!(told[2].1, r#"{"answers":{"a":{"answers":["x"]}}}"#);
        assert_eq!((opening.message, opening.delivery), (None, Delivery::Item));
    }

    #[test]
    fn notes_come_behind_the_answer_however_it_is_told() {
        let interrupted = output("a", "aborted by user after 0.3s");
        for items in
            [vec![call("a", "request_user_input")], vec![call("a", "request_user_input"), interrupted]]
        {
            let Input::Reply(mut with_notes) = reply(&["a"], true) else { unreachable!() };
            with_notes.notes = "Use the date picker".to_owned();
            let plain = opened(&reply(&["a"], true), &items);
            let opening = opened(&Input::Reply(with_notes), &items);
            let (note, answer) = opening.items.split_last().unwrap();
            assert_eq!(note["content"][0]["text"], "Use the date picker");
            assert_eq!((answer, &opening.message), (&plain.items[..], &plain.message));
        }
    }

    #[test]
    fn an_ask_that_nobody_has_seen_is_found() {
        let items = [call("a", "request_user_input"), call("b", "request_user_input")];
        let unasked =
            |opening: Opening| opening.unasked.into_iter().map(|card| card.call_id).collect::<Vec<_>>();
        assert_eq!(unasked(opened(&reply(&["a"], true), &items)), ["b"]);
        assert_eq!(unasked(opened(&Input::Continue("go on".into()), &items)), ["a", "b"]);
    }

    #[test]
    fn what_the_conversation_holds_is_not_told_again() {
        let held = [call("a", "request_user_input"), output("a", "{}")];
        let opening = opened(&reply(&["a"], true), &held);
        assert_eq!((opening.items.len(), opening.message, opening.delivery), (0, None, Delivery::Held));
    }

    #[test]
    fn a_call_that_was_interrupted_for_good_is_told_by_a_message_that_names_the_question() {
        let interrupted = [call("a", "request_user_input"), output("a", "aborted by user after 0.3s")];
        let opening = opened(&reply(&["a"], true), &interrupted);
        assert_eq!(opening.delivery, Delivery::Message);
        assert!(opening.message.unwrap().contains("q_1") && opening.items.is_empty());
    }

    #[test]
    fn a_call_that_was_compacted_away_is_told_by_a_message_that_names_the_question() {
        let mut rollout = Rollout::of(&[call("a", "request_user_input"), call("b", "request_user_input")]);
        let compacted = json!({"type": "compacted", "payload": {"message": "", "replacement_history": []}});
        rollout.line(compacted.to_string().as_bytes());
        let opening = Opening::next(&reply(&["a"], true), "", &rollout);
        assert_eq!((opening.delivery, opening.items.len()), (Delivery::Message, 0));
        let message = "You had asked:\n\n> ?\n\nthe words\n\n(This is about question q_1.)";
        assert_eq!((opening.message.as_deref(), opening.unasked.len()), (Some(message), 0));
        let opening = Opening::next(&Input::Continue("go on".into()), "", &rollout);
        assert!(opening.unasked.is_empty(), "the model does not know any more that it asked");
    }

    #[test]
    fn a_call_that_did_not_wait_is_told_by_a_message() {
        let items = [call("a", "request_user_input_async"), output("a", "{\"accepted\":true}")];
        let opening = opened(&reply(&["a"], false), &items);
        assert_eq!(opening.delivery, Delivery::Message);
        assert_eq!(opening.message.unwrap(), "the words\n\n(This is about question q_1.)");
    }

    #[test]
    fn what_stands_behind_a_call_that_did_not_wait_is_told_that_nobody_was_asked() {
        let first = call("a", "request_user_input_async");
        let second = call("b", "request_user_input_async");
        let opening = opened(&reply(&["a"], false), &[first.clone(), second.clone()]);
        assert_eq!(outputs(&opening), [("a", ACCEPTED), ("b", NOT_ASKED)]);
        assert!(!opening.message.unwrap().contains(NOT_ASKED_EITHER));
        let accepted = [first, output("a", ACCEPTED), second, output("b", ACCEPTED)];
        let opening = opened(&reply(&["a"], false), &accepted);
        assert_eq!(opening.items.len(), 0);
        assert!(opening.message.unwrap().ends_with(NOT_ASKED_EITHER));
    }

    #[test]
    fn an_agent_that_looked_its_question_up_is_still_told_the_answer() {
        let looked = [call("l", "exec_command"), output("l", "q_1 is open")];
        for (name, waits) in [("request_user_input", true), ("request_user_input_async", false)] {
            let items = [&[call("a", name)], &looked[..]].concat();
            let opening = opened(&reply(&["a"], waits), &items);
            assert_ne!(opening.delivery, Delivery::Held, "{name}");
        }
    }

    #[test]
    fn a_turn_that_was_cut_off_goes_on_without_a_word_unless_the_model_has_finished() {
        let go_on = Input::Continue("go on".into());
        let user =
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "do"}]});
        let said = json!({"type": "message", "role": "assistant", "content": []});
        assert_eq!(opened(&go_on, std::slice::from_ref(&user)).message, None);
        assert_eq!(opened(&go_on, &[user, said]).message.as_deref(), Some("go on"));
    }

    #[test]
    fn a_new_conversation_begins_with_a_message_or_not_at_all() {
        assert!(Opening::first(&Input::Message("do".into())).is_some());
        assert!(Opening::first(&Input::Continue("go on".into())).is_none());
    }
}
