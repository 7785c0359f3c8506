//! Gates of instruction packets: a step is blocked until a valid answer stands at its `answer_path`.

use crate::support::{Project, wait};
use serde_json::{Value, json};

fn packet(answer_path: &str) -> Value {
    json!({"step": "init", "answer_path": answer_path, "novel_ask": {"version": 1, "topic": "init", "questions": [
        {"id": "platform", "header": "Platform", "question": "Which platform?", "kind": "single_choice",
         "required": true, "options": [{"label": "Web", "description": "w"}, {"label": "Print", "description": "p"}]},
        {"id": "token", "header": "Token", "question": "Which token?", "kind": "free_text", "required": false,
         "secret": true}]}})
}

fn project_with(answer_path: &str) -> Project {
    let project = Project::new();
    std::fs::write(project.path("step.json"), packet(answer_path).to_string()).unwrap();
    project
}

#[test]
fn step_is_blocked_until_gate_is_answered() {
    let project = project_with("answers/init.json");
    let blocked = project.run(&["packet", "check", "step.json"]);
    assert_eq!(blocked.code, Some(3), "{blocked:?}");
    assert_eq!(blocked.envelope()["data"]["reason"], "missing");
    let asking = project.spawn(&["packet", "ask", "step.json"]);
    let question = project.opened_question();
    project.answer_to(&question, r#"{"platform": "Web", "token": "hunter2"}"#).data();
    let asked = wait(asking).data();
    assert_eq!(asked["gate"], "open");
    assert!(asked["operation_id"].is_string(), "who asks somebody is told the operation: {asked}");
    assert_eq!(project.run(&["packet", "check", "step.json"]).data()["gate"], "open");
    let record: Value =
        serde_json::from_slice(&std::fs::read(project.path("answers/init.json")).unwrap()).unwrap();
    assert_eq!(record["answers"], json!({"platform": "Web", "token": "hunter2"}));
    assert_eq!(record["answered_by"], "human");
    assert_eq!(std::fs::read_dir(project.path("answers")).unwrap().count(), 1, "no temporary file stays");
    assert_eq!(
        project.run(&["packet", "ask", "step.json"]).data()["gate"],
        "open",
        "an open gate asks nobody"
    );
}

#[test]
fn an_invalid_record_is_reported_and_never_overwritten_unless_it_is_moved_aside() {
    let project = project_with("init.json");
    std::fs::write(project.path("init.json"), "{}").unwrap();
    for command in ["check", "ask"] {
        let run = project.run(&["packet", command, "step.json"]);
        assert_eq!(run.code, Some(3), "{run:?}");
        assert_eq!(run.envelope()["data"]["reason"], "invalid");
        assert!(!run.envelope()["data"]["violations"].as_array().unwrap().is_empty());
    }
    let asking = project.spawn(&["packet", "ask", "step.json", "--replace"]);
    project.answer_to(&project.opened_question(), r#"{"platform": "Print"}"#).data();
    assert_eq!(wait(asking).data()["gate"], "open");
    assert_eq!(std::fs::read_to_string(project.path("init.json.invalid-1")).unwrap(), "{}");
}

#[test]
fn an_answer_that_comes_after_another_record_is_not_said_to_be_there() {
    let project = project_with("init.json");
    let asking = ["first", "second"].map(|operation| {
        let asking = project.spawn(&["packet", "ask", "step.json", "--operation-id", operation]);
        (asking, project.opened_question_after(usize::from(operation == "second")))
    });
    let [(first, one), (second, two)] = asking;
    project.answer_to(&one, r#"{"platform": "Web"}"#).data();
    assert_eq!(wait(first).data().get("unwritten"), None);
    project.answer_to(&two, r#"{"platform": "Print"}"#).data();
    let late = wait(second);
    assert_eq!((&late.data()["gate"], &late.data()["unwritten"]), (&json!("open"), &two["question_id"]));
    assert!(late.stderr.contains("was not written there"), "{late:?}");
    let record: Value = serde_json::from_slice(&std::fs::read(project.path("init.json")).unwrap()).unwrap();
    assert_eq!(record["answers"]["platform"], "Web");
}

#[test]
fn a_gate_nobody_answers_stays_blocked() {
    let project = project_with("init.json");
    let run = wait(project.spawn(&["packet", "ask", "step.json", "--timeout", "1s"]));
    assert_eq!(run.code, Some(3), "{run:?}");
    assert_eq!(run.envelope()["data"]["reason"], "missing");
    assert!(!project.path("init.json").exists());
}

#[test]
fn an_answer_path_never_leaves_the_project() {
    for path in ["../out.json", "/tmp/out.json", ".aop/x.json", "a/../../out.json", "link/out.json", ""] {
        let project = project_with(path);
        std::os::unix::fs::symlink("/tmp", project.path("link")).unwrap();
        for command in ["check", "ask"] {
            project.run(&["packet", command, "step.json"]).refused("invalid_document", 2);
        }
    }
}

#[test]
fn a_packet_without_a_question_has_no_gate_and_half_a_gate_is_invalid() {
    let project = Project::new();
    std::fs::write(project.path("step.json"), r#"{"step": "init"}"#).unwrap();
    assert_eq!(project.run(&["packet", "check", "step.json"]).data()["gate"], "none");
    std::fs::write(project.path("step.json"), r#"{"answer_path": "x.json"}"#).unwrap();
    project.run(&["packet", "check", "step.json"]).refused("invalid_document", 2);
}
