//! What makes two requests the same: tool, caller's role and the arguments with defaults filled in, whatever
//! the order of keys.

use crate::hex::hexadecimal;
use crate::question::{AnswerKind, ExpectedAnswer};
use crate::role::Role;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// The digest of a request, as hexadecimal text. The arguments write their keys in order, as [`Sorted`] does.
pub(super) fn digest(tool: &str, role: Role, arguments: &impl Serialize) -> String {
    // As long as most: to grow there in steps would copy it several times.
    let mut text = String::with_capacity(512);
    for line in [tool, role.as_str()] {
        text.push_str(line);
        text.push('\n');
    }
    write(&mut text, arguments);
    hexadecimal(Sha256::digest(&text))
}

/// The digest of a JSON value, whatever the order of its keys.
pub fn digest_of(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, &Sorted(value));
    hexadecimal(Sha256::digest(&text))
}

fn write(out: &mut String, value: &impl Serialize) {
    crate::json::write(out, value).unwrap_or_else(|error| unreachable!("arguments are plain JSON: {error}"));
}

/// A value that writes the keys of every object in order.
pub(super) struct Sorted<'a>(pub(super) &'a Value);

impl Serialize for Sorted<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(map) => SortedMap(map).serialize(serializer),
            Value::Array(items) => serializer.collect_seq(items.iter().map(Sorted)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                self.0.serialize(serializer)
            }
        }
    }
}

/// An object that writes its keys in order.
pub(super) struct SortedMap<'a>(pub(super) &'a Map<String, Value>);

impl Serialize for SortedMap<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members: Vec<(&String, &Value)> = self.0.iter().collect();
        members.sort_unstable_by_key(|(key, _)| *key);
        serializer.collect_map(members.into_iter().map(|(key, value)| (key, Sorted(value))))
    }
}

/// A question spec as it is without what only says the default: a flag that is absent is false.
pub(super) fn without_defaults(mut spec: Value) -> Value {
    let questions = spec.get_mut("questions").and_then(Value::as_array_mut).into_iter().flatten();
    for question in questions.filter_map(Value::as_object_mut) {
        question.retain(|key, value| !(matches!(key.as_str(), "allow_other" | "secret") && *value == false));
    }
    spec
}

/// An expectation, its fields in the order of their names.
#[derive(Serialize)]
pub(super) struct SortedExpectation<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    allow_other: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    choices: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<Sorted<'a>>,
    kind: AnswerKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<Sorted<'a>>,
}

impl<'a> SortedExpectation<'a> {
    pub(super) fn of(expected: &'a ExpectedAnswer) -> Self {
        let ExpectedAnswer { kind, choices, allow_other, schema, default } = expected;
        SortedExpectation {
            allow_other: *allow_other,
            choices: choices.as_deref(),
            default: default.as_ref().map(Sorted),
            kind: *kind,
            schema: schema.as_ref().map(Sorted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::access::Tool;
    use super::super::parse::{Call, parse};
    use super::*;
    use crate::policy::{HumanInput, Rules};
    use crate::role::Caller;
    use serde_json::json;

    fn told(tool: &str, role: Role, arguments: &Value) -> String {
        digest(tool, role, &Sorted(arguments))
    }

    #[test]
    fn the_order_of_keys_does_not_matter() {
        let one = told("t", Role::Human, &json!({"a": 1, "b": {"c": [1, {"y": 1, "x": 2}], "d": null}}));
        let other = told("t", Role::Human, &json!({"b": {"d": null, "c": [1, {"x": 2, "y": 1}]}, "a": 1}));
        assert_eq!(one, other);
    }

    #[test]
    fn tool_role_and_every_value_matter() {
        let base = told("t", Role::Human, &json!({"a": [1, 2]}));
        assert_ne!(base, told("u", Role::Human, &json!({"a": [1, 2]})));
        assert_ne!(base, told("t", Role::Orchestrator, &json!({"a": [1, 2]})));
        assert_ne!(base, told("t", Role::Human, &json!({"a": [2, 1]})));
        assert_ne!(base, told("t", Role::Human, &json!({"a": "[1,2]"})));
    }

    #[test]
    fn an_expectation_is_sorted_as_any_value_is() {
        for value in [
            json!({"kind": "free_text"}),
            json!({"kind": "multi_choice", "choices": ["b", "\"a\""], "allow_other": true, "default": ["b"]}),
            json!({"kind": "json", "schema": {"type": "object", "properties": {"y": {}, "x": {}}},
                "default": {"y": 1, "x": [{"d": null, "c": 0.5}]}}),
        ] {
            let expected: ExpectedAnswer = serde_json::from_value(value).unwrap();
            let (sorted, value) = (SortedExpectation::of(&expected), json!(expected));
            assert_eq!(
                serde_json::to_string(&sorted).unwrap(),
                serde_json::to_string(&Sorted(&value)).unwrap()
            );
        }
    }

    #[test]
    fn what_only_says_a_default_makes_no_other_request() {
        let rules = Rules {
            human_input: HumanInput::default(),
            check_schema: |_| Ok(()),
            check_instance: |_, _| Ok(()),
        };
        let spec = |more: &str| -> Value {
            let option = r#"{"label":"A","description":"a"}"#;
            let head = r#""id":"x","header":"h","question":"q?","kind":"single_choice","required":true"#;
            let text =
                format!(r#"{{"version":1,"topic":"t","questions":[{{{head},"options":[{option}]{more}}}]}}"#);
            serde_json::from_str(&text).unwrap()
        };
        let told = |spec: Value| {
            let input = json!({"feature_id": "a", "role": "builder", "session_id": "s", "prompt": "P", "spec": spec,
                "question_type": "clarification", "operation_id": "o"});
            match parse(Tool::QuestionCreate, &Caller::new(Role::Human), &input, "test", &rules) {
                Ok(Call::Mutate(request)) => request.digest,
                other => panic!("{other:?}"),
            }
        };
        let short = told(spec(""));
        assert_eq!(short, told(spec(r#","allow_other":false,"secret":false"#)));
        for more in [r#","allow_other":true"#, r#","secret":true"#, r#","_secret":false"#] {
            assert_ne!(short, told(spec(more)), "{more}");
        }
    }

    /// The ledger of a project holds digests of every version: a retry after an update is still a retry.
    #[test]
    fn a_request_has_the_digest_that_it_always_had() {
        let known = [
            (
                Tool::QuestionCreate,
                json!({"feature_id": "a", "role": "builder", "session_id": "s", "question_type": "clarification",
                    "prompt": "Which \"one\"?", "details": {"z": 1, "a": [{"y": true, "b": null}]}, "timeout_ms": 5000,
                    "expected_answer": {"kind": "single_choice", "choices": ["x", "y"]}, "operation_id": "o"}),
                "855cb16f17878455567247dde766b4f0b9485d5ae9f1160d5002529f4217e823",
            ),
            (
                Tool::QuestionAnswer,
                json!({"feature_id": "a", "question_id": "q_01J9ZQ4V7K3M2N1P0R5S6T7V8W", "answered_by": "ann",
                    "answer": {"b": [1.5, "ü"], "a": {"d": 1, "c": 2}}, "operation_id": "o"}),
                "3d1bd84999a7410a9aede757c57a53b15586ede905e393a3f813c5d212b03f0c",
            ),
        ];
        let rules = Rules {
            human_input: HumanInput::default(),
            check_schema: |_| Ok(()),
            check_instance: |_, _| Ok(()),
        };
        for (tool, input, digest) in known {
            let Ok(Call::Mutate(request)) = parse(tool, &Caller::new(Role::Human), &input, "test", &rules)
            else {
                panic!("{input} is a mutation")
            };
            assert_eq!(request.digest, digest, "{input}");
        }
    }
}
