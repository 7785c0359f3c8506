//! Whose a feature is while it is worked on. Where a project has one run, that run's lease stands for all of them.
//! Where several runners share it, each feature has a lease of its own, held for as long as a task works on it.
//!
//! Everything about one feature is fenced by one lease: what an earlier holder still does to it is refused.

use crate::lease::RunLease;
use aop_kernel::Refusal;
use aop_kernel::feature::Feature;
use aop_kernel::ids::FeatureId;
use aop_store::Expect;
use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};

/// What keeps a former holder of a feature out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fence {
    lease: String,
    /// The epoch that turns, checks and claims carry.
    pub(crate) epoch: u64,
}

impl Fence {
    /// What must hold for a document to be written.
    pub(crate) fn expected(&self) -> Expect {
        Expect::Lease { name: self.lease.clone(), epoch: self.epoch }
    }
}

/// How a feature came to be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// It was before.
    Still,
    /// It is from now on: what was read of it before may be old.
    Now,
    /// It is not; another runner has it.
    No,
}

impl RunLease {
    /// The fence of a feature; none when it is not held.
    pub(crate) fn fence(&self, feature: &FeatureId) -> Option<Fence> {
        if self.runner.is_none() {
            return Some(Fence { lease: self.name(), epoch: self.epoch() });
        }
        let epoch = *self.held().get(feature)?;
        Some(Fence { lease: name(feature), epoch })
    }

    /// Takes a feature.
    pub(crate) async fn hold(&self, feature: &FeatureId) -> Result<Hold, Refusal> {
        let Some(runner) = &self.runner else { return Ok(Hold::Still) };
        if self.held().contains_key(feature) {
            return Ok(Hold::Still);
        }
        let Some(mut epoch) = self.grant(&name(feature), &runner.id).await? else { return Ok(Hold::No) };
        // The runner's name is on it, so an earlier run of this folder need not be waited for. What that run may still
        // do carries the epoch it left: ours has to be another.
        let is_first = self.met.lock().unwrap_or_else(PoisonError::into_inner).insert(feature.clone());
        if is_first {
            self.store.release_lease(name(feature), epoch).await?;
            match self.grant(&name(feature), &runner.id).await? {
                Some(fresh) => epoch = fresh,
                None => return Ok(Hold::No),
            }
        }
        // A later run of this folder has the same name: as long as this one has the folder, there is none.
        if !self.renew().await? {
            return Ok(Hold::No);
        }
        self.held().insert(feature.clone(), epoch);
        Ok(Hold::Now)
    }

    /// Says that a feature is still worked on. False when another run has had it meanwhile.
    pub(crate) async fn keep(&self, feature: &FeatureId) -> Result<bool, Refusal> {
        let Some(runner) = &self.runner else { return self.renew().await };
        let Some(held) = self.held().get(feature).copied() else { return Ok(true) };
        let kept = match self.grant(&name(feature), &runner.id).await? {
            None => None,
            Some(epoch) if epoch == held => Some(epoch),
            // It had run out, as when the machine or the database slept. If nobody has worked on the feature since,
            // it goes on.
            Some(epoch) => {
                let now = self.store.feature(feature.clone()).await?;
                let goes_on = now.is_some_and(|now| untouched(&now, held)) && self.renew().await?;
                goes_on.then_some(epoch)
            }
        };
        let unwanted = {
            let mut all = self.held();
            match (kept, all.get_mut(feature)) {
                (Some(epoch), Some(held)) => {
                    *held = epoch.max(*held);
                    None
                }
                (None, _) => {
                    all.remove(feature);
                    None
                }
                // Given back while it was renewed.
                (Some(epoch), None) => Some(epoch),
            }
        };
        if let Some(epoch) = unwanted {
            self.store.release_lease(name(feature), epoch).await?;
        }
        Ok(kept.is_some())
    }

    /// Keeps all that is held; those that are lost.
    pub(crate) async fn keep_all(&self) -> Result<Vec<FeatureId>, Refusal> {
        let features: Vec<FeatureId> = self.held().keys().cloned().collect();
        let mut lost = Vec::new();
        for feature in features {
            if !self.keep(&feature).await? {
                lost.push(feature);
            }
        }
        Ok(lost)
    }

    /// Gives a feature back.
    pub(crate) async fn let_go(&self, feature: &FeatureId) -> Result<(), Refusal> {
        let held = self.held().remove(feature);
        if let Some(epoch) = held {
            self.store.release_lease(name(feature), epoch).await?;
        }
        Ok(())
    }

    /// Gives every feature back.
    pub(crate) async fn let_all_go(&self) -> Result<(), Refusal> {
        let features: Vec<FeatureId> = self.held().keys().cloned().collect();
        for feature in features {
            self.let_go(&feature).await?;
        }
        Ok(())
    }

    fn held(&self) -> MutexGuard<'_, HashMap<FeatureId, u64>> {
        // Numbers, whole after any panic.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lease of a feature.
fn name(feature: &FeatureId) -> String {
    format!("run/{feature}")
}

/// Whether nobody with a later epoch has begun anything.
fn untouched(feature: &Feature, epoch: u64) -> bool {
    let work = &feature.work;
    work.turn.as_ref().is_none_or(|turn| turn.epoch <= epoch)
        && work.check.as_ref().is_none_or(|check| check.epoch <= epoch)
}
