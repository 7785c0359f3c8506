//! `aop ask`: a script asks, a human answers from another process, the script goes on.

use crate::support::{Project, finish, wait};
use serde_json::{Value, json};
use std::io::Read;
use std::process::{Child, Stdio};

fn ask(project: &Project, args: &[&str]) -> Child {
    project.spawn(&[&["ask"], args].concat())
}

#[test]
fn a_script_asks_and_gets_the_humans_answer() {
    let project = Project::new();
    let asking = ask(&project, &["Which one?", "--choice", "A", "--choice", "B", "--operation-id", "one"]);
    let question = project.opened_question();
    assert!(question["feature_id"].as_str().unwrap().starts_with("ask-"));
    project.answer_to(&question, "C").refused("question_invalid_answer", 1);
    project.answer_to(&question, "B").data();
    let answered = wait(asking).data();
    assert_eq!(answered["answer"], "B");
    assert_eq!(answered["status"], "answered");
    assert_eq!(answered["answered_by"], "human");
    assert_eq!(answered["operation_id"], "one", "with it the same question is waited for again");
}

#[test]
fn plain_prints_only_the_answer() {
    let project = Project::new();
    let asking = ask(&project, &["Name?", "--plain"]);
    project.answer_to(&project.opened_question(), "two words").data();
    let run = wait(asking);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "two words\n"));
}

#[test]
fn a_question_nobody_answers_ends_with_exit_code_3_and_the_expiry_is_written() {
    let project = Project::new();
    let run = wait(ask(&project, &["Anybody?", "--timeout", "1s"]));
    assert_eq!(run.code, Some(3), "{run:?}");
    assert_eq!(run.envelope()["data"]["status"], "expired");
    let log = project.run(&["log"]).data();
    let types: Vec<&str> =
        log["items"].as_array().unwrap().iter().map(|e| e["type"].as_str().unwrap()).collect();
    assert!(types.contains(&"question.expired"), "{types:?}");
    project.assert_healthy();
}

#[test]
fn a_timeout_that_the_policy_cuts_is_told_with_the_setting_that_cuts_it() {
    let project = Project::with_settings("policy: { execution: { human_input: { timeout_ms: 1000 } } }\n");
    let long = wait(ask(&project, &["Anybody?", "--timeout", "1h 30m"]));
    let told =
        "--timeout 1h 30m is cut to 1s, the limit that policy.execution.human_input.timeout_ms in aop.yaml";
    assert!(long.stderr.contains(told), "{long:?}");
    assert_eq!(long.envelope()["data"]["status"], "expired");
    let short = wait(ask(&project, &["Anybody?", "--timeout", "1s"]));
    assert_eq!(short.stderr, "");
}

#[test]
fn a_withdrawn_question_ends_the_wait_without_an_answer() {
    let project = Project::new();
    let asking = ask(&project, &["Anybody?"]);
    let question = project.opened_question();
    let id = |key: &str| question[key].as_str().unwrap();
    project.run(&["withdraw", "--feature-id", id("feature_id"), "--question-id", id("question_id")]).data();
    let run = wait(asking);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert_eq!(run.envelope()["data"]["status"], "withdrawn");
}

#[test]
fn an_interrupted_ask_goes_on_waiting_for_the_same_question() {
    let project = Project::new();
    let args = ["Which one?", "--operation-id", "deploy-7"];
    let mut first = ask(&project, &args);
    let question = project.opened_question();
    first.kill().unwrap();
    first.wait().unwrap();
    project.answer_to(&question, "later").data();
    let again = finish(&mut project.command(&[&["ask"], &args[..]].concat())).data();
    assert_eq!(again["question_id"], question["question_id"]);
    assert_eq!(again["answer"], "later");
}

#[test]
fn an_interrupted_wait_exits_with_130_and_leaves_the_question_open() {
    let project = Project::new();
    let asking = ask(&project, &["Anybody?"]);
    let question = project.opened_question();
    let status =
        std::process::Command::new("kill").args(["-INT", &asking.id().to_string()]).status().unwrap();
    assert!(status.success());
    let run = wait(asking);
    assert_eq!(run.code, Some(130), "{run:?}");
    let data = run.envelope()["data"].clone();
    assert_eq!((&data["status"], &data["question_id"]), (&json!("open"), &question["question_id"]));
    let operation = data["operation_id"].as_str().unwrap();
    let again = format!("--operation-id {operation}");
    assert!(data["hint"].as_str().unwrap().contains(&again) && run.stderr.contains(&again), "{run:?}");
    let command = format!("aop answer {}\n", question["question_id"].as_str().unwrap());
    assert!(run.stderr.contains("stays open") && run.stderr.contains(&command), "{run:?}");
    let waits = ask(&project, &["Anybody?", "--operation-id", operation]);
    project.answer_to(&question, "yes").data();
    assert_eq!(wait(waits).data()["question_id"], question["question_id"]);
    assert_eq!(project.run(&["questions", "--status", "all"]).data()["items"].as_array().unwrap().len(), 1);
}

#[test]
fn an_interrupted_wait_for_a_plain_answer_prints_no_answer() {
    let project = Project::new();
    let asking = ask(&project, &["Anybody?", "--plain"]);
    project.opened_question();
    std::process::Command::new("kill").args(["-TERM", &asking.id().to_string()]).status().unwrap();
    let run = wait(asking);
    assert_eq!((run.code, run.stdout.as_str()), (Some(130), ""));
    assert!(run.stderr.contains("--operation-id op_"), "{run:?}");
}

#[test]
fn a_lone_question_that_expired_is_asked_again_and_not_retried() {
    let project = Project::new();
    assert_eq!(project.run(&["ask", "Anybody?", "--timeout", "1s"]).code, Some(3));
    let id = project.run(&["status", "--all"]).data()["features"][0]["feature_id"].clone();
    let id = id.as_str().unwrap();
    let error = project.run(&["retry", "--feature-id", id]).refused("invalid_status_transition", 1);
    assert!(error["message"].as_str().unwrap().contains("a one-off question"), "{error}");
    assert!(error["details"]["hint"].as_str().unwrap().starts_with("ask again with `aop ask`"), "{error}");
    assert_eq!(project.feature(id)["status"], "blocked");
    let error = project.run(&["send", "--feature-id", id, "hello"]).refused("invalid_status_transition", 1);
    assert!(error["details"]["hint"].as_str().unwrap().contains("`aop ask`"), "{error}");
}

#[test]
fn a_lone_question_has_a_feature_that_only_all_lists() {
    let project = Project::new();
    let asking = ask(&project, &["Anybody?"]);
    let question = project.opened_question();
    assert_eq!(project.run(&["features", "list"]).data()["items"], json!([]));
    assert_eq!(project.run(&["features", "list", "--all"]).data()["items"].as_array().unwrap().len(), 1);
    assert_eq!(
        project.run(&["questions"]).data()["items"].as_array().unwrap().len(),
        1,
        "the inbox shows it"
    );
    project.answer_to(&question, "yes").data();
    wait(asking).data();
}

#[test]
fn the_same_operation_gets_the_answer_to_the_question_as_a_person_asked_it_last() {
    let project = Project::new();
    let args = ["Deploy?", "--choice", "yes", "--operation-id", "build-1"];
    let asking = ask(&project, &args);
    let first = project.opened_question();
    let change = |command: &str, id: &Value| {
        let (feature, id) = (first["feature_id"].as_str().unwrap(), id.as_str().unwrap());
        project.run(&[command, "--feature-id", feature, "--question-id", id]).data()["question_id"].clone()
    };
    change("withdraw", &first["question_id"]);
    assert_eq!(wait(asking).code, Some(3));
    let second = change("reopen", &first["question_id"]);
    let asking = ask(&project, &args);
    change("withdraw", &second);
    let told = wait(asking);
    assert!(told.code == Some(3) && told.stdout.contains(second.as_str().unwrap()), "{told:?}");
    // Whoever has the first command still at hand uses it again.
    let third = change("reopen", &first["question_id"]);
    let asking = ask(&project, &args);
    change("withdraw", &third);
    assert!(wait(asking).stdout.contains(third.as_str().unwrap()), "an open one is waited for");
    let fourth = change("reopen", &second);
    project.answer_to(&json!({"feature_id": first["feature_id"], "question_id": fourth}), "yes").data();
    let fifth = change("reopen", &first["question_id"]);
    change("withdraw", &fifth);
    let told = wait(ask(&project, &args)).data();
    assert_eq!(
        (&told["question_id"], &told["answer"]),
        (&fourth, &json!("yes")),
        "an answer is not lost again"
    );
}

#[test]
fn a_question_that_was_asked_again_is_found_also_while_time_stands_still() {
    let project = Project::new();
    // A clock that was ahead: until real time has caught up, every record has the same time, and ids no order.
    let create = ["features", "create", "--feature-id", "a", "--title", "A"];
    project.run_with(&create, &[("AOP_CLOCK_OFFSET_MS", "600000")]).data();
    for round in 0..6 {
        let operation = format!("build-{round}");
        let args = ["Deploy?", "--choice", "yes", "--feature-id", "a", "--operation-id", &operation];
        let asking = ask(&project, &args);
        let asked = project.opened_question_after(2 * round);
        let named = ["--feature-id", "a", "--question-id", asked["question_id"].as_str().unwrap()];
        project.run(&[&["withdraw"], &named[..]].concat()).data();
        wait(asking);
        let again = project.run(&[&["reopen"], &named[..]].concat()).data()["question_id"].clone();
        project.answer_to(&json!({"feature_id": "a", "question_id": again}), "yes").data();
        assert_eq!(wait(ask(&project, &args)).data()["answer"], "yes", "{round}");
    }
}

#[test]
fn a_secret_answer_reaches_the_asker_and_stands_nowhere_else() {
    let project = Project::new();
    let spec = json!({"version": 1, "topic": "login", "questions": [
        {"id": "user", "header": "User", "question": "Which user?", "kind": "free_text", "required": true},
        {"id": "token", "header": "Token", "question": "Which token?", "kind": "free_text", "required": true,
         "secret": true}]});
    std::fs::write(project.path("spec.json"), spec.to_string()).unwrap();
    let asking = ask(&project, &["Log in", "--spec", "spec.json"]);
    let question = project.opened_question();
    project.answer_to(&question, r#"{"user": "nora", "token": "hunter2hunter2"}"#).data();
    let late = project
        .answer_to(&question, r#"{"user": "x", "token": "y"}"#)
        .refused("question_already_answered", 1);
    assert_eq!(late["details"]["answer"], json!({"user": "nora", "token": {"redacted": true}}));
    let got = wait(asking).data();
    assert_eq!(got["answer"], json!({"user": "nora", "token": "hunter2hunter2"}));
    for command in [&["questions", "--status", "all"][..], &["log"], &["status", "--all"]] {
        assert!(!project.run(command).stdout.contains("hunter2"), "{command:?}");
    }
    for (path, content) in crate::support::tree(&project.path(".aop")) {
        let is_store = path.file_name().unwrap().to_str().unwrap().starts_with("aop.db");
        let shown = content.windows(7).any(|window| window == b"hunter2");
        assert!(is_store || !shown, "{}", path.display());
    }
}

/// A project with a form that asks for a token, which is secret.
fn project_with_login() -> Project {
    let project = Project::new();
    let spec = json!({"version": 1, "topic": "login", "questions": [
        {"id": "token", "header": "Token", "question": "Which token?", "kind": "free_text", "required": true,
         "secret": true}]});
    std::fs::write(project.path("spec.json"), spec.to_string()).unwrap();
    project
}

/// An output that takes nothing: a disk without room, and a pipe whose reader has gone away.
fn deaf() -> [Stdio; 2] {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let (_, gone) = std::io::pipe().unwrap();
    [full.into(), gone.into()]
}

#[test]
fn an_answer_that_could_not_be_printed_is_no_success_and_is_told_when_it_is_asked_for_again() {
    for (secret, format) in [(true, "--plain"), (true, "--json"), (false, "--plain"), (false, "--json")] {
        for out in deaf() {
            let project = project_with_login();
            let form: &[&str] = if secret { &["--spec", "spec.json"] } else { &[] };
            let args = [&["ask", "Log in", format], form].concat();
            let asking = project.command(&args).stdout(out).stderr(Stdio::piped()).spawn().unwrap();
            let question = project.opened_question();
            project.answer_to(&question, "hunter2hunter2").data();
            let unheard = wait(asking);
            assert_eq!(unheard.code, Some(1), "{unheard:?}");
            let id = question["question_id"].as_str().unwrap();
            assert!(unheard.stderr.contains(id) && !unheard.stderr.contains("hunter2"), "{unheard:?}");
            // The id was minted: only this line has it.
            let operation = unheard.stderr.split("--operation-id ").nth(1).unwrap();
            let operation = operation.split_whitespace().next().unwrap().trim_end_matches('.');
            let again = project.run(&[&args[..], &["--operation-id", operation]].concat());
            assert!(again.code == Some(0) && again.stdout.contains("hunter2hunter2"), "{again:?}");
            assert_eq!(project.kept_secret(&question["question_id"]), None, "it is told now");
        }
    }
}

#[test]
fn a_secret_that_went_nowhere_is_not_told_and_what_is_no_secret_may_be_thrown_away() {
    let shell = |to: &str| format!("exec {} \"$@\" {to}", crate::support::binary());
    let null = || std::fs::File::options().read(true).write(true).open("/dev/null").unwrap();
    for (secret, to) in [(true, ">&-"), (true, ">/dev/null"), (true, ""), (false, ">/dev/null"), (false, "")]
    {
        let project = project_with_login();
        let form: &[&str] = if secret { &["--spec", "spec.json"] } else { &[] };
        let args = [&["ask", "Log in", "--operation-id", "login-1"], form].concat();
        let aop = project.command(&args);
        let mut asking = std::process::Command::new("sh");
        asking.args(["-c", &shell(to), "sh"]).args(aop.get_args()).current_dir(project.root()).env_clear();
        asking.envs(aop.get_envs().filter_map(|(name, value)| Some((name, value?))));
        // Python and Node.js throw away what they do not want by a null device that is open for reading, too.
        let asking = asking.stdin(Stdio::null()).stdout(null()).stderr(Stdio::piped()).spawn().unwrap();
        let question = project.opened_question();
        project.answer_to(&question, "hunter2hunter2").data();
        let gone = wait(asking);
        assert_eq!(gone.code, Some(i32::from(secret)), "{secret} {to}: {gone:?}");
        assert_eq!(gone.stderr.contains("It is kept"), secret, "{gone:?}");
        assert!(project.run(&args).stdout.contains("hunter2hunter2"), "{to}: it can be asked for again");
        assert_eq!(project.run(&args).code, Some(i32::from(secret)), "what is secret is told now");
    }
}

#[test]
fn an_ask_that_is_killed_while_it_tells_a_secret_tells_it_next_time() {
    let project = project_with_login();
    let args = ["ask", "Log in", "--spec", "spec.json", "--operation-id", "login-1"];
    let mut asking = project.spawn(&args);
    let question = project.opened_question();
    // More than a pipe holds.
    let key = "k".repeat(100_000);
    project.answer_to(&question, &key).data();
    // It has begun to print, and cannot end: nobody reads the rest.
    asking.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    asking.kill().unwrap();
    asking.wait().unwrap();
    assert_eq!(project.run(&args).data()["answer"]["token"], key);
    project.run(&args).refused("question_already_answered", 1);
}

#[test]
fn a_secret_that_was_told_once_is_told_again_by_nothing_that_stands_in_its_place() {
    let project = project_with_login();
    let args = ["ask", "Log in", "--spec", "spec.json", "--operation-id", "login-1"];
    let asking = project.spawn(&args);
    let question = project.opened_question();
    project.answer_to(&question, "hunter2hunter2").data();
    assert_eq!(wait(asking).data()["answer"]["token"], "hunter2hunter2");
    let again = project.run(&args);
    let error = again.refused("question_already_answered", 1);
    assert!(error["message"].as_str().unwrap().contains("no longer stored"), "{error}");
    assert!(error["details"]["hint"].as_str().unwrap().contains("another --operation-id"), "{error}");
    assert_eq!(error["details"]["question_id"], question["question_id"]);
    assert!(!again.stdout.contains("redacted"), "{again:?}");
    let plain = project.run(&[&args[..], &["--plain"]].concat());
    assert!(plain.code == Some(1) && !plain.stdout.contains("redacted"), "{plain:?}");
}
