//! A project in a folder of its own, and the binary with a clean environment.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// The binary under test.
pub(crate) fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_aop")
}

/// What a run left behind.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// The one envelope on stdout.
    pub(crate) fn envelope(&self) -> Value {
        let mut lines = self.stdout.lines();
        let first = lines.next().unwrap_or_else(|| panic!("nothing on stdout: {self:?}"));
        assert_eq!(lines.next(), None, "stdout carries exactly one envelope: {self:?}");
        serde_json::from_str(first).unwrap_or_else(|error| panic!("{error}: {first}"))
    }

    /// The data of a success.
    pub(crate) fn data(&self) -> Value {
        let envelope = self.envelope();
        assert_eq!(envelope["ok"], true, "{self:?}");
        assert_eq!(self.code, Some(0), "{self:?}");
        envelope["data"].clone()
    }

    /// The error of a refusal with this code and exit code.
    pub(crate) fn refused(&self, code: &str, exit: i32) -> Value {
        let envelope = self.envelope();
        assert_eq!(envelope["ok"], false, "{self:?}");
        assert_eq!(envelope["error"]["code"], code, "{self:?}");
        assert_eq!(self.code, Some(exit), "{self:?}");
        let hint = envelope["error"]["details"]["hint"].as_str().unwrap_or_default();
        assert!(!hint.is_empty(), "every refusal says what to do next: {self:?}");
        envelope["error"].clone()
    }
}

/// A temporary project.
pub(crate) struct Project {
    folder: TempDir,
    /// The address of its store, when that is not the embedded one.
    store: Option<String>,
}

impl Project {
    /// An empty folder that is no project yet.
    pub(crate) fn empty() -> Self {
        Project { folder: TempDir::with_prefix("aop-it-").unwrap(), store: store_of_this_test() }
    }

    /// An empty folder for a project whose store is there.
    pub(crate) fn at(store: &str) -> Self {
        Project { folder: TempDir::with_prefix("aop-it-").unwrap(), store: Some(store.to_owned()) }
    }

    /// Another empty folder, with the same settings in its environment.
    pub(crate) fn beside(&self) -> Self {
        Project { folder: TempDir::with_prefix("aop-it-").unwrap(), store: self.store.clone() }
    }

    /// A project after `aop init`.
    pub(crate) fn new() -> Self {
        let project = Project::empty();
        project.run(&["init"]).data();
        project
    }

    /// A project with one feature called `shop`.
    pub(crate) fn with_feature() -> Self {
        let project = Project::new();
        project.create_feature("shop");
        project
    }

    /// A project with these settings.
    pub(crate) fn with_settings(yaml: &str) -> Self {
        let project = Project::new();
        std::fs::write(project.path("aop.yaml"), yaml).unwrap();
        project.create_feature("shop");
        project
    }

    pub(crate) fn create_feature(&self, id: &str) {
        self.run(&["features", "create", "--feature-id", id, "--title", "A shop"]).data();
    }

    /// The address of its store on PostgreSQL.
    pub(crate) fn address(&self) -> &str {
        self.store.as_deref().unwrap()
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    /// The command, not started yet, with nothing of the caller's environment but the search path.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(args).current_dir(self.root()).env_clear().stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", self.root());
        command.envs(self.store.iter().map(|address| ("AOP_STORE", address)));
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Run {
        finish(&mut self.command(args))
    }

    pub(crate) fn run_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Run {
        finish(self.command(args).envs(variables.iter().copied()))
    }

    /// Starts a command and does not wait.
    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// A tool call with JSON arguments.
    pub(crate) fn tool(&self, name: &str, role: &str, input: &Value) -> Run {
        self.run(&["tool", "call", name, "--role", role, "--input", &input.to_string()])
    }

    /// Asks a blocking yes/no question as the builder of `shop`; the question's id.
    pub(crate) fn ask(&self, operation: &str) -> String {
        let asked = self.tool("feature.question_create", "builder", &question("shop", operation)).data();
        asked["question_id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn answer(&self, question: &str, answer: &str) -> Run {
        self.run(&["answer", "--feature-id", "shop", "--question-id", question, "--answer", answer])
    }

    /// Waits until some question is open, and gives its record. `aop log --follow` tells.
    pub(crate) fn opened_question(&self) -> Value {
        self.opened_question_after(0)
    }

    /// The same for the one that is opened after so many others.
    pub(crate) fn opened_question_after(&self, others: usize) -> Value {
        use std::io::BufRead;
        let mut follow = self.spawn(&["log", "--follow"]);
        let lines = std::io::BufReader::new(follow.stdout.take().unwrap()).lines();
        let opened = lines
            .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap())
            .filter(|event| event["type"] == "question.opened")
            .nth(others)
            .unwrap();
        follow.kill().unwrap();
        follow.wait().unwrap();
        opened["question"].clone()
    }

    /// Answers the question of this record.
    pub(crate) fn answer_to(&self, question: &Value, value: &str) -> Run {
        let id = |key: &str| question[key].as_str().unwrap();
        self.run(&[
            "answer",
            "--feature-id",
            id("feature_id"),
            "--question-id",
            id("question_id"),
            "--answer",
            value,
        ])
    }

    /// The only feature's record.
    pub(crate) fn feature(&self, id: &str) -> Value {
        self.tool("feature.get", "human", &json!({"feature_id": id})).data()
    }

    /// Asks the store itself for what no command shows.
    fn in_store<T>(&self, ask: impl AsyncFnOnce(&dyn aop_store::Store) -> T) -> T {
        let clock = std::sync::Arc::new(aop_store::SystemClock);
        let store = aop_store::SqliteStore::open(&self.path(".aop"), clock).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(ask(&store))
    }

    /// The secret that the store keeps for a question.
    pub(crate) fn kept_secret(&self, question: &Value) -> Option<Value> {
        let id = aop_kernel::ids::QuestionId::parse(question.as_str().unwrap()).unwrap();
        self.in_store(async |store| store.reveal(id).await.unwrap())
    }

    /// Whether the end of a question was handed over to its asker over MCP.
    pub(crate) fn was_told(&self, question: &Value) -> bool {
        let subject = format!("told:{}", question.as_str().unwrap());
        let claim = self.in_store(async |store| store.claim(subject, "mcp".into(), 1).await.unwrap());
        claim.state == aop_store::ClaimState::Delivered
    }

    /// Everything is as it should be.
    pub(crate) fn assert_healthy(&self) {
        let doctor = self.run(&["doctor"]);
        assert_eq!(doctor.data()["healthy"], true, "{doctor:?}");
    }
}

/// Tests whose names begin with `postgres::` run on PostgreSQL, each on a project of its own.
fn store_of_this_test() -> Option<String> {
    let on_postgres = std::thread::current().name().is_some_and(|name| name.starts_with("postgres::"));
    on_postgres.then(new_postgres_project)
}

/// The address of a project that is not there yet, on the server that all tests share.
pub(crate) fn new_postgres_project() -> String {
    // All of them: what an older version made on that server lacks the later ones.
    let schema = concat!(
        include_str!("../../../aop-store/migrations/postgres/0001_start.sql"),
        include_str!("../../../aop-store/migrations/postgres/0002_several_replies.sql"),
    );
    format!("{}?project=p-{}", aop_testkit::postgres::shared(schema), ulid::Ulid::generate())
}

/// Arguments of a blocking question with two choices.
pub(crate) fn question(feature: &str, operation: &str) -> Value {
    json!({"feature_id": feature, "role": "builder", "session_id": "s-1", "question_type": "clarification",
        "prompt": "May I?", "expected_answer": {"kind": "single_choice", "choices": ["yes", "no"]},
        "operation_id": operation})
}

pub(crate) fn finish(command: &mut Command) -> Run {
    let output = command.output().unwrap();
    Run {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

pub(crate) fn wait(child: Child) -> Run {
    let output = child.wait_with_output().unwrap();
    Run {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Every file below a folder with its content, sorted.
pub(crate) fn tree(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(tree(&path));
        } else {
            files.push((path.clone(), std::fs::read(&path).unwrap()));
        }
    }
    files.sort();
    files
}
