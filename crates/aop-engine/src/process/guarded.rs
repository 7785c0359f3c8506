//! `aop`'s side of a guard: a handle on one engine process.

use super::environment::TurnMark;
use super::family::{kill_group, process};
use super::frame::{Frame, Kind, encoded, receive_async};
use super::lines::Lines;
use super::record::{MARK, Record};
use super::{Started, reap_leftovers};
use crate::port::{EngineError, Limits};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

/// So much of standard error is kept for messages; all of it is in the turn's folder.
const ERRORS_KEPT: usize = 8 << 10;

/// What to start.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The `aop` binary, for the guard.
    pub aop: PathBuf,
    /// The engine's program and its arguments.
    pub argv: Vec<OsString>,
    /// The whole environment.
    pub env: BTreeMap<OsString, OsString>,
    /// Where it works.
    pub cwd: PathBuf,
    /// What it reads.
    pub stdin: Stdin,
    /// Where `transcript.jsonl`, `stderr.log` and, while it runs, `process.json` go.
    pub run_dir: PathBuf,
    /// How long and how much.
    pub limits: Limits,
}

/// What an engine reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing: `/dev/null`.
    Null,
    /// These bytes, then the end.
    Given(Vec<u8>),
    /// What is written to it; it stays open until it is closed or nothing is left.
    Kept,
}

/// Why a process is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// It ended by itself.
    Exited,
    /// We ended it.
    Killed,
    /// The whole turn took too long.
    HardTimeout,
    /// It was silent for too long.
    IdleTimeout,
    /// It had said its last word and did not go. Its turn came to its end all the same.
    Lingered,
    /// It wrote too much.
    OutputLimit,
    /// The guard was lost, and with it how the engine ended. What was left has been ended.
    GuardLost,
}

/// How a process ended. Nothing that it started is left, and its guard is gone too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// Why.
    pub cause: Cause,
    /// How it exited, where that is known; a signal counts as 128 plus its number.
    pub code: Option<i32>,
    /// The end of what it wrote to standard error.
    pub errors: String,
}

impl End {
    /// What the judge wants to know.
    pub fn process(&self) -> aop_turn::Process {
        let timed_out = matches!(self.cause, Cause::HardTimeout | Cause::IdleTimeout);
        // How it went when we ended it says nothing about a turn that was over by then.
        let exit_code = self.code.filter(|_| self.cause != Cause::Lingered);
        aop_turn::Process { exit_code, timed_out }
    }

    /// Whether it said all it had to say and went well.
    pub(crate) fn is_good(&self) -> bool {
        match self.cause {
            Cause::Exited => self.code == Some(0),
            Cause::Lingered => true,
            Cause::OutputLimit
            | Cause::IdleTimeout
            | Cause::HardTimeout
            | Cause::GuardLost
            | Cause::Killed => false,
        }
    }

    /// Gives a turn that reports no error of its own the reason that the process gave, for people.
    pub fn explain(&self, turn: &mut aop_turn::Turn) {
        let reason = match self.cause {
            Cause::OutputLimit => "it wrote more than it may and was ended".to_owned(),
            Cause::IdleTimeout => "it was silent for too long".to_owned(),
            Cause::HardTimeout => "the turn took too long".to_owned(),
            Cause::GuardLost => "the process that guards it was killed".to_owned(),
            Cause::Exited if self.code != Some(0) => self.errors.clone(),
            Cause::Exited | Cause::Killed | Cause::Lingered => String::new(),
        };
        if turn.error.is_none() && !reason.is_empty() {
            turn.error = Some((reason, turn.length..turn.length));
        }
    }
}

/// An engine under guard. Dropping it ends the engine and everything that it started.
#[derive(Debug)]
pub struct Guarded {
    frames: mpsc::Receiver<Frame>,
    control: mpsc::UnboundedSender<Vec<u8>>,
    started: Started,
    run_dir: PathBuf,
    deadline: Instant,
    idle: std::time::Duration,
    linger: std::time::Duration,
    /// Since when nothing is expected of it but that it goes.
    last_word: Option<Instant>,
    heard: Instant,
    lines: Lines,
    errors: Vec<u8>,
    code: Option<i32>,
    cause: Option<Cause>,
}

impl Guarded {
    /// Starts an engine. When this returns, it runs.
    pub async fn spawn(launch: Launch) -> Result<Guarded, EngineError> {
        let system = |what: &str| {
            let what = format!("{what} in {}", launch.run_dir.display());
            move |error: std::io::Error| EngineError::System { what, cause: error.to_string() }
        };
        let mark = TurnMark::fresh();
        let record = Record::path(&launch.run_dir);
        Record::new(&mark.0, &launch.run_dir)
            .write(&record)
            .map_err(system("writing the record of the process"))?;
        let mut command = Command::new(&launch.aop);
        command
            .arg("guard")
            .args(["--output-bytes", &launch.limits.output_bytes.to_string()])
            .arg("--record")
            .arg(&record)
            .arg("--transcript")
            .arg(launch.run_dir.join(TRANSCRIPT))
            .arg("--errors")
            .arg(launch.run_dir.join("stderr.log"));
        if launch.stdin != Stdin::Null {
            command.arg("--piped-input");
        }
        command.arg("--").args(&launch.argv);
        command.current_dir(&launch.cwd).env_clear().envs(&launch.env).env(MARK, &mark.0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| EngineError::System {
            what: format!("starting {} in {}", launch.aop.display(), launch.cwd.display()),
            cause: error.to_string(),
        })?;
        let (control, orders) = mpsc::unbounded_channel();
        let (events, mut frames) = mpsc::channel(64);
        if let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) {
            tokio::spawn(give_orders(input, orders));
            tokio::spawn(hear(output, events, child));
        }
        if let Stdin::Given(bytes) = &launch.stdin {
            let _ = control.send(encoded(Kind::Input, bytes));
            let _ = control.send(encoded(Kind::CloseInput, &[]));
        }
        let started = match frames.recv().await {
            Some(Frame { kind: Kind::Started, bytes }) => {
                serde_json::from_slice(&bytes).map_err(|error| system("starting the engine")(error.into()))?
            }
            other => {
                let cause = match other {
                    Some(frame) => String::from_utf8_lossy(&frame.bytes).into_owned(),
                    None => "its guard ended at once".to_owned(),
                };
                return Err(EngineError::System { what: "starting the engine".to_owned(), cause });
            }
        };
        let now = Instant::now();
        Ok(Guarded {
            frames,
            control,
            started,
            run_dir: launch.run_dir,
            deadline: now + launch.limits.hard,
            idle: launch.limits.idle,
            linger: launch.limits.linger,
            last_word: None,
            heard: now,
            lines: Lines::default(),
            errors: Vec::new(),
            code: None,
            cause: None,
        })
    }

    /// The process.
    pub fn started(&self) -> Started {
        self.started
    }

    /// The raw output, as a file.
    pub fn transcript(&self) -> PathBuf {
        self.run_dir.join(TRANSCRIPT)
    }

    /// The next line of standard output with its end; the last one may have none. `None` when there will be no more, or
    /// time is up (then it is ended). Can be dropped and called again.
    pub async fn next_line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(line) = self.lines.next() {
                return Some(line);
            }
            match self.receive().await {
                Some(bytes) => self.lines.push(&bytes),
                None => return self.lines.rest(),
            }
        }
    }

    /// Writes to standard input. What is written to an engine that is gone is lost, as with any pipe.
    pub fn write(&mut self, bytes: &[u8]) {
        self.heard = Instant::now();
        let _ = self.control.send(encoded(Kind::Input, bytes));
    }

    /// Counts as if something had been heard: the silence has a reason.
    pub fn touch(&mut self) {
        self.heard = Instant::now();
        self.last_word = self.last_word.map(|_| self.heard);
    }

    /// Whether the engine has said its last word: then it should go, and is ended when it does not.
    pub fn finished(&mut self, has_finished: bool) {
        self.last_word = has_finished.then(Instant::now);
    }

    /// Ends the engine with everything that it started, and waits until nothing is left. Its input stays open to the
    /// last.
    pub async fn kill(mut self) -> End {
        self.end_as(Cause::Killed);
        self.wait().await
    }

    /// Waits for the end; what is written meanwhile goes to the transcript alone.
    pub async fn wait(mut self) -> End {
        while self.receive().await.is_some() {}
        let cause = match (self.cause, self.code) {
            (Some(cause), _) => cause,
            (None, Some(_)) => Cause::Exited,
            (None, None) => {
                let run_dir = self.run_dir.clone();
                let _ = tokio::task::spawn_blocking(move || reap_leftovers(&run_dir)).await;
                Cause::GuardLost
            }
        };
        End { cause, code: self.code, errors: String::from_utf8_lossy(&self.errors).trim().to_owned() }
    }

    /// The next output, having dealt with everything else.
    async fn receive(&mut self) -> Option<Vec<u8>> {
        loop {
            let frame = if self.cause.is_some() {
                // It is being ended, and that takes as long as it takes.
                self.frames.recv().await
            } else {
                let silent = self.heard + self.idle;
                let (due, cause) = match self.last_word {
                    Some(since) => (self.deadline.min(since + self.linger), Cause::Lingered),
                    None if silent < self.deadline => (silent, Cause::IdleTimeout),
                    None => (self.deadline, Cause::HardTimeout),
                };
                match timeout_at(due, self.frames.recv()).await {
                    Ok(frame) => frame,
                    Err(_) => {
                        self.end_as(cause);
                        continue;
                    }
                }
            };
            let Frame { kind, bytes } = frame?;
            self.heard = Instant::now();
            match kind {
                Kind::Output => return Some(bytes),
                Kind::Errors => self.keep_errors(&bytes),
                Kind::TooMuch => self.cause = self.cause.or(Some(Cause::OutputLimit)),
                Kind::Ended => self.code = String::from_utf8_lossy(&bytes).parse().ok(),
                Kind::Started | Kind::NotStarted | Kind::Input | Kind::CloseInput | Kind::Kill => {}
            }
        }
    }

    fn end_as(&mut self, cause: Cause) {
        self.cause = self.cause.or(Some(cause));
        let _ = self.control.send(encoded(Kind::Kill, &[]));
    }

    fn keep_errors(&mut self, bytes: &[u8]) {
        self.errors.extend_from_slice(bytes);
        let surplus = self.errors.len().saturating_sub(ERRORS_KEPT);
        self.errors.drain(..surplus);
    }
}

/// The engine goes at once, not when the runtime gets round to closing the pipe; the guard ends the rest.
impl Drop for Guarded {
    fn drop(&mut self) {
        let Started { pgid, start_time } = self.started;
        if self.code.is_none() && process(pgid).is_some_and(|engine| engine.start_time == start_time) {
            kill_group(pgid);
        }
    }
}

/// The file of the raw output.
const TRANSCRIPT: &str = "transcript.jsonl";

/// Writes whole frames, whatever happens to those who want them written. Ends with the handle, and that closes the
/// pipe: the guard then ends the engine.
async fn give_orders(mut input: ChildStdin, mut orders: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(frame) = orders.recv().await {
        if input.write_all(&frame).await.is_err() {
            return;
        }
    }
}

/// Reads whole frames, and sees the guard off: the frames end when there is no guard any more.
async fn hear(mut output: ChildStdout, events: mpsc::Sender<Frame>, mut guard: tokio::process::Child) {
    while let Ok(frame) = receive_async(&mut output).await {
        if events.send(frame).await.is_err() {
            break;
        }
    }
    drop(output);
    let _ = guard.wait().await;
}
