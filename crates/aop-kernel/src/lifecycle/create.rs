//! Asking: the record, the stop of the feature and the note of it, all or nothing.

use super::{Draft, Outcome};
use crate::code::ErrorCode;
use crate::envelope::Refusal;
use crate::event::Event;
use crate::ids::{FeatureId, QuestionId};
use crate::policy::Rules;
use crate::question::{Asked, ExpiryPolicy, Question, QuestionState, QuestionStatus, ResumeStatus};
use crate::status::Status;
use serde::Serialize;
use std::sync::Arc;

/// `feature.question_create`, arguments checked.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the fields are the arguments of the contract's table")]
pub struct CreateQuestion {
    pub feature_id: FeatureId,
    pub asked: Arc<Asked>,
    /// Creates the feature under this title when there is none: `aop ask` without a feature.
    pub adhoc_title: Option<String>,
}

/// The setting that says how many questions a feature may have open, which a refusal names as a fact where as many are.
pub const MOST_OPEN: &str = "max_open_questions_per_feature";

/// What the asker is told.
#[derive(Serialize)]
struct Opened<'a> {
    question_id: &'a QuestionId,
    status: QuestionStatus,
    feature_status: Status,
    resume_status: Option<ResumeStatus>,
}

impl CreateQuestion {
    pub(super) fn apply(&self, mut draft: Draft<'_>, rules: &Rules) -> Result<Outcome, Refusal> {
        if let (None, Some(title)) = (&draft.state.feature, &self.adhoc_title) {
            draft.emit(Event::FeatureCreated { title: title.clone(), spec: None, adhoc: true });
        }
        let resume_status = ResumeStatus::Known(draft.feature()?.status);
        admit(&draft, &self.asked, rules)?;
        let shown = self.asked.blocking.then(|| resume_status.clone());
        open(&mut draft, Arc::clone(&self.asked), resume_status, None, rules);
        let data = Opened {
            question_id: &draft.moment.question_id,
            status: QuestionStatus::Open,
            feature_status: draft.status(),
            resume_status: shown,
        };
        Ok(draft.finish(&data))
    }
}

/// Whether the feature takes another question now: not terminal, asking enabled, no conflict, in this order.
pub(super) fn admit(draft: &Draft<'_>, asked: &Asked, rules: &Rules) -> Result<(), Refusal> {
    let feature = draft.feature()?;
    let id = &feature.id;
    if feature.status.is_terminal() {
        return Err(Refusal::new(
            ErrorCode::QuestionAnswerNotAllowedInTerminalState,
            format!("feature '{id}' is {} and takes no more questions", feature.status),
        )
        .fact("feature_id", id)
        .fact("status", feature.status));
    }
    if !rules.human_input.enabled {
        return Err(Refusal::new(
            ErrorCode::UnsupportedOperation,
            "nobody can be asked: policy.execution.human_input.enabled is false",
        )
        .hint(without_anybody(draft.request.caller.role.is_worker(), asked.question_type.grants())));
    }
    let conflict = |message: String, other: &QuestionId| {
        let hint = if draft.request.caller.role.is_worker() {
            // Whoever may not answer is never told to.
            format!(
                "wait until {other} is closed (over MCP: await_answer {{\"question_id\": \"{other}\"}}), then ask again; \
                 several questions go into one spec"
            )
        } else {
            format!("answer or withdraw {other} first: `aop answer {other}`")
        };
        Err(Refusal::new(ErrorCode::QuestionConflictOpen, message)
            .hint(hint)
            .fact("feature_id", id)
            .fact("open_question_id", other))
    };
    if let Some(other) = draft.state.open_questions().find(|open| asked.blocking && open.asked.blocking) {
        return conflict(format!("feature '{id}' already waits for an answer to {}", other.id), &other.id);
    }
    let limit = rules.human_input.max_open_questions_per_feature as usize;
    if draft.state.open_questions().count() >= limit
        && let Some(oldest) = draft.state.open_questions().next()
    {
        let message = format!("feature '{id}' has {} open, as many as {MOST_OPEN} admits", count(limit));
        return conflict(message, &oldest.id).map_err(|refusal| refusal.fact(MOST_OPEN, limit));
    }
    Ok(())
}

/// What to do where nobody can be asked. An agent is not invited to change the policy it works under, and nobody to take for
/// permitted what nobody has permitted.
fn without_anybody(is_worker: bool, grants: bool) -> &'static str {
    match (is_worker, grants) {
        (true, true) => {
            "nobody can permit this, so it is not permitted: go on without it, or stop and say what is missing"
        }
        (true, false) => "decide without asking, and say that you did",
        (false, true) => {
            "set it to true in aop.yaml; until then nobody can permit this, so it is not permitted"
        }
        (false, false) => "set it to true in aop.yaml, or decide without asking",
    }
}

/// Opens the question, under the id of this moment, and stops the feature when it blocks.
pub(super) fn open(
    draft: &mut Draft<'_>,
    asked: Arc<Asked>,
    resume_status: ResumeStatus,
    reopened_from: Option<QuestionId>,
    rules: &Rules,
) {
    let policy = &rules.human_input;
    let now = draft.moment.now;
    let (id, blocking, role) = (draft.moment.question_id.clone(), asked.blocking, asked.role);
    let expires_at = policy.deadline(now, asked.timeout_ms);
    let question = Question {
        id: id.clone(),
        feature_id: draft.request.command.feature_id().clone(),
        asked,
        created_at: now,
        expires_at,
        expiry_policy: ExpiryPolicy { strict: policy.strict, on_timeout: policy.on_timeout },
        resume_status: blocking.then_some(resume_status),
        reopened_from,
        state: QuestionState::Open,
    };
    let is_again = question.reopened_from.is_some();
    let owed_to_worker = is_again && blocking && role.is_worker();
    draft.emit(Event::QuestionOpened { question: Arc::new(question), owed_to_worker });
    if blocking {
        let reason = if is_again {
            let (who, whose) = (draft.request.caller.role, role.as_str());
            format!("{} asked {whose}'s question again as {id}", who.as_str())
        } else {
            [role.as_str(), " asked ", id.as_str()].concat()
        };
        draft.move_to(Status::AwaitingInput, Some(reason));
    }
}

fn count(limit: usize) -> String {
    if limit == 1 { "1 question".to_owned() } else { format!("{limit} questions") }
}
