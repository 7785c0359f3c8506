//! The steps of the model: everything a caller, the clock or a change of policy can do to a project.

use aop_kernel::ids::FeatureId;
use aop_kernel::lifecycle::{BeginCheck, BeginTurn, Command, EndCheck, EndTurn, Merge};
use aop_kernel::role::Role;
use aop_kernel::status::Status;
use aop_kernel::work::{CheckName, TurnEnd};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// How many features there are to act on.
const FEATURES: usize = 3;

/// One step. Features, questions and earlier calls are named by position, wrapped around what there is.
#[derive(Debug, Clone)]
pub(super) enum Step {
    CreateFeature {
        feature: usize,
    },
    Ask {
        feature: usize,
        blocking: bool,
        expected: usize,
        policy: usize,
        timeout_ms: Option<u64>,
    },
    Answer {
        question: usize,
        answer: usize,
        who: usize,
    },
    Withdraw {
        question: usize,
        role: &'static str,
    },
    Reopen {
        question: usize,
    },
    Transition {
        feature: usize,
        to: &'static str,
    },
    Cancel {
        feature: usize,
    },
    Retry {
        feature: usize,
    },
    Note {
        feature: usize,
    },
    /// Something that only a runner does, by number.
    Work {
        feature: usize,
        what: usize,
        epoch: u64,
    },
    /// An earlier call once more, whenever it was and whatever came of it.
    Again {
        call: usize,
    },
    /// An earlier call's operation id on a new request.
    Reuse {
        call: usize,
        feature: usize,
    },
    Expire,
    Clock {
        millis: i64,
    },
    Policy {
        strict: bool,
        fail: bool,
        enabled: bool,
        limit: u32,
        timeout_ms: u64,
    },
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..40)
}

fn step() -> impl Strategy<Value = Step> {
    let feature = 0..FEATURES;
    let question = 0..8_usize;
    let call = 0..64_usize;
    let role = prop::sample::select(vec!["planner", "builder", "orchestrator", "human"]);
    let status = prop::sample::select(vec![
        "planning",
        "building",
        "qa",
        "blocked",
        "awaiting_input",
        "ready_to_merge",
        "merged",
        "failed",
    ]);
    let jump = prop_oneof![0..2_000_i64, Just(1_000), Just(60_000), Just(900_000), -2_000_000..0_i64];
    let wanted = prop::option::of(prop::sample::select(vec![0_u64, 1, 1_000, 60_000, u64::MAX]));
    let policy =
        (any::<bool>(), any::<bool>(), 0..8_u32, 0..4_u32, prop::sample::select(vec![0_u64, 1_000, 900_000]));
    prop_oneof![
        2 => feature.clone().prop_map(|feature| Step::CreateFeature { feature }),
        6 => (feature.clone(), any::<bool>(), 0..EXPECTED, 0..4_usize, wanted).prop_map(
            |(feature, blocking, expected, policy, timeout_ms)|
                Step::Ask { feature, blocking, expected, policy, timeout_ms }),
        5 => (question.clone(), 0..ANSWERS, 0..3_usize).prop_map(
            |(question, answer, who)| Step::Answer { question, answer, who }),
        2 => (question.clone(), role).prop_map(|(question, role)| Step::Withdraw { question, role }),
        2 => question.prop_map(|question| Step::Reopen { question }),
        4 => (feature.clone(), status).prop_map(|(feature, to)| Step::Transition { feature, to }),
        1 => feature.clone().prop_map(|feature| Step::Cancel { feature }),
        2 => feature.clone().prop_map(|feature| Step::Retry { feature }),
        1 => feature.clone().prop_map(|feature| Step::Note { feature }),
        9 => (feature.clone(), 0..WORK, 1..3_u64).prop_map(
            |(feature, what, epoch)| Step::Work { feature, what, epoch }),
        3 => call.clone().prop_map(|call| Step::Again { call }),
        1 => (call, feature).prop_map(|(call, feature)| Step::Reuse { call, feature }),
        1 => Just(Step::Expire),
        3 => jump.prop_map(|millis| Step::Clock { millis }),
        1 => policy.prop_map(|(strict, fail, enabled, limit, timeout_ms)|
            Step::Policy { strict, fail, enabled: enabled > 0, limit, timeout_ms }),
    ]
}

const WORK: usize = 9;

/// What a runner does, by number; not every one fits every state.
pub(super) fn work(number: usize, feature_id: FeatureId, epoch: u64) -> Command {
    let claim = "claim".to_owned();
    let commit = "c0ffee".to_owned();
    let end = |end: TurnEnd, to: Option<Status>| {
        let to = to.map(|to| (to, "so it is".to_owned()));
        let (feature_id, claim) = (feature_id.clone(), claim.clone());
        Command::EndTurn(Box::new(EndTurn { feature_id, claim, epoch, end, notes: vec!["n".into()], to }))
    };
    match number {
        0..3 => {
            let role = [Role::Planner, Role::Builder, Role::Qa][number];
            let engine = "scripted".to_owned();
            Command::BeginTurn(BeginTurn { feature_id, claim, epoch, role, engine, reply_to: None })
        }
        3 => end(TurnEnd::Final { result: Map::new(), goes_on: true }, Some(Status::Building)),
        4 => end(TurnEnd::Final { result: Map::new(), goes_on: true }, None),
        5 => {
            let (code, message) = ("ENGINE_FAILED".to_owned(), "gone".to_owned());
            end(TurnEnd::Error { code, message, delivered: false }, Some(Status::Blocked))
        }
        6 => Command::BeginCheck(BeginCheck { feature_id, name: CheckName::Full, epoch, commit }),
        7 => Command::EndCheck(EndCheck {
            feature_id,
            name: CheckName::Full,
            epoch,
            commit,
            passed: true,
            note: "fine".into(),
            to: Some((Status::ReadyToMerge, String::new())),
        }),
        _ => Command::Merge(Merge { feature_id, commit, merge_commit: "beef".into(), into: "main".into() }),
    }
}

const EXPECTED: usize = 5;
const ANSWERS: usize = 6;

/// What the asker expects, by number.
pub(super) fn expectation(number: usize) -> Value {
    match number {
        0 => json!({"expected_answer": {"kind": "single_choice", "choices": ["x", "y"], "default": "y"}}),
        1 => json!({"expected_answer": {"kind": "multi_choice", "choices": ["x", "y"], "allow_other": true}}),
        2 => {
            json!({"expected_answer": {"kind": "json", "schema": {"required": ["k"]}, "default": {"k": 0.1}}})
        }
        3 => json!({"spec": {"version": 1, "topic": "t", "questions": [
            {"id": "way", "header": "Way", "question": "Which?", "kind": "single_choice", "required": true,
             "default": "L", "options": [{"label": "L", "description": "left"}]},
            {"id": "key", "header": "Key", "question": "Key?", "kind": "free_text", "required": false,
             "secret": true}]}}),
        _ => json!({}),
    }
}

/// What is answered, by number; not every one fits every question.
pub(super) fn answer(number: usize) -> Value {
    match number {
        0 => json!("x"),
        1 => json!(["y", "x"]),
        2 => json!({"k": [1, 2.5e-9, null]}),
        3 => json!({"way": "L", "key": "secret"}),
        4 => json!(" "),
        _ => json!({}),
    }
}

/// The decision policy asked for, by number.
pub(super) fn decision(number: usize) -> Value {
    [Value::Null, json!("engine_judgement"), json!("use_default"), json!("decline")][number].clone()
}
