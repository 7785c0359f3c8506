//! The scripted engine: no agent, but a real process that plays a scenario file under the same guard as the others.
//! It is the engine of the demonstration and of tests, and says so in everything it shows.

mod player;
pub(crate) mod scenario;
mod session;

pub use player::{PlayArgs, play};

use crate::ask::arguments;
use crate::port::{
    Asked, Capabilities, Driver, EngineError, Host, Input, Pending, Progress, Reply, SessionRef, TurnReport,
    TurnRequest,
};
use crate::process::{Guarded, Launch, Stdin, Surroundings};
use aop_turn::command::{Conversation, command_line, is_session_handle};
use aop_turn::native::{NativeAsk, Stage, read_ask};
use aop_turn::{Engine, TurnReader};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;

/// What it can do: everything that a real engine can, except asking for permissions.
pub(crate) const CAPABILITIES: Capabilities = Capabilities {
    native_ask: true,
    parks_to_nothing: true,
    inject_answer: true,
    resume_by_message: true,
    permission_questions: false,
    session_travels: false,
    session_named_by_us: true,
    self_test: true,
};

/// The driver.
#[derive(Debug)]
pub(crate) struct Scripted {
    pub(crate) around: Surroundings,
}

impl Driver for Scripted {
    fn engine(&self) -> Engine {
        Engine::Scripted
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
        Box::pin(async move {
            let conversation = session::Conversation::load(&project, &session.session).ok()?;
            let told = |conversation: session::Conversation| {
                conversation.holds(&question_id)
                    || conversation.heard.iter().any(|message| message.contains(&question_id))
            };
            Some(conversation.is_some_and(told))
        })
    }
}

/// One turn.
struct Turn {
    request: TurnRequest,
    host: Arc<dyn Host>,
    process: Guarded,
    session: SessionRef,
    reader: TurnReader,
    asked: Vec<String>,
    delivered: bool,
    /// Whether anything was said in the conversation before this turn.
    was_begun: bool,
}

impl Turn {
    async fn start(
        around: &Surroundings,
        request: TurnRequest,
        host: Arc<dyn Host>,
    ) -> Result<Self, EngineError> {
        scenario::load(&request.project, &request.feature_id)
            .map_err(|(cause, hint)| EngineError::Unusable { engine: Engine::Scripted, cause, hint })?;
        let fresh = format!("scripted-{}", ulid::Ulid::generate().to_string().to_ascii_lowercase());
        let (name, is_new) = match request.session.as_deref().filter(|name| is_session_handle(name)) {
            Some(name) => (name.to_owned(), false),
            None => (fresh, true),
        };
        let system = |error: std::io::Error| EngineError::System {
            what: format!("reading the conversation {name}"),
            cause: error.to_string(),
        };
        let kept = session::Conversation::load(&request.project, &name).map_err(system)?;
        let was_begun = kept.is_some_and(|conversation| conversation.has_begun());
        if request.needs_conversation() && !was_begun {
            let folder = scenario::folder(&request.project).join("sessions").display().to_string();
            let (engine, cause) = (Engine::Scripted, format!("nothing of it is in {folder}"));
            return Err(EngineError::ConversationGone { engine, session: name, cause });
        }
        let session = SessionRef {
            engine: Engine::Scripted,
            session: name,
            cwd: request.cwd.clone(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        };
        host.session(session.clone()).await?;
        let conversation = if is_new {
            Conversation::Start(Some(&session.session))
        } else {
            Conversation::Resume(&session.session)
        };
        let line = command_line(&request.command(Engine::Scripted, conversation, None));
        let mut argv: Vec<_> = line.argv.iter().map(Into::into).collect();
        argv[0] = around.aop.clone().into();
        let process = Guarded::spawn(Launch {
            aop: around.aop.clone(),
            argv,
            env: around.for_turn(&request),
            cwd: request.cwd.clone(),
            stdin: Stdin::Kept,
            run_dir: request.run_dir.clone(),
            limits: request.limits,
        })
        .await?;
        host.progress(Progress::started(process.started()));
        let reader = TurnReader::new(Engine::Scripted);
        Ok(Turn { request, host, process, session, reader, asked: Vec::new(), delivered: false, was_begun })
    }

    async fn play(mut self) -> Result<TurnReport, EngineError> {
        let input = match &self.request.input {
            Input::Message(text) => json!({"type": "message", "text": text}),
            Input::Reply(reply) => told(reply),
            Input::Continue(text) if self.was_begun => json!({"type": "continue", "text": text}),
            Input::Continue(text) => json!({"type": "message", "text": text}),
        };
        self.tell(&input);
        while let Some(line) = self.process.next_line().await {
            self.reader.feed(&line);
            let Ok(line) = serde_json::from_slice::<Value>(&line) else { continue };
            match line["type"].as_str() {
                Some("said") => {
                    let text = line["text"].as_str().unwrap_or_default();
                    self.host.progress(Progress::Said(text.to_owned()));
                }
                Some("wrote") => self.host.progress(Progress::Uses(format!("write {}", line["path"]))),
                Some("settled") => self.delivered |= self.is_reply(&line),
                Some("ask") => {
                    if let Some(question) = self.ask(line).await? {
                        self.asked.push(question);
                        break;
                    }
                }
                _ => {}
            }
        }
        let transcript = self.process.transcript();
        let end = if self.asked.is_empty() { self.process.wait().await } else { self.process.kill().await };
        let mut turn = self.reader.finish();
        end.explain(&mut turn);
        Ok(TurnReport {
            turn,
            process: end.process(),
            session: Some(self.session),
            asked: self.asked,
            transcript,
            delivered: self.delivered,
        })
    }

    /// Hands an ask to the host. The question, when the process has to go.
    async fn ask(&mut self, line: Value) -> Result<Option<String>, EngineError> {
        let call_id = line["call_id"].as_str().unwrap_or_default().to_owned();
        let ask = NativeAsk {
            call_id: call_id.clone(),
            message: None,
            stage: Stage::Waiting,
            body: read_ask(&line),
        };
        let arguments = match arguments(&[&ask], self.request.attempt) {
            Ok(mut arguments) => {
                // A scenario may say how long its question waits; no agent's tool can.
                if let Some(time) = line.get("timeout_ms") {
                    arguments["timeout_ms"] = time.clone();
                }
                arguments
            }
            Err(reason) => {
                self.tell(&json!({"type": "refused", "call_id": call_id, "words": reason}));
                return Ok(None);
            }
        };
        let reply = match self.host.ask(arguments, call_id.clone()).await? {
            Asked::Recorded { question_id } if self.request.warm.is_zero() => return Ok(Some(question_id)),
            Asked::Recorded { question_id } => {
                match self.host.await_reply(question_id.clone(), self.request.warm).await? {
                    Some(reply) => reply,
                    None => return Ok(Some(question_id)),
                }
            }
            Asked::Settled(reply) => *reply,
            Asked::Refused(words) => {
                self.tell(&json!({"type": "refused", "call_id": call_id, "words": words}));
                return Ok(None);
            }
        };
        self.tell(&told(&reply));
        Ok(None)
    }

    fn tell(&mut self, line: &Value) {
        self.process.write(format!("{line}\n").as_bytes());
    }

    fn is_reply(&self, line: &Value) -> bool {
        match &self.request.input {
            Input::Reply(reply) => line["question_id"] == reply.question_id.as_str(),
            Input::Message(_) | Input::Continue(_) => false,
        }
    }
}

fn told(reply: &Reply) -> Value {
    json!({"type": "reply", "call_id": reply.call_id, "question_id": reply.question_id, "kind": reply.kind,
        "answer": reply.answer, "words": reply.words, "notes": reply.notes})
}
