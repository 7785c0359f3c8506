//! From an envelope to a tool result, and from a refusal to an error of the protocol.

use aop_kernel::{Envelope, Refusal};
use rmcp::model::{CallToolResult, ContentBlock, ErrorCode, ErrorData};

/// The envelope twice: as structured content for programs, as the same text for clients that show only text.
pub(super) fn result(outcome: Result<Envelope, Refusal>) -> CallToolResult {
    let (text, refused) = match outcome {
        Ok(envelope) => (envelope.as_str().to_owned(), false),
        Err(refusal) => (refusal.to_json().to_string(), true),
    };
    let structured = serde_json::from_str(&text).ok();
    let content = vec![ContentBlock::text(text)];
    let mut result = if refused { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.structured_content = structured;
    result
}

/// For what is no call of a tool of ours. The envelope goes along as data.
pub(super) fn protocol_error(refusal: &Refusal) -> ErrorData {
    error(ErrorCode::INVALID_PARAMS, refusal)
}

/// A refusal as an error of the protocol.
pub(super) fn error(code: ErrorCode, refusal: &Refusal) -> ErrorData {
    ErrorData::new(code, format!("{}; {}", refusal.message, refusal.hint), Some(refusal.to_json()))
}
