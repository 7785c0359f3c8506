//! Taking a question back: by the role that asked, the orchestrator or a human.

use super::answer::still_open;
use super::{Draft, Outcome};
use crate::code::ErrorCode;
use crate::envelope::Refusal;
use crate::event::Event;
use crate::ids::{FeatureId, QuestionId};
use crate::question::ResolutionMode;
use serde_json::json;

/// `feature.question_withdraw`
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are the arguments of the contract's table")]
pub struct Withdraw {
    pub feature_id: FeatureId,
    pub question_id: QuestionId,
    pub note: Option<String>,
}

impl Withdraw {
    pub(super) fn apply(&self, mut draft: Draft<'_>) -> Result<Outcome, Refusal> {
        draft.feature()?;
        let question = draft.question(&self.question_id)?.clone();
        let role = draft.request.caller.role;
        if role.is_worker() && role != question.asked.role {
            return Err(Refusal::new(
                ErrorCode::ForbiddenForRole,
                format!("{role} may not withdraw {}, which {} asked", question.id, question.asked.role),
            )
            .hint("only the role that asked, the orchestrator or a human takes a question back"));
        }
        let status = draft.status();
        still_open(&question, Some(draft.feature()?)).map_err(|refusal| match refusal.code {
            ErrorCode::QuestionClosed if status.is_terminal() => refusal
                .hint(format!("feature '{}' is {status}; nothing is left to withdraw", self.feature_id)),
            _ => refusal,
        })?;
        let resolution = draft.resolution(ResolutionMode::Withdrawn, self.note.clone());
        draft.emit(Event::QuestionWithdrawn { question_id: question.id.clone(), resolution });
        draft.resume(&question);
        let data =
            json!({"question_id": question.id, "status": "withdrawn", "feature_status": draft.status()});
        Ok(draft.finish(&data))
    }
}
