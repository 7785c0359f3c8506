//! How much work a schema can make of a value, found out before any of it is done.
//!
//! References may fan out: thirty definitions that each name the next one twice are a billion checks, in a
//! schema of two kilobytes. The validator has no budget of its own, so this module walks schema and value
//! together, only counting steps, and refuses what would not end in reasonable time. To be able to walk,
//! it admits references of the forms `#` and `#/pointer` only, which are what generators write.

use serde_json::{Map, Value};

/// Steps that any value may take, however small.
const BASE_STEPS: usize = 100_000;
/// Further steps for each node of the value.
const STEPS_PER_NODE: usize = 64;

/// Keywords whose value is a schema, or a list of them, for the same place in the value.
const IN_PLACE: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];
/// Keywords whose value is a schema, or a list of them, for the children of the place.
const CHILDREN: [&str; 8] = [
    "items",
    "prefixItems",
    "contains",
    "additionalProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "propertyNames",
    "contentSchema",
];
/// Keywords whose value maps names to schemas.
const MAPS: [&str; 5] = ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];

/// Checks that references have a form that can be followed here, and that no place in a value, however
/// small, costs too much.
pub(crate) fn check_schema(root: &Value) -> Result<(), Vec<String>> {
    let mut subschemas = vec![root];
    let mut reasons = Vec::new();
    let mut next = 0;
    while let Some(&schema) = subschemas.get(next) {
        next += 1;
        let Value::Object(fields) = schema else { continue };
        reasons.extend(reference_problem(root, fields, std::ptr::eq(schema, root)));
        for keyword in IN_PLACE.iter().chain(&CHILDREN) {
            subschemas.extend(listed(fields.get(*keyword)));
        }
        for keyword in MAPS {
            subschemas.extend(mapped(fields.get(keyword)));
        }
    }
    if !reasons.is_empty() {
        return Err(reasons);
    }
    let places = subschemas.into_iter().map(|schema| (schema, None)).collect();
    walk(root, places, BASE_STEPS).map_err(|reason| vec![reason])
}

/// Checks that this value does not cost too much.
pub(crate) fn check_instance(root: &Value, instance: &Value) -> Result<(), String> {
    let budget = BASE_STEPS + STEPS_PER_NODE * count_nodes(instance);
    walk(root, vec![(root, Some(instance))], budget)
}

/// Visits every pair of schema and place that validation may visit, starting from `open`. Where there is no
/// value, only what applies to the same place is followed.
fn walk<'a>(
    root: &'a Value,
    mut open: Vec<(&'a Value, Option<&'a Value>)>,
    budget: usize,
) -> Result<(), String> {
    let mut steps = 0;
    while let Some((schema, place)) = open.pop() {
        steps += 1;
        if steps > budget {
            return Err(format!(
                "(root): checking would take more than {budget} steps; references that fan out or lead back \
                 to themselves are refused"
            ));
        }
        let Value::Object(fields) = schema else { continue };
        if let Some(target) = fields.get("$ref").and_then(Value::as_str).and_then(|text| follow(root, text)) {
            open.push((target, place));
        }
        for keyword in IN_PLACE {
            open.extend(listed(fields.get(keyword)).map(|sub| (sub, place)));
        }
        open.extend(mapped(fields.get("dependentSchemas")).map(|sub| (sub, place)));
        let Some(place) = place else { continue };
        for keyword in CHILDREN {
            for sub in listed(fields.get(keyword)) {
                open.extend(children(place).map(|child| (sub, Some(child))));
            }
        }
        if let (Some(Value::Object(named)), Value::Object(values)) = (fields.get("properties"), place) {
            open.extend(
                values.iter().filter_map(|(name, child)| named.get(name).map(|schema| (schema, Some(child)))),
            );
        }
        for sub in mapped(fields.get("patternProperties")) {
            open.extend(children(place).map(|child| (sub, Some(child))));
        }
    }
    Ok(())
}

fn reference_problem(root: &Value, fields: &Map<String, Value>, is_root: bool) -> Option<String> {
    if let Some(Value::String(target)) = fields.get("$dynamicRef") {
        return Some(format!("(root): $dynamicRef '{target}' is not supported, use $ref"));
    }
    if let (Some(Value::String(id)), false) = (fields.get("$id"), is_root) {
        return Some(format!("(root): the embedded $id '{id}' is not supported, only the root may have one"));
    }
    let Some(Value::String(target)) = fields.get("$ref") else { return None };
    if !target.starts_with('#') {
        return Some(format!(
            "(root): $ref '{target}' lies outside the schema, and references outside it are never followed"
        ));
    }
    if !target[1..].is_empty() && !target.starts_with("#/") {
        return Some(format!(
            "(root): $ref '{target}' names an anchor, and anchors are not supported; use its place, for instance #/$defs/…"
        ));
    }
    if follow(root, target).is_none() {
        return Some(format!("(root): $ref '{target}' leads to nothing in the schema"));
    }
    None
}

fn follow<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    root.pointer(&percent_decoded(pointer))
}

/// A pointer in a URI fragment may carry `%24defs` for `$defs`.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let hex = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if first == b'%' => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn listed(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    let (one, many) = match value {
        Some(Value::Array(items)) => (None, items.as_slice()),
        Some(value @ Value::Object(_)) => (Some(value), [].as_slice()),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {
            (None, [].as_slice())
        }
    };
    one.into_iter().chain(many)
}

fn mapped(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_object).into_iter().flat_map(Map::values)
}

fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(fields) => Box::new(fields.values()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Box::new(std::iter::empty()),
    }
}

fn count_nodes(value: &Value) -> usize {
    let mut open = vec![value];
    let mut count = 0;
    while let Some(value) = open.pop() {
        count += 1;
        open.extend(children(value));
    }
    count
}
