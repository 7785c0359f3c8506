//! Question cards: what `request_user_input` asks as the arguments of a question, and a person's answer as what the
//! call returns.
//!
//! Calls that wait together share one form. Which of its questions belong to which call, and under which ids of the
//! engine's, is written into the question's `interaction.context`, so that the answer finds its way back without
//! anything else, a week later and from another process.

use crate::port::{Reply, ReplyKind};
use aop_turn::ask::{from_native, question_arguments};
use aop_turn::native::{NativeAsk, Stage, read_ask};
use serde_json::{Map, Value, json};

/// How Codex's own terminal says that none of the options was taken, and what was typed instead.
const NONE_OF_THEM: &str = "None of the above";
const NOTE: &str = "user_note: ";

/// One call that asks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Card {
    /// The engine's id of the call.
    pub(crate) call_id: String,
    /// The call's arguments, or the server's request about it: the member `questions` counts.
    pub(crate) input: Value,
    /// Whether the engine waits for the answer or takes it as a message.
    pub(crate) waits: bool,
}

impl Card {
    /// The engine's ids of its questions, in order.
    fn ids(&self) -> Vec<String> {
        let questions = self.input.get("questions").and_then(Value::as_array);
        let id = |(index, question): (usize, &Value)| {
            let id = question.get("id").and_then(Value::as_str);
            id.map_or_else(|| format!("question_{}", index + 1), str::to_owned)
        };
        questions.into_iter().flatten().enumerate().map(id).collect()
    }

    /// What the call returns when there are only words to return: the same words under each of its questions.
    pub(crate) fn words(&self, words: &str) -> Value {
        let mut ids = self.ids();
        if ids.is_empty() {
            ids.push("note".to_owned());
        }
        let answers: Map<String, Value> =
            ids.into_iter().map(|id| (id, json!({"answers": [words]}))).collect();
        json!({"answers": answers})
    }
}

/// The arguments of the one question that these calls make, or why nobody could be shown it.
pub(crate) fn arguments(cards: &[Card], attempt: u32) -> Result<Value, String> {
    let asks: Vec<NativeAsk> = cards
        .iter()
        .map(|card| NativeAsk {
            call_id: card.call_id.clone(),
            message: None,
            stage: if card.waits { Stage::Waiting } else { Stage::NotWaiting },
            body: read_ask(&card.input),
        })
        .collect();
    let mut ask = from_native(&asks.iter().collect::<Vec<_>>(), attempt)?;
    let calls: Vec<Value> = cards
        .iter()
        .map(|card| json!({"call_id": card.call_id, "ids": card.ids(), "waits": card.waits}))
        .collect();
    ask.interaction.context = json!({"calls": calls});
    Ok(Value::Object(question_arguments(&ask)))
}

/// A call of a recorded question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AskedCall {
    /// The engine's id of the call.
    pub(super) call_id: String,
    /// Whether the engine waits for the answer or takes it as a message.
    pub(super) waits: bool,
    ids: Vec<String>,
    /// Where its questions begin in the form.
    first: usize,
}

/// The calls of a recorded question. A record of another origin has one at most: the one that the reply names.
pub(super) fn asked_calls(reply: &Reply) -> Vec<AskedCall> {
    let recorded = reply.question.pointer("/interaction/context/calls").and_then(Value::as_array);
    let mut first = 0;
    let mut calls = Vec::new();
    for call in recorded.into_iter().flatten() {
        let Some(call_id) = call.get("call_id").and_then(Value::as_str) else { continue };
        let ids: Vec<String> = call
            .get("ids")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|id| id.as_str().map(str::to_owned))
            .collect();
        let waits = call.get("waits").and_then(Value::as_bool).unwrap_or(true);
        let count = ids.len();
        calls.push(AskedCall { call_id: call_id.to_owned(), waits, ids, first });
        first += count;
    }
    if calls.is_empty()
        && let Some(call_id) = &reply.call_id
    {
        calls.push(AskedCall { call_id: call_id.clone(), waits: true, ids: Vec::new(), first: 0 });
    }
    calls
}

impl AskedCall {
    /// What the call returns. A question without an answer returns the words alone.
    pub(super) fn returns(&self, reply: &Reply) -> Value {
        let answers = match reply.kind {
            ReplyKind::Unanswered => return reply.words.clone().into(),
            ReplyKind::Answered if self.ids.is_empty() => return reply.words.clone().into(),
            ReplyKind::Answered => answers_of(reply),
        };
        let mut returned: Map<String, Value> = Map::new();
        for (index, id) in self.ids.iter().enumerate() {
            let Some(words) = answers.to(self.first + index) else { continue };
            // Codex lets a card use an id twice; then both answers stand under it, in order.
            match returned.get_mut(id).and_then(|entry| entry["answers"].as_array_mut()) {
                Some(known) => known.extend(words.into_iter().map(Value::from)),
                None => drop(returned.insert(id.clone(), json!({"answers": words}))),
            }
        }
        json!({"answers": returned})
    }
}

/// A person's answer, by the place of a question in its form.
enum Answers<'a> {
    /// A form that was filled in: its questions and the values by their ids.
    Form(&'a [Value], &'a Map<String, Value>),
    /// One text for everything, with the questions that there are.
    Text(&'a [Value], String),
}

fn answers_of(reply: &Reply) -> Answers<'_> {
    let questions = reply.question.pointer("/spec/questions").and_then(Value::as_array);
    let questions = questions.map(Vec::as_slice).unwrap_or_default();
    match &reply.answer {
        Value::Object(fields) if !questions.is_empty() => {
            // An answer document carries the mapping inside.
            let inner =
                fields.get("answers").and_then(Value::as_object).filter(|_| fields.contains_key("version"));
            Answers::Form(questions, inner.unwrap_or(fields))
        }
        Value::String(text) => Answers::Text(questions, text.clone()),
        other => Answers::Text(questions, other.to_string()),
    }
}

impl Answers<'_> {
    fn to(&self, index: usize) -> Option<Vec<String>> {
        match self {
            Answers::Form(questions, values) => {
                let question = questions.get(index)?;
                let value = values.get(question.get("id")?.as_str()?)?;
                let texts: Vec<&str> = match value {
                    Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
                    other => other.as_str().into_iter().collect(),
                };
                Some(texts.into_iter().flat_map(|text| chosen(question, text)).collect())
            }
            Answers::Text(questions, text) => Some(
                questions
                    .get(index)
                    .map_or_else(|| vec![format!("{NOTE}{text}")], |question| chosen(question, text)),
            ),
        }
    }
}

/// An option as itself, any other text the way Codex's terminal passes on what was typed.
fn chosen(question: &Value, text: &str) -> Vec<String> {
    let options = question.get("options").and_then(Value::as_array);
    let is_option =
        options.into_iter().flatten().any(|option| option.get("label").and_then(Value::as_str) == Some(text));
    if is_option { vec![text.to_owned()] } else { vec![NONE_OF_THEM.to_owned(), format!("{NOTE}{text}")] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(call_id: &str, questions: Value) -> Card {
        Card { call_id: call_id.into(), input: json!({"questions": questions}), waits: true }
    }

    fn question(id: &str, labels: &[&str]) -> Value {
        let options: Vec<Value> =
            labels.iter().map(|label| json!({"label": label, "description": "why"})).collect();
        json!({"id": id, "header": id, "question": format!("{id}?"), "options": options})
    }

    fn reply(cards: &[Card], kind: ReplyKind, answer: Value) -> Reply {
        Reply {
            question_id: "q".into(),
            call_id: Some(cards[0].call_id.clone()),
            kind,
            answer,
            question: arguments(cards, 1).unwrap(),
            words: "in words".into(),
            notes: String::new(),
            notes_are_secret: false,
        }
    }

    #[test]
    fn every_option_reaches_the_person_however_many_there_are() {
        let labels = ["a", "b", "c", "d", "e", "f", "g (Recommended)"];
        let arguments = arguments(&[card("c1", json!([question("Many Of Them", &labels)]))], 1).unwrap();
        let shown = arguments["spec"]["questions"][0]["options"].as_array().unwrap();
        let shown: Vec<&str> = shown.iter().map(|option| option["label"].as_str().unwrap()).collect();
        assert_eq!(shown, labels);
    }

    #[test]
    fn an_answer_returns_under_the_ids_of_the_engine() {
        let cards =
            [card("c1", json!([question("DB choice", &["Postgres", "SQLite"]), question("b", &["x", "y"])]))];
        let reply = reply(&cards, ReplyKind::Answered, json!({"db_choice": "SQLite", "b": "something else"}));
        let calls = asked_calls(&reply);
        assert_eq!(
            calls[0].returns(&reply),
            json!({"answers": {"DB choice": {"answers": ["SQLite"]},
                "b": {"answers": ["None of the above", "user_note: something else"]}}})
        );
    }

    #[test]
    fn two_calls_share_a_form_and_each_returns_its_own() {
        let cards = [
            card("c1", json!([question("db", &["x"])])),
            card("c2", json!([question("db", &["y"]), question("z", &["z"])])),
        ];
        let reply = reply(&cards, ReplyKind::Answered, json!({"db": "x", "db_2": "y"}));
        let calls = asked_calls(&reply);
        let returned: Vec<(String, Value)> =
            calls.iter().map(|call| (call.call_id.clone(), call.returns(&reply))).collect();
        assert_eq!(returned[0], ("c1".into(), json!({"answers": {"db": {"answers": ["x"]}}})));
        assert_eq!(
            returned[1],
            ("c2".into(), json!({"answers": {"db": {"answers": ["y"]}}})),
            "what was left out is absent"
        );
    }

    #[test]
    fn one_text_for_a_card_is_passed_on_as_such() {
        let cards = [card("c1", json!([question("a", &["x"]), question("b", &["do both"])]))];
        let reply = reply(&cards, ReplyKind::Answered, json!("do both"));
        assert_eq!(
            asked_calls(&reply)[0].returns(&reply),
            json!({"answers": {"a": {"answers": ["None of the above", "user_note: do both"]}, "b": {"answers": ["do both"]}}})
        );
    }

    #[test]
    fn a_card_that_no_form_can_carry_returns_the_text() {
        let cards = [card("c1", json!([question("a", &["__done__"])]))];
        let reply = reply(&cards, ReplyKind::Answered, json!("later"));
        assert_eq!(
            asked_calls(&reply)[0].returns(&reply),
            json!({"answers": {"a": {"answers": ["user_note: later"]}}})
        );
    }

    #[test]
    fn no_answer_returns_the_words() {
        let cards = [card("c1", json!([question("a", &["x"])]))];
        let reply = reply(&cards, ReplyKind::Unanswered, Value::Null);
        assert_eq!(asked_calls(&reply)[0].returns(&reply), json!("in words"));
    }

    #[test]
    fn an_id_that_is_used_twice_keeps_both_answers() {
        let cards = [card("c1", json!([question("a", &["x"]), question("a", &["y"])]))];
        let reply = reply(&cards, ReplyKind::Answered, json!({"a": "x", "a_2": "y"}));
        assert_eq!(
            asked_calls(&reply)[0].returns(&reply),
            json!({"answers": {"a": {"answers": ["x", "y"]}}})
        );
    }

    #[test]
    fn a_card_without_questions_is_told_so_and_not_shown() {
        let empty = card("c1", json!([]));
        assert!(arguments(std::slice::from_ref(&empty), 1).is_err());
        assert_eq!(empty.words("no"), json!({"answers": {"note": {"answers": ["no"]}}}));
    }
}
