//! Gemini `generateContent`, as Gemini CLI calls it.

use super::{Answer, items, text_of};
use crate::received::{Part, Received, ToolResult};
use crate::script::Call;
use serde_json::{Value, json};

/// How a sub-agent ends.
const COMPLETE_TASK: &str = "complete_task";

/// The agent streams and has tools; routing, summaries and checks do without one or the other. Only sub-agents
/// have a tool to hand in their result.
pub(super) fn part(path: &str, body: &Value) -> Part {
    let tools = tools(body);
    if tools.is_empty() || !path.contains(":streamGenerateContent") {
        Part::Helper
    } else if tools.iter().any(|tool| tool == COMPLETE_TASK) {
        Part::SubAgent
    } else {
        Part::Main
    }
}

pub(super) fn helped(request: &Received) -> Answer {
    if request.path.contains(":countTokens") {
        return Answer::Document(json!({"totalTokens": 10}));
    }
    let config = &request.body["generationConfig"];
    let structured =
        config["responseMimeType"] == "application/json" || !config["responseJsonSchema"].is_null();
    // Every field that a helper of the program reads; each takes what it knows.
    let fields = json!({"reasoning": "fake", "model_choice": "flash", "complexity_reasoning": "fake",
        "complexity_score": 1, "next_speaker": "user", "summary": "fake"});
    let text = if structured { fields.to_string() } else { "ok".to_owned() };
    said(request, Some(&text), &[])
}

pub(super) fn said(request: &Received, text: Option<&str>, calls: &[Call]) -> Answer {
    let mut parts: Vec<Value> = text.map(|text| json!({"text": text})).into_iter().collect();
    parts.extend(
        calls
            .iter()
            .map(|call| json!({"functionCall": {"id": call.id, "name": call.name, "args": call.input}})),
    );
    let document = json!({
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}});
    if request.path.contains(":streamGenerateContent") {
        Answer::Events(format!("data: {document}\n\n"))
    } else {
        Answer::Document(document)
    }
}

fn user_parts(body: &Value) -> impl Iterator<Item = &Value> {
    let users = items(&body["contents"]).filter(|content| content["role"] == "user");
    users.flat_map(|content| items(&content["parts"]))
}

pub(super) fn tool_results(body: &Value) -> Vec<ToolResult> {
    let results = user_parts(body).filter(|part| part.get("functionResponse").is_some());
    results
        .map(|part| {
            let response = &part["functionResponse"]["response"];
            let is_error = response.get("error").is_some();
            let told = if is_error { &response["error"] } else { &response["output"] };
            let text = text_of(if told.is_null() { response } else { told });
            ToolResult { call_id: text_of(&part["functionResponse"]["id"]), text, is_error }
        })
        .collect()
}

pub(super) fn user_messages(body: &Value) -> Vec<String> {
    user_parts(body).filter_map(|part| part["text"].as_str().map(str::to_owned)).collect()
}

pub(super) fn tools(body: &Value) -> Vec<String> {
    let declared = items(&body["tools"]).flat_map(|tool| items(&tool["functionDeclarations"]));
    declared.map(|declaration| text_of(&declaration["name"])).collect()
}
