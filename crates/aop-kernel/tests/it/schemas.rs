//! The schemas that clients are shown say what the parser does.

use crate::support::rules;
use aop_kernel::policy::HumanInput;
use aop_kernel::role::{Caller, Role};
use aop_kernel::tools::{Tool, envelope_schema, parse};
use aop_kernel::{ErrorCode, Refusal};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

const QUESTION: &str = "q_01JAAAAAAAAAAAAAAAAAAAAAAA";

/// A value that the parser takes for an argument.
fn sample(tool: Tool, key: &str) -> Value {
    match key {
        "feature_id" => json!("shop"),
        "question_id" => json!(QUESTION),
        "role" => json!("builder"),
        "question_type" => json!("clarification"),
        "default_decision_policy" => json!("decline"),
        "to" => json!("qa"),
        "status" => json!(if tool == Tool::FeatureList { "qa" } else { "all" }),
        "all" | "blocking" => json!(true),
        "timeout_ms" => json!(5),
        "details" | "interaction" => json!({"a": 1}),
        "expected_answer" => json!({"kind": "form"}),
        "spec" if tool == Tool::QuestionCreate => json!({
            "version": 1, "topic": "t",
            "questions": [{"id": "a", "header": "A", "question": "A?", "kind": "free_text", "required": true}],
        }),
        _ => json!("text"),
    }
}

fn call(tool: Tool, input: &Map<String, Value>) -> Result<(), Refusal> {
    let caller = Caller::new(Role::Human);
    parse(tool, &caller, &Value::Object(input.clone()), "test", &rules(HumanInput::default())).map(|_| ())
}

fn names(list: &Value) -> BTreeSet<String> {
    list.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// All arguments of a tool, and those it cannot do without, as its schema has them.
fn by_schema(tool: Tool) -> (BTreeSet<String>, BTreeSet<String>) {
    let schema = tool.input_schema();
    assert_eq!(schema["additionalProperties"], false, "{}", tool.name());
    (schema["properties"].as_object().unwrap().keys().cloned().collect(), names(&schema["required"]))
}

fn full(tool: Tool, keys: &BTreeSet<String>) -> Map<String, Value> {
    keys.iter().map(|key| (key.clone(), sample(tool, key))).collect()
}

#[test]
fn every_argument_of_a_schema_is_taken_and_every_required_one_is_missed() {
    for tool in Tool::ALL.iter().copied() {
        let (all, required) = by_schema(tool);
        call(tool, &full(tool, &all)).unwrap_or_else(|refusal| panic!("{}: {refusal}", tool.name()));
        call(tool, &full(tool, &required)).unwrap_or_else(|refusal| panic!("{}: {refusal}", tool.name()));
        for key in &required {
            let mut input = full(tool, &required);
            input.remove(key);
            let refusal = call(tool, &input).unwrap_err();
            if key == "operation_id" {
                assert_eq!(refusal.code, ErrorCode::OperationIdRequired, "{}", tool.name());
            } else {
                assert_eq!(refusal.facts["argument"], *key, "{}: {refusal}", tool.name());
            }
        }
    }
}

#[test]
fn the_parser_knows_no_argument_that_the_schema_leaves_out() {
    for tool in Tool::ALL.iter().copied() {
        let (all, required) = by_schema(tool);
        let mut input = full(tool, &required);
        input.insert("nonsense".into(), json!(1));
        let refusal = call(tool, &input).unwrap_err();
        assert_eq!(refusal.facts["argument"], "nonsense", "{}", tool.name());
        let known = refusal.hint.trim_start_matches("it takes ").split(", ").map(str::to_owned).collect();
        assert_eq!(all, known, "{}", tool.name());
    }
}

#[test]
fn every_name_of_an_enum_is_taken_and_no_other() {
    for tool in Tool::ALL.iter().copied() {
        let schema = tool.input_schema();
        for (key, property) in schema["properties"].as_object().unwrap() {
            let Some(list) = property.get("enum") else { continue };
            let (_, required) = by_schema(tool);
            let mut input = full(tool, &required);
            for name in names(list) {
                input.insert(key.clone(), json!(name));
                call(tool, &input).unwrap_or_else(|refusal| panic!("{} {key}: {refusal}", tool.name()));
            }
            input.insert(key.clone(), json!("nonsense"));
            assert_eq!(call(tool, &input).unwrap_err().facts["argument"], *key, "{}", tool.name());
        }
    }
}

/// A model is shown a form that is shorter than the schema of the document; what it says is the same.
#[test]
fn the_form_that_tools_show_says_of_its_keys_what_the_schema_of_the_document_says() {
    let document = aop_ask::schema::question_spec();
    let form = Tool::QuestionCreate.input_schema()["properties"]["spec"].clone();
    let question = (&form["properties"]["questions"]["items"], &document["$defs"]["question"]);
    let option = (&question.0["properties"]["options"]["items"], &document["$defs"]["option"]);
    for (shown, whole) in [(&form, &document), question, option] {
        assert_eq!(names(&shown["required"]), names(&whole["required"]));
        for (key, property) in shown["properties"].as_object().unwrap() {
            let whole = &whole["properties"][key];
            let said = property.as_object().unwrap().iter();
            for (word, value) in said.filter(|(word, _)| !["description", "items"].contains(&word.as_str())) {
                // Names in a list are texts, also where that is not said.
                let implied = word == "type" && whole.get("enum").is_some();
                assert!(implied || whole[word] == *value, "{key}: {word} {value}");
            }
        }
    }
}

#[test]
fn a_form_of_any_version_from_one_on_is_asked_as_it_is_checked() {
    let (_, required) = by_schema(Tool::QuestionCreate);
    for (version, good) in [(json!(1), true), (json!(2), true), (json!(0), false), (json!("1"), false)] {
        let mut input = full(Tool::QuestionCreate, &required);
        let mut spec = sample(Tool::QuestionCreate, "spec");
        spec["version"] = version.clone();
        assert_eq!(aop_ask::spec::QuestionSpec::from_json(&spec).is_ok(), good, "{version}");
        input.insert("spec".into(), spec);
        assert_eq!(call(Tool::QuestionCreate, &input).is_ok(), good, "{version}");
    }
}

#[test]
fn the_envelope_schema_names_what_a_refusal_carries() {
    let schema = envelope_schema();
    let refusal = Refusal::invalid_argument("no").to_json();
    for (place, value) in [
        (&schema["properties"], &refusal),
        (&schema["properties"]["error"]["properties"], &refusal["error"]),
        (&schema["properties"]["error"]["properties"]["details"]["properties"], &refusal["error"]["details"]),
    ] {
        for key in value.as_object().unwrap().keys() {
            assert!(place.get(key).is_some(), "{key}");
        }
    }
}
