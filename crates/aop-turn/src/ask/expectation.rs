//! What the record will enforce, of what the asker said it expects. A model's slip in a side field must not cost the
//! question: what cannot be kept is left out, and named.

use super::left_out;
use crate::native::non_blank;
use aop_ask::spec::RESERVED_LABELS;
use aop_ask::{Answers, QuestionSpec};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// The given expectation as far as it makes sense, else one made of `choices`, else none.
pub(super) fn expected_answer(
    fields: &Map<String, Value>,
    spec: Option<&QuestionSpec>,
    warnings: &mut Vec<String>,
) -> Value {
    let field = |key: &str| fields.get(key).filter(|value| !value.is_null());
    let (expected, choices) = (field("expected_answer"), field("choices"));
    if choices.is_some() && (expected.is_some() || spec.is_some()) {
        warnings.push(left_out("choices", "what is expected is said in another field"));
    }
    match (expected, choices) {
        (Some(expected), _) => match usable(expected, spec, warnings) {
            Ok(kept) => Value::Object(kept),
            Err(why) => {
                warnings.push(left_out("expected_answer", why));
                Value::Null
            }
        },
        (None, Some(given)) if spec.is_none() => match distinct_texts(Some(given)) {
            Some(choices) => {
                let allow_other = fields.get("allow_other").and_then(Value::as_bool).unwrap_or(false);
                json!({"kind": "single_choice", "choices": choices, "allow_other": allow_other})
            }
            None => {
                warnings.push(left_out("choices", NO_CHOICES));
                Value::Null
            }
        },
        (None, _) => Value::Null,
    }
}

const NO_CHOICES: &str = "choices are distinct texts, none of them blank or reserved";

/// What an answer is.
enum Kind<'a> {
    Choice { multi: bool, choices: Vec<String>, allow_other: bool },
    FreeText,
    Json,
    Form(&'a QuestionSpec),
}

impl Kind<'_> {
    /// Whether the record would take this as an answer, schema aside.
    fn takes(&self, answer: &Value) -> bool {
        match self {
            Kind::Choice { multi: false, .. } => self.takes_choice(answer),
            Kind::Choice { multi: true, .. } => answer.as_array().is_some_and(|picked| {
                let mut seen = HashSet::new();
                !picked.is_empty()
                    && picked.iter().all(|one| self.takes_choice(one) && seen.insert(one.as_str()))
            }),
            Kind::FreeText => non_blank(Some(answer)).is_some(),
            Kind::Json => !answer.is_null(),
            Kind::Form(spec) => Answers::check(spec, answer).is_ok(),
        }
    }

    fn takes_choice(&self, answer: &Value) -> bool {
        let Kind::Choice { choices, allow_other, .. } = self else { return false };
        non_blank(Some(answer)).is_some_and(|text| *allow_other || choices.iter().any(|known| known == text))
    }
}

/// Keeps what goes with the kind, or says why there is no kind.
fn usable(
    expected: &Value,
    spec: Option<&QuestionSpec>,
    warnings: &mut Vec<String>,
) -> Result<Map<String, Value>, &'static str> {
    let Value::Object(given) = expected else { return Err("it is not an object") };
    let kind = match (given.get("kind").and_then(Value::as_str), spec) {
        (Some("form"), Some(spec)) => Kind::Form(spec),
        (Some("form"), None) => return Err("a form needs a spec"),
        (Some(_), Some(_)) => return Err("a question with a spec expects a form"),
        (Some(name @ ("single_choice" | "multi_choice")), None) => Kind::Choice {
            multi: name == "multi_choice",
            choices: distinct_texts(given.get("choices")).ok_or(NO_CHOICES)?,
            allow_other: given.get("allow_other") == Some(&Value::Bool(true)),
        },
        (Some("free_text"), None) => Kind::FreeText,
        (Some("json"), None) => Kind::Json,
        (_, _) => return Err("its kind is not known"),
    };
    let mut kept = Map::new();
    for (key, value) in given.iter().filter(|(_, value)| !value.is_null()) {
        let is_usable = match key.as_str() {
            "kind" => true,
            "choices" => matches!(kind, Kind::Choice { .. }),
            "allow_other" => matches!(kind, Kind::Choice { .. }) && value.is_boolean(),
            // Whether it is a schema that can be used is seen when the question is recorded.
            "schema" => value.is_object() || value.is_boolean(),
            "default" => kind.takes(value),
            _ => false,
        };
        if is_usable {
            kept.insert(key.clone(), value.clone());
        } else {
            let why = match key.as_str() {
                "default" => "it is not a valid answer",
                "schema" => "it is not a schema",
                _ => "it does not go with the kind",
            };
            warnings.push(left_out(&format!("expected_answer.{key}"), why));
        }
    }
    Ok(kept)
}

/// A list of distinct texts, none of them blank or a label that is reserved.
fn distinct_texts(value: Option<&Value>) -> Option<Vec<String>> {
    let items = value?.as_array()?.iter().map(|item| non_blank(Some(item)).map(str::to_owned));
    let items: Vec<String> = items.collect::<Option<_>>()?;
    let mut seen = HashSet::new();
    let is_distinct = items.iter().all(|item| seen.insert(item.as_str()));
    let is_free = !items.iter().any(|item| RESERVED_LABELS.contains(&item.as_str()));
    (is_distinct && is_free && !items.is_empty()).then_some(items)
}

#[cfg(test)]
mod tests {
    use crate::ask::dialect::read_payload;
    use crate::ask::{Payload, question_arguments};
    use serde_json::{Map, Value, json};

    /// The arguments of a worker's request with these fields, and the warnings.
    fn asked(fields: &Value) -> (Map<String, Value>, Vec<String>) {
        let mut request = json!({"action": "ask_user_input", "prompt": "?"});
        request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let object = json!({"type": "REQUEST", "request": request});
        let Payload::Ask(ask) = read_payload(object.as_object().unwrap(), 1) else { panic!() };
        (question_arguments(&ask), ask.warnings)
    }

    fn form() -> Value {
        json!({"version": 1, "topic": "t", "questions": [
            {"id": "name", "header": "Name", "question": "Name?", "kind": "free_text", "required": true}]})
    }

    #[test]
    fn a_default_and_a_schema_are_kept_for_every_kind() {
        let schema = json!({"maxLength": 9});
        for (expected, spec) in [
            (json!({"kind": "free_text", "default": "shop", "schema": schema}), Value::Null),
            (json!({"kind": "json", "default": {"a": 1}, "schema": schema}), Value::Null),
            (
                json!({"kind": "single_choice", "choices": ["a", "b"], "default": "a", "schema": schema}),
                Value::Null,
            ),
            (
                json!({"kind": "multi_choice", "choices": ["a"], "default": ["a"], "schema": true}),
                Value::Null,
            ),
            (
                json!({"kind": "single_choice", "choices": ["a"], "allow_other": true, "default": "z"}),
                Value::Null,
            ),
            (json!({"kind": "form", "default": {"name": "shop"}, "schema": schema}), form()),
        ] {
            let fields =
                json!({"expected_answer": expected, "spec": spec, "default_decision_policy": "use_default"});
            let (arguments, warnings) = asked(&fields);
            assert_eq!(arguments["expected_answer"], expected);
            assert_eq!(arguments["default_decision_policy"], "use_default");
            assert_eq!(arguments.get("interaction"), None, "the record enforces what it expects");
            assert_eq!(warnings, [""; 0], "{expected}");
        }
    }

    #[test]
    fn what_is_left_out_of_an_expectation_is_named() {
        let free = json!({"kind": "free_text"});
        let choice = json!({"kind": "single_choice", "choices": ["a"]});
        for (fields, kept, named) in [
            (
                json!({"expected_answer": {"kind": "free_text", "default": " "}}),
                &free,
                "expected_answer.default: it is not a valid",
            ),
            (
                json!({"expected_answer": {"kind": "free_text", "choices": ["a"]}}),
                &free,
                "expected_answer.choices: ",
            ),
            (
                json!({"expected_answer": {"kind": "free_text", "schema": "text"}}),
                &free,
                "expected_answer.schema: ",
            ),
            (json!({"expected_answer": {"kind": "free_text", "why": 1}}), &free, "expected_answer.why: "),
            (
                json!({"expected_answer": {"kind": "single_choice", "choices": ["a"], "default": "z"}}),
                &choice,
                "expected_answer.default: ",
            ),
            (
                json!({"expected_answer": {"kind": "single_choice", "choices": ["a"], "default": ["a"]}}),
                &choice,
                "expected_answer.default: ",
            ),
            (json!({"expected_answer": {"kind": "single_choice"}}), &Value::Null, "expected_answer: choices"),
            (
                json!({"expected_answer": {"kind": "form"}}),
                &Value::Null,
                "expected_answer: a form needs a spec",
            ),
            (json!({"expected_answer": {"kind": "telepathy"}}), &Value::Null, "expected_answer: its kind"),
            (json!({"expected_answer": "yes"}), &Value::Null, "expected_answer: it is not an object"),
            (
                json!({"expected_answer": free, "spec": form()}),
                &Value::Null,
                "expected_answer: a question with a spec",
            ),
            (json!({"choices": ["a", "a"]}), &Value::Null, "choices: choices are distinct"),
            (json!({"choices": ["a"], "spec": form()}), &Value::Null, "choices: what is expected"),
            (json!({"spec": {"version": 0}}), &Value::Null, "spec: "),
            (json!({"question_type": "whim"}), &Value::Null, "question_type: "),
        ] {
            let (arguments, warnings) = asked(&fields);
            assert_eq!(&arguments["expected_answer"], kept, "{fields}");
            let [warning] = warnings.as_slice() else { panic!("{fields}: {warnings:?}") };
            assert!(warning.starts_with(&format!("ASK_FIELD_LEFT_OUT: {named}")), "{warning}");
        }
        let nothing = json!({"expected_answer": {"kind": "free_text", "default": null, "schema": null}});
        assert_eq!(asked(&nothing).1, [""; 0], "null is nothing");
    }
}
