//! The form of an output schema that Codex's structured output takes, and the way back.
//!
//! Strict structured output knows no alternatives at the root, wants every property required and every object
//! closed. So done and not done share one flat object: the marker, every property of the result (optional ones
//! may be `null`), and `message` with `ui_hints` for a question. Constraints it does not know (lengths, patterns,
//! formats) are left out: the answer is held against the real schema afterwards. What cannot be said at all
//! is reported, and the caller then asks for the form in words.

use serde_json::{Map, Value, json};

const ASK_FIELDS: [&str; 2] = ["message", "ui_hints"];

/// The flat form, or every reason why there is none.
pub fn flatten(schema: &Value) -> Result<Value, Vec<String>> {
    let mut reasons = Vec::new();
    let properties = schema.get("properties").and_then(Value::as_object);
    if schema.get("type").and_then(Value::as_str) != Some("object") || properties.is_none() {
        return Err(vec!["(root): only an object with properties can be flattened".to_owned()]);
    }
    for name in ASK_FIELDS.iter().chain([&crate::MARKER]) {
        if properties.is_some_and(|properties| properties.contains_key(*name)) {
            reasons.push(format!("/properties/{name}: the name is taken by the turn protocol"));
        }
    }
    // A question carries no result, so beside the marker everything may be null.
    let mut form = closed_object(schema, "", Absent::AllMayBeNull, &mut reasons);
    if let Some(definitions) = schema.get("$defs").and_then(Value::as_object) {
        let converted: Map<String, Value> = definitions
            .iter()
            .map(|(name, definition)| {
                (name.clone(), convert(definition, &format!("/$defs/{name}"), &mut reasons))
            })
            .collect();
        form.insert("$defs".into(), Value::Object(converted));
    }
    add_protocol_fields(&mut form);
    if reasons.is_empty() { Ok(Value::Object(form)) } else { Err(reasons) }
}

/// Takes a flat answer back into the shape of `schema`: what was `null` only because it had to be there goes.
pub fn project_back(schema: &Value, object: &Map<String, Value>) -> Map<String, Value> {
    let mut object = object.clone();
    for name in ASK_FIELDS {
        if schema.get("properties").and_then(|properties| properties.get(name)).is_none() {
            object.shift_remove(name);
        }
    }
    match without_nulls(schema, schema, &Value::Object(object), 0) {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Absent {
    OptionalMayBeNull,
    AllMayBeNull,
}

fn add_protocol_fields(form: &mut Map<String, Value>) {
    let text_or_null = json!({"type": ["string", "null"]});
    let choice = json!({"type": "object", "additionalProperties": false, "required": ["label", "value"],
        "properties": {"label": {"type": "string"}, "value": {"type": "string"}}});
    let hints = json!({"anyOf": [{"type": "null"}, {"type": "object", "additionalProperties": false,
        "required": ["kind", "hint", "options"],
        "properties": {"kind": text_or_null, "hint": text_or_null,
            "options": {"anyOf": [{"type": "null"}, {"type": "array", "items": choice}]}}}]});
    if let Some(Value::Object(properties)) = form.get_mut("properties") {
        properties.insert(crate::MARKER.into(), json!({"type": "boolean"}));
        properties.insert("message".into(), text_or_null);
        properties.insert("ui_hints".into(), hints);
    }
    if let Some(Value::Array(required)) = form.get_mut("required") {
        required.extend([crate::MARKER, "message", "ui_hints"].map(Value::from));
    }
}

fn convert(schema: &Value, path: &str, reasons: &mut Vec<String>) -> Value {
    let Value::Object(fields) = schema else {
        reasons.push(format!("{path}: anything goes there, which cannot be said"));
        return json!({});
    };
    if let Some(target) = fields.get("$ref") {
        return json!({"$ref": target});
    }
    let mut form = Map::new();
    if let Some(alternatives) = fields.get("anyOf").or_else(|| fields.get("oneOf")).and_then(Value::as_array)
    {
        let converted =
            alternatives.iter().enumerate().map(|(n, one)| convert(one, &format!("{path}/{n}"), reasons));
        form.insert("anyOf".into(), converted.collect::<Vec<_>>().into());
        return Value::Object(form);
    }
    for key in ["title", "description"] {
        if let Some(text) = fields.get(key) {
            form.insert(key.into(), text.clone());
        }
    }
    if let Some(constant) = fields.get("const") {
        form.insert("enum".into(), json!([constant]));
        return Value::Object(form);
    }
    if let Some(values) = fields.get("enum") {
        form.insert("enum".into(), values.clone());
        return Value::Object(form);
    }
    let types: Vec<&str> = match fields.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if types.is_empty() {
        reasons.push(format!("{path}: it has no type"));
    }
    if types.contains(&"object") {
        form.extend(closed_object(schema, path, Absent::OptionalMayBeNull, reasons));
    }
    if types.contains(&"array") {
        match fields.get("items") {
            Some(items) => form.insert("items".into(), convert(items, &format!("{path}/items"), reasons)),
            None => {
                reasons.push(format!("{path}: the list does not say what it holds"));
                None
            }
        };
    }
    form.insert("type".into(), fields.get("type").cloned().unwrap_or_default());
    Value::Object(form)
}

fn closed_object(
    schema: &Value,
    path: &str,
    absent: Absent,
    reasons: &mut Vec<String>,
) -> Map<String, Value> {
    let open = ["patternProperties", "allOf"].iter().find(|key| schema.get(**key).is_some());
    if let Some(key) = open {
        reasons.push(format!("{path}/{key}: it cannot be said in the flat form"));
    }
    if schema.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false)) {
        reasons.push(format!("{path}/additionalProperties: an open object cannot be said"));
    }
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        reasons.push(format!("{path}: an object without properties cannot be said"));
        return Map::new();
    };
    let mut converted = Map::new();
    for (name, property) in properties {
        let form = convert(property, &format!("{path}/properties/{name}"), reasons);
        let may_be_null = absent == Absent::AllMayBeNull || !is_required(schema, name);
        converted.insert(name.clone(), if may_be_null { nullable(form) } else { form });
    }
    let required: Vec<Value> = converted.keys().map(|name| name.clone().into()).collect();
    let mut form = Map::new();
    form.insert("type".into(), "object".into());
    form.insert("properties".into(), Value::Object(converted));
    form.insert("required".into(), required.into());
    form.insert("additionalProperties".into(), false.into());
    form
}

fn nullable(form: Value) -> Value {
    if accepts_null(&form) { form } else { json!({"anyOf": [form, {"type": "null"}]}) }
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema
        .get("required")
        .and_then(Value::as_array)
        .is_some_and(|names| names.iter().any(|item| item == name))
}

fn accepts_null(schema: &Value) -> bool {
    let has_null = |key: &str| match schema.get(key) {
        Some(Value::Array(items)) => items.iter().any(|item| item.is_null() || item == "null"),
        Some(value) => value == "null",
        None => false,
    };
    let alternative = |key: &str| {
        schema.get(key).and_then(Value::as_array).is_some_and(|items| items.iter().any(accepts_null))
    };
    has_null("type") || has_null("enum") || alternative("anyOf") || alternative("oneOf")
}

fn without_nulls(root: &Value, schema: &Value, value: &Value, hops: usize) -> Value {
    if let Some(target) = schema.get("$ref").and_then(Value::as_str).filter(|_| hops < 32) {
        let target = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return target.map_or_else(|| value.clone(), |target| without_nulls(root, target, value, hops + 1));
    }
    match value {
        Value::Object(fields) => {
            let property = |name: &str| schema.get("properties").and_then(|properties| properties.get(name));
            let kept = fields.iter().filter(|(name, value)| {
                !value.is_null() || is_required(schema, name) || property(name).is_none_or(accepts_null)
            });
            kept.map(|(name, value)| {
                let value = match property(name) {
                    Some(property) => without_nulls(root, property, value, hops),
                    None => value.clone(),
                };
                (name.clone(), value)
            })
            .collect()
        }
        Value::Array(items) => match schema.get("items") {
            Some(schema) => items.iter().map(|item| without_nulls(root, schema, item, hops)).collect(),
            None => value.clone(),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Value {
        json!({"type": "object", "required": ["summary", "files"], "properties": {
            "summary": {"type": "string", "minLength": 1},
            "files": {"type": "array", "items": {"$ref": "#/$defs/file"}},
            "risk": {"enum": ["low", "high"]},
            "note": {"type": ["string", "null"]}},
            "$defs": {"file": {"type": "object", "required": ["path"], "properties": {
                "path": {"type": "string"}, "lines": {"type": "integer"}}}}})
    }

    #[test]
    fn the_flat_form_is_closed_and_requires_everything() {
        let form = flatten(&report()).unwrap();
        assert_eq!(form["additionalProperties"], false);
        assert_eq!(
            form["required"],
            json!(["summary", "files", "risk", "note", "__SKILL_DONE__", "message", "ui_hints"])
        );
        assert_eq!(form["properties"]["summary"], json!({"anyOf": [{"type": "string"}, {"type": "null"}]}));
        assert_eq!(form["properties"]["note"], json!({"type": ["string", "null"]}));
        let file = &form["$defs"]["file"];
        assert_eq!(file["required"], json!(["path", "lines"]));
        assert_eq!(file["properties"]["path"], json!({"type": "string"}));
        assert_eq!(aop_schema::check_schema(&form), Ok(()));
    }

    #[test]
    fn a_result_survives_the_way_there_and_back() {
        let flat = json!({"__SKILL_DONE__": true, "summary": "s", "files": [{"path": "a", "lines": null}],
            "risk": null, "note": null, "message": null, "ui_hints": null});
        assert_eq!(aop_schema::check_instance(&flatten(&report()).unwrap(), &flat), Ok(()));
        let mut object = flat.as_object().unwrap().clone();
        object.shift_remove("__SKILL_DONE__");
        let back = Value::Object(project_back(&report(), &object));
        assert_eq!(back, json!({"summary": "s", "files": [{"path": "a"}], "note": null}));
        assert_eq!(aop_schema::check_instance(&report(), &back), Ok(()));
    }

    #[test]
    fn a_question_fits_the_flat_form_too() {
        let flat = json!({"__SKILL_DONE__": false, "summary": null, "files": null, "risk": null, "note": null,
            "message": "Which?", "ui_hints": {"kind": "choose_one", "hint": null, "options": [{"label": "A", "value": "a"}]}});
        assert_eq!(aop_schema::check_instance(&flatten(&report()).unwrap(), &flat), Ok(()));
    }

    #[test]
    fn what_cannot_be_said_is_reported() {
        for (schema, word) in [
            (json!({"type": "array"}), "root"),
            (json!({"type": "object", "properties": {"message": {"type": "string"}}}), "message"),
            (json!({"type": "object", "properties": {"m": {"type": "object"}}}), "without properties"),
            (json!({"type": "object", "properties": {"m": true}}), "anything"),
            (json!({"type": "object", "properties": {"m": {"type": "array"}}}), "list"),
            (
                json!({"type": "object", "properties": {"m": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
                "open",
            ),
        ] {
            assert!(flatten(&schema).unwrap_err().join("\n").contains(word), "{schema}");
        }
    }
}
