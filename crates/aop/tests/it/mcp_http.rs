//! MCP over HTTP: the same tools and envelopes as through every other door, in the name of the token.

use crate::http_client::{Answer, Server};
use crate::mcp_ask::secret_form;
use crate::mcp_client::{self, Client};
use crate::support::{Project, question};
use aop_kernel::ids::FeatureId;
use aop_kernel::policy::{HumanInput, Rules};
use aop_kernel::role::{Caller, Role};
use aop_kernel::tools::Tool;
use aop_store::{Service, SqliteStore, SystemClock};
use serde_json::{Value, json};
use std::io::Write;
use std::sync::Arc;

/// A connection of one client: with a session, or without under the protocol that has none.
struct Http<'a> {
    server: &'a Server,
    token: String,
    session: Option<String>,
}

impl<'a> Http<'a> {
    /// Shakes hands under a protocol with sessions.
    fn start(server: &'a Server, token: &str) -> Self {
        let mut client = Http { server, token: token.to_owned(), session: None };
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test-client", "version": "1"}});
        let answer =
            client.post(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
        assert_eq!(reply(&answer)["result"]["serverInfo"]["name"], "aop", "{answer:?}");
        client.session = Some(answer.header("mcp-session-id").unwrap().to_owned());
        assert_eq!(
            client.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).status,
            202
        );
        client
    }

    fn stateless(server: &'a Server, token: &str) -> Self {
        Http { server, token: token.to_owned(), session: None }
    }

    fn headers(&self, method: &str, name: Option<&str>) -> Vec<(String, String)> {
        let mut headers = vec![
            ("Authorization".to_owned(), format!("Bearer {}", self.token)),
            ("Accept".to_owned(), "application/json, text/event-stream".to_owned()),
        ];
        match &self.session {
            Some(session) => headers.push(("Mcp-Session-Id".to_owned(), session.clone())),
            None if method != "initialize" => {
                headers.push(("MCP-Protocol-Version".to_owned(), "2026-07-28".to_owned()));
                headers.push(("Mcp-Method".to_owned(), method.to_owned()));
                headers.extend(name.map(|name| ("Mcp-Name".to_owned(), name.to_owned())));
            }
            None => {}
        }
        headers
    }

    fn post(&self, message: &Value) -> Answer {
        let name = message["params"]["name"].as_str();
        let headers = self.headers(message["method"].as_str().unwrap(), name);
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        self.server.request("POST", "/mcp", &headers, &message.to_string())
    }

    fn message(&self, method: &str, mut params: Value) -> Value {
        if self.session.is_none() {
            params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "stateless", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {}});
        }
        json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
    }

    fn request(&self, method: &str, params: Value) -> Value {
        reply(&self.post(&self.message(method, params)))
    }

    fn call_text(&self, tool: &str, arguments: &Value) -> String {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        mcp_client::envelope(&answer);
        answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Closes the session.
    fn leave(&self) -> Answer {
        let headers = self.headers("", None);
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        self.server.request("DELETE", "/mcp", &headers, "")
    }

    fn call(&self, tool: &str, arguments: &Value) -> Value {
        serde_json::from_str(&self.call_text(tool, arguments)).unwrap()
    }
}

/// The JSON-RPC response in a body that is JSON or a stream of events.
fn reply(answer: &Answer) -> Value {
    let lines = answer.body.lines().map(|line| line.strip_prefix("data:").unwrap_or(line).trim());
    let mut messages = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages
        .find(|message| message.get("result").is_some() || message.get("error").is_some())
        .unwrap_or_else(|| panic!("no response: {answer:?}"))
}

fn agent_token(project: &Project, args: &[&str]) -> String {
    let made = project.run(&[&["token", "create", "--kind", "agent"], args].concat()).data();
    made["token"].as_str().unwrap().to_owned()
}

const CALLS: &[&str] = &[
    "feature.question_create",
    "feature.question_create",
    "feature.question_list",
    "feature.get_context",
    "feature.transition",
    "feature.question_answer",
    "feature.question_withdraw",
    "feature.question_reopen",
    "feature.create",
    "feature.get",
    "feature.list",
    "feature.log_append",
    "no_operation",
    "bad_argument",
    "not_found",
];

/// The call of this name, with the id of the question that was asked before.
fn call(name: &str, asked: &Value) -> (&'static str, Value) {
    match name {
        "feature.question_create" => ("feature.question_create", question("shop", "ask")),
        "feature.question_list" => ("feature.question_list", json!({"feature_id": "shop", "status": "all"})),
        "feature.get_context" => ("feature.get_context", json!({"feature_id": "shop"})),
        "feature.transition" => {
            ("feature.transition", json!({"feature_id": "shop", "to": "building", "operation_id": "t"}))
        }
        "feature.question_answer" => (
            "feature.question_answer",
            json!({"feature_id": "shop", "question_id": asked, "answer": "yes", "answered_by": "me", "operation_id": "a"}),
        ),
        "feature.question_withdraw" => (
            "feature.question_withdraw",
            json!({"feature_id": "shop", "question_id": asked, "note": "n", "operation_id": "w"}),
        ),
        "feature.question_reopen" => (
            "feature.question_reopen",
            json!({"feature_id": "shop", "question_id": asked, "operation_id": "r"}),
        ),
        "feature.create" => (
            "feature.create",
            json!({"feature_id": "new", "title": "New", "spec": "# New", "operation_id": "c"}),
        ),
        "feature.get" => ("feature.get", json!({"feature_id": "shop"})),
        "feature.list" => ("feature.list", json!({"all": true})),
        "feature.log_append" => {
            ("feature.log_append", json!({"feature_id": "shop", "note": "a", "operation_id": "l"}))
        }
        "no_operation" => ("feature.log_append", json!({"feature_id": "shop", "note": "a"})),
        "bad_argument" => ("feature.get", json!({"feature_id": "shop", "nonsense": 1})),
        _ => ("feature.get", json!({"feature_id": "none"})),
    }
}

/// Makes every call through one door of a fresh project; the envelopes, ids and times aside.
fn through(door: &dyn Fn(&'static str, &Value) -> Value) -> Vec<Value> {
    let mut asked = json!("q_01JAAAAAAAAAAAAAAAAAAAAAAA");
    CALLS
        .iter()
        .map(|name| {
            let (tool, input) = call(name, &asked);
            let envelope = door(tool, &input);
            if *name == "feature.question_create" && envelope["ok"] == true {
                asked = envelope["data"]["question_id"].clone();
            }
            alike(&envelope)
        })
        .collect()
}

/// An envelope without what is different by nature: ids of questions and times.
fn alike(envelope: &Value) -> Value {
    let word = |word: &str| {
        let word = word.trim_end_matches(';');
        let is_time = word.len() == 24 && word.starts_with(|sign: char| sign.is_ascii_digit());
        match word {
            _ if word.contains("q_") => "ID".to_owned(),
            _ if is_time && word.ends_with('Z') => "TIME".to_owned(),
            word => word.to_owned(),
        }
    };
    match envelope {
        Value::Object(map) => map
            .iter()
            // The one field that names the door.
            .filter(|(key, _)| *key != "surface")
            .map(|(key, value)| (key.clone(), alike(value)))
            .collect(),
        Value::Array(items) => items.iter().map(alike).collect(),
        Value::String(text) => text.split(' ').map(word).collect::<Vec<_>>().join(" ").into(),
        other => other.clone(),
    }
}

/// A call without any process in between.
fn in_process(project: &Project, caller: &Caller, tool: &str, input: &Value) -> Value {
    let store = SqliteStore::open(&project.path(".aop"), Arc::new(SystemClock)).unwrap();
    let rules = Rules {
        human_input: HumanInput::default(),
        check_schema: aop_schema::check_schema,
        check_instance: aop_schema::check_instance,
    };
    let service = Service::new(Arc::new(store), Arc::new(rules));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match runtime.block_on(service.call(Tool::find(tool).unwrap(), caller, input, "test")) {
        Ok(envelope) => serde_json::from_str(envelope.as_str()).unwrap(),
        Err(refusal) => refusal.to_json(),
    }
}

fn compare(one: &[Value], other: &[Value], role: &str, door: &str) {
    for (name, (one, other)) in CALLS.iter().zip(one.iter().zip(other)) {
        assert_eq!(one.to_string(), other.to_string(), "{name} as {role}, {door}");
    }
}

#[test]
fn every_call_has_the_same_envelope_through_every_door() {
    let shop = Some(FeatureId::parse("shop").unwrap());
    for (role, caller) in [
        ("builder", Caller { role: Role::Builder, feature: shop }),
        ("human", Caller { role: Role::Human, feature: None }),
    ] {
        let human = role == "human";
        let project = Project::with_feature();
        let direct = through(&|tool, input| in_process(&project, &caller, tool, input));
        let bound: &[&str] = if human { &[] } else { &["--feature-id", "shop"] };

        let project = Project::with_feature();
        let command_line = through(&|tool, input| {
            let input = input.to_string();
            let args = [&["tool", "call", tool, "--role", role, "--input", &input], bound].concat();
            project.run(&args).envelope()
        });
        compare(&direct, &command_line, role, "on the command line");

        let project = Project::with_feature();
        let operator = project.run(&["token", "create", "--kind", "operator"]).data();
        let variables = [("AOP_TOKEN", operator["token"].as_str().unwrap())];
        let client =
            Client::start_with(&project, &[&["--role", role], bound].concat(), &variables, &json!({}));
        let client = std::cell::RefCell::new(client);
        let stdio = through(&|tool, input| client.borrow_mut().call(tool, input));
        compare(&direct, &stdio, role, "over MCP on stdio");

        for way in ["post", "session", "stateless"] {
            let project = Project::with_feature();
            let server = Server::start(&project);
            let token =
                if human { server.token.clone() } else { agent_token(&project, &["--feature-id", "shop"]) };
            let over_http = match way {
                "post" => through(&|tool, input| {
                    server.send_as(&token, "POST", &format!("/api/v1/tools/{tool}"), input).json()
                }),
                "session" => {
                    let client = Http::start(&server, &token);
                    through(&|tool, input| client.call(tool, input))
                }
                _ => {
                    let client = Http::stateless(&server, &token);
                    through(&|tool, input| client.call(tool, input))
                }
            };
            compare(&direct, &over_http, role, way);
        }
    }
}

#[test]
fn one_operation_is_replayed_byte_for_byte_through_every_door() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let token = agent_token(&project, &["--feature-id", "shop"]);
    let (tool, input) = ("feature.question_create", question("shop", "op-1"));
    let first = server.send_as(&token, "POST", &format!("/api/v1/tools/{tool}"), &input).body;
    let text = input.to_string();
    let bound = ["--role", "builder", "--feature-id", "shop"];
    let run = project.run(&[&["tool", "call", tool, "--input", &text], &bound[..]].concat());
    assert_eq!(run.stdout.trim_end(), first, "the command line");
    let mut stdio = Client::start(&project, &bound);
    let id = stdio.begin_call(tool, &input);
    assert_eq!(stdio.answer_to(id)["result"]["content"][0]["text"], first, "MCP on stdio");
    assert_eq!(Http::start(&server, &token).call_text(tool, &input), first, "MCP over HTTP");
    assert_eq!(Http::stateless(&server, &token).call_text(tool, &input), first, "MCP without a session");
    let caller = Caller { role: Role::Builder, feature: Some(FeatureId::parse("shop").unwrap()) };
    assert_eq!(in_process(&project, &caller, tool, &input).to_string(), first, "in process");
    let listed = project.run(&["questions", "--status", "all"]).data();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
}

#[test]
fn an_agent_never_answers_over_mcp_and_sees_only_what_is_its_own() {
    let project = Project::with_feature();
    project.create_feature("other");
    let server = Server::start_with(&project, &[], &[("AOP_MCP_WAIT_MS", "0")]);
    let token = agent_token(&project, &["--feature-id", "shop"]);
    for client in [Http::start(&server, &token), Http::stateless(&server, &token)] {
        let asked = client.call("ask_user", &json!({"prompt": "May I?", "choices": ["yes", "no"]}));
        assert_eq!(asked["data"]["status"], "pending", "{asked}");
        let id = &asked["data"]["question_id"];
        let answer = json!({"feature_id": "shop", "question_id": id, "answer": "yes", "answered_by": "human",
            "operation_id": "sneaky"});
        assert_eq!(client.call("feature.question_answer", &answer)["error"]["code"], "forbidden_for_role");
        assert_eq!(
            client.call("feature.get", &json!({"feature_id": "other"}))["error"]["code"],
            "forbidden_for_role"
        );
        project.answer(id.as_str().unwrap(), "no").data();
    }
    let other = project.tool("feature.question_create", "builder", &question("other", "op-9")).data();
    let foreign = json!({"question_id": other["question_id"]});
    let client = Http::stateless(&server, &token);
    assert_eq!(client.call("await_answer", &foreign)["error"]["code"], "forbidden_for_role");
    // Without a feature: it asks lone questions and waits for those, and sees nothing else.
    let lone = Http::stateless(&server, &agent_token(&project, &[]));
    let asked = lone.call("ask_user", &json!({"prompt": "Which way?"}));
    let id = json!({"question_id": asked["data"]["question_id"]});
    assert_eq!(lone.call("await_answer", &id)["data"]["status"], "pending");
    assert_eq!(lone.call("await_answer", &foreign)["error"]["code"], "forbidden_for_role");
    assert_eq!(lone.call("feature.list", &json!({}))["error"]["code"], "forbidden_for_role");
    let another = Http::stateless(&server, &agent_token(&project, &[]));
    assert_eq!(another.call("await_answer", &id)["error"]["code"], "forbidden_for_role");
}

#[test]
fn no_agent_is_told_to_answer_the_question_that_is_in_its_way() {
    let project = Project::with_feature();
    let open = project.ask("op-1");
    let server = Server::start_with(&project, &[], &[("AOP_MCP_WAIT_MS", "0")]);
    let token = agent_token(&project, &["--feature-id", "shop"]);
    let second = json!({"prompt": "And this?"});
    for envelope in [
        Http::stateless(&server, &token).call("ask_user", &second),
        Http::stateless(&server, &token).call("feature.question_create", &question("shop", "op-2")),
        server.send_as(&token, "POST", "/api/v1/questions", &second).json(),
    ] {
        assert_eq!(envelope["error"]["code"], "question_conflict_open", "{envelope}");
        let hint = envelope["error"]["details"]["hint"].as_str().unwrap();
        assert!(hint.contains("await_answer") && hint.contains(open.as_str()), "{hint}");
        assert!(!hint.contains("aop answer"), "{hint}");
    }
}

#[test]
fn a_secret_that_the_last_call_was_shown_is_erased_with_the_session_and_with_the_server() {
    let project = Project::with_feature();
    let server = Server::start_with(&project, &[], &[("AOP_MCP_WAIT_MS", "0")]);
    let token = agent_token(&project, &["--feature-id", "shop"]);
    let shown = |client: &Http<'_>| {
        let id = client.call("ask_user", &secret_form())["data"]["question_id"].clone();
        project.answer(id.as_str().unwrap(), r#"{"key": "s3cret"}"#).data();
        let told = client.call("await_answer", &json!({"question_id": id}));
        assert_eq!(told["data"]["answer"]["key"], "s3cret", "{told}");
        assert!(project.kept_secret(&id).is_some(), "the same call gets the same answer");
        id
    };
    let client = Http::start(&server, &token);
    let first = shown(&client);
    assert_eq!(client.leave().status, 204);
    assert_eq!(project.kept_secret(&first), None);
    let second = shown(&Http::stateless(&server, &token));
    server.signal("-TERM");
    assert_eq!(server.ended().code, Some(0));
    assert_eq!(project.kept_secret(&second), None);
}

#[test]
fn a_secret_stays_for_its_session_whatever_else_comes_with_its_token() {
    let project = Project::with_feature();
    let server = Server::start_with(&project, &[], &[("AOP_MCP_WAIT_MS", "0")]);
    let token = agent_token(&project, &["--feature-id", "shop"]);
    let (asker, other) = (Http::start(&server, &token), Http::start(&server, &token));
    let ask =
        json!({"name": "ask_user", "arguments": secret_form(), "_meta": {"claudecode/toolUseId": "toolu_1"}});
    let told = || mcp_client::envelope(&asker.request("tools/call", ask.clone()))["data"].clone();
    let id = told()["question_id"].clone();
    project.answer(id.as_str().unwrap(), r#"{"key": "s3cret"}"#).data();
    assert_eq!(told()["answer"]["key"], "s3cret");
    // Who says that it has arrived? The asker alone, by its next call.
    Http::stateless(&server, &token).call("feature.list", &json!({}));
    other.call("feature.list", &json!({}));
    assert_eq!(other.leave().status, 204);
    assert_eq!(told()["answer"]["key"], "s3cret");
    asker.call("feature.list", &json!({}));
    assert_eq!(project.kept_secret(&id), None);
}

#[test]
fn a_session_belongs_to_the_token_that_opened_it() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let token = agent_token(&project, &["--feature-id", "shop"]);
    let mut client = Http::start(&server, &token);
    assert_eq!(client.call("feature.get", &json!({"feature_id": "shop"}))["ok"], true);
    client.token = agent_token(&project, &["--feature-id", "shop"]);
    let params = json!({"name": "feature.get", "arguments": {"feature_id": "shop"}});
    assert_eq!(client.post(&client.message("tools/call", params)).status, 404);
    client.token = "wrong".into();
    client.post(&client.message("ping", json!({}))).refused(401, "unauthenticated");
    client.token = token;
    assert_eq!(client.leave().status, 204);
    assert_eq!(client.post(&client.message("ping", json!({}))).status, 404);
}

#[test]
fn the_protocol_behaves_over_http_as_it_does_on_stdio() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    for client in [Http::start(&server, &server.token), Http::stateless(&server, &server.token)] {
        let tools = client.request("tools/list", json!({}));
        assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 13, "{tools}");
        let nowhere = client.request("tools/list", json!({"cursor": "page-9"}));
        assert_eq!(nowhere["error"]["code"], -32602, "{nowhere}");
        let unknown = client.request("tools/call", json!({"name": "feature.destroy", "arguments": {}}));
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
        let wrong = client.call("feature.get", &json!({"feature_id": 7}));
        assert_eq!(wrong["error"]["code"], "invalid_argument");
        let large = json!({"feature_id": "shop", "note": "n".repeat(70_000), "operation_id": "o"});
        assert_eq!(client.call("feature.log_append", &large)["error"]["code"], "payload_too_large");
        let huge = json!({"feature_id": "shop", "note": "n".repeat(2_000_000), "operation_id": "o"});
        let message = client.message("tools/call", json!({"name": "feature.log_append", "arguments": huge}));
        client.post(&message).refused(413, "payload_too_large");
    }
    let client = Http::start(&server, &server.token);
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
    server.request("POST", "/mcp", &[], "{}").refused(401, "unauthenticated");
}

#[test]
fn losing_the_connection_or_the_server_during_a_wait_loses_nothing() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let token = agent_token(&project, &["--feature-id", "shop"]);
    let ask = json!({"name": "ask_user", "arguments": {"prompt": "Which?", "choices": ["left", "right"]}});
    for (client, answer) in
        [(Http::start(&server, &token), "left"), (Http::stateless(&server, &token), "right")]
    {
        // The client goes away in the middle of the wait.
        let message = client.message("tools/call", ask.clone()).to_string();
        let headers = client.headers("tools/call", Some("ask_user"));
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let mut stream = server.connect();
        stream.write_all(server.head("POST", "/mcp", &headers, message.len()).as_bytes()).unwrap();
        stream.write_all(message.as_bytes()).unwrap();
        let opened = open_question(&project);
        drop(stream);
        // Whoever is told first decides whether the answer is handed over twice: the server must notice the loss.
        while server.connections() > 0 {
            std::thread::yield_now();
        }
        project.answer_to(&opened, answer).data();
        let again = client.call("ask_user", &ask["arguments"]);
        assert_eq!(
            again["data"]["question_id"], opened["question_id"],
            "the same call finds the same question"
        );
        assert_eq!(again["data"]["answer"], answer, "{again}");
    }
    // The server dies in the middle of the wait; another one takes over.
    let message = Http::stateless(&server, &token).message("tools/call", ask.clone()).to_string();
    let headers = Http::stateless(&server, &token).headers("tools/call", Some("ask_user"));
    let headers: Vec<(&str, &str)> =
        headers.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let mut stream = server.connect();
    stream.write_all(server.head("POST", "/mcp", &headers, message.len()).as_bytes()).unwrap();
    stream.write_all(message.as_bytes()).unwrap();
    let opened = open_question(&project);
    server.kill();
    project.answer_to(&opened, "left").data();
    let server = Server::start(&project);
    let again = Http::stateless(&server, &token).call("ask_user", &ask["arguments"]);
    assert_eq!(again["data"]["question_id"], opened["question_id"]);
    assert_eq!(again["data"]["answer"], "left");
    project.assert_healthy();
}

#[test]
fn nobody_else_over_http_uses_up_the_answer_of_the_asker() {
    let project = Project::with_feature();
    let server = Server::start_with(&project, &[], &[("AOP_MCP_WAIT_MS", "0")]);
    let token = agent_token(&project, &["--feature-id", "shop"]);
    let other = agent_token(&project, &["--feature-id", "shop"]);
    let ask = json!({"prompt": "Which?", "choices": ["left", "right"]});
    for (sessions, answer) in [(true, "left"), (false, "right")] {
        let client = |token: &str| match sessions {
            true => Http::start(&server, token),
            false => Http::stateless(&server, token),
        };
        let asker = client(&token);
        let id = asker.call("ask_user", &ask)["data"]["question_id"].clone();
        project.answer(id.as_str().unwrap(), answer).data();
        // A person, and another agent of the same role and feature.
        for token in [&server.token, &other] {
            let waits = client(token).call("await_answer", &json!({"question_id": id}));
            assert_eq!(waits["data"]["answer"], answer, "{waits}");
        }
        let told = asker.call("ask_user", &ask);
        assert_eq!((&told["data"]["question_id"], &told["data"]["answer"]), (&id, &json!(answer)), "{told}");
    }
}

/// Waits until a question is open that was not before.
fn open_question(project: &Project) -> Value {
    loop {
        let open = project.run(&["questions"]).data()["items"].clone();
        if let Some(question) = open.as_array().unwrap().first() {
            return question.clone();
        }
    }
}

#[test]
fn an_operator_with_a_name_answers_under_it_over_mcp() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let ana = project.run(&["token", "create", "--kind", "operator", "--name", "ana"]).data();
    let ana = ana["token"].as_str().unwrap();
    let id = project.ask("op-1");
    let answer = json!({"feature_id": "shop", "question_id": id, "answer": "yes", "answered_by": "else",
        "operation_id": "a"});
    assert_eq!(Http::stateless(&server, ana).call("feature.question_answer", &answer)["ok"], true);
    assert_eq!(server.get(&format!("/api/v1/questions/{id}")).data()["answered_by"], "ana");
    // The same on stdio, with the token in the environment; an agent's token is no proof.
    let id = project.ask("op-2");
    let answer = json!({"feature_id": "shop", "question_id": id, "answer": "no", "answered_by": "else",
        "operation_id": "b"});
    let mut client = Client::start_with(&project, &["--role", "human"], &[("AOP_TOKEN", ana)], &json!({}));
    client.data("feature.question_answer", &answer);
    assert_eq!(server.get(&format!("/api/v1/questions/{id}")).data()["answered_by"], "ana");
    let agent = agent_token(&project, &["--feature-id", "shop"]);
    for token in [agent.as_str(), "wrong"] {
        let run = project.run_with(&["mcp", "--role", "human"], &[("AOP_TOKEN", token)]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{run:?}");
        assert!(run.stderr.contains("unauthenticated"), "{run:?}");
    }
}

#[test]
fn a_token_that_is_taken_back_calls_nothing_through_a_server_that_runs_already() {
    let project = Project::with_feature();
    let ana = project.run(&["token", "create", "--kind", "operator", "--name", "ana"]).data();
    let variables = [("AOP_TOKEN", ana["token"].as_str().unwrap())];
    let mut client = Client::start_with(&project, &["--role", "human"], &variables, &json!({}));
    client.data("feature.get", &json!({"feature_id": "shop"}));
    // A call that waits meanwhile is told nothing.
    let waiting = client.begin_call("ask_user", &json!({"prompt": "Which one?"}));
    let asked = project.opened_question();
    project.run(&["token", "revoke", ana["token_id"].as_str().unwrap()]).data();
    project.answer_to(&asked, "left").data();
    assert_eq!(mcp_client::envelope(&client.answer_to(waiting))["error"]["code"], "unauthenticated");
    let id = project.ask("op-1");
    let answer = json!({"feature_id": "shop", "question_id": id, "answer": "yes", "operation_id": "a"});
    client.refused("feature.question_answer", &answer, "unauthenticated");
    client.refused("ask_user", &json!({"prompt": "Who are you?"}), "unauthenticated");
    client.refused("feature.get", &json!({"feature_id": "shop"}), "unauthenticated");
    assert_eq!(open_question(&project)["question_id"], id.as_str());
    assert_eq!(project.run(&["questions"]).data()["items"].as_array().unwrap().len(), 1);
}
