//! What makes two requests the same: tool, caller's role and the arguments with defaults filled in, whatever
//! the order of keys.

use crate::role::Role;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The digest of a request, as hexadecimal text.
pub(super) fn digest(tool: &str, role: Role, arguments: &Value) -> String {
    let mut text = format!("{tool}\n{role}\n").into_bytes();
    canonical(arguments, &mut text);
    hexadecimal(&text)
}

/// The digest of a JSON value, whatever the order of its keys.
pub fn digest_of(value: &Value) -> String {
    let mut text = Vec::new();
    canonical(value, &mut text);
    hexadecimal(&text)
}

fn hexadecimal(text: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    Sha256::digest(text).iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// JSON with sorted keys and no spaces.
fn canonical(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Object(map) => {
            let mut members: Vec<(&String, &Value)> = map.iter().collect();
            members.sort_unstable_by_key(|(key, _)| *key);
            out.push(b'{');
            for (index, (key, value)) in members.into_iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(key, out);
                out.push(b':');
                canonical(value, out);
            }
            out.push(b'}');
        }
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                canonical(item, out);
            }
            out.push(b']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => write(value, out),
    }
}

fn write(value: &impl Serialize, out: &mut Vec<u8>) {
    // Writing a scalar to memory cannot fail.
    let _ = serde_json::to_writer(out, value);
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
