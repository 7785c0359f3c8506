//! What an operator does that no tool of the contract does: `aop cancel` and `aop retry`.

use super::digest::{Sorted, digest};
use crate::code::ErrorCode;
use crate::envelope::Refusal;
use crate::ids::{FeatureId, OperationId};
use crate::lifecycle::{Cancel, Command, Request, Retry};
use crate::role::Caller;
use serde_json::json;

/// A command of people and the orchestrator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperatorCommand {
    /// `aop cancel`
    Cancel,
    /// `aop retry`
    Retry,
}

impl OperatorCommand {
    /// The request for one feature; refused to workers.
    pub fn request(
        self,
        caller: &Caller,
        feature_id: FeatureId,
        operation_id: OperationId,
        surface: &'static str,
    ) -> Result<Request, Refusal> {
        let word = match self {
            OperatorCommand::Cancel => "cancel",
            OperatorCommand::Retry => "retry",
        };
        if caller.role.is_worker() {
            let message = format!("{} may not {word}", caller.role);
            return Err(Refusal::new(ErrorCode::ForbiddenForRole, message).fact("role", caller.role));
        }
        let normal = json!({"feature_id": feature_id});
        let digest = digest(&format!("feature.{word}"), caller.role, &Sorted(&normal));
        let command = match self {
            OperatorCommand::Cancel => Command::Cancel(Cancel { feature_id }),
            OperatorCommand::Retry => Command::Retry(Retry { feature_id }),
        };
        Ok(Request { caller: caller.clone(), surface, operation_id, digest, command })
    }
}
