//! A running `codex app-server`: requests and replies over its pipes, and the clocks of the turn.
//!
//! The clocks are kept here and not by the guard, because they stand still while a person is waited for.

use super::wire::{self, Message};
use crate::port::{EngineError, Limits, Progress};
use crate::process::{Guarded, Launch};
use aop_turn::{Engine, Process, Turn, TurnReader};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// The guard's own clocks, which shall never strike.
const NEVER: Duration = Duration::from_secs(20 * 365 * 24 * 3600);
/// A server that has not said hello by now is none.
const HELLO: Duration = Duration::from_secs(60);
/// So many lines that mean nothing, before the server has said hello, mean that it will not.
const NOISE_BEFORE_HELLO: usize = 20;

/// What is the matter with one that says nothing of use.
const SILENT: &str = "it does not answer";
/// Exit codes from here on are ends by a signal.
const BY_SIGNAL: i32 = 128;
/// How a Rust program ends that has met with what it holds to be impossible. Its words are not about how it is used.
const PANICKED: i32 = 101;

/// Why a request of ours came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallError {
    /// The server refused it, in these words.
    Refused(String),
    /// The server is gone, or its time is up.
    Gone,
}

/// What came of starting a server.
#[derive(Debug)]
pub(super) enum Start {
    /// It has said hello.
    Runs(Box<App>),
    /// Its process came to an end that says nothing about the program: it was killed, or its time was up.
    Died(Box<Left>),
}

/// What is left of a server.
#[derive(Debug)]
pub(super) struct Left {
    /// What was said.
    pub(super) turn: Turn,
    /// How the process ended, as far as the judge has to know: an end that we made is no failure.
    pub(super) process: Process,
    /// The raw output.
    pub(super) transcript: PathBuf,
    /// The end of what it wrote to standard error.
    pub(super) errors: String,
}

/// The server.
#[derive(Debug)]
pub(super) struct App {
    process: Guarded,
    reader: TurnReader,
    backlog: VecDeque<Message>,
    requests: u64,
    deadline: Instant,
    idle: Duration,
    heard: Instant,
    timed_out: bool,
    /// What came before hello and meant nothing.
    noise: Vec<String>,
    greeted: bool,
}

impl App {
    /// Starts the server and says hello.
    pub(super) async fn start(mut launch: Launch) -> Result<Start, EngineError> {
        let Limits { hard, idle, .. } = launch.limits;
        launch.limits = Limits { hard: NEVER, idle: NEVER, ..launch.limits };
        let process = Guarded::spawn(launch).await?;
        let now = Instant::now();
        let mut app = App {
            process,
            reader: TurnReader::new(Engine::Codex),
            backlog: VecDeque::new(),
            requests: 0,
            deadline: now + hard.min(NEVER),
            idle: idle.min(NEVER),
            heard: now,
            timed_out: false,
            noise: Vec::new(),
            greeted: false,
        };
        // Older versions want the capability for `thread/resume` without its history; nothing experimental is used.
        let hello = json!({
            "clientInfo": {"name": "aop", "title": "aop", "version": env!("CARGO_PKG_VERSION")},
            "capabilities": {"experimentalApi": true},
        });
        match timeout(HELLO, app.call("initialize", &hello)).await {
            Ok(Ok(_)) => {
                app.greeted = true;
                app.process.write(&wire::notice("initialized"));
                Ok(Start::Runs(Box::new(app)))
            }
            Ok(Err(CallError::Refused(words))) => Err(no_server(&words, &app.noise(), &app.kill().await)),
            Ok(Err(CallError::Gone)) if !app.is_noisy() => app.ended_early().await,
            Ok(Err(CallError::Gone)) | Err(_) => Err(no_server(SILENT, &app.noise(), &app.kill().await)),
        }
    }

    /// It went before it had said hello. One that exits with words, as about how it is used, is no server; one that was
    /// killed, by whomever or for want of memory, may well be one the next time.
    async fn ended_early(self) -> Result<Start, EngineError> {
        let noise = self.noise();
        let left = self.left_behind().await;
        let has_words = !left.errors.is_empty() || !noise.is_empty();
        let exited = left.process.exit_code.is_some_and(|code| code < BY_SIGNAL && code != PANICKED);
        if exited && has_words && !left.process.timed_out {
            return Err(no_server(SILENT, &noise, &left));
        }
        Ok(Start::Died(Box::new(left)))
    }

    /// More was said before hello than any server says.
    fn is_noisy(&self) -> bool {
        self.noise.len() > NOISE_BEFORE_HELLO
    }

    fn noise(&self) -> String {
        self.noise.join("\n").trim().to_owned()
    }

    /// The process.
    pub(super) fn started(&self) -> Progress {
        Progress::started(self.process.started())
    }

    /// Asks the server for something. What else it says meanwhile is kept for [`App::next`].
    pub(super) async fn call(&mut self, method: &str, params: &Value) -> Result<Value, CallError> {
        self.requests += 1;
        let wanted = self.requests;
        self.process.write(&wire::request(wanted, method, params));
        loop {
            let is_reply = |message: &Message| matches!(message, Message::Reply { id, .. } if *id == wanted);
            if let Some(index) = self.backlog.iter().position(is_reply)
                && let Some(Message::Reply { result, .. }) = self.backlog.remove(index)
            {
                return result.map_err(CallError::Refused);
            }
            if !self.pump().await {
                return Err(CallError::Gone);
            }
        }
    }

    /// Gives the server what it asked for.
    pub(super) fn reply(&mut self, id: &Value, result: &Value) {
        self.heard = Instant::now();
        self.process.write(&wire::reply(id, result));
    }

    /// Tells the server that it will not get what it asked for.
    pub(super) fn refuse(&mut self, id: &Value, words: &str) {
        self.process.write(&wire::refusal(id, words));
    }

    /// The next thing the server says; nothing when it is gone or its time is up. Can be dropped and called again.
    pub(super) async fn next(&mut self) -> Option<Message> {
        loop {
            match self.backlog.pop_front() {
                Some(Message::Reply { .. } | Message::Noise) => {}
                Some(message) => return Some(message),
                None => {
                    if !self.pump().await {
                        return None;
                    }
                }
            }
        }
    }

    /// Reads one more line into the backlog, by the turn's clocks; false when there is none to come.
    async fn pump(&mut self) -> bool {
        let due = self.deadline.min(self.heard + self.idle);
        match timeout_at(due, self.process.next_line()).await {
            Ok(line) => self.take(line),
            Err(_) => {
                self.timed_out = true;
                false
            }
        }
    }

    /// The same while a person is waited for: no clock strikes.
    pub(super) async fn pump_patiently(&mut self) -> bool {
        let line = self.process.next_line().await;
        self.take(line)
    }

    /// A person was waited for since then; that time is nobody's fault.
    pub(super) fn waited_since(&mut self, then: Instant) {
        self.heard = Instant::now();
        self.deadline += then.elapsed();
    }

    fn take(&mut self, line: Option<Vec<u8>>) -> bool {
        let Some(line) = line else { return false };
        self.heard = Instant::now();
        self.reader.feed(&line);
        let message = wire::read(&line);
        if !self.greeted && message == Message::Noise {
            self.noise.push(String::from_utf8_lossy(&line).trim().chars().take(200).collect());
            if self.is_noisy() {
                return false;
            }
        }
        self.backlog.push_back(message);
        true
    }

    /// Ends the server at once, which is how a turn is parked and how a finished one is closed: its conversation is on
    /// disk, and an end that it could notice would be written into it.
    pub(super) async fn kill(self) -> Left {
        let transcript = self.process.transcript();
        let end = self.process.kill().await;
        Left { turn: self.reader.finish(), process: Process::default(), transcript, errors: end.errors }
    }

    /// The server is gone by itself or too slow; whatever is left of it goes now.
    pub(super) async fn left_behind(self) -> Left {
        let transcript = self.process.transcript();
        let end = if self.timed_out { self.process.kill().await } else { self.process.wait().await };
        let mut process = end.process();
        process.timed_out |= self.timed_out;
        let mut turn = self.reader.finish();
        end.explain(&mut turn);
        Left { turn, process, transcript, errors: end.errors }
    }
}

/// It was started and is no app-server.
fn no_server(what: &str, noise: &str, left: &Left) -> EngineError {
    let words = [left.errors.as_str(), noise].into_iter().find(|words| !words.is_empty());
    let words = words.map(|words| format!(": {}", last_lines(words))).unwrap_or_default();
    EngineError::Unusable {
        engine: Engine::Codex,
        cause: format!("`codex app-server` was started, but {what}{words}"),
        hint: "try `codex app-server --help`; `codex --version` shows what is installed".to_owned(),
    }
}

/// The end of what a program complained about, short enough for a message.
fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(3)..].join(" / ");
    last.chars().take(600).collect()
}
