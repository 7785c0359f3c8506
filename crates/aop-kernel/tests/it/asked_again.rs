//! A worker's question that a person asks again: its answer is told, whatever the worker did without it.

use crate::support::{after, begins, decide, decide_work, ends, feature, finishes, id, question, worked};
use aop_kernel::event::Snapshot;
use aop_kernel::ids::FeatureId;
use aop_kernel::lifecycle::{BeginCheck, Command, EndCheck};
use aop_kernel::policy::HumanInput;
use aop_kernel::role::Role;
use aop_kernel::status::Status;
use aop_kernel::tools::Tool;
use aop_kernel::work::{CheckName, TurnEnd, Work};
use serde_json::{Value, json};
use std::sync::Arc;

fn call(state: Snapshot, tool: Tool, number: usize, more: Value) -> Snapshot {
    let mut input = json!({"feature_id": "a", "question_id": id(number)});
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    // What is asked again gets the next number but nine.
    after(state, tool, &input, number + 10, HumanInput::default())
}

fn answered(state: Snapshot, number: usize) -> Snapshot {
    call(state, Tool::QuestionAnswer, number, json!({"answer": "no", "answered_by": "ann"}))
}

fn withdrawn(state: Snapshot, number: usize) -> Snapshot {
    call(state, Tool::QuestionWithdraw, number, json!({}))
}

fn reopened(state: Snapshot, number: usize) -> Snapshot {
    call(state, Tool::QuestionReopen, number, json!({}))
}

/// The feature, moved along to a phase.
fn in_phase(phase: Status) -> Snapshot {
    let mut state = feature();
    for to in [Status::Building, Status::Qa] {
        if state.feature.as_ref().unwrap().status != phase {
            let input = json!({"feature_id": "a", "to": to});
            state = after(state, Tool::FeatureTransition, &input, 0, HumanInput::default());
        }
    }
    state
}

/// A turn that asks; the question is taken back.
fn asks_and_is_withdrawn(state: Snapshot, role: Role, number: usize) -> Snapshot {
    let state = begins(state, role, None);
    let asks = question(json!({"role": role}));
    let state = after(state, Tool::QuestionCreate, &asks, number, HumanInput::default());
    withdrawn(
        ends(
            state,
            TurnEnd::AskUser { question_id: id(number), blocking: true, also: Vec::new(), unread: false },
            None,
        ),
        number,
    )
}

/// The same, and the turn that is told so.
fn asked_in_vain(state: Snapshot, role: Role, number: usize) -> Snapshot {
    begins(asks_and_is_withdrawn(state, role, number), role, Some(id(number)))
}

fn work(state: &Snapshot) -> &Work {
    &state.feature.as_ref().unwrap().work
}

fn status(state: &Snapshot) -> Status {
    state.feature.as_ref().unwrap().status
}

fn check(passed: Option<bool>) -> Command {
    let feature_id = FeatureId::parse("a").unwrap();
    let (name, epoch, commit) = (CheckName::Full, 1, "c0ffee".to_owned());
    match passed {
        None => Command::BeginCheck(BeginCheck { feature_id, name, epoch, commit }),
        Some(passed) => {
            let to = Some((Status::ReadyToMerge, String::new()));
            Command::EndCheck(EndCheck { feature_id, name, epoch, commit, passed, note: String::new(), to })
        }
    }
}

#[test]
fn a_gate_that_is_asked_again_still_stops_its_feature_when_nobody_answers() {
    let lenient = || HumanInput { strict: false, ..HumanInput::default() };
    for (role, strict) in [(Role::Orchestrator, true), (Role::Human, false)] {
        let asks = question(json!({"role": role}));
        let state = withdrawn(after(feature(), Tool::QuestionCreate, &asks, 1, HumanInput::default()), 1);
        let input = json!({"feature_id": "a", "question_id": id(1)});
        let state = after(state, Tool::QuestionReopen, &input, 11, lenient());
        assert_eq!(state.question(&id(11)).unwrap().expiry_policy.strict, strict, "{role}");
    }
}

#[test]
fn a_worker_that_was_done_without_the_answer_takes_a_turn_with_it() {
    for (role, phase) in
        [(Role::Planner, Status::Planning), (Role::Builder, Status::Building), (Role::Qa, Status::Qa)]
    {
        let state = finishes(asked_in_vain(in_phase(phase), role, 1), None);
        assert_eq!(work(&state).finished, Some(true));
        let state = reopened(state, 1);
        assert_eq!((status(&state), work(&state).finished), (Status::AwaitingInput, None), "{role}");
        let state = answered(state, 11);
        assert_eq!((status(&state), work(&state).owed_to(role)), (phase, Some(&id(11))), "{role}");
        let state = finishes(begins(state, role, Some(id(11))), None);
        assert_eq!((work(&state).finished, work(&state).owed_to(role)), (Some(true), None), "{role}");
    }
}

#[test]
fn a_check_under_way_counts_no_more() {
    let state = finishes(asked_in_vain(in_phase(Status::Qa), Role::Qa, 1), None);
    let state = reopened(worked(state, check(None)), 1);
    assert_eq!(work(&state).check, None);
    let refused = decide_work(&state, check(Some(true))).unwrap_err();
    assert_eq!(refused.code.as_str(), "version_conflict");
}

#[test]
fn a_ready_feature_goes_back_to_the_asker_and_has_to_pass_again() {
    for (role, phase) in
        [(Role::Planner, Status::Planning), (Role::Builder, Status::Building), (Role::Qa, Status::Qa)]
    {
        let mut state = finishes(asked_in_vain(in_phase(phase), role, 1), None);
        for to in [Status::Building, Status::Qa].iter().skip_while(|to| **to <= phase) {
            let input = json!({"feature_id": "a", "to": to});
            state = after(state, Tool::FeatureTransition, &input, 0, HumanInput::default());
        }
        if phase != Status::Qa {
            state = finishes(begins(state, Role::Qa, None), None);
        }
        let state = worked(worked(state, check(None)), check(Some(true)));
        assert_eq!(status(&state), Status::ReadyToMerge);
        let state = answered(reopened(state, 1), 11);
        assert_eq!((status(&state), work(&state).finished, &work(&state).checked), (phase, None, &None));
        assert_eq!(work(&state).owed_to(role), Some(&id(11)), "{role}");
    }
}

#[test]
fn a_session_that_is_owed_two_ends_is_told_both_in_order_before_it_is_done() {
    let state = ends(
        asked_in_vain(in_phase(Status::Planning), Role::Planner, 1),
        TurnEnd::Error { code: "x".into(), message: "x".into(), delivered: true },
        None,
    );
    let state = begins(state, Role::Planner, None);
    let asks = question(json!({"role": "planner"}));
    let state = after(state, Tool::QuestionCreate, &asks, 2, HumanInput::default());
    let state = ends(
        state,
        TurnEnd::AskUser { question_id: id(2), blocking: true, also: Vec::new(), unread: false },
        None,
    );
    let state = answered(reopened(answered(state, 2), 1), 11);
    assert_eq!(work(&state).owed_to(Role::Planner), Some(&id(2)), "its call waits");
    let state = finishes(begins(state, Role::Planner, Some(id(2))), Some(Status::Building));
    assert_eq!((status(&state), work(&state).finished), (Status::Planning, None), "not yet");
    assert_eq!(work(&state).owed_to(Role::Planner), Some(&id(11)));
    let state = finishes(begins(state, Role::Planner, Some(id(11))), Some(Status::Building));
    assert_eq!(status(&state), Status::Building);
}

#[test]
fn a_turn_that_somebody_elses_question_cut_off_is_owed_what_it_began_with_first() {
    for (unread, owed) in [(true, [id(1), id(2)]), (false, [id(2), id(2)])] {
        let state = asked_in_vain(in_phase(Status::Planning), Role::Planner, 1);
        let asks = question(json!({"role": "planner"}));
        let state = answered(after(state, Tool::QuestionCreate, &asks, 2, HumanInput::default()), 2);
        let end = TurnEnd::AskUser { question_id: id(2), blocking: true, also: Vec::new(), unread };
        let state = ends(state, end, None);
        assert_eq!(work(&state).owed_to(Role::Planner), Some(&owed[0]), "{unread}");
        let state = finishes(begins(state, Role::Planner, Some(owed[0].clone())), Some(Status::Building));
        assert_eq!(work(&state).owed_to(Role::Planner), unread.then_some(&owed[1]), "{unread}");
    }
}

#[test]
fn a_role_of_another_phase_is_told_when_it_works_again_and_nobody_else_is_held_up() {
    let state = begins(in_phase(Status::Building), Role::Builder, None);
    let asks = question(json!({"role": "planner"}));
    let state = after(state, Tool::QuestionCreate, &asks, 1, HumanInput::default());
    let state = finishes(withdrawn(state, 1), None);
    let state = answered(reopened(state, 1), 11);
    assert_eq!((status(&state), work(&state).finished), (Status::Building, Some(true)));
    assert_eq!(work(&state).owed_to(Role::Planner), Some(&id(11)));
}

#[test]
fn what_no_worker_asked_or_what_does_not_block_is_owed_to_nobody() {
    for changes in [json!({"role": "human"}), json!({"role": "orchestrator"}), json!({"blocking": false})] {
        let asks = question(changes.clone());
        let state = after(in_phase(Status::Qa), Tool::QuestionCreate, &asks, 1, HumanInput::default());
        let state = answered(reopened(withdrawn(state, 1), 1), 11);
        assert_eq!(work(&state).replies, [], "{changes}");
    }
}

#[test]
fn the_call_goes_with_the_question_only_while_it_waits() {
    let call_of = |told: bool| {
        let mut state = asks_and_is_withdrawn(in_phase(Status::Qa), Role::Qa, 1);
        if told {
            state = finishes(begins(state, Role::Qa, Some(id(1))), None);
        }
        let engine = json!({"engine": "codex", "session": "s", "call_id": "c", "cwd": "", "version": null});
        let asked = Arc::make_mut(&mut Arc::make_mut(&mut state.questions[0]).asked);
        asked.engine_ref = Some(serde_json::from_value(engine).unwrap());
        let input = json!({"feature_id": "a", "question_id": id(1)});
        let state = decide(&state, Tool::QuestionReopen, &input, 2, HumanInput::default()).unwrap().state;
        state.question(&id(2)).unwrap().asked.engine_ref.clone()
    };
    assert_eq!(call_of(true), None, "it was told: there is no call to answer");
    assert!(call_of(false).is_some());
}

#[test]
fn one_reply_is_written_as_itself_and_several_as_a_list() {
    let one = json!({"question_id": id(1), "role": "qa"});
    for written in [json!({"reply": one}), json!({"reply": [one, {"question_id": id(2), "role": "planner"}]})]
    {
        let work: Work = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(&work).unwrap()["reply"], written["reply"]);
    }
}

#[test]
fn a_log_that_does_not_know_who_is_owed_gives_the_state_it_gave() {
    let before = finishes(asked_in_vain(in_phase(Status::Qa), Role::Qa, 1), None);
    let input = json!({"feature_id": "a", "question_id": id(1)});
    let mut state = before.clone();
    for stamped in decide(&before, Tool::QuestionReopen, &input, 2, HumanInput::default()).unwrap().events {
        let mut written = serde_json::to_value(&stamped).unwrap();
        if written["type"] == "question.opened" {
            assert_eq!(written.as_object_mut().unwrap().remove("owed_to_worker"), Some(json!(true)));
        }
        state.evolve(&serde_json::from_value(written).unwrap());
    }
    assert_eq!((status(&state), work(&state)), (Status::AwaitingInput, work(&before)));
}
