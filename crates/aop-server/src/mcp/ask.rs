//! `ask_user` and `await_answer`. The question is committed before anybody waits. The same call again finds the
//! same question: by the client's own name for the call where it sends one, else by what is asked. In the second
//! case an answer that was handed over to its asker is used up: whoever asks the same once more wants to know anew, and
//! an old permission must not pass for a new one.

use super::rounds::{Reply, Told};
use super::{Handler, Origin, SURFACE, words};
use aop_kernel::ids::QuestionId;
use aop_kernel::question::Question;
use aop_kernel::tools::{AskUser, CallIdentity, Tool, await_answer, lone_feature, own_request};
use aop_kernel::{Envelope, ErrorCode, Refusal};
use aop_store::{ClaimState, Expect, Shelf};
use rmcp::RoleServer;
use rmcp::service::RequestContext;
use serde_json::{Value, json};

/// The name that Claude Code gives each of its tool calls.
const TOOL_USE_ID: &str = "claudecode/toolUseId";

/// So many rounds are looked through each time; then it is written down where to begin.
const LOOKED_THROUGH: u32 = 8;

impl Handler {
    /// Asks, waits a while, and tells what came of it.
    pub(super) async fn ask_user(
        &self,
        input: &Value,
        reply: Reply,
        context: &RequestContext<RoleServer>,
    ) -> Result<Told, Refusal> {
        let ask = AskUser::parse(input)?;
        if let Some(why) = self.not_yet() {
            return Ok(Told::Envelope(Envelope::success(&words::declined(why))));
        }
        if let Some(why) = self.engine.as_ref().and_then(|engine| engine.refuses.as_ref()) {
            return Ok(Told::Envelope(Envelope::success(&words::refused(why, ask.grants()))));
        }
        let client = self.session(context);
        let question = match context.meta.get(TOOL_USE_ID).and_then(Value::as_str) {
            Some(call) => self.create(&ask, CallIdentity::Named(call), &client).await?,
            None => self.create_by_content(&ask, &client).await.map_err(|refusal| self.in_turn(refusal))?,
        };
        self.memory.secrets.asked(&question.id);
        self.settle(&question, reply, context).await
    }

    /// Why nobody may be asked yet: the agent has not read all that it is told.
    pub(super) fn not_yet(&self) -> Option<&str> {
        self.engine.as_ref()?.not_yet.as_deref()
    }

    /// Goes on waiting.
    pub(super) async fn await_answer(
        &self,
        input: &Value,
        reply: Reply,
        context: &RequestContext<RoleServer>,
    ) -> Result<Told, Refusal> {
        let id = await_answer(input)?;
        let question = self.asked(&id).await?;
        self.memory.secrets.asked_again(&id, &question.id);
        if !self.sees(&question, context).await? {
            return Err(Refusal::new(
                ErrorCode::ForbiddenForRole,
                format!("question {id} belongs to another feature"),
            )
            .hint("wait only for questions that ask_user returned to you")
            .fact("question_id", id));
        }
        self.settle(&question, reply, context).await
    }

    /// Whether this client may wait for it: a question of its feature, or without one, a lone question of its own.
    async fn sees(&self, question: &Question, context: &RequestContext<RoleServer>) -> Result<bool, Refusal> {
        if !self.is_lone() {
            return Ok(self.caller.owns(&question.feature_id));
        }
        if self.is_asker(question) {
            return Ok(true);
        }
        // A client whose server was started anew is known by its name alone; it has the id from the one before.
        match &self.origin {
            Origin::Process if self.speaks_for_asker(question, context) => {
                Ok(self.service.feature(&question.feature_id).await?.adhoc)
            }
            Origin::Process | Origin::Token { .. } => Ok(false),
        }
    }

    /// Whether it has the session and the role that asked: the same call from here finds that question.
    fn speaks_for_asker(&self, question: &Question, context: &RequestContext<RoleServer>) -> bool {
        let asked = &question.asked;
        asked.session_id == self.session(context) && asked.role == self.caller.role
    }

    /// The question of a client that does not name its calls: the first round whose end nobody was told yet. There is
    /// one such round, and it only moves on: a round begins when the one before it was told, and that is for ever.
    async fn create_by_content(&self, ask: &AskUser, client: &str) -> Result<Question, Refusal> {
        let session = match (&self.engine, &self.caller.feature, &self.origin) {
            (Some(engine), ..) => engine.claim.clone(),
            // Two clients without a feature may ask the same thing and mean different things.
            (None, None, Origin::Process) => format!("{client}-{}", parent()),
            (None, Some(_), Origin::Process) | (None, _, Origin::Token { .. }) => client.to_owned(),
        };
        let identity = |round| CallIdentity::Content { session: &session, round };
        let store = &self.service.store;
        let name = ask.operation(&self.caller, identity(0))?.into_operation().to_string();
        let begin = store.document(Shelf::Rounds, name.clone()).await?;
        let begin = begin.and_then(|round| u32::try_from(round.as_u64()?).ok()).unwrap_or(0);
        let mut round = begin;
        let question = loop {
            let question = self.create(ask, identity(round), client).await?;
            if question.is_open() || !self.was_told(&question.id).await? {
                break question;
            }
            round += 1;
        };
        if round - begin >= LOOKED_THROUGH {
            // Whoever writes an earlier one over it in this moment costs the next a few looks more, and nothing else.
            store.place(Shelf::Rounds, name, Some(json!(round)), Expect::Anything).await?;
        }
        Ok(question)
    }

    /// Commits the question, or finds it again.
    async fn create(
        &self,
        ask: &AskUser,
        identity: CallIdentity<'_>,
        client: &str,
    ) -> Result<Question, Refusal> {
        let id = ask.operation(&self.caller, identity)?;
        let own = self.caller.feature.as_ref().map(ToString::to_string);
        let feature = own.clone().unwrap_or_else(|| lone_feature(id.as_operation()));
        let input = ask.create(&self.caller, &feature, client);
        let (tool, rules) = (Tool::QuestionCreate, &self.service.rules);
        let request = own_request(tool, &self.caller, &input, id, SURFACE, rules)?;
        let request = if own.is_some() { request } else { request.bringing_feature(ask.prompt.clone()) };
        let request = match &self.engine {
            Some(turn) => request.asked_by(turn.engine.clone()),
            None => request,
        };
        let receipt = self.service.submit(request).await?;
        let id = QuestionId::parse(receipt.envelope.data()["question_id"].as_str().unwrap_or_default())?;
        self.asked(&id).await
    }

    /// The question, or the one by which a person asked it again. A turn is told the end of that by its run.
    async fn asked(&self, id: &QuestionId) -> Result<Question, Refusal> {
        let question = self.question(id).await?;
        if self.engine.is_some() { Ok(question) } else { self.service.last_asked(question).await }
    }

    /// A second question of a turn whose first is open has to be asked again: only one can be waited for.
    fn in_turn(&self, refusal: Refusal) -> Refusal {
        match refusal.code {
            ErrorCode::QuestionConflictOpen if self.engine.is_some() => refusal.hint(
                "this question was not recorded; ask it again when you have been told the end of the open one, or put \
                 several questions into one call with a spec",
            ),
            _ => refusal,
        }
    }

    /// Hands over what came of it.
    pub(super) async fn tell(
        &self,
        question: &Question,
        context: &RequestContext<RoleServer>,
    ) -> Result<Envelope, Refusal> {
        self.admitted().await?;
        let listening = !context.ct.is_cancelled() && !*self.closed.borrow() && !*self.gone.borrow();
        if !listening {
            // Nobody will read this; the next call has to find the answer as if this one had not been.
            return Ok(Envelope::success(&words::told(question, None)));
        }
        if self.withholds(question) {
            // Nothing was handed over: the asker has yet to be told.
            return Ok(Envelope::success(&words::withheld(question)));
        }
        let secret = self.reveal(question).await?;
        let envelope = Envelope::success(&words::told(question, secret));
        // What others of the feature are told, a client that asks by what it says has yet to be told. Whoever asked by
        // another way repeats no call, and has the end now.
        let is_told = self.speaks_for_asker(question, context)
            || (self.is_asker(question) && !is_session(&question.asked.session_id));
        if !question.is_open() && is_told {
            self.service.store.deliver(subject(&question.id), SURFACE.to_owned(), 1).await?;
        }
        Ok(envelope)
    }

    /// The asker's session, as it stands in the record: the client, and the token it came with.
    fn session(&self, context: &RequestContext<RoleServer>) -> String {
        match &self.origin {
            Origin::Process => client_name(context),
            Origin::Token { tag, .. } => format!("{}@{tag}", client_name(context)),
        }
    }

    /// Whether the end of a question was handed over before.
    async fn was_told(&self, id: &QuestionId) -> Result<bool, Refusal> {
        let claim = self.service.store.claim(subject(id), SURFACE.to_owned(), 1).await?;
        Ok(claim.state == ClaimState::Delivered)
    }
}

fn subject(id: &QuestionId) -> String {
    format!("told:{id}")
}

/// The client as it introduced itself, fit to stand in a record.
fn client_name(context: &RequestContext<RoleServer>) -> String {
    let name = context.client_info().map(|info| info.name).unwrap_or_default();
    let name: String = name.chars().filter(|sign| !sign.is_control()).take(80).collect();
    if name.trim().is_empty() { SURFACE.to_owned() } else { format!("{SURFACE}-{}", name.trim()) }
}

/// Whether a session in a record is that of a client of this protocol.
fn is_session(session: &str) -> bool {
    session.strip_prefix(SURFACE).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '@']))
}

/// The process that started this one: the client. It outlives a server that it starts again.
#[cfg(unix)]
fn parent() -> u32 {
    std::os::unix::process::parent_id()
}

#[cfg(not(unix))]
fn parent() -> u32 {
    std::process::id()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::fixture::World;
    use aop_kernel::ids::FeatureId;
    use aop_kernel::role::{Caller, Role};
    use aop_kernel::tools::QuestionFilter;
    use aop_store::QuestionPage;
    use std::collections::HashSet;
    use tokio::sync::watch;

    /// A server for the builder of `shop`, as if it had just been started.
    fn server(world: &World) -> Handler {
        let caller = Caller { role: Role::Builder, feature: Some(FeatureId::parse("shop").unwrap()) };
        Handler::new(world.door(caller), watch::channel(false).1)
    }

    fn which() -> AskUser {
        AskUser::parse(&json!({"prompt": "Which?"})).unwrap()
    }

    async fn asked(world: &World) -> QuestionId {
        server(world).create_by_content(&which(), "client").await.unwrap().id
    }

    /// Answers and hands it over.
    async fn told(world: &World, id: &QuestionId) {
        world.answer("shop", id.as_str(), json!("this")).await;
        let store = &world.service.store;
        assert!(store.deliver(subject(id), SURFACE.to_owned(), 1).await.unwrap());
    }

    /// Where the search for the next round begins.
    async fn begins(world: &World) -> Vec<Value> {
        let rounds = world.service.store.documents(Shelf::Rounds, String::new()).await.unwrap();
        rounds.into_iter().map(|(_, round)| round).collect()
    }

    #[tokio::test]
    async fn what_is_asked_again_and_again_is_a_new_question_each_time_it_was_told_and_never_before() {
        let world = World::new().await;
        world.feature("shop", "Shop").await;
        let mut seen = HashSet::new();
        for round in 0..30_u32 {
            let id = asked(&world).await;
            assert!(seen.insert(id.clone()), "round {round}");
            assert_eq!(asked(&world).await, id, "it is open");
            world.clock.advance(1);
            told(&world, &id).await;
            let begin = begins(&world).await.first().and_then(Value::as_u64).unwrap_or(0);
            let behind = u64::from(round).checked_sub(begin).expect("no round that was not told is left out");
            assert!(behind < u64::from(LOOKED_THROUGH), "it begins with {begin} in round {round}");
        }
    }

    #[tokio::test]
    async fn however_often_the_same_was_asked_the_search_begins_where_it_was_left() {
        let world = World::new().await;
        world.feature("shop", "Shop").await;
        let identity = CallIdentity::Content { session: "client", round: 0 };
        let name = which().operation(&server(&world).caller, identity).unwrap().into_operation().to_string();
        let store = &world.service.store;
        store.place(Shelf::Rounds, name, Some(json!(1_000_000)), Expect::Absent).await.unwrap();
        let id = asked(&world).await;
        told(&world, &id).await;
        assert_ne!(asked(&world).await, id);
        let all = QuestionPage { feature: None, filter: QuestionFilter::All, after: None, limit: 9 };
        assert_eq!(store.questions(all).await.unwrap().len(), 2, "no round was made on the way");
    }
}
