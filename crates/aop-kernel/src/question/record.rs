//! The question record as it stands in `questions.json`, in lists and in the store: flat, every field
//! present (but `timeout_ms` only where the asker gave one), names of the contract.

use super::{
    Asked, EngineRef, ExpectedAnswer, ExpiryPolicy, Question, QuestionState, QuestionStatus, QuestionType,
    Resolution, ResumeStatus,
};
use crate::ids::{FeatureId, QuestionId};
use crate::policy::DecisionPolicy;
use crate::role::Role;
use crate::time::Timestamp;
use aop_ask::QuestionSpec;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The wire form of a [`Question`], as it is read.
#[derive(Debug, Deserialize)]
pub(super) struct QuestionRecord {
    question_id: QuestionId,
    feature_id: FeatureId,
    status: QuestionStatus,
    blocking: bool,
    question_type: QuestionType,
    role: Role,
    session_id: String,
    prompt: String,
    details: Option<Map<String, Value>>,
    expected_answer: Option<ExpectedAnswer>,
    spec: Option<QuestionSpec>,
    interaction: Option<Map<String, Value>>,
    default_decision_policy: DecisionPolicy,
    timeout_ms: Option<u64>,
    expiry_policy: ExpiryPolicy,
    engine_ref: Option<EngineRef>,
    created_at: Timestamp,
    expires_at: Option<Timestamp>,
    resume_status: Option<ResumeStatus>,
    reopened_from: Option<QuestionId>,
    answer: Option<Value>,
    answered_at: Option<Timestamp>,
    answered_by: Option<String>,
    resolution: Option<Resolution>,
}

/// The same as it is written: every record is, several times, so nothing is copied for it.
#[derive(Serialize)]
struct Written<'a> {
    question_id: &'a QuestionId,
    feature_id: &'a FeatureId,
    status: QuestionStatus,
    blocking: bool,
    question_type: QuestionType,
    role: Role,
    session_id: &'a str,
    prompt: &'a str,
    details: Option<&'a Map<String, Value>>,
    expected_answer: Option<&'a ExpectedAnswer>,
    spec: Option<&'a QuestionSpec>,
    interaction: Option<&'a Map<String, Value>>,
    default_decision_policy: DecisionPolicy,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    expiry_policy: ExpiryPolicy,
    engine_ref: Option<&'a EngineRef>,
    created_at: Timestamp,
    expires_at: Option<Timestamp>,
    resume_status: Option<&'a ResumeStatus>,
    reopened_from: Option<&'a QuestionId>,
    answer: Option<&'a Value>,
    answered_at: Option<Timestamp>,
    answered_by: Option<&'a str>,
    resolution: Option<&'a Resolution>,
}

impl Serialize for Question {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (answer, answered_at, answered_by, resolution) = match &self.state {
            QuestionState::Open => (None, None, None, None),
            QuestionState::Answered { answer, at, by, resolution } => {
                (Some(answer), Some(*at), Some(by.as_str()), Some(resolution))
            }
            QuestionState::Expired { resolution } | QuestionState::Withdrawn { resolution } => {
                (None, None, None, Some(resolution))
            }
        };
        let asked = &self.asked;
        let record = Written {
            question_id: &self.id,
            feature_id: &self.feature_id,
            status: self.state.status(),
            blocking: asked.blocking,
            question_type: asked.question_type,
            role: asked.role,
            session_id: &asked.session_id,
            prompt: &asked.prompt,
            details: asked.details.as_ref(),
            expected_answer: asked.expected_answer.as_ref(),
            spec: asked.spec.as_ref(),
            interaction: asked.interaction.as_ref(),
            default_decision_policy: asked.default_decision_policy,
            timeout_ms: asked.timeout_ms,
            expiry_policy: self.expiry_policy,
            engine_ref: asked.engine_ref.as_ref(),
            created_at: self.created_at,
            expires_at: self.expires_at,
            resume_status: self.resume_status.as_ref(),
            reopened_from: self.reopened_from.as_ref(),
            answer,
            answered_at,
            answered_by,
            resolution,
        };
        record.serialize(serializer)
    }
}

impl TryFrom<QuestionRecord> for Question {
    type Error = String;

    fn try_from(record: QuestionRecord) -> Result<Self, String> {
        let missing = |field: &str| format!("question {}: {field} is missing", record.question_id);
        let state = match record.status {
            QuestionStatus::Open => QuestionState::Open,
            QuestionStatus::Answered => QuestionState::Answered {
                answer: record.answer.ok_or_else(|| missing("answer"))?,
                at: record.answered_at.ok_or_else(|| missing("answered_at"))?,
                by: record.answered_by.ok_or_else(|| missing("answered_by"))?,
                resolution: record.resolution.ok_or_else(|| missing("resolution"))?,
            },
            QuestionStatus::Expired => {
                QuestionState::Expired { resolution: record.resolution.ok_or_else(|| missing("resolution"))? }
            }
            QuestionStatus::Withdrawn => QuestionState::Withdrawn {
                resolution: record.resolution.ok_or_else(|| missing("resolution"))?,
            },
        };
        Ok(Question {
            id: record.question_id,
            feature_id: record.feature_id,
            asked: Arc::new(Asked {
                blocking: record.blocking,
                question_type: record.question_type,
                role: record.role,
                session_id: record.session_id,
                prompt: record.prompt,
                details: record.details,
                expected_answer: record.expected_answer,
                spec: record.spec,
                interaction: record.interaction,
                default_decision_policy: record.default_decision_policy,
                timeout_ms: record.timeout_ms,
                engine_ref: record.engine_ref,
            }),
            created_at: record.created_at,
            expires_at: record.expires_at,
            expiry_policy: record.expiry_policy,
            resume_status: record.resume_status,
            reopened_from: record.reopened_from,
            state,
        })
    }
}
