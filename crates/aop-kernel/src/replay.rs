//! Rebuilding state from the log alone. Live commands go through the same `evolve`, so what this gives is
//! what the tables hold; `aop doctor` compares the two.

use crate::event::{Recorded, Snapshot};
use crate::ids::FeatureId;
use std::collections::BTreeMap;

/// Every feature with all its questions, as the log tells it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Replay {
    /// State by feature.
    pub features: BTreeMap<FeatureId, Snapshot>,
    /// The last event seen.
    pub seq: u64,
}

impl Replay {
    /// Takes the next event.
    pub fn apply(&mut self, recorded: &Recorded) {
        self.features.entry(recorded.stamped.feature_id.clone()).or_default().evolve(&recorded.stamped);
        self.seq = recorded.seq;
    }
}
