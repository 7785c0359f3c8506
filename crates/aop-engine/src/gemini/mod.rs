//! Gemini CLI. Its own asking tool does not exist without a terminal, so the agent asks through our MCP server; a hook
//! of ours then stops it, the process exits, and a later process goes on with the same conversation, with the end of
//! the question as its next message.

pub(crate) mod home;
mod hook;
mod program;
pub(crate) mod prompt;
pub(crate) mod session;
pub(crate) mod settings;

pub use hook::after_tool;
pub(crate) use program::packaged_version;

use crate::port::{
    Capabilities, Driver, EngineError, Host, Input, Pending, Progress, SessionRef, TurnReport, TurnRequest,
};
use crate::process::{Guarded, Launch, Stdin, Surroundings};
use crate::words::{NO_MORE, NOBODY};
use aop_turn::command::{Conversation, command_line, is_session_handle};
use aop_turn::{Engine, Mode, TurnReader};
use home::Home;
use hook::{WAITING_TOOLS, parked_question, pending_in};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

/// What it can do.
pub(crate) const CAPABILITIES: Capabilities = Capabilities {
    native_ask: false,
    parks_to_nothing: true,
    inject_answer: false,
    resume_by_message: true,
    permission_questions: false,
    session_travels: false,
    session_named_by_us: true,
    self_test: true,
};

/// What the program says when it does not find the conversation that it is to resume.
const CANNOT_RESUME: &str = "Error resuming session:";

/// The driver.
#[derive(Debug)]
pub(crate) struct Gemini {
    pub(crate) around: Surroundings,
}

impl Driver for Gemini {
    fn engine(&self) -> Engine {
        Engine::Gemini
    }

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn run(&self, request: TurnRequest, host: Arc<dyn Host>) -> Pending<'_, Result<TurnReport, EngineError>> {
        Box::pin(async move { Turn::start(&self.around, request, host).await?.play().await })
    }

    fn holds_reply(
        &self,
        project: PathBuf,
        session: SessionRef,
        question_id: String,
        _call_id: Option<String>,
    ) -> Pending<'_, Option<bool>> {
        Box::pin(
            async move { session::is_told(&Home::of(&project).gemini(), &session.session, &question_id) },
        )
    }
}

/// One turn.
struct Turn {
    request: TurnRequest,
    host: Arc<dyn Host>,
    process: Guarded,
    session: SessionRef,
    home: Home,
    reader: TurnReader,
    /// Calls of tools that wait for people.
    waiting: HashSet<String>,
    asked: Vec<String>,
}

impl Turn {
    async fn start(
        around: &Surroundings,
        request: TurnRequest,
        host: Arc<dyn Host>,
    ) -> Result<Self, EngineError> {
        let found = crate::program::find(Engine::Gemini, around).await?;
        let home = Home::of(&request.project);
        home.prepare(around)?;
        let known = request.session.clone().filter(|name| is_session_handle(name));
        let name = known.unwrap_or_else(SessionRef::fresh_name);
        let files = session::conversation(&home.gemini(), &name);
        let is_there =
            files.as_ref().is_some_and(|files| files.iter().any(|file| session::is_resumable(file)));
        if request.needs_conversation() && !is_there {
            let folder = home.gemini().display().to_string();
            return Err(match files {
                Some(_) => gone(name, format!("in {folder} it is not, or holds nothing")),
                None => EngineError::System {
                    what: format!("looking for the conversation {name} in {folder}"),
                    cause: "a file of it cannot be read".to_owned(),
                },
            });
        }
        // The program neither goes on with a conversation that holds nothing nor begins another of its name.
        let is_empty = !is_there && files.is_none_or(|files| !files.is_empty());
        let session = SessionRef {
            engine: Engine::Gemini,
            session: if is_empty { SessionRef::fresh_name() } else { name },
            cwd: request.cwd.clone(),
            version: Some(found.version),
        };
        host.session(session.clone()).await?;
        let conversation = if is_there {
            Conversation::Resume(&session.session)
        } else {
            Conversation::Start(Some(&session.session))
        };
        let line = command_line(&request.command(Engine::Gemini, conversation, None));
        let mut argv: Vec<_> = line.argv.iter().map(Into::into).collect();
        argv[0] = found.path.into();
        let mut env = around.for_turn(&request);
        env.insert(home::HOME_VARIABLE.into(), home.path().into());
        // One process instead of two.
        env.insert("GEMINI_CLI_NO_RELAUNCH".into(), "true".into());
        env.insert("AOP_ENGINE".into(), engine_variable(&request, &session).to_string().into());
        let process = Guarded::spawn(Launch {
            aop: around.aop.clone(),
            argv,
            env,
            cwd: request.cwd.clone(),
            stdin: Stdin::Given(prompt::prompt(&request).into_bytes()),
            run_dir: request.run_dir.clone(),
            limits: request.limits,
        })
        .await?;
        host.progress(Progress::started(process.started()));
        let reader = TurnReader::new(Engine::Gemini);
        Ok(Turn { request, host, process, session, home, reader, waiting: HashSet::new(), asked: Vec::new() })
    }

    async fn play(mut self) -> Result<TurnReport, EngineError> {
        let mut stopped = false;
        while let Some(line) = self.process.next_line().await {
            self.reader.feed(&line);
            let Ok(line) = serde_json::from_slice::<Value>(&line) else { continue };
            if line["type"] == "result" {
                self.process.finished(true);
            }
            if self.hear(&line) {
                stopped = true;
                break;
            }
        }
        let transcript = self.process.transcript();
        let end = if stopped { self.process.kill().await } else { self.process.wait().await };
        let mut turn = self.reader.finish();
        if end.errors.contains(CANNOT_RESUME) && turn.message.is_none() {
            return Err(gone(self.session.session, end.errors));
        }
        end.explain(&mut turn);
        let delivered = match &self.request.input {
            Input::Reply(reply) => {
                session::is_told(&self.home.gemini(), &self.session.session, &reply.question_id)
                    .unwrap_or(false)
            }
            Input::Message(_) | Input::Continue(_) => false,
        };
        Ok(TurnReport {
            turn,
            process: end.process(),
            session: Some(self.session),
            asked: self.asked,
            transcript,
            delivered,
        })
    }

    /// Notes what a line says. True when the process has to be ended: it asked and goes on all the same.
    fn hear(&mut self, line: &Value) -> bool {
        let text = |key: &str| line[key].as_str().unwrap_or_default();
        match text("type") {
            "message" if text("role") == "assistant" => {
                self.host.progress(Progress::Said(text("content").to_owned()));
            }
            "tool_use" => {
                self.host.progress(Progress::Uses(text("tool_name").to_owned()));
                if WAITING_TOOLS.contains(&text("tool_name")) {
                    self.waiting.insert(text("tool_id").to_owned());
                }
            }
            "tool_result" if self.waiting.remove(text("tool_id")) => {
                if line["error"]["type"] == "stop_execution" {
                    let reason = line["error"]["message"].as_str().unwrap_or_default();
                    self.note(parked_question(reason).map(str::to_owned));
                } else if let Some(question) = pending_in(text("output")) {
                    // The hook did not run. Whatever is said from here on is said without the answer.
                    self.note(Some(question));
                    return true;
                }
            }
            _ => {}
        }
        false
    }

    fn note(&mut self, question: Option<String>) {
        if let Some(question) = question.filter(|question| !self.asked.contains(question)) {
            self.asked.push(question);
        }
    }
}

fn gone(session: String, cause: String) -> EngineError {
    EngineError::ConversationGone { engine: Engine::Gemini, session, cause }
}

/// What the MCP server is told of the engine that started it: whose question it is, and that it need not wait.
fn engine_variable(request: &TurnRequest, session: &SessionRef) -> Value {
    let refuses = match (request.mode, request.may_ask) {
        (Mode::Auto, _) => Some(NOBODY),
        (Mode::Interactive, false) => Some(NO_MORE),
        (Mode::Interactive, true) => None,
    };
    json!({"engine": session.engine.as_str(), "session": session.session, "cwd": session.cwd,
        "version": session.version, "refuses": refuses})
}
