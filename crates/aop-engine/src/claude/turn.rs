//! One turn of Claude Code.

use super::asked::{Noted, Waits, Word};
use super::hook::follows;
use super::{settings, transcript};
use crate::mention::plain;
use crate::port::{
    EngineError, Host, HostError, Input, Progress, Reply, SessionRef, TurnReport, TurnRequest,
};
use crate::process::{Cause, End, Guarded, Launch, Stdin, Surroundings};
use crate::program;
use crate::words::{READ_FIRST, join};
use aop_turn::command::{Conversation, Version, command_line, is_session_handle};
use aop_turn::{Engine, TurnReader};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How often a hook's notes are looked at while it may be waiting.
const LOOK: Duration = Duration::from_millis(50);
/// A sub-agent's question is waited for until it ends; the host's own deadlines end it.
const TO_THE_END: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// What the engine says when it cannot find the conversation that it is to resume.
const NO_CONVERSATION: &str = "No conversation found with session ID";
/// What the engine says when a conversation is resumed without words and no call was put aside.
const NO_MARKER: &str = "No deferred tool marker found";
/// Variables by which the engine knows that it was started by itself, and behaves differently.
pub(crate) const NESTED: [&str; 3] = ["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT"];

/// Runs a turn to its end.
pub(super) async fn run(
    around: &Surroundings,
    request: TurnRequest,
    host: Arc<dyn Host>,
) -> Result<TurnReport, EngineError> {
    let installed = program::find(Engine::ClaudeCode, around).await?;
    let number = Version::parse(&installed.version);
    let version = number.map_or(installed.version, |Version(a, b, c)| format!("{a}.{b}.{c}"));
    let session = SessionRef {
        engine: Engine::ClaudeCode,
        session: request
            .session
            .clone()
            .filter(|id| is_session_handle(id))
            .unwrap_or_else(SessionRef::fresh_name),
        cwd: request.cwd.clone(),
        version: Some(version.clone()),
    };
    if request.needs_conversation() && transcript::find(&around.env, &session.session).is_none() {
        let cause = "its transcript is not among those of Claude Code".to_owned();
        return Err(gone(session, cause));
    }
    host.session(session.clone()).await?;
    let rest = follows(&request);
    let settings = settings::write(&around.aop, &request, &version, rest.is_some())?;
    let turn = Turn { around, request, host, program: installed.path, session, settings };
    let mut is_told = true;
    let (attempt, end) = match &turn.request.input {
        Input::Message(text) | Input::Continue(text) => {
            let instructions = if turn.is_begun() { turn.request.instructions.trim() } else { "" };
            turn.attempt(Some(&join(instructions, text))).await?
        }
        Input::Reply(reply) if reply.call_id.is_none() => turn.attempt(Some(&turn.told(reply))).await?,
        Input::Reply(reply) => {
            let (attempt, end) = turn.attempt(None).await?;
            // The call was cut off before it was put aside: the engine has forgotten that it waits for it. Or an earlier
            // turn told its end and came no further.
            let is_forgotten = end.errors.contains(NO_MARKER);
            // Something of the user's own, a rule or a hook, has had the engine ask somebody else in place of our hook, and
            // nobody is there. The agent may have gone on without the answer, and has it told in words. (What was permitted
            // would only be asked for again.)
            let is_lost = turn.asked(&attempt).is_empty() && turn.is_lost(reply);
            let message = match &rest {
                Some(rest) if !is_lost && (end.is_good() || (is_forgotten && turn.holds(reply))) => {
                    Some(rest.clone())
                }
                _ => (is_forgotten || is_lost).then(|| turn.told(reply)),
            };
            let (attempt, end) = match &message {
                Some(message) => {
                    settings::write(&around.aop, &turn.request, &version, false)?;
                    turn.attempt(Some(message)).await?
                }
                None => (attempt, end),
            };
            let went_well = end.is_good() || !Noted::all(&turn.request.run_dir).is_empty();
            is_told = (rest.is_none() && !is_lost) || (message.is_some() && went_well);
            (attempt, end)
        }
    };
    let mut report = turn.report(attempt, &end);
    // What was not read to its end is told again; the answer is not, where the conversation has it.
    report.delivered &= is_told;
    match report.session {
        Some(session) if end.errors.contains(NO_CONVERSATION) && report.turn.message.is_none() => {
            Err(gone(session, end.errors))
        }
        session => Ok(TurnReport { session, ..report }),
    }
}

fn gone(session: SessionRef, cause: String) -> EngineError {
    EngineError::ConversationGone { engine: session.engine, session: session.session, cause }
}

struct Turn<'a> {
    around: &'a Surroundings,
    request: TurnRequest,
    host: Arc<dyn Host>,
    program: PathBuf,
    session: SessionRef,
    settings: PathBuf,
}

/// What one process left behind.
struct Attempt {
    reader: TurnReader,
    /// Questions that were answered while the process lived.
    settled: Vec<String>,
    /// Its turn has come to an end, and none has begun since.
    has_finished: bool,
}

impl Attempt {
    fn new() -> Self {
        let reader = TurnReader::new(Engine::ClaudeCode);
        Attempt { reader, settled: Vec::new(), has_finished: false }
    }

    /// Whether a line is the last word of a turn, where that changes with it. A process may have several turns: after a
    /// call that was put aside comes what else it was told.
    fn last_word(&mut self, line: &[u8]) -> Option<bool> {
        #[derive(serde::Deserialize)]
        struct Kind<'a> {
            #[serde(rename = "type")]
            kind: &'a str,
            subtype: Option<&'a str>,
        }
        if !self.has_finished && memchr::memmem::find(line, b"\"result\"").is_none() {
            return None;
        }
        let Kind { kind, subtype } = serde_json::from_slice(line).ok()?;
        self.has_finished = match (kind, subtype) {
            ("result", _) => true,
            ("assistant" | "user" | "stream_event", _) | ("system", Some("init")) => false,
            _ => return None,
        };
        Some(self.has_finished)
    }
}

impl Turn<'_> {
    fn is_begun(&self) -> bool {
        transcript::find(&self.around.env, &self.session.session).is_some()
    }

    /// The end of a question as a message, with what else there is to read. The answer comes first.
    fn told(&self, reply: &Reply) -> String {
        join(&join(&reply.words, &reply.notes), self.request.instructions.trim())
    }

    /// Runs one process, with a message or with nothing but the call that was put aside.
    async fn attempt(&self, message: Option<&str>) -> Result<(Attempt, End), EngineError> {
        let mut process = Guarded::spawn(Launch {
            aop: self.around.aop.clone(),
            argv: self.argv(),
            env: self.env(message),
            cwd: self.request.cwd.clone(),
            stdin: message.map_or(Stdin::Null, |text| Stdin::Given(plain(text).into_bytes())),
            run_dir: self.request.run_dir.clone(),
            limits: self.request.limits,
        })
        .await?;
        self.host.progress(Progress::started(process.started()));
        let mut attempt = Attempt::new();
        let mut waiting = Waiting::default();
        let mut stopped = false;
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                line = process.next_line() => match line {
                    Some(line) => {
                        attempt.reader.feed(&line);
                        self.show(&line);
                        if self.goes_on_without(&line) {
                            stopped = true;
                            break;
                        }
                        if let Some(is_last) = attempt.last_word(&line) {
                            process.finished(is_last);
                        }
                    }
                    None => break,
                },
                _ = look.tick() => {
                    waiting.look(self);
                    if waiting.reply.is_some() {
                        // The engine is silent because a person thinks.
                        process.touch();
                    }
                }
                ended = waiting.ended() => {
                    let (noted, reply) = ended?;
                    let word = if reply.is_some() { Word::Deliver } else { Word::PutAside };
                    noted.release(&self.request.run_dir, word).map_err(|error| EngineError::System {
                        what: format!("telling the hook in {}", self.request.run_dir.display()),
                        cause: error.to_string(),
                    })?;
                    if word == Word::Deliver {
                        attempt.settled.push(noted.question_id);
                    }
                }
            }
        }
        let end = if stopped { process.kill().await } else { process.wait().await };
        Ok((attempt, end))
    }

    /// Whether a line is the end of a call whose question was put aside. The engine ends by itself behind such a call unless
    /// somebody else has refused it, a hook of the user's own: then the agent would go on while its feature waits.
    fn goes_on_without(&self, line: &[u8]) -> bool {
        let names = |word: &str| memchr::memmem::find(line, word.as_bytes()).is_some();
        if !names("\"tool_result\"") || !names("\"user\"") {
            return false;
        }
        let aside = Noted::all(&self.request.run_dir).into_iter().filter(|noted| noted.waits == Waits::No);
        aside.into_iter().any(|noted| transcript::ends_call(line, &noted.call_id))
    }

    fn argv(&self) -> Vec<OsString> {
        let id = &self.session.session;
        let conversation =
            if self.is_begun() { Conversation::Resume(id) } else { Conversation::Start(Some(id)) };
        let line = command_line(&self.request.command(Engine::ClaudeCode, conversation, None));
        let mut argv: Vec<OsString> = line.argv.into_iter().map(Into::into).collect();
        argv[0] = self.program.clone().into();
        // The hook learns from the parts when a message is complete.
        argv.extend(["--include-partial-messages", "--settings"].map(Into::into));
        argv.push(self.settings.clone().into());
        // The engine goes by those of the first turn until it compacts the conversation: what a later turn is told
        // otherwise stands in its message, or beside the answer.
        let instructions = self.request.instructions.trim_end();
        if !instructions.is_empty() {
            argv.extend(["--append-system-prompt".into(), instructions.into()]);
        }
        argv
    }

    fn env(&self, message: Option<&str>) -> BTreeMap<OsString, OsString> {
        let mut env = self.around.for_turn(&self.request);
        env.retain(|name, _| !NESTED.iter().any(|nested| name == nested));
        // The engine refuses to work without prompts as root unless it is told that nothing can be harmed; whoever
        // runs it as root has decided that, in a container mostly.
        if rustix::process::getuid().is_root() {
            env.insert("IS_SANDBOX".into(), "1".into());
        }
        // A question ends the turn, and what has yet to follow would be lost: none is taken over MCP either.
        if message.is_none() && follows(&self.request).is_some() {
            let SessionRef { session, cwd, version, .. } = &self.session;
            let engine = json!({"engine": Engine::ClaudeCode.as_str(), "session": session, "cwd": cwd,
                "version": version, "not_yet": READ_FIRST});
            env.insert("AOP_ENGINE".into(), engine.to_string().into());
        }
        env
    }

    /// Shows what the main agent says and does.
    fn show(&self, line: &[u8]) {
        let names = |word: &str| memchr::memmem::find(line, word.as_bytes()).is_some();
        if !names("\"assistant\"") || names("\"stream_event\"") {
            return;
        }
        let Ok(line) = serde_json::from_slice::<Value>(line) else { return };
        if line["type"] != "assistant" || !line["parent_tool_use_id"].is_null() {
            return;
        }
        for block in line["message"]["content"].as_array().into_iter().flatten() {
            let text = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
            match block["type"].as_str() {
                Some("text") => self.host.progress(Progress::Said(text("text"))),
                Some("tool_use") => self.host.progress(Progress::Uses(text("name"))),
                _ => {}
            }
        }
    }

    fn report(self, attempt: Attempt, end: &End) -> TurnReport {
        let asked = self.asked(&attempt);
        let mut turn = attempt.reader.finish();
        end.explain(&mut turn);
        let delivered = match &self.request.input {
            Input::Reply(reply) => self.holds(reply),
            Input::Message(_) | Input::Continue(_) => false,
        };
        let process = match end.cause {
            // A process that went by itself after a question was put aside has not failed, whatever it says; nor has one
            // that would not go.
            Cause::Exited | Cause::Killed if !asked.is_empty() => aop_turn::Process::default(),
            _ => end.process(),
        };
        let transcript = self.request.run_dir.join("transcript.jsonl");
        TurnReport { turn, process, session: Some(self.session), asked, transcript, delivered }
    }

    /// The questions that were recorded and wait.
    fn asked(&self, attempt: &Attempt) -> Vec<String> {
        let noted = Noted::all(&self.request.run_dir).into_iter().map(|noted| noted.question_id);
        let mut asked: Vec<String> = noted.filter(|id| !attempt.settled.contains(id)).collect();
        asked.dedup();
        asked
    }

    fn holds(&self, reply: &Reply) -> bool {
        transcript::find(&self.around.env, &self.session.session).is_some_and(|path| {
            transcript::holds(&path, &reply.question_id, reply.call_id.as_deref()) == Some(true)
        })
    }

    /// Whether the call that asked has an end without the answer, which the session has not heard otherwise either.
    fn is_lost(&self, reply: &Reply) -> bool {
        let is_permission = reply.question["question_type"] == "permission_override";
        let call = reply.call_id.as_deref().filter(|_| !is_permission);
        let path = transcript::find(&self.around.env, &self.session.session);
        let is_unheard = |(path, call): (PathBuf, &str)| transcript::is_unheard(&path, call);
        path.zip(call).is_some_and(is_unheard) && !self.holds(reply)
    }
}

/// The host, waiting for the end of a question.
type HostWaits = tokio::task::JoinHandle<Result<Option<Reply>, HostError>>;

/// A hook that waits for the end of its question, and the host that waits in its place.
#[derive(Default)]
struct Waiting {
    seen: usize,
    queue: Vec<Noted>,
    reply: Option<(Noted, HostWaits)>,
}

impl Waiting {
    /// Reads what hooks have noted since.
    fn look(&mut self, turn: &Turn<'_>) {
        let all = Noted::all(&turn.request.run_dir);
        let fresh = self.seen..all.len();
        self.seen = all.len();
        self.queue.extend(all[fresh].iter().filter(|noted| noted.waits != Waits::No).cloned());
        if self.reply.is_none() && !self.queue.is_empty() {
            let noted = self.queue.remove(0);
            let patience = if noted.waits == Waits::Warm { turn.request.warm } else { TO_THE_END };
            let (host, id) = (Arc::clone(&turn.host), noted.question_id.clone());
            let wait = tokio::spawn(async move { host.await_reply(id, patience).await });
            self.reply = Some((noted, wait));
        }
    }

    /// The end of the question that is waited for. Never, while none is. Can be dropped and called again.
    async fn ended(&mut self) -> Result<(Noted, Option<Reply>), EngineError> {
        let Some((_, wait)) = &mut self.reply else { return std::future::pending().await };
        let result = wait.await;
        let reply = match result {
            Ok(reply) => reply?,
            Err(_) => None,
        };
        match self.reply.take() {
            Some((noted, _)) => Ok((noted, reply)),
            None => std::future::pending().await,
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some((_, wait)) = &self.reply {
            wait.abort();
        }
    }
}
