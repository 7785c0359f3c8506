//! How a script is played, tried with requests written by hand.

use aop_testkit::{Call, FakeModel, Gate, Part, Reply, Script, Wire};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(10);

/// Posts JSON and gives status line and body.
fn post(model: &FakeModel, path: &str, body: &Value) -> (String, String) {
    let url = model.url();
    let address = url.trim_start_matches("http://").split('/').next().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let body = body.to_string();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nhost: fake\r\nx-api-key: dummy\r\nx-kept: yes\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

fn ask(model: &FakeModel, said: &str) -> String {
    let tools = json!([{"name": "Bash"}]);
    let body = json!({"model": "m", "tools": tools, "messages": [{"role": "user", "content": said}]});
    post(model, "/v1/messages", &body).1
}

#[test]
fn helpers_use_up_no_step_and_what_was_received_is_kept() {
    let model =
        FakeModel::start(Wire::Anthropic, Script::new().then(Reply::text("one")).then(Reply::text("two")))
            .unwrap();
    let title = json!({"messages": [{"role": "user", "content": "a title, please"}]});
    assert!(post(&model, "/v1/messages?beta=true", &title).1.contains("ok"));
    assert!(ask(&model, "first").contains("one"));
    assert!(post(&model, "/v1/messages/count_tokens", &title).1.contains("input_tokens"));
    assert!(ask(&model, "second").contains("two"));
    assert_eq!(model.unscripted(), 0);
    assert!(ask(&model, "third").contains("nothing more"));
    assert_eq!(model.unscripted(), 1);
    assert_eq!(model.received().len(), 5);
    assert_eq!(model.main().len(), 3);
    assert_eq!(model.user_messages(), ["third"]);
    let first = &model.main()[0];
    assert_eq!(first.header("x-kept"), Some("yes"));
    assert_eq!(first.header("x-api-key"), None, "keys are not kept");
}

#[test]
fn a_reply_for_a_request_of_some_kind_comes_before_the_steps_and_once() {
    let script = Script::new()
        .then(Reply::text("in order"))
        .when(|request| request.mentions("title"), Reply::text("special"));
    let model = FakeModel::start(Wire::Anthropic, script).unwrap();
    let title = json!({"messages": [{"role": "user", "content": "a title, please"}]});
    assert!(post(&model, "/v1/messages", &title).1.contains("special"));
    assert!(post(&model, "/v1/messages", &title).1.contains("ok"));
    assert!(ask(&model, "first").contains("in order"));
}

#[test]
fn several_calls_are_one_message_in_every_format() {
    let calls = || {
        Reply::calls([
            Call::new("left", "call_1", json!({"a": 1})),
            Call::new("right", "call_2", json!({"b": 2})),
        ])
        .saying("both")
    };
    for (wire, path, body) in [
        (Wire::Anthropic, "/v1/messages", json!({"stream": true, "tools": [{"name": "x"}]})),
        (Wire::OpenAi, "/v1/responses", json!({"tools": [{"name": "x"}]})),
        (
            Wire::Gemini,
            "/v1beta/models/m:streamGenerateContent?alt=sse",
            json!({"tools": [{"functionDeclarations": [{"name": "x"}]}]}),
        ),
    ] {
        let model = FakeModel::start(wire, Script::new().then(calls())).unwrap();
        let (_, body) = post(&model, path, &body);
        let events: Vec<Value> = body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .map(|data| serde_json::from_str(data).unwrap())
            .collect();
        assert!(!events.is_empty(), "{body}");
        for part in ["left", "right", "call_1", "call_2", "both"] {
            assert!(body.contains(part), "{wire:?}: {part} is missing in {body}");
        }
    }
}

#[test]
fn results_and_messages_are_read_from_every_format() {
    let cases = [
        (
            Wire::Anthropic,
            "/v1/messages",
            json!({"tools": [{"name": "x"}], "messages": [{"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "blue"}]},
                {"type": "text", "text": "go on"}]}]}),
        ),
        (
            Wire::OpenAi,
            "/v1/responses",
            json!({"tools": [{"name": "x"}], "input": [
                {"type": "function_call_output", "call_id": "c1", "output": "blue"},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go on"}]}]}),
        ),
        (
            Wire::Gemini,
            "/v1beta/models/m:streamGenerateContent",
            json!({"tools": [{"functionDeclarations": [{"name": "x"}]}], "contents": [{"role": "user", "parts": [
                {"functionResponse": {"id": "c1", "name": "x", "response": {"output": "blue"}}},
                {"text": "go on"}]}]}),
        ),
    ];
    for (wire, path, body) in cases {
        let model = FakeModel::start(wire, Script::new()).unwrap();
        post(&model, path, &body);
        assert_eq!(model.results_of("c1"), ["blue"], "{wire:?}");
        assert!(model.results_of("c2").is_empty());
        assert_eq!(model.user_messages(), ["go on"], "{wire:?}");
        assert_eq!(model.conversation().unwrap().tools()[0], "x");
    }
}

#[test]
fn a_closed_gate_holds_the_reply_and_errors_have_their_status() {
    let gate = Gate::closed();
    let script = Script::new().then(Reply::text("at last").after(&gate)).then(Reply::error(503, "busy"));
    let model = FakeModel::start(Wire::Anthropic, script).unwrap();
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| ask(&model, "first"));
        let seen = model.wait_for_main(1, SOON).unwrap();
        assert_eq!(seen.part, Part::Main);
        assert!(!asked.is_finished());
        gate.open();
        assert!(asked.join().unwrap().contains("at last"));
    });
    let body = json!({"tools": [{"name": "x"}]});
    let (status, text) = post(&model, "/v1/messages", &body);
    assert!(status.contains("503") && text.contains("busy"), "{status} {text}");
    assert!(model.wait_for(|request| request.mentions("absent"), Duration::ZERO).is_none());
}

#[test]
fn a_server_that_is_dropped_leaves_nobody_waiting() {
    let model = FakeModel::start(Wire::Anthropic, Script::new().then(Reply::never())).unwrap();
    let url = model.url();
    let address = url.trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).unwrap();
    let body = json!({"tools": [{"name": "x"}]}).to_string();
    write!(stream, "POST /v1/messages HTTP/1.1\r\nhost: f\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        .unwrap();
    model.wait_for_main(1, SOON).unwrap();
    drop(model);
    let mut rest = Vec::new();
    assert_eq!(stream.read_to_end(&mut rest).unwrap_or(0), 0, "no answer came");
    assert!(TcpStream::connect(&address).is_err(), "nobody listens any more");
}
