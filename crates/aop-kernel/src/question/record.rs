//! The question record as it stands in `questions.json`, in lists and in the store: flat, every field
//! present, names of the contract.

use super::{
    Asked, EngineRef, ExpectedAnswer, ExpiryPolicy, Question, QuestionState, QuestionStatus, QuestionType,
    Resolution, ResumeStatus,
};
use crate::ids::{FeatureId, QuestionId};
use crate::policy::DecisionPolicy;
use crate::role::Role;
use crate::time::Timestamp;
use aop_ask::QuestionSpec;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The wire form of a [`Question`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the contract documents the fields of a question record")]
pub struct QuestionRecord {
    pub question_id: QuestionId,
    pub feature_id: FeatureId,
    pub status: QuestionStatus,
    pub blocking: bool,
    pub question_type: QuestionType,
    pub role: Role,
    pub session_id: String,
    pub prompt: String,
    pub details: Option<Map<String, Value>>,
    pub expected_answer: Option<ExpectedAnswer>,
    pub spec: Option<QuestionSpec>,
    pub interaction: Option<Map<String, Value>>,
    pub default_decision_policy: DecisionPolicy,
    pub expiry_policy: ExpiryPolicy,
    pub engine_ref: Option<EngineRef>,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub resume_status: Option<ResumeStatus>,
    pub reopened_from: Option<QuestionId>,
    pub answer: Option<Value>,
    pub answered_at: Option<Timestamp>,
    pub answered_by: Option<String>,
    pub resolution: Option<Resolution>,
}

impl From<Question> for QuestionRecord {
    fn from(question: Question) -> Self {
        let status = question.state.status();
        let (answer, answered_at, answered_by, resolution) = match question.state {
            QuestionState::Open => (None, None, None, None),
            QuestionState::Answered { answer, at, by, resolution } => {
                (Some(answer), Some(at), Some(by), Some(resolution))
            }
            QuestionState::Expired { resolution } | QuestionState::Withdrawn { resolution } => {
                (None, None, None, Some(resolution))
            }
        };
        let asked = question.asked;
        QuestionRecord {
            question_id: question.id,
            feature_id: question.feature_id,
            status,
            blocking: asked.blocking,
            question_type: asked.question_type,
            role: asked.role,
            session_id: asked.session_id,
            prompt: asked.prompt,
            details: asked.details,
            expected_answer: asked.expected_answer,
            spec: asked.spec,
            interaction: asked.interaction,
            default_decision_policy: asked.default_decision_policy,
            expiry_policy: question.expiry_policy,
            engine_ref: asked.engine_ref,
            created_at: question.created_at,
            expires_at: question.expires_at,
            resume_status: question.resume_status,
            reopened_from: question.reopened_from,
            answer,
            answered_at,
            answered_by,
            resolution,
        }
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
            asked: Asked {
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
                engine_ref: record.engine_ref,
            },
            created_at: record.created_at,
            expires_at: record.expires_at,
            expiry_policy: record.expiry_policy,
            resume_status: record.resume_status,
            reopened_from: record.reopened_from,
            state,
        })
    }
}
