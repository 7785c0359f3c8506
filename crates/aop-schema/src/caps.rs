//! The limits that a schema has to keep before it is compiled at all.

use serde_json::Value;

/// Size of the schema as compact JSON.
const MAX_SCHEMA_BYTES: usize = 64 * 1024;
/// Nesting of the schema. Each level costs stack while compiling and while validating.
const MAX_SCHEMA_DEPTH: usize = 64;
/// Nesting of an instance: what the JSON reader accepts anyway.
const MAX_INSTANCE_DEPTH: usize = 128;
/// The dialect, as `$schema` may name it.
const DIALECTS: [&str; 2] =
    ["https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2020-12/schema#"];

/// Checks type, size, nesting and dialect.
pub(crate) fn check_schema_shape(schema: &Value) -> Result<(), Vec<String>> {
    let Value::Object(fields) = schema else {
        return match schema {
            Value::Bool(_) => Ok(()),
            _ => Err(vec!["(root): a schema is an object or a boolean".to_owned()]),
        };
    };
    let mut reasons = Vec::new();
    // Depth first: serializing recurses, so a value that somebody built too deep must not get that far.
    if exceeds_depth(schema, MAX_SCHEMA_DEPTH) {
        return Err(vec![format!("(root): the schema is nested deeper than {MAX_SCHEMA_DEPTH} levels")]);
    }
    let bytes = schema.to_string().len();
    if bytes > MAX_SCHEMA_BYTES {
        reasons.push(format!("(root): the schema has {bytes} bytes, at most {MAX_SCHEMA_BYTES} are taken"));
    }
    if let Some(dialect) = fields.get("$schema")
        && !DIALECTS.iter().any(|known| dialect == known)
    {
        reasons.push(format!("/$schema: {dialect} is not supported, only JSON Schema 2020-12 is"));
    }
    if reasons.is_empty() { Ok(()) } else { Err(reasons) }
}

/// Checks the nesting of an instance.
pub(crate) fn check_instance_depth(instance: &Value) -> Result<(), String> {
    if exceeds_depth(instance, MAX_INSTANCE_DEPTH) {
        return Err(format!("(root): the value is nested deeper than {MAX_INSTANCE_DEPTH} levels"));
    }
    Ok(())
}

/// Walks with its own stack: the value may be deeper than the program's.
fn exceeds_depth(value: &Value, limit: usize) -> bool {
    let mut open = vec![(value, 1)];
    while let Some((value, depth)) = open.pop() {
        if depth > limit {
            return true;
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(fields) => open.extend(fields.values().map(|item| (item, depth + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    false
}
