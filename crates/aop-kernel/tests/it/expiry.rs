//! Rule 7 as a property: the clock's transition is the same whoever notices it, and whenever.

use crate::support::{START, after, feature, question};
use aop_kernel::event::Snapshot;
use aop_kernel::lifecycle::expire_due;
use aop_kernel::policy::{HumanInput, OnTimeout};
use aop_kernel::time::Timestamp;
use aop_kernel::tools::Tool;
use proptest::prelude::*;
use serde_json::json;

/// One question: does it block, is the policy strict, does it fail the feature, who decides, how long.
type Asked = (bool, bool, bool, usize, u64);

/// A feature with some questions open, each asked under a policy of its own.
fn state(asked: &[Asked]) -> Snapshot {
    let mut blocked = false;
    let mut state = feature();
    for (number, (blocking, strict, fail, decision, timeout_ms)) in asked.iter().enumerate() {
        let policy = HumanInput {
            strict: *strict,
            on_timeout: if *fail { OnTimeout::FailFeature } else { OnTimeout::BlockFeature },
            max_open_questions_per_feature: 99,
            ..HumanInput::default()
        };
        let decides = ["engine_judgement", "use_default", "decline"][*decision];
        let input = question(json!({"blocking": *blocking && !blocked, "timeout_ms": timeout_ms,
            "default_decision_policy": decides,
            "expected_answer": {"kind": "free_text", "default": "d"}}));
        blocked |= *blocking;
        state = after(state, Tool::QuestionCreate, &input, number + 1, policy);
    }
    state
}

proptest! {
    #[test]
    fn noticing_twice_is_noticing_once(
        asked in prop::collection::vec((any::<bool>(), any::<bool>(), any::<bool>(), 0..3_usize, 1_000..9_000_u64), 0..6),
        mut times in prop::collection::vec(0..10_000_i64, 1..5),
    ) {
        times.sort_unstable();
        let at = |offset: i64| Timestamp::from_millis(START + offset);
        let before = state(&asked);
        let once = expire_due(&before, at(*times.last().unwrap()));
        let mut step_by_step = before;
        let mut events = Vec::new();
        for time in times {
            let expiry = expire_due(&step_by_step, at(time));
            events.extend(expiry.events);
            step_by_step = expiry.state;
        }
        prop_assert_eq!(&step_by_step, &once.state);
        prop_assert_eq!(&events, &once.events);
        prop_assert!(events.is_sorted_by_key(|event| event.at));
        let waits = once.state.feature.as_ref().unwrap().waiting.as_ref().map(|waiting| waiting.question_id.clone());
        let blocking = once.state.open_questions().find(|question| question.asked.blocking);
        prop_assert_eq!(waits, blocking.map(|question| question.id.clone()));
    }
}
