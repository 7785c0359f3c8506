//! Conversations of Gemini CLI: their names, and the files it keeps them in
//! (`tmp/PROJECT/chats/session-DATE-ID8.jsonl`, one JSON record per line, appended to).

use serde_json::Value;
use std::path::{Path, PathBuf};

/// A name for a new conversation. The program wants a UUID.
pub(super) fn fresh() -> String {
    // Time and randomness of a ULID, dressed as a version 4.
    let bits = u128::from(ulid::Ulid::generate());
    let bits = bits & !(0xf << 76) & !(0b11 << 62) | (4 << 76) | (0b10 << 62);
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// The file of a conversation, below the program's `.gemini` folder.
pub(super) fn find(gemini: &Path, session: &str) -> Option<PathBuf> {
    let ending = format!("-{}.jsonl", session.get(..8)?);
    let projects = std::fs::read_dir(gemini.join("tmp")).ok()?.flatten();
    let chats = projects.filter_map(|project| std::fs::read_dir(project.path().join("chats")).ok());
    let files = chats.flat_map(|chats| chats.flatten().map(|file| file.path()));
    files.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(&ending))).find(
        |path| std::fs::read(path).is_ok_and(|bytes| records(&bytes).any(|it| it["sessionId"] == session)),
    )
}

/// Whether a message of the user's in the conversation names this. Results of tools are no messages.
pub(super) fn is_told(file: &Path, question_id: &str) -> Option<bool> {
    let bytes = std::fs::read(file).ok()?;
    Some(records(&bytes).any(|record| {
        let replaced = record["$set"]["messages"].as_array().into_iter().flatten();
        replaced.chain([&record]).any(|message| names(message, question_id))
    }))
}

/// What stands in a file. A last line that was cut off is not there.
pub(crate) fn records(bytes: &[u8]) -> impl Iterator<Item = Value> {
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
}

pub(crate) fn names(message: &Value, id: &str) -> bool {
    let says = |value: &Value| value.as_str().is_some_and(|text| text.contains(id));
    let content = &message["content"];
    let mut parts = content.as_array().into_iter().flatten();
    message["type"] == "user" && (says(content) || parts.any(|part| says(&part["text"])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_uuids_and_differ() {
        let (one, other) = (fresh(), fresh());
        assert_ne!(one, other);
        assert_eq!((one.len(), &one[14..15]), (36, "4"));
        assert!("89ab".contains(&one[19..20]), "{one}");
    }

    #[test]
    fn only_what_the_user_says_counts_as_told() {
        let said = |record: &Value| names(record, "q_1");
        assert!(said(&json!({"type": "user", "content": [{"text": "The end of your question q_1: yes"}]})));
        assert!(said(&json!({"type": "user", "content": "about q_1"})));
        assert!(!said(&json!({"type": "gemini", "content": "I asked q_1"})));
        let result = json!({"functionResponse": {"response": {"error": "PARKED q_1"}}});
        assert!(!said(&json!({"type": "user", "content": [result]})));
    }

    #[test]
    fn a_line_that_was_cut_off_is_not_there() {
        assert_eq!(records(b"{\"a\":1}\n{\"a\":2}\n{\"a\":").count(), 2);
    }
}
