//! Moving a feature by hand: a transition of the table, `aop cancel` and `aop retry`.

use super::guard::{Action, illegal, permit};
use super::{Draft, Outcome};
use crate::envelope::Refusal;
use crate::feature::Feature;
use crate::ids::FeatureId;
use crate::status::Status;
use serde_json::json;

/// `feature.transition`
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are the arguments of the contract's table")]
pub struct Transition {
    pub feature_id: FeatureId,
    pub to: Status,
    pub reason: Option<String>,
}

impl Transition {
    pub(super) fn apply(&self, mut draft: Draft<'_>) -> Result<Outcome, Refusal> {
        let feature = draft.feature()?;
        permit(feature, Action::Transition)?;
        if self.to == Status::AwaitingInput || !feature.status.may_become(self.to) {
            let message =
                format!("feature '{}' cannot go from {} to {}", feature.id, feature.status, self.to);
            return Err(illegal(feature, &message).fact("to", self.to));
        }
        draft.move_to(self.to, self.reason.clone());
        moved(draft)
    }
}

/// `aop cancel`
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "one field, named as everywhere")]
pub struct Cancel {
    pub feature_id: FeatureId,
}

impl Cancel {
    /// Ends the feature, also while it waits: its open questions are withdrawn.
    pub(super) fn apply(&self, mut draft: Draft<'_>) -> Result<Outcome, Refusal> {
        let feature = draft.feature()?;
        if feature.status.is_terminal() {
            return Err(illegal(feature, &format!("feature '{}' is {} already", feature.id, feature.status)));
        }
        draft.move_to(Status::Failed, Some("cancelled".to_owned()));
        moved(draft)
    }
}

/// `aop retry`
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "one field, named as everywhere")]
pub struct Retry {
    pub feature_id: FeatureId,
}

impl Retry {
    /// Returns a blocked feature to the phase it came from.
    pub(super) fn apply(&self, mut draft: Draft<'_>) -> Result<Outcome, Refusal> {
        let feature = draft.feature()?;
        permit(feature, Action::Transition)?;
        if feature.adhoc {
            let id = &feature.id;
            let message = format!("'{id}' is a one-off question of `aop ask`; no run would work on it");
            return Err(illegal(feature, &message).hint(format!(
                "ask again with `aop ask`, or open the same question again with `aop reopen` (`aop questions --feature-id {id} --status all` lists it)"
            )));
        }
        if feature.status != Status::Blocked {
            let message = format!(
                "feature '{}' is {}, not blocked; there is nothing to retry",
                feature.id, feature.status
            );
            let refusal = illegal(feature, &message);
            return Err(match feature.status {
                Status::ReadyToMerge => {
                    refusal.hint(format!("merge it with `aop merge --feature-id {}`", feature.id))
                }
                status if status.worker().is_some() => refusal.hint("`aop run` works on it"),
                _ => refusal,
            });
        }
        let to =
            feature.blocked_from.filter(|from| Status::Blocked.may_become(*from)).unwrap_or(Status::Planning);
        // What is ready stands still until a person acts, so that its reason is what to do.
        let reason = if to == Status::ReadyToMerge {
            format!("merge with `aop merge --feature-id {}`", feature.id)
        } else {
            "sent back by retry".to_owned()
        };
        draft.move_to(to, Some(reason));
        moved(draft)
    }
}

fn moved(draft: Draft<'_>) -> Result<Outcome, Refusal> {
    let data = json!({"feature_id": draft.request.command.feature_id(), "status": draft.status()});
    Ok(draft.finish(&data))
}

/// How a feature whose branch was changed by hand comes to be merged, in words.
pub fn send_back(feature: &Feature, why: &str) -> String {
    let id = &feature.id;
    format!(
        "send the feature back with `{}`, so that it is checked again by `aop run`, then `aop merge --feature-id {id}`",
        back_to_building(id, feature.version, why)
    )
}

/// The command that sends a feature of this version back to its builder.
pub fn back_to_building(id: &FeatureId, version: u64, why: &str) -> String {
    format!(
        "aop tool call feature.transition --role human --input '{{\"feature_id\": \"{id}\", \"to\": \"building\", \
         \"operation_id\": \"{why}-{id}-{version}\"}}'"
    )
}
