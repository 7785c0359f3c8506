//! What only aop's own code does: turns, checks, merges. No tool of the contract leads here.

use super::digest::digest;
use crate::envelope::Refusal;
use crate::ids::OperationId;
use crate::lifecycle::{Command, Request};
use crate::role::{Caller, Role};

/// The request of a command of the orchestrator. The operation id is derived from what is done (the claim of a
/// turn, for instance), so that doing it again after a crash is a replay.
pub fn runner_request(
    command: Command,
    operation_id: &str,
    surface: &'static str,
) -> Result<Request, Refusal> {
    let operation_id = OperationId::parse(operation_id)?;
    let digest = digest("runner", Role::Orchestrator, &format!("{command:?}"));
    Ok(Request { caller: Caller::new(Role::Orchestrator), surface, operation_id, digest, command })
}
