//! The messages of `codex app-server`: one JSON object per line, like JSON-RPC but without its `jsonrpc` member.

use serde_json::{Value, json};

/// What a line of the server is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Message {
    /// The reply to a request of ours.
    Reply {
        /// Our request.
        id: u64,
        /// What came of it; the error in the server's words.
        result: Result<Value, String>,
    },
    /// The server asks for something and waits.
    Request {
        /// To be repeated in the reply.
        id: Value,
        /// What it asks for.
        method: String,
        /// With what.
        params: Value,
    },
    /// The server tells something.
    Notice {
        /// What.
        method: String,
        /// About what.
        params: Value,
    },
    /// Nothing that we know.
    Noise,
}

/// Reads one line. Whatever it is, it is something.
pub(crate) fn read(line: &[u8]) -> Message {
    let Ok(Value::Object(mut fields)) = serde_json::from_slice::<Value>(line) else { return Message::Noise };
    let params = fields.shift_remove("params").unwrap_or_default();
    let id = fields.shift_remove("id");
    match (fields.shift_remove("method"), id) {
        (Some(Value::String(method)), Some(id)) => Message::Request { id, method, params },
        (Some(Value::String(method)), None) => Message::Notice { method, params },
        (None, Some(id)) => {
            let Some(id) = id.as_u64() else { return Message::Noise };
            let result = match (fields.shift_remove("result"), fields.get("error")) {
                (Some(result), _) => Ok(result),
                (None, error) => {
                    let words = error.and_then(|error| error.get("message")).and_then(Value::as_str);
                    Err(words.unwrap_or("an error without a message").to_owned())
                }
            };
            Message::Reply { id, result }
        }
        (Some(_) | None, _) => Message::Noise,
    }
}

/// A request of ours.
pub(super) fn request(id: u64, method: &str, params: &Value) -> Vec<u8> {
    line(&json!({"id": id, "method": method, "params": params}))
}

/// A notification of ours.
pub(super) fn notice(method: &str) -> Vec<u8> {
    line(&json!({"method": method}))
}

/// The reply to a request of the server's.
pub(super) fn reply(id: &Value, result: &Value) -> Vec<u8> {
    line(&json!({"id": id, "result": result}))
}

/// The reply to a request that we do not take.
pub(super) fn refusal(id: &Value, message: &str) -> Vec<u8> {
    line(&json!({"id": id, "error": {"code": -32601, "message": message}}))
}

fn line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_told_apart_by_its_members() {
        let request = br#"{"method":"item/tool/requestUserInput","id":0,"params":{"itemId":"c"}}"#;
        assert_eq!(
            read(request),
            Message::Request {
                id: json!(0),
                method: "item/tool/requestUserInput".into(),
                params: json!({"itemId": "c"})
            }
        );
        assert_eq!(
            read(br#"{"method":"turn/completed","params":{}}"#),
            Message::Notice { method: "turn/completed".into(), params: json!({}) }
        );
        assert_eq!(
            read(br#"{"id":3,"result":{"a":1}}"#),
            Message::Reply { id: 3, result: Ok(json!({"a": 1})) }
        );
        assert_eq!(
            read(br#"{"error":{"code":-32600,"message":"no rollout found"},"id":2}"#),
            Message::Reply { id: 2, result: Err("no rollout found".into()) }
        );
    }

    #[test]
    fn anything_else_is_noise() {
        for line in ["", "hello", "[]", "{}", r#"{"id":"x"}"#, r#"{"method":1}"#, "{\"id\":", "\u{0}"] {
            assert_eq!(read(line.as_bytes()), Message::Noise, "{line}");
        }
    }

    #[test]
    fn what_we_write_is_one_line_without_the_version_member() {
        let line = request(7, "turn/start", &json!({"input": [{"text": "a\nb"}]}));
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        assert!(line.ends_with(b"\n") && !String::from_utf8(line).unwrap().contains("jsonrpc"));
    }
}
