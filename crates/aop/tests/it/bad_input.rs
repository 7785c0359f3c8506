//! Bad input gets a message that names the thing, the value and the next step, and changes nothing.

use crate::http_client::Server;
use crate::mcp_client::Client;
use crate::support::{Project, finish, question, tree, wait};
use serde_json::{Value, json};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Command, Stdio};

/// Runs a command that must be refused, and checks that no file changed (the store's index file aside,
/// which SQLite touches when it reads).
fn refused(project: &Project, args: &[&str], code: &str, exit: i32) -> Value {
    let files = |project: &Project| {
        let mut files = tree(&project.path(".aop"));
        files.retain(|(path, _)| !path.ends_with("aop.db-shm"));
        files
    };
    let before = files(project);
    let error = project.run(args).refused(code, exit);
    assert!(before == files(project), "{args:?} changed something");
    error
}

fn tool(project: &Project, name: &str, input: &Value, code: &str, exit: i32) -> Value {
    let input = input.to_string();
    refused(project, &["tool", "call", name, "--role", "human", "--input", &input], code, exit)
}

#[test]
fn a_command_that_project_took_for_its_folder_is_named_and_no_hidden_one_is_listed() {
    let project = Project::new();
    let error = project.run(&["--project", "status"]).refused("invalid_argument", 2);
    let hint = error["details"]["hint"].as_str().unwrap();
    assert!(hint.contains("--project took 'status' as its folder"), "{hint}");
    for hidden in ["manual", "guard", "hook", "scripted"] {
        assert!(!hint.contains(hidden), "{hint}");
    }
    let error = project.run(&["--project", "."]).refused("invalid_argument", 2);
    assert!(!error["details"]["hint"].as_str().unwrap().contains("took"), "{error}");
}

#[test]
fn unknown_features_questions_and_statuses_are_named() {
    let project = Project::with_feature();
    let error = refused(&project, &["questions", "--feature-id", "nope"], "feature_not_found", 1);
    assert_eq!(error["message"], "no feature 'nope'");
    let error = refused(&project, &["questions", "--status", "foo"], "invalid_argument", 2);
    assert_eq!(error["message"], "status 'foo' is not known");
    let missing = "q_01J9ZQ4V7K3M2N1P0R5S6T7V8W";
    let answer = ["answer", "--feature-id", "shop", "--question-id", missing, "--answer", "x"];
    let error = refused(&project, &answer, "question_not_found", 1);
    assert!(error["message"].as_str().unwrap().contains(missing));
    refused(&project, &["features", "list", "--status", "bogus"], "invalid_argument", 2);
    refused(&project, &["explain", "bogus"], "invalid_argument", 2);
    refused(&project, &["tool", "call", "feature.bogus", "--role", "human"], "invalid_argument", 2);
    refused(&project, &["tool", "call", "feature.list", "--role", "king"], "invalid_argument", 2);
    refused(&project, &["tool", "call", "feature.list"], "invalid_argument", 2);
    refused(&project, &["frobnicate"], "invalid_argument", 2);
}

#[test]
fn a_slip_in_the_id_of_a_feature_finds_the_feature() {
    let project = Project::with_feature();
    project.create_feature("checkout-page");
    for args in [
        &["log", "--feature-id", "shp"][..],
        &["retry", "--feature-id", "shp"],
        &["cancel", "--feature-id", "shp"],
        &["merge", "--feature-id", "shp"],
        &["questions", "--feature-id", "shp"],
        &["features", "show", "shp"],
        &["send", "--feature-id", "shp", "hello"],
        &["ask", "x", "--feature-id", "shp"],
    ] {
        let error = project.run(args).refused("feature_not_found", 1);
        assert!(error["details"]["hint"].as_str().unwrap().starts_with("did you mean 'shop'?"), "{error}");
    }
    let far = refused(&project, &["log", "--feature-id", "tax"], "feature_not_found", 1);
    let hint = "List them with `aop features list --all`.";
    assert_eq!(far["details"]["hint"], hint, "nothing is near");
    let input = json!({"feature_id": "shp"});
    let far = tool(&project, "feature.get", &input, "feature_not_found", 1);
    assert_eq!(far["details"]["hint"], hint, "a tool says the same through every door");
}

#[test]
fn a_whole_number_that_cannot_be_kept_exactly_is_refused_at_every_door() {
    const NUMBER: &str = "18446744073709551616";
    let project = Project::with_feature();
    let mut asked = question("shop", "ask");
    asked["expected_answer"] = json!({"kind": "json"});
    let id = project.tool("feature.question_create", "builder", &asked).data()["question_id"].clone();
    let id = id.as_str().unwrap();
    let told = |error: Value| {
        let said = format!("{} {}", error["message"], error["details"]["hint"]);
        assert!(said.contains("exactly") && said.contains("as text"), "{said}");
    };
    let answer = format!(r#"{{"n": {NUMBER}}}"#);
    let typed = ["answer", "--feature-id", "shop", "--question-id", id, "--answer", &answer];
    told(refused(&project, &typed, "question_invalid_answer", 1));
    let input = format!(
        r#"{{"feature_id": "shop", "question_id": "{id}", "answered_by": "me", "operation_id": "o", "answer": {NUMBER}}}"#
    );
    let call = ["tool", "call", "feature.question_answer", "--role", "human", "--input", &input];
    told(refused(&project, &call, "invalid_argument", 2));
    let server = Server::start(&project);
    let bearer = format!("Bearer {}", server.token);
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    let said = server.request("POST", "/api/v1/tools/feature.question_answer", &headers, &input);
    told(said.refused(400, "invalid_argument"));
    server.stop();
    let mut client = Client::start(&project, &["--feature-id", "shop", "--wait-ms", "0"]);
    client.send_text(&format!(
        r#"{{"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": {{"name": "feature.question_answer", "arguments": {input}}}}}"#
    ));
    let said = client.answer_to(77)["result"]["structuredContent"]["error"].clone();
    assert_eq!(said["code"], "invalid_argument", "{said}");
    told(said);
    assert_eq!(project.feature("shop")["status"], "awaiting_input");
    let fits = r#"{"n": 18446744073709551615, "x": 6.022e23}"#;
    project.run(&["answer", "--feature-id", "shop", "--question-id", id, "--answer", fits]).data();
}

#[test]
fn a_mistake_in_the_settings_is_a_row_of_doctor_and_hides_no_other() {
    let project = Project::with_feature();
    project.ask("op-1");
    std::fs::write(project.path("aop.yaml"), "store: sqlite\nrun:\n  max_parallel: many\n").unwrap();
    for args in [&["doctor"][..], &["doctor", "--repair"]] {
        let doctor = project.run(args);
        assert_eq!(doctor.code, Some(1), "{doctor:?}");
        let data = doctor.envelope()["data"].clone();
        let checks = data["checks"].as_array().unwrap();
        let names: Vec<&str> = checks.iter().map(|check| check["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["project", "settings", "store", "log", "files", "git", "engines"]);
        assert_eq!((&data["healthy"], &checks[1]["ok"]), (&json!(false), &json!(false)));
        let told = checks[1]["message"].as_str().unwrap();
        assert!(told.contains("aop.yaml:3: ") && told.contains("many"), "{told}");
        for (at, looked_at) in [(2, true), (3, true), (4, false), (5, true), (6, false)] {
            let told = checks[at]["message"].as_str().unwrap();
            assert_eq!(!told.contains("not looked at"), looked_at, "{told}");
        }
    }
    std::fs::remove_file(project.path(".aop/aop.db")).unwrap();
    let checks = project.run(&["doctor"]).envelope()["data"]["checks"].clone();
    assert!(checks[2]["message"].as_str().unwrap().contains("aop.db is gone"), "{checks}");
    // The folder shows a project on a server, and only the settings know which.
    std::fs::write(project.path(".aop/project"), "shop\n").unwrap();
    let checks = project.run(&["doctor"]).envelope()["data"]["checks"].clone();
    let told = |at: usize| checks[at]["message"].as_str().unwrap();
    assert!(told(2).contains("not looked at") && told(3).contains("is not a git repository"), "{checks}");
}

#[test]
fn doctor_names_what_of_the_store_cannot_be_written() {
    let project = Project::with_feature();
    let file = project.path(".aop/aop.db");
    let mode = |mode| std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
    mode(0o400);
    let aop = project.command(&["doctor"]);
    // From root the right to write everywhere is taken.
    let is_root = file.metadata().unwrap().uid() == 0;
    let mut doctor = Command::new(if is_root { "/usr/bin/setpriv" } else { "/usr/bin/env" });
    doctor.args(is_root.then_some("--bounding-set=-dac_override")).arg(aop.get_program()).arg("doctor");
    doctor
        .current_dir(project.root())
        .env_clear()
        .envs(aop.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let sick = finish(&mut doctor);
    assert_eq!((sick.code, &sick.envelope()["data"]["healthy"]), (Some(1), &json!(false)));
    let checks = sick.envelope()["data"]["checks"].to_string();
    assert!(checks.contains("aop.db cannot be written: make it writable"), "{checks}");
    mode(0o600);
    project.assert_healthy();
}

#[test]
fn a_note_is_read_from_standard_input_where_it_says_so() {
    let project = Project::with_feature();
    for (said, noted) in [("Use the\ndate picker\n", true), (" \n", false)] {
        let mut send = project.command(&["send", "--feature-id", "shop", "-"]);
        let mut child =
            send.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(said.as_bytes()).unwrap();
        let run = wait(child);
        assert_eq!(run.envelope()["ok"], noted, "{run:?}");
    }
    let log = project.run(&["log", "--feature-id", "shop"]).data().to_string();
    assert!(log.contains(r"Use the\ndate picker"), "{log}");
}

#[test]
fn an_object_that_cannot_be_kept_is_not_taken_for_a_text() {
    let project = Project::with_feature();
    let mut asked = question("shop", "ask");
    asked["expected_answer"] = Value::Null;
    let id = project.tool("feature.question_create", "builder", &asked).data()["question_id"].clone();
    let id = id.as_str().unwrap();
    for (answer, why) in [(r#"{"a": 1e400}"#, "out of range"), (r#"{"a": 1, "a": 2}"#, "twice")] {
        let typed = ["answer", "--feature-id", "shop", "--question-id", id, "--answer", answer];
        let error = refused(&project, &typed, "question_invalid_answer", 1);
        let said = format!("{} {}", error["message"], error["details"]["hint"]);
        assert!(said.contains("cannot be kept as it is") && said.contains(why), "{said}");
        assert!(said.contains("as text") && !said.contains("quote it for the shell"), "{said}");
    }
    assert_eq!(project.feature("shop")["status"], "awaiting_input");
    project.answer(id, "{not json").data();
}

#[test]
fn a_wrong_call_is_told_what_is_missing_and_what_is_possible() {
    let project = Project::with_feature();
    let error = refused(&project, &["spec", "check-answer"], "invalid_argument", 2);
    assert_eq!(error["message"], "the following required arguments were not provided: <SPEC>, <ANSWER>");
    let error = refused(&project, &["spec", "compile", "x", "--to", "foo"], "invalid_argument", 2);
    assert_eq!(error["message"], "invalid value 'foo' for '--to <TARGET>'");
    assert_eq!(
        error["details"]["hint"],
        "possible values: claude-code, codex, strict-text, elicitation, terminal; see `aop spec compile --help`"
    );
    let error = refused(&project, &["reopen", "--feature-id"], "invalid_argument", 2);
    assert_eq!(error["message"], "a value is required for '--feature-id <FEATURE_ID>' but none was supplied");
    assert_eq!(error["details"]["hint"], "see `aop reopen --help`");
    let error = refused(&project, &["spec"], "invalid_argument", 2);
    assert_eq!(error["message"], "a command is missing");
    assert_eq!(error["details"]["hint"], "usage: aop spec [OPTIONS] <COMMAND>");
}

#[test]
fn an_option_that_takes_a_number_says_so() {
    let project = Project::with_feature();
    for (args, option, right) in [
        (&["log", "--last", "x"][..], "--last <N>", "write a whole number, 0 or more"),
        (&["log", "--after=-1"], "--after <SEQ>", "write a whole number, 0 or more"),
        (&["questions", "--limit", "ten"], "--limit <N>", "write a whole number, 1 or more"),
        (&["replay", "--to", "1.5"], "--to <SEQ>", "write a whole number, 0 or more"),
        (&["run", "--max-parallel", "0"], "--max-parallel <N>", "write a whole number, 1 or more"),
        (&["serve", "--listen", "8080"], "--listen <ADDRESS>", "write an address with a port, like"),
    ] {
        let error = refused(&project, args, "invalid_argument", 2);
        let value = args.last().unwrap().rsplit('=').next().unwrap();
        assert_eq!(error["message"], format!("invalid value '{value}' for '{option}'"));
        assert!(error["details"]["hint"].as_str().unwrap().starts_with(right), "{error}");
    }
}

#[test]
fn a_list_of_at_most_0_is_refused_and_not_called_empty() {
    let project = Project::with_feature();
    project.ask("op-1");
    for list in ["questions", "log"] {
        let error = refused(&project, &[list, "--limit", "0"], "invalid_argument", 2);
        assert_eq!(error["message"], "invalid value '0' for '--limit <N>'");
    }
    let error = refused(&project, &["log", "--last", "0"], "invalid_argument", 2);
    assert_eq!(error["message"], "--last 0 would show nothing");
}

#[test]
fn no_id_becomes_a_path() {
    let project = Project::with_feature();
    for id in ["../../etc", "a/b", "..", ".", "-x", "A", "a\\b"] {
        let create = ["features", "create", "--title", "x", &format!("--feature-id={id}")];
        let error = refused(&project, &create, "invalid_argument", 2);
        assert!(error["message"].as_str().unwrap().starts_with("feature_id '"), "{error}");
        let id = format!("--feature-id={id}");
        refused(&project, &["questions", &id], "invalid_argument", 2);
        refused(&project, &["cancel", &id], "invalid_argument", 2);
        refused(&project, &["answer", &id, "--question-id", "../x", "--answer", "x"], "invalid_argument", 2);
    }
}

#[test]
fn prompts_are_neither_blank_nor_endless() {
    let project = Project::with_feature();
    let with_prompt = |prompt: String| {
        let mut input = question("shop", "op-1");
        input["prompt"] = json!(prompt);
        input
    };
    for blank in [" \n\t", "\u{200b}\u{2060}"] {
        let input = with_prompt(blank.into());
        let error = tool(&project, "feature.question_create", &input, "invalid_argument", 2);
        assert_eq!(error["message"], "prompt is blank");
    }
    let long = with_prompt("x".repeat(65 * 1024));
    let error = tool(&project, "feature.question_create", &long, "payload_too_large", 1);
    assert_eq!(error["details"]["limit"], 65_536);
    std::fs::write(project.path("huge.json"), with_prompt("x".repeat(5_000_000)).to_string()).unwrap();
    let call = ["tool", "call", "feature.question_create", "--role", "human", "--input", "@huge.json"];
    refused(&project, &call, "payload_too_large", 1);
    assert_eq!(project.feature("shop")["status"], "planning");
}

#[test]
fn an_answer_that_nobody_can_see_is_none() {
    let project = Project::with_feature();
    let spec = json!({"version": 1, "topic": "t", "questions": [{"id": "name", "header": "Name",
        "question": "Which name?", "kind": "free_text", "required": true}]});
    for (place, value) in [("expected_answer", json!({"kind": "free_text"})), ("spec", spec)] {
        let mut input = question("shop", place);
        input["expected_answer"] = Value::Null;
        input[place] = value;
        let asked = project.tool("feature.question_create", "builder", &input).data();
        let id = asked["question_id"].as_str().unwrap();
        let answer = ["answer", "--feature-id", "shop", "--question-id", id, "--answer", "\u{200b}\u{feff}"];
        refused(&project, &answer, "question_invalid_answer", 1);
        project.answer(id, "a").data();
    }
}

#[test]
fn choices_of_an_ask_are_named_by_their_option() {
    let project = Project::new();
    for (choices, said) in
        [(["A", "A"], "--choice has 'A' twice"), (["A", ""], "--choice has a blank text at place 2")]
    {
        let call = ["ask", "Which?", "--choice", choices[0], "--choice", choices[1]];
        let error = refused(&project, &call, "invalid_argument", 2);
        assert_eq!((&error["message"], &error["details"]["argument"]), (&json!(said), &json!("choice")));
    }
}

#[test]
fn broken_json_and_wrong_arguments_are_named() {
    let project = Project::with_feature();
    let call = ["tool", "call", "feature.get", "--role", "human", "--input", "{\"feature_id\": "];
    let error = refused(&project, &call, "invalid_argument", 2);
    assert!(error["message"].as_str().unwrap().starts_with("--input is not JSON"), "{error}");
    let twice = r#"{"feature_id": "f", "note": "a", "note": "b", "operation_id": "o"}"#;
    let call = ["tool", "call", "feature.log_append", "--role", "human", "--input", twice];
    let error = refused(&project, &call, "invalid_argument", 2);
    assert!(error["message"].as_str().unwrap().contains("\"note\" stands twice"), "{error}");
    let extra = json!({"feature_id": "shop", "colour": "red"});
    let error = tool(&project, "feature.get", &extra, "invalid_argument", 2);
    assert_eq!(error["message"], "feature.get takes no argument 'colour'");
    let no_operation = json!({"feature_id": "shop", "note": "x"});
    tool(&project, "feature.log_append", &no_operation, "operation_id_required", 2);
    let spaced = json!({"feature_id": "shop", "note": "x", "operation_id": "a b"});
    tool(&project, "feature.log_append", &spaced, "invalid_argument", 2);
    for (key, value) in [
        ("question_type", json!("riddle")),
        ("role", json!("king")),
        ("blocking", json!("yes")),
        ("timeout_ms", json!(-1)),
        ("details", json!([1])),
        ("expected_answer", json!({"kind": "single_choice"})),
        ("expected_answer", json!(["single_choice", ["a", "b"], true, null, null])),
        ("interaction", json!([])),
        ("expected_answer", json!({"kind": "json", "schema": {"type": 7}})),
        ("session_id", json!("")),
    ] {
        let mut input = question("shop", "op-1");
        input[key] = value;
        let error = tool(&project, "feature.question_create", &input, "invalid_argument", 2);
        assert!(error["message"].as_str().unwrap().contains(key), "{key}: {error}");
    }
}

#[test]
fn a_spec_that_breaks_its_rules_lists_every_violation() {
    let project = Project::with_feature();
    let mut input = question("shop", "op-1");
    input["expected_answer"] = Value::Null;
    input["spec"] = json!({"version": 0, "topic": " ", "questions": []});
    let error = tool(&project, "feature.question_create", &input, "invalid_document", 2);
    assert_eq!(error["details"]["violations"].as_array().unwrap().len(), 3, "{error}");
}

#[test]
fn the_wrong_kind_of_answer_is_refused_with_reasons_and_the_question_stays_open() {
    let project = Project::with_feature();
    let id = project.ask("op-1");
    let answer = ["answer", "--feature-id", "shop", "--question-id", &id, "--answer", "perhaps"];
    let error = refused(&project, &answer, "question_invalid_answer", 1);
    assert_eq!(error["details"]["reasons"], json!(["'perhaps' is not one of 'yes', 'no'"]));
    let list = json!({"feature_id": "shop", "question_id": id, "answer": ["yes"], "answered_by": "sam", "operation_id": "a"});
    tool(&project, "feature.question_answer", &list, "question_invalid_answer", 1);
    let quotes = ["answer", "--feature-id", "shop", "--question-id", &id, "--answer", "\"yes\""];
    let error = refused(&project, &quotes, "question_invalid_answer", 1);
    assert_eq!(error["details"]["reasons"], json!([r#"'"yes"' is not one of 'yes', 'no'"#]));
    let nothing = json!({"feature_id": "shop", "question_id": id, "answer": null, "answered_by": "sam", "operation_id": "a"});
    let error = tool(&project, "feature.question_answer", &nothing, "question_invalid_answer", 1);
    assert_eq!(error["details"]["reasons"], json!(["expected one of 'yes', 'no', got null"]));
    let missing = json!({"feature_id": "shop", "question_id": id, "answered_by": "sam", "operation_id": "a"});
    tool(&project, "feature.question_answer", &missing, "invalid_argument", 2);
    for name in ["policy:default", "policy\u{200b}:default"] {
        let forged = json!({"feature_id": "shop", "question_id": id, "answer": "yes", "answered_by": name, "operation_id": "a"});
        tool(&project, "feature.question_answer", &forged, "invalid_argument", 2);
        let token = ["token", "create", "--kind", "operator", "--name", name];
        refused(&project, &token, "invalid_argument", 2);
    }
    let own = json!({"feature_id": "shop", "question_id": id, "answer": "yes", "answered_by": "builder", "operation_id": "a"});
    let conveyed = project.tool("feature.question_answer", "orchestrator", &own);
    conveyed.refused("invalid_argument", 2);
    assert_eq!(project.feature("shop")["open_question_id"], id.as_str());
}

#[test]
fn an_answer_that_cannot_be_read_is_first_told_whether_one_is_still_taken() {
    let project = Project::with_feature();
    let ask = |feature: &str, operation: &str, expected: Value| {
        let mut input = question(feature, operation);
        input["expected_answer"] = expected;
        let asked = project.tool("feature.question_create", "builder", &input).data();
        asked["question_id"].as_str().unwrap().to_owned()
    };
    let answer = |feature: &str, id: &str, by: &str, text: &str, operation: &str| {
        let named = ["answer", "--feature-id", feature, "--question-id", id, "--answered-by", by];
        project.run(&[&named[..], &["--answer", text, "--operation-id", operation]].concat())
    };
    let several = || json!({"kind": "multi_choice", "choices": ["A", "B"]});
    let any = || json!({"kind": "json"});
    for (round, (expected, right, wrong, why)) in [
        (several(), "[\"A\"]", "B", "not JSON"),
        (any(), "{\"a\": 1}", "{\"a\": 1, \"a\": 2}", "stands twice"),
    ]
    .into_iter()
    .enumerate()
    {
        let id = ask("shop", &format!("ask-{round}"), expected.clone());
        let operation = format!("alice-{round}");
        let error = answer("shop", &id, "bob", wrong, "bob").refused("question_invalid_answer", 1);
        assert!(error["message"].as_str().unwrap().contains(why), "{error}");
        answer("nowhere", &id, "bob", wrong, "bob").refused("feature_not_found", 1);
        answer("shop", &id, "alice", right, &operation).data();
        let late = answer("shop", &id, "bob", wrong, "bob").refused("question_already_answered", 1);
        assert_eq!(late["details"]["answered_by"], "alice");
        answer("shop", &id, "alice", wrong, &operation).refused("operation_id_reuse_mismatch", 1);
        answer("shop", &id, "alice", right, &operation).data();
        let gone = ask("shop", &format!("gone-{round}"), expected.clone());
        project.run(&["withdraw", "--feature-id", "shop", "--question-id", &gone]).data();
        answer("shop", &gone, "bob", wrong, "bob").refused("question_closed", 1);
        let over = format!("over-{round}");
        project.create_feature(&over);
        let last = ask(&over, &over, expected);
        project.run(&["cancel", "--feature-id", &over]).data();
        answer(&over, &last, "bob", wrong, "bob").refused("question_answer_not_allowed_in_terminal_state", 1);
    }
}

#[test]
fn an_ended_feature_offers_nothing_that_it_would_refuse() {
    let project = Project::with_feature();
    let id = project.ask("op-1");
    let blank = ["send", "--feature-id", "shop", "--from", " ", "Hurry"];
    assert_eq!(refused(&project, &blank, "invalid_argument", 2)["message"], "--from is blank");
    let policy = ["send", "--feature-id", "shop", "--from", "policy:default", "Hurry"];
    assert_eq!(
        refused(&project, &policy, "invalid_argument", 2)["message"],
        "--from 'policy:default' is reserved"
    );
    project.run(&["cancel", "--feature-id", "shop"]).data();
    let send = ["send", "--feature-id", "shop", "Hurry"];
    let error = refused(&project, &send, "invalid_status_transition", 1);
    assert!(error["details"]["hint"].as_str().unwrap().contains("`aop features create"), "{error}");
    let withdraw = ["withdraw", "--feature-id", "shop", "--question-id", &id];
    let error = refused(&project, &withdraw, "question_closed", 1);
    assert_eq!(error["details"]["hint"], "feature 'shop' is failed; nothing is left to withdraw");
}

#[test]
fn settings_that_cannot_be_used_are_named_with_file_and_line() {
    let project = Project::with_feature();
    std::fs::write(project.path("aop.yaml"), "projections: on\npolcy: {}\n").unwrap();
    let error = refused(&project, &["status"], "invalid_policy", 2);
    assert_eq!(error["details"]["line"], 2);
    assert!(error["message"].as_str().unwrap().contains("aop.yaml:2: unknown field `polcy`"), "{error}");
    // An address without a project is no mistake: `aop init` makes one. Until then the next step is told.
    std::fs::write(project.path("aop.yaml"), "store: postgres://ann@127.0.0.1:1/team\n").unwrap();
    let error = refused(&project, &["status"], "store_unavailable", 1);
    assert!(error["message"].as_str().unwrap().ends_with("name a new project on PostgreSQL"), "{error}");
    assert!(error["details"]["hint"].as_str().unwrap().contains("`aop init`"), "{error}");
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let project = Project::with_feature();
    let create = ["features", "create", "--feature-id", "b", "--title", "B", "--spec", "missing.md"];
    let error = refused(&project, &create, "invalid_argument", 2);
    assert!(error["message"].as_str().unwrap().contains("'missing.md' cannot be read"), "{error}");
    let timeout = ["ask", "x", "--timeout", "soon"];
    refused(&project, &timeout, "invalid_argument", 2);
}

#[test]
fn a_specification_is_a_file_that_says_something() {
    let project = Project::new();
    std::fs::write(project.path("blank.md"), " \n\t\n").unwrap();
    for (path, named) in [
        ("missing.md", "'missing.md' cannot be read"),
        ("blank.md", "'blank.md' is empty"),
        ("-", "not from standard input"),
    ] {
        let error = refused(&project, &["run", path], "invalid_argument", 2);
        assert!(error["message"].as_str().unwrap().contains(named), "{error}");
        assert!(!error["details"]["hint"].as_str().unwrap().contains("standard input"), "{error}");
    }
    assert_eq!(project.run(&["features", "list"]).data()["items"], json!([]), "nothing was enrolled");
}

#[test]
fn a_project_that_is_not_named_is_no_folder_and_an_empty_variable_is_none() {
    let project = Project::new();
    for args in [&["init", "--project"][..], &["status", "--project"], &["status", "--project="]] {
        let error = refused(&project, args, "invalid_argument", 2);
        assert_eq!(error["message"], "--project names no folder", "{args:?}");
    }
    let error = refused(&project, &["demo", "--project", "."], "invalid_argument", 2);
    assert!(error["message"].as_str().unwrap().contains("takes no --project"), "{error}");
    let root = project.root().display().to_string();
    let (below, other) = (project.path("below"), Project::empty());
    std::fs::create_dir(&below).unwrap();
    let empty = [("AOP_PROJECT", "")];
    let found = finish(project.command(&["doctor"]).current_dir(&below).envs(empty)).data();
    assert_eq!(found["checks"][0]["message"], root, "found upward from here");
    let found = other.run_with(&["doctor", "--project", &root], &empty).data();
    assert_eq!(found["checks"][0]["message"], root);
    let elsewhere = other.root().display().to_string();
    let found = other.run_with(&["doctor", "--project", &root], &[("AOP_PROJECT", &elsewhere)]).data();
    assert_eq!(found["checks"][0]["message"], root, "the option wins");
}

#[test]
fn a_value_with_a_dash_at_its_beginning_is_told_how_it_is_written() {
    let project = Project::new();
    for (option, value) in [("--choice", "-1"), ("--timeout", "-5s"), ("--feature-id", "-a")] {
        let error = project.run(&["ask", "Which?", option, value]).refused("invalid_argument", 2);
        let hint = error["details"]["hint"].as_str().unwrap();
        assert!(hint.contains(&format!("write '{option}={value}'")) && !hint.contains("'-- "), "{error}");
    }
    let error = project.run(&["ask", "Which?", "--plain", "-1"]).refused("invalid_argument", 2);
    assert!(!error.to_string().contains("--plain=-1"), "{error}");
    let error = project.run(&["serve", "--allow-host", ""]).refused("invalid_argument", 2);
    assert!(error["details"]["hint"].as_str().unwrap().contains("write a name"), "{error}");
}
