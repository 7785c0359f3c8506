//! What makes two requests the same: tool, caller's role and the arguments with defaults filled in, whatever
//! the order of keys.

use crate::role::Role;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The digest of a request, as hexadecimal text.
pub(super) fn digest(tool: &str, role: Role, arguments: &Value) -> String {
    let mut text = format!("{tool}\n{role}\n");
    canonical(arguments, &mut text);
    hexadecimal(&text)
}

/// The digest of a JSON value, whatever the order of its keys.
pub fn digest_of(value: &Value) -> String {
    let mut text = String::new();
    canonical(value, &mut text);
    hexadecimal(&text)
}

fn hexadecimal(text: &str) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// JSON with sorted keys and no spaces.
fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            out.push('{');
            for (index, key) in keys.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::String(key.clone()).to_string());
                out.push(':');
                canonical(&map[key], out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                canonical(item, out);
            }
            out.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.push_str(&value.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_order_of_keys_does_not_matter() {
        let one = digest("t", Role::Human, &json!({"a": 1, "b": {"c": [1, 2], "d": null}}));
        let other = digest("t", Role::Human, &json!({"b": {"d": null, "c": [1, 2]}, "a": 1}));
        assert_eq!(one, other);
    }

    #[test]
    fn tool_role_and_every_value_matter() {
        let base = digest("t", Role::Human, &json!({"a": [1, 2]}));
        assert_ne!(base, digest("u", Role::Human, &json!({"a": [1, 2]})));
        assert_ne!(base, digest("t", Role::Orchestrator, &json!({"a": [1, 2]})));
        assert_ne!(base, digest("t", Role::Human, &json!({"a": [2, 1]})));
        assert_ne!(base, digest("t", Role::Human, &json!({"a": "[1,2]"})));
    }
}
