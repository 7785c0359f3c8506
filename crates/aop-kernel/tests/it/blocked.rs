//! A feature that a person has blocked while something was done for it.

use crate::support::{after, begins, decide_work, ends, feature, finishes, id as number, question, worked};
use aop_kernel::event::Snapshot;
use aop_kernel::ids::FeatureId;
use aop_kernel::lifecycle::{BeginCheck, BeginTurn, Command, EndCheck, EndTurn, Merge, Outcome, Retry};
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
fn a_turn_that_goes_on_after_a_retry_is_the_first_attempt_that_is_counted_again() {
    let begin = |epoch| {
        let (claim, engine, role) = ("claim".to_owned(), "scripted".to_owned(), Role::Planner);
        Command::BeginTurn(BeginTurn { feature_id: id(), claim, epoch, role, engine, reply_to: None })
    };
    let attempt = |outcome: &Outcome| {
        (outcome.envelope.data()["attempt"].clone(), outcome.state.feature.as_ref().unwrap().work.attempt)
    };
    let state = retried(moved(begins(feature(), Role::Planner, None), Status::Blocked));
    let goes_on = decide_work(&state, begin(2)).unwrap();
    assert_eq!(attempt(&goes_on), (json!(1), 1));
    let goes_on = decide_work(&goes_on.state, begin(3)).unwrap();
    assert_eq!(attempt(&goes_on), (json!(1), 1), "cut off once more it is the same turn");
    let error = TurnEnd::Error { code: "c".to_owned(), message: "m".to_owned(), delivered: true };
    let end =
        EndTurn { feature_id: id(), claim: "claim".into(), epoch: 3, end: error, notes: vec![], to: None };
    let state = worked(goes_on.state, Command::EndTurn(Box::new(end)));
    assert_eq!(
        attempt(&decide_work(&state, begin(4)).unwrap()),
        (json!(2), 2),
        "and the next one is the next"
    );
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

#[test]
fn no_check_begins_on_a_feature_that_was_blocked_when_its_worker_was_done() {
    let building = moved(feature(), Status::Building);
    let qa = moved(moved(feature(), Status::Building), Status::Qa);
    for (state, role, name) in [(building, Role::Builder, CheckName::Fast), (qa, Role::Qa, CheckName::Full)] {
        let begin =
            |name| Command::BeginCheck(BeginCheck { feature_id: id(), name, epoch: 1, commit: "c".into() });
        let state = finishes(begins(state, role, None), None);
        assert!(decide_work(&state, begin(name)).is_ok());
        let other = if name == CheckName::Fast { CheckName::Full } else { CheckName::Fast };
        for (state, name) in [(moved(state.clone(), Status::Blocked), name), (state, other)] {
            let refusal = decide_work(&state, begin(name)).unwrap_err();
            assert_eq!(refusal.code.as_str(), "version_conflict", "{name}: {refusal}");
        }
    }
}

#[test]
fn what_is_ready_again_after_a_retry_says_how_it_is_merged() {
    let qa = moved(moved(feature(), Status::Building), Status::Qa);
    for (state, reason) in [
        (moved(qa.clone(), Status::ReadyToMerge), "merge with `aop merge --feature-id a`"),
        (qa, "sent back by retry"),
    ] {
        let mut state = retried(moved(state, Status::Blocked));
        assert_eq!(state.feature.as_ref().unwrap().status_reason.as_deref(), Some(reason));
        let asks = question(json!({"role": "human"}));
        state = after(state, Tool::QuestionCreate, &asks, 1, HumanInput::default());
        let answer =
            json!({"feature_id": "a", "question_id": number(1), "answer": "no", "answered_by": "ann"});
        state = after(state, Tool::QuestionAnswer, &answer, 0, HumanInput::default());
        let feature = state.feature.as_ref().unwrap();
        let is_ready = feature.status == Status::ReadyToMerge;
        assert_eq!(feature.status_reason.as_deref(), is_ready.then_some(reason));
    }
}

#[test]
fn what_was_worked_on_since_its_checks_is_not_merged_and_the_refusal_says_that() {
    let qa = moved(moved(feature(), Status::Building), Status::Qa);
    let (merge_commit, into) = ("d".to_owned(), "main".to_owned());
    let merge = Command::Merge(Merge { feature_id: id(), commit: "c".into(), merge_commit, into });
    let refusal = decide_work(&moved(qa, Status::ReadyToMerge), merge).unwrap_err();
    assert_eq!(refusal.code.as_str(), "checks_failed");
    assert!(refusal.message.contains("has passed no checks"), "{refusal}");
}
