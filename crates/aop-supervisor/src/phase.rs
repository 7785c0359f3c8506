//! The phases: who works in them, what their result looks like, where they lead.

use aop_kernel::role::Role as KernelRole;
use aop_kernel::status::Status;
use aop_turn::Role;
use serde_json::{Map, Value};
use std::sync::LazyLock;

static PLAN: LazyLock<Value> = LazyLock::new(|| read(include_str!("../../../schemas/plan.schema.json")));
static CHANGES: LazyLock<Value> =
    LazyLock::new(|| read(include_str!("../../../schemas/changes.schema.json")));
static VERDICT: LazyLock<Value> =
    LazyLock::new(|| read(include_str!("../../../schemas/verdict.schema.json")));

fn read(text: &str) -> Value {
    // A test reads each of them; what is no JSON here is no program either.
    serde_json::from_str(text).unwrap_or_default()
}

/// The JSON Schema of a role's result.
pub fn schema_of(role: Role) -> &'static Value {
    match role {
        Role::Planner => &PLAN,
        Role::Builder => &CHANGES,
        Role::Qa => &VERDICT,
    }
}

/// The name of a role's result, on its shelf and in prompts.
pub(crate) fn result_name(role: Role) -> &'static str {
    match role {
        Role::Planner => "plan",
        Role::Builder => "changes",
        Role::Qa => "verdict",
    }
}

/// The kernel's name of a worker.
pub(crate) fn kernel_role(role: Role) -> KernelRole {
    match role {
        Role::Planner => KernelRole::Planner,
        Role::Builder => KernelRole::Builder,
        Role::Qa => KernelRole::Qa,
    }
}

/// The worker of a phase.
pub(crate) fn worker(status: Status) -> Option<Role> {
    status.worker().and_then(worker_role)
}

/// A role of the kernel as a worker.
pub(crate) fn worker_role(role: KernelRole) -> Option<Role> {
    match role {
        KernelRole::Planner => Some(Role::Planner),
        KernelRole::Builder => Some(Role::Builder),
        KernelRole::Qa => Some(Role::Qa),
        KernelRole::Orchestrator | KernelRole::Human => None,
    }
}

/// Whether the feature goes on after this result. Qa alone can say no.
pub(crate) fn goes_on(role: Role, result: &Map<String, Value>) -> bool {
    match role {
        Role::Planner | Role::Builder => true,
        Role::Qa => result.get("verdict").and_then(Value::as_str) == Some("pass"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schemas_can_be_read() {
        for role in Role::ALL {
            assert_eq!(schema_of(*role)["type"], "object", "{role}");
        }
    }
}
