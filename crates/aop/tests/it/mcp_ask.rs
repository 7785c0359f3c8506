//! `ask_user` and `await_answer`: an agent asks, a human answers elsewhere, and nothing that breaks in between
//! loses the question or its answer.

use crate::mcp_client::{Client, envelope};
use crate::support::Project;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const AGENT: (&str, &str) = ("AOP_AGENT", r#"{"feature_id": "shop", "role": "builder", "claim": "c-1"}"#);
const NO_WAIT: [&str; 2] = ["--wait-ms", "0"];

fn choice() -> Value {
    json!({"prompt": "Which one?", "choices": ["left", "right"]})
}

/// A server that returns at once.
fn hasty(project: &Project) -> Client {
    Client::start(project, &NO_WAIT)
}

/// A call that the client names.
fn named(client: &mut Client, call: &str, arguments: &Value) -> Value {
    let params = json!({"name": "ask_user", "arguments": arguments, "_meta": {"claudecode/toolUseId": call}});
    envelope(&client.request("tools/call", params))
}

fn open_questions(project: &Project) -> Vec<Value> {
    project.run(&["questions"]).data()["items"].as_array().unwrap().clone()
}

/// Answers the only open question.
fn answer(project: &Project, value: &str) {
    let open = open_questions(project);
    assert_eq!(open.len(), 1, "{open:?}");
    project.answer_to(&open[0], value).data();
}

#[test]
fn an_answer_from_another_process_ends_the_wait() {
    let project = Project::with_feature();
    let mut client = Client::start(&project, &["--feature-id", "shop"]);
    let call = client.begin_call("ask_user", &choice());
    let question = project.opened_question();
    assert_eq!(question["session_id"], "mcp-test-client");
    assert_eq!(project.feature("shop")["status"], "awaiting_input");
    // The server is not deaf while it waits.
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
    project.answer_to(&question, "left").data();
    let data = envelope(&client.answer_to(call))["data"].clone();
    assert_eq!(data["status"], "answered");
    assert_eq!(data["answer"], "left");
    assert_eq!(data["question_id"], question["question_id"]);
    assert!(data["text"].as_str().unwrap().starts_with("ANSWERED: a human"), "{data}");
    assert_eq!(project.feature("shop")["status"], "planning");
    assert_eq!(client.close().code, Some(0));
    project.assert_healthy();
}

#[test]
fn pending_says_how_to_go_on_and_asking_again_asks_nobody_twice() {
    let project = Project::with_feature();
    let mut client = hasty(&project);
    let first = client.data("ask_user", &choice());
    assert_eq!(first["status"], "pending");
    let id = first["question_id"].as_str().unwrap();
    let text = first["text"].as_str().unwrap();
    assert!(text.starts_with("PENDING") && text.contains("await_answer") && text.contains(id), "{text}");
    assert_eq!(client.data("ask_user", &choice()), first);
    assert_eq!(client.data("await_answer", &json!({"question_id": id})), first);
    answer(&project, "right");
    let told = client.data("await_answer", &json!({"question_id": id}));
    assert_eq!((&told["status"], &told["answer"]), (&json!("answered"), &json!("right")));
}

#[test]
fn a_server_that_dies_during_the_wait_loses_nothing() {
    let project = Project::with_feature();
    let mut client = Client::start(&project, &[]);
    client.begin_call("ask_user", &choice());
    let question = project.opened_question();
    client.kill();
    let mut client = hasty(&project);
    assert_eq!(client.data("ask_user", &choice())["question_id"], question["question_id"]);
    client.kill();
    project.answer_to(&question, "left").data();
    let mut client = Client::start(&project, &[]);
    let told = client.data("ask_user", &choice());
    assert_eq!((&told["question_id"], &told["answer"]), (&question["question_id"], &json!("left")));
}

#[test]
fn an_answer_that_was_handed_over_does_not_pass_for_a_new_one() {
    let project = Project::with_feature();
    let mut client = hasty(&project);
    let first = client.data("ask_user", &choice())["question_id"].clone();
    answer(&project, "left");
    assert_eq!(client.data("ask_user", &choice())["answer"], "left");
    let second = client.data("ask_user", &choice());
    assert_eq!(second["status"], "pending");
    assert_ne!(second["question_id"], first);
    answer(&project, "right");
    assert_eq!(client.data("ask_user", &choice())["answer"], "right");
}

#[test]
fn a_call_that_the_client_names_is_the_same_question_for_ever() {
    let project = Project::with_feature();
    let mut client = hasty(&project);
    let first = named(&mut client, "toolu_1", &choice())["data"]["question_id"].clone();
    answer(&project, "left");
    let told = named(&mut client, "toolu_1", &choice());
    assert_eq!((&told["data"]["question_id"], &told["data"]["answer"]), (&first, &json!("left")));
    client.close();
    let mut client = hasty(&project);
    assert_eq!(named(&mut client, "toolu_1", &choice()), told);
    assert_ne!(named(&mut client, "toolu_2", &choice())["data"]["question_id"], first);
    let other = named(&mut client, "toolu_1", &json!({"prompt": "Something else?"}));
    assert_eq!(other["error"]["code"], "operation_id_reuse_mismatch");
}

#[test]
fn the_end_of_input_does_not_wait_for_a_human() {
    let project = Project::with_feature();
    let mut client = Client::start(&project, &[]);
    client.begin_call("ask_user", &choice());
    project.opened_question();
    let begun = Instant::now();
    assert_eq!(client.close().code, Some(0));
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    assert_eq!(open_questions(&project).len(), 1);
}

#[test]
fn a_cancelled_call_leaves_its_question_open() {
    let project = Project::with_feature();
    let mut client = Client::start(&project, &[]);
    let call = client.begin_call("ask_user", &choice());
    let question = project.opened_question();
    client
        .send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call}}));
    let again = client.begin_call("ask_user", &choice());
    project.answer_to(&question, "left").data();
    assert_eq!(envelope(&client.answer_to(again))["data"]["answer"], "left");
}

#[test]
fn many_waits_end_each_with_its_own_answer() {
    let project = Project::with_feature();
    let mut client = Client::start(&project, &[]);
    let calls: Vec<u64> = (0..20)
        .map(|number| client.begin_call("ask_user", &json!({"prompt": format!("Number {number}?")})))
        .collect();
    // Requests are taken in order, but handled side by side: when all are open, all are waiting.
    let mut open = open_questions(&project);
    while open.len() < calls.len() {
        client.request("ping", json!({}));
        open = open_questions(&project);
    }
    for question in open.iter().rev() {
        project.answer_to(question, &format!("to {}", question["prompt"].as_str().unwrap())).data();
    }
    for (number, call) in calls.into_iter().enumerate() {
        let told = envelope(&client.answer_to(call));
        assert_eq!(told["data"]["answer"], format!("to Number {number}?"), "{told}");
    }
}

#[test]
fn no_end_of_a_question_can_be_taken_for_another() {
    let lenient = "policy: {execution: {human_input: {strict: false, timeout_ms: 1000}}}\n";
    let strict = "policy: {execution: {human_input: {timeout_ms: 1000}}}\n";
    let told = |settings: &str, question_type: &str| {
        let project = Project::with_settings(settings);
        let mut client = Client::start(&project, &["--feature-id", "shop"]);
        let arguments = json!({"prompt": "May I?", "choices": ["yes"], "question_type": question_type});
        let data = client.data("ask_user", &arguments);
        assert_eq!(data.get("answer"), None, "{data}");
        client.close();
        project.assert_healthy();
        (data["status"].as_str().unwrap().to_owned(), data["text"].as_str().unwrap().to_owned())
    };
    let (status, text) = told(lenient, "clarification");
    assert_eq!(status, "expired");
    assert!(text.contains("Decide yourself") && text.contains("nobody answered"), "{text}");
    let (status, text) = told(lenient, "permission_override");
    assert_eq!(status, "declined");
    assert!(text.contains("not permitted"), "{text}");
    let (status, text) = told(strict, "clarification");
    assert_eq!(status, "expired");
    assert!(text.contains("stopped") && !text.contains("Decide yourself"), "{text}");
    let project = Project::with_feature();
    let mut client = Client::start(&project, &["--feature-id", "shop"]);
    let call = client.begin_call("ask_user", &choice());
    let id = project.opened_question()["question_id"].as_str().unwrap().to_owned();
    project.run(&["withdraw", "--feature-id", "shop", "--question-id", &id, "--note", "not now"]).data();
    let data = envelope(&client.answer_to(call))["data"].clone();
    assert_eq!(data["status"], "withdrawn");
    assert!(data["text"].as_str().unwrap().contains("not now"), "{data}");
}

#[test]
fn where_nobody_may_be_asked_the_call_is_declined_and_there_is_no_question() {
    let project = Project::with_feature();
    let agent = r#"{"feature_id": "shop", "role": "builder", "claim": "c-1"}"#;
    let engine = json!({"engine": "gemini", "session": "s", "cwd": "", "refuses": "Nobody is available."});
    let variables = [("AOP_AGENT", agent), ("AOP_ENGINE", &engine.to_string())];
    let mut client = Client::start_with(&project, &[], &variables, &json!({}));
    let told = client.data("ask_user", &choice());
    assert_eq!(told, json!({"status": "declined", "text": "DECLINED: Nobody is available."}));
    for grant in ["permission_override", "risk_ack"] {
        let told = client.data("ask_user", &json!({"prompt": "May I?", "question_type": grant}));
        assert!(told["text"].as_str().unwrap().contains("not permitted"), "{grant}: {told}");
    }
    assert_eq!(open_questions(&project), Vec::<Value>::new());
}

#[test]
fn a_default_by_policy_is_never_told_as_a_humans_answer() {
    let lenient = "policy: {execution: {human_input: {strict: false, timeout_ms: 1000}}}\n";
    let project = Project::with_settings(lenient);
    let asked = json!({"feature_id": "shop", "role": "builder", "session_id": "s", "prompt": "Which?",
        "question_type": "clarification", "default_decision_policy": "use_default", "operation_id": "o",
        "expected_answer": {"kind": "single_choice", "choices": ["a", "b"], "default": "b"}});
    let id = project.tool("feature.question_create", "builder", &asked).data()["question_id"].clone();
    let mut client = Client::start(&project, &["--feature-id", "shop"]);
    let data = client.data("await_answer", &json!({"question_id": id}));
    assert_eq!((&data["status"], &data["answer"]), (&json!("answered"), &json!("b")));
    assert_eq!(data["answered_by"], "policy:default");
    let text = data["text"].as_str().unwrap();
    assert!(text.starts_with("DEFAULT") && text.contains("no human decided"), "{text}");
}

#[test]
fn an_agent_asks_for_its_own_feature_and_waits_for_no_other() {
    let project = Project::with_feature();
    let mut lone = hasty(&project);
    let elsewhere = lone.data("ask_user", &json!({"prompt": "Mine?"}))["question_id"].clone();
    let mut agent = Client::start_with(&project, &NO_WAIT, &[AGENT], &json!({}));
    agent.refused("await_answer", &json!({"question_id": elsewhere}), "forbidden_for_role");
    agent.data("ask_user", &choice());
    assert_eq!(project.feature("shop")["status"], "awaiting_input");
    agent.refused("ask_user", &json!({"prompt": "And this?"}), "question_conflict_open");
}

#[test]
fn a_client_without_a_feature_asks_lone_questions_and_touches_no_other() {
    let project = Project::with_feature();
    let blocking = project.ask("op-1");
    let mut lone = hasty(&project);
    for (tool, arguments) in [
        ("feature.get", json!({"feature_id": "shop"})),
        ("feature.list", json!({})),
        ("feature.get_context", json!({"feature_id": "shop"})),
        ("feature.question_list", json!({"feature_id": "shop"})),
        ("feature.log_append", json!({"feature_id": "shop", "note": "n", "operation_id": "o-1"})),
        ("feature.question_create", crate::support::question("shop", "o-2")),
        (
            "feature.question_withdraw",
            json!({"feature_id": "shop", "question_id": blocking, "operation_id": "o-3"}),
        ),
        ("await_answer", json!({"question_id": blocking})),
    ] {
        lone.refused(tool, &arguments, "forbidden_for_role");
    }
    assert_eq!(open_questions(&project).len(), 1);
    // What it asked it may wait for, also when its server was started anew.
    let id = lone.data("ask_user", &choice())["question_id"].clone();
    lone.kill();
    let waits = hasty(&project).data("await_answer", &json!({"question_id": id}));
    assert_eq!(waits["status"], "pending");
    let mut planner = Client::start(&project, &["--wait-ms", "0", "--role", "planner"]);
    planner.refused("await_answer", &json!({"question_id": id}), "forbidden_for_role");
}

#[test]
fn nobody_without_the_feature_uses_up_the_answer_of_its_client() {
    let project = Project::with_feature();
    let bound = ["--feature-id", "shop", "--wait-ms", "0"];
    let mut client = Client::start(&project, &bound);
    let id = client.data("ask_user", &choice())["question_id"].clone();
    client.kill();
    answer(&project, "left");
    hasty(&project).refused("await_answer", &json!({"question_id": id}), "forbidden_for_role");
    let told = Client::start(&project, &bound).data("ask_user", &choice());
    assert_eq!((&told["question_id"], &told["answer"]), (&id, &json!("left")));
}

#[test]
fn nobody_but_the_asker_uses_up_its_answer() {
    let project = Project::with_feature();
    let bound = ["--feature-id", "shop", "--wait-ms", "0"];
    let mut asker = Client::start(&project, &bound);
    let id = asker.data("ask_user", &choice())["question_id"].clone();
    asker.kill();
    answer(&project, "left");
    let wait = json!({"question_id": id});
    let mut qa = Client::start(&project, &[&bound[..], &["--role", "qa"]].concat());
    assert_eq!(qa.data("await_answer", &wait)["answer"], "left");
    let mut asker = Client::start(&project, &bound);
    let told = asker.data("ask_user", &choice());
    assert_eq!((&told["question_id"], &told["answer"]), (&id, &json!("left")));
    // Now it was told, by whichever of the two tools.
    assert_ne!(asker.data("ask_user", &choice())["question_id"], id);
}

#[test]
fn a_client_is_told_the_answer_to_its_question_as_a_person_asked_it_last() {
    let project = Project::with_feature();
    let mut asker = Client::start(&project, &["--feature-id", "shop", "--wait-ms", "0"]);
    let id = asker.data("ask_user", &choice())["question_id"].clone();
    let first = ["--feature-id", "shop", "--question-id", id.as_str().unwrap()];
    project.run(&[&["withdraw"], &first[..]].concat()).data();
    let again = project.run(&[&["reopen"], &first[..]].concat()).data()["question_id"].clone();
    assert_eq!(asker.data("await_answer", &json!({"question_id": id}))["question_id"], again);
    answer(&project, "left");
    for (tool, input) in [("await_answer", json!({"question_id": id})), ("ask_user", choice())] {
        let told = asker.data(tool, &input);
        let is_told = tool == "await_answer";
        assert_eq!((told["answer"] == "left", told["question_id"] == again), (is_told, is_told), "{told}");
    }
}

#[test]
fn a_secret_is_shown_to_its_asker_also_when_a_person_asked_for_it_again() {
    let project = Project::new();
    let mut asker = Client::start(&project, &NO_WAIT);
    let first = asker.data("ask_user", &secret_form());
    let named = |id: &Value| {
        let of = project.run(&["questions", "--status", "all"]).data()["items"][0]["feature_id"].clone();
        ["--feature-id", of.as_str().unwrap(), "--question-id", id.as_str().unwrap()].map(str::to_owned)
    };
    let run = |command: &[&str], id: &Value| {
        let named = named(id);
        project.run(&[command, &named.each_ref().map(String::as_str)[..]].concat()).data()
    };
    let id = &first["question_id"];
    run(&["withdraw"], id);
    let again = run(&["reopen"], id)["question_id"].clone();
    run(&["answer", "--answer", r#"{"key": "s3cret"}"#], &again);
    assert_eq!(asker.data("await_answer", &json!({"question_id": id}))["answer"]["key"], "s3cret");
}

#[test]
fn an_agent_that_asked_with_another_tool_has_been_told_when_it_waited() {
    let project = Project::with_feature();
    let id = json!(project.ask("one"));
    project.answer(id.as_str().unwrap(), "yes").data();
    let bound = ["--feature-id", "shop", "--wait-ms", "0"];
    for (role, told) in [("qa", false), ("builder", true)] {
        let mut client = Client::start(&project, &[&bound[..], &["--role", role]].concat());
        assert_eq!(client.data("await_answer", &json!({"question_id": id}))["answer"], "yes");
        assert_eq!(project.was_told(&id), told, "{role}");
    }
}

#[test]
fn whoever_waits_with_the_id_after_its_server_was_started_anew_has_been_told() {
    let project = Project::with_feature();
    let bound = ["--feature-id", "shop", "--wait-ms", "0"];
    for args in [&bound[..], &NO_WAIT] {
        let mut asker = Client::start(&project, args);
        let id = asker.data("ask_user", &choice())["question_id"].clone();
        asker.kill();
        answer(&project, "left");
        let mut asker = Client::start(&project, args);
        assert_eq!(asker.data("await_answer", &json!({"question_id": id}))["answer"], "left");
        let anew = asker.data("ask_user", &choice());
        assert_eq!(anew["status"], "pending");
        assert_ne!(anew["question_id"], id);
        answer(&project, "right");
    }
}

/// A call that asks for a secret.
pub(crate) fn secret_form() -> Value {
    let spec = json!({"version": 1, "topic": "t", "questions": [
        {"id": "key", "header": "Key", "question": "Which key?", "kind": "free_text", "required": true, "secret": true}]});
    json!({"prompt": "The key", "spec": spec})
}

#[test]
fn a_secret_that_the_last_call_was_shown_is_erased_when_the_client_leaves() {
    let project = Project::with_feature();
    let mut asker = hasty(&project);
    let id = asker.data("ask_user", &secret_form())["question_id"].clone();
    answer(&project, r#"{"key": "s3cret"}"#);
    assert_eq!(asker.close().code, Some(0));
    assert!(project.kept_secret(&id).is_some(), "nobody was shown it yet");
    let mut asker = hasty(&project);
    let told = asker.data("ask_user", &secret_form());
    assert_eq!((&told["question_id"], &told["answer"]["key"]), (&id, &json!("s3cret")));
    assert_eq!(asker.close().code, Some(0));
    assert_eq!(project.kept_secret(&id), None);
}

#[test]
fn a_form_comes_back_as_a_mapping_and_its_secret_only_to_the_asker() {
    let project = Project::with_feature();
    let form = secret_form();
    let mut asker = hasty(&project);
    let id = asker.data("ask_user", &form)["question_id"].clone();
    answer(&project, r#"{"key": "s3cret"}"#);
    let mut other = hasty(&project);
    let shown = other.data("await_answer", &json!({"question_id": id}));
    assert!(!shown.to_string().contains("s3cret"), "{shown}");
    assert!(shown["text"].as_str().unwrap().starts_with("SECRET"), "it is stored: {shown}");
    let wait = json!({"question_id": id});
    assert_eq!(asker.data("await_answer", &wait)["answer"]["key"], "s3cret");
    assert_eq!(
        asker.data("await_answer", &wait)["answer"]["key"],
        "s3cret",
        "the same call, the same answer"
    );
    asker.call("feature.list", &json!({}));
    let gone = asker.data("await_answer", &wait);
    assert!(!gone.to_string().contains("s3cret"), "received, so forgotten: {gone}");
    assert_eq!(gone["answer"], Value::Null, "what stands in its place is no answer: {gone}");
    assert!(gone["text"].as_str().unwrap().starts_with("LOST"), "{gone}");
}

#[test]
fn a_secret_stays_for_its_asker_when_another_client_of_its_role_was_shown_it() {
    let project = Project::with_feature();
    let bound = ["--feature-id", "shop", "--wait-ms", "0"];
    let mut asker = Client::start(&project, &bound);
    let id = asker.data("ask_user", &secret_form())["question_id"].clone();
    answer(&project, r#"{"key": "s3cret"}"#);
    let wait = json!({"question_id": id});
    let mut other = Client::start(&project, &bound);
    assert_eq!(
        other.data("await_answer", &wait)["answer"]["key"],
        "s3cret",
        "it may be the asker, started anew"
    );
    other.call("feature.list", &json!({}));
    assert_eq!(other.close().code, Some(0));
    assert_eq!(asker.data("await_answer", &wait)["answer"]["key"], "s3cret");
    assert_eq!(asker.close().code, Some(0));
    assert_eq!(project.kept_secret(&id), None);
}

#[test]
fn whoever_is_not_shown_a_secret_does_not_use_it_up() {
    let project = Project::with_feature();
    let mut asker = hasty(&project);
    let id = asker.data("ask_user", &secret_form())["question_id"].clone();
    answer(&project, r#"{"key": "s3cret"}"#);
    hasty(&project).data("await_answer", &json!({"question_id": id}));
    let told = asker.data("ask_user", &secret_form());
    assert_eq!((&told["question_id"], &told["answer"]["key"]), (&id, &json!("s3cret")));
}

#[test]
fn arguments_that_cannot_be_asked_are_refused_and_leave_nothing_behind() {
    let project = Project::with_feature();
    let mut client = hasty(&project);
    for (arguments, argument) in [
        (json!({}), "prompt"),
        (json!({"prompt": "p", "choices": []}), "choices"),
        (json!({"prompt": "p", "choices": ["a"], "spec": {}}), "choices"),
        (json!({"prompt": "p", "question_type": "gossip"}), "question_type"),
        (json!({"prompt": "p", "nonsense": 1}), "nonsense"),
    ] {
        let error = client.refused("ask_user", &arguments, "invalid_argument");
        assert_eq!(error["details"]["argument"], argument, "{arguments}");
    }
    client.refused("ask_user", &json!({"prompt": "p", "spec": {"version": 1}}), "invalid_document");
    client.refused("ask_user", &json!({"prompt": "p".repeat(70_000)}), "payload_too_large");
    let unknown = json!({"question_id": "q_01JAAAAAAAAAAAAAAAAAAAAAAA"});
    client.refused("await_answer", &unknown, "question_not_found");
    assert_eq!(open_questions(&project).len(), 0);
}

#[test]
fn the_asking_tools_are_always_at_hand_and_need_no_operation_id() {
    let project = Project::with_feature();
    let listed = Client::start(&project, &[]).request("tools/list", json!({}));
    for name in ["ask_user", "await_answer"] {
        let tools = listed["result"]["tools"].as_array().unwrap();
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        assert_eq!(tool["_meta"]["anthropic/alwaysLoad"], true);
        assert_eq!(tool["annotations"]["readOnlyHint"], true);
        assert_eq!(tool["inputSchema"]["properties"].get("operation_id"), None);
    }
}
