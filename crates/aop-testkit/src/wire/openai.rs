//! OpenAI Responses, as Codex calls it. Models of the newer kind are told their tools inside the conversation
//! (`additional_tools`), older ones in `tools`.

use super::{Answer, event, items, text_of};
use crate::received::{Part, Received, ToolResult};
use crate::script::Call;
use serde_json::{Value, json};

/// Requests without tools are the program's own; those of sub-agents say that they are not the root's.
pub(super) fn part(headers: &[(String, String)], body: &Value) -> Part {
    if tools(body).is_empty() {
        return Part::Helper;
    }
    let metadata = headers.iter().find(|(name, _)| name == "x-codex-turn-metadata");
    let metadata: Value =
        metadata.and_then(|(_, value)| serde_json::from_str(value).ok()).unwrap_or_default();
    match metadata["agent_name"].as_str() {
        None | Some("/root") => Part::Main,
        Some(_) => Part::SubAgent,
    }
}

pub(super) fn said(request: &Received, text: Option<&str>, calls: &[Call]) -> Answer {
    let mut output = Vec::new();
    if let Some(text) = text {
        output.push(json!({"type": "message", "id": "msg_fake", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}]}));
    }
    for call in calls {
        let mut item = json!({"type": "function_call", "id": format!("fc_{}", call.id), "status": "completed",
            "call_id": call.id, "name": call.name, "arguments": call.input.to_string()});
        if let Value::String(free) = &call.input {
            item = json!({"type": "custom_tool_call", "id": format!("ctc_{}", call.id), "status": "completed",
                "call_id": call.id, "name": call.name, "input": free});
        }
        if let Some(namespace) = &call.namespace {
            item["namespace"] = json!(namespace);
        }
        output.push(item);
    }
    let mut response = json!({"id": "resp_fake", "object": "response", "created_at": 1_700_000_000,
        "model": request.body["model"], "status": "in_progress", "output": []});
    let mut number = 0;
    let mut stream = String::new();
    let mut say = |kind: &str, mut data: Value| {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(number);
        number += 1;
        stream += &event(kind, &data);
    };
    say("response.created", json!({"response": response}));
    for (index, item) in output.iter().enumerate() {
        let mut begun = item.clone();
        begun["status"] = json!("in_progress");
        if item["type"] == "message" {
            begun["content"] = json!([]);
        }
        say("response.output_item.added", json!({"output_index": index, "item": begun}));
        if item["type"] == "message" {
            say(
                "response.output_text.delta",
                json!({"item_id": item["id"], "output_index": index, "content_index": 0,
                    "delta": item["content"][0]["text"]}),
            );
        }
        say("response.output_item.done", json!({"output_index": index, "item": item}));
    }
    response["status"] = json!("completed");
    response["output"] = json!(output);
    response["usage"] = json!({"input_tokens": 100, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 10, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 110});
    say("response.completed", json!({"response": response}));
    Answer::Events(stream)
}

pub(super) fn tool_results(body: &Value) -> Vec<ToolResult> {
    let outputs = items(&body["input"])
        .filter(|item| item["type"].as_str().is_some_and(|kind| kind.ends_with("call_output")));
    outputs
        .map(|item| ToolResult {
            call_id: text_of(&item["call_id"]),
            text: text_of(&item["output"]),
            is_error: false,
        })
        .collect()
}

pub(super) fn user_messages(body: &Value) -> Vec<String> {
    let users = items(&body["input"]).filter(|item| item["type"] == "message" && item["role"] == "user");
    users.flat_map(|item| items(&item["content"])).map(|block| text_of(&block["text"])).collect()
}

pub(super) fn tools(body: &Value) -> Vec<String> {
    let told = items(&body["input"]).filter(|item| item["type"] == "additional_tools");
    let all = items(&body["tools"]).chain(told.flat_map(|item| items(&item["tools"])));
    all.flat_map(|tool| {
        let name = text_of(if tool["name"].is_null() { &tool["type"] } else { &tool["name"] });
        let inner: Vec<String> =
            items(&tool["tools"]).map(|inner| format!("{name}.{}", text_of(&inner["name"]))).collect();
        if inner.is_empty() { vec![name] } else { inner }
    })
    .collect()
}
