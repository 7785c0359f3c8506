//! `aop mcp`: the tools of the contract for an MCP client, envelope for envelope what `aop tool call` answers.

use crate::mcp_client::Client;
use crate::support::{Project, question};
use serde_json::{Value, json};

const AGENT: (&str, &str) = ("AOP_AGENT", r#"{"feature_id": "shop", "role": "builder", "claim": "c-1"}"#);

const TOOLS: [&str; 11] = [
    "feature.create",
    "feature.get",
    "feature.list",
    "feature.get_context",
    "feature.transition",
    "feature.log_append",
    "feature.question_create",
    "feature.question_list",
    "feature.question_answer",
    "feature.question_withdraw",
    "feature.question_reopen",
];

#[test]
fn every_tool_of_the_contract_is_listed_with_schemas_and_hints() {
    let project = Project::with_feature();
    let mut client = Client::start(&project, &[]);
    let listed = client.request("tools/list", json!({}))["result"]["tools"].as_array().unwrap().clone();
    for name in TOOLS {
        let tool = listed.iter().find(|tool| tool["name"] == name).unwrap();
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{tool}");
        assert_eq!(tool["outputSchema"]["required"], json!(["ok"]), "{tool}");
        let needs_operation =
            tool["inputSchema"]["required"].as_array().unwrap().contains(&json!("operation_id"));
        assert_eq!(tool["annotations"]["readOnlyHint"], !needs_operation, "{tool}");
        assert_eq!(tool["annotations"]["idempotentHint"], true, "{tool}");
    }
}

#[test]
fn the_end_of_input_ends_the_server_and_its_output_is_protocol_only() {
    let project = Project::with_feature();
    let mut client = Client::start(&project, &[]);
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
    let run = client.close();
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "", ""));
    let silent = Client::connect(&mut project.command(&["mcp"])).close();
    assert_eq!((silent.code, silent.stdout.as_str(), silent.stderr.as_str()), (Some(0), "", ""));
}

#[test]
fn what_comes_before_a_client_introduced_itself_ends_no_conversation() {
    let project = Project::with_feature();
    let mut client = Client::connect(&mut project.command(&["mcp", "--feature-id", "shop"]));
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}}));
    client.send(&json!({"jsonrpc": "2.0", "id": 9, "result": {}}));
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
    client.shake_hands("2025-11-25", &json!({}));
    assert_eq!(client.data("feature.get", &json!({"feature_id": "shop"}))["feature_id"], "shop");
    let run = client.close();
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
}

#[test]
fn what_names_no_tool_is_an_error_of_the_protocol_and_the_server_goes_on() {
    let project = Project::with_feature();
    let mut client = Client::start(&project, &["--feature-id", "shop"]);
    let unknown = client.request("tools/call", json!({"name": "feature.destroy", "arguments": {}}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    assert!(unknown["error"]["message"].as_str().unwrap().contains("feature.get"), "{unknown}");
    let list = client.request("tools/call", json!({"name": "feature.get", "arguments": [1]}));
    assert_eq!(list["error"]["code"], -32602, "{list}");
    let method = client.request("no/such/method", json!({}));
    assert_eq!(method["error"]["code"], -32601, "{method}");
    client.send_text("this is no JSON");
    assert_eq!(client.data("feature.get", &json!({"feature_id": "shop"}))["feature_id"], "shop");
}

#[test]
fn bad_arguments_are_tool_results_that_name_the_argument() {
    let project = Project::with_feature();
    let mut client = Client::start(&project, &["--feature-id", "shop"]);
    let error = client.refused("feature.get", &json!({}), "invalid_argument");
    assert_eq!(error["details"]["argument"], "feature_id");
    let unknown = json!({"feature_id": "shop", "nonsense": 1});
    let error = client.refused("feature.get", &unknown, "invalid_argument");
    assert_eq!(error["details"]["argument"], "nonsense");
    let no_operation = json!({"feature_id": "shop", "note": "n"});
    client.refused("feature.log_append", &no_operation, "operation_id_required");
    let long = json!({"feature_id": "shop", "note": "n".repeat(70_000), "operation_id": "o"});
    client.refused("feature.log_append", &long, "payload_too_large");
    let huge = json!({"feature_id": "shop", "note": "n".repeat(2_000_000), "operation_id": "o"});
    client.refused("feature.log_append", &huge, "payload_too_large");
}

#[test]
fn a_worker_may_ask_and_never_answer() {
    let project = Project::with_feature();
    project.create_feature("other");
    let id = project.ask("op-1");
    let answer = json!({"feature_id": "shop", "question_id": id, "answer": "yes", "answered_by": "me",
        "operation_id": "sneaky"});
    for (args, variables) in [
        (&[][..], &[][..]),
        (&["--role", "qa", "--feature-id", "shop"], &[]),
        // The credential is what counts, whatever the command line says.
        (&["--role", "human"], &[AGENT]),
    ] {
        let mut client = Client::start_with(&project, args, variables, &json!({}));
        client.refused("feature.question_answer", &answer, "forbidden_for_role");
    }
    let mut bound = Client::start_with(&project, &[], &[AGENT], &json!({}));
    bound.refused("feature.get", &json!({"feature_id": "other"}), "forbidden_for_role");
    assert_eq!(project.feature("shop")["status"], "awaiting_input");
}

#[test]
fn roles_that_may_answer_are_refused_at_the_door() {
    let project = Project::with_feature();
    for role in ["human", "orchestrator"] {
        let run = project.run(&["mcp", "--role", role]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
        assert!(run.stderr.contains("forbidden_for_role") && run.stderr.contains("token"), "{run:?}");
    }
    assert_eq!(project.run(&["mcp", "--role", "king"]).code, Some(2));
}

#[test]
fn where_there_is_no_project_the_tools_are_listed_and_every_call_says_so() {
    let project = Project::empty();
    let silent = project.run(&["mcp"]);
    assert_eq!((silent.code, silent.stdout.as_str()), (Some(1), ""));
    assert!(silent.stderr.contains("no_project"), "{silent:?}");
    let mut client = Client::start(&project, &[]);
    let listed = client.request("tools/list", json!({}))["result"]["tools"].as_array().unwrap().len();
    assert_eq!(listed, TOOLS.len() + 2);
    for (tool, arguments) in [("ask_user", json!({"prompt": "Which?"})), ("feature.list", json!({}))] {
        let hint = client.refused(tool, &arguments, "no_project")["details"]["hint"].clone();
        assert!(hint.as_str().unwrap().contains("aop init"), "{hint}");
    }
    let unknown = client.request("tools/call", json!({"name": "feature.destroy", "arguments": {}}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    assert_eq!(client.close().code, Some(1));
    assert!(crate::support::tree(project.root()).is_empty(), "and nothing is written");
}

#[test]
fn every_operation_has_the_same_envelope_through_both_doors() {
    let (here, there) = (Project::with_feature(), Project::with_feature());
    let mut client = Client::start(&here, &["--feature-id", "shop"]);
    let id = |envelope: &Value| envelope["data"]["question_id"].clone();
    let asked = client.call("feature.question_create", &question("shop", "ask"));
    let also = there.tool("feature.question_create", "builder", &question("shop", "ask")).envelope();
    let (here_id, there_id) = (id(&asked), id(&also));
    assert_eq!(alike(&asked), alike(&also));
    let of = |tool: &str, question: &Value| match tool {
        "feature.list" => json!({}),
        "feature.create" => json!({"feature_id": "new", "title": "New", "operation_id": tool}),
        "feature.transition" => json!({"feature_id": "shop", "to": "qa", "operation_id": tool}),
        "feature.log_append" => json!({"feature_id": "shop", "note": "a", "operation_id": tool}),
        "feature.question_create" => super::support::question("shop", "again"),
        "feature.question_answer" => json!({"feature_id": "shop", "question_id": question, "answer": "yes",
            "answered_by": "me", "operation_id": tool}),
        "feature.question_withdraw" | "feature.question_reopen" => {
            json!({"feature_id": "shop", "question_id": question, "operation_id": tool})
        }
        _ => json!({"feature_id": "shop"}),
    };
    for tool in TOOLS {
        let through_mcp = client.call(tool, &of(tool, &here_id));
        let through_cli = there.tool(tool, "builder", &of(tool, &there_id)).envelope();
        assert_eq!(alike(&through_mcp), alike(&through_cli), "{tool}");
    }
}

/// An envelope without what is different by nature: ids of questions and times.
fn alike(envelope: &Value) -> Value {
    let word = |word: &str| {
        let is_time = word.len() == 24 && word.starts_with(|sign: char| sign.is_ascii_digit());
        if word.contains("q_") {
            "ID".to_owned()
        } else if is_time && word.ends_with('Z') {
            "TIME".to_owned()
        } else {
            word.to_owned()
        }
    };
    match envelope {
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), alike(value))).collect(),
        Value::Array(items) => items.iter().map(alike).collect(),
        Value::String(text) => text.split(' ').map(word).collect::<Vec<_>>().join(" ").into(),
        other => other.clone(),
    }
}

#[test]
fn an_operation_is_replayed_byte_for_byte_through_either_door() {
    let project = Project::with_feature();
    let mut client = Client::start(&project, &["--feature-id", "shop"]);
    let text = |client: &mut Client, operation: &str| {
        let id = client.begin_call("feature.question_create", &question("shop", operation));
        client.answer_to(id)["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    };
    let first = text(&mut client, "op-1");
    let again = project.tool("feature.question_create", "builder", &question("shop", "op-1"));
    assert_eq!(again.stdout.trim_end(), first);
    project
        .answer(
            client.data("feature.question_list", &json!({"feature_id": "shop"}))["items"][0]["question_id"]
                .as_str()
                .unwrap(),
            "yes",
        )
        .data();
    let second = project.tool("feature.question_create", "builder", &question("shop", "op-2"));
    assert_eq!(text(&mut client, "op-2"), second.stdout.trim_end());
    assert_eq!(text(&mut client, "op-1"), first);
    let mut other = question("shop", "op-1");
    other["prompt"] = json!("Something else?");
    client.refused("feature.question_create", &other, "operation_id_reuse_mismatch");
}

#[test]
fn of_a_key_that_stands_twice_the_last_one_counts() {
    let project = Project::with_feature();
    let mut client = Client::start(&project, &["--feature-id", "shop"]);
    let arguments = r#"{"feature_id": "shop", "note": "one", "note": "two", "operation_id": "op-1"}"#;
    let call = format!(r#"{{"name": "feature.log_append", "arguments": {arguments}}}"#);
    client.send_text(&format!(r#"{{"jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": {call}}}"#));
    assert_eq!(client.answer_to(99)["result"]["isError"], false);
    assert_eq!(project.run(&["log"]).data()["items"][1]["note"], "two");
    let tool = ["tool", "call", "feature.log_append", "--role", "builder", "--input", arguments];
    project.run(&tool).refused("invalid_argument", 2);
}

#[test]
fn files_follow_the_changes_of_a_server() {
    let project = Project::with_feature();
    let mut client = Client::start(&project, &["--feature-id", "shop"]);
    for number in 0..20 {
        let note = json!({"feature_id": "shop", "note": format!("note {number}"), "operation_id": number.to_string()});
        client.data("feature.log_append", &note);
    }
    let run = client.close();
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let log = std::fs::read_to_string(project.path(".aop/features/shop/decisions.md")).unwrap();
    assert!(log.contains("note 0") && log.contains("note 19"), "{log}");
    project.assert_healthy();
}
