//! The run loop: features from specification to ready-to-merge around the questions of their agents.
//!
//! The way of a feature: [`Runner`] finds out that something can be done for it and gives it a task → `step` says
//! what comes next, from the stored state alone → `turn/` runs one turn of an engine and commits what came of it,
//! `check` runs check commands, `gate` asks what an instruction packet wants to know → and again, until there is
//! nothing to do: the feature waits for a person, is blocked, or is done. A waiting feature has no task.
//!
//! Everything that is done is committed before and after: whoever comes next, this run or another after a crash,
//! sees the same next step. `lease` keeps two runs apart; where several runners share a project, `holding` keeps them apart
//! feature by feature, and `runner/whose` says which of them a feature is for.

mod check;
mod gate;
mod git;
mod holding;
mod keys;
mod lease;
mod merge;
mod mode;
mod note;
mod phase;
mod place;
mod process;
mod prompt;
mod reach;
mod room;
mod runner;
mod runners;
mod settings;
pub mod shown;
mod step;
mod turn;
mod unawaited;

pub use check::CheckReport;
pub use gate::{KeptAnswer, answer_record, forget_written, keep_answer};
pub use git::{Git, GitError, end_running_gits};
pub use lease::{RunInfo, RunLease, RunRecord, Takeover};
pub use merge::{Merged, merge, unfinished_merges};
pub use mode::{mode_of, mode_was_set, set_mode};
pub use note::{Note, leave_note, sent_note};
pub use phase::schema_of;
pub use place::Place;
pub use runner::{Notice, Reason, RunEnd, Runner};
pub use runners::{AtWork, Identity, RunnerRecord, at_work, forget_runner, runner_id};
pub use settings::{Checks, Drivers, EngineChoice, Settings, Worktrees};
pub use turn::session_of;

/// What this crate calls itself in the log.
pub(crate) const SURFACE: &str = "run";
