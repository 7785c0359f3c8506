//! Conversations of Gemini CLI: their names, and the files it keeps them in
//! (`tmp/PROJECT/chats/session-DATE-ID8.jsonl`, one JSON record per line, appended to).

use serde_json::Value;
use std::path::{Path, PathBuf};

/// What stands in the files of a conversation, below the program's `.gemini` folder; nothing where one cannot be read.
/// There is one for each minute in which it was begun or gone on with: the program names a file by the minute before it
/// knows which one has the messages.
pub(super) fn files(gemini: &Path, session: &str) -> Option<Vec<Vec<u8>>> {
    let ending = format!("-{}.jsonl", session.get(..8)?);
    let projects = std::fs::read_dir(gemini.join("tmp")).into_iter().flatten().flatten();
    let chats = projects.filter_map(|project| std::fs::read_dir(project.path().join("chats")).ok());
    let files = chats.flat_map(|chats| chats.flatten().map(|file| file.path()));
    let is_named =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(&ending));
    let mut found = files
        .filter(is_named)
        .map(|path| crate::plain::read_file(&path))
        .collect::<Result<Vec<_>, _>>()
        .ok()?;
    found.retain(|bytes| records(bytes).any(|record| record["sessionId"] == session));
    Some(found)
}

/// Whether a message of the user's in the conversation names this. Results of tools are no messages.
pub(super) fn is_told(gemini: &Path, session: &str, question_id: &str) -> Option<bool> {
    let files = files(gemini, session)?;
    Some(files.iter().flat_map(|bytes| records(bytes)).any(|record| {
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
    fn only_what_the_user_says_counts_as_told() {
        let said = |record: &Value| names(record, "q_1");
        assert!(said(&json!({"type": "user", "content": [{"text": "The end of your question q_1: yes"}]})));
        assert!(said(&json!({"type": "user", "content": "about q_1"})));
        assert!(!said(&json!({"type": "gemini", "content": "I asked q_1"})));
        let result = json!({"functionResponse": {"response": {"error": "PARKED q_1"}}});
        assert!(!said(&json!({"type": "user", "content": [result]})));
    }

    /// As the program leaves it when a conversation goes on in another minute, whichever of the two is looked at first.
    #[test]
    fn what_was_told_is_found_in_whichever_file_of_the_conversation_it_stands() {
        let home = tempfile::TempDir::new().unwrap();
        let chats = home.path().join("tmp/shop/chats");
        std::fs::create_dir_all(&chats).unwrap();
        let session = "01234567-89ab-4cde-8f01-23456789abcd";
        let begun = format!("{}\n", json!({"sessionId": session}));
        let told = json!({"type": "user", "content": "The end of your question q_1: yes"});
        for (first, second) in [(0, 1), (1, 0)] {
            let texts = [begun.clone(), format!("{begun}{told}\n")];
            std::fs::write(chats.join("session-2026-01-01T10-00-01234567.jsonl"), &texts[first]).unwrap();
            std::fs::write(chats.join("session-2026-01-01T10-01-01234567.jsonl"), &texts[second]).unwrap();
            assert_eq!(files(home.path(), session).unwrap().len(), 2);
            assert_eq!(is_told(home.path(), session, "q_1"), Some(true));
            assert_eq!(is_told(home.path(), session, "q_2"), Some(false));
        }
        assert_eq!(is_told(home.path(), "76543210-89ab-4cde-8f01-23456789abcd", "q_1"), Some(false));
    }

    #[test]
    fn a_line_that_was_cut_off_is_not_there() {
        assert_eq!(records(b"{\"a\":1}\n{\"a\":2}\n{\"a\":").count(), 2);
    }
}
