//! Conversations on standard input and output, with what no client should say.

use super::serve;
use crate::pages::fixture::World;
use aop_kernel::ids::{FeatureId, QuestionId};
use aop_kernel::role::{Caller, Role};
use aop_kernel::tools::MAX_REQUEST_BYTES;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex, split};

/// What a server says to these lines until their end.
async fn said(lines: &[String]) -> Vec<Value> {
    let world = World::new().await;
    world.feature("shop", "Shop").await;
    let (mut client, stream) = duplex(32 << 20);
    for line in lines {
        client.write_all(line.as_bytes()).await.unwrap();
        client.write_all(b"\n").await.unwrap();
    }
    client.shutdown().await.unwrap();
    let (reader, writer) = split(stream);
    serve(world.door(Caller::new(Role::Human)), reader, writer).await.unwrap();
    let mut out = String::new();
    client.read_to_string(&mut out).await.unwrap();
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The answer to the request with this id.
fn answer_to(said: &[Value], id: u64) -> &Value {
    said.iter().find(|answer| answer["id"] == id).unwrap_or_else(|| panic!("no answer to {id}: {said:?}"))
}

fn request(id: u64, method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

fn shakes_hands(version: &str) -> String {
    let client = json!({"name": "test-client", "version": "1"});
    request(0, "initialize", json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client}))
}

/// A request that begins a conversation without a handshake.
fn lists_alone(id: u64, version: &str) -> String {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {}});
    request(id, "tools/list", json!({"_meta": meta}))
}

#[tokio::test]
async fn what_comes_before_a_client_introduced_itself_ends_no_conversation() {
    let early = [
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
            .to_string(),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string(),
        json!({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {}}).to_string(),
        json!({"jsonrpc": "2.0", "id": 1, "result": {}}).to_string(),
        json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "?"}}).to_string(),
    ];
    for begins in [shakes_hands("2025-11-25"), lists_alone(0, "2026-07-28")] {
        let mut lines = vec![request(2, "ping", json!({})), request(3, "tools/list", json!({}))];
        // Nor does a protocol that is not known begin one.
        lines.push(lists_alone(4, "1999-01-01"));
        lines.extend(early.clone());
        lines.push(begins);
        lines.extend(early.clone());
        lines.push(lists_alone(5, "2026-07-28"));
        let said = said(&lines).await;
        assert_eq!(said.len(), 5, "{said:?}");
        assert_eq!(answer_to(&said, 2)["result"], json!({}));
        assert_eq!(answer_to(&said, 3)["error"]["code"], -32602, "it is told what it lacks");
        assert!(answer_to(&said, 4)["error"].is_object());
        assert!(answer_to(&said, 0)["result"].is_object());
        assert!(answer_to(&said, 5)["result"]["tools"].is_array());
    }
}

#[tokio::test]
async fn a_line_that_is_no_message_is_answered_only_where_somebody_waits() {
    let lines = [
        shakes_hands("2025-11-25"),
        "this is no JSON".to_owned(),
        String::new(),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": 7}).to_string(),
        json!({"jsonrpc": "1.0", "id": 1, "method": "ping"}).to_string(),
        json!({"jsonrpc": "1.0", "id": "two", "result": {}}).to_string(),
        format!("\u{feff}{}\r", request(3, "ping", json!({}))),
        "7".to_owned(),
    ];
    let said = said(&lines).await;
    let refused: Vec<&Value> = said.iter().filter(|answer| answer["error"]["code"] == -32600).collect();
    let ids: Vec<&Value> = refused.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [&json!(1), &json!("two"), &Value::Null], "{said:?}");
    assert_eq!(answer_to(&said, 3)["result"], json!({}));
}

#[tokio::test]
async fn a_message_is_measured_as_it_arrives() {
    let padded = |message: String, size: usize| format!("{message}{}", " ".repeat(size - message.len()));
    let lists = |id| request(id, "tools/call", json!({"name": "feature.list", "arguments": {}}));
    let cancels = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let lines = [
        shakes_hands("2025-11-25"),
        padded(lists(1), MAX_REQUEST_BYTES),
        padded(lists(2), MAX_REQUEST_BYTES + 1),
        format!("{}{}", " ".repeat(MAX_REQUEST_BYTES), lists(3)),
        padded(request(4, "ping", json!({})), MAX_REQUEST_BYTES + 1),
        padded(cancels.to_string(), MAX_REQUEST_BYTES + 1),
        padded(json!({"jsonrpc": "2.0", "id": 9, "result": {}}).to_string(), MAX_REQUEST_BYTES + 1),
        padded("{}".to_owned(), MAX_REQUEST_BYTES + 1),
        padded(lists(5), 16 << 20 | 1),
        padded(lists(6), MAX_REQUEST_BYTES),
    ];
    let said = said(&lines).await;
    assert_eq!(said.len(), 7, "{said:?}");
    for (id, fits) in [(1, true), (2, false), (3, false), (6, true)] {
        let result = &answer_to(&said, id)["result"];
        assert_eq!(result["structuredContent"]["ok"], fits, "{id} {result}");
        let code = if fits { Value::Null } else { json!("payload_too_large") };
        assert_eq!(result["structuredContent"]["error"]["code"], code, "{id}");
    }
    for refused in [answer_to(&said, 4), said.iter().find(|answer| answer.get("id").is_none()).unwrap()] {
        assert_eq!(refused["error"]["code"], -32600, "{refused}");
        assert_eq!(refused["error"]["data"]["error"]["code"], "payload_too_large", "{refused}");
    }
}

fn pings(ids: impl IntoIterator<Item = u64>) -> Value {
    ids.into_iter().map(|id| json!({"jsonrpc": "2.0", "id": id, "method": "ping"})).collect()
}

#[tokio::test]
async fn what_comes_in_a_batch_is_answered_in_one_list() {
    let mut batch = pings([1, 2]);
    let handshake: Value = serde_json::from_str(&shakes_hands("2025-03-26")).unwrap();
    let call = request(3, "tools/call", json!({"name": "feature.list", "arguments": {}}));
    let call: Value = serde_json::from_str(&call).unwrap();
    let tells = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let wrong = json!({"jsonrpc": "1.0", "id": 4, "method": "ping"});
    batch.as_array_mut().unwrap().extend([tells.clone(), call, wrong, handshake, json!(7)]);
    let lines = [
        shakes_hands("2025-03-26"),
        format!(" {batch}"),
        json!([tells, {"jsonrpc": "2.0", "id": 1, "result": {}}]).to_string(),
        pings(10..110).to_string(),
        json!([{"jsonrpc": "2.0", "id": 5, "method": "no/such"}]).to_string(),
        json!([7]).to_string(),
    ];
    let said = said(&lines).await;
    let mut lists = said.iter().filter_map(Value::as_array).collect::<Vec<_>>();
    lists.sort_by_key(|list| std::cmp::Reverse(list.len()));
    let [hundred, mixed, one, none] = lists[..] else { panic!("{said:?}") };
    assert_eq!(hundred.len(), 100);
    assert_eq!(mixed.len(), 6, "{mixed:?}");
    assert_eq!(answer_to(mixed, 1)["result"], json!({}));
    assert_eq!(answer_to(mixed, 2)["result"], json!({}));
    assert_eq!(answer_to(mixed, 3)["result"]["structuredContent"]["ok"], true);
    assert_eq!(answer_to(mixed, 4)["error"]["code"], -32600);
    assert_eq!(answer_to(mixed, 0)["error"]["code"], -32600, "a handshake is no part of a batch");
    assert_eq!(mixed.iter().filter(|answer| answer.get("id").is_none()).count(), 1, "{mixed:?}");
    let codes = [one, none].map(|list| list.iter().map(|answer| answer["error"]["code"].clone()).collect());
    let [one, none]: [Vec<Value>; 2] = codes;
    assert!(one == [-32601] && none == [-32600] || one == [-32600] && none == [-32601], "{said:?}");
    assert_eq!(said.len(), 5, "{said:?}");
}

#[tokio::test]
async fn a_batch_that_is_not_taken_is_refused_with_the_reason_and_done_in_no_part() {
    let begins = |version: &str| vec![shakes_hands(version)];
    for (mut lines, batch, why) in [
        (begins("2025-11-25"), pings([1, 2]), "none in 2025-11-25"),
        (begins("2025-06-18"), pings([1, 2]), "none in 2025-06-18"),
        (vec![], pings([1, 2]), "none before the handshake"),
        (begins("2025-03-26"), json!([]), "is empty"),
        (begins("2025-03-26"), pings(1..102), "101 messages; the limit is 100"),
    ] {
        let handshakes = lines.len();
        lines.push(batch.to_string());
        lines.push("[this is no JSON".to_owned());
        let said = said(&lines).await;
        assert_eq!(said.len(), handshakes + 1, "{said:?}");
        let refused = said.last().unwrap();
        assert_eq!(refused["error"]["code"], -32600, "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains(why), "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_does_not_keep_its_server() {
    let world = World::new().await;
    let (mut client, stream) = duplex(64);
    let (reader, writer) = split(stream);
    let lists = (1..9).map(|id| request(id, "tools/list", json!({})) + "\n7\n").collect::<String>();
    let talking = async {
        client.write_all(format!("{}\n", shakes_hands("2025-11-25")).as_bytes()).await.unwrap();
        let mut greeting = vec![0; 16];
        client.read_exact(&mut greeting).await.unwrap();
        while greeting.last() != Some(&b'\n') {
            greeting.push(client.read_u8().await.unwrap());
        }
        client.write_all(lists.as_bytes()).await.unwrap();
        // All of it is under way before the end of input is seen.
        tokio::time::sleep(Duration::from_secs(1)).await;
        client.shutdown().await.unwrap();
        std::future::pending::<()>().await
    };
    tokio::select! {
        ended = serve(world.door(Caller::new(Role::Human)), reader, writer) => ended.unwrap(),
        () = talking => {}
        () = tokio::time::sleep(Duration::from_secs(60)) => panic!("it waits for its client"),
    }
}

#[tokio::test]
async fn a_secret_that_could_not_be_written_has_not_arrived() {
    let world = World::new().await;
    world.feature("shop", "Shop").await;
    let spec = json!({"version": 1, "topic": "t", "questions": [
        {"id": "key", "header": "Key", "question": "Which key?", "kind": "free_text", "required": true, "secret": true}]});
    let asks =
        request(1, "tools/call", json!({"name": "ask_user", "arguments": {"prompt": "Key", "spec": spec}}));
    for hears in [true, false] {
        let (mut client, reader) = duplex(1 << 20);
        let (writer, mut heard) = duplex(1 << 20);
        let role = Caller { role: Role::Builder, feature: Some(FeatureId::parse("shop").unwrap()) };
        let serving = tokio::spawn(serve(world.door(role), reader, writer));
        let say = async |client: &mut DuplexStream, line: &str| {
            client.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        };
        say(&mut client, &shakes_hands("2025-11-25")).await;
        say(&mut client, &asks).await;
        let mut lines = BufReader::new(&mut heard).lines();
        lines.next_line().await.unwrap();
        let asked: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
        let id = asked["result"]["structuredContent"]["data"]["question_id"].as_str().unwrap().to_owned();
        world.answer("shop", &id, json!({"key": "s3cret"})).await;
        if hears {
            say(&mut client, &asks).await;
            assert!(lines.next_line().await.unwrap().unwrap().contains("s3cret"));
        } else {
            drop(heard);
            say(&mut client, &asks).await;
            // The call is made before its client is seen to have gone.
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        drop(client);
        serving.await.unwrap().unwrap();
        let kept = world.service.store.reveal(QuestionId::parse(&id).unwrap()).await.unwrap();
        assert_eq!(kept.is_some(), !hears);
    }
}
