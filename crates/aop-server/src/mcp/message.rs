//! Messages as they arrive, before the protocol library reads them: what is said to one that is too large, or none; and
//! batches, which that library does not know.

use super::outcome;
use aop_kernel::Refusal;
use aop_kernel::tools::MAX_REQUEST_BYTES;
use rmcp::model::{
    CallToolRequestMethod, ConstString, ErrorCode, Extensions, InitializeResultMethod, JsonRpcMessage,
    ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerResult,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

/// A batch has no more messages: each of its calls is under way at the same time.
const MOST_AT_ONCE: usize = 100;

/// Stands beside a request that came in a batch. Whoever sent it has read nothing of what the others of it are answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batched;

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
        (id, _) => invalid(&refusal, id),
    })
}

fn invalid(refusal: &Refusal, id: Option<RequestId>) -> ServerJsonRpcMessage {
    JsonRpcMessage::error(outcome::error(ErrorCode::INVALID_REQUEST, refusal), id)
}

/// The messages of a batch, or why it is not taken; `None` for what is no batch. Of all versions of the protocol only that
/// of 2025-03-26 has them.
pub(crate) fn batch(
    text: &[u8],
    version: Option<&str>,
) -> Result<Option<Vec<Box<RawValue>>>, Box<ServerJsonRpcMessage>> {
    if text.trim_ascii_start().first() != Some(&b'[') {
        return Ok(None);
    }
    let Ok(batch) = serde_json::from_slice::<Vec<Box<RawValue>>>(text) else {
        return Err(Box::new(unreadable(text)));
    };
    let with_batches = ProtocolVersion::V_2025_03_26;
    let refusal = if version != Some(with_batches.as_str()) {
        let version = version.map_or("before the handshake".to_owned(), |version| format!("in {version}"));
        Refusal::invalid_argument(format!("the message is a batch, and the protocol has none {version}"))
            .hint(format!("send its messages one by one, or shake hands for {with_batches}"))
    } else if batch.is_empty() {
        Refusal::invalid_argument("the batch is empty").hint("send one message at least")
    } else if batch.len() > MOST_AT_ONCE {
        let message = format!("the batch has {} messages; the limit is {MOST_AT_ONCE}", batch.len());
        Refusal::invalid_argument(message).hint("send them in several batches")
    } else {
        return Ok(Some(batch));
    };
    Err(Box::new(invalid(&refusal, None)))
}

/// The refusal of a message that no batch may hold.
pub(crate) fn unfit(text: &[u8]) -> Option<ServerJsonRpcMessage> {
    let head = Head::of(text);
    head.method.as_ref().filter(|method| **method == InitializeResultMethod::VALUE)?;
    let refusal =
        Refusal::invalid_argument("a handshake may not be part of a batch").hint("send it by itself");
    Some(invalid(&refusal, head.id()))
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
    invalid(&refusal, Head::of(text).id())
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

/// Whether a request came in a batch.
pub(crate) fn is_batched(extensions: &Extensions) -> bool {
    // Over HTTP what stands beside a request is in its head.
    let head = extensions.get::<axum::http::request::Parts>();
    extensions.get::<Batched>().or(head.and_then(|head| head.extensions.get())).is_some()
}
