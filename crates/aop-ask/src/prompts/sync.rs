//! The rules of `task_sync`: how a protocol's task tools are mirrored into a plan.

use crate::spec::read::{list, member, object, one_of};
use crate::violation::{Report, close_strictly, join, show};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

const KEYS: [&str; 6] =
    ["source_tool", "target_tool", "create", "transitions", "single_in_progress", "fallback_mode"];
const STATUSES: [&str; 3] = ["pending", "in_progress", "completed"];

/// The two transitions that are worth telling the user about.
const TOLD: [(&str, &str); 2] = [("pending", "in_progress"), ("in_progress", "completed")];

/// The mapping that the compiler writes.
pub(super) fn standard() -> Value {
    let transitions: Vec<Value> =
        TOLD.iter().map(|(from, to)| json!({"from": from, "to": to, "emit_update_plan": true})).collect();
    json!({
        "source_tool": "TaskCreate", "target_tool": "update_plan",
        "create": {"emit": true, "default_status": "pending"},
        "transitions": transitions,
        "single_in_progress": true, "fallback_mode": "internal_state_only",
    })
}

/// Notes every rule that a `task_sync` breaks.
pub(super) fn task_sync(report: &mut Report, value: &Value) {
    let path = "/task_sync";
    let Some(map) = object(report, path, value, "task_sync") else { return };
    close_strictly(report, path, map, &KEYS);
    exactly(report, path, map, "source_tool", &json!("TaskCreate"));
    exactly(report, path, map, "target_tool", &json!("update_plan"));
    exactly(report, path, map, "single_in_progress", &json!(true));
    exactly(report, path, map, "fallback_mode", &json!("internal_state_only"));
    if let Some(create) = member(report, path, map, "create") {
        let path = join(path, "create");
        if let Some(map) = object(report, &path, create, "create") {
            close_strictly(report, &path, map, &["emit", "default_status"]);
            exactly(report, &path, map, "emit", &json!(true));
            exactly(report, &path, map, "default_status", &json!("pending"));
        }
    }
    transitions(report, path, map);
}

fn exactly(report: &mut Report, path: &str, map: &Map<String, Value>, key: &str, wanted: &Value) {
    if let Some(found) = member(report, path, map, key)
        && found != wanted
    {
        let message = format!("{key} is {}, but must be {wanted}", show(found));
        report.add("invalid_task_sync", &join(path, key), message, format!("write {wanted}"));
    }
}

fn transitions(report: &mut Report, path: &str, map: &Map<String, Value>) {
    let Some(value) = member(report, path, map, "transitions") else { return };
    let path = join(path, "transitions");
    let Some(items) = list(report, &path, value) else { return };
    let mut seen = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        let path = join(&path, index);
        let Some(map) = object(report, &path, item, "a transition") else { continue };
        close_strictly(report, &path, map, &["from", "to", "emit_update_plan"]);
        let from = one_of(report, &path, map, "from", &STATUSES);
        let to = one_of(report, &path, map, "to", &STATUSES);
        let (Some(from), Some(to)) = (from, to) else { continue };
        exactly(report, &path, map, "emit_update_plan", &json!(TOLD.contains(&(from, to))));
        if !seen.insert((from, to)) {
            let message = format!("the transition {from} → {to} stands twice");
            report.add("duplicate_transition", &path, message, "remove one of the two");
        }
    }
    for (from, to) in TOLD {
        if !seen.contains(&(from, to)) {
            let message = format!("the transition {from} → {to} is missing");
            report.add("missing_transition", &path, message, "add it with \"emit_update_plan\": true");
        }
    }
}
