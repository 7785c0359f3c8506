//! Messages as they arrive, before the protocol library reads them: what is said to one that is too large, or none.

use super::outcome;
use aop_kernel::Refusal;
use aop_kernel::tools::MAX_REQUEST_BYTES;
use rmcp::model::{
    CallToolRequestMethod, ConstString, ErrorCode, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
    ServerResult,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

/// What can be told of a message, whatever else is in it.
#[derive(Default, Deserialize)]
struct Head {
    id: Option<Value>,
    method: Option<Value>,
}

impl Head {
    /// Nothing of what is no object.
    fn of(text: &[u8]) -> Self {
        serde_json::from_slice(text).unwrap_or_default()
    }

    fn id(&self) -> Option<RequestId> {
        serde_json::from_value(self.id.clone()?).ok()
    }

    /// Whether nobody waits for an answer to it.
    fn is_notification(&self) -> bool {
        self.id.is_none() && self.method.is_some()
    }

    fn is_response(&self) -> bool {
        self.id.is_some() && self.method.is_none()
    }
}

/// The refusal of a message of so many bytes, blanks and all, if it is too large. A notification asks for nothing, and what a
/// response holds is measured where it is used.
pub(crate) fn too_large(text: &[u8], size: usize) -> Option<ServerJsonRpcMessage> {
    if size <= MAX_REQUEST_BYTES {
        return None;
    }
    let head = Head::of(text);
    if head.is_notification() || head.is_response() {
        return None;
    }
    let refusal = crate::http::guard::too_large(Some(size as u64), MAX_REQUEST_BYTES);
    Some(match (head.id(), head.method) {
        (Some(id), Some(method)) if method == CallToolRequestMethod::VALUE => {
            // A model reads results, and no errors of the protocol.
            JsonRpcMessage::response(ServerResult::CallToolResult(outcome::result(Err(refusal))), id)
        }
        (id, _) => JsonRpcMessage::error(outcome::error(ErrorCode::INVALID_REQUEST, &refusal), id),
    })
}

/// What is said to a text that the protocol library cannot read as a message.
pub(crate) fn unreadable(text: &[u8]) -> ServerJsonRpcMessage {
    if let Err(error) = serde_json::from_slice::<IgnoredAny>(text) {
        let refusal = Refusal::invalid_argument(format!("the message is not JSON: {error}"))
            .hint("send one JSON-RPC 2.0 message");
        return JsonRpcMessage::error(outcome::error(ErrorCode::PARSE_ERROR, &refusal), None);
    }
    let refusal = Refusal::invalid_argument("the message is JSON, but no message of JSON-RPC 2.0").hint(
        "send {\"jsonrpc\": \"2.0\"} with id and method, with method alone, or with id and result or error",
    );
    JsonRpcMessage::error(outcome::error(ErrorCode::INVALID_REQUEST, &refusal), Head::of(text).id())
}

/// Whether somebody waits to be told that this text is no message. Nobody is told of one that is no JSON, because two who
/// answer each other's errors would never stop.
pub(crate) fn is_awaited(text: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(text).is_ok() && !Head::of(text).is_notification()
}

/// A message as it is sent.
pub(crate) fn text(message: &ServerJsonRpcMessage) -> String {
    serde_json::to_string(message)
        .unwrap_or_else(|error| unreachable!("a message is always serializable: {error}"))
}
