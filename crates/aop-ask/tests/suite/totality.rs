//! Whatever comes in, parsers and decoders answer: no panic, and nothing is half taken.

use crate::arbitrary::case;
use aop_ask::{Answers, Dialogue, Options, QuestionSpec, Step, Target, import, prompts};
use proptest::prelude::*;
use serde_json::{Value, json};

/// JSON that often looks like a reply or a document.
fn any_json() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        "[A-D]",
        "[A-C], [A-C]",
        "\\PC{0,8}",
        Just("Done".to_owned()),
        Just("Add another".to_owned()),
        Just("Skip".to_owned()),
        Just("Back".to_owned()),
        Just("user_note: x".to_owned()),
        Just("{\"answers\": {\"q_0\": \"A\"}}".to_owned()),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        word.prop_map(Value::from),
    ];
    let key = prop_oneof![
        Just("answers".to_owned()),
        Just("action".to_owned()),
        Just("content".to_owned()),
        Just("selected".to_owned()),
        Just("text".to_owned()),
        Just("questions".to_owned()),
        Just("options".to_owned()),
        Just("steps".to_owned()),
        "q_[0-3]",
        "[a-z?]{1,4}",
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..4)
                .prop_map(|entries| entries.into_iter().collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_reply_makes_a_dialogue_panic_or_end_in_invalid_answers(
        case in case(),
        replies in prop::collection::vec(any_json(), 0..8),
    ) {
        for target in Target::ALL {
            let mut dialogue = Dialogue::start(case.spec.clone(), target, Options::default()).unwrap();
            for reply in &replies {
                let before = serde_json::to_value(&dialogue).unwrap();
                if dialogue.reply(reply).is_err() {
                    prop_assert_eq!(serde_json::to_value(&dialogue).unwrap(), before);
                }
            }
            if let Step::Done(answers) = dialogue.next() {
                prop_assert!(Answers::check(&case.spec, &answers.to_json()).is_ok());
            }
        }
    }

    #[test]
    fn no_document_makes_a_validator_panic(document in any_json()) {
        let _ = QuestionSpec::from_json(&document);
        let _ = aop_ask::gate::Packet::from_json(&json!({"novel_ask": document, "answer_path": document}));
        let _ = prompts::check_json(&document);
        let _ = prompts::inputs(&document);
        let _ = import::codex(&document, None);
    }

    #[test]
    fn no_bytes_make_a_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = QuestionSpec::parse(&bytes);
        let _ = prompts::check(&bytes);
    }
}

#[test]
fn ten_thousand_options_are_asked_in_nine_steps() {
    let options: Vec<Value> =
        (0..10_000).map(|i| json!({"label": format!("L{i}"), "description": "d"})).collect();
    let spec = json!({"version": 1, "topic": "t", "questions": [{"id": "pick", "header": "h", "question": "q",
        "kind": "single_choice", "required": true, "options": options}]});
    let spec = QuestionSpec::from_json(&spec).unwrap();
    let mut dialogue = Dialogue::start(spec, Target::Codex, Options::default()).unwrap();
    let mut steps = 0;
    while let Step::Ask(request) = dialogue.next() {
        let first = request.input["questions"][0]["options"][0]["label"].clone();
        dialogue.reply(&json!({"answers": {"pick": {"answers": [first]}}})).unwrap();
        steps += 1;
    }
    assert_eq!(steps, 9);
}
