//! The protocol: which tools there are, and what becomes of a call. A refusal is a tool result, so that the model
//! reads it; only what names no tool of ours is an error of the protocol.

mod ask;
mod catalog;
mod elicit;
mod outcome;
mod rounds;
mod secrets;
mod wait;
mod words;

use crate::Door;
use crate::files::Files;
use crate::wake::Wakes;
use aop_kernel::role::Caller;
use aop_kernel::tools::{ASK_HUMAN, ASK_USER, AWAIT_ANSWER, Tool};
use aop_kernel::{Envelope, Refusal};
use aop_store::Service;
use elicit::Forms;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, ErrorData,
    Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use rounds::{Reply, Told};
use secrets::Secrets;
use serde_json::Value;
use std::time::Duration;
use tokio::sync::watch;

/// What this door calls itself in the resolution of a question.
const SURFACE: &str = "mcp";

/// One client's server.
pub(crate) struct Handler {
    service: Service,
    caller: Caller,
    files: Files,
    wakes: Wakes,
    /// How long a call waits for a human.
    patience: Duration,
    /// Becomes true when the client has gone.
    closed: watch::Receiver<bool>,
    /// Who may see secret answers, and which were shown.
    secrets: Secrets,
    /// Whether forms may be shown at all, and which are.
    elicits: bool,
    forms: Forms,
}

impl Handler {
    pub(crate) fn new(door: Door, files: Files, wakes: Wakes, closed: watch::Receiver<bool>) -> Self {
        Handler {
            service: door.service,
            caller: door.caller,
            files,
            wakes,
            patience: door.patience,
            closed,
            secrets: Secrets::default(),
            elicits: door.elicits,
            forms: Forms::default(),
        }
    }

    /// A tool of the contract: the same call as `aop tool call` makes.
    async fn contract(&self, tool: Tool, input: &Value) -> Result<Envelope, Refusal> {
        let envelope = self.service.call(tool, &self.caller, input, SURFACE).await?;
        if tool.is_mutating() {
            self.files.changed();
        }
        Ok(envelope)
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("aop", env!("CARGO_PKG_VERSION")))
            .with_instructions(catalog::INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let client = context.client_info().map(|info| info.name).unwrap_or_default();
        Ok(ListToolsResult::with_all_items(catalog::tools(&client)))
    }

    async fn call_tool(
        &self,
        mut request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if !catalog::knows(&request.name) {
            return Err(outcome::protocol_error(&catalog::unknown(&request.name)));
        }
        let reply = Reply::take(&mut request);
        let input = Value::Object(request.arguments.unwrap_or_default());
        let received = self.secrets.take();
        let outcome = match &*request.name {
            ASK_USER | ASK_HUMAN => self.ask_user(&input, reply, &context).await,
            AWAIT_ANSWER => self.await_answer(&input, reply, &context).await,
            name => match Tool::find(name) {
                Ok(tool) => self.contract(tool, &input).await.map(Told::Envelope),
                Err(refusal) => Err(refusal),
            },
        };
        self.forget(received).await;
        Ok(match outcome {
            Ok(Told::Form(form)) => form.into(),
            Ok(Told::Envelope(envelope)) => outcome::result(Ok(envelope)).into(),
            Err(refusal) => outcome::result(Err(refusal)).into(),
        })
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
                Refusal::invalid_argument("the call has no tool name, or its arguments are no object")
                    .hint("send params {\"name\": …, \"arguments\": {…}}");
            return Err(outcome::protocol_error(&refusal));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None))
    }
}
