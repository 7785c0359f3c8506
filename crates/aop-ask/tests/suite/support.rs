//! Small specs that several tests start from.

use aop_ask::{QuestionSpec, Violation};
use serde_json::{Value, json};

/// The platform gate of the contract.
pub(crate) fn platform() -> Value {
    json!({
        "version": 1, "topic": "init",
        "questions": [{
            "id": "platform", "header": "Platform", "question": "Which platform do you write for?",
            "kind": "single_choice", "required": true,
            "options": [
                {"label": "Web", "description": "Serial chapters on a site"},
                {"label": "Print", "description": "One volume, typeset"},
            ],
        }],
    })
}

/// One question of each kind; only the first is required.
pub(crate) fn three_kinds() -> Value {
    json!({
        "version": 2, "topic": "release",
        "questions": [
            {"id": "channel", "header": "Channel", "question": "Which channel?", "kind": "single_choice",
             "required": true, "options": [
                {"label": "Stable", "description": "For everybody"},
                {"label": "Beta", "description": "For the curious"}], "default": "Stable"},
            {"id": "targets", "header": "Targets", "question": "Which targets?", "kind": "multi_choice",
             "required": false, "allow_other": true, "options": [
                {"label": "Linux", "description": "x86_64"},
                {"label": "macOS", "description": "arm64"},
                {"label": "Windows", "description": "x86_64"}], "default": ["Linux", "macOS"]},
            {"id": "notes", "header": "Notes", "question": "Anything to add?", "kind": "free_text",
             "required": false},
        ],
    })
}

pub(crate) fn spec(value: &Value) -> QuestionSpec {
    QuestionSpec::from_json(value).unwrap()
}

/// `code path` of every violation.
pub(crate) fn brief(violations: &[Violation]) -> Vec<String> {
    violations.iter().map(|violation| format!("{} {}", violation.code, violation.path)).collect()
}

/// The violations of a spec document, brief.
pub(crate) fn refused(value: &Value) -> Vec<String> {
    brief(&QuestionSpec::from_json(value).unwrap_err())
}

/// A copy of `value` with the member at `pointer` replaced, or removed when `new` is `None`.
pub(crate) fn with(value: &Value, pointer: &str, new: Option<Value>) -> Value {
    let mut copy = value.clone();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match (copy.pointer_mut(parent).unwrap(), new) {
        (Value::Object(map), Some(new)) => {
            map.insert(key.to_owned(), new);
        }
        (Value::Object(map), None) => {
            map.remove(key);
        }
        (Value::Array(items), Some(new)) => items[key.parse::<usize>().unwrap()] = new,
        (other, _) => panic!("cannot edit {other}"),
    }
    copy
}
