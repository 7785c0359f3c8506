//! What only aop's own code does: turns, checks, merges. No tool of the contract leads here.

use super::digest::digest;
use crate::ids::OperationId;
use crate::lifecycle::{Command, Merge, Request};
use crate::own::OwnId;
use crate::role::{Caller, Role};

/// The request of a command of the orchestrator. The operation id is derived from what is done (the claim of a
/// turn, for instance), so that doing it again after a crash is a replay.
pub fn runner_request(command: Command, id: OwnId, surface: &'static str) -> Request {
    request(command, id.into_operation(), surface)
}

/// The request of `aop merge`, whose operation id is its caller's.
pub fn merge_request(merge: Merge, operation_id: OperationId, surface: &'static str) -> Request {
    request(Command::Merge(merge), operation_id, surface)
}

fn request(command: Command, operation_id: OperationId, surface: &'static str) -> Request {
    let digest = digest("runner", Role::Orchestrator, &format!("{command:?}"));
    Request { caller: Caller::new(Role::Orchestrator), surface, operation_id, digest, command }
}
