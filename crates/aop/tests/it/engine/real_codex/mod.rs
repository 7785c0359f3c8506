//! The real Codex against a fake model. `cargo xtask test-engines` runs these.

mod asks;
mod crashes;
mod failures;
mod live;
mod permissions;
mod speed;

use super::host::{FEATURE, StoreHost, turn};
use super::is_alive;
use crate::support::{Project, binary};
use aop_engine::{
    Asked, Driver, EngineError, Host, HostError, Input, Pending, Progress, Reply as End, SessionRef,
    Surroundings, TurnReport, TurnRequest, driver,
};
use aop_testkit::{CleanHome, Engines, FakeModel, Reply, Script, Wire};
use aop_turn::{Engine, Mode, Outcome, Rules, judge};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What the model says when it is done.
const DONE: &str = r#"{"__SKILL_DONE__": true, "plan": "ok"}"#;

/// A project, a person's home with Codex in it, and a model.
struct Stage {
    project: Project,
    model: FakeModel,
    home: CleanHome,
    driver: Box<dyn Driver>,
    host: Arc<StoreHost>,
}

impl Stage {
    fn new(script: Script) -> Self {
        Stage::of(Project::with_feature(), script)
    }

    fn of(project: Project, script: Script) -> Self {
        let engines = Engines::required();
        let model = FakeModel::start(Wire::OpenAi, script).unwrap();
        let home = CleanHome::new(&project.path("home"), &engines, &model).unwrap();
        let driver = driver(Engine::Codex, &surroundings(&home));
        let host = StoreHost::new(&project);
        Stage { project, model, home, driver, host }
    }

    /// The same with another model: which tools it is offered depends on its name.
    fn with_model(name: &str, script: Script) -> Self {
        let stage = Stage::new(script);
        let path = stage.home.path().join(".codex/config.toml");
        let settings = std::fs::read_to_string(&path).unwrap().replace("gpt-5.5", name);
        std::fs::write(path, settings).unwrap();
        stage
    }

    fn start(&self, run: &str) -> TurnRequest {
        turn(&self.project, run, Input::Message("Plan the shop.".into()))
    }

    /// A turn that goes on in the conversation that was announced last.
    fn next(&self, run: &str, input: Input) -> TurnRequest {
        let session = Some(self.host.session_ref().session);
        TurnRequest { session, ..turn(&self.project, run, input) }
    }

    async fn run(&self, request: TurnRequest) -> TurnReport {
        self.try_run(request).await.unwrap()
    }

    async fn try_run(&self, request: TurnRequest) -> Result<TurnReport, EngineError> {
        let host: Arc<dyn Host> = self.host.clone();
        let report = self.driver.run(request, host).await;
        assert_eq!(agents_of(self.project.root()), [0; 0], "no process is left");
        report
    }

    /// The end of a question, for the call that asked.
    async fn end(&self, question: &str, call: &str) -> End {
        self.host.reply(question, Some(call.to_owned())).await.unwrap()
    }

    /// A turn that takes a question's end to its conversation.
    async fn resume(&self, run: &str, question: &str, call: &str) -> TurnReport {
        let end = self.end(question, call).await;
        self.run(self.next(run, Input::Reply(Box::new(end)))).await
    }

    async fn holds(&self, question: &str, call: &str) -> Option<bool> {
        let (project, session) = (self.project.root().to_owned(), self.host.session_ref());
        self.driver.holds_reply(project, session, question.to_owned(), Some(call.to_owned())).await
    }

    /// Answers as a person does: another process.
    fn answer(&self, question: &str, answer: &Value) {
        let text = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
        self.project.answer(question, &text).data();
    }

    fn process(&self) -> i32 {
        let progress = self.host.progress.lock().unwrap();
        let started = progress.iter().rev().find_map(|progress| match progress {
            Progress::Started { pgid, .. } => Some(*pgid),
            Progress::Said(_) | Progress::Uses(_) => None,
        });
        started.unwrap()
    }

    /// What the model knows of the conversation beyond what Codex itself puts there: kinds and call ids, in order.
    fn items(&self) -> Vec<String> {
        items(&self.model.conversation().unwrap().body)
    }
}

fn items(body: &Value) -> Vec<String> {
    let name = |item: &Value| match item["type"].as_str().unwrap() {
        "message" => {
            let text = item["content"][0]["text"].as_str().unwrap_or_default();
            let own = text.starts_with('<') || item["role"] == "developer";
            (!own).then(|| format!("{}: {text}", item["role"].as_str().unwrap()))
        }
        "reasoning" | "additional_tools" => None,
        kind => Some(format!("{kind} {}", item["call_id"].as_str().unwrap_or_default())),
    };
    body["input"].as_array().unwrap().iter().filter_map(name).collect()
}

fn surroundings(home: &CleanHome) -> Surroundings {
    let env = home.variables().iter().map(|(name, value)| (name.into(), value.clone())).collect();
    Surroundings { aop: binary().into(), env }
}

/// Answers a question of `shop` in another process; whether it was taken.
fn answer_in(project: &Path, question: &str, answer: &str) -> bool {
    let mut command = std::process::Command::new(binary());
    command.args(["answer", "--feature-id", FEATURE, "--question-id", question, "--answer", answer]);
    command.current_dir(project).env_clear().env("HOME", project);
    command.output().unwrap().status.success()
}

/// A host beside which a person sits who acts the moment that a question is recorded, before the driver hears of it.
struct WithPerson {
    inner: Arc<StoreHost>,
    person: Box<dyn Fn(&str) + Send + Sync>,
}

impl Host for WithPerson {
    fn session(&self, session: SessionRef) -> Pending<'_, Result<(), HostError>> {
        self.inner.session(session)
    }

    fn ask(&self, arguments: Value, call_id: String) -> Pending<'_, Result<Asked, HostError>> {
        Box::pin(async move {
            let asked = self.inner.ask(arguments, call_id).await?;
            if let Asked::Recorded { question_id } = &asked {
                (self.person)(question_id);
            }
            Ok(asked)
        })
    }

    fn await_reply(
        &self,
        question: String,
        patience: Duration,
    ) -> Pending<'_, Result<Option<End>, HostError>> {
        self.inner.await_reply(question, patience)
    }

    fn progress(&self, progress: Progress) {
        self.inner.progress(progress);
    }
}

/// The processes that an engine of this project has started and that still run.
fn agents_of(project: &Path) -> Vec<i32> {
    let mark = format!("AOP_PROJECT={}", project.display());
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_marked = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    numbers.filter(is_marked).filter(|pid| is_alive(*pid)).collect()
}

fn question(id: &str, labels: &[&str]) -> Value {
    let options: Vec<Value> = labels
        .iter()
        .map(|label| json!({"label": label, "description": format!("what {label} means")}))
        .collect();
    json!({"id": id, "header": id, "question": format!("Which {id}?"), "options": options})
}

fn ask(call: &str, questions: &[Value]) -> Reply {
    Reply::call("request_user_input", call, json!({"questions": questions}))
}

fn outcome(report: &TurnReport) -> Outcome {
    let rules =
        Rules { mode: Mode::Interactive, attempt: 1, max_attempt: 20, schema: None, process: report.process };
    judge(&report.turn, &rules).outcome
}

#[track_caller]
fn assert_done(report: &TurnReport) {
    match outcome(report) {
        Outcome::Final { data } => assert_eq!(Value::Object(data), json!({"plan": "ok"})),
        other => panic!("{other:?}"),
    }
    assert_eq!(report.asked, [""; 0]);
}
