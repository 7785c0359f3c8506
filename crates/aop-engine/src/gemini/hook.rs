//! The stop hook: after an asking tool has answered "pending", the agent's loop is stopped and the process exits. It
//! decides by what the tool said and needs nothing else, no store and no environment: Gemini CLI keeps most
//! variables from its hooks.

use serde_json::{Value, json};

/// The tools of `aop mcp` that wait for people, as Gemini CLI names them.
pub(super) const WAITING_TOOLS: [&str; 2] = ["mcp_aop_ask_human", "mcp_aop_await_answer"];

/// How a stop for a question begins; the question's id follows.
const PARKED: &str = "PARKED ";

/// What the hook answers to what Gemini CLI told it.
pub fn after_tool(input: &Value) -> Value {
    let Some(question) = pending_question(&input["tool_response"]) else { return json!({}) };
    json!({"continue": false, "stopReason": format!(
        "{PARKED}{question}: your question is kept and a human is being asked. The next message tells you how it \
         ended. Do not ask it again before that."
    )})
}

/// The question that a stopped tool call waits for, by the words it was stopped with.
pub(super) fn parked_question(stop_reason: &str) -> Option<&str> {
    let rest = &stop_reason[stop_reason.find(PARKED)? + PARKED.len()..];
    let end = rest.find(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_').unwrap_or(rest.len());
    Some(&rest[..end]).filter(|id| id.starts_with("q_"))
}

/// The question in a result that says "pending". The envelope stands in the text, inside a frame of Gemini's.
pub(super) fn pending_question(response: &Value) -> Option<String> {
    let texts = [&response["returnDisplay"], &response["llmContent"]];
    let parts = texts.into_iter().flat_map(|value| match value {
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        other => other.as_str().into_iter().collect::<Vec<_>>(),
    });
    parts.filter_map(pending_in).next()
}

/// The question in a text that holds a pending envelope.
pub(super) fn pending_in(text: &str) -> Option<String> {
    let envelope = text.get(text.find('{')?..=text.rfind('}')?)?;
    let envelope: Value = serde_json::from_str(envelope).ok()?;
    let data = &envelope["data"];
    let is_pending = envelope["ok"] == true && data["status"] == "pending";
    data["question_id"].as_str().filter(|_| is_pending).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: &str) -> Value {
        let envelope = json!({"ok": true, "data": {"status": status, "question_id": "q_01ABC", "text": "…"}})
            .to_string();
        let framed = format!("<untrusted_context>\n{envelope}\n</untrusted_context>");
        json!({"tool_response": {"llmContent": [{"text": framed}], "returnDisplay": envelope}})
    }

    #[test]
    fn only_a_pending_question_stops_the_agent() {
        let stop = after_tool(&response("pending"));
        assert_eq!(stop["continue"], false);
        assert_eq!(parked_question(stop["stopReason"].as_str().unwrap()), Some("q_01ABC"));
        for status in ["answered", "expired", "withdrawn", "declined"] {
            assert_eq!(after_tool(&response(status)), json!({}), "{status}");
        }
        for odd in [json!(null), json!({}), json!({"tool_response": {"llmContent": "Error } {"}})] {
            assert_eq!(after_tool(&odd), json!({}), "{odd}");
        }
        let mut framed = response("pending");
        framed["tool_response"]["returnDisplay"] = json!("");
        assert_eq!(after_tool(&framed)["continue"], false, "the frame alone will do");
    }

    #[test]
    fn other_reasons_to_stop_name_no_question() {
        for reason in ["", "PARKED", "PARKED nothing", "a hook of the user's said so"] {
            assert_eq!(parked_question(reason), None, "{reason}");
        }
    }
}
