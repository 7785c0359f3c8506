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

/// However often a turn has failed, the next one waits no longer, unless the first is to.
const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);

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
    /// How long the first of them waits when an engine failed; each further one waits four times as long.
    pub retry_wait: Duration,
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

/// How long to wait after so many failures in a row, when the first is followed by this: what an engine needs is often
/// back a little later.
pub(crate) fn wait_after(failures: u32, first: Duration) -> Duration {
    let factor = 4_u32.saturating_pow(failures.saturating_sub(1));
    first.saturating_mul(factor).min(first.max(LONGEST_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_that_failed_is_given_time_and_more_of_it_each_time() {
        let waits = |first: u64| -> Vec<u64> {
            let wait = |failures| wait_after(failures, Duration::from_secs(first)).as_secs();
            [1, 2, 3, 4, u32::MAX].map(wait).to_vec()
        };
        assert_eq!(waits(30), [30, 120, 480, 900, 900]);
        assert_eq!(waits(0), [0; 5]);
        assert_eq!(waits(3_600), [3_600; 5]);
    }
}
