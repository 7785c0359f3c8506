//! Programs that an engine started may ask and read their own feature, and nothing else.

use crate::http_client::Server;
use crate::mcp_client::Client;
use crate::run_rules::spec;
use crate::run_support::{Running, script, workshop};
use crate::support::{Project, question};
use serde_json::json;

const AGENT: (&str, &str) = ("AOP_AGENT", r#"{"feature_id": "shop", "role": "builder", "claim": "c-1"}"#);

#[test]
fn an_agent_can_never_answer_whichever_way_it_tries() {
    let project = Project::with_feature();
    let id = project.ask("op-1");
    let answer = ["answer", "--feature-id", "shop", "--question-id", &id, "--answer", "yes"];
    project.run_with(&answer, &[AGENT]).refused("forbidden_for_role", 1);
    let input = json!({"feature_id": "shop", "question_id": id, "answer": "yes", "answered_by": "human",
        "operation_id": "sneaky"})
    .to_string();
    for role in ["human", "orchestrator", "builder"] {
        let call = ["tool", "call", "feature.question_answer", "--role", role, "--input", &input];
        project.run_with(&call, &[AGENT]).refused("forbidden_for_role", 1);
    }
    assert_eq!(project.feature("shop")["status"], "awaiting_input");
}

#[test]
fn an_agent_may_not_act_as_human_or_orchestrator() {
    let project = Project::with_feature();
    for command in [
        &["cancel", "--feature-id", "shop"][..],
        &["retry", "--feature-id", "shop"],
        &["features", "create", "--feature-id", "mine", "--title", "Mine"],
        &[
            "tool",
            "call",
            "feature.transition",
            "--role",
            "human",
            "--input",
            r#"{"feature_id": "shop", "to": "building", "operation_id": "t"}"#,
        ],
    ] {
        project.run_with(command, &[AGENT]).refused("forbidden_for_role", 1);
    }
}

#[test]
fn an_agent_may_not_use_a_command_that_is_for_people_and_changes_nothing_by_trying() {
    let project = Project::with_feature();
    let before = crate::support::tree(project.root());
    for command in [
        &["store", "copy", "--to", "sqlite"][..],
        &["store", "copy", "--to", "postgres://nobody@127.0.0.1:1/none"],
        &["store", "migrate"],
        &["init"],
        &["demo"],
        &["mcp", "install", "gemini"],
        &["mcp", "uninstall", "gemini"],
        &["token", "create", "--kind", "operator"],
        &["serve"],
        &["runners", "forget", "n_1"],
        &["run"],
        &["send", "--feature-id", "shop", "Hurry"],
        &["attach", "--feature-id", "shop", "--print"],
        &["merge", "--feature-id", "shop"],
        &["features", "mode", "shop", "auto"],
        &["reopen", "--feature-id", "shop", "--question-id", "q_01J9ZQ4V7K3M2N1P0R5S6T7V8W"],
    ] {
        let error = project.run_with(command, &[AGENT]).refused("forbidden_for_role", 1);
        let words: Vec<&str> = command.iter().copied().take_while(|word| !word.starts_with('-')).collect();
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(&format!("`aop {}", words[0])), "{command:?}: {message}");
    }
    assert_eq!(crate::support::tree(project.root()), before);
}

#[test]
fn an_agent_asks_and_reads_for_its_own_feature_only() {
    let project = Project::with_feature();
    project.create_feature("other");
    let call = |name: &str, input: String| {
        project.run_with(&["tool", "call", name, "--role", "human", "--input", &input], &[AGENT])
    };
    call("feature.question_create", question("shop", "op-1").to_string()).data();
    call("feature.question_create", question("other", "op-2").to_string()).refused("forbidden_for_role", 1);
    call("feature.get", json!({"feature_id": "other"}).to_string()).refused("forbidden_for_role", 1);
    let listed = project.run_with(&["features", "list"], &[AGENT]).data();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    project.run_with(&["questions", "--feature-id", "other"], &[AGENT]).refused("forbidden_for_role", 1);
    project.run_with(&["log", "--feature-id", "other"], &[AGENT]).refused("forbidden_for_role", 1);
}

#[test]
fn a_credential_that_cannot_be_read_gives_no_rights_at_all() {
    let project = Project::with_feature();
    for broken in [
        "",
        "x",
        "{}",
        r#"{"feature_id": "shop", "role": "human"}"#,
        r#"{"feature_id": "../x", "role": "qa"}"#,
    ] {
        project.run_with(&["status"], &[("AOP_AGENT", broken)]).refused("forbidden_for_role", 1);
    }
}

#[test]
fn a_worker_withdraws_only_what_its_role_asked() {
    let project = Project::with_feature();
    let id = project.ask("op-1");
    let input = json!({"feature_id": "shop", "question_id": id, "operation_id": "w-1"});
    project.tool("feature.question_withdraw", "planner", &input).refused("forbidden_for_role", 1);
    project.tool("feature.question_withdraw", "builder", &input).data();
}

#[test]
fn no_agent_can_take_a_name_that_aop_gives_to_an_operation_of_its_own() {
    let project = workshop("");
    project.create_feature("shop");
    script(&project, "default", &json!({}));
    let server = Server::start(&project);
    let made = project.run(&["token", "create", "--kind", "agent", "--feature-id", "shop"]).data();
    let agent = made["token"].as_str().unwrap();
    let mut client = Client::start_with(&project, &[], &[AGENT], &json!({}));
    let tool = "feature.log_append";
    for name in ["enrol:other", "move:other:1:building", "begin:turn:other:1:1:1", "gate:other:planning:0:0"]
    {
        let note = json!({"feature_id": "shop", "note": "mine", "operation_id": name});
        let unnamed = json!({"feature_id": "shop", "note": "mine"}).to_string();
        let call = ["tool", "call", tool, "--input", &note.to_string()];
        let error = project.run_with(&call, &[AGENT]).refused("invalid_argument", 2);
        let prefix = name.split_inclusive(':').next().unwrap();
        assert_eq!(error["details"]["prefix"], prefix, "{error}");
        assert!(error["message"].as_str().unwrap().contains(&format!("'{prefix}'")), "{error}");
        client.refused(tool, &note, "invalid_argument");
        let path = format!("/api/v1/tools/{tool}");
        server.send_as(agent, "POST", &path, &note).refused(400, "invalid_argument");
        let bearer = format!("Bearer {agent}");
        let headers = [("Authorization", bearer.as_str()), ("Idempotency-Key", name)];
        server.request("POST", &path, &headers, &unnamed).refused(400, "invalid_argument");
        let body = json!({"prompt": "Which?", "operation_id": name});
        server.send_as(agent, "POST", "/api/v1/questions", &body).refused(400, "invalid_argument");
        project.run_with(&["ask", "Which?", "--operation-id", name], &[AGENT]).refused("invalid_argument", 2);
    }
    let note = json!({"feature_id": "shop", "note": "mine", "operation_id": "check:42"});
    let first = project.tool(tool, "human", &note).data();
    assert_eq!(project.tool(tool, "human", &note).data(), first, "a person names operations freely");
    assert_eq!(Running::start(&project, &[&spec(&project, "other")]).end().0, Some(0));
    project.assert_healthy();
}
