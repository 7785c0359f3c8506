//! Asking an expired or withdrawn question again: a new record that points at the old one and returns the
//! feature to where the old one would have.

use super::answer::still_open;
use super::create::{admit, open};
use super::{Draft, Outcome};
use crate::code::ErrorCode;
use crate::envelope::Refusal;
use crate::event::Event;
use crate::ids::{FeatureId, QuestionId};
use crate::policy::Rules;
use crate::question::{Question, QuestionState, ResumeStatus};
use crate::role::Role;
use serde_json::json;
use std::sync::Arc;

/// `feature.question_reopen`
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are the arguments of the contract's table")]
pub struct Reopen {
    pub feature_id: FeatureId,
    pub question_id: QuestionId,
    pub note: Option<String>,
}

impl Reopen {
    pub(super) fn apply(&self, mut draft: Draft<'_>, rules: &Rules) -> Result<Outcome, Refusal> {
        let status = draft.feature()?.status;
        let old = draft.question(&self.question_id)?.clone();
        match old.state {
            QuestionState::Open => return Err(not_closed(&old, "")),
            QuestionState::Answered { .. } => still_open(&old, Some(draft.feature()?))?,
            QuestionState::Expired { .. } | QuestionState::Withdrawn { .. } => {}
        }
        let is_again = |open: &&Question| open.reopened_from.as_ref() == Some(&old.id);
        if let Some(again) = draft.state.open_questions().find(is_again) {
            return Err(not_closed(again, &format!(", by which {} was asked again,", old.id)));
        }
        admit(&draft, &old.asked, rules)?;
        if let Some(note) = &self.note {
            draft.emit(Event::Noted { note: format!("reopened {}: {note}", old.id) });
        }
        let resume_status = old.resume_status.clone().unwrap_or(ResumeStatus::Known(status));
        let mut asked = Arc::clone(&old.asked);
        if asked.engine_ref.is_some() && !draft.feature()?.work.waits_for(&old) {
            // Its session was told that there is no answer: no call of it waits for one any more.
            Arc::make_mut(&mut asked).engine_ref = None;
        }
        let mut rules = rules.clone();
        if asked.role == Role::Orchestrator && old.expiry_policy.strict {
            // Behind a gate stands no engine that could decide: it stops its feature again when nobody answers.
            rules.human_input.strict = true;
            rules.human_input.on_timeout = old.expiry_policy.on_timeout;
        }
        open(&mut draft, asked, resume_status, Some(old.id), &rules);
        let id = &draft.moment.question_id;
        let data = json!({"question_id": id, "status": "open", "feature_status": draft.status()});
        Ok(draft.finish(&data))
    }
}

fn not_closed(question: &Question, why: &str) -> Refusal {
    Refusal::new(ErrorCode::QuestionConflictOpen, format!("question {}{why} is still open", question.id))
        .hint(format!("answer it: `aop answer {}`", question.id))
        .fact("open_question_id", &question.id)
}
