//! The committed JSON Schemas are what the code says, and never stricter than the validator.

use crate::arbitrary::case;
use crate::mistakes;
use aop_ask::{AnswerSpec, Answers, QuestionSpec, prompts, schema};
use jsonschema::Validator;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::LazyLock;

static QUESTION_SPEC: LazyLock<Validator> =
    LazyLock::new(|| jsonschema::validator_for(&schema::question_spec()).unwrap());
static ANSWER_SPEC: LazyLock<Validator> =
    LazyLock::new(|| jsonschema::validator_for(&schema::answer_spec()).unwrap());

/// `UPDATE_SCHEMAS=1` writes the files anew.
#[test]
fn the_committed_schemas_are_up_to_date() {
    for (name, schema) in schema::all() {
        let path = format!("{}/../../schemas/{name}", env!("CARGO_MANIFEST_DIR"));
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "{name}: run with UPDATE_SCHEMAS=1");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 100, ..ProptestConfig::default() })]

    #[test]
    fn every_valid_document_fits_its_schema(case in case()) {
        prop_assert!(QUESTION_SPEC.is_valid(&case.spec.to_json()));
        let answers: Value = case.means.iter().map(|(id, value)| (id.clone(), value.to_json())).collect();
        let answers = Answers::check(&case.spec, &answers).unwrap();
        let record = AnswerSpec::new(&case.spec, &answers, "2026-03-04T22:00:00.123+01:00", "human").unwrap();
        prop_assert!(ANSWER_SPEC.is_valid(&record.to_json()));
    }
}

#[test]
fn the_mistakes_a_schema_can_see_are_seen() {
    let beyond = ["duplicate ids", "duplicate labels", "default is no label", "other text as default"];
    for (name, document) in mistakes::documents() {
        assert!(QuestionSpec::from_json(&document).is_err(), "{name}");
        assert_eq!(QUESTION_SPEC.is_valid(&document), beyond.contains(&name), "{name}");
    }
}

#[test]
fn the_worked_examples_fit_the_prompt_schema() {
    let validator = jsonschema::validator_for(&schema::prompt_spec()).unwrap();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/prompts");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let document: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            assert!(validator.is_valid(&document), "{}", path.display());
            assert!(prompts::check_json(&document).errors.is_empty());
            seen += 1;
            let spoiled = crate::support::with(&document, "/protocol", Some(json!("No")));
            assert!(!validator.is_valid(&spoiled));
        }
    }
    assert_eq!(seen, 4);
}
