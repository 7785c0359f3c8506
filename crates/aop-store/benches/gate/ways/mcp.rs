//! `aop serve` over MCP at `/mcp`, without sessions: the tools that ask, wait and answer.

use super::{Cycle, Http, Serving, Way, answer, feature, question};
use serde_json::{Value, json};

pub(super) const NAME: &str = "MCP";

pub(super) struct OverMcp {
    pub(super) serving: Serving,
}

impl Way for OverMcp {
    fn name(&self) -> &'static str {
        NAME
    }

    fn caller(&self, id: &str) -> Cycle<'_> {
        let (mut acts, mut waits) = (self.serving.connect(), self.serving.connect());
        call(&mut acts, "feature.create", &feature(id));
        let id = id.to_owned();
        Box::new(move || {
            let asked = call(&mut acts, "feature.question_create", &question(&id));
            let asked = &asked["question_id"];
            send(&mut waits, "await_answer", &json!({"question_id": asked}));
            call(&mut acts, "feature.question_answer", &answer(&id, asked));
            assert_eq!(data(&waits.receive())["answer"], "this");
        })
    }
}

fn send(http: &mut Http, tool: &str, arguments: &Value) {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}});
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let head = format!(
        "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
    );
    http.send("POST", "/mcp", &head, &message.to_string());
}

fn call(http: &mut Http, tool: &str, arguments: &Value) -> Value {
    send(http, tool, arguments);
    data(&http.receive())
}

/// What the tool said, in a body that is JSON or a stream of events.
fn data(body: &str) -> Value {
    let lines = body.lines().map(|line| line.strip_prefix("data:").unwrap_or(line).trim());
    let mut messages = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut reply =
        messages.find(|message| message.get("result").is_some()).unwrap_or_else(|| panic!("{body}"));
    let mut envelope = reply["result"]["structuredContent"].take();
    assert_eq!(envelope["ok"], true, "{envelope}");
    envelope["data"].take()
}
