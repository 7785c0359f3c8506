//! `aop ask` waits in a process of its own; others look for the question with `aop questions` and answer it with
//! `aop answer`: what a script pays, three processes for a cycle and more when the question is not there yet.

use super::{Cycle, Way, feature};
use crate::place::Place;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Stdio;

pub(crate) const NAME: &str = "command line";

pub(super) struct CommandLine {
    pub(super) place: Place,
    pub(super) root: PathBuf,
    pub(super) project: String,
    pub(super) aop: PathBuf,
}

impl CommandLine {
    fn run(&self, args: &[&str]) -> Value {
        let output = self.place.command(&self.aop, &self.root, &self.project).args(args).output().unwrap();
        let mut reply: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        assert_eq!(reply["ok"], true, "aop {args:?} said {}", String::from_utf8_lossy(&output.stdout));
        reply["data"].take()
    }
}

impl Way for CommandLine {
    fn name(&self) -> &'static str {
        NAME
    }

    fn caller(&self, id: &str) -> Cycle<'_> {
        let input = feature(id).to_string();
        self.run(&["tool", "call", "feature.create", "--role", "human", "--input", &input]);
        let id = id.to_owned();
        Box::new(move || {
            let mut command = self.place.command(&self.aop, &self.root, &self.project);
            command.args(["ask", crate::desk::PROMPT, "--choice", "this", "--choice", "that", "--plain"]);
            command.args(["--feature-id", &id]).stdout(Stdio::piped());
            let waiter = command.spawn().unwrap();
            let question = loop {
                let open = self.run(&["questions", "--feature-id", &id, "--status", "open"]);
                if let Some(question) = open["items"][0]["question_id"].as_str() {
                    break question.to_owned();
                }
            };
            let which = ["--feature-id", &id, "--question-id", &question, "--answer", "this"];
            self.run(&[&["answer"][..], &which].concat());
            let output = waiter.wait_with_output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "this");
        })
    }
}
