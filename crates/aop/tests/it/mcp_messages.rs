//! Messages of MCP that are none, and those that are many, as a client sends them over HTTP and on standard input.

use crate::http_client::{Answer, Server};
use crate::support::Project;
use serde_json::{Value, json};

/// What every client of `/mcp` may send.
const ACCEPT: (&str, &str) = ("Accept", "application/json, text/event-stream");

fn shakes_hands(version: &str) -> Value {
    let params = json!({"protocolVersion": version, "capabilities": {},
        "clientInfo": {"name": "test-client", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

/// Sends a body to `/mcp` with the operator's token.
fn post(server: &Server, headers: &[(&str, &str)], body: &str) -> Answer {
    let own = format!("Bearer {}", server.token);
    server.request("POST", "/mcp", &[&[("Authorization", own.as_str()), ACCEPT], headers].concat(), body)
}

/// A session under this version of the protocol.
fn session(server: &Server, version: &str) -> String {
    let answer = post(server, &[], &shakes_hands(version).to_string());
    answer.header("mcp-session-id").unwrap().to_owned()
}

#[test]
fn a_body_that_is_no_message_is_no_wrong_media_type() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let session = session(&server, "2025-11-25");
    for headers in
        [&[][..], &[("Mcp-Session-Id", session.as_str())], &[("MCP-Protocol-Version", "2026-07-28")]]
    {
        for (body, code, id) in [
            ("{bad", -32700, None),
            ("", -32700, None),
            ("{}", -32600, None),
            ("7", -32600, None),
            (r#"{"jsonrpc": "1.0", "id": 7, "method": "ping"}"#, -32600, Some(json!(7))),
        ] {
            let kind = [("Content-Type", "application/json; charset=utf-8")];
            let answer = post(&server, &[headers, &kind].concat(), body);
            assert_eq!(answer.status, 400, "{body} {answer:?}");
            assert_eq!(answer.header("content-type"), Some("application/json"), "{answer:?}");
            let message = answer.json();
            assert_eq!(message["jsonrpc"], "2.0", "{message}");
            assert_eq!(message["error"]["code"], code, "{message}");
            assert_eq!(message["error"]["data"]["error"]["code"], "invalid_argument", "{message}");
            assert_eq!(message.get("id"), id.as_ref(), "{message}");
        }
        let text = [("Content-Type", "text/plain")];
        assert_eq!(post(&server, &[headers, &text].concat(), "{bad").status, 415);
    }
}
