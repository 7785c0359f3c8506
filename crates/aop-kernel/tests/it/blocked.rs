//! A feature that a person has blocked while something was done for it.

use crate::support::{after, begins, ends, feature, finishes, worked};
use aop_kernel::event::Snapshot;
use aop_kernel::ids::FeatureId;
use aop_kernel::lifecycle::{BeginCheck, Command, EndCheck, Retry};
use aop_kernel::policy::HumanInput;
use aop_kernel::role::Role;
use aop_kernel::status::Status;
use aop_kernel::tools::Tool;
use aop_kernel::work::{CheckName, TurnEnd};
use serde_json::json;

fn moved(state: Snapshot, to: Status) -> Snapshot {
    after(state, Tool::FeatureTransition, &json!({"feature_id": "a", "to": to}), 0, HumanInput::default())
}

fn id() -> FeatureId {
    FeatureId::parse("a").unwrap()
}

fn retried(state: Snapshot) -> Snapshot {
    worked(state, Command::Retry(Retry { feature_id: id() }))
}

/// Its status, and whether its worker is done.
fn stands(state: &Snapshot) -> (Status, Option<bool>) {
    let feature = state.feature.as_ref().unwrap();
    (feature.status, feature.work.finished)
}

#[test]
fn what_a_person_has_blocked_stays_blocked_when_its_turn_ends_and_retry_goes_on_from_there() {
    let state = moved(begins(feature(), Role::Planner, None), Status::Blocked);
    let state = finishes(state, Some(Status::Building));
    assert_eq!(stands(&state), (Status::Blocked, Some(true)));
    assert_eq!(stands(&retried(state)), (Status::Planning, Some(true)), "the plan is there");

    let state = moved(begins(feature(), Role::Planner, None), Status::Blocked);
    let error = TurnEnd::Error { code: "c".to_owned(), message: "m".to_owned(), delivered: true };
    let state = ends(state, error, Some(Status::Failed));
    assert_eq!(stands(&retried(state)), (Status::Planning, None), "it is tried again");
}

#[test]
fn what_a_person_has_blocked_stays_blocked_when_its_check_ends_and_retry_checks_again() {
    let begin =
        |name| Command::BeginCheck(BeginCheck { feature_id: id(), name, epoch: 1, commit: "c".into() });
    let end = |name, to| {
        let to = Some((to, String::new()));
        let (commit, note) = ("c".to_owned(), String::new());
        Command::EndCheck(EndCheck { feature_id: id(), name, epoch: 1, commit, passed: true, note, to })
    };
    for (phase, role, name, to) in [
        (Status::Building, Role::Builder, CheckName::Fast, Status::Qa),
        (Status::Qa, Role::Qa, CheckName::Full, Status::ReadyToMerge),
    ] {
        let mut state = moved(feature(), Status::Building);
        if phase == Status::Qa {
            state = moved(state, Status::Qa);
        }
        let state = worked(finishes(begins(state, role, None), None), begin(name));
        let state = worked(moved(state, Status::Blocked), end(name, to));
        assert_eq!(stands(&state), (Status::Blocked, Some(true)));
        assert_eq!(stands(&retried(state)), (phase, Some(true)), "{name}");
    }
}
