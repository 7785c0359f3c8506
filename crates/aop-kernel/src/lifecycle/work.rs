//! Turns, checks and the merge. Each is guarded in the commit that begins it, and its end is taken only from
//! whoever holds it then: a runner that was taken over can change nothing any more.

use super::guard::{Action, illegal, permit};
use super::transition::send_back;
use super::{Draft, Outcome};
use crate::code::ErrorCode;
use crate::envelope::Refusal;
use crate::event::Event;
use crate::feature::Feature;
use crate::ids::{FeatureId, QuestionId};
use crate::role::Role;
use crate::status::Status;
use crate::work::{CheckName, TurnEnd, TurnInHand};
use serde_json::json;

/// A worker's turn begins, or one that was cut off goes on under the same claim.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the event")]
pub struct BeginTurn {
    pub feature_id: FeatureId,
    pub claim: String,
    pub epoch: u64,
    pub role: Role,
    pub engine: String,
    pub reply_to: Option<QuestionId>,
}

impl BeginTurn {
    pub(super) fn apply(&self, mut draft: Draft<'_>) -> Result<Outcome, Refusal> {
        let feature = draft.feature()?;
        permit(feature, Action::Turn)?;
        let is_this = |turn: &TurnInHand| turn.claim == self.claim && turn.role == self.role;
        // One whose phase was left in the middle of it goes on to its end.
        let is_left = feature.status.worker().is_some() && feature.work.turn.as_ref().is_some_and(is_this);
        if feature.status.worker() != Some(self.role) && !is_left {
            let message =
                format!("feature '{}' is {}; the {} has no turn", feature.id, feature.status, self.role);
            return Err(illegal(feature, &message));
        }
        let work = &feature.work;
        let mut attempt = work.attempt;
        match &work.turn {
            Some(turn) if is_this(turn) && turn.epoch <= self.epoch => {
                // Sent on by a person, it is the first of what is counted from there. The counters of a phase that it has
                // left are not its own.
                let counted = (attempt == 0 && work.is_phase_of(self.role)).then_some(1);
                attempt = counted.unwrap_or(attempt);
                let claim = self.claim.clone();
                draft.emit(Event::TurnContinued { claim, epoch: self.epoch, attempt: counted });
            }
            Some(turn) => {
                return Err(moved_on(feature, &format!("the turn {} is under way", turn.claim)));
            }
            None if work.finished.is_some() => return Err(moved_on(feature, "its phase is done")),
            None if work.check.is_some() => return Err(moved_on(feature, "it is being checked")),
            None => {
                if self.reply_to.is_some() && work.owed_to(self.role) != self.reply_to.as_ref() {
                    return Err(moved_on(feature, "no session of it waits for that question"));
                }
                attempt = if work.phase == Some(feature.status) { work.attempt + 1 } else { 1 };
                draft.emit(Event::TurnBegan {
                    claim: self.claim.clone(),
                    epoch: self.epoch,
                    role: self.role,
                    engine: self.engine.clone(),
                    attempt,
                    reply_to: self.reply_to.clone(),
                });
            }
        }
        Ok(draft.finish(&json!({"feature_id": self.feature_id, "claim": self.claim, "attempt": attempt})))
    }
}

/// The end of a turn, with what follows from it.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the fields are those of the event")]
pub struct EndTurn {
    pub feature_id: FeatureId,
    pub claim: String,
    pub epoch: u64,
    pub end: TurnEnd,
    /// What the log should say beside it.
    pub notes: Vec<String>,
    /// Where the feature goes because of it, and why.
    pub to: Option<(Status, String)>,
}

impl EndTurn {
    pub(super) fn apply(&self, mut draft: Draft<'_>) -> Result<Outcome, Refusal> {
        let feature = draft.feature()?;
        let role = match &feature.work.turn {
            Some(turn) if turn.claim == self.claim && turn.epoch == self.epoch => turn.role,
            Some(turn) => {
                return Err(moved_on(
                    feature,
                    &format!("the turn {} under epoch {} is under way", turn.claim, turn.epoch),
                ));
            }
            None => return Err(moved_on(feature, &format!("the turn {} is over", self.claim))),
        };
        draft.emit(Event::TurnEnded { claim: self.claim.clone(), role, end: self.end.clone() });
        for note in &self.notes {
            draft.emit(Event::Noted { note: note.clone() });
        }
        let work = &draft.feature()?.work;
        let leads_on = work.finished.is_some() || !matches!(self.end, TurnEnd::Final { .. });
        // Where a turn leads is no matter any more once its phase was left.
        if leads_on && work.is_phase_of(role) {
            follow(&mut draft, self.to.as_ref());
        }
        let data = json!({"feature_id": self.feature_id, "claim": self.claim, "status": draft.status()});
        Ok(draft.finish(&data))
    }
}

/// Checks begin on a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the event")]
pub struct BeginCheck {
    pub feature_id: FeatureId,
    pub name: CheckName,
    pub epoch: u64,
    pub commit: String,
}

impl BeginCheck {
    pub(super) fn apply(&self, mut draft: Draft<'_>) -> Result<Outcome, Refusal> {
        let feature = draft.feature()?;
        permit(feature, Action::Check)?;
        if feature.status != self.name.phase() {
            return Err(moved_on(feature, &format!("it is {}", feature.status)));
        }
        if feature.work.turn.is_some() || feature.work.finished != Some(true) {
            return Err(moved_on(feature, "its worker is not done"));
        }
        if feature.work.check.as_ref().is_some_and(|check| check.epoch > self.epoch) {
            return Err(moved_on(feature, "another runner checks it"));
        }
        draft.emit(Event::CheckBegan { name: self.name, epoch: self.epoch, commit: self.commit.clone() });
        Ok(draft.finish(&json!({"feature_id": self.feature_id, "commit": self.commit})))
    }
}

/// The end of checks, with what follows from it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the event")]
pub struct EndCheck {
    pub feature_id: FeatureId,
    pub name: CheckName,
    pub epoch: u64,
    pub commit: String,
    pub passed: bool,
    pub note: String,
    /// Where the feature goes because of it, and why.
    pub to: Option<(Status, String)>,
}

impl EndCheck {
    pub(super) fn apply(&self, mut draft: Draft<'_>) -> Result<Outcome, Refusal> {
        let feature = draft.feature()?;
        if !feature
            .work
            .check
            .as_ref()
            .is_some_and(|check| check.name == self.name && check.epoch == self.epoch)
        {
            return Err(moved_on(feature, "no such check is under way"));
        }
        draft.emit(Event::CheckEnded {
            name: self.name,
            commit: self.commit.clone(),
            passed: self.passed,
            note: self.note.clone(),
        });
        follow(&mut draft, self.to.as_ref());
        let data = json!({"feature_id": self.feature_id, "status": draft.status()});
        Ok(draft.finish(&data))
    }
}

/// `aop merge`: the commit that passed its checks was prepared as a merge; from here on the feature is merged.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the event")]
pub struct Merge {
    pub feature_id: FeatureId,
    pub commit: String,
    pub merge_commit: String,
    pub into: String,
}

impl Merge {
    pub(super) fn apply(&self, mut draft: Draft<'_>) -> Result<Outcome, Refusal> {
        if !self.is_done(draft.feature()?) {
            self.check(draft.feature()?)?;
            draft.emit(Event::Merged {
                commit: self.commit.clone(),
                merge_commit: self.merge_commit.clone(),
                into: self.into.clone(),
            });
            draft.move_to(Status::Merged, None);
        }
        let data = json!({"feature_id": self.feature_id, "status": draft.status(), "commit": self.commit,
            "merge_commit": self.merge_commit, "into": self.into});
        Ok(draft.finish(&data))
    }

    /// Whether this very merge has happened: then nothing is left to do but to say so.
    fn is_done(&self, feature: &Feature) -> bool {
        feature.status == Status::Merged
            && feature.work.merged.as_ref().is_some_and(|merged| {
                (&merged.commit, &merged.merge_commit, &merged.into)
                    == (&self.commit, &self.merge_commit, &self.into)
            })
    }

    fn check(&self, feature: &Feature) -> Result<(), Refusal> {
        permit(feature, Action::Merge)?;
        if feature.status != Status::ReadyToMerge {
            let message = format!("feature '{}' is {}, not ready_to_merge", feature.id, feature.status);
            return Err(illegal(feature, &message));
        }
        if feature.work.checked.as_deref() != Some(self.commit.as_str()) {
            let passed = match &feature.work.checked {
                Some(checked) => format!("passed its checks at commit {checked}"),
                None => "has passed no checks since it was worked on last".to_owned(),
            };
            let message = format!("feature '{}' {passed}, and its branch is at {}", feature.id, self.commit);
            return Err(Refusal::new(ErrorCode::ChecksFailed, message)
                .hint(send_back(feature, "recheck"))
                .fact("feature_id", &feature.id)
                .fact("checked", &feature.work.checked)
                .fact("commit", &self.commit));
        }
        Ok(())
    }
}

/// Moves the feature where the end of a step sends it. While a question is open, or once a person has stopped it, it
/// stays where it is: what is done stands in `work`, and the move is made when it is worked on again.
fn follow(draft: &mut Draft<'_>, to: Option<&(Status, String)>) {
    let Some((to, reason)) = to else { return };
    let from = draft.status();
    let is_legal = *to != Status::AwaitingInput && from.worker().is_some() && from.may_become(*to);
    if is_legal {
        draft.move_to(*to, Some(reason.clone()).filter(|reason| !reason.is_empty()));
    }
}

/// What the caller knew is no longer so.
fn moved_on(feature: &Feature, what: &str) -> Refusal {
    Refusal::new(ErrorCode::VersionConflict, format!("feature '{}' has moved on: {what}", feature.id))
        .fact("feature_id", &feature.id)
}
