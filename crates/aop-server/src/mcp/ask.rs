//! `ask_user` and `await_answer`. The question is committed before anybody waits. The same call again finds the
//! same question: by the client's own name for the call where it sends one, else by what is asked. In the second
//! case an answer that was handed over is used up: whoever asks the same once more wants to know anew, and an old
//! permission must not pass for a new one.

use super::rounds::{Reply, Told};
use super::{Handler, Origin, SURFACE, words};
use aop_kernel::ids::{OperationId, QuestionId};
use aop_kernel::question::Question;
use aop_kernel::tools::{AskUser, CallIdentity, await_answer, lone_feature, question_request};
use aop_kernel::{Envelope, ErrorCode, Refusal};
use aop_store::ClaimState;
use rmcp::RoleServer;
use rmcp::service::RequestContext;
use serde_json::{Value, json};

/// The name that Claude Code gives each of its tool calls.
const TOOL_USE_ID: &str = "claudecode/toolUseId";

/// How often the same can be asked anew in one session.
const MAX_ROUNDS: u32 = 10_000;

impl Handler {
    /// Asks, waits a while, and tells what came of it.
    pub(super) async fn ask_user(
        &self,
        input: &Value,
        reply: Reply,
        context: &RequestContext<RoleServer>,
    ) -> Result<Told, Refusal> {
        let ask = AskUser::parse(input)?;
        if let Some(words) = self.engine.as_ref().and_then(|engine| engine.refuses.as_ref()) {
            let refused = json!({"status": "declined", "text": words});
            return Ok(Told::Envelope(Envelope::success(&refused)));
        }
        let client = self.session(context);
        let question = match context.meta.get(TOOL_USE_ID).and_then(Value::as_str) {
            Some(call) => self.create(&ask, CallIdentity::Named(call), &client).await?,
            None => self.create_by_content(&ask, &client).await.map_err(|refusal| self.in_turn(refusal))?,
        };
        self.memory.secrets.asked(&question.id);
        self.settle(&question, reply, context).await
    }

    /// Goes on waiting.
    pub(super) async fn await_answer(
        &self,
        input: &Value,
        reply: Reply,
        context: &RequestContext<RoleServer>,
    ) -> Result<Told, Refusal> {
        let id = await_answer(input)?;
        let question = self.question(&id).await?;
        let sees = match &self.origin {
            Origin::Process | Origin::Token { reads: true, .. } => self.caller.owns(&question.feature_id),
            Origin::Token { reads: false, .. } => self.is_asker(&question),
        };
        if !sees {
            return Err(Refusal::new(
                ErrorCode::ForbiddenForRole,
                format!("question {id} belongs to another feature"),
            )
            .hint("wait only for questions that ask_user returned to you")
            .fact("question_id", id));
        }
        self.settle(&question, reply, context).await
    }

    /// The question of a client that does not name its calls: the first round whose end nobody was told yet.
    async fn create_by_content(&self, ask: &AskUser, client: &str) -> Result<Question, Refusal> {
        let session = match (&self.engine, &self.caller.feature, &self.origin) {
            (Some(engine), ..) => engine.claim.clone(),
            // Two clients without a feature may ask the same thing and mean different things.
            (None, None, Origin::Process) => format!("{client}-{}", parent()),
            (None, Some(_), Origin::Process) | (None, _, Origin::Token { .. }) => client.to_owned(),
        };
        for round in 0..MAX_ROUNDS {
            let identity = CallIdentity::Content { session: &session, round };
            let question = self.create(ask, identity, client).await?;
            if question.is_open() || !self.was_told(&question.id).await? {
                return Ok(question);
            }
        }
        Err(Refusal::new(ErrorCode::Internal, format!("the same was asked {MAX_ROUNDS} times"))
            .hint("ask in other words"))
    }

    /// Commits the question, or finds it again.
    async fn create(
        &self,
        ask: &AskUser,
        identity: CallIdentity<'_>,
        client: &str,
    ) -> Result<Question, Refusal> {
        let operation: OperationId = ask.operation(&self.caller, identity)?;
        let own = self.caller.feature.as_ref().map(ToString::to_string);
        let feature = own.clone().unwrap_or_else(|| lone_feature(&operation));
        let input = ask.create(&self.caller, &feature, client, &operation);
        let request = question_request(&self.caller, &input, SURFACE, &self.service.rules)?;
        let request = if own.is_some() { request } else { request.bringing_feature(ask.prompt.clone()) };
        let request = match &self.engine {
            Some(turn) => request.asked_by(turn.engine.clone()),
            None => request,
        };
        let receipt = self.service.submit(request).await?;
        let id = QuestionId::parse(receipt.envelope.data()["question_id"].as_str().unwrap_or_default())?;
        self.question(&id).await
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
        let listening = !context.ct.is_cancelled() && !*self.closed.borrow() && !*self.gone.borrow();
        if !listening {
            // Nobody will read this; the next call has to find the answer as if this one had not been.
            return Ok(Envelope::success(&words::told(question, None)));
        }
        let secret = self.reveal(question).await?;
        let envelope = Envelope::success(&words::told(question, secret));
        if !question.is_open() {
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

/// The process that started this one: the client. It outlives a server that it starts again.
#[cfg(unix)]
fn parent() -> u32 {
    std::os::unix::process::parent_id()
}

#[cfg(not(unix))]
fn parent() -> u32 {
    std::process::id()
}
