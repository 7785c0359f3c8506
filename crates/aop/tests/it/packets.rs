//! Gates of instruction packets: a step is blocked until a valid answer stands at its `answer_path`.

use crate::run_support::{Running, events, script, workshop};
use crate::support::{Project, wait};
use serde_json::{Value, json};
use std::process::Stdio;

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
    let question = project.opened_question();
    assert_eq!(std::fs::read_to_string(project.path("init.json")).unwrap(), "{}", "nobody has answered");
    project.answer_to(&question, r#"{"platform": "Print"}"#).data();
    assert_eq!(wait(asking).data()["gate"], "open");
    assert_eq!(std::fs::read_to_string(project.path("init.json.invalid-1")).unwrap(), "{}");
}

#[test]
fn a_record_is_moved_aside_for_an_answer_and_for_nothing_else() {
    let project = project_with("init.json");
    std::fs::write(project.path("init.json"), "{}").unwrap();
    let ask = ["packet", "ask", "step.json", "--replace"];
    project.run(&[&ask[..], &["--feature-id", "nobody"]].concat()).refused("feature_not_found", 1);
    let unanswered = project.run(&[&ask[..], &["--timeout", "1s"]].concat());
    assert_eq!(unanswered.code, Some(3), "{unanswered:?}");
    assert_eq!(unanswered.envelope()["data"]["reason"], "invalid");
    assert_eq!(std::fs::read_to_string(project.path("init.json")).unwrap(), "{}");
    assert!(!project.path("init.json.invalid-1").exists());
}

#[test]
fn a_bare_secret_at_the_answer_path_is_in_nothing_that_is_told() {
    let project = project_with("init.json");
    std::fs::write(project.path("init.json"), "\"hunter2\"").unwrap();
    for command in ["check", "ask"] {
        let run = project.run(&["packet", command, "step.json"]);
        assert_eq!(run.envelope()["data"]["reason"], "invalid");
        assert!(!format!("{run:?}").contains("hunter2"), "{run:?}");
    }
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
fn an_interrupted_wait_at_a_gate_names_the_question_that_stays_open() {
    let project = project_with("out/answer.json");
    let asking = project.spawn(&["packet", "ask", "step.json"]);
    let question = project.opened_question();
    let interrupt = std::process::Command::new("kill").args(["-INT", &asking.id().to_string()]).status();
    assert!(interrupt.unwrap().success());
    let run = wait(asking);
    assert_eq!(run.code, Some(130), "{run:?}");
    let data = run.envelope()["data"].clone();
    assert_eq!((&data["gate"], &data["question_id"]), (&json!("blocked"), &question["question_id"]));
    let again = format!("--operation-id {}", data["operation_id"].as_str().unwrap());
    assert!(data["hint"].as_str().unwrap().contains(&again), "{data}");
}

#[test]
fn an_answer_whose_record_cannot_be_written_is_kept_and_written_by_the_same_operation() {
    use std::os::unix::fs::symlink;
    type Breaking = fn(&Project);
    let ways: [(Breaking, Breaking, &str, i32); 4] = [
        (
            |project| std::fs::write(project.path("out"), "x").unwrap(),
            |project| std::fs::remove_file(project.path("out")).unwrap(),
            "invalid_document",
            2,
        ),
        (
            |project| symlink("/tmp", project.path("out")).unwrap(),
            |project| std::fs::remove_file(project.path("out")).unwrap(),
            "invalid_document",
            2,
        ),
        (
            |project| std::fs::create_dir_all(project.path("out/a.json")).unwrap(),
            |project| std::fs::remove_dir(project.path("out/a.json")).unwrap(),
            "invalid_document",
            2,
        ),
        (
            // Not to be read: nobody may take what stands there for nothing.
            |project| {
                std::fs::create_dir(project.path("out")).unwrap();
                let made = std::process::Command::new("mkfifo").arg(project.path("out/a.json")).status();
                assert!(made.unwrap().success());
            },
            |project| std::fs::remove_file(project.path("out/a.json")).unwrap(),
            "store_unavailable",
            1,
        ),
    ];
    for (break_it, mend_it, code, exit) in ways {
        let project = project_with("out/a.json");
        let asking = project.spawn(&["packet", "ask", "step.json"]);
        let question = project.opened_question();
        break_it(&project);
        project.answer_to(&question, r#"{"platform": "Web", "token": "hunter2"}"#).data();
        let error = wait(asking).refused(code, exit);
        let (message, details) = (error["message"].as_str().unwrap(), &error["details"]);
        let id = question["question_id"].as_str().unwrap();
        assert!(message.contains(&format!("the answer to {id} is kept")), "{error}");
        assert_eq!(details["question_id"], id);
        let operation = details["operation_id"].as_str().unwrap();
        assert!(
            details["hint"].as_str().unwrap().contains(&format!("--operation-id {operation}")),
            "{error}"
        );
        mend_it(&project);
        let again = project.run(&["packet", "ask", "step.json", "--operation-id", operation]).data();
        assert_eq!((&again["gate"], &again["question_id"]), (&json!("open"), &question["question_id"]));
        let record: Value =
            serde_json::from_slice(&std::fs::read(project.path("out/a.json")).unwrap()).unwrap();
        assert_eq!(record["answers"], json!({"platform": "Web", "token": "hunter2"}));
        assert_eq!(project.kept_secret(&question["question_id"]), None);
        let asked = project.run(&["questions", "--status", "all"]).data();
        assert_eq!(asked["items"].as_array().unwrap().len(), 1, "nobody is asked twice");
    }
}

#[test]
fn a_gate_whose_asker_was_killed_when_the_record_stood_keeps_no_secret_once_it_is_looked_at_again() {
    let project = project_with("init.json");
    let mut dies = project.command(&["packet", "ask", "step.json", "--operation-id", "op-1"]);
    dies.env("AOP_CRASH_AT", "record_written").stdout(Stdio::piped()).stderr(Stdio::piped());
    let dies = dies.spawn().unwrap();
    let question = project.opened_question();
    project.answer_to(&question, r#"{"platform": "Web", "token": "hunter2"}"#).data();
    assert_eq!(wait(dies).code, None, "killed");
    assert!(project.kept_secret(&question["question_id"]).is_some());
    let again = project.run(&["packet", "ask", "step.json", "--operation-id", "op-1"]);
    assert_eq!(again.data()["gate"], "open");
    assert_eq!(project.kept_secret(&question["question_id"]), None, "{again:?}");
}

#[test]
fn a_run_killed_when_the_record_of_a_gate_stood_leaves_its_secret_to_the_next_one_to_erase() {
    for point in ["gate_written", "gate_settled"] {
        let project = workshop("");
        script(&project, "shop", &json!({}));
        project.create_feature("shop");
        let packets = project.path(".aop/features/shop/packets");
        std::fs::create_dir_all(&packets).unwrap();
        std::fs::write(packets.join("planning.json"), packet("answers/a.json").to_string()).unwrap();
        let mut dies = Running::start_with(&project, &[], &[("AOP_CRASH_AT", point)]);
        let question = dies.question("shop");
        project.answer_to(&question, r#"{"platform": "Web", "token": "hunter2"}"#).data();
        let (code, lines) = dies.end();
        assert_eq!(code, None, "{point} was not reached: {lines:#?}");
        assert!(project.path("answers/a.json").exists(), "{point}");
        assert!(project.kept_secret(&question["question_id"]).is_some(), "{point}");
        assert_eq!(Running::start(&project, &[]).end().0, Some(0), "{point}");
        assert_eq!(project.kept_secret(&question["question_id"]), None, "{point}");
        assert_eq!(events(&project, "shop", "question.opened").len(), 1, "{point}: nobody is asked twice");
    }
}

/// A command of a user who may not write everywhere, as root may.
fn as_somebody(project: &Project, args: &[&str]) -> std::process::Command {
    use std::os::unix::process::CommandExt;
    let mut command = project.command(args);
    if rustix::process::getuid().is_root() {
        let own = project.path("aop");
        // Where the program was built, only root may look.
        if !own.exists() {
            std::fs::copy(crate::support::binary(), &own).unwrap();
        }
        command = std::process::Command::new(own);
        command.args(args).current_dir(project.root()).env_clear().env("HOME", project.root());
        command.stdin(Stdio::null()).uid(65_534).gid(65_534);
    }
    command
}

#[test]
fn nobody_is_asked_for_a_record_that_cannot_be_written() {
    use std::os::unix::fs::PermissionsExt;
    let allow = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let project = Project::empty();
    allow(project.root(), 0o777);
    std::fs::write(project.path("step.json"), packet("closed/deep/a.json").to_string()).unwrap();
    std::fs::create_dir(project.path("closed")).unwrap();
    allow(&project.path("closed"), 0o555);
    let run = |args: &[&str]| crate::support::finish(&mut as_somebody(&project, args));
    run(&["init"]).data();
    let error = run(&["packet", "ask", "step.json", "--timeout", "1s"]).refused("store_unavailable", 1);
    assert!(error["message"].as_str().unwrap().contains("closed/deep/a.json' cannot be written"), "{error}");
    assert_eq!(run(&["questions", "--status", "all"]).data()["items"], json!([]));
}

#[test]
fn an_answer_path_never_leaves_the_project() {
    for path in [
        "../out.json",
        "/tmp/out.json",
        ".aop/x.json",
        "a/../../out.json",
        "link/out.json",
        "",
        "aop.yaml",
        ".git/config",
    ] {
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
