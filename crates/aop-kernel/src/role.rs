//! Who calls. A role decides what a caller may do; a worker is further bound to its own feature.

use crate::ids::FeatureId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Who asks, answers or decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A worker that plans.
    Planner,
    /// A worker that builds.
    Builder,
    /// A worker that tests.
    Qa,
    /// aop's own code.
    Orchestrator,
    /// A person.
    Human,
}

impl Role {
    /// All roles.
    pub const ALL: &[Role] = &[Role::Planner, Role::Builder, Role::Qa, Role::Orchestrator, Role::Human];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Planner => "planner",
            Role::Builder => "builder",
            Role::Qa => "qa",
            Role::Orchestrator => "orchestrator",
            Role::Human => "human",
        }
    }

    /// Finds a role by its name.
    pub fn parse(name: &str) -> Option<Role> {
        Role::ALL.iter().copied().find(|role| role.as_str() == name)
    }

    /// Planner, builder and qa are agents; they may ask and never answer.
    pub fn is_worker(self) -> bool {
        match self {
            Role::Planner | Role::Builder | Role::Qa => true,
            Role::Orchestrator | Role::Human => false,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A role together with the feature its credential is bound to, if it is bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The role.
    pub role: Role,
    /// The only feature a bound worker may touch.
    pub feature: Option<FeatureId>,
}

impl Caller {
    /// A caller with no feature of its own.
    pub fn new(role: Role) -> Self {
        Caller { role, feature: None }
    }

    /// Whether this caller may see and touch the feature at all.
    pub fn owns(&self, feature: &FeatureId) -> bool {
        !self.role.is_worker() || self.feature.as_ref().is_none_or(|own| own == feature)
    }
}
