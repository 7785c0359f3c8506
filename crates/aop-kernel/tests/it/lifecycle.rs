//! Single decisions on states that only a newer version, or damage, would leave.

use crate::support::{START, after, decide, feature, id, question, request, rules};
use aop_kernel::event::{Event, Snapshot};
use aop_kernel::lifecycle::{self, Action, Moment, permit};
use aop_kernel::policy::HumanInput;
use aop_kernel::question::ResumeStatus;
use aop_kernel::role::{Caller, Role};
use aop_kernel::status::Status;
use aop_kernel::time::Timestamp;
use aop_kernel::tools::Tool;
use aop_kernel::words;
use serde_json::{Value, json};
use std::sync::Arc;

fn waiting() -> Snapshot {
    after(feature(), Tool::QuestionCreate, &question(json!({})), 1, HumanInput::default())
}

#[test]
fn edge_06_unusable_resume_status_falls_back_to_planning() {
    let unusable = [
        ResumeStatus::Unknown("hibernating".into()),
        ResumeStatus::Known(Status::AwaitingInput),
        ResumeStatus::Known(Status::Merged),
        ResumeStatus::Known(Status::Failed),
    ];
    for resume in unusable {
        for (tool, more) in [
            (Tool::QuestionAnswer, json!({"answer": "x", "answered_by": "ann"})),
            (Tool::QuestionWithdraw, json!({})),
        ] {
            let mut state = waiting();
            Arc::make_mut(&mut state.questions[0]).resume_status = Some(resume.clone());
            let mut input = more;
            input["feature_id"] = json!("a");
            input["question_id"] = json!(id(1));
            let events = decide(&state, tool, &input, 2, HumanInput::default()).unwrap().events;
            let noted = events.iter().any(|stamped| {
                matches!(&stamped.event, Event::Noted { note }
                    if note.contains("resume_fallback_to_planning") && note.contains(resume.as_str()))
            });
            assert!(noted, "{events:?}");
            events.iter().for_each(|event| state.evolve(event));
            assert_eq!(state.feature.unwrap().status, Status::Planning);
        }
    }
}

#[test]
fn the_gate_is_shut_in_awaiting_input_and_after_the_end_for_every_action() {
    for status in Status::ALL {
        let mut feature = feature().into_feature().unwrap();
        feature.status = *status;
        for action in Action::ALL {
            let code = permit(&feature, *action).err().map(|refusal| refusal.code.as_str());
            let expected = match status {
                Status::AwaitingInput => Some("question_open_blocks_action"),
                Status::Merged | Status::Failed => Some("invalid_status_transition"),
                Status::Planning | Status::Building | Status::Qa | Status::Blocked | Status::ReadyToMerge => {
                    None
                }
            };
            assert_eq!(code, expected, "{status} {action:?}");
        }
    }
}

#[test]
fn a_refusal_leaves_no_events() {
    let state = waiting();
    let asks = question(json!({"blocking": true}));
    assert!(decide(&state, Tool::QuestionCreate, &asks, 2, HumanInput::default()).is_err());
    let off = HumanInput { enabled: false, ..HumanInput::default() };
    assert_eq!(
        decide(&feature(), Tool::QuestionCreate, &asks, 2, off).unwrap_err().code.as_str(),
        "unsupported_operation"
    );
}

#[test]
fn whoever_may_not_answer_is_told_to_wait_for_the_open_question() {
    let moment = Moment { now: Timestamp::from_millis(START), question_id: id(2) };
    let mut second = request(Tool::QuestionCreate, &question(json!({})));
    for role in Role::ALL {
        second.caller = Caller::new(*role);
        let refusal = lifecycle::apply(&waiting(), &second, &moment, &rules(HumanInput::default()));
        let hint = refusal.unwrap_err().hint;
        assert!(hint.contains(id(1).as_str()), "{role}: {hint}");
        assert_eq!(hint.contains("await_answer"), role.is_worker(), "{role}: {hint}");
        assert_eq!(hint.contains("aop answer"), !role.is_worker(), "{role}: {hint}");
    }
}

#[test]
fn an_agent_that_cannot_ask_is_not_told_to_change_the_policy() {
    let moment = Moment { now: Timestamp::from_millis(START), question_id: id(1) };
    let off = rules(HumanInput { enabled: false, ..HumanInput::default() });
    let mut asks = request(Tool::QuestionCreate, &question(json!({})));
    for role in Role::ALL {
        asks.caller = Caller::new(*role);
        let hint = lifecycle::apply(&feature(), &asks, &moment, &off).unwrap_err().hint;
        assert!(hint.contains("decide without asking"), "{role}: {hint}");
        assert_eq!(hint.contains("aop.yaml"), !role.is_worker(), "{role}: {hint}");
    }
}

#[test]
fn whoever_can_ask_nobody_for_a_permission_is_not_told_to_decide() {
    let off = HumanInput { enabled: false, ..HumanInput::default() };
    for grants in ["permission_override", "risk_ack"] {
        let mut asks = request(Tool::QuestionCreate, &question(json!({"question_type": grants})));
        for role in Role::ALL {
            asks.caller = Caller::new(*role);
            let moment = Moment { now: Timestamp::from_millis(START), question_id: id(1) };
            let hint = lifecycle::apply(&feature(), &asks, &moment, &rules(off.clone())).unwrap_err().hint;
            assert!(hint.contains("it is not permitted") && !hint.contains("decide"), "{role}: {hint}");
            assert_eq!(hint.contains("aop.yaml"), !role.is_worker(), "{role}: {hint}");
        }
        // Asking again is asking.
        let asks = question(json!({"question_type": grants}));
        let state = after(feature(), Tool::QuestionCreate, &asks, 1, HumanInput::default());
        let named = json!({"feature_id": "a", "question_id": id(1)});
        let state = after(state, Tool::QuestionWithdraw, &named, 1, HumanInput::default());
        let hint = decide(&state, Tool::QuestionReopen, &named, 2, off.clone()).unwrap_err().hint;
        assert!(hint.contains("it is not permitted") && !hint.contains("decide"), "{hint}");
    }
}

#[test]
fn what_stands_in_the_place_of_a_secret_is_never_told_as_the_answer() {
    let spec = json!({"version": 1, "topic": "t", "questions": [
        {"id": "token", "header": "Token", "question": "?", "kind": "free_text", "required": true, "secret": true},
        {"id": "name", "header": "Name", "question": "?", "kind": "free_text", "required": true}]});
    let state =
        after(feature(), Tool::QuestionCreate, &question(json!({"spec": spec})), 1, HumanInput::default());
    let input = json!({"feature_id": "a", "question_id": id(1), "answered_by": "ann",
        "answer": {"token": "hunter2", "name": "bo"}});
    let answered = decide(&state, Tool::QuestionAnswer, &input, 2, HumanInput::default()).unwrap();
    let secret = answered.secret.unwrap().answer;
    let question = answered.state.question(&id(1)).unwrap();
    assert_eq!(question.whole_answer(Some(&secret)), Some(json!({"token": "hunter2", "name": "bo"})));
    assert_eq!(question.whole_answer(None), None);
    assert_eq!(words::ending(question, None).as_deref(), Some(words::LOST));
    assert!(words::ending(question, Some(&secret)).unwrap().contains("hunter2"));
}

#[test]
fn what_stands_in_the_place_of_a_secret_is_no_answer_itself() {
    for expected in
        [json!(null), json!({"kind": "json"}), json!({"kind": "json", "schema": {"type": "object"}})]
    {
        let asks = question(json!({"expected_answer": expected}));
        let state = after(feature(), Tool::QuestionCreate, &asks, 1, HumanInput::default());
        let answer = |answer: Value| {
            let input =
                json!({"feature_id": "a", "question_id": id(1), "answered_by": "ann", "answer": answer});
            decide(&state, Tool::QuestionAnswer, &input, 2, HumanInput::default())
        };
        let refused = answer(json!({"redacted": true})).unwrap_err();
        assert_eq!(refused.code.as_str(), "question_invalid_answer", "{expected}");
        assert!(refused.message.contains("where a secret was taken out"), "{}", refused.message);
        // It is the whole of it that is, not a word.
        let said = answer(json!({"redacted": true, "note": "x"})).unwrap();
        assert!(said.secret.is_none());
    }
}

#[test]
fn blank_is_never_an_answer_to_any_kind_of_question() {
    for expected in [
        json!(null),
        json!({"kind": "json"}),
        json!({"kind": "json", "schema": {"type": "string"}}),
        json!({"kind": "free_text"}),
        json!({"kind": "single_choice", "choices": ["x"], "allow_other": true}),
        json!({"kind": "multi_choice", "choices": ["x"], "allow_other": true}),
    ] {
        let asks = question(json!({"question_type": "risk_ack", "expected_answer": expected}));
        let state = after(feature(), Tool::QuestionCreate, &asks, 1, HumanInput::default());
        for blank in [json!(null), json!(""), json!(" \n\u{a0}"), json!("\u{200b}\u{2060}")] {
            let input =
                json!({"feature_id": "a", "question_id": id(1), "answered_by": "ann", "answer": blank});
            let refused = decide(&state, Tool::QuestionAnswer, &input, 2, HumanInput::default()).unwrap_err();
            assert_eq!(refused.code.as_str(), "question_invalid_answer", "{expected} {blank}");
        }
    }
}
