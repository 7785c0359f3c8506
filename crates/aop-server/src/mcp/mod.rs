//! The protocol: which tools there are, and what becomes of a call. A refusal is a tool result, so that the model
//! reads it; only what names no tool of ours is an error of the protocol.

mod catalog;
mod outcome;

use crate::Door;
use crate::files::Files;
use aop_kernel::role::Caller;
use aop_kernel::tools::Tool;
use aop_kernel::{Envelope, Refusal};
use aop_store::Service;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, ErrorData,
    Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;

/// What this door calls itself in the resolution of a question.
const SURFACE: &str = "mcp";

/// One client's server.
pub(crate) struct Handler {
    service: Service,
    caller: Caller,
    files: Files,
}

impl Handler {
    pub(crate) fn new(door: Door, files: Files) -> Self {
        Handler { service: door.service, caller: door.caller, files }
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
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(catalog::tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let input = Value::Object(request.arguments.unwrap_or_default());
        let tool = Tool::find(&request.name).map_err(|refusal| outcome::protocol_error(&refusal))?;
        Ok(outcome::result(self.contract(tool, &input).await).into())
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
