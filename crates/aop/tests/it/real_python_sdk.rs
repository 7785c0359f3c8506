//! The official Python SDK (`mcp` from PyPI, at the pinned version) as a client: what it asks becomes a record, and the
//! human's answer is what it gets back. `cargo xtask test-engines` installs it.

use crate::http_client::Server;
use crate::support::{Project, Run, binary, wait};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// The interpreter in which the package is installed.
pub(crate) fn python(package: &str) -> PathBuf {
    let folder = std::env::var_os("AOP_TEST_PYTHON").unwrap_or_else(|| {
        panic!(
            "AOP_TEST_PYTHON names no folder with {package}; run these tests with `cargo xtask test-engines`"
        )
    });
    let python = PathBuf::from(folder).join(package).join("bin/python");
    assert!(python.is_file(), "{} is not there; run `cargo xtask test-engines`", python.display());
    python
}

fn start(project: &Project, wanted: &Value) -> Child {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/python_sdk.py");
    Command::new(python("mcp"))
        .args([script, &wanted.to_string()])
        .env_clear()
        .env("HOME", project.root())
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn said(run: &Run) -> Vec<Value> {
    assert_eq!(run.code, Some(0), "{run:?}");
    run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Where the client finds the server.
fn doors(project: &Project, server: &Server) -> [(&'static str, Value); 2] {
    let env = json!({"PATH": std::env::var("PATH").unwrap_or_default()});
    [
        ("http", json!({"url": format!("http://{}/mcp", server.address), "token": server.token})),
        ("stdio", json!({"command": binary(), "args": ["mcp"], "env": env, "cwd": project.root()})),
    ]
}

fn wanted(door: &Value, mode: &str, input: &Value, accept: &Value) -> Value {
    let mut wanted = door.clone();
    wanted["mode"] = json!(mode);
    wanted["tool"] = json!("ask_user");
    wanted["input"] = input.clone();
    wanted["accept"] = accept.clone();
    wanted
}

#[test]
fn what_it_asks_becomes_a_record_and_the_humans_answer_comes_back() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    for (name, door) in doors(&project, &server) {
        for mode in ["legacy", "auto"] {
            let prompt = format!("Which one, {name} {mode}?");
            let input = json!({"prompt": prompt, "choices": ["left", "right"]});
            let client = start(&project, &wanted(&door, mode, &input, &Value::Null));
            let opened = loop {
                let open = project.run(&["questions"]).data()["items"][0].clone();
                if open["prompt"] == prompt.as_str() {
                    break open;
                }
            };
            project.answer_to(&opened, "right").data();
            let said = said(&wait(client));
            let tools = said[0]["names"].as_array().unwrap();
            assert!(tools.contains(&json!("ask_user")) && tools.contains(&json!("feature.get")), "{said:?}");
            let envelope = &said[1]["envelope"];
            assert_eq!(envelope["data"]["question_id"], opened["question_id"], "{said:?}");
            assert_eq!(envelope["data"]["answer"], "right", "{said:?}");
            assert_eq!(serde_json::from_str::<Value>(said[1]["text"].as_str().unwrap()).unwrap(), *envelope);
        }
    }
}

#[test]
fn a_form_in_the_client_answers() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    for (name, door) in doors(&project, &server) {
        for mode in ["legacy", "auto"] {
            let prompt = format!("Which one, {name} {mode}?");
            let input = json!({"prompt": prompt, "choices": ["left", "right"]});
            let run = wait(start(&project, &wanted(&door, mode, &input, &json!({"answer": "left"}))));
            let said = said(&run);
            assert_eq!(said[1], json!({"what": "form", "message": prompt}), "{name} {mode}: {said:?}");
            assert_eq!(said[2]["envelope"]["data"]["answer"], "left", "{name} {mode}: {said:?}");
        }
    }
    let answered = project.run(&["questions", "--status", "answered"]).data();
    assert_eq!(answered["items"].as_array().unwrap().len(), 4);
}

#[test]
fn an_answer_elsewhere_ends_the_wait_while_the_form_is_shown() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    for (name, door) in doors(&project, &server) {
        let prompt = format!("Which one, {name}?");
        let input = json!({"prompt": prompt, "choices": ["left", "right"]});
        let client = start(&project, &wanted(&door, "legacy", &input, &json!("never")));
        let opened = loop {
            let open = project.run(&["questions"]).data()["items"][0].clone();
            if open["prompt"] == prompt.as_str() {
                break open;
            }
        };
        project.answer_to(&opened, "right").data();
        let run = wait(client);
        let last = said(&run).pop().unwrap();
        assert_eq!(last["envelope"]["data"]["answer"], "right", "{name}: {run:?}");
    }
}
