//! The self-test of an engine: the installed program asks, is parked, gets its answer and finishes, against a fake
//! model on loopback, in a folder and a home of its own. Nobody's account is used.

use super::doctor::Check;
use crate::config::Config;
use aop_engine::AOP_DIR;
use aop_engine::{
    Asked, Driver, Host, HostError, Input, Limits, Pending, Progress, Reply, ReplyKind, SessionRef,
    Surroundings, TurnReport, TurnRequest, driver,
};
use aop_kernel::ids::QuestionId;
use aop_kernel::own::OwnOperation;
use aop_kernel::role::{Caller, Role};
use aop_kernel::tools::{Tool, own_request};
use aop_kernel::words;
use aop_store::{Service, SqliteStore, SystemClock};
use aop_testkit::{CleanHome, Engines, FakeModel, Script, Wire};
use aop_turn::command::Permissions;
use aop_turn::{Engine, Mode};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const FEATURE: &str = "self-test";
const CALL: &str = "call_self_test";
const QUESTION: &str = "Which database?";
const CHOICE: &str = "SQLite";

/// Runs it; what was seen, step by step, up to the first that failed.
pub(super) async fn run(engine: Engine, around: &Surroundings) -> Vec<Check> {
    let folder = std::env::temp_dir().join(format!("aop-self-test-{}", ulid::Ulid::generate()));
    let mut checks = Vec::new();
    if let Err(message) = steps(engine, around, &folder, &mut checks).await {
        checks.push(Check { name: "self-test", ok: false, message });
    }
    let _ = std::fs::remove_dir_all(&folder);
    checks
}

async fn steps(
    engine: Engine,
    around: &Surroundings,
    folder: &Path,
    checks: &mut Vec<Check>,
) -> Result<(), String> {
    let mut good = |name: &'static str, message: &str| {
        checks.push(Check { name, ok: true, message: message.to_owned() });
    };
    let lab = Lab::new(engine, around, folder)?;
    let parked = lab.turn("1", None, Input::Message("Choose a database.".to_owned())).await?;
    let question = parked
        .asked
        .first()
        .cloned()
        .ok_or_else(|| format!("the engine did not ask; its output: {}", tail(&parked.transcript)))?;
    let record = lab.host.question(&question).await?;
    let labels = record["spec"]["questions"][0]["options"].to_string();
    if !labels.contains(CHOICE) || !labels.contains("Postgres") {
        return Err(format!("the choices did not arrive: {record}"));
    }
    good("ask", "its question was recorded with all choices");
    if lab.host.is_running() {
        return Err("the engine's process is still there".to_owned());
    }
    good("park", "no process is left while nobody answers");
    lab.host.answer(&question, &record).await?;
    let reply = lab.host.ending(&question).await?;
    let session = parked.session.map(|session| session.session);
    let done = lab.turn("2", session, Input::Reply(Box::new(reply))).await?;
    if let Some(model) = &lab.model {
        // Where the answer is the next message, the message names its question.
        let told = match lab.driver.capabilities().inject_answer {
            true => model.results_of(CALL),
            false => model.user_messages().into_iter().filter(|text| text.contains(&question)).collect(),
        };
        if told.len() != 1 || !told[0].contains(CHOICE) {
            return Err(format!(
                "the model was told {told:?}; the engine's output: {}",
                tail(&done.transcript)
            ));
        }
    } else if !done.delivered {
        return Err(format!("the answer did not arrive: {}", tail(&done.transcript)));
    }
    good(
        "resume",
        match lab.driver.capabilities().inject_answer {
            true => "the answer came as the result of its own call, once",
            false => "the answer came as its next message, once",
        },
    );
    Ok(())
}

fn tail(transcript: &Path) -> String {
    let text = std::fs::read_to_string(transcript).unwrap_or_default();
    let lines: Vec<&str> = text.lines().rev().take(3).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
}

struct Lab {
    driver: Box<dyn Driver>,
    host: Arc<LabHost>,
    model: Option<FakeModel>,
    folder: PathBuf,
}

impl Lab {
    fn new(engine: Engine, around: &Surroundings, folder: &Path) -> Result<Self, String> {
        let told = |error: std::io::Error| format!("{} cannot be prepared: {error}", folder.display());
        std::fs::create_dir_all(folder.join(".aop/scripted")).map_err(told)?;
        std::fs::create_dir_all(folder.join("work")).map_err(told)?;
        let options = json!([{"label": "Postgres", "description": "a server"}, {"label": CHOICE, "description": "a file"}]);
        let card =
            json!({"question": QUESTION, "header": "Database", "multiSelect": false, "options": options});
        let done = "{\"__SKILL_DONE__\": true, \"summary\": \"done\"}";
        let wire = match engine {
            Engine::ClaudeCode => Some((Wire::Anthropic, "AskUserQuestion", json!({"questions": [card]}))),
            Engine::Codex => {
                let card =
                    json!({"id": "database", "question": QUESTION, "header": "Database", "options": options});
                Some((Wire::OpenAi, "request_user_input", json!({"questions": [card]})))
            }
            Engine::Gemini => {
                let asked = json!({"id": "database", "header": "Database", "question": QUESTION,
                    "kind": "single_choice", "required": true, "options": options});
                let spec = json!({"version": 1, "topic": "self-test", "questions": [asked]});
                Some((Wire::Gemini, "mcp_aop_ask_human", json!({"prompt": QUESTION, "spec": spec})))
            }
            Engine::Scripted => None,
            Engine::Iflow => return Err(format!("there is no self-test for {engine}: it was discontinued")),
        };
        let mut env = around.env.clone();
        let model = match wire {
            Some((wire, tool, input)) => {
                let script = Script::new()
                    .then(aop_testkit::Reply::call(tool, CALL, input))
                    .then(aop_testkit::Reply::text(done));
                let model = FakeModel::start(wire, script).map_err(told)?;
                let home =
                    CleanHome::new(&folder.join("home"), &Engines::at(folder), &model).map_err(told)?;
                // Only the search path is the user's: the program that is tried is the one that would be used.
                let path = env.remove(std::ffi::OsStr::new("PATH")).unwrap_or_default();
                env = home.variables().iter().map(|(name, value)| (name.into(), value.clone())).collect();
                env.insert("PATH".into(), path);
                if engine == Engine::Gemini {
                    // Otherwise it asks a model which model to ask.
                    env.insert("GEMINI_MODEL".into(), "gemini-2.5-flash".into());
                }
                Some(model)
            }
            None => {
                let scenario = json!({"roles": {"planner": [{"ask": {"questions": [card]}}, {"finish": {"summary": "done"}}]}});
                let path = folder.join(format!(".aop/scripted/{FEATURE}.json"));
                std::fs::write(path, scenario.to_string()).map_err(told)?;
                None
            }
        };
        let around = Surroundings { aop: around.aop.clone(), env };
        let driver = driver(engine, &around);
        let host = Arc::new(LabHost::new(folder)?);
        Ok(Lab { driver, host, model, folder: folder.to_owned() })
    }

    async fn turn(&self, run: &str, session: Option<String>, input: Input) -> Result<TurnReport, String> {
        self.host.create().await?;
        let run_dir = self.folder.join("runs").join(run);
        std::fs::create_dir_all(&run_dir).map_err(|error| error.to_string())?;
        let request = TurnRequest {
            feature_id: FEATURE.to_owned(),
            role: aop_turn::Role::Planner,
            claim: format!("self-test-{run}"),
            mode: Mode::Interactive,
            attempt: 1,
            may_ask: true,
            permissions: Permissions::Auto,
            project: self.folder.clone(),
            cwd: self.folder.join("work"),
            run_dir,
            session,
            input,
            instructions: String::new(),
            output_schema: None,
            limits: Limits { hard: Duration::from_secs(120), ..Limits::default() },
            warm: Duration::ZERO,
        };
        self.driver.run(request, Arc::<LabHost>::clone(&self.host)).await.map_err(|error| error.to_string())
    }
}

/// A host with a store of its own.
struct LabHost {
    service: Service,
    session: Mutex<Option<SessionRef>>,
    process: Mutex<Option<i32>>,
}

impl LabHost {
    fn new(folder: &Path) -> Result<Self, String> {
        let store = SqliteStore::open(&folder.join(AOP_DIR), Arc::new(SystemClock))
            .map_err(|error| error.to_string())?;
        let service = Service::new(Arc::new(store), Arc::new(Config::default().rules()));
        Ok(LabHost { service, session: Mutex::default(), process: Mutex::default() })
    }

    async fn call(&self, tool: Tool, input: &Value) -> Result<Value, String> {
        let caller = Caller { role: Role::Human, feature: None };
        let envelope = self.service.call(tool, &caller, input, "self-test").await;
        envelope.map(|envelope| envelope.data().clone()).map_err(|refusal| refusal.message)
    }

    async fn create(&self) -> Result<(), String> {
        let input = json!({"feature_id": FEATURE, "title": "Self-test", "operation_id": "create"});
        self.call(Tool::FeatureCreate, &input).await.map(|_| ())
    }

    async fn stored(&self, id: &str) -> Result<aop_kernel::question::Question, String> {
        let id = QuestionId::parse(id).map_err(|refusal| refusal.message)?;
        let question = self.service.store.question(id).await.map_err(|error| error.to_string())?;
        question.ok_or_else(|| "the question is not in the store".to_owned())
    }

    async fn question(&self, id: &str) -> Result<Value, String> {
        Ok(json!(self.stored(id).await?))
    }

    async fn answer(&self, id: &str, record: &Value) -> Result<(), String> {
        let field = record["spec"]["questions"][0]["id"].as_str().unwrap_or_default();
        let mut answer = serde_json::Map::new();
        answer.insert(field.to_owned(), CHOICE.into());
        let input = json!({"feature_id": FEATURE, "question_id": id, "answer": answer, "answered_by": "self-test",
            "operation_id": "answer"});
        self.call(Tool::QuestionAnswer, &input).await.map(|_| ())
    }

    async fn ending(&self, id: &str) -> Result<Reply, String> {
        let question = self.stored(id).await?;
        let record = json!(question);
        Ok(Reply {
            question_id: id.to_owned(),
            call_id: question.asked.engine_ref.as_ref().and_then(|engine| engine.call_id.clone()),
            kind: ReplyKind::Answered,
            answer: record["answer"].clone(),
            words: words::ending(&question, None).unwrap_or_default(),
            question: record,
            notes: String::new(),
            notes_are_secret: false,
        })
    }

    fn is_running(&self) -> bool {
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        process.is_some_and(|pid| Path::new(&format!("/proc/{pid}")).exists())
    }

    async fn record(&self, arguments: Value, call_id: String) -> Result<Asked, String> {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let session = session.ok_or("the engine asked before it had a conversation")?;
        let mut input = arguments;
        input["feature_id"] = FEATURE.into();
        input["role"] = "planner".into();
        input["session_id"] = FEATURE.into();
        let caller = Caller { role: Role::Human, feature: None };
        let rules = &self.service.rules;
        let request = OwnOperation::Ask
            .id(&call_id)
            .or_else(|_| OwnOperation::Ask.id("call"))
            .and_then(|id| own_request(Tool::QuestionCreate, &caller, &input, id, "self-test", rules))
            .map_err(|refusal| format!("the question cannot be recorded: {}", refusal.message))?;
        let request = request.asked_by(aop_kernel::question::EngineRef {
            engine: session.engine.as_str().to_owned(),
            session: session.session,
            call_id: Some(call_id),
            cwd: session.cwd.display().to_string(),
            version: session.version,
        });
        let receipt = self.service.submit(request).await.map_err(|refusal| refusal.message)?;
        let question_id = receipt.envelope.data()["question_id"].as_str().unwrap_or_default().to_owned();
        Ok(Asked::Recorded { question_id })
    }
}

impl Host for LabHost {
    fn session(&self, session: SessionRef) -> Pending<'_, Result<(), HostError>> {
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
        Box::pin(async { Ok(()) })
    }

    fn ask(&self, arguments: Value, call_id: String) -> Pending<'_, Result<Asked, HostError>> {
        Box::pin(async move { self.record(arguments, call_id).await.map_err(HostError) })
    }

    fn await_reply(
        &self,
        _question_id: String,
        _patience: Duration,
    ) -> Pending<'_, Result<Option<Reply>, HostError>> {
        Box::pin(async { Ok(None) })
    }

    fn progress(&self, progress: Progress) {
        if let Progress::Started { pgid, .. } = progress {
            *self.process.lock().unwrap_or_else(PoisonError::into_inner) = Some(pgid);
        }
    }
}
