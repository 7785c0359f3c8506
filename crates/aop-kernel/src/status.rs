//! The status of a feature: the one table of legal moves, and the activity state that is read off it.

use crate::role::Role;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Where a feature stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The planner works out what to do.
    Planning,
    /// The builder does it.
    Building,
    /// Qa judges it.
    Qa,
    /// Stopped by a failure or a decision; `aop retry` goes on.
    Blocked,
    /// Stopped by an open blocking question.
    AwaitingInput,
    /// Done and checked; a human or a policy merges.
    ReadyToMerge,
    /// Merged. Terminal.
    Merged,
    /// Given up. Terminal.
    Failed,
}

impl Status {
    /// Every status.
    pub const ALL: &[Status] = &[
        Status::Planning,
        Status::Building,
        Status::Qa,
        Status::Blocked,
        Status::AwaitingInput,
        Status::ReadyToMerge,
        Status::Merged,
        Status::Failed,
    ];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Planning => "planning",
            Status::Building => "building",
            Status::Qa => "qa",
            Status::Blocked => "blocked",
            Status::AwaitingInput => "awaiting_input",
            Status::ReadyToMerge => "ready_to_merge",
            Status::Merged => "merged",
            Status::Failed => "failed",
        }
    }

    /// Finds a status by its name.
    pub fn parse(name: &str) -> Option<Status> {
        Status::ALL.iter().copied().find(|status| status.as_str() == name)
    }

    /// The worker that has the feature in this phase; none where no worker does.
    pub fn worker(self) -> Option<Role> {
        match self {
            Status::Planning => Some(Role::Planner),
            Status::Building => Some(Role::Builder),
            Status::Qa => Some(Role::Qa),
            Status::Blocked
            | Status::AwaitingInput
            | Status::ReadyToMerge
            | Status::Merged
            | Status::Failed => None,
        }
    }

    /// Nothing happens to a terminal feature any more.
    pub fn is_terminal(self) -> bool {
        match self {
            Status::Merged | Status::Failed => true,
            Status::Planning
            | Status::Building
            | Status::Qa
            | Status::Blocked
            | Status::AwaitingInput
            | Status::ReadyToMerge => false,
        }
    }

    /// Whether a question may send the feature back here.
    pub fn is_resumable(self) -> bool {
        !self.is_terminal() && self != Status::AwaitingInput
    }

    /// Whether nobody works on it by themselves, and a person is to do something.
    pub(crate) fn stands_still(self) -> bool {
        matches!(self, Status::Blocked | Status::ReadyToMerge)
    }

    /// The table: where a feature may go from here. From `awaiting_input` it lists every status that can be
    /// a `resume_status`; which one of them is legal is in the question's record.
    pub fn targets(self) -> &'static [Status] {
        use Status::{AwaitingInput, Blocked, Building, Failed, Merged, Planning, Qa, ReadyToMerge};
        match self {
            Planning => &[Building, Blocked, AwaitingInput, Failed],
            Building => &[Qa, Blocked, AwaitingInput, Failed],
            Qa => &[Building, ReadyToMerge, Blocked, AwaitingInput, Failed],
            ReadyToMerge => &[Merged, Building, Blocked, AwaitingInput, Failed],
            Blocked => &[Planning, Building, Qa, ReadyToMerge, AwaitingInput, Failed],
            AwaitingInput => &[Planning, Building, Qa, ReadyToMerge, Blocked, Failed],
            Merged | Failed => &[],
        }
    }

    /// Whether the table has an arrow from here to there.
    pub fn may_become(self, to: Status) -> bool {
        self.targets().contains(&to)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a feature is doing, in one word for status lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActivityState {
    /// Exactly when the status is `awaiting_input`.
    WaitingInput,
    /// A turn or a check is under way.
    Working,
    /// Could go on, and nobody is at it.
    Idle,
    /// Needs `aop retry`.
    Blocked,
    /// Terminal, or waiting only for the merge.
    Done,
}

impl ActivityState {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            ActivityState::WaitingInput => "waiting_input",
            ActivityState::Working => "working",
            ActivityState::Idle => "idle",
            ActivityState::Blocked => "blocked",
            ActivityState::Done => "done",
        }
    }

    /// Reads the activity off the status and whether somebody holds the feature right now.
    pub fn of(status: Status, held: Held) -> Self {
        match (status, held) {
            (Status::AwaitingInput, _) => ActivityState::WaitingInput,
            (Status::Merged | Status::Failed | Status::ReadyToMerge, _) => ActivityState::Done,
            (Status::Blocked, _) => ActivityState::Blocked,
            (Status::Planning | Status::Building | Status::Qa, Held::Yes) => ActivityState::Working,
            (Status::Planning | Status::Building | Status::Qa, Held::No) => ActivityState::Idle,
        }
    }
}

/// Whether a runner holds the feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// A turn or check is under way.
    Yes,
    /// Nobody is at it.
    No,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_the_contracts() {
        let table: Vec<String> = Status::ALL
            .iter()
            .map(|from| {
                let to: Vec<&str> = from.targets().iter().map(|to| to.as_str()).collect();
                format!("{from} -> {}", to.join(", "))
            })
            .collect();
        assert_eq!(
            table,
            [
                "planning -> building, blocked, awaiting_input, failed",
                "building -> qa, blocked, awaiting_input, failed",
                "qa -> building, ready_to_merge, blocked, awaiting_input, failed",
                "blocked -> planning, building, qa, ready_to_merge, awaiting_input, failed",
                "awaiting_input -> planning, building, qa, ready_to_merge, blocked, failed",
                "ready_to_merge -> merged, building, blocked, awaiting_input, failed",
                "merged -> ",
                "failed -> ",
            ]
        );
    }

    #[test]
    fn activity_is_waiting_input_exactly_when_the_status_is_awaiting_input() {
        for status in Status::ALL {
            for held in [Held::Yes, Held::No] {
                let waiting = ActivityState::of(*status, held) == ActivityState::WaitingInput;
                assert_eq!(waiting, *status == Status::AwaitingInput);
            }
        }
    }

    #[test]
    fn every_name_parses_back() {
        for status in Status::ALL {
            assert_eq!(Status::parse(status.as_str()), Some(*status));
        }
    }
}
