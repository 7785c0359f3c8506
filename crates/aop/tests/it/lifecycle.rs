//! The operator's workflow through the real binary (seed 004 §13.3, §14.6, contract 7).

use crate::support::{Project, question};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

#[test]
fn init_writes_the_project_and_changes_nothing_that_is_there() {
    let project = Project::empty();
    let made = project.run(&["init"]).data();
    assert_eq!(made["created"], json!([".aop/", ".aop/.gitignore", "aop.yaml"]));
    std::fs::write(project.path("aop.yaml"), "projections: off\n").unwrap();
    assert_eq!(project.run(&["init"]).data()["created"], json!([]));
    assert_eq!(std::fs::read_to_string(project.path("aop.yaml")).unwrap(), "projections: off\n");
}

#[test]
fn init_makes_a_folder_for_its_owner_alone_and_leaves_one_that_is_there_as_it_is() {
    let project = Project::new();
    let mode = || std::fs::metadata(project.path(".aop")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o700);
    std::fs::set_permissions(project.path(".aop"), std::fs::Permissions::from_mode(0o750)).unwrap();
    project.run(&["init"]).data();
    assert_eq!(mode(), 0o750);
}

#[test]
fn the_project_is_found_upward_and_by_option_and_by_variable() {
    let project = Project::with_feature();
    std::fs::create_dir_all(project.path("a/b")).unwrap();
    let inside = crate::support::finish(project.command(&["status"]).current_dir(project.path("a/b")));
    assert_eq!(inside.data()["features"][0]["feature_id"], "shop");
    let elsewhere = project.beside();
    let root = project.root().to_str().unwrap();
    assert_eq!(elsewhere.run(&["status", "--project", root]).data()["features"][0]["feature_id"], "shop");
    let by_variable = elsewhere.run_with(&["status"], &[("AOP_PROJECT", root)]);
    assert_eq!(by_variable.data()["features"][0]["feature_id"], "shop");
}

#[test]
fn read_commands_leave_a_folder_without_aop_untouched() {
    let project = Project::empty();
    for command in [
        &["status"][..],
        &["questions"],
        &["features", "list"],
        &["features", "show", "shop"],
        &["log"],
        &["doctor"],
        &["answer"],
        &["tool", "call", "feature.list", "--role", "human"],
    ] {
        let run = project.run(command);
        assert_ne!(run.code, Some(0), "{command:?}");
        assert_eq!(std::fs::read_dir(project.root()).unwrap().count(), 0, "{command:?} wrote something");
    }
    project.run(&["status"]).refused("no_project", 1);
    assert_eq!(project.run(&["explain", "no_project"]).data()["exit_code"], 1);
}

#[test]
fn aop_questions_returns_open_questions_sorted_deterministically() {
    let project = Project::new();
    let mut asked = Vec::new();
    for id in ["c", "a", "b"] {
        project.create_feature(id);
        let created =
            project.tool("feature.question_create", "builder", &question(id, &format!("op-{id}"))).data();
        asked.push(created["question_id"].clone());
    }
    let listed = |args: &[&str]| -> Vec<Value> {
        let items = project.run(args).data()["items"].as_array().unwrap().clone();
        items.iter().map(|item| item["question_id"].clone()).collect()
    };
    assert_eq!(listed(&["questions"]), asked, "by created_at, then id; over all features");
    assert_eq!(listed(&["questions", "--feature-id", "a"]), asked[1..2]);
    assert_eq!(listed(&["questions", "--limit", "2"]), asked[..2]);
    assert_eq!(listed(&["questions", "--after", asked[0].as_str().unwrap()]), asked[1..]);
    assert_eq!(listed(&["questions", "--status", "answered"]), Vec::<Value>::new());
}

#[test]
fn aop_answer_closes_the_question_and_reports_the_resumed_status() {
    let project = Project::with_feature();
    let to_building = json!({"feature_id": "shop", "to": "building", "operation_id": "t1"});
    project.tool("feature.transition", "orchestrator", &to_building).data();
    let id = project.ask("op-1");
    assert_eq!(project.feature("shop")["status"], "awaiting_input");
    let answered = project.answer(&id, "yes").data();
    assert_eq!(answered["question_status"], "answered");
    assert_eq!(answered["feature_status"], "building");
    assert_eq!(answered["resume_status"], "building");
    assert_eq!(answered["resumed"], true);
    assert_eq!(answered["feature_id"], "shop");
    assert!(answered["operation_id"].is_string());
    assert_eq!(project.feature("shop")["status"], "building");
    project.assert_healthy();
}

#[test]
fn a_question_is_named_by_its_id_alone_and_answered_in_two_words() {
    let project = Project::with_feature();
    let id = project.ask("op-1");
    assert_eq!(project.run(&["withdraw", &id]).data()["status"], "withdrawn");
    let again = project.run(&["reopen", "--question-id", &id]).data();
    let id = again["question_id"].as_str().unwrap();
    let answered = project.run(&["answer", id, "yes"]).data();
    assert_eq!((&answered["question_id"], &answered["feature_id"]), (&again["question_id"], &json!("shop")));
    project.run(&["answer", "--question-id", id, "--answer", "no"]).refused("question_already_answered", 1);
    let unknown = "q_01J9ZQ4V7K3M2N1P0R5S6T7V8W";
    for typed in
        [&["answer", unknown, "yes"][..], &["reopen", unknown], &["withdraw", "--question-id", unknown]]
    {
        project.run(typed).refused("question_not_found", 1);
    }
    for twice in [
        &["answer", id, "--question-id", id, "--answer", "yes"][..],
        &["answer", id, "yes", "--answer", "yes"],
        &["answer", "--answer", "yes"],
        &["reopen", id, "--question-id", id],
        &["withdraw"],
    ] {
        project.run(twice).refused("invalid_argument", 2);
    }
}

#[test]
fn whoever_wants_another_answer_is_told_what_can_still_be_done() {
    let project = Project::with_feature();
    let question = project.ask("op-1");
    let named = ["--feature-id", "shop", "--question-id", &question];
    let hint = |command: &str| {
        let refused = project.run(&[&[command][..], &named[..]].concat());
        let error = refused.refused("question_already_answered", 1);
        error["details"]["hint"].as_str().unwrap().to_owned()
    };
    project.run(&[&["answer", "--answer", "yes"][..], &named[..]].concat()).data();
    for command in ["reopen", "withdraw"] {
        let hint = hint(command);
        assert!(hint.contains("`aop send --feature-id shop NOTE`"), "{hint}");
    }
    project.run(&["cancel", "--feature-id", "shop"]).data();
    for command in ["reopen", "withdraw"] {
        let hint = hint(command);
        assert!(!hint.contains("aop send") && hint.contains("aop features create"), "{hint}");
    }
}

#[test]
fn whoever_wants_another_secret_is_not_told_to_write_it_into_the_log() {
    let project = Project::with_feature();
    let spec = json!({"version": 1, "topic": "t", "questions": [{"id": "key", "header": "Key",
        "question": "Which key?", "kind": "free_text", "required": true, "secret": true}]});
    let input = json!({"feature_id": "shop", "role": "builder", "session_id": "s", "prompt": "p",
        "question_type": "clarification", "spec": spec, "operation_id": "op-1"});
    let asked = project.tool("feature.question_create", "builder", &input).data();
    let question = asked["question_id"].as_str().unwrap();
    project.answer(question, "first").data();
    let error = project.answer(question, "second").refused("question_already_answered", 1);
    let hint = error["details"]["hint"].as_str().unwrap();
    assert!(hint.contains("ask again") && hint.contains("leave the secret out of it"), "{hint}");
}

#[test]
fn since_when_a_status_holds_is_when_it_changed_and_not_when_the_feature_was_touched() {
    let project = Project::with_feature();
    let feature = || project.run(&["status"]).data()["features"][0].clone();
    assert_eq!(feature()["status_since"], feature()["created_at"]);
    let input = json!({"feature_id": "shop", "to": "blocked", "operation_id": "op-1"});
    project.tool("feature.transition", "human", &input).data();
    let moved = project.run(&["log", "--last", "1"]).data()["items"][0].clone();
    assert_eq!(moved["to"], "blocked");
    std::thread::sleep(std::time::Duration::from_millis(20));
    project.run(&["send", "--feature-id", "shop", "Use the date picker"]).data();
    project.run(&["features", "mode", "shop", "auto"]).data();
    let touched = feature();
    assert_eq!(touched["status_since"], moved["at"]);
    assert_ne!(touched["status_since"], touched["updated_at"]);
    let replayed = project.run(&["replay"]).data();
    assert_eq!(replayed["matches_store"], true);
    let record = replayed["features"][0].as_object().unwrap();
    assert!(!record.contains_key("status_since"), "the digest is that of earlier versions");
    project.assert_healthy();
}

#[test]
fn status_shows_what_waits_without_guessing() {
    let project = Project::with_feature();
    let before = project.run(&["status", "--json"]).data()["features"][0].clone();
    for key in [
        "feature_id",
        "title",
        "status",
        "activity_state",
        "open_question_count",
        "open_question_id",
        "awaiting_since",
        "resume_status",
        "role",
        "engine",
        "updated_at",
    ] {
        assert!(before.get(key).is_some(), "{key} is missing");
    }
    assert_eq!(before["open_question_id"], Value::Null);
    let id = project.ask("op-1");
    let waiting = project.run(&["status"]).data()["features"][0].clone();
    assert_eq!(waiting["status"], "awaiting_input");
    assert_eq!(waiting["activity_state"], "waiting_input");
    assert_eq!(waiting["open_question_id"], id.as_str());
    assert_eq!(waiting["open_question_count"], 1);
    assert_eq!(waiting["resume_status"], "planning");
    assert!(waiting["awaiting_since"].is_string());
}

#[test]
fn the_files_below_features_show_what_the_store_holds() {
    let project = Project::with_feature();
    let id = project.ask("op-1");
    project.answer(&id, "no").data();
    let questions: Value =
        serde_json::from_slice(&std::fs::read(project.path(".aop/features/shop/questions.json")).unwrap())
            .unwrap();
    assert_eq!(questions["version"], 1);
    assert_eq!(questions["feature_id"], "shop");
    assert_eq!(questions["items"][0]["answer"], "no");
    let state = std::fs::read_to_string(project.path(".aop/features/shop/state.md")).unwrap();
    assert!(state.contains("\nstatus: planning\n"), "{state}");
    assert!(state.contains("\n  open_question_id: null\n"), "{state}");
    let decisions = std::fs::read_to_string(project.path(".aop/features/shop/decisions.md")).unwrap();
    assert!(decisions.contains(&format!("{id} answered by human: no")), "{decisions}");
    let index: Value =
        serde_json::from_slice(&std::fs::read(project.path(".aop/features/index.json")).unwrap()).unwrap();
    assert_eq!(index["features"][0]["status"], "planning");
}

#[test]
fn a_form_is_answered_by_its_mapping_and_its_record_is_written() {
    let project = Project::with_feature();
    let spec = json!({"version": 1, "topic": "init", "questions": [
        {"id": "platform", "header": "Platform", "question": "Which platform?", "kind": "single_choice",
         "required": true, "options": [{"label": "Web", "description": "w"}, {"label": "Print", "description": "p"}]},
        {"id": "name", "header": "Name", "question": "Which name?", "kind": "free_text", "required": false}]});
    let mut input = question("shop", "op-1");
    input["expected_answer"] = Value::Null;
    input["spec"] = spec;
    let asked = project.tool("feature.question_create", "builder", &input).data();
    let id = asked["question_id"].as_str().unwrap();
    let wrong = project.answer(id, r#"{"platform": "Radio"}"#).refused("question_invalid_answer", 1);
    assert!(wrong["details"]["reasons"][0].as_str().unwrap().contains("Radio"), "{wrong}");
    let twice = r#"{"platform": "Web", "platform": "Print"}"#;
    let wrong = project.answer(id, twice).refused("question_invalid_answer", 1);
    assert!(wrong["details"]["reasons"][0].as_str().unwrap().contains("stands twice"), "{wrong}");
    project.answer(id, r#"{"platform": "Web", "name": "Nora"}"#).data();
    let path = project.path(&format!(".aop/features/shop/answers/{id}.json"));
    let record: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(record["topic"], "init");
    assert_eq!(record["answers"], json!({"platform": "Web", "name": "Nora"}));
    assert_eq!(record["answered_by"], "human");
}

#[test]
fn a_secret_that_fails_its_schema_stands_in_no_message() {
    let project = Project::with_feature();
    let mut input = question("shop", "op-1");
    input["spec"] = json!({"version": 1, "topic": "login", "questions": [{"id": "key", "header": "Key",
        "question": "Which key?", "kind": "free_text", "required": true, "secret": true}]});
    input["expected_answer"] = json!({"kind": "form", "schema": {"properties": {"key": {"minLength": 20}}}});
    let asked = project.tool("feature.question_create", "builder", &input).data();
    let wrong = project.answer(asked["question_id"].as_str().unwrap(), r#"{"key": "hunter2"}"#);
    assert!(!wrong.stdout.contains("hunter2"), "{wrong:?}");
    assert!(wrong.refused("question_invalid_answer", 1)["message"].as_str().unwrap().contains("schema"));
}

#[test]
fn the_expected_kind_decides_how_the_value_is_read() {
    let project = Project::with_settings(
        "policy: { execution: { human_input: { max_open_questions_per_feature: 9 } } }",
    );
    let mut number = 0;
    let mut answered = |expected: Value, value: &str| {
        number += 1;
        let mut input = question("shop", &format!("op-{number}"));
        input["expected_answer"] = expected;
        input["blocking"] = json!(false);
        let asked = project.tool("feature.question_create", "builder", &input).data();
        let id = asked["question_id"].as_str().unwrap().to_owned();
        project.answer(&id, value).data();
        let listed = project.run(&["questions", "--status", "answered"]).data();
        let items = listed["items"].as_array().unwrap().clone();
        items.iter().find(|item| item["question_id"] == id.as_str()).unwrap()["answer"].clone()
    };
    assert_eq!(answered(json!({"kind": "free_text"}), "[1]"), json!("[1]"));
    assert_eq!(answered(json!({"kind": "single_choice", "choices": ["{}"]}), "{}"), json!("{}"));
    assert_eq!(answered(json!({"kind": "multi_choice", "choices": ["a", "b"]}), r#"["b"]"#), json!(["b"]));
    assert_eq!(answered(json!({"kind": "json"}), "7"), json!(7));
    assert_eq!(answered(Value::Null, r#"{"a": 1}"#), json!({"a": 1}));
    assert_eq!(answered(Value::Null, "[1]"), json!("[1]"));
    assert_eq!(answered(Value::Null, "plain"), json!("plain"));
}

#[test]
fn an_answer_comes_from_a_file_or_from_standard_input() {
    let project = Project::with_feature();
    let first = project.ask("op-1");
    std::fs::write(project.path("answer.txt"), "yes\n").unwrap();
    let ids =
        ["answer", "--feature-id", "shop", "--question-id", first.as_str(), "--answer-file", "answer.txt"];
    project.run(&ids).data();
    let second = project.ask("op-2");
    let mut command =
        project.command(&["answer", "--feature-id", "shop", "--question-id", &second, "--answer-file", "-"]);
    // As a file from another system ends its lines.
    std::fs::write(project.path("answer.txt"), "yes\r\n").unwrap();
    let input = std::fs::File::open(project.path("answer.txt")).unwrap();
    crate::support::finish(command.stdin(input)).data();
}

#[test]
fn an_answer_in_an_argument_is_taken_to_the_letter() {
    let project = Project::with_feature();
    let mut input = question("shop", "op-1");
    input["expected_answer"] = json!({"kind": "single_choice", "choices": ["A\n", "A"]});
    let asked = project.tool("feature.question_create", "builder", &input).data();
    project.answer(asked["question_id"].as_str().unwrap(), "A\n").data();
    let listed = project.run(&["questions", "--status", "answered"]).data();
    assert_eq!(listed["items"][0]["answer"], "A\n");
}

#[test]
fn withdraw_reopen_retry_and_cancel_move_a_feature_as_written() {
    let project = Project::with_feature();
    let id = project.ask("op-1");
    let args = |command: &'static str, question: &str| -> Vec<String> {
        [command, "--feature-id", "shop", "--question-id", question].map(str::to_owned).to_vec()
    };
    let run = |args: &[String]| project.run(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let withdrawn = run(&args("withdraw", &id)).data();
    assert_eq!(withdrawn["status"], "withdrawn");
    assert_eq!(withdrawn["feature_status"], "planning");
    let reopened = run(&args("reopen", &id)).data();
    assert_eq!(reopened["feature_status"], "awaiting_input");
    let new = reopened["question_id"].as_str().unwrap();
    let reason = format!("human asked builder's question again as {new}");
    assert_eq!(project.feature("shop")["status_reason"], reason.as_str());
    let log = std::fs::read_to_string(project.path(".aop/features/shop/decisions.md")).unwrap();
    assert!(
        log.contains(&format!("human asked builder's question {id} again as {new} (clarification)")),
        "{log}"
    );
    let listed = project.run(&["questions"]).data();
    assert_eq!(listed["items"][0]["reopened_from"], id.as_str());
    run(&args("withdraw", new)).data();
    project.run(&["retry", "--feature-id", "shop"]).refused("invalid_status_transition", 1);
    let block = json!({"feature_id": "shop", "to": "blocked", "operation_id": "b1"});
    project.tool("feature.transition", "human", &block).data();
    assert_eq!(project.run(&["retry", "--feature-id", "shop"]).data()["status"], "planning");
    project.ask("op-2");
    assert_eq!(project.run(&["cancel", "--feature-id", "shop"]).data()["status"], "failed");
    assert_eq!(project.feature("shop")["status_reason"], "cancelled");
    assert_eq!(project.run(&["questions"]).data()["items"], json!([]));
    project.assert_healthy();
}

#[test]
fn the_same_operation_id_returns_the_first_envelope_byte_for_byte() {
    let project = Project::with_feature();
    let id = project.ask("op-1");
    let args =
        ["answer", "--feature-id", "shop", "--question-id", &id, "--answer", "yes", "--operation-id", "x-1"];
    let first = project.run(&args);
    let again = project.run(&args);
    assert_eq!(first.stdout, again.stdout);
    first.data();
    let other =
        ["answer", "--feature-id", "shop", "--question-id", &id, "--answer", "no", "--operation-id", "x-1"];
    project.run(&other).refused("operation_id_reuse_mismatch", 1);
}

#[test]
fn projections_can_be_turned_off_and_doctor_rebuilds_them() {
    let project = Project::with_settings("projections: off\n");
    project.ask("op-1");
    assert!(!project.path(".aop/features/shop/questions.json").exists());
    std::fs::write(project.path("aop.yaml"), "projections: on\n").unwrap();
    let sick = project.run(&["doctor"]);
    assert_eq!(sick.code, Some(1));
    assert_eq!(sick.envelope()["data"]["healthy"], false);
    project.run(&["doctor", "--repair"]).data();
    project.assert_healthy();
}

#[test]
fn a_late_answer_is_refused_and_leaves_the_expiry_in_the_files() {
    let project = Project::with_feature();
    let mut input = question("shop", "op-1");
    input["timeout_ms"] = json!(1000);
    let asked = project.tool("feature.question_create", "builder", &input).data();
    std::thread::sleep(std::time::Duration::from_millis(1100));
    project.answer(asked["question_id"].as_str().unwrap(), "yes").refused("question_closed", 1);
    let read = |name: &str| std::fs::read_to_string(project.path(".aop/features/shop").join(name)).unwrap();
    let questions: Value = serde_json::from_str(&read("questions.json")).unwrap();
    assert_eq!(questions["items"][0]["status"], "expired");
    assert!(read("decisions.md").contains("expired"), "{}", read("decisions.md"));
    assert!(read("state.md").contains("status: blocked"), "{}", read("state.md"));
}
