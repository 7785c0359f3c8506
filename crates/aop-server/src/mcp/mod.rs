//! The protocol: which tools there are, and what becomes of a call. A refusal is a tool result, so that the model
//! reads it; only what names no tool of ours is an error of the protocol.

mod ask;
mod catalog;
mod elicit;
pub(crate) mod message;
mod outcome;
mod rounds;
mod secrets;
mod wait;
mod words;

use crate::http::App;
use crate::http::auth::Signed;
use crate::http::mcp::{Gone, named_session};
use crate::tokens::{self, Bearer, lone_agent};
use crate::{Door, EngineTurn};
use aop_ask::json::{AS_TEXT, maybe_rounded};
use aop_kernel::ids::quoted;
use aop_kernel::role::{Caller, Role};
use aop_kernel::tools::{ASK_HUMAN, ASK_USER, AWAIT_ANSWER, Tool};
use aop_kernel::{Envelope, Refusal};
use aop_store::{Service, Store};
use elicit::Forms;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, ErrorData, Extensions,
    Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use rounds::{Reply, Told};
use secrets::Secrets;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// What this door calls itself in the resolution of a question.
const SURFACE: &str = "mcp";

/// Calls in somebody's name.
pub(crate) struct Handler {
    service: Service,
    caller: Caller,
    /// How long a call waits for a human.
    patience: Duration,
    /// Becomes true when the server stops, or the client of a process has gone.
    closed: watch::Receiver<bool>,
    /// Becomes true when the connection of this one call is lost.
    gone: watch::Receiver<bool>,
    origin: Origin,
    /// Whether forms may be shown at all.
    elicits: bool,
    /// Who answers when the client's form is accepted, and with the tool; `None` leaves it to the call.
    signs: Option<String>,
    /// The stored token behind it, which may be revoked or run out meanwhile.
    token: Option<String>,
    memory: Arc<Memory>,
    /// The engine that does not wait with the client.
    engine: Option<EngineTurn>,
}

/// Where calls come from: what tells one asker from another.
#[derive(Debug, Clone)]
enum Origin {
    /// A client that started this process.
    Process,
    /// A client with a token, by the token's id.
    Token { tag: String },
}

/// What is remembered between the calls of one asker: ids, never values.
#[derive(Default)]
pub(crate) struct Memory {
    secrets: Secrets,
    forms: Forms,
}

impl Memory {
    /// The asker has left in good order, or the server has: what was shown has arrived.
    pub(crate) async fn parted(&self, store: &dyn Store) {
        self.secrets.forget(self.secrets.take(), store).await;
    }
}

impl Handler {
    /// What it remembers between calls.
    pub(crate) fn memory(&self) -> Arc<Memory> {
        Arc::clone(&self.memory)
    }

    /// For the one client of a process.
    pub(crate) fn new(door: Door, closed: watch::Receiver<bool>) -> Self {
        Handler {
            service: door.service,
            caller: door.caller,
            // An engine that will be parked is told at once.
            patience: if door.engine.is_some() { Duration::ZERO } else { door.patience },
            gone: closed.clone(),
            closed,
            origin: Origin::Process,
            elicits: door.elicits,
            signs: door.signs,
            token: door.token,
            memory: Arc::default(),
            engine: door.engine,
        }
    }

    /// For one call with a token. What an agent's client accepts is not a person's word.
    pub(crate) fn for_token(
        app: &App,
        signed: &Signed,
        session: Option<String>,
        gone: watch::Receiver<bool>,
    ) -> Self {
        let tag = signed.tag().to_owned();
        let (caller, elicits) = match signed.bearer() {
            Bearer::Operator { .. } => (Caller::new(Role::Human), true),
            Bearer::Agent { role, feature, .. } => (Caller { role: *role, feature: feature.clone() }, false),
        };
        Handler {
            service: app.service.clone(),
            caller,
            patience: app.patience,
            closed: app.stopping.clone(),
            gone,
            memory: app.memories.of(Connection { tag: tag.clone(), session }),
            origin: Origin::Token { tag },
            elicits,
            signs: signed.answers_as().map(str::to_owned),
            token: signed.token_id().map(str::to_owned),
            engine: None,
        }
    }

    /// Refuses a client whose token was revoked or has run out since it came in.
    async fn admitted(&self) -> Result<(), Refusal> {
        match &self.token {
            Some(id) if !tokens::still_good(self.service.store.as_ref(), id).await? => Err(Refusal::new(
                aop_kernel::ErrorCode::Unauthenticated,
                "the token that this client came with is not valid any more: expired or revoked",
            )
            .hint("start the client with another one; `aop token list` shows which are good")),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether it is an agent without a feature: it asks, and sees what it asked.
    fn is_lone(&self) -> bool {
        self.caller.role.is_worker() && self.caller.feature.is_none()
    }

    /// A tool of the contract: the same call as `aop tool call` makes.
    async fn contract(&self, tool: Tool, mut input: Value) -> Result<Envelope, Refusal> {
        if self.is_lone() {
            return Err(match self.origin {
                Origin::Token { .. } => lone_agent(self.caller.role),
                Origin::Process => lone_client(self.caller.role),
            });
        }
        if let Some(why) = self.not_yet().filter(|_| tool == Tool::QuestionCreate) {
            return Err(Refusal::new(aop_kernel::ErrorCode::UnsupportedOperation, why)
                .hint("ask once you have read your next message"));
        }
        if let Some(name) = self.signs.as_deref().filter(|_| tool == Tool::QuestionAnswer) {
            tokens::sign(&self.service, &self.caller, &mut input, name, SURFACE)?;
        }
        self.service.call(tool, &self.caller, &input, SURFACE).await
    }

    async fn call(
        &self,
        mut request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let reply = Reply::take(&mut request);
        let input = Value::Object(request.arguments.unwrap_or_default());
        // What a call is answered has not arrived yet when the next of its batch is made.
        let received = if message::is_batched(&context.extensions) {
            HashSet::new()
        } else {
            self.memory.secrets.take()
        };
        let admitted = self.admitted().await;
        let outcome = match &*request.name {
            _ if let Err(refusal) = admitted => Err(refusal),
            _ if let Some(refusal) = rounded(&input) => Err(refusal),
            ASK_USER | ASK_HUMAN => self.ask_user(&input, reply, context).await,
            AWAIT_ANSWER => self.await_answer(&input, reply, context).await,
            name => match Tool::find(name) {
                Ok(tool) => self.contract(tool, input).await.map(Told::Envelope),
                Err(refusal) => Err(refusal),
            },
        };
        self.memory.secrets.forget(received, self.service.store.as_ref()).await;
        match outcome {
            Ok(Told::Form(form)) => form.into(),
            Ok(Told::Envelope(envelope)) => outcome::result(Ok(envelope)).into(),
            Err(refusal) => outcome::result(Err(refusal)).into(),
        }
    }
}

/// The protocol library has read the arguments: a large number may have been a whole one, and is then another now.
fn rounded(input: &Value) -> Option<Refusal> {
    let number = maybe_rounded(input)?;
    let message = format!("the number {number} in the arguments may not be kept exactly");
    Some(Refusal::invalid_argument(message).hint(AS_TEXT))
}

/// What a client that was started without a feature is told when it does anything but ask.
fn lone_client(role: Role) -> Refusal {
    Refusal::new(
        aop_kernel::ErrorCode::ForbiddenForRole,
        "this client belongs to no feature: it may only ask, with ask_user",
    )
    .hint("a person binds it to one with `aop mcp install CLIENT --feature-id ID`, or starts `aop mcp --feature-id ID`")
    .fact("role", role)
}

/// The protocol's side of a server: who calls is known for a process, and looked up for every request over HTTP.
pub(crate) enum Server {
    /// One client.
    Process(Box<Handler>),
    /// Whoever has a token.
    Http(Arc<App>),
    /// A client that there is nothing for: it sees the tools, and every call is told why.
    Refusing(Refusal),
}

impl Server {
    async fn call(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match self {
            Server::Process(handler) => Ok(handler.call(request, context).await),
            Server::Http(app) => {
                let handler = over_http(app, &context.extensions)
                    .ok_or_else(|| ErrorData::internal_error("the request has lost its credential", None))?;
                Ok(handler.call(request, context).await)
            }
            Server::Refusing(refusal) => Ok(outcome::result(Err(refusal.clone())).into()),
        }
    }
}

/// The door has put the credential and the state of the connection beside the request.
fn over_http(app: &App, extensions: &Extensions) -> Option<Handler> {
    let parts = extensions.get::<axum::http::request::Parts>()?;
    let signed = parts.extensions.get::<Signed>()?;
    let Gone(gone) = parts.extensions.get::<Gone>()?;
    Some(Handler::for_token(app, signed, named_session(&parts.headers), gone.clone()))
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("aop", env!("CARGO_PKG_VERSION")))
            .with_instructions(catalog::INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let client = context.client_info().map(|info| info.name).unwrap_or_default();
        match page.and_then(|page| page.cursor) {
            None => Ok(ListToolsResult::with_all_items(catalog::tools(&client))),
            Some(cursor) => {
                let refusal = Refusal::invalid_argument(format!("cursor {} leads nowhere", quoted(&cursor)))
                    .hint("all tools stand on the first page");
                Err(outcome::protocol_error(&refusal))
            }
        }
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if !catalog::knows(&request.name) {
            return Err(outcome::protocol_error(&catalog::unknown(&request.name)));
        }
        self.call(request, &context).await
    }

    /// What the protocol library cannot read as one of its own requests comes here, also a call whose arguments
    /// are no object.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method == "tools/call" {
            let refusal =
                Refusal::invalid_argument("the call has no tool name, or its arguments are not an object")
                    .hint("send params {\"name\": …, \"arguments\": {…}}");
            return Err(outcome::protocol_error(&refusal));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None))
    }
}

/// Who comes over HTTP: a session, or where the protocol has none, a token. What one session of a token was shown says
/// nothing about what another has read.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Connection {
    pub(crate) tag: String,
    pub(crate) session: Option<String>,
}

/// The memories of all askers that come over HTTP.
#[derive(Default)]
pub(crate) struct Memories(Mutex<Askers>);

#[derive(Default)]
struct Askers {
    here: HashMap<Connection, Arc<Memory>>,
    /// The sessions that ended without a word, by their token: its next one goes on where they were.
    lost: HashMap<String, Vec<Arc<Memory>>>,
}

impl Memories {
    fn askers(&self) -> MutexGuard<'_, Askers> {
        // Maps are whole after any panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, connection: Connection) -> Arc<Memory> {
        let mut askers = self.askers();
        if let Some(memory) = askers.here.get(&connection) {
            return Arc::clone(memory);
        }
        let memory = Arc::<Memory>::default();
        for lost in askers.lost.remove(&connection.tag).unwrap_or_default() {
            memory.secrets.inherit(&lost.secrets);
        }
        askers.here.insert(connection, Arc::clone(&memory));
        memory
    }

    /// This session has ended without a word. What it was shown may not have arrived.
    pub(crate) fn lost(&self, connection: &Connection) {
        let mut askers = self.askers();
        if let Some(memory) = askers.here.remove(connection) {
            askers.lost.entry(connection.tag.clone()).or_default().push(memory);
        }
    }

    /// This asker has closed its session.
    pub(crate) async fn parted(&self, connection: &Connection, store: &dyn Store) {
        let memory = self.askers().here.remove(connection);
        if let Some(memory) = memory {
            memory.parted(store).await;
        }
    }

    /// The server has closed, and every answer that was under way is sent.
    pub(crate) async fn all_parted(&self, store: &dyn Store) {
        let Askers { here, lost } = std::mem::take(&mut *self.askers());
        for memory in here.into_values().chain(lost.into_values().flatten()) {
            memory.parted(store).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aop_kernel::ids::QuestionId;

    #[test]
    fn what_a_session_that_ended_by_itself_was_shown_goes_to_the_next() {
        let memories = Memories::default();
        let id = QuestionId::from_ulid("01ARZ3NDEKTSV4RRFFQ69G5FAV").unwrap();
        let of = |tag: &str, session: &str| Connection { tag: tag.into(), session: Some(session.into()) };
        let shown = |connection: Connection| memories.of(connection).secrets.take();
        memories.of(of("t", "one")).secrets.show(&id);
        assert!(shown(of("t", "two")).is_empty(), "it is here");
        memories.lost(&of("t", "one"));
        assert!(shown(of("u", "three")).is_empty(), "another token");
        assert!(shown(of("t", "two")).is_empty(), "it has read nothing of that");
        assert_eq!(shown(of("t", "four")).into_iter().collect::<Vec<_>>(), [id]);
    }
}
