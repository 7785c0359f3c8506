//! The equivalence law: whatever the human means, every target ends in the same answers.
//!
//! 256 cases in a normal run; `PROPTEST_CASES=10000` for the nightly one.

use crate::arbitrary::{Case, case};
use crate::human::Human;
use crate::native;
use aop_ask::{AnswerSpec, AnswerValue, Dialogue, Options, Protocol, Step, Target};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Plays a whole dialogue and gives the answers it ends in.
fn play(case: &Case, target: Target, options: Options) -> Value {
    let mut dialogue = Dialogue::start(case.spec.clone(), target, options).unwrap();
    let mut human = Human::new(&case.spec, &case.means);
    human.overlooks.clone_from(&case.overlooks);
    for round in 0..500 {
        match dialogue.next() {
            Step::Ask(request) => {
                native::check(target, &case.spec, &request);
                let reply = human.replies(target, &request);
                dialogue.reply(&reply).unwrap();
                // A crash must lose nothing. Reading back replays every reply, so not after each of them.
                if round % 16 == 3 {
                    let written = serde_json::to_string(&dialogue).unwrap();
                    dialogue = serde_json::from_str(&written).unwrap();
                }
            }
            Step::Done(answers) => {
                AnswerSpec::new(&case.spec, &answers, "2026-03-04T22:00:00Z", "human").unwrap();
                return answers.to_json();
            }
            Step::Escaped { .. } => panic!("nobody pressed Esc"),
        }
    }
    panic!("{target:?} never ends");
}

/// What a record of the human's meaning holds: labels in option order, other texts after them.
fn canonical(case: &Case) -> Value {
    let entries = case.spec.questions().iter().filter_map(|question| {
        let value = match case.means.get(question.id())? {
            AnswerValue::One(text) => json!(text),
            AnswerValue::Many(items) => {
                let mut items = items.clone();
                items.sort_by_key(|item| question.position(item).unwrap_or(usize::MAX));
                json!(items)
            }
        };
        Some((question.id().to_owned(), value))
    });
    Value::Object(entries.collect())
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_target_ends_in_the_same_answers(case in case()) {
        let meant = canonical(&case);
        for target in Target::ALL {
            for protocol in [Protocol::V2025_11_25, Protocol::V2025_06_18] {
                if target != Target::Elicitation && protocol == Protocol::V2025_06_18 {
                    continue;
                }
                let ended = play(&case, target, Options { protocol, ..Options::default() });
                prop_assert_eq!(&ended, &meant, "{:?}", target);
            }
        }
    }

    #[test]
    fn the_same_spec_gives_the_same_bytes(case in case()) {
        for target in Target::ALL {
            let first = Dialogue::start(case.spec.clone(), target, Options::default()).unwrap().next();
            let copy = aop_ask::QuestionSpec::from_json(&case.spec.to_json()).unwrap();
            let second = Dialogue::start(copy, target, Options::default()).unwrap().next();
            match (first, second) {
                (Step::Ask(a), Step::Ask(b)) => {
                    prop_assert_eq!(serde_json::to_string(&a).unwrap(), serde_json::to_string(&b).unwrap());
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }
}
