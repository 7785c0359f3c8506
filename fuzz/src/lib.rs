//! What the fuzz targets share: a spec with one question of each kind, and a dialogue fed with whatever.

use aop_ask::{Dialogue, Options, QuestionSpec, Step, Target};
use serde_json::Value;

const SPEC: &str = include_str!("../spec.json");

/// Replies to a dialogue until it ends or the list does. Malformed replies are refused, never taken.
pub fn converse(target: Target, replies: &[Value]) {
    let Ok(spec) = QuestionSpec::parse(SPEC.as_bytes()) else { return };
    let Ok(mut dialogue) = Dialogue::start(spec, target, Options::default()) else { return };
    for reply in replies.iter().take(64) {
        let before = dialogue.unanswered().len();
        if dialogue.reply(reply).is_err() {
            assert_eq!(dialogue.unanswered().len(), before, "a refused reply changed something");
        }
    }
    if let Step::Done(answers) = dialogue.next() {
        let checked = aop_ask::Answers::check(dialogue.spec(), &answers.to_json());
        assert!(checked.is_ok(), "a dialogue ended in answers that its spec refuses");
    }
}

/// The same with a JSON array of replies.
pub fn converse_json(target: Target, data: &[u8]) {
    if let Ok(Value::Array(replies)) = aop_ask::json::read(data) {
        converse(target, &replies);
    }
}
