//! What runners have done for a feature, as far as the next step depends on it: the turn or check under way, how
//! often something was tried, and what a parked session still has to be told. Changed by events alone.

use crate::code::ErrorCode;
use crate::event::Event;
use crate::feature::Feature;
use crate::ids::QuestionId;
use crate::question::Question;
use crate::role::Role;
use crate::status::Status;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// The work on a feature.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Work {
    /// The turn whose end is not committed, also when its runner is dead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnInHand>,
    /// The check whose end is not committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckInHand>,
    /// The phase that the counters below belong to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Status>,
    /// How many turns have begun.
    pub turns: u64,
    /// How many of them in this phase.
    pub attempt: u32,
    /// How many of the last ones failed, one after the other.
    pub failures: u32,
    /// How often the builder got its work back since a person last had a hand in it.
    pub returns: u32,
    /// The phase's worker is done: it goes on (true) or back to the builder (false).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished: Option<bool>,
    /// The questions whose end their sessions have not been told, in the order in which they are told. Mostly one.
    #[serde(rename = "reply", with = "one_or_more", skip_serializing_if = "Vec::is_empty")]
    pub replies: Vec<PendingReply>,
    /// The commit that passed the checks after qa.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checked: Option<String>,
    /// Where it was merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged: Option<MergeRecord>,
}

/// A turn under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnInHand {
    /// What names it for ever.
    pub claim: String,
    /// The fencing epoch of whoever runs it: its end is taken from nobody else.
    pub epoch: u64,
    /// In which role.
    pub role: Role,
    /// The question whose end it began with.
    pub reply_to: Option<QuestionId>,
    /// Since when.
    pub since: Timestamp,
}

/// A check under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckInHand {
    /// Which.
    pub name: CheckName,
    /// The fencing epoch of whoever runs it.
    pub epoch: u64,
    /// Since when.
    pub since: Timestamp,
}

/// A session that waits for the end of its question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingReply {
    /// The question.
    pub question_id: QuestionId,
    /// Whose session it is.
    pub role: Role,
}

/// A merge that was committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are those of the event")]
pub struct MergeRecord {
    pub commit: String,
    pub merge_commit: String,
    pub into: String,
}

/// Which checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckName {
    /// After building.
    Fast,
    /// After qa.
    Full,
}

impl CheckName {
    /// The phase at whose end it runs.
    pub fn phase(self) -> Status {
        match self {
            CheckName::Fast => Status::Building,
            CheckName::Full => Status::Qa,
        }
    }
}

impl fmt::Display for CheckName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CheckName::Fast => "fast",
            CheckName::Full => "full",
        })
    }
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum TurnEnd {
    /// The work of the phase is done.
    Final {
        /// Plan, summary or verdict.
        result: Map<String, Value>,
        /// Whether the feature goes on; false sends it back to the builder.
        goes_on: bool,
    },
    /// It asked, and the session waits for the answer.
    AskUser {
        /// The question.
        question_id: QuestionId,
        /// Whether the feature stops until it is closed.
        blocking: bool,
        /// What others asked in the worker's name meanwhile, and whose end the session has not been told either.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        also: Vec<QuestionId>,
        /// Whether nobody knows that the session has read what the turn began with: somebody else's question cut it off.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unread: bool,
    },
    /// It failed.
    Error {
        /// Why, for programs.
        code: String,
        /// Why, for people.
        message: String,
        /// Whether the reply that it began with has reached the session.
        delivered: bool,
    },
}

impl TurnEnd {
    /// That of a turn whose feature went elsewhere in the middle of it. `delivered`: the reply that it began with has
    /// reached the session.
    pub fn cut_off(to: Status, delivered: bool) -> Self {
        let code = ErrorCode::VersionConflict.as_str().to_owned();
        let message = format!("it was cut off, and the feature went to {to}");
        TurnEnd::Error { code, message, delivered }
    }

    pub(crate) fn in_words(&self) -> String {
        match self {
            TurnEnd::Final { result, goes_on } => {
                let said = ["summary", "verdict"].iter().find_map(|key| result.get(*key)?.as_str());
                let how = if *goes_on { "finished" } else { "sent it back" };
                said.map_or_else(|| how.to_owned(), |said| format!("{how}: {said}"))
            }
            TurnEnd::AskUser { question_id, blocking: true, .. } => {
                format!("is waiting for {question_id}")
            }
            TurnEnd::AskUser { question_id, blocking: false, .. } => {
                format!("asked {question_id} and need not wait")
            }
            TurnEnd::Error { code, message, .. } => format!("failed ({code}): {message}"),
        }
    }
}

impl Work {
    /// Whether a turn or a check is under way.
    pub fn is_under_way(&self) -> bool {
        self.turn.is_some() || self.check.is_some()
    }

    /// The question whose end the session of this role is told next.
    pub fn owed_to(&self, role: Role) -> Option<&QuestionId> {
        self.replies.iter().find(|reply| reply.role == role).map(|reply| &reply.question_id)
    }

    /// Whether the session that asked has not been told how it ended: its call is still open.
    pub(crate) fn waits_for(&self, question: &Question) -> bool {
        let asked_now =
            |turn: &TurnInHand| turn.role == question.asked.role && question.created_at >= turn.since;
        self.replies.iter().any(|reply| reply.question_id == question.id)
            || self.turn.as_ref().is_some_and(asked_now)
    }

    /// A question was asked again: who waits for its end waits for that of the new one. `is_owed`: a worker is told it
    /// also when it waits no more, and until then is not done, whatever it did without the answer.
    pub(crate) fn asked_again(&mut self, new: &Question, is_owed: bool) {
        let (Some(old), role) = (&new.reopened_from, new.asked.role) else { return };
        if let Some(reply) = self.replies.iter_mut().find(|reply| reply.question_id == *old) {
            reply.question_id = new.id.clone();
        }
        if is_owed {
            self.owe(&new.id, role);
            if self.is_phase_of(role) {
                (self.finished, self.check) = (None, None);
            }
        }
    }

    fn owe(&mut self, question_id: &QuestionId, role: Role) {
        if !self.replies.iter().any(|reply| reply.question_id == *question_id) {
            self.replies.push(PendingReply { question_id: question_id.clone(), role });
        }
    }

    /// Whether this status leaves the phase so far in the middle of a turn.
    pub(crate) fn is_left_by(&self, to: Status) -> bool {
        self.turn.is_some() && to.worker().is_some() && self.phase != Some(to)
    }

    /// Whether this worker has the phase that the counters belong to.
    pub(crate) fn is_phase_of(&self, role: Role) -> bool {
        self.phase.and_then(Status::worker) == Some(role)
    }

    /// A phase that is entered anew counts from the start; one that is returned to after a question goes on.
    pub(crate) fn status_changed(&mut self, from: Status, to: Status, turn_stays: bool) {
        if to.is_terminal() {
            (self.turn, self.check) = (None, None);
            self.replies.clear();
        }
        if from == Status::Blocked && to != Status::AwaitingInput {
            // A person sent it on: what failed before counts no more.
            (self.attempt, self.failures, self.returns) = (0, 0, 0);
        }
        if from == Status::Qa && to == Status::Building {
            self.returns += 1;
        }
        if to.worker().is_some() && self.phase != Some(to) {
            // The worker of another phase has no business here any more. What its turn in hand has asked and was to be told
            // is owed to it all the same, so that turn stays until its end says what; logs of earlier versions forget it.
            self.turn.take_if(|_| !turn_stays);
            (self.check, self.finished) = (None, None);
            (self.attempt, self.failures) = (0, 0);
            self.phase = Some(to);
            self.checked = None;
        }
        if to.worker().is_some_and(|worker| self.owed_to(worker).is_some()) {
            // What passed did so before the worker had its answer.
            self.checked = None;
        }
    }
}

impl Feature {
    /// What an event of the runner's does.
    pub(crate) fn worked(&mut self, event: &Event, at: Timestamp) {
        let phase = self.status;
        let work = &mut self.work;
        match event {
            Event::TurnBegan { claim, epoch, role, engine, attempt, reply_to } => {
                work.turns += 1;
                work.attempt = *attempt;
                work.phase = Some(phase);
                work.checked = None;
                work.replies.retain(|reply| Some(&reply.question_id) != reply_to.as_ref());
                let (claim, reply_to) = (claim.clone(), reply_to.clone());
                work.turn = Some(TurnInHand { claim, epoch: *epoch, role: *role, reply_to, since: at });
                self.role = Some(*role);
                self.engine = Some(engine.clone());
            }
            Event::TurnContinued { epoch, attempt, .. } => {
                if let Some(turn) = &mut work.turn {
                    turn.epoch = *epoch;
                }
                work.attempt = attempt.unwrap_or(work.attempt);
            }
            Event::TurnEnded { role, end, .. } => work.turn_ended(*role, end),
            Event::CheckBegan { name, epoch, .. } => {
                work.check = Some(CheckInHand { name: *name, epoch: *epoch, since: at });
            }
            Event::CheckEnded { name, commit, passed, .. } => {
                work.check = None;
                match (name, passed) {
                    (CheckName::Fast, true) => {}
                    (CheckName::Full, true) => work.checked = Some(commit.clone()),
                    (CheckName::Fast, false) => {
                        work.finished = None;
                        work.returns += 1;
                    }
                    (CheckName::Full, false) => work.finished = Some(false),
                }
            }
            Event::Merged { commit, merge_commit, into } => {
                let (commit, merge_commit, into) = (commit.clone(), merge_commit.clone(), into.clone());
                work.merged = Some(MergeRecord { commit, merge_commit, into });
            }
            Event::FeatureCreated { .. }
            | Event::StatusChanged { .. }
            | Event::Noted { .. }
            | Event::QuestionOpened { .. }
            | Event::QuestionAnswered { .. }
            | Event::QuestionExpired { .. }
            | Event::QuestionWithdrawn { .. } => {}
        }
    }
}

impl Work {
    fn turn_ended(&mut self, role: Role, end: &TurnEnd) {
        let turn = self.turn.take();
        let is_in_phase = self.is_phase_of(role);
        if is_in_phase {
            self.failures = if matches!(end, TurnEnd::Error { .. }) { self.failures + 1 } else { 0 };
        }
        match end {
            TurnEnd::Final { goes_on, .. } if is_in_phase => {
                // Whoever has not been told everything takes another turn.
                self.finished = self.owed_to(role).is_none().then_some(*goes_on);
            }
            // It changes nothing about the phase that the feature is in by now.
            TurnEnd::Final { .. } => {}
            TurnEnd::AskUser { question_id, blocking, also, unread } => {
                self.owe_again(turn.filter(|_| *unread), role);
                for owed in blocking.then_some(question_id).into_iter().chain(also) {
                    self.owe(owed, role);
                }
            }
            TurnEnd::Error { delivered, .. } => {
                self.owe_again(turn.filter(|_| !delivered), role);
            }
        }
    }

    /// Nobody has told the session yet what this turn was to tell it, so whoever tries again has to.
    fn owe_again(&mut self, turn: Option<TurnInHand>, role: Role) {
        if let Some(question_id) = turn.and_then(|turn| turn.reply_to) {
            self.replies.insert(0, PendingReply { question_id, role });
        }
    }
}

/// One reply is written as itself: that is what there mostly is, and all there was before there could be several.
mod one_or_more {
    use super::PendingReply;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        One(PendingReply),
        More(Vec<PendingReply>),
    }

    pub(super) fn serialize<S: Serializer>(
        replies: &[PendingReply],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match replies {
            [one] => one.serialize(serializer),
            more => more.serialize(serializer),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<PendingReply>, D::Error> {
        Ok(match Written::deserialize(deserializer)? {
            Written::One(one) => vec![one],
            Written::More(more) => more,
        })
    }
}
