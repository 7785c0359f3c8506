//! Claude Code's own record of a conversation: whether there is one, and whether it holds an answer.

use crate::plain::open_file;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde_json::Value;

/// What the engine writes for a call whose end it never saw. That is no answer.
const INTERRUPTED: &str = "[Tool call interrupted";

/// What the engine writes for a call that somebody was to be asked about who is not there. That is no answer either.
const UNHEARD: &str = "Tool permission request failed";

/// The file of a conversation. The engine sorts them by folder; the name alone is unique.
pub(super) fn find(env: &BTreeMap<OsString, OsString>, session: &str) -> Option<PathBuf> {
    let set = |name: &str| env.get(OsStr::new(name)).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = set("CLAUDE_CONFIG_DIR").or_else(|| set("HOME").map(|home| home.join(".claude")))?;
    let file = format!("{session}.jsonl");
    let projects = std::fs::read_dir(home.join("projects")).ok()?;
    projects.flatten().map(|project| project.path().join(&file)).find(|path| path.is_file())
}

/// Whether the conversation holds the end of this question: as the result of the call, or in a message that names it.
pub(super) fn holds(path: &Path, question_id: &str, call_id: Option<&str>) -> Option<bool> {
    let mut lines = BufReader::new(open_file(path).ok()?);
    let mut line = Vec::new();
    loop {
        line.clear();
        if lines.read_until(b'\n', &mut line).ok()? == 0 {
            return Some(false);
        }
        let names = |text: &str| memchr::memmem::find(&line, text.as_bytes()).is_some();
        if (names(question_id) || call_id.is_some_and(names)) && line_holds(&line, question_id, call_id) {
            return Some(true);
        }
    }
}

pub(crate) fn line_holds(line: &[u8], question_id: &str, call_id: Option<&str>) -> bool {
    let Ok(line) = serde_json::from_slice::<Value>(line) else { return false };
    if line["type"] != "user" {
        return false;
    }
    match &line["message"]["content"] {
        Value::String(text) => text.contains(question_id),
        Value::Array(blocks) => blocks.iter().any(|block| match block["type"].as_str() {
            Some("text") => block["text"].as_str().is_some_and(|text| text.contains(question_id)),
            Some("tool_result") => {
                let is_ours = block["tool_use_id"].as_str().is_some_and(|id| Some(id) == call_id);
                let says = block["content"].to_string();
                is_ours && ![INTERRUPTED, UNHEARD].iter().any(|no_answer| says.contains(no_answer))
            }
            _ => false,
        }),
        _ => false,
    }
}

/// Whether a call has ended because somebody was to be asked who is not there.
pub(super) fn is_unheard(path: &Path, call_id: &str) -> bool {
    let Ok(file) = open_file(path) else { return false };
    let mut lines = BufReader::new(file).split(b'\n').map_while(Result::ok);
    lines.any(|line| memchr::memmem::find(&line, UNHEARD.as_bytes()).is_some() && ends_call(&line, call_id))
}

/// Whether a line, of the conversation or of the output, is the end of this call of the main agent.
pub(super) fn ends_call(line: &[u8], call_id: &str) -> bool {
    if memchr::memmem::find(line, call_id.as_bytes()).is_none() {
        return false;
    }
    let Ok(line) = serde_json::from_slice::<Value>(line) else { return false };
    let blocks = line["message"]["content"].as_array().into_iter().flatten();
    line["type"] == "user"
        && blocks.into_iter().any(|block| block["type"] == "tool_result" && block["tool_use_id"] == call_id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_result_or_a_message_that_names_the_question_counts() {
        let result = |content: &str| {
            json!({"type": "user", "message": {"content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": content}]}})
        };
        let call =
            json!({"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "toolu_1"}]}});
        let message = json!({"type": "user", "message": {"content": "The end of your question q_1: yes"}});
        for (line, holds) in [
            (result("Your questions have been answered"), true),
            (result("[Tool call interrupted: the session ended"), false),
            (result("Tool permission request failed: AbortError: Stream closed"), false),
            (call, false),
            (message, true),
            (json!({"type": "user", "message": {"content": "hello"}}), false),
        ] {
            assert_eq!(line_holds(line.to_string().as_bytes(), "q_1", Some("toolu_1")), holds, "{line}");
        }
    }
}
