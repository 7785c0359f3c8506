//! A question: one durable record of something asked, its expected answer, and how it ended.

mod beside;
mod expected;
mod record;

pub use beside::Offered;
pub use expected::redacted;
pub use expected::{AnswerKind, ExpectedAnswer, against_choices};

use crate::ids::{FeatureId, OperationId, QuestionId};
use crate::policy::{DecisionPolicy, OnTimeout};
use crate::role::Role;
use crate::status::Status;
use crate::time::Timestamp;
use aop_ask::QuestionSpec;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::convert::Infallible;
use std::sync::Arc;

/// What a question is about; decides how careful a timeout is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionType {
    /// Something is unclear.
    Clarification,
    /// May I do this?
    PermissionOverride,
    /// Somebody outside has to decide.
    ExternalDecision,
    /// Is this risk acceptable?
    RiskAck,
}

impl QuestionType {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            QuestionType::Clarification => "clarification",
            QuestionType::PermissionOverride => "permission_override",
            QuestionType::ExternalDecision => "external_decision",
            QuestionType::RiskAck => "risk_ack",
        }
    }

    /// The one that these arguments of a question name.
    pub fn named_in(arguments: &Value) -> Option<Self> {
        Self::deserialize(&arguments["question_type"]).ok()
    }

    /// Whether whoever answers gives a permission or takes a risk: not by a key too many, and having seen every sign.
    pub fn grants(self) -> bool {
        match self {
            QuestionType::PermissionOverride | QuestionType::RiskAck => true,
            QuestionType::Clarification | QuestionType::ExternalDecision => false,
        }
    }

    /// Permission is never assumed: these types are declined on timeout whatever was asked for.
    pub fn decision_policy(self, wanted: Option<DecisionPolicy>) -> DecisionPolicy {
        if self.grants() {
            DecisionPolicy::Decline
        } else {
            wanted.unwrap_or(DecisionPolicy::EngineJudgement)
        }
    }
}

/// Where the feature goes when the question is closed: the status before it was asked. Kept as text when it
/// is not one we know, so that a record written by a newer version survives and falls back to `planning`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResumeStatus {
    /// A status of ours.
    Known(Status),
    /// Anything else.
    Unknown(String),
}

impl ResumeStatus {
    /// The status to return to, if the recorded one is usable.
    pub fn target(&self) -> Option<Status> {
        match self {
            ResumeStatus::Known(status) if status.is_resumable() => Some(*status),
            ResumeStatus::Known(_) | ResumeStatus::Unknown(_) => None,
        }
    }

    /// The name on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            ResumeStatus::Known(status) => status.as_str(),
            ResumeStatus::Unknown(text) => text,
        }
    }

    /// Reads a name.
    pub fn parse(text: &str) -> Self {
        Status::parse(text).map_or_else(|| ResumeStatus::Unknown(text.to_owned()), ResumeStatus::Known)
    }
}

impl Serialize for ResumeStatus {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ResumeStatus {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::text::read(deserializer, |text| Ok::<_, Infallible>(ResumeStatus::parse(text)))
    }
}

/// What happens at the deadline, frozen when the question is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpiryPolicy {
    /// Stop the feature (true) or decide by `default_decision_policy` (false).
    pub strict: bool,
    /// What a strict timeout does.
    pub on_timeout: OnTimeout,
}

/// How a question was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResolutionMode {
    /// A person answered.
    UserReply,
    /// Nobody answered; the feature was stopped.
    Expired,
    /// Nobody answered; the engine decides.
    EngineJudgement,
    /// Nobody answered; the declared default applies.
    DefaultByPolicy,
    /// Nobody answered; not permitted.
    DeclinedByPolicy,
    /// Taken back.
    Withdrawn,
}

/// The provenance of a closed question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolution {
    /// How it was closed.
    pub mode: ResolutionMode,
    /// Through which door: `cli`, `tool`, `mcp`, `http`, `terminal`, or `policy` when the clock did it.
    pub surface: String,
    /// The operation that closed it; null when the clock did it.
    pub operation_id: Option<OperationId>,
    /// A remark of whoever closed it.
    pub note: Option<String>,
}

/// Which engine session asked, so that the answer can be brought back to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineRef {
    /// The engine's name.
    pub engine: String,
    /// Its session handle.
    pub session: String,
    /// The tool call that asked, where there is one.
    pub call_id: Option<String>,
    /// The folder it ran in.
    pub cwd: String,
    /// Its version.
    pub version: Option<String>,
}

/// Where a question stands. What was said at the end is part of the state, so it cannot be there too early.
#[derive(Debug, Clone, PartialEq)]
pub enum QuestionState {
    /// Waiting.
    Open,
    /// Answered, by a person or by a declared default.
    Answered {
        /// The answer, secrets redacted.
        answer: Value,
        /// When.
        at: Timestamp,
        /// Who.
        by: String,
        /// How.
        resolution: Resolution,
    },
    /// Nobody answered in time.
    Expired {
        /// How.
        resolution: Resolution,
    },
    /// Taken back.
    Withdrawn {
        /// How.
        resolution: Resolution,
    },
}

impl QuestionState {
    /// The status on the wire.
    pub fn status(&self) -> QuestionStatus {
        match self {
            QuestionState::Open => QuestionStatus::Open,
            QuestionState::Answered { .. } => QuestionStatus::Answered,
            QuestionState::Expired { .. } => QuestionStatus::Expired,
            QuestionState::Withdrawn { .. } => QuestionStatus::Withdrawn,
        }
    }

    /// Whether the clock closed it, and nobody's operation.
    pub fn is_closed_by_clock(&self) -> bool {
        match self {
            QuestionState::Open => false,
            QuestionState::Answered { resolution, .. }
            | QuestionState::Expired { resolution }
            | QuestionState::Withdrawn { resolution } => resolution.operation_id.is_none(),
        }
    }
}

/// The status on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionStatus {
    /// Waiting.
    Open,
    /// Answered.
    Answered,
    /// Nobody answered in time.
    Expired,
    /// Taken back.
    Withdrawn,
}

impl QuestionStatus {
    /// Every status.
    pub const ALL: &[QuestionStatus] =
        &[QuestionStatus::Open, QuestionStatus::Answered, QuestionStatus::Expired, QuestionStatus::Withdrawn];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            QuestionStatus::Open => "open",
            QuestionStatus::Answered => "answered",
            QuestionStatus::Expired => "expired",
            QuestionStatus::Withdrawn => "withdrawn",
        }
    }

    /// Finds a status by its name.
    pub fn parse(name: &str) -> Option<QuestionStatus> {
        QuestionStatus::ALL.iter().copied().find(|status| status.as_str() == name)
    }
}

/// What was asked: everything that is fixed from the moment of asking.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// Whether the feature stops until it is closed.
    pub blocking: bool,
    /// What it is about.
    pub question_type: QuestionType,
    /// Who asks.
    pub role: Role,
    /// The asker's session.
    pub session_id: String,
    /// The question in words.
    pub prompt: String,
    /// Anything else the asker wants shown.
    pub details: Option<Map<String, Value>>,
    /// What an answer has to look like; `None` takes any text or object.
    pub expected_answer: Option<ExpectedAnswer>,
    /// The form, when it is one.
    pub spec: Option<QuestionSpec>,
    /// The engine's own payload; its replies are free text.
    pub interaction: Option<Map<String, Value>>,
    /// Who decides when nobody answers and the timeout is not strict.
    pub default_decision_policy: DecisionPolicy,
    /// How long it asked to wait, if it did; the policy of the time of asking gives no more.
    pub timeout_ms: Option<u64>,
    /// Which engine session asked.
    pub engine_ref: Option<EngineRef>,
}

/// One question.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "record::QuestionRecord")]
pub struct Question {
    /// Its id.
    pub id: QuestionId,
    /// The feature it belongs to.
    pub feature_id: FeatureId,
    /// What was asked. Shared: it never changes, and is by far the largest part.
    pub asked: Arc<Asked>,
    /// When it was asked.
    pub created_at: Timestamp,
    /// When it expires; `None` is never.
    pub expires_at: Option<Timestamp>,
    /// What happens then.
    pub expiry_policy: ExpiryPolicy,
    /// Where the feature returns to; `None` for a question that does not block.
    pub resume_status: Option<ResumeStatus>,
    /// The expired or withdrawn question that this one asks again.
    pub reopened_from: Option<QuestionId>,
    /// Where it stands.
    pub state: QuestionState,
}

impl Question {
    /// Whether it waits for an answer (the clock aside).
    pub fn is_open(&self) -> bool {
        self.state == QuestionState::Open
    }

    /// Whether it is open and its time is up: from `expires_at` on, inclusive.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.is_open() && self.expires_at.is_some_and(|deadline| now >= deadline)
    }

    /// Where the feature returns to, if that can be used.
    pub(crate) fn resume_target(&self) -> Option<Status> {
        self.resume_status.as_ref().and_then(ResumeStatus::target)
    }

    /// Where the feature is sent when nobody answers in time; `None` when it goes on.
    pub fn stops_at(&self) -> Option<Status> {
        let ExpiryPolicy { strict, on_timeout } = self.expiry_policy;
        (strict && self.asked.blocking).then_some(match on_timeout {
            OnTimeout::BlockFeature => Status::Blocked,
            OnTimeout::FailFeature => Status::Failed,
        })
    }

    /// The answer for whoever may have all of it; `secret` is what was put away of it. `None` when there is no answer, and
    /// when it has a secret that is no longer stored: what stands in its place is no answer.
    pub fn whole_answer(&self, secret: Option<&Value>) -> Option<Value> {
        let QuestionState::Answered { answer, .. } = &self.state else { return None };
        let is_whole = secret.is_some() || !self.asked.is_redacted(answer);
        is_whole.then(|| secret.unwrap_or(answer).clone())
    }

    /// The default that was declared for it, if there is one that would be a valid answer.
    pub fn declared_default(&self) -> Option<Value> {
        let explicit = self.asked.expected_answer.as_ref().and_then(|expected| expected.default.clone());
        explicit.or_else(|| self.asked.spec.as_ref()?.declared_default().map(|answers| answers.to_json()))
    }
}
