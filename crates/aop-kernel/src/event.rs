//! What happened, as data, and the one function that turns it into state. Live commands and replay of the
//! log both go through [`Snapshot::evolve`], so the log can always rebuild what the tables say.

use crate::feature::{Feature, Waiting};
use crate::ids::{FeatureId, OperationId, QuestionId};
use crate::question::{Question, QuestionState, Resolution, ResumeStatus};
use crate::role::Role;
use crate::status::Status;
use crate::time::Timestamp;
use crate::work::{CheckName, TurnEnd, Work};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// Something that happened to a feature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all_fields = "snake_case")]
#[expect(missing_docs, reason = "the fields are those of the records they change")]
pub enum Event {
    /// The feature came into being, in `planning`.
    #[serde(rename = "feature.created")]
    FeatureCreated { title: String, spec: Option<String>, adhoc: bool },
    /// The status moved. `turn_stays`: into another phase in the middle of a turn, which is in hand until its end is
    /// committed, too.
    #[serde(rename = "feature.status_changed")]
    StatusChanged {
        from: Status,
        to: Status,
        reason: Option<String>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        turn_stays: bool,
    },
    /// Somebody wrote into the decision log.
    #[serde(rename = "feature.noted")]
    Noted { note: String },
    /// A worker's turn began, under a claim that names it for ever.
    #[serde(rename = "turn.began")]
    TurnBegan {
        claim: String,
        epoch: u64,
        role: Role,
        engine: String,
        attempt: u32,
        reply_to: Option<QuestionId>,
    },
    /// A turn that was cut off goes on under the same claim. `attempt`: where a person had its phase counted anew.
    #[serde(rename = "turn.continued")]
    TurnContinued {
        claim: String,
        epoch: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt: Option<u32>,
    },
    /// A turn came to its end.
    #[serde(rename = "turn.ended")]
    TurnEnded { claim: String, role: Role, end: TurnEnd },
    /// Check commands began.
    #[serde(rename = "check.began")]
    CheckBegan { name: CheckName, epoch: u64, commit: String },
    /// Check commands ended.
    #[serde(rename = "check.ended")]
    CheckEnded { name: CheckName, commit: String, passed: bool, note: String },
    /// The feature's commit was brought into a branch.
    #[serde(rename = "feature.merged")]
    Merged { commit: String, merge_commit: String, into: String },
    /// A question was asked. `owed_to_worker`: a person asked a worker's question again, and whatever the worker was
    /// told before and did since, it has to be told this end.
    #[serde(rename = "question.opened")]
    QuestionOpened {
        question: Arc<Question>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        owed_to_worker: bool,
    },
    /// It was answered, by a person or by a declared default. Secrets are redacted here.
    #[serde(rename = "question.answered")]
    QuestionAnswered { question_id: QuestionId, answer: Value, answered_by: String, resolution: Resolution },
    /// Nobody answered in time.
    #[serde(rename = "question.expired")]
    QuestionExpired { question_id: QuestionId, resolution: Resolution },
    /// It was taken back.
    #[serde(rename = "question.withdrawn")]
    QuestionWithdrawn { question_id: QuestionId, resolution: Resolution },
}

impl Event {
    /// The type on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Event::FeatureCreated { .. } => "feature.created",
            Event::StatusChanged { .. } => "feature.status_changed",
            Event::Noted { .. } => "feature.noted",
            Event::TurnBegan { .. } => "turn.began",
            Event::TurnContinued { .. } => "turn.continued",
            Event::TurnEnded { .. } => "turn.ended",
            Event::CheckBegan { .. } => "check.began",
            Event::CheckEnded { .. } => "check.ended",
            Event::Merged { .. } => "feature.merged",
            Event::QuestionOpened { .. } => "question.opened",
            Event::QuestionAnswered { .. } => "question.answered",
            Event::QuestionExpired { .. } => "question.expired",
            Event::QuestionWithdrawn { .. } => "question.withdrawn",
        }
    }

    /// The question it is about, if it is about one.
    pub fn question_id(&self) -> Option<&QuestionId> {
        match self {
            Event::QuestionOpened { question, .. } => Some(&question.id),
            Event::QuestionAnswered { question_id, .. }
            | Event::QuestionExpired { question_id, .. }
            | Event::QuestionWithdrawn { question_id, .. } => Some(question_id),
            Event::FeatureCreated { .. }
            | Event::StatusChanged { .. }
            | Event::Noted { .. }
            | Event::TurnBegan { .. }
            | Event::TurnContinued { .. }
            | Event::TurnEnded { .. }
            | Event::CheckBegan { .. }
            | Event::CheckEnded { .. }
            | Event::Merged { .. } => None,
        }
    }
}

/// Who made an event happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    /// A worker.
    Planner,
    /// A worker.
    Builder,
    /// A worker.
    Qa,
    /// aop's own code.
    Orchestrator,
    /// A person.
    Human,
    /// The clock, under a written policy.
    Policy,
}

impl Actor {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Actor::Planner => Role::Planner.as_str(),
            Actor::Builder => Role::Builder.as_str(),
            Actor::Qa => Role::Qa.as_str(),
            Actor::Orchestrator => Role::Orchestrator.as_str(),
            Actor::Human => Role::Human.as_str(),
            Actor::Policy => "policy",
        }
    }
}

impl From<Role> for Actor {
    fn from(role: Role) -> Self {
        match role {
            Role::Planner => Actor::Planner,
            Role::Builder => Actor::Builder,
            Role::Qa => Actor::Qa,
            Role::Orchestrator => Actor::Orchestrator,
            Role::Human => Actor::Human,
        }
    }
}

/// An event with its time and its author, ready to be committed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stamped {
    /// The feature it happened to.
    pub feature_id: FeatureId,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: Actor,
    /// Under which operation; none when the clock did it.
    pub operation_id: Option<OperationId>,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}

/// A committed event: it has its place in the project's log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// 1, 2, 3 … per project, without gaps.
    pub seq: u64,
    /// The event.
    #[serde(flatten)]
    pub stamped: Stamped,
}

/// What a command is decided on: the feature, its open questions and the one the command names. Closed
/// questions stay in the store, so the cost does not grow with history. What an event does not change is shared with
/// whoever else holds it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Snapshot {
    /// The feature; `None` before it is created.
    pub feature: Option<Arc<Feature>>,
    /// Its open questions, and the named one.
    pub questions: Vec<Arc<Question>>,
}

impl Snapshot {
    /// The feature, for whoever takes it away.
    pub fn into_feature(self) -> Option<Feature> {
        self.feature.map(Arc::unwrap_or_clone)
    }

    /// The question with this id, if the snapshot holds it.
    pub fn question(&self, id: &QuestionId) -> Option<&Question> {
        self.questions.iter().find(|question| question.id == *id).map(|question| &**question)
    }

    /// The open questions, oldest first.
    pub fn open_questions(&self) -> impl Iterator<Item = &Question> {
        self.questions.iter().map(|question| &**question).filter(|question| question.is_open())
    }

    /// Applies one event. The only function that changes a feature or a question.
    pub fn evolve(&mut self, stamped: &Stamped) {
        let at = stamped.at;
        match &stamped.event {
            Event::FeatureCreated { title, spec: _, adhoc } => {
                self.feature = Some(Arc::new(Feature {
                    id: stamped.feature_id.clone(),
                    title: title.clone(),
                    adhoc: *adhoc,
                    status: Status::Planning,
                    status_since: Some(at),
                    status_reason: None,
                    blocked_from: None,
                    waiting: None,
                    open_question_count: 0,
                    role: None,
                    engine: None,
                    work: Work::default(),
                    version: 0,
                    created_at: at,
                    updated_at: at,
                }));
            }
            Event::StatusChanged { from, to, reason, turn_stays } => {
                self.move_to(*from, *to, reason.as_deref(), *turn_stays, stamped);
            }
            Event::Noted { .. } => {}
            Event::TurnBegan { .. }
            | Event::TurnContinued { .. }
            | Event::TurnEnded { .. }
            | Event::CheckBegan { .. }
            | Event::CheckEnded { .. }
            | Event::Merged { .. } => {
                if let Some(feature) = self.feature_mut() {
                    feature.worked(&stamped.event, at);
                }
            }
            Event::QuestionOpened { question, owed_to_worker } => {
                self.questions.push(Arc::clone(question));
                if let Some(feature) = self.feature_mut() {
                    feature.open_question_count += 1;
                    feature.work.asked_again(question, *owed_to_worker);
                }
            }
            Event::QuestionAnswered { question_id, answer, answered_by, resolution } => {
                let state = QuestionState::Answered {
                    answer: answer.clone(),
                    at,
                    by: answered_by.clone(),
                    resolution: resolution.clone(),
                };
                self.close(question_id, state);
            }
            Event::QuestionExpired { question_id, resolution } => {
                self.close(question_id, QuestionState::Expired { resolution: resolution.clone() });
            }
            Event::QuestionWithdrawn { question_id, resolution } => {
                self.close(question_id, QuestionState::Withdrawn { resolution: resolution.clone() });
            }
        }
        if let Some(feature) = self.feature_mut() {
            feature.version += 1;
            feature.updated_at = feature.updated_at.max(at);
        }
    }

    fn feature_mut(&mut self) -> Option<&mut Feature> {
        self.feature.as_mut().map(Arc::make_mut)
    }

    fn close(&mut self, id: &QuestionId, state: QuestionState) {
        let open = self.questions.iter_mut().find(|question| question.id == *id && question.is_open());
        if let Some(question) = open {
            Arc::make_mut(question).state = state;
            if let Some(feature) = self.feature_mut() {
                feature.open_question_count = feature.open_question_count.saturating_sub(1);
            }
        }
    }

    fn move_to(
        &mut self,
        from: Status,
        to: Status,
        reason: Option<&str>,
        turn_stays: bool,
        stamped: &Stamped,
    ) {
        let blocking = self.questions.iter().find(|question| question.is_open() && question.asked.blocking);
        let waiting = (to == Status::AwaitingInput).then_some(blocking).flatten().map(|question| Waiting {
            question_id: question.id.clone(),
            since: stamped.at,
            role: question.asked.role,
            // A blocking question always has one; the status before it is what it would be.
            resume_status: question.resume_status.clone().unwrap_or(ResumeStatus::Known(from)),
            stood_because: self
                .feature
                .as_ref()
                .filter(|_| from.stands_still() && question.resume_target() == Some(from))
                .and_then(|feature| feature.status_reason.clone()),
        });
        let Some(feature) = self.feature_mut() else { return };
        feature.blocked_from = match (from, to) {
            // While a blocked feature waits for an answer it still knows the phase it came from.
            (Status::Blocked, Status::AwaitingInput) => feature.blocked_from,
            // So does one that will be blocked: its question was first asked while it was.
            (from, Status::AwaitingInput) => waiting
                .as_ref()
                .and_then(|waiting| waiting.resume_status.target())
                .filter(|to| *to == Status::Blocked)
                .map(|_| from),
            (Status::AwaitingInput, Status::Blocked) => {
                let asked_in = feature.waiting.as_ref().and_then(|waiting| waiting.resume_status.target());
                feature.blocked_from.or(asked_in).or(Some(Status::Planning))
            }
            (from, Status::Blocked) => Some(from),
            _ => None,
        };
        feature.work.status_changed(from, to, turn_stays);
        feature.status = to;
        feature.status_since = Some(stamped.at);
        feature.status_reason = reason.map(str::to_owned);
        feature.waiting = waiting;
    }
}
