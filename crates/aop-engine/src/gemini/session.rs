//! Conversations of Gemini CLI: their names, and the files it keeps them in
//! (`tmp/PROJECT/chats/session-DATE-ID8.jsonl`, one JSON record per line, appended to).

use serde_json::Value;
use std::path::{Path, PathBuf};

/// The messages that a conversation has in each of its files, below the program's `.gemini` folder; nothing where one
/// cannot be read. There is one for each minute in which it was begun or gone on with: the program names a file by the
/// minute before it knows which one has the messages.
pub(super) fn conversation(gemini: &Path, session: &str) -> Option<Vec<Vec<Value>>> {
    let ending = format!("-{}.jsonl", session.get(..8)?);
    let projects = std::fs::read_dir(gemini.join("tmp")).into_iter().flatten().flatten();
    let chats = projects.filter_map(|project| std::fs::read_dir(project.path().join("chats")).ok());
    let files = chats.flat_map(|chats| chats.flatten().map(|file| file.path()));
    let is_named =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(&ending));
    let mut found = Vec::new();
    for path in files.filter(is_named) {
        let chat = Chat::read(&crate::plain::read_file(&path).ok()?);
        if chat.session == session {
            found.push(chat.messages);
        }
    }
    Some(found)
}

/// Whether a message of the user's in the conversation names this. Results of tools are no messages.
pub(super) fn is_told(gemini: &Path, session: &str, question_id: &str) -> Option<bool> {
    let files = conversation(gemini, session)?;
    Some(files.iter().flatten().any(|message| names(message, question_id)))
}

/// What is left of a file when all that it says is done: the program takes a message back when its request fails, and
/// says so in a later line.
#[derive(Debug, Default)]
pub(crate) struct Chat {
    /// Whose it is: the last one's, where several have written to it.
    session: String,
    /// In their order; one that is written again keeps its place.
    pub(crate) messages: Vec<Value>,
}

impl Chat {
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let mut chat = Chat::default();
        records(bytes).for_each(|record| chat.take(record));
        chat
    }

    fn take(&mut self, mut record: Value) {
        if let Some(first) = record["$rewindTo"].as_str() {
            let kept = self.messages.iter().position(|message| message["id"] == first);
            self.messages.truncate(kept.unwrap_or_default());
        } else if record["id"].is_string() {
            self.put(record);
        } else {
            let anew = record["$set"].is_object();
            let told = if anew { &mut record["$set"] } else { &mut record };
            if let Some(session) = told["sessionId"].as_str() {
                self.session = session.to_owned();
            }
            // What is no object has none, and cannot be asked for them by name.
            if let Some(Value::Array(messages)) = told.get_mut("messages").map(Value::take) {
                if anew {
                    self.messages.clear();
                }
                messages
                    .into_iter()
                    .filter(|message| message["id"].is_string())
                    .for_each(|one| self.put(one));
            }
        }
    }

    fn put(&mut self, message: Value) {
        match self.messages.iter_mut().find(|other| other["id"] == message["id"]) {
            Some(other) => *other = message,
            None => self.messages.push(message),
        }
    }
}

/// Whether the program would go on with these: of a conversation in which nobody has said anything it knows nothing.
pub(super) fn is_resumable(messages: &[Value]) -> bool {
    messages.iter().any(|message| {
        let said = words(&message["content"]);
        let has = |what: &str| message[what].as_array().is_some_and(|list| !list.is_empty());
        match message["type"].as_str() {
            Some("user") => !said.is_empty() && !ASIDES.iter().any(|aside| said.starts_with(aside)),
            Some("gemini") => !said.is_empty() || has("toolCalls") || has("thoughts"),
            _ => false,
        }
    })
}

/// What a message of the user's begins with that is none: a command, and what the program itself says first.
const ASIDES: [&str; 4] = ["/", "?", "<session_context>", "<hook_context>"];

/// The text of a message; of a part that is no text, that it is there.
fn words(content: &Value) -> String {
    let part = |part: &Value| match part {
        Value::String(text) => text.clone(),
        other => other["text"].as_str().unwrap_or("[part]").to_owned(),
    };
    let text = match content {
        Value::Null => String::new(),
        Value::Array(parts) => parts.iter().map(part).collect(),
        other => part(other),
    };
    text.trim().to_owned()
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
        let begun = format!("{}\n", json!({"sessionId": session, "projectHash": "p"}));
        let told = json!({"id": "2", "type": "user", "content": "The end of your question q_1: yes"});
        for (first, second) in [(0, 1), (1, 0)] {
            let texts = [begun.clone(), format!("{begun}{told}\n")];
            std::fs::write(chats.join("session-2026-01-01T10-00-01234567.jsonl"), &texts[first]).unwrap();
            std::fs::write(chats.join("session-2026-01-01T10-01-01234567.jsonl"), &texts[second]).unwrap();
            assert_eq!(conversation(home.path(), session).unwrap().len(), 2);
            assert_eq!(is_told(home.path(), session, "q_1"), Some(true));
            assert_eq!(is_told(home.path(), session, "q_2"), Some(false));
        }
        assert_eq!(is_told(home.path(), "76543210-89ab-4cde-8f01-23456789abcd", "q_1"), Some(false));
    }

    #[test]
    fn a_line_that_is_no_record_is_passed_over() {
        let told = json!({"id": "1", "type": "user", "content": "Plan it."});
        let text = format!("8\n[1]\n\"x\"\nnull\n{told}\n{{\"$set\":3}}\n.W\"}}\n");
        assert_eq!(Chat::read(text.as_bytes()).messages, [told]);
    }

    /// As the program leaves it when the model's API refuses a request.
    #[test]
    fn what_was_taken_back_was_not_told_and_nobody_can_go_on_with_it() {
        let said = |id: &str, text: &str| json!({"id": id, "type": "user", "content": [{"text": text}]});
        let context = said("0", "<session_context>\nThis is the Gemini CLI.");
        let read = |records: &[Value]| {
            let lines: Vec<String> = records.iter().map(Value::to_string).collect();
            Chat::read(lines.join("\n").as_bytes())
        };
        let begun = json!({"sessionId": "one", "projectHash": "p"});
        let set = |messages: &[Value]| json!({"$set": {"messages": messages}});
        let mut records = vec![begun, set(std::slice::from_ref(&context)), said("1", "Plan it.")];
        assert!(is_resumable(&read(&records).messages));
        records.push(json!({"$set": {"lastUpdated": "now"}}));
        records.push(set(std::slice::from_ref(&context)));
        assert!(!is_resumable(&read(&records).messages), "its first message was taken back");
        let model = json!({"id": "2", "type": "gemini", "content": "", "toolCalls": [{"name": "ask_user"}]});
        records.extend([said("1", "Plan it."), model.clone(), said("3", "The end of your question q_1")]);
        let chat = read(&records);
        assert_eq!((chat.session.as_str(), chat.messages.len()), ("one", 4));
        records.push(set(&[context, said("1", "Plan it."), model]));
        let chat = read(&records);
        assert!(is_resumable(&chat.messages) && !chat.messages.iter().any(|message| names(message, "q_1")));
        records.push(json!({"$rewindTo": "1"}));
        assert_eq!(read(&records).messages.len(), 1);
        records.push(json!({"sessionId": "two", "projectHash": "p"}));
        assert_eq!(read(&records).session, "two", "another has written over it");
    }

    #[test]
    fn a_line_that_was_cut_off_is_not_there() {
        assert_eq!(records(b"{\"a\":1}\n{\"a\":2}\n{\"a\":").count(), 2);
    }
}
