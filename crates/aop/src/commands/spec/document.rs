//! Input documents: read, check, and on violations the refusal that lists all of them.

use crate::input::read_bytes;
use aop_ask::{Violation, json as reader};
use aop_kernel::{ErrorCode, Refusal};
use std::path::Path;

/// Reads a document and parses it; `what` completes "is not …".
pub(crate) fn load<T>(
    path: &Path,
    what: &str,
    parse: impl FnOnce(&[u8]) -> Result<T, Vec<Violation>>,
) -> Result<T, Refusal> {
    let bytes = read_bytes(path).map_err(|refusal| match refusal.code {
        // Too large for any document: say so in the words of documents, with their exit code.
        ErrorCode::PayloadTooLarge => invalid(
            path,
            what,
            vec![Violation {
                code: "json_too_large",
                path: String::new(),
                message: format!("the document has more than the {} bytes that are read", reader::MAX_BYTES),
                hint: "split it, or move long texts into files and name the files".to_owned(),
            }],
        ),
        _ => refusal,
    })?;
    parse(&bytes).map_err(|violations| invalid(path, what, violations))
}

/// The refusal for a document with these violations.
pub(crate) fn invalid(path: &Path, what: &str, violations: Vec<Violation>) -> Refusal {
    let count = match violations.len() {
        1 => "1 violation".to_owned(),
        many => format!("{many} violations"),
    };
    Refusal::new(ErrorCode::InvalidDocument, format!("'{}' is not {what}: {count}", path.display()))
        .hint("correct each violation and check again")
        .fact("violations", violations)
}

/// Puts the file's name in front of a refusal about its content.
pub(super) fn named(mut refusal: Refusal, path: &Path) -> Refusal {
    if refusal.message.starts_with("reply ") {
        refusal.message = format!("'{}': {}", path.display(), refusal.message);
    }
    refusal
}
