//! `aop` is killed with -9 at every step between a question and its answer. The turn runs in a process of its own, which
//! stands for `aop`; what takes over afterwards knows what the store and the conversation say, and nothing else.

use super::{DONE, Stage, agents_of, answer_in, ask, question, surroundings};
use crate::engine::host::{StoreHost, turn_at};
use crate::engine::until;
use aop_engine::{
    Asked, Host, HostError, Input, Pending, Progress, Reply as End, SessionRef, Surroundings, TurnRequest,
    driver,
};
use aop_testkit::{Gate, Reply, Script};
use aop_turn::{Engine, Outcome};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

const PLAN: &str = "AOP_TEST_CHILD";
const CALL: &str = "call_ask";
const TOLD: &str = r#"{"answers":{"db":{"answers":["y"]}}}"#;

/// A host that dies at a given point, the way `kill -9` does it, and keeps sessions where they survive that.
struct Mortal {
    inner: Arc<StoreHost>,
    project: PathBuf,
    dies: String,
}

impl Mortal {
    fn at(&self, point: &str) {
        if self.dies == point {
            let _ = Command::new("kill").args(["-9", &std::process::id().to_string()]).status();
            std::thread::sleep(Duration::from_secs(60));
        }
    }
}

impl Host for Mortal {
    fn session(&self, session: SessionRef) -> Pending<'_, Result<(), HostError>> {
        self.at("before session");
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.project.join("sessions"))
            .unwrap();
        writeln!(file, "{}", session.session).unwrap();
        self.at("after session");
        self.inner.session(session)
    }

    fn ask(&self, arguments: Value, call_id: String) -> Pending<'_, Result<Asked, HostError>> {
        Box::pin(async move {
            self.at("before ask");
            let asked = self.inner.ask(arguments, call_id).await;
            self.at("after ask");
            asked
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
        if matches!(progress, Progress::Started { .. }) {
            self.at("started");
        }
        if matches!(progress, Progress::Said(_)) {
            self.at("said");
        }
    }
}

/// The test that also plays the turn of a process that is to be killed, when it is started with a plan.
const PLAYER: &str = "engine::real_codex::crashes::killed_after_the_last_words_they_are_asked_for_again";

/// Plays the turn of a plan. False in a process that has none: that one is the test itself.
async fn played_a_plan() -> bool {
    let Some(plan) = std::env::var_os(PLAN) else { return false };
    let plan: Value = serde_json::from_str(plan.to_str().unwrap()).unwrap();
    let text = |key: &str| plan[key].as_str().map(str::to_owned);
    let project = PathBuf::from(text("project").unwrap());
    let env = plan["env"].as_object().unwrap();
    let env = env.iter().map(|(name, value)| (name.into(), value.as_str().unwrap().into())).collect();
    let driver = driver(Engine::Codex, &Surroundings { aop: crate::support::binary().into(), env });
    let inner = StoreHost::at(&project);
    let input = match (text("question"), text("words")) {
        (Some(question), _) => {
            Input::Reply(Box::new(inner.reply(&question, Some(CALL.into())).await.unwrap()))
        }
        (None, Some(words)) => Input::Continue(words),
        (None, None) => Input::Message("Plan the shop.".into()),
    };
    let request = TurnRequest { session: text("session"), ..turn_at(&project, &text("run").unwrap(), input) };
    let host = Mortal { inner, project: project.clone(), dies: text("dies").unwrap_or_default() };
    let report = driver.run(request, Arc::new(host)).await.unwrap();
    let done = matches!(super::outcome(&report), Outcome::Final { .. });
    let report = json!({"asked": report.asked, "done": done, "delivered": report.delivered});
    std::fs::write(project.join("report.json"), report.to_string()).unwrap();
    true
}

/// What takes over after a crash: the smallest supervisor there can be.
struct Successor<'a> {
    stage: &'a Stage,
    runs: u32,
}

impl Successor<'_> {
    fn root(&self) -> &Path {
        self.stage.project.root()
    }

    fn session(&self) -> Option<String> {
        let sessions = std::fs::read_to_string(self.root().join("sessions")).unwrap_or_default();
        sessions.lines().last().map(str::to_owned)
    }

    /// The next turn, by what is known. The person answers what is open.
    async fn plan(&mut self) -> Value {
        self.runs += 1;
        let env = surroundings(&self.stage.home).env;
        let env: serde_json::Map<String, Value> = env
            .into_iter()
            .map(|(name, value)| (name.into_string().unwrap(), value.into_string().unwrap().into()))
            .collect();
        let mut plan = json!({"project": self.root(), "run": format!("run-{}", self.runs), "env": env});
        let Some(session) = self.session() else { return plan };
        plan["session"] = session.clone().into();
        plan["words"] = "Go on where you were.".into();
        if let Some(asked) = self.stage.host.questions().await.first() {
            if self.stage.host.reply(asked, None).await.is_none() {
                assert!(answer_in(self.root(), asked, r#"{"db": "y"}"#));
            }
            let known =
                SessionRef { engine: Engine::Codex, session, cwd: self.root().join("work"), version: None };
            let (project, call) = (self.root().to_owned(), Some(CALL.to_owned()));
            let held = self.stage.driver.holds_reply(project, known, asked.clone(), call).await;
            if held != Some(true) {
                plan["question"] = asked.as_str().into();
            }
        }
        plan
    }

    fn start(&self, plan: &Value) -> Child {
        let _ = std::fs::remove_file(self.root().join("report.json"));
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", PLAYER, "--nocapture"]).env(PLAN, plan.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap()
    }

    /// Runs a turn that dies at this point, or comes to its end.
    async fn run(&mut self, dies: &str) -> Option<Value> {
        let mut plan = self.plan().await;
        plan["dies"] = dies.into();
        let mut child = self.start(&plan);
        let status = child.wait().unwrap();
        assert_eq!(status.success(), dies.is_empty(), "{dies}: {status}");
        self.settled();
        self.report()
    }

    fn report(&self) -> Option<Value> {
        let report = std::fs::read_to_string(self.root().join("report.json")).ok()?;
        Some(serde_json::from_str(&report).unwrap())
    }

    /// Whoever was killed has left nothing running.
    fn settled(&self) {
        let root = self.root().to_owned();
        until("the engine is gone with aop", || agents_of(&root).is_empty());
    }

    /// Runs turns until the work is done, and looks at what the model was told.
    async fn finish(&mut self) {
        for _ in 0..5 {
            if self.run("").await.unwrap()["done"] == true {
                let stage = self.stage;
                assert_eq!(stage.model.results_of(CALL), [TOLD], "told once, and right");
                assert_eq!(stage.host.questions().await.len(), 1, "asked once");
                let own =
                    stage.items().into_iter().filter(|item| item.starts_with("user: ")).collect::<Vec<_>>();
                assert!(own.len() <= 2 && own[0] == "user: Plan the shop.", "{own:?}");
                return;
            }
        }
        panic!("the work does not come to its end: {:?}", self.stage.items());
    }
}

fn asks() -> Reply {
    ask(CALL, &[question("db", &["x", "y"])])
}

#[tokio::test]
async fn killed_around_the_question_nothing_is_lost_and_nothing_is_asked_twice() {
    for point in ["started", "before session", "after session", "before ask", "after ask"] {
        // The model asks for as long as it has no answer: its first words may be lost with the process.
        let unanswered = |request: &aop_testkit::Received| request.results_of(CALL).is_empty();
        let script = Script::new().when(unanswered, asks()).when(unanswered, asks()).then(Reply::text(DONE));
        let stage = Stage::new(script);
        let mut successor = Successor { stage: &stage, runs: 0 };
        assert_eq!(successor.run(point).await, None, "{point}");
        successor.finish().await;
    }
}

#[tokio::test]
async fn killed_while_the_model_thinks_the_turn_goes_on_in_the_same_conversation() {
    let gate = Gate::closed();
    let script = Script::new().then(asks().after(&gate)).then(asks()).then(Reply::text(DONE));
    let stage = Stage::new(script);
    let mut successor = Successor { stage: &stage, runs: 0 };
    let plan = successor.plan().await;
    let mut child = successor.start(&plan);
    stage.model.wait_for_main(1, Duration::from_secs(30)).unwrap();
    until("the conversation is known", || successor.session().is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    successor.settled();
    successor.finish().await;
    assert_eq!(stage.model.main().len(), 3);
}

#[tokio::test]
async fn killed_at_any_moment_of_the_resume_the_answer_is_told_once() {
    // The resume takes less than a second; every moment of it is as good as any other.
    for moment in (0..700).step_by(50) {
        let mut script = Script::new().then(asks());
        for _ in 0..5 {
            script = script.then(Reply::text(DONE));
        }
        let stage = Stage::new(script);
        let mut successor = Successor { stage: &stage, runs: 0 };
        assert_eq!(successor.run("").await.unwrap()["asked"].as_array().unwrap().len(), 1);
        let plan = successor.plan().await;
        let mut child = successor.start(&plan);
        tokio::time::sleep(Duration::from_millis(moment)).await;
        child.kill().unwrap();
        child.wait().unwrap();
        successor.settled();
        successor.finish().await;
    }
}

#[tokio::test]
async fn killed_after_the_last_words_they_are_asked_for_again() {
    if played_a_plan().await {
        return;
    }
    let stage = Stage::new(Script::new().then(asks()).then(Reply::text(DONE)).then(Reply::text(DONE)));
    let mut successor = Successor { stage: &stage, runs: 0 };
    successor.run("").await.unwrap();
    assert_eq!(successor.run("said").await, None);
    successor.finish().await;
}
