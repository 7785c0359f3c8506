//! Anthropic Messages, as Claude Code calls it.

use super::{Answer, event, items, text_of};
use crate::received::{Part, Received, ToolResult};
use crate::script::Call;
use serde_json::{Value, json};

/// Requests without tools are the program's own; those of sub-agents carry their name in a header.
pub(super) fn part(headers: &[(String, String)], body: &Value) -> Part {
    if items(&body["tools"]).next().is_none() {
        Part::Helper
    } else if headers.iter().any(|(name, _)| name == "x-claude-code-agent-id") {
        Part::SubAgent
    } else {
        Part::Main
    }
}

pub(super) fn helped(request: &Received) -> Answer {
    let path = request.path.split('?').next().unwrap_or_default();
    if path.ends_with("/messages") {
        return said(request, Some("ok"), &[]);
    }
    Answer::Document(match path {
        counting if counting.ends_with("/count_tokens") => json!({"input_tokens": 100}),
        models if models.ends_with("/models") => json!({"data": [], "has_more": false}),
        _ => json!({}),
    })
}

pub(super) fn said(request: &Received, text: Option<&str>, calls: &[Call]) -> Answer {
    let mut blocks: Vec<Value> = text.map(|text| json!({"type": "text", "text": text})).into_iter().collect();
    blocks.extend(
        calls
            .iter()
            .map(|call| json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.input})),
    );
    let stop = if calls.is_empty() { "end_turn" } else { "tool_use" };
    let mut message = json!({"id": "msg_fake", "type": "message", "role": "assistant",
        "model": request.body["model"], "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 100, "output_tokens": 1,
            "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}});
    if request.body["stream"] != true {
        message["content"] = json!(blocks);
        message["stop_reason"] = json!(stop);
        return Answer::Document(message);
    }
    let mut stream = event("message_start", &json!({"type": "message_start", "message": message}));
    for (index, block) in blocks.iter().enumerate() {
        let (start, delta) = if block["type"] == "text" {
            (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": block["text"]}))
        } else {
            let start = json!({"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}});
            (start, json!({"type": "input_json_delta", "partial_json": block["input"].to_string()}))
        };
        let of = |kind: &str, key: &str, value: Value| json!({"type": kind, "index": index, key: value});
        stream += &event("content_block_start", &of("content_block_start", "content_block", start));
        stream += &event("content_block_delta", &of("content_block_delta", "delta", delta));
        stream += &event("content_block_stop", &json!({"type": "content_block_stop", "index": index}));
    }
    let end = json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null},
        "usage": {"output_tokens": 20}});
    stream += &event("message_delta", &end);
    stream += &event("message_stop", &json!({"type": "message_stop"}));
    Answer::Events(stream)
}

fn user_blocks(body: &Value) -> impl Iterator<Item = &Value> {
    let users = items(&body["messages"]).filter(|message| message["role"] == "user");
    users.flat_map(|message| items(&message["content"]))
}

pub(super) fn tool_results(body: &Value) -> Vec<ToolResult> {
    let results = user_blocks(body).filter(|block| block["type"] == "tool_result");
    results
        .map(|block| ToolResult {
            call_id: text_of(&block["tool_use_id"]),
            text: text_of(&block["content"]),
            is_error: block["is_error"] == true,
        })
        .collect()
}

pub(super) fn user_messages(body: &Value) -> Vec<String> {
    let mut texts = Vec::new();
    for message in items(&body["messages"]).filter(|message| message["role"] == "user") {
        match &message["content"] {
            Value::String(text) => texts.push(text.clone()),
            blocks => texts.extend(
                items(blocks).filter(|block| block["type"] == "text").map(|block| text_of(&block["text"])),
            ),
        }
    }
    texts
}

pub(super) fn tools(body: &Value) -> Vec<String> {
    items(&body["tools"]).map(|tool| text_of(&tool["name"])).collect()
}
