//! The port: what a driver is asked to do, what it tells its host while it does it, what is left afterwards.

use crate::process::Started;
use aop_turn::command::{Conversation, Launch, Permissions, Version};
use aop_turn::{Engine, Mode, Process, Role, Turn};
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// A call under way.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What an engine can do. Data, so that nobody asks which engine it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// The agent asks through a tool of the engine's own.
    pub native_ask: bool,
    /// The process is gone while a person thinks.
    pub parks_to_nothing: bool,
    /// An answer is given back as the result of the agent's own call.
    pub inject_answer: bool,
    /// An answer is given back as the next message.
    pub resume_by_message: bool,
    /// Permission prompts can become questions.
    pub permission_questions: bool,
    /// The conversation can go on in another clone or on another machine: it is not in files of its own machine.
    pub session_travels: bool,
    /// We choose the name of a new conversation.
    pub session_named_by_us: bool,
    /// The program can be tried against a loopback model.
    pub self_test: bool,
}

/// How long and how much a turn may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The whole turn.
    pub hard: Duration,
    /// Without a byte of output.
    pub idle: Duration,
    /// After its last word, until the process is ended.
    pub linger: Duration,
    /// Bytes of output kept in the transcript.
    pub output_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            hard: Duration::from_secs(4 * 3600),
            idle: Duration::from_secs(30 * 60),
            linger: Duration::from_secs(10),
            output_bytes: 1 << 30,
        }
    }
}

/// How a question that the engine's session waits for came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyKind {
    /// Somebody answered, or a declared default applies by policy (the words say which).
    Answered,
    /// Nobody answered, it was taken back, or it is not permitted: no answer exists.
    Unanswered,
}

/// What a parked session is told about its question.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The question.
    pub question_id: String,
    /// The engine's call that asked, where there was one.
    pub call_id: Option<String>,
    /// Whether there is an answer.
    pub kind: ReplyKind,
    /// The answer as recorded, secrets in clear; null when there is none.
    pub answer: Value,
    /// The question as recorded (`QuestionRecord`), for turning the answer into the engine's own form.
    pub question: Value,
    /// The same in words: what a model is told that gets it as a message or as a refusal.
    pub words: String,
    /// What the agent reads along with it: ends of questions that it did not wait for, and notes of people, which answer
    /// nothing. Empty where there is neither.
    pub notes: String,
    /// Whether a secret stands in the notes. It goes to the engine on its standard input and no other way: what is said
    /// beside an answer is written down, by us or in what the engine tells of its turn.
    pub notes_are_secret: bool,
}

/// What the turn begins with.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A message for the agent.
    Message(String),
    /// The end of the question that the session is parked on.
    Reply(Box<Reply>),
    /// Nothing new: a turn that was cut off goes on. The words are for engines that need a message for that.
    Continue(String),
}

/// One turn to run.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnRequest {
    /// The feature it is about.
    pub feature_id: String,
    /// In which role.
    pub role: Role,
    /// The claim that this turn runs under; programs that the engine starts find it in their environment.
    pub claim: String,
    /// Whether a person may be asked.
    pub mode: Mode,
    /// Which attempt of the role in this phase it is, from 1.
    pub attempt: u32,
    /// False at the attempt limit: an ask is refused instead of recorded.
    pub may_ask: bool,
    /// Who decides about the engine's own permission prompts.
    pub permissions: Permissions,
    /// The project's root.
    pub project: PathBuf,
    /// Where the engine works: the feature's worktree.
    pub cwd: PathBuf,
    /// Where transcript, settings and `artifacts/` of this turn go; exists and is this turn's alone.
    pub run_dir: PathBuf,
    /// The conversation to go on with; none begins one.
    pub session: Option<String>,
    /// What it begins with.
    pub input: Input,
    /// Standing instructions (the patches of `aop-turn`), for the engine's system prompt or before the message.
    pub instructions: String,
    /// What the result has to look like.
    pub output_schema: Option<Value>,
    /// How long and how much.
    pub limits: Limits,
    /// How long the process may be kept for a live answer before it is parked.
    pub warm: Duration,
}

impl TurnRequest {
    /// Whether it means anything only in a conversation that knows what went before. The others say all there is.
    pub(crate) fn needs_conversation(&self) -> bool {
        match &self.input {
            Input::Reply(_) => true,
            Input::Message(_) | Input::Continue(_) => false,
        }
    }

    /// What its command line is made from.
    pub(crate) fn command<'a>(
        &self,
        engine: Engine,
        conversation: Conversation<'a>,
        version: Option<Version>,
    ) -> Launch<'a> {
        let TurnRequest { mode, permissions, .. } = *self;
        Launch { engine, mode, conversation, permissions, version, output_schema: None }
    }
}

/// A conversation of an engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionRef {
    /// The engine.
    pub engine: Engine,
    /// Its handle.
    pub session: String,
    /// The folder it belongs to.
    pub cwd: PathBuf,
    /// The engine's version.
    pub version: Option<String>,
}

impl SessionRef {
    /// A handle that nobody has used, for engines that take no other than a UUID.
    pub(crate) fn fresh_name() -> String {
        // Randomness and time of a ULID, dressed as a version 4. What changes comes first: Gemini CLI names its files by
        // that, and two of the same name are one conversation to it.
        let bits = u128::from(ulid::Ulid::generate()).rotate_left(64);
        let bits = (bits & !(0xf << 76) & !(0b11 << 62)) | (0x4 << 76) | (0b10 << 62);
        let hex = format!("{bits:032x}");
        [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
    }
}

/// What a host made of a native ask.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    /// It is recorded and waits: park.
    Recorded {
        /// The question.
        question_id: String,
    },
    /// Its end is known already: tell the engine live.
    Settled(Box<Reply>),
    /// Nobody may be asked: tell the engine these words live.
    Refused(String),
}

/// Something worth showing while a turn runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// The process runs.
    Started {
        /// Its process group.
        pgid: i32,
        /// When the kernel says it began (clock ticks since boot), so that a reused id is not taken for it.
        start_time: u64,
    },
    /// The agent said something.
    Said(String),
    /// The agent uses a tool.
    Uses(String),
}

impl Progress {
    pub(crate) fn started(process: Started) -> Self {
        Progress::Started { pgid: process.pgid, start_time: process.start_time }
    }
}

/// Why a host cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HostError(pub String);

/// Whoever runs the turn: keeps questions and sessions durably, shows progress.
pub trait Host: Send + Sync {
    /// The conversation has a handle. When this returns, the handle survives a crash; called before any ask.
    fn session(&self, session: SessionRef) -> Pending<'_, Result<(), HostError>>;

    /// The agent asks, by the arguments of `feature.question_create` that only the host can complete with
    /// feature, role and session. Recorded once per `call_id`. When this returns `Recorded`, the question
    /// survives power loss and the process may go.
    fn ask(&self, arguments: Value, call_id: String) -> Pending<'_, Result<Asked, HostError>>;

    /// Waits for the end of a question, at most so long. Whoever gets `Some` here delivers it: the host has
    /// claimed the delivery for this turn.
    fn await_reply(
        &self,
        question_id: String,
        patience: Duration,
    ) -> Pending<'_, Result<Option<Reply>, HostError>>;

    /// Something to show. Never waits.
    fn progress(&self, progress: Progress);
}

/// What is left of a turn that came to an end of some kind.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnReport {
    /// What was said, for the judge.
    pub turn: Turn,
    /// How the process ended, for the judge.
    pub process: Process,
    /// The conversation.
    pub session: Option<SessionRef>,
    /// Questions that were recorded during the turn and not settled within it.
    pub asked: Vec<String>,
    /// The raw output.
    pub transcript: PathBuf,
    /// Whether the reply that the turn began with has reached the conversation.
    pub delivered: bool,
}

/// Why a turn could not be run at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The program is not there.
    #[error("{engine} is not installed: no `{program}` on the PATH")]
    NotInstalled {
        /// The engine.
        engine: Engine,
        /// The program that was looked for.
        program: String,
        /// How to get it.
        hint: String,
        /// The engines whose programs are there.
        others: Vec<Engine>,
    },
    /// The program is there and cannot be used.
    #[error("{engine} cannot be used: {cause}")]
    Unusable {
        /// The engine.
        engine: Engine,
        /// Why.
        cause: String,
        /// What to do about it.
        hint: String,
    },
    /// The conversation to go on with is nowhere to be found. Nothing was said in it, and nothing can be: whoever asked
    /// for the turn begins another one, which knows nothing.
    #[error("{engine} has no conversation {session} any more: {cause}")]
    ConversationGone {
        /// The engine.
        engine: Engine,
        /// Its handle.
        session: String,
        /// How that was found.
        cause: String,
    },
    /// The machine did not let us.
    #[error("{what}: {cause}")]
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        cause: String,
    },
    /// The host could not go on; the process is gone.
    #[error("{0}")]
    Host(#[from] HostError),
}

/// One engine.
pub trait Driver: Send + Sync {
    /// Which.
    fn engine(&self) -> Engine;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Runs one turn to its end: final words, a recorded question (then no process is left), or a failure. The
    /// process group is gone when this returns or is dropped.
    fn run(&self, request: TurnRequest, host: Arc<dyn Host>) -> Pending<'_, Result<TurnReport, EngineError>>;

    /// Whether the conversation's own transcript holds the reply to this question already; `None` when that
    /// cannot be known. Asked before an answer is delivered again. The project is named because an engine may
    /// keep its conversations there.
    fn holds_reply(
        &self,
        project: PathBuf,
        session: SessionRef,
        question_id: String,
        call_id: Option<String>,
    ) -> Pending<'_, Option<bool>>;
}

#[cfg(test)]
mod tests {
    use super::SessionRef;

    #[test]
    fn names_are_uuids_and_differ() {
        let (one, other) = (SessionRef::fresh_name(), SessionRef::fresh_name());
        assert_ne!(one[..8], other[..8]);
        assert_eq!((one.len(), &one[14..15]), (36, "4"));
        assert!("89ab".contains(&one[19..20]), "{one}");
    }
}
