//! What a run is told: the project, the engines, the limits.

use aop_engine::AOP_DIR;
use aop_engine::{Driver, EngineError, Limits, Surroundings};
use aop_turn::command::Permissions;
use aop_turn::{Engine, Mode, Role};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Finds the driver of an engine.
pub type Drivers = Arc<dyn Fn(Engine) -> Result<Arc<dyn Driver>, EngineError> + Send + Sync>;

/// Which engine plays which role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "one field per role")]
pub struct EngineChoice {
    pub planner: Engine,
    pub builder: Engine,
    pub qa: Engine,
}

impl EngineChoice {
    /// The same engine for every role.
    pub fn all(engine: Engine) -> Self {
        EngineChoice { planner: engine, builder: engine, qa: engine }
    }

    /// The engine of a role.
    pub fn of(&self, role: Role) -> Engine {
        match role {
            Role::Planner => self.planner,
            Role::Builder => self.builder,
            Role::Qa => self.qa,
        }
    }
}

/// Commands that must pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checks {
    /// After building.
    pub fast: Vec<String>,
    /// After qa.
    pub full: Vec<String>,
    /// How long each may take.
    pub timeout: Duration,
}

/// Where features are worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worktrees {
    /// In a git worktree and branch each.
    Git,
    /// In a plain folder each: for a demonstration where there is no git.
    Plain,
}

/// How a run works.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The project's root.
    pub root: PathBuf,
    /// Whether people may be asked.
    pub mode: Mode,
    /// How many features are worked on at once.
    pub max_parallel: usize,
    /// Turns of a role in one phase.
    pub max_attempt: u32,
    /// Corrective turns for a result that fails its schema, and times the builder gets its work back.
    pub repair_rounds: u32,
    /// Failed turns in a row that are tried again.
    pub retries: u32,
    /// How long an engine may be kept for a live answer.
    pub warm: Duration,
    /// Which engine plays which role.
    pub engines: EngineChoice,
    /// Who decides about the engines' own permission prompts.
    pub permissions: Permissions,
    /// How long and how much a turn may be.
    pub limits: Limits,
    /// Commands that must pass.
    pub checks: Checks,
    /// This program, and the environment that check commands inherit.
    pub around: Surroundings,
    /// How long a git may take.
    pub git_timeout: Duration,
    /// Where features are worked on.
    pub worktrees: Worktrees,
    /// How long a feature waits for its own runner before another goes on with it; 0 is for ever.
    pub away: Duration,
    /// End when every feature that is left waits for a person.
    pub exit_when_parked: bool,
}

impl Settings {
    /// The `.aop` folder.
    pub fn dir(&self) -> PathBuf {
        self.root.join(AOP_DIR)
    }
}
