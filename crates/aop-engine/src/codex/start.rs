//! The beginning of a turn: what is known of the conversation, the process, and the thread in it.

use super::app::{App, CallError, Left, Start};
use super::card::Card;
use super::home::{FirstStart, HOME_VARIABLE};
use super::opening::{Delivery, Opening};
use super::program::Program;
use super::turn::{Turn, conversation, refusal, refused};
use super::{NO_THREAD, gone, thread, unusable, writer};
use crate::port::{Asked, EngineError, Host, SessionRef, TurnReport, TurnRequest};
use crate::process::{Launch, Stdin, Surroundings};
use aop_turn::stream::Ended;
use aop_turn::{Engine, Process, TurnReader};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How often, and how long apart, a thread is asked for that another process still has.
const WRITER_TRIES: u32 = 20;
const WRITER_PAUSE: Duration = Duration::from_millis(100);
/// What Codex says of a thread that another process has.
const WRITTEN: &str = "active writer";
/// The same for people. It passes, so the turn is tried again.
const HELD: &str = "somebody has the conversation open (`aop attach`, or Codex itself): close it there";

/// What a turn needs to know before there is a process.
#[derive(Debug)]
pub(super) struct Place<'a> {
    pub(super) around: &'a Surroundings,
    pub(super) program: &'a Program,
    pub(super) home: &'a Path,
}

/// Runs a turn.
pub(super) async fn run(
    place: Place<'_>,
    request: &TurnRequest,
    host: Arc<dyn Host>,
) -> Result<TurnReport, EngineError> {
    let mut opening = opening(place.home, request).await?;
    let known = request.session.as_ref().map(|session| session_ref(request, place.program, session));
    let mut asked = Vec::new();
    if let Some(session) = &known
        && !opening.unasked.is_empty()
    {
        host.session(session.clone()).await?;
        asked.extend(ask_again(request, host.as_ref(), &mut opening).await?);
        if !asked.is_empty() && opening.items.is_empty() {
            return Ok(without_process(request, session.clone(), asked));
        }
    }
    let mut env = place.around.for_turn(request);
    env.insert(HOME_VARIABLE.into(), place.home.into());
    let first = FirstStart::wait(place.home, &place.program.version_text()).await?;
    let started = App::start(Launch {
        aop: place.around.aop.clone(),
        argv: vec![place.program.path.clone().into(), "app-server".into()],
        env,
        cwd: request.cwd.clone(),
        stdin: Stdin::Kept,
        run_dir: request.run_dir.clone(),
        limits: request.limits,
    })
    .await?;
    let mut app = match started {
        Start::Runs(app) => *app,
        Start::Died(left) => return Ok(failed(*left, known, &opening, asked)),
    };
    if let Some(first) = first {
        first.done();
    }
    host.progress(app.started());
    let thread = match join_thread(&mut app, place.home, request).await {
        Ok(thread) => thread,
        Err(Unjoined::Died) => return Ok(failed(app.left_behind().await, known, &opening, asked)),
        Err(Unjoined::Held(words)) => {
            let mut left = app.kill().await;
            let end = left.turn.length..left.turn.length;
            left.turn.ended = Some((Ended::Failed(format!("{HELD}: {words}")), end));
            return Ok(failed(left, known, &opening, asked));
        }
        Err(Unjoined::Unusable(error)) => {
            app.kill().await;
            return Err(error);
        }
    };
    let session = session_ref(request, place.program, &thread);
    let mut turn = Turn::new(request, host, app, place.home, session, &mut opening, asked);
    match turn.play(&opening, known.is_some()).await {
        Ok(flow) => Ok(turn.report(flow).await),
        Err(error) => {
            turn.app.kill().await;
            Err(error)
        }
    }
}

async fn opening(home: &Path, request: &TurnRequest) -> Result<Opening, EngineError> {
    let Some(thread) = &request.session else {
        return Opening::first(&request.input).ok_or_else(|| {
            unusable("there is no conversation to go on with", "start the turn with a message")
        });
    };
    let rollout = conversation(home, thread).await;
    Ok(Opening::next(&request.input, &thread::instructions(request), &rollout.unwrap_or_default()))
}

fn session_ref(request: &TurnRequest, program: &Program, thread: &str) -> SessionRef {
    SessionRef {
        engine: Engine::Codex,
        session: thread.to_owned(),
        cwd: request.cwd.clone(),
        version: Some(program.version_text()),
    }
}

/// Puts calls to the host that were cut off before anybody saw them; their ends go into the opening. The question that
/// waits now, if one does.
async fn ask_again(
    request: &TurnRequest,
    host: &dyn Host,
    opening: &mut Opening,
) -> Result<Option<String>, EngineError> {
    let cards: Vec<Card> = opening.unasked.drain(..).collect();
    let Some(first) = cards.first() else { return Ok(None) };
    let words = match (refusal(request), super::card::arguments(&cards, request.attempt)) {
        (Some(words), _) => words.to_owned(),
        (None, Err(reason)) => reason,
        (None, Ok(arguments)) => match host.ask(arguments, first.call_id.clone()).await? {
            Asked::Recorded { question_id } => return Ok(Some(question_id)),
            Asked::Settled(reply) => {
                for call in super::card::asked_calls(&reply) {
                    opening.settle(&call.call_id, &call.returns(&reply));
                }
                return Ok(None);
            }
            Asked::Refused(words) => words,
        },
    };
    for card in &cards {
        opening.settle(&card.call_id, &card.words(&words));
    }
    Ok(None)
}

/// The report of a turn that needed no process: all it came to is a question.
fn without_process(request: &TurnRequest, session: SessionRef, asked: Vec<String>) -> TurnReport {
    let transcript = request.run_dir.join("transcript.jsonl");
    let _ = std::fs::OpenOptions::new().create(true).append(true).open(&transcript);
    TurnReport {
        turn: TurnReader::new(Engine::Codex).finish(),
        process: Process::default(),
        session: Some(session),
        asked,
        transcript,
        delivered: false,
    }
}

/// The report of a turn that came to nothing before it had its thread. It is tried again as any that failed.
fn failed(left: Left, known: Option<SessionRef>, opening: &Opening, asked: Vec<String>) -> TurnReport {
    TurnReport {
        turn: left.turn,
        process: left.process,
        session: known,
        asked,
        transcript: left.transcript,
        delivered: opening.delivery == Delivery::Held,
    }
}

/// Why there is no thread.
enum Unjoined {
    /// The server is gone, or its time is up.
    Died,
    /// Somebody else's process writes it. The server says so in these words.
    Held(String),
    /// No retry would help.
    Unusable(EngineError),
}

impl From<EngineError> for Unjoined {
    fn from(error: EngineError) -> Self {
        Unjoined::Unusable(error)
    }
}

impl Unjoined {
    fn at(method: &str, error: CallError) -> Self {
        match error {
            CallError::Gone => Unjoined::Died,
            CallError::Refused(words) => refused(method, &words).into(),
        }
    }
}

/// Starts the thread, or takes it up again.
async fn join_thread(app: &mut App, home: &Path, request: &TurnRequest) -> Result<String, Unjoined> {
    let writable = match thread::outside_folder(&request.cwd, &request.run_dir) {
        Some(folder) => {
            // One that is not there could not be opened to the sandbox.
            let made = std::fs::create_dir_all(&folder);
            made.map_err(|error| EngineError::System {
                what: format!("making {}", folder.display()),
                cause: error.to_string(),
            })?;
            let config = if thread::may_have_roots(home, &request.cwd) {
                app.call("config/read", &json!({"cwd": request.cwd})).await.unwrap_or_default()
            } else {
                Value::Null
            };
            Some(thread::writable_roots(&config, &folder))
        }
        None => None,
    };
    let mut parameters = thread::parameters(request, writable.as_deref());
    let Some(thread) = &request.session else {
        let started = app.call("thread/start", &parameters).await;
        let started = started.map_err(|error| Unjoined::at("thread/start", error))?;
        let id = started.pointer("/thread/id").and_then(Value::as_str).map(str::to_owned);
        let nameless = || unusable("it started a thread without an id", "try `codex app-server --help`");
        return Ok(id.ok_or_else(nameless)?);
    };
    parameters["threadId"] = thread.as_str().into();
    parameters["excludeTurns"] = true.into();
    for attempt in 1.. {
        match app.call("thread/resume", &parameters).await {
            Ok(_) => break,
            Err(CallError::Refused(words)) if words.contains(WRITTEN) && attempt < WRITER_TRIES => {
                // The turn has the claim, so whoever else holds the thread was left over from an earlier one.
                writer::end_left_over(home, thread).await;
                tokio::time::sleep(WRITER_PAUSE).await;
            }
            Err(CallError::Refused(words)) if words.contains(WRITTEN) => return Err(Unjoined::Held(words)),
            Err(CallError::Refused(words)) if words.contains(NO_THREAD) => {
                return Err(gone(thread, home).into());
            }
            Err(error) => return Err(Unjoined::at("thread/resume", error)),
        }
    }
    Ok(thread.clone())
}
