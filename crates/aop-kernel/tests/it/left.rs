//! A turn in hand whose phase is left: it stays until its end is committed, so that nothing it owes its session is lost.

use crate::support::{
    START, after, begins, decide, decide_work, ends, feature, finishes, id, question, request, worked,
};
use aop_kernel::event::Snapshot;
use aop_kernel::ids::FeatureId;
use aop_kernel::lifecycle::{BeginTurn, Cancel, Command, expire_due};
use aop_kernel::policy::{HumanInput, OnTimeout};
use aop_kernel::role::Role;
use aop_kernel::status::Status;
use aop_kernel::time::Timestamp;
use aop_kernel::tools::Tool;
use aop_kernel::work::{PendingReply, TurnEnd, Work};
use serde_json::{Value, json};

fn calls(state: Snapshot, tool: Tool, input: &Value, number: usize) -> Snapshot {
    after(state, tool, input, number, HumanInput::default())
}

fn goes_to(state: Snapshot, to: Status) -> Snapshot {
    calls(state, Tool::FeatureTransition, &json!({"feature_id": "a", "to": to}), 0)
}

fn asked(number: usize) -> TurnEnd {
    TurnEnd::AskUser { question_id: id(number), blocking: true, also: Vec::new(), unread: false }
}

/// A turn of this role asks and its question is answered.
fn asks(state: Snapshot, role: Role, number: usize) -> Snapshot {
    let state = begins(state, role, None);
    let state = calls(state, Tool::QuestionCreate, &question(json!({"role": role})), number);
    let answer = json!({"feature_id": "a", "question_id": id(number), "answer": "no", "answered_by": "ann"});
    calls(ends(state, asked(number), None), Tool::QuestionAnswer, &answer, 0)
}

/// The builder's turn has begun with an answer, and a person has the planner's question asked again and answers it.
fn left() -> Snapshot {
    let state = begins(feature(), Role::Planner, None);
    let state = calls(state, Tool::QuestionCreate, &question(json!({"role": "planner"})), 1);
    let named = json!({"feature_id": "a", "question_id": id(1)});
    let state = calls(ends(state, asked(1), None), Tool::QuestionWithdraw, &named, 0);
    let state = finishes(begins(state, Role::Planner, Some(id(1))), Some(Status::Building));
    let state = begins(asks(state, Role::Builder, 2), Role::Builder, Some(id(2)));
    let state = calls(state, Tool::QuestionReopen, &named, 3);
    let answer = json!({"feature_id": "a", "question_id": id(3), "answer": "yes", "answered_by": "ann"});
    calls(state, Tool::QuestionAnswer, &answer, 0)
}

fn work(state: &Snapshot) -> &Work {
    &state.feature.as_ref().unwrap().work
}

fn status(state: &Snapshot) -> Status {
    state.feature.as_ref().unwrap().status
}

fn begin(role: Role) -> Command {
    let (feature_id, claim) = (FeatureId::parse("a").unwrap(), "claim".to_owned());
    Command::BeginTurn(BeginTurn {
        feature_id,
        claim,
        epoch: 2,
        role,
        engine: "scripted".into(),
        reply_to: None,
    })
}

fn owed(question: usize, role: Role) -> PendingReply {
    PendingReply { question_id: id(question), role }
}

#[test]
fn a_turn_whose_phase_was_left_is_in_hand_until_its_end_and_owes_what_it_was_to_tell() {
    let state = left();
    assert_eq!(status(&state), Status::Planning);
    assert_eq!(work(&state).turn.as_ref().unwrap().reply_to, Some(id(2)));
    assert_eq!(decide_work(&state, begin(Role::Planner)).unwrap_err().code.as_str(), "version_conflict");
    let error = TurnEnd::Error { code: "c".into(), message: "m".into(), delivered: false };
    let state = ends(state, error, Some(Status::Blocked));
    assert_eq!((status(&state), work(&state).failures), (Status::Planning, 0), "no failure of the planner's");
    assert_eq!(work(&state).replies, [owed(2, Role::Builder), owed(3, Role::Planner)]);
    let state = finishes(begins(state, Role::Planner, Some(id(3))), Some(Status::Building));
    assert_eq!(work(&state).owed_to(Role::Builder), Some(&id(2)));
    let state = finishes(begins(state, Role::Builder, Some(id(2))), Some(Status::Qa));
    assert_eq!((status(&state), &work(&state).replies), (Status::Qa, &Vec::new()));
}

#[test]
fn the_end_of_a_turn_whose_phase_was_left_changes_nothing_about_the_phase() {
    for to in [None, Some(Status::Building), Some(Status::Failed)] {
        let state = finishes(left(), to);
        assert_eq!((status(&state), work(&state).finished), (Status::Planning, None), "{to:?}");
        assert_eq!(work(&state).replies, [owed(3, Role::Planner)], "{to:?}: the builder has read its answer");
    }
    let state = ends(left(), asked(2), Some(Status::Qa));
    assert_eq!(work(&state).owed_to(Role::Builder), Some(&id(2)), "what it asked is owed to it");
    assert_eq!(status(&state), Status::Planning);
}

#[test]
fn a_turn_whose_phase_was_left_is_taken_over_only_while_a_worker_has_the_feature() {
    let state = worked(left(), begin(Role::Builder));
    assert_eq!(work(&state).turn.as_ref().unwrap().epoch, 2);
    let state = goes_to(left(), Status::Blocked);
    assert!(decide_work(&state, begin(Role::Builder)).is_err());
    assert!(work(&state).turn.is_some(), "whoever stops it ends no turn");
    let state = goes_to(left(), Status::Building);
    let state = worked(state, begin(Role::Builder));
    assert_eq!(work(&state).turn.as_ref().unwrap().reply_to, Some(id(2)), "back where it was, it goes on");
}

#[test]
fn a_log_that_does_not_say_that_a_turn_stays_gives_the_state_it_gave() {
    let state = begins(goes_to(feature(), Status::Building), Role::Builder, None);
    let input = json!({"feature_id": "a", "to": "qa"});
    let [moved] =
        &decide(&state, Tool::FeatureTransition, &input, 0, HumanInput::default()).unwrap().events[..]
    else {
        panic!("one event for {:?}", request(Tool::FeatureTransition, &input))
    };
    let mut written = serde_json::to_value(moved).unwrap();
    assert_eq!(written.as_object_mut().unwrap().remove("turn_stays"), Some(json!(true)));
    let mut before = state;
    before.evolve(&serde_json::from_value(written).unwrap());
    assert_eq!((status(&before), &work(&before).turn), (Status::Qa, &None));
}

#[test]
fn a_turn_in_hand_has_its_end_in_the_log_when_its_feature_ends() {
    let building = begins(goes_to(feature(), Status::Building), Role::Builder, None);
    let fails = HumanInput { on_timeout: OnTimeout::FailFeature, ..HumanInput::default() };
    let asks = after(building.clone(), Tool::QuestionCreate, &question(json!({})), 1, fails);
    let cancel = Command::Cancel(Cancel { feature_id: FeatureId::parse("a").unwrap() });
    let cancelled = decide_work(&asks, cancel).unwrap();
    let to = json!({"feature_id": "a", "to": "failed"});
    let failed = decide(&building, Tool::FeatureTransition, &to, 0, HumanInput::default()).unwrap();
    let expired = expire_due(&asks, Timestamp::from_millis(START + 3_600_000));
    for (events, state) in
        [(cancelled.events, cancelled.state), (failed.events, failed.state), (expired.events, expired.state)]
    {
        let names: Vec<&str> = events.iter().map(|stamped| stamped.event.name()).collect();
        let ends = names.iter().filter(|name| **name == "turn.ended").count();
        assert_eq!((ends, names.last()), (1, Some(&"feature.status_changed")), "{names:?}");
        assert_eq!((status(&state), &work(&state).turn), (Status::Failed, &None), "{names:?}");
        assert_eq!(work(&state).replies, [], "nobody is told anything any more: {names:?}");
    }
    let ended = decide(&feature(), Tool::FeatureTransition, &to, 0, HumanInput::default()).unwrap();
    assert_eq!(ended.events.len(), 1, "where none is in hand, none ends: {:?}", ended.events);
}
