//! Asks of the agent's and requests for permission, from the server's request to its reply or to parking.

use super::card::{Card, arguments, asked_calls};
use super::permission::{self, Permission};
use super::turn::{Flow, Turn, conversation, refusal};
use crate::port::{Asked, EngineError, Reply};
use aop_turn::command::Permissions;
use aop_turn::native::{NativeAsk, Stage};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How `aop mcp` is called in the settings that the documentation gives.
const OUR_SERVER: &str = "aop";

/// A message is taken for whole when so long nothing more of it was written down …
const MESSAGE_SETTLES: Duration = Duration::from_millis(25);
/// … and in any case after this: a model that writes that slowly is cut off, and asks the rest again.
const MESSAGE_AT_MOST: Duration = Duration::from_millis(250);

/// What came of waiting for a person.
enum Waited {
    Reply(Box<Reply>),
    Nobody,
    Gone,
}

impl Turn<'_> {
    /// The server asks for something and waits.
    pub(super) async fn requested(
        &mut self,
        id: &Value,
        method: &str,
        params: &Value,
    ) -> Result<Flow, EngineError> {
        self.tell_session().await?;
        if method == "item/tool/requestUserInput" {
            return self.asked_for_input(id, params).await;
        }
        let item = params["itemId"].as_str().unwrap_or_default();
        match Permission::read(method, params, self.changes.get(item)) {
            Some(permission) => self.asked_for_permission(id, &call_of(id, params), &permission).await,
            None if method == "mcpServer/elicitation/request" => self.asked_by_server(id, params).await,
            None => {
                self.app.refuse(id, "aop does not do this");
                Ok(Flow::GoOn)
            }
        }
    }

    /// The agent asks and waits.
    async fn asked_for_input(&mut self, id: &Value, params: &Value) -> Result<Flow, EngineError> {
        let card = Card { call_id: call_of(id, params), input: params.clone(), waits: true };
        if let Some(words) = refusal(self.request) {
            return Ok(self.answer(id, &card.words(words)));
        }
        if let Some(reply) = self.settled.remove(&card.call_id) {
            return Ok(self.answer_live(id, &card, &reply));
        }
        let mut cards = vec![card.clone()];
        cards.extend(self.asks_behind(&card).await);
        let attempt = self.request.attempt;
        let arguments = arguments(&cards, attempt).or_else(|_| arguments(&cards[..1], attempt));
        let arguments = match arguments {
            Ok(arguments) => arguments,
            Err(reason) => return Ok(self.answer(id, &card.words(&reason))),
        };
        let question = match self.host.ask(arguments, card.call_id.clone()).await? {
            Asked::Recorded { question_id } => question_id,
            Asked::Settled(reply) => return Ok(self.answer_live(id, &card, &reply)),
            Asked::Refused(words) => return Ok(self.answer(id, &card.words(&words))),
        };
        let warm = self.request.warm;
        let waited = if warm.is_zero() { Waited::Nobody } else { self.await_person(&question, warm).await? };
        match waited {
            Waited::Reply(reply) => Ok(self.answer_live(id, &card, &reply)),
            Waited::Nobody => {
                self.asked.push(question);
                Ok(Flow::Park)
            }
            Waited::Gone => {
                self.asked.push(question);
                Ok(Flow::Gone)
            }
        }
    }

    /// Asks of the same message that Codex has not come to yet: it does one after the other, and once the process is
    /// gone it would never come to them. It begins with the first while the others are still being written down.
    async fn asks_behind(&self, card: &Card) -> Vec<Card> {
        let until = Instant::now() + MESSAGE_AT_MOST;
        let mut seen = None;
        let rollout = loop {
            let rollout = conversation(&self.home, &self.session.session).await;
            let calls = rollout.as_ref().map(|rollout| rollout.unanswered().count());
            if seen == Some(calls) || Instant::now() >= until {
                break rollout;
            }
            seen = Some(calls);
            tokio::time::sleep(MESSAGE_SETTLES).await;
        };
        let Some(rollout) = rollout else { return Vec::new() };
        let behind = rollout.unanswered().filter(|call| call.asks() && call.call_id != card.call_id);
        let card = |call: &super::rollout::Call| Card {
            call_id: call.call_id.clone(),
            input: call.arguments.clone(),
            waits: true,
        };
        behind.map(card).collect()
    }

    fn answer(&mut self, id: &Value, result: &Value) -> Flow {
        self.app.reply(id, result);
        Flow::GoOn
    }

    /// Gives a call its answer while it waits. Asks behind it that share the form get theirs when they come up.
    fn answer_live(&mut self, id: &Value, card: &Card, reply: &Reply) -> Flow {
        let mut result = card.words(&reply.words);
        for call in asked_calls(reply) {
            self.answered.push((reply.question_id.clone(), call.call_id.clone()));
            if call.call_id != card.call_id {
                self.settled.insert(call.call_id, reply.clone());
                continue;
            }
            match call.returns(reply) {
                // The server takes answers only; words stand under the questions.
                Value::String(words) => result = card.words(&words),
                returned => result = returned,
            }
        }
        self.answer(id, &result)
    }

    /// The agent asks and would not wait. It waits all the same: a feature with an open question is not worked on, and
    /// one that went on could be done without the answer. The answer is a message, as the engine has promised.
    pub(super) async fn asked_without_waiting(&mut self, item: &Value) -> Result<Flow, EngineError> {
        let card = Card {
            call_id: item["id"].as_str().unwrap_or_default().to_owned(),
            input: json!({"questions": item["questions"]}),
            waits: false,
        };
        if let Some(words) = refusal(self.request) {
            return Ok(self.tell(words.to_owned()).await);
        }
        self.tell_session().await?;
        let arguments = match arguments(std::slice::from_ref(&card), self.request.attempt) {
            Ok(arguments) => arguments,
            Err(reason) => return Ok(self.tell(reason).await),
        };
        match self.host.ask(arguments, card.call_id.clone()).await? {
            Asked::Recorded { question_id } => {
                self.asked.push(question_id);
                Ok(Flow::Park)
            }
            Asked::Settled(reply) => {
                self.answered.push((reply.question_id.clone(), card.call_id));
                Ok(self.tell(super::opening::told(&reply)).await)
            }
            Asked::Refused(words) => Ok(self.tell(words).await),
        }
    }

    /// The engine wants to do something that needs a permission. The process stays: an approval cannot be given to the
    /// next one.
    async fn asked_for_permission(
        &mut self,
        id: &Value,
        call_id: &str,
        permission: &Permission,
    ) -> Result<Flow, EngineError> {
        let was_granted = self.granted.take_if(|granted| permission.is(granted)).is_some();
        if was_granted || self.request.permissions == Permissions::Auto {
            return Ok(self.answer(id, &permission.decision(true)));
        }
        if let Some(words) = refusal(self.request) {
            return Ok(self
                .deny(id, permission, Some(format!("{words} The permission is not given.")))
                .await);
        }
        let body = permission.body();
        let ask = NativeAsk { call_id: call_id.to_owned(), message: None, stage: Stage::Waiting, body };
        let arguments = match crate::ask::arguments(&[&ask], self.request.attempt) {
            Ok(arguments) => arguments,
            Err(reason) => return Ok(self.deny(id, permission, Some(reason)).await),
        };
        let reply = match self.keep_asking(arguments, call_id).await? {
            Ok(reply) => reply,
            Err(Kept::Refused(words)) => return Ok(self.deny(id, permission, Some(words)).await),
            Err(Kept::Ends(flow)) => return Ok(flow),
        };
        self.answered.push((reply.question_id.clone(), call_id.to_owned()));
        if permission::allows(&reply) {
            return Ok(self.answer(id, &permission.decision(true)));
        }
        let remark = permission::remark(&reply);
        Ok(self.deny(id, permission, remark).await)
    }

    /// Says no. What the model is told beside it comes first, so that it reads both at once.
    async fn deny(&mut self, id: &Value, permission: &Permission, remark: Option<String>) -> Flow {
        if let Some(remark) = remark
            && self.tell(remark).await == Flow::Gone
        {
            return Flow::Gone;
        }
        self.answer(id, &permission.decision(false))
    }

    /// An MCP server asks the person something through the engine.
    async fn asked_by_server(&mut self, id: &Value, params: &Value) -> Result<Flow, EngineError> {
        let decline = json!({"action": "decline"});
        // Our own server has recorded what it asks and only shows it here as well: that would make two of it.
        let is_ours = params["serverName"] == OUR_SERVER;
        if is_ours || refusal(self.request).is_some() {
            return Ok(self.answer(id, &decline));
        }
        let server = params["serverName"].as_str().unwrap_or("an MCP server");
        let message = params["message"].as_str().unwrap_or_default();
        let (prompt, expected) = match params["url"].as_str() {
            Some(url) => (
                format!("{server}: {message}\n\n{url}"),
                json!({"kind": "single_choice", "choices": ["done", "decline"]}),
            ),
            None => {
                (format!("{server}: {message}"), json!({"kind": "json", "schema": params["requestedSchema"]}))
            }
        };
        let arguments = json!({"question_type": "clarification", "prompt": prompt, "expected_answer": expected,
            "details": {"server": server, "requested": params["requestedSchema"]}, "default_decision_policy": "decline"});
        let call_id = call_of(id, params);
        let reply = match self.keep_asking(arguments, &call_id).await? {
            Ok(reply) => reply,
            Err(Kept::Refused(_)) => return Ok(self.answer(id, &decline)),
            Err(Kept::Ends(flow)) => return Ok(flow),
        };
        self.answered.push((reply.question_id.clone(), call_id));
        let result = match &reply.answer {
            content @ Value::Object(_) => json!({"action": "accept", "content": content}),
            Value::String(text) if text == "done" => json!({"action": "accept", "content": {}}),
            _ => decline,
        };
        Ok(self.answer(id, &result))
    }

    /// Records a question and keeps the process until it has an end.
    async fn keep_asking(
        &mut self,
        arguments: Value,
        call_id: &str,
    ) -> Result<Result<Reply, Kept>, EngineError> {
        let question = match self.host.ask(arguments, call_id.to_owned()).await? {
            Asked::Recorded { question_id } => question_id,
            Asked::Settled(reply) => return Ok(Ok(*reply)),
            Asked::Refused(words) => return Ok(Err(Kept::Refused(words))),
        };
        // Longer than a whole turn may take, a process is not worth keeping: the answer is then told in words.
        let patience = self.request.limits.hard.max(self.request.warm);
        let flow = match self.await_person(&question, patience).await? {
            Waited::Reply(reply) => return Ok(Ok(*reply)),
            Waited::Nobody => Flow::Park,
            Waited::Gone => Flow::Gone,
        };
        self.asked.push(question);
        Ok(Err(Kept::Ends(flow)))
    }

    /// Waits for the end of a question, and notices when the process goes meanwhile.
    async fn await_person(&mut self, question: &str, patience: Duration) -> Result<Waited, EngineError> {
        let host = Arc::clone(&self.host);
        let began = Instant::now();
        let mut reply = host.await_reply(question.to_owned(), patience);
        loop {
            tokio::select! {
                biased;
                reply = &mut reply => {
                    self.app.waited_since(began);
                    return Ok(reply?.map_or(Waited::Nobody, |reply| Waited::Reply(Box::new(reply))));
                }
                goes_on = self.app.pump_patiently() => if !goes_on {
                    return Ok(Waited::Gone);
                },
            }
        }
    }
}

/// Why a question that the process was kept for has no end.
enum Kept {
    /// It was not recorded, for this reason.
    Refused(String),
    /// The turn ends first.
    Ends(Flow),
}

/// The call that a request of the server's is about. Requests are numbered from 0 in every process, so a number alone
/// would name another one tomorrow.
fn call_of(id: &Value, params: &Value) -> String {
    match params["itemId"].as_str() {
        Some(item) => item.to_owned(),
        None => format!("{}:{id}", params["turnId"].as_str().unwrap_or_default()),
    }
}
