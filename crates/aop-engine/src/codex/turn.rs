//! One turn by way of `codex app-server`: from the opening to final words, a recorded question, or a failure.

use super::app::{App, CallError, Left};
use super::opening::{Delivery, Opening};
use super::rollout::{self, Rollout};
use super::unusable;
use super::wire::Message;
use crate::port::{EngineError, Host, Progress, Reply, SessionRef, TurnReport, TurnRequest};
use crate::words::{NO_MORE, NOBODY};
use aop_turn::Mode;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A turn that runs.
pub(super) struct Turn<'a> {
    pub(super) request: &'a TurnRequest,
    pub(super) host: Arc<dyn Host>,
    pub(super) app: App,
    pub(super) home: PathBuf,
    pub(super) session: SessionRef,
    session_is_known: bool,
    /// The engine's id of the turn that runs.
    turn: Option<String>,
    delivery: Delivery,
    delivered: bool,
    /// Questions that were recorded and wait.
    pub(super) asked: Vec<String>,
    /// Ends of questions that calls of this turn are still to get: an ask that stood behind another one.
    pub(super) settled: HashMap<String, Reply>,
    /// What was answered while the process ran, by question and call: whether it arrived shows in the conversation.
    pub(super) answered: Vec<(String, String)>,
    /// What the model has to be told and could not be told within the turn.
    after: Vec<String>,
    /// A permission that was given before and can be used once.
    pub(super) granted: Option<Value>,
    /// Changes of files that are under way, by the item that announced them.
    pub(super) changes: HashMap<String, Value>,
}

/// What follows from something the server said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// The turn goes on.
    GoOn,
    /// A question waits: the process goes.
    Park,
    /// The turn is finished.
    Finish,
    /// The process is gone.
    Gone,
}

/// What a thread holds, read where waiting is allowed.
pub(super) async fn conversation(home: &Path, thread: &str) -> Option<Rollout> {
    let (home, thread) = (home.to_owned(), thread.to_owned());
    tokio::task::spawn_blocking(move || rollout::read(&home, &thread)).await.ok().flatten()
}

/// What an ask is told without anybody seeing it.
pub(super) fn refusal(request: &TurnRequest) -> Option<&'static str> {
    match request.mode {
        Mode::Auto => Some(NOBODY),
        Mode::Interactive if !request.may_ask => Some(NO_MORE),
        Mode::Interactive => None,
    }
}

/// The server does not do what it is asked for.
pub(super) fn refused(method: &str, words: &str) -> EngineError {
    unusable(&format!("{method}: {words}"), "`codex doctor` checks its settings")
}

impl<'a> Turn<'a> {
    /// A turn in a process that runs, before anything was said. These questions wait already.
    pub(super) fn new(
        request: &'a TurnRequest,
        host: Arc<dyn Host>,
        app: App,
        home: &Path,
        session: SessionRef,
        opening: &mut Opening,
        asked: Vec<String>,
    ) -> Self {
        Turn {
            request,
            host,
            app,
            home: home.to_owned(),
            session,
            session_is_known: false,
            turn: None,
            delivery: opening.delivery,
            delivered: opening.delivery == Delivery::Held,
            asked,
            settled: HashMap::new(),
            answered: Vec::new(),
            after: Vec::new(),
            granted: opening.granted.take(),
            changes: HashMap::new(),
        }
    }

    pub(super) async fn play(&mut self, opening: &Opening, is_on_disk: bool) -> Result<Flow, EngineError> {
        if is_on_disk {
            self.tell_session().await?;
        }
        if !opening.items.is_empty() {
            let items = json!({"threadId": self.session.session, "items": opening.items});
            match self.app.call("thread/inject_items", &items).await {
                Ok(_) => self.delivered |= self.delivery == Delivery::Item,
                Err(CallError::Gone) => return Ok(Flow::Gone),
                Err(CallError::Refused(words)) => return Err(refused("thread/inject_items", &words)),
            }
        }
        if !self.asked.is_empty() {
            return Ok(Flow::Park);
        }
        match self.begin(opening.message.as_deref()).await {
            Ok(()) => self.listen().await,
            Err(CallError::Gone) => Ok(Flow::Gone),
            Err(CallError::Refused(words)) => Err(refused("turn/start", &words)),
        }
    }

    /// Begins a turn of the engine's: with a message, or with nothing but what the conversation holds.
    async fn begin(&mut self, message: Option<&str>) -> Result<(), CallError> {
        let input: Vec<Value> =
            message.map(|text| json!({"type": "text", "text": text})).into_iter().collect();
        let mut parameters = json!({"threadId": self.session.session, "input": input});
        let schema = self.request.output_schema.as_ref();
        if let Some(form) = schema.and_then(|schema| aop_turn::flat::flatten(schema).ok()) {
            parameters["outputSchema"] = form;
        }
        let begun = self.app.call("turn/start", &parameters).await?;
        self.turn = begun.pointer("/turn/id").and_then(Value::as_str).map(str::to_owned);
        Ok(())
    }

    async fn listen(&mut self) -> Result<Flow, EngineError> {
        loop {
            let flow = match self.app.next().await {
                Some(Message::Request { id, method, params }) => {
                    self.requested(&id, &method, &params).await?
                }
                Some(Message::Notice { method, params }) => self.noticed(&method, &params).await?,
                Some(Message::Reply { .. } | Message::Noise) => Flow::GoOn,
                None => Flow::Gone,
            };
            match flow {
                Flow::GoOn => {}
                Flow::Finish => match self.finished().await? {
                    Flow::GoOn => {}
                    flow => return Ok(flow),
                },
                Flow::Park | Flow::Gone => return Ok(flow),
            }
        }
    }

    async fn noticed(&mut self, method: &str, params: &Value) -> Result<Flow, EngineError> {
        if params["threadId"] != self.session.session.as_str() {
            return Ok(Flow::GoOn);
        }
        let item = &params["item"];
        let kind = item["type"].as_str().unwrap_or_default();
        match (method, kind) {
            ("turn/started", _) => self.turn = params["turn"]["id"].as_str().map(str::to_owned),
            ("turn/completed", _) if self.is_current(&params["turn"]) => return Ok(Flow::Finish),
            // What was said to the model is on disk when it is reported as done.
            ("item/completed", "userMessage") => {
                self.tell_session().await?;
                self.delivered |= self.delivery == Delivery::Message;
            }
            ("item/completed", "agentMessage") => {
                let text = item["text"].as_str().unwrap_or_default();
                self.host.progress(Progress::Said(text.to_owned()));
                if item["delivery"] == "async" && item["questions"].is_array() {
                    return self.asked_without_waiting(item).await;
                }
            }
            ("item/started", "commandExecution") => {
                self.uses(item["command"].as_str().unwrap_or("a command"))
            }
            ("item/started", "fileChange") => {
                self.changes
                    .insert(item["id"].as_str().unwrap_or_default().to_owned(), item["changes"].clone());
                self.uses("file change");
            }
            ("item/started", "mcpToolCall") => {
                let part = |key: &str| item[key].as_str().unwrap_or_default();
                self.uses(&format!("{}: {}", part("server"), part("tool")));
            }
            ("item/completed", "fileChange") => {
                self.changes.remove(item["id"].as_str().unwrap_or_default());
            }
            _ => {}
        }
        Ok(Flow::GoOn)
    }

    /// Whether a turn of the engine's is the one that was begun last.
    fn is_current(&self, turn: &Value) -> bool {
        match (&self.turn, turn["id"].as_str()) {
            (Some(current), Some(id)) => current == id,
            _ => true,
        }
    }

    fn uses(&self, what: &str) {
        self.host.progress(Progress::Uses(what.to_owned()));
    }

    /// The conversation is on disk, so its handle is worth keeping.
    pub(super) async fn tell_session(&mut self) -> Result<(), EngineError> {
        if !self.session_is_known {
            self.host.session(self.session.clone()).await?;
            self.session_is_known = true;
        }
        Ok(())
    }

    /// The engine's turn is over. What could not be told within it makes another one.
    async fn finished(&mut self) -> Result<Flow, EngineError> {
        self.tell_session().await?;
        self.turn = None;
        if self.after.is_empty() {
            return Ok(Flow::Finish);
        }
        let words = self.after.drain(..).collect::<Vec<_>>().join("\n\n");
        match self.begin(Some(&words)).await {
            Ok(()) => Ok(Flow::GoOn),
            Err(CallError::Gone) => Ok(Flow::Gone),
            Err(CallError::Refused(words)) => Err(refused("turn/start", &words)),
        }
    }

    /// Tells the model something while it works; when it has just finished, in a turn of its own.
    pub(super) async fn tell(&mut self, words: String) -> Flow {
        let Some(turn) = &self.turn else {
            self.after.push(words);
            return Flow::GoOn;
        };
        let parameters = json!({"threadId": self.session.session, "expectedTurnId": turn,
            "input": [{"type": "text", "text": words}]});
        match self.app.call("turn/steer", &parameters).await {
            Ok(_) => Flow::GoOn,
            Err(CallError::Refused(_)) => {
                self.after.push(words);
                Flow::GoOn
            }
            Err(CallError::Gone) => Flow::Gone,
        }
    }

    pub(super) async fn report(mut self, flow: Flow) -> TurnReport {
        let left: Left = match flow {
            Flow::Park | Flow::Finish | Flow::GoOn => self.app.kill().await,
            Flow::Gone => {
                let left = self.app.left_behind().await;
                let rollout = conversation(&self.home, &self.session.session).await.unwrap_or_default();
                for (question, call) in self.answered {
                    // An answer that did not arrive any more is still owed.
                    if !rollout.holds_reply(&question, Some(&call)) && !self.asked.contains(&question) {
                        self.asked.push(question);
                    }
                }
                left
            }
        };
        TurnReport {
            turn: left.turn,
            process: left.process,
            session: self.session_is_known.then_some(self.session),
            asked: self.asked,
            transcript: left.transcript,
            delivered: self.delivered,
        }
    }
}
