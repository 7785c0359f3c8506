//! Messages of MCP that are none, and those that are many, as a client sends them over HTTP and on standard input.

use crate::http_client::{Answer, Server};
use crate::mcp_ask::secret_form;
use crate::mcp_client::{self, Client};
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

/// The responses in a stream of events, in the order of their ids.
fn responses(answer: &Answer) -> Vec<Value> {
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, Some("text/event-stream")),
        "{answer:?}"
    );
    let events = answer.body.lines().filter_map(|line| line.strip_prefix("data:"));
    let mut messages: Vec<Value> =
        events.filter_map(|event| serde_json::from_str(event.trim()).ok()).collect();
    messages.sort_by_key(|message| message["id"].as_u64());
    messages
}

fn call(id: u64, tool: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments}})
}

fn ping(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "ping"})
}

#[test]
fn each_message_of_a_batch_is_answered_over_http() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let session = session(&server, "2025-03-26");
    let own = [("Mcp-Session-Id", session.as_str())];
    let tells = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(post(&server, &own, &json!([tells, tells]).to_string()).status, 202);
    let note = json!({"feature_id": "shop", "note": "n", "operation_id": "o"});
    let batch = json!([ping(1), tells, call(2, "feature.log_append", &note), shakes_hands("2025-03-26"),
        {"jsonrpc": "1.0", "id": 4, "method": "ping"}, call(5, "no.such", &json!({})), 7]);
    for headers in [&own[..], &[own[0], ("MCP-Protocol-Version", "2025-03-26")]] {
        let [none, zero, one, two, four, five] = &responses(&post(&server, headers, &batch.to_string()))[..]
        else {
            panic!("six are answered")
        };
        assert_eq!((&one["result"], &two["result"]["structuredContent"]["ok"]), (&json!({}), &json!(true)));
        for (answer, id) in [(none, None), (zero, Some(0)), (four, Some(4)), (five, Some(5))] {
            let code = if id == Some(5) { -32602 } else { -32600 };
            assert_eq!(
                (answer["error"]["code"].clone(), answer["id"].as_u64()),
                (json!(code), id),
                "{answer}"
            );
        }
    }
    let pings = json!([ping(1), ping(2)]).to_string();
    for (headers, why) in [
        (&[own[0], ("MCP-Protocol-Version", "2025-11-25")][..], "none in 2025-11-25"),
        (&[("MCP-Protocol-Version", "2026-07-28")], "before the handshake"),
        (&[], "before the handshake"),
    ] {
        let refused = post(&server, headers, &pings);
        assert_eq!(
            (refused.status, refused.json()["error"]["code"].clone()),
            (400, json!(-32600)),
            "{refused:?}"
        );
        let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(why) && message.contains("one by one"), "{message}");
    }
    assert_eq!(post(&server, &own, "[]").status, 400);
    assert_eq!(post(&server, &[("Mcp-Session-Id", "unknown")], &pings).status, 404);
}

#[test]
fn a_batch_on_standard_input_is_answered_when_its_last_question_is() {
    let project = Project::with_feature();
    let mut client = Client::connect(&mut project.command(&["mcp", "--feature-id", "shop"]));
    client.shake_hands("2025-03-26", &json!({}));
    client.send(&json!([call(11, "ask_user", &json!({"prompt": "Which?"})), ping(12)]));
    let id = project.opened_question()["question_id"].clone();
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
    assert!(client.unread().is_empty(), "{:?}", client.unread());
    project.answer(id.as_str().unwrap(), "this").data();
    let list = client.next_where(Value::is_array);
    let told = list.as_array().unwrap().iter().find(|answer| answer["id"] == 11).unwrap();
    assert_eq!(mcp_client::envelope(told)["data"]["answer"], "this", "{list}");
    assert_eq!(list.as_array().unwrap().len(), 2, "{list}");
    client.send(&json!([call(21, "ask_user", &json!({"prompt": "And now?"})), ping(22)]));
    project.opened_question_after(1);
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 21}}));
    let list = client.next_where(Value::is_array);
    assert_eq!(list, json!([{"jsonrpc": "2.0", "id": 22, "result": {}}]));
    assert_eq!(client.close().code, Some(0));
}

#[test]
fn a_secret_has_not_arrived_with_another_call_of_its_batch() {
    let project = Project::with_feature();
    let server = Server::start_with(&project, &[], &[("AOP_MCP_WAIT_MS", "0")]);
    let session = session(&server, "2025-03-26");
    let session = [("Mcp-Session-Id", session.as_str())];
    let bound = ["mcp", "--feature-id", "shop", "--wait-ms", "0"];
    let mut client = Client::connect(&mut project.command(&bound));
    client.shake_hands("2025-03-26", &json!({}));
    let mut exchange = |is_http: bool, batch: &Value| match is_http {
        true => responses(&post(&server, &session, &batch.to_string())),
        false => {
            client.send(batch);
            client.next_where(Value::is_array).as_array().unwrap().clone()
        }
    };
    for is_http in [false, true] {
        let asked = exchange(is_http, &json!([call(1, "ask_user", &secret_form())]));
        let id = mcp_client::envelope(&asked[0])["data"]["question_id"].clone();
        project.run(&["answer", id.as_str().unwrap(), "--answer", r#"{"key": "s3cret"}"#]).data();
        let wait = call(1, "await_answer", &json!({"question_id": id}));
        let others = (2..50).map(|number| call(number, "feature.list", &json!({})));
        let batch: Value = std::iter::once(wait).chain(others).collect();
        for _ in 0..2 {
            let told = exchange(is_http, &batch);
            let told = told.iter().find(|answer| answer["id"] == 1).unwrap();
            assert_eq!(mcp_client::envelope(told)["data"]["answer"]["key"], "s3cret", "{is_http}");
            assert!(project.kept_secret(&id).is_some(), "{is_http}");
        }
    }
    client.call("feature.list", &json!({}));
    client.close();
}

#[test]
fn a_session_whose_end_is_refused_goes_on() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let session = session(&server, "2025-11-25");
    let own = format!("Bearer {}", server.token);
    let end = |version: &[(&str, &str)]| {
        let head = [("Authorization", own.as_str()), ("Mcp-Session-Id", &session)];
        server.request("DELETE", "/mcp", &[&head, version].concat(), "").status
    };
    let pings = || post(&server, &[("Mcp-Session-Id", &session)], &ping(1).to_string()).status;
    assert_eq!((end(&[("MCP-Protocol-Version", "2026-07-28")]), pings()), (405, 200));
    assert_eq!((end(&[("MCP-Protocol-Version", "unknown")]), pings()), (400, 200));
    assert_eq!((end(&[]), pings()), (204, 404));
}

#[test]
fn what_a_client_accepts_may_stand_on_several_lines() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let own = format!("Bearer {}", server.token);
    let body = shakes_hands("2025-11-25").to_string();
    let post = |kinds: &[&str]| {
        let kinds = kinds.iter().map(|kind| ("Accept", *kind));
        let headers: Vec<_> = std::iter::once(("Authorization", own.as_str())).chain(kinds).collect();
        server.request("POST", "/mcp", &headers, &body).status
    };
    assert_eq!(post(&["application/json", "text/event-stream"]), 200);
    assert_eq!(post(&["application/json", "application/json"]), 406);
}
