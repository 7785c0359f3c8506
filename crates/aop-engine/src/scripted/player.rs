//! The scripted engine's process: plays its scenario from where its conversation stands, and speaks JSON lines. All
//! that it says to people begins with its label.

use super::scenario::{Scenario, Step, WriteFile};
use super::session::{Conversation, Held, Waiting};
use rustix::process::{Signal, getpid, kill_process};
use serde_json::{Map, Value, json};
use std::io::{self, BufRead, Write};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// What stands before everything that a person might take for an agent's words.
const LABEL: &str = "[scripted]";

/// What the process is told by its environment and command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlayArgs {
    /// The project.
    pub project: PathBuf,
    /// The feature, which names the scenario.
    pub feature_id: String,
    /// The role, which names the steps.
    pub role: String,
    /// The claim, for the list of deliveries.
    pub claim: String,
    /// The conversation; begun when it is not there.
    pub session: String,
}

/// Plays one turn on standard input and output. Returns the exit code.
pub fn play(args: &PlayArgs) -> io::Result<u8> {
    let scenario = super::scenario::load(&args.project, &args.feature_id)
        .map_err(|(cause, hint)| io::Error::other(format!("{cause}; {hint}")))?;
    let conversation = Conversation::load(&args.project, &args.session)?;
    let conversation = conversation.unwrap_or_else(|| Conversation::new(&args.session));
    let mut player = Player { args, scenario, conversation };
    player.conversation.save(&args.project)?;
    player.conversation.list_missing(&args.project)?;
    emit(&json!({"type": "started", "engine": "scripted", "session": args.session}))?;
    player.turn()
}

struct Player<'a> {
    args: &'a PlayArgs,
    scenario: Scenario,
    conversation: Conversation,
}

/// Whether the turn goes on after a step.
enum After {
    Next,
    End(u8),
}

impl Player<'_> {
    fn turn(&mut self) -> io::Result<u8> {
        let Some(input) = read_line()? else { return Ok(0) };
        let begins_anew = self.input(&input)?;
        if !begins_anew && let Some(text) = self.conversation.ended_with.clone() {
            return self.end(&text);
        }
        self.conversation.ended_with = None;
        loop {
            let step = self.steps().get(self.conversation.next).cloned();
            let step = step.unwrap_or_else(|| nothing_left(&self.args.role));
            if let After::End(code) = self.step(step)? {
                return Ok(code);
            }
        }
    }

    fn steps(&self) -> &[Step] {
        self.scenario.roles.get(&self.args.role).map_or(&[], Vec::as_slice)
    }

    /// Takes what the turn begins with. Whether that is something new: a turn that only goes on repeats its end.
    fn input(&mut self, input: &Value) -> io::Result<bool> {
        match input["type"].as_str() {
            Some("reply") => self.take(input)?,
            Some("message") => {
                if self.conversation.waiting == Some(Waiting::Message) {
                    self.conversation.waiting = None;
                }
                self.conversation.heard.push(input["text"].as_str().unwrap_or_default().to_owned());
                self.conversation.save(&self.args.project)?;
            }
            Some("continue") => {
                // What stands there beside what the conversation has: a note may have come since.
                let text = input["text"].as_str().unwrap_or_default();
                if !self.conversation.heard.last().is_some_and(|last| text.contains(last)) {
                    self.conversation.heard.push(text.to_owned());
                    self.conversation.save(&self.args.project)?;
                }
                return Ok(false);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Takes a reply: into the conversation first, then into the list. One that is there already is listed again, so
    /// that a second delivery shows.
    fn take(&mut self, reply: &Value) -> io::Result<()> {
        let text = |key: &str| reply[key].as_str().unwrap_or_default().to_owned();
        let held = Held {
            question_id: text("question_id"),
            call_id: reply["call_id"].as_str().map(str::to_owned),
            answer: reply["answer"].clone(),
            claim: self.args.claim.clone(),
            words: text("words"),
        };
        if !self.conversation.holds(&held.question_id) {
            if matches!(self.conversation.waiting.take(), Some(Waiting::Call(_))) {
                self.conversation.next += 1;
            }
            self.conversation.ended_with = None;
            self.conversation.replies.push(held.clone());
            self.conversation.heard.extend(Some(text("notes")).filter(|notes| !notes.is_empty()));
            self.conversation.save(&self.args.project)?;
        }
        self.conversation.list(&self.args.project, &held)?;
        emit(&json!({"type": "settled", "call_id": held.call_id, "question_id": held.question_id}))
    }

    fn step(&mut self, step: Step) -> io::Result<After> {
        match step {
            Step::Say(text) => {
                emit(&json!({"type": "said", "text": format!("{LABEL} {}", self.filled(&text))}))?
            }
            Step::Ask(ask) => return self.ask(ask),
            Step::AskProse(text) => {
                self.conversation.next += 1;
                self.conversation.waiting = Some(Waiting::Message);
                let text = format!("{LABEL} {}", self.filled(&text));
                return self.end(&text).map(After::End);
            }
            Step::WaitMs(time) => std::thread::sleep(Duration::from_millis(time)),
            Step::Write(file) => self.write(&file)?,
            Step::Finish(result) => {
                self.conversation.next += 1;
                let mut result = self.filled_value(Value::Object(result));
                result["__SKILL_DONE__"] = true.into();
                return self.end(&format!("{LABEL} Done.\n{result}")).map(After::End);
            }
            Step::Fail(reason) => {
                self.advance()?;
                emit(&json!({"type": "failed", "message": format!("{LABEL} {reason}")}))?;
                return Ok(After::End(1));
            }
            Step::Crash => {
                self.advance()?;
                kill_process(getpid(), Signal::KILL)?;
                return Ok(After::End(1));
            }
            Step::Garbage(text) => {
                let mut out = io::stdout().lock();
                out.write_all(text.as_bytes())?;
                out.write_all(b"\n")?;
                out.flush()?;
            }
        }
        self.advance()?;
        Ok(After::Next)
    }

    fn ask(&mut self, mut ask: Map<String, Value>) -> io::Result<After> {
        let call_id = format!("{}:{}", self.conversation.session, self.conversation.next);
        self.conversation.waiting = Some(Waiting::Call(call_id.clone()));
        self.conversation.save(&self.args.project)?;
        label(ask.get_mut("prompt"));
        for question in ask.get_mut("questions").and_then(Value::as_array_mut).into_iter().flatten() {
            label(question.get_mut("question"));
        }
        ask.insert("type".into(), "ask".into());
        ask.insert("call_id".into(), call_id.clone().into());
        emit(&Value::Object(ask))?;
        // Whoever parks this process ends it here.
        let Some(reply) = read_line()? else { return Ok(After::End(0)) };
        if reply["type"] == "refused" {
            self.conversation.waiting = None;
            self.advance()?;
            emit(&json!({"type": "settled", "call_id": call_id}))?;
        } else {
            self.take(&reply)?;
        }
        Ok(After::Next)
    }

    fn write(&self, file: &WriteFile) -> io::Result<()> {
        let path = Path::new(&file.path);
        if !path.components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(io::Error::other(format!("'{}' is not below the worktree", file.path)));
        }
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, self.filled(&file.text))?;
        emit(&json!({"type": "wrote", "path": file.path}))
    }

    /// Ends the turn. The end is kept before it is told: a turn that goes on afterwards tells it again.
    fn end(&mut self, text: &str) -> io::Result<u8> {
        self.conversation.ended_with = Some(text.to_owned());
        self.conversation.save(&self.args.project)?;
        emit(&json!({"type": "said", "text": text}))?;
        emit(&json!({"type": "ended"}))?;
        Ok(0)
    }

    fn advance(&mut self) -> io::Result<()> {
        self.conversation.next += 1;
        self.conversation.save(&self.args.project)
    }

    /// `{answer}` stands for the last reply.
    fn filled(&self, text: &str) -> String {
        let answer = self.conversation.replies.last().map(|held| match &held.answer {
            Value::Null => held.words.clone(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        text.replace("{answer}", &answer.unwrap_or_default())
    }

    fn filled_value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => self.filled(&text).into(),
            Value::Array(items) => items.into_iter().map(|item| self.filled_value(item)).collect(),
            Value::Object(fields) => {
                fields.into_iter().map(|(key, value)| (key, self.filled_value(value))).collect()
            }
            other => other,
        }
    }
}

fn nothing_left(role: &str) -> Step {
    let mut result = Map::new();
    result.insert("summary".into(), format!("{LABEL} the scenario has nothing left for {role}").into());
    Step::Finish(result)
}

fn label(text: Option<&mut Value>) {
    if let Some(Value::String(text)) = text {
        *text = format!("{LABEL} {text}");
    }
}

fn emit(line: &Value) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes())?;
    out.flush()
}

/// The next line; nothing at the end of the input.
fn read_line() -> io::Result<Option<Value>> {
    let mut line = String::new();
    if io::stdin().lock().read_line(&mut line)? == 0 {
        return Ok(None);
    }
    serde_json::from_str(&line).map(Some).map_err(io::Error::other)
}
