//! A feature: one piece of work with a status, and the record of it that lists and files show.

use crate::ids::{FeatureId, QuestionId};
use crate::question::ResumeStatus;
use crate::role::Role;
use crate::status::{ActivityState, Held, Status};
use crate::time::Timestamp;
use crate::work::Work;
use serde::{Deserialize, Serialize};

/// What a feature in `awaiting_input` waits for. Present exactly then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// The blocking question.
    pub question_id: QuestionId,
    /// Since when.
    pub since: Timestamp,
    /// Whose question it is.
    pub role: Role,
    /// Where the feature returns to.
    pub resume_status: ResumeStatus,
    /// Why it stood there, in words, where nobody works by themselves: then it says what a person can do. Records of
    /// earlier versions lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stood_because: Option<String>,
}

/// One feature, as the store keeps it: what it does not have is left out. Its specification is kept beside it: it never
/// changes and may be long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feature {
    /// Its id.
    pub id: FeatureId,
    /// Its title.
    pub title: String,
    /// Made by `aop ask` for a single question; never scheduled.
    pub adhoc: bool,
    /// Where it stands.
    pub status: Status,
    /// Since when it stands there. Records of earlier versions lack it until their status changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_since: Option<Timestamp>,
    /// Why it stands there, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_reason: Option<String>,
    /// The phase that `blocked` came from; `aop retry` returns there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_from: Option<Status>,
    /// What it waits for; `Some` exactly in `awaiting_input`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// How many of its questions are open.
    pub open_question_count: u32,
    /// The worker role that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// The engine that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// What runners did for it, as far as the next step depends on it.
    #[serde(default)]
    pub work: Work,
    /// Counts its events; two projections of one feature are ordered by it.
    pub version: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// `human_input` of the state projection and of `feature.get_context`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the contract documents the fields of human_input")]
pub struct HumanInputState {
    pub open_question_id: Option<QuestionId>,
    pub open_question_count: u32,
    pub awaiting_since: Option<Timestamp>,
    pub requested_by_role: Option<Role>,
    pub resume_status: Option<ResumeStatus>,
}

/// The record of a feature as every surface shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the contract documents the fields of a feature record")]
pub struct FeatureRecord {
    pub feature_id: FeatureId,
    pub title: String,
    pub status: Status,
    pub status_since: Timestamp,
    pub status_reason: Option<String>,
    pub activity_state: ActivityState,
    pub open_question_count: u32,
    pub open_question_id: Option<QuestionId>,
    pub awaiting_since: Option<Timestamp>,
    pub requested_by_role: Option<Role>,
    pub resume_status: Option<ResumeStatus>,
    pub blocked_from: Option<Status>,
    pub role: Option<Role>,
    pub engine: Option<String>,
    pub adhoc: bool,
    pub version: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Feature {
    /// The projection of what it waits for: nulls unless it is `awaiting_input`.
    pub fn human_input(&self) -> HumanInputState {
        let waiting = self.waiting.as_ref();
        HumanInputState {
            open_question_id: waiting.map(|waiting| waiting.question_id.clone()),
            open_question_count: self.open_question_count,
            awaiting_since: waiting.map(|waiting| waiting.since),
            requested_by_role: waiting.map(|waiting| waiting.role),
            resume_status: waiting.map(|waiting| waiting.resume_status.clone()),
        }
    }

    /// The record. A turn or check whose end is not committed holds the feature, whoever else may.
    pub fn record(&self, held: Held) -> FeatureRecord {
        let human_input = self.human_input();
        let held = if self.work.is_under_way() { Held::Yes } else { held };
        FeatureRecord {
            feature_id: self.id.clone(),
            title: self.title.clone(),
            status: self.status,
            // A record of an earlier version says since when it waits, or only when it last changed.
            status_since: self.status_since.or(human_input.awaiting_since).unwrap_or(self.updated_at),
            status_reason: self.status_reason.clone(),
            activity_state: ActivityState::of(self.status, held),
            open_question_count: human_input.open_question_count,
            open_question_id: human_input.open_question_id,
            awaiting_since: human_input.awaiting_since,
            requested_by_role: human_input.requested_by_role,
            resume_status: human_input.resume_status,
            blocked_from: self.blocked_from,
            role: self.role,
            engine: self.engine.clone(),
            adhoc: self.adhoc,
            version: self.version,
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_record_of_an_earlier_version_that_says_who_opened_the_question_is_read_as_any_other() {
        let record = json!({"question_id": "q_01ARZ3NDEKTSV4RRFFQ69G5FAV", "since": "2026-01-01T00:00:00.000Z",
            "role": "builder", "resume_status": "building"});
        let mut earlier = record.clone();
        earlier["by_human"] = json!(true);
        let read = |record| serde_json::from_value::<Waiting>(record).unwrap();
        assert_eq!(read(earlier), read(record));
    }
}
