//! The conversation as Codex keeps it: a rollout file per thread, one JSON object per line, below the home's
//! `sessions/`. It says what the conversation holds already, and which of the model's calls have no output yet.
//!
//! Codex writes a call down before it asks about it, and an output before it tells the model.

use crate::plain::open_file;
use aop_turn::command::is_session_handle;
use serde_json::{Map, Value};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// Outputs that Codex writes itself when a turn is interrupted begin so. They are no answer.
const ABORTED: &str = "aborted";

/// How an output of a call is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A function with JSON arguments.
    Function,
    /// A tool that takes free text.
    Custom,
}

impl Form {
    /// The item that gives a call its output.
    pub(crate) fn output(self, call_id: &str, output: &str) -> Value {
        let kind = match self {
            Form::Function => "function_call_output",
            Form::Custom => "custom_tool_call_output",
        };
        serde_json::json!({"type": kind, "call_id": call_id, "output": output})
    }
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Output {
    /// Not yet.
    Missing,
    /// The turn was interrupted while it ran.
    Aborted,
    /// It returned something.
    Given,
}

/// A call of the model's.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) call_id: String,
    pub(crate) name: String,
    pub(crate) form: Form,
    pub(crate) arguments: Value,
    pub(crate) output: Output,
}

/// What a conversation holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Rollout {
    /// The calls, in order.
    pub(super) calls: Vec<Call>,
    /// The messages to the model, in order. What its calls returned is none of them: an agent may look up anything.
    told: Vec<Message>,
    /// The last thing in it is a message of the model's: it has nothing left to go on with.
    pub(super) model_spoke_last: bool,
    /// It was made shorter: of what was asked above that, the model may know as little as a summary says.
    pub(super) is_compacted: bool,
}

/// A message to the model.
#[derive(Debug, Clone, PartialEq)]
struct Message {
    /// The user's, as the end of a question is; not an instruction, as a note beside it is.
    is_users: bool,
    text: String,
}

/// The file of a thread.
pub(super) fn find(home: &Path, thread: &str) -> Option<PathBuf> {
    if !is_session_handle(thread) {
        return None;
    }
    let wanted = format!("-{thread}.jsonl");
    let mut folders = vec![home.join("sessions"), home.join("archived_sessions")];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for entry in entries.flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(_) if entry.file_name().to_string_lossy().ends_with(&wanted) => return Some(entry.path()),
                Ok(_) | Err(_) => {}
            }
        }
    }
    None
}

/// Reads the conversation of a thread; nothing when it has no file (a thread without a turn has none).
pub(super) fn read(home: &Path, thread: &str) -> Option<Rollout> {
    let mut lines = BufReader::new(open_file(&find(home, thread)?).ok()?);
    let mut rollout = Rollout::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        match lines.read_until(b'\n', &mut line) {
            Ok(0) => return Some(rollout),
            Ok(_) => rollout.line(&line),
            Err(_) => return None,
        }
    }
}

impl Rollout {
    /// A conversation of these items.
    #[cfg(test)]
    pub(super) fn of(items: &[Value]) -> Self {
        let mut rollout = Rollout::default();
        for item in items {
            let line = serde_json::json!({"type": "response_item", "payload": item});
            rollout.line(line.to_string().as_bytes());
        }
        rollout
    }

    pub(crate) fn line(&mut self, line: &[u8]) {
        // The other kinds of line are larger and of no interest here; a cut last line is none of any kind.
        let names = |mark: &[u8]| line.windows(mark.len()).any(|window| window == mark);
        if !names(b"\"response_item\"") && !names(b"\"compacted\"") {
            return;
        }
        let Ok(Value::Object(fields)) = serde_json::from_slice::<Value>(line) else { return };
        let Some(Value::Object(payload)) = fields.get("payload") else { return };
        match fields.get("type").and_then(Value::as_str) {
            Some("response_item") => self.item(payload),
            Some("compacted") => self.compacted(payload.get("replacement_history")),
            _ => {}
        }
    }

    /// The conversation was made shorter: of what stands above, the model has a summary, and the items of the new history
    /// where the line names one. Codex drops the output of a call that it does not have any more, so a call that waited
    /// and is not in that history waits no longer. What had been returned or told before is in the summary.
    fn compacted(&mut self, history: Option<&Value>) {
        self.is_compacted = true;
        let items = history.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let named = |kinds: [&str; 2]| {
            let of_kind = move |item: &&Value| kinds.iter().any(|kind| item["type"] == *kind);
            items.iter().filter(of_kind).filter_map(|item| item["call_id"].as_str()).collect::<Vec<_>>()
        };
        let kept = named(["function_call", "custom_tool_call"]);
        // An output that stands in the new history alone is the engine's own: it closes what was cut off.
        let closed = named(["function_call_output", "custom_tool_call_output"]);
        self.calls.retain(|call| {
            let call_id = call.call_id.as_str();
            call.output != Output::Missing || (kept.contains(&call_id) && !closed.contains(&call_id))
        });
    }

    fn item(&mut self, item: &Map<String, Value>) {
        let text = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default();
        self.model_spoke_last = text("type") == "message" && text("role") == "assistant";
        match text("type") {
            "function_call" => {
                let arguments = serde_json::from_str(text("arguments")).unwrap_or_default();
                self.call(text("call_id"), text("name"), Form::Function, arguments);
            }
            "custom_tool_call" => {
                self.call(text("call_id"), text("name"), Form::Custom, text("input").into())
            }
            "function_call_output" | "custom_tool_call_output" => {
                let output = match item.get("output") {
                    Some(Value::String(text)) => text.clone(),
                    other => other.map(Value::to_string).unwrap_or_default(),
                };
                let known = self.calls.iter_mut().rev().find(|call| call.call_id == text("call_id"));
                if let Some(call) = known {
                    let aborted = output.starts_with(ABORTED);
                    call.output = if aborted { Output::Aborted } else { Output::Given };
                }
            }
            "message" if text("role") != "assistant" => {
                let parts = item.get("content").and_then(Value::as_array);
                let texts = parts.into_iter().flatten().filter_map(|part| part.get("text")?.as_str());
                let is_users = text("role") == "user";
                self.told.extend(texts.map(|text| Message { is_users, text: text.to_owned() }));
            }
            _ => {}
        }
    }

    fn call(&mut self, call_id: &str, name: &str, form: Form, arguments: Value) {
        let (call_id, name) = (call_id.to_owned(), name.to_owned());
        self.calls.push(Call { call_id, name, form, arguments, output: Output::Missing });
    }

    /// A call by its id; the last one, should an id have been used twice.
    pub(crate) fn find_call(&self, call_id: &str) -> Option<&Call> {
        self.calls.iter().rev().find(|call| call.call_id == call_id)
    }

    /// The calls that have no output, in order.
    pub(crate) fn unanswered(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| call.output == Output::Missing)
    }

    /// Whether a message to the model ever had these words in it.
    pub(super) fn was_told(&self, words: &str) -> bool {
        self.told.iter().any(|told| told.text.contains(words))
    }

    /// Whether the end of a question has arrived in it: as the output of the call that asked, or, where that cannot
    /// carry it, as a message of the user's that names the question.
    pub(crate) fn holds_reply(&self, question_id: &str, call_id: Option<&str>) -> bool {
        let call = call_id.and_then(|call_id| self.find_call(call_id));
        let returned = call.is_some_and(|call| call.output == Output::Given && !call.is_asynchronous());
        returned || self.told.iter().any(|told| told.is_users && told.text.contains(question_id))
    }
}

impl Call {
    /// It asks a person and waits.
    pub(super) fn asks(&self) -> bool {
        self.form == Form::Function && self.name == "request_user_input"
    }

    /// It asks a person and does not wait: its output says nothing about the answer.
    pub(super) fn is_asynchronous(&self) -> bool {
        self.name == "request_user_input_async"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rollout(items: &[Value]) -> Rollout {
        Rollout::of(items)
    }

    fn call(call_id: &str, name: &str) -> Value {
        json!({"type": "function_call", "name": name, "arguments": "{\"questions\":[]}", "call_id": call_id})
    }

    fn output(call_id: &str, output: &str) -> Value {
        json!({"type": "function_call_output", "call_id": call_id, "output": output})
    }

    #[test]
    fn a_reply_is_held_once_the_call_has_an_output() {
        let asked = rollout(&[call("c", "request_user_input")]);
        assert!(!asked.holds_reply("q_1", Some("c")));
        assert_eq!(asked.unanswered().count(), 1);
        let answered = rollout(&[call("c", "request_user_input"), output("c", "{\"answers\":{}}")]);
        assert!(answered.holds_reply("q_1", Some("c")));
        assert_eq!(answered.unanswered().count(), 0);
    }

    #[test]
    fn an_interruption_is_no_reply() {
        let aborted = rollout(&[call("c", "request_user_input"), output("c", "aborted by user after 0.3s")]);
        assert!(!aborted.holds_reply("q_1", Some("c")));
        assert_eq!(aborted.find_call("c").unwrap().output, Output::Aborted);
    }

    #[test]
    fn what_came_as_a_message_is_found_by_the_name_of_the_question() {
        let message = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "(q_1) yes"}]});
        let items = [call("c", "request_user_input_async"), output("c", "{\"accepted\":true}")];
        assert!(!rollout(&items).holds_reply("q_1", Some("c")), "accepted is not answered");
        assert!(rollout(&[&items[..], &[message]].concat()).holds_reply("q_1", Some("c")));
        let said = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "q_1"}]});
        let said = rollout(&[said]);
        assert!(!said.holds_reply("q_1", None), "the model's own words deliver nothing");
        assert!(said.model_spoke_last);
    }

    #[test]
    fn what_other_calls_returned_and_notes_say_is_no_reply() {
        let note = json!({"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "About q_1"}]});
        let asked = call("c", "request_user_input_async");
        let looked = [call("l", "exec_command"), output("l", "aop questions: q_1")];
        let items = [&[asked, output("c", "{\"accepted\":true}")], &looked[..], &[note]].concat();
        let rollout = rollout(&items);
        assert!(!rollout.holds_reply("q_1", Some("c")));
        assert!(rollout.was_told("About q_1") && !rollout.was_told("aop questions"));
    }

    #[test]
    fn lines_of_other_kinds_and_torn_lines_change_nothing() {
        let mut rollout = rollout(&[call("c", "exec_command")]);
        let before = rollout.clone();
        for line in [
            r#"{"type":"event_msg","payload":{"type":"function_call","call_id":"x","note":"\"response_item\""}}"#,
            r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"c","outp"#,
            "",
            "\u{0}\"response_item\"",
        ] {
            rollout.line(line.as_bytes());
        }
        assert_eq!(rollout, before);
    }

    /// A conversation of these items that was then made shorter.
    fn compacted(items: &[Value], payload: Value) -> Rollout {
        let mut rollout = rollout(items);
        rollout.line(json!({"type": "compacted", "payload": payload}).to_string().as_bytes());
        rollout
    }

    #[test]
    fn a_call_that_was_compacted_away_waits_no_longer() {
        let waiting = [call("c", "request_user_input")];
        let summary = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "q_1 is open"}]});
        for payload in [
            json!({"message": "summary"}),
            json!({"message": "summary", "replacement_history": null}),
            json!({"message": "", "replacement_history": [summary]}),
        ] {
            let rollout = compacted(&waiting, payload.clone());
            assert_eq!((rollout.find_call("c"), rollout.unanswered().count()), (None, 0), "{payload}");
            assert!(!rollout.holds_reply("q_1", Some("c")), "a summary that names the question is no answer");
        }
    }

    #[test]
    fn a_call_that_stands_in_the_new_history_waits_on() {
        let waiting = [call("c", "request_user_input"), call("d", "exec_command")];
        let kept = compacted(&waiting, json!({"message": "", "replacement_history": [waiting[0]]}));
        assert_eq!(kept.unanswered().map(|call| call.call_id.as_str()).collect::<Vec<_>>(), ["c"]);
        let closed = json!([waiting[0], output("c", "aborted")]);
        let closed = compacted(&waiting, json!({"message": "", "replacement_history": closed}));
        assert_eq!(closed.unanswered().count(), 0);
        assert!(!closed.holds_reply("q_1", Some("c")));
    }

    #[test]
    fn what_was_told_before_a_compaction_is_told() {
        let message = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "(q_2) yes"}]});
        let told = [call("c", "request_user_input"), output("c", "{}"), message];
        let told = compacted(&told, json!({"message": "summary", "replacement_history": []}));
        assert!(told.holds_reply("q_1", Some("c")) && told.holds_reply("q_2", None));
    }

    #[test]
    fn an_output_for_a_call_that_was_compacted_away_tells_nothing() {
        let mut rollout =
            compacted(&[call("c", "request_user_input")], json!({"message": "", "replacement_history": []}));
        let late = json!({"type": "response_item", "payload": output("c", "{}")});
        rollout.line(late.to_string().as_bytes());
        assert!(!rollout.holds_reply("q_1", Some("c")));
    }

    #[test]
    fn only_a_plain_handle_is_looked_for() {
        let home = std::env::temp_dir();
        for thread in ["", "../x", "a/b", "-x"] {
            assert_eq!(find(&home, thread), None);
        }
    }
}
