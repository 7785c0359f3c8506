//! What agents may and may not hand in as a schema.

use super::*;
use serde_json::json;

fn refused(schema: &Value) -> String {
    check_schema(schema).unwrap_err().join("\n")
}

#[test]
fn objects_and_booleans_are_schemas() {
    assert_eq!(check_schema(&json!({})), Ok(()));
    assert_eq!(check_schema(&json!(true)), Ok(()));
    assert_eq!(
        check_schema(&json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"})),
        Ok(())
    );
}

#[test]
fn anything_else_is_refused_in_words() {
    assert!(refused(&json!([])).contains("object or a boolean"));
    assert!(refused(&json!({"type": "objekt"})).starts_with("/type: "));
    assert!(refused(&json!({"type": 3, "required": "x"})).lines().count() >= 2);
    assert!(refused(&json!({"$schema": "http://json-schema.org/draft-07/schema#"})).contains("2020-12"));
}

#[test]
fn size_and_nesting_are_capped() {
    assert!(refused(&json!({"description": "x".repeat(70_000)})).contains("65536"));
    let mut deep = json!({});
    for _ in 0..200 {
        deep = json!({"not": deep});
    }
    assert!(refused(&deep).contains("nested"));
    assert!(check_instance(&json!(true), &deep).unwrap_err()[0].contains("nested"));
}

#[test]
fn references_never_leave_the_document() {
    for target in ["https://example.com/s.json", "file:///etc/passwd", "other.json"] {
        assert!(refused(&json!({"$ref": target})).contains("never followed"), "{target}");
    }
    let local = json!({"$defs": {"n": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/n"}}});
    assert_eq!(check_instance(&local, &json!({"a": 1})), Ok(()));
    assert!(check_instance(&local, &json!({"a": "x"})).unwrap_err()[0].starts_with("/a: "));
}

#[test]
fn every_reason_is_reported_with_its_path() {
    let schema = json!({"type": "object", "required": ["a"], "properties": {"b": {"type": "integer"}}});
    let reasons = check_instance(&schema, &json!({"b": "x"})).unwrap_err();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(reasons.iter().any(|reason| reason.starts_with("/b: ")));
    assert!(reasons.iter().any(|reason| reason.starts_with("(root): ")));
}

#[test]
fn long_lists_of_reasons_are_cut() {
    let reasons = check_instance(&json!({"items": {"type": "string"}}), &json!((0..500).collect::<Vec<_>>()))
        .unwrap_err();
    assert_eq!(reasons.len(), MAX_REASONS + 1);
    assert!(reasons[MAX_REASONS].contains("400 more"));
}

#[test]
fn a_catastrophic_pattern_does_not_hang() {
    let schema = json!({"pattern": "^(a+)+$"});
    let started = std::time::Instant::now();
    assert!(check_instance(&schema, &json!(format!("{}!", "a".repeat(50_000)))).is_err());
    assert!(started.elapsed().as_secs() < 5);
}

#[test]
fn patterns_that_need_backtracking_or_much_memory_are_refused() {
    for pattern in [r"(a)\1", "(?=a)b", "((((a{100}){100}){100}){100})"] {
        assert!(check_schema(&json!({"pattern": pattern})).is_err(), "{pattern}");
        assert!(check_schema(&json!({"patternProperties": {pattern: true}})).is_err(), "{pattern}");
    }
}

#[test]
fn a_schema_that_refers_to_itself_in_place_is_refused() {
    assert!(refused(&json!({"allOf": [{"$ref": "#"}]})).contains("lead back"));
    assert!(refused(&json!({"properties": {"a": {"$ref": "#/properties/a"}}})).contains("lead back"));
}

#[test]
fn recursive_schemas_are_fine_as_long_as_the_value_gets_smaller() {
    let tree = json!({"type": "object", "properties": {
        "left": {"$ref": "#"}, "right": {"$ref": "#"}, "items": {"items": {"$ref": "#"}}}});
    assert_eq!(check_instance(&tree, &json!({"left": {"right": {}}, "items": [{}, {"left": {}}]})), Ok(()));
    assert!(check_instance(&tree, &json!({"left": {"right": 1}})).unwrap_err()[0].starts_with("/left/right"));
}

#[test]
fn references_that_double_at_each_step_are_refused() {
    let mut defs = serde_json::Map::new();
    for n in 0..60 {
        let next = format!("#/$defs/d{}", n + 1);
        defs.insert(format!("d{n}"), json!({"allOf": [{"$ref": next}, {"$ref": next}]}));
    }
    defs.insert("d60".into(), json!({"type": "integer"}));
    assert!(refused(&json!({"$defs": defs, "$ref": "#/$defs/d0"})).contains("fan out"));
}

#[test]
fn references_that_double_with_the_depth_of_the_value_are_refused_for_that_value() {
    let schema = json!({"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}});
    let mut value = json!(1);
    for _ in 0..100 {
        value = json!({"a": value});
    }
    assert_eq!(check_instance(&schema, &json!({"a": {"a": 1}})), Ok(()));
    assert!(check_instance(&schema, &value).unwrap_err()[0].contains("fan out"));
}

#[test]
fn a_percent_encoded_pointer_is_followed() {
    let schema = json!({"$defs": {"n": {"type": "integer"}}, "$ref": "#/%24defs/n"});
    assert!(check_instance(&schema, &json!("x")).is_err());
    assert!(refused(&json!({"$ref": "#/nowhere"})).contains("leads to nothing"));
    let anchor = json!({"$defs": {"n": {"$anchor": "n", "type": "integer"}}, "$ref": "#n"});
    assert!(refused(&anchor).contains("anchors are not supported"));
}
