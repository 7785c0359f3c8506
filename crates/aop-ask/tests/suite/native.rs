//! Holds native requests against the tools' real argument schemas and the rules schemas cannot say.

use aop_ask::{QuestionSpec, Request, Target};
use jsonschema::Validator;
use serde_json::Value;
use std::collections::HashSet;
use std::sync::LazyLock;

fn validator(text: &str) -> Validator {
    jsonschema::validator_for(&serde_json::from_str(text).unwrap()).unwrap()
}

static CLAUDE_CODE: LazyLock<Validator> =
    LazyLock::new(|| validator(include_str!("../fixtures/native/ask_user_question.schema.json")));
static CODEX: LazyLock<Validator> =
    LazyLock::new(|| validator(include_str!("../fixtures/native/request_user_input.schema.json")));
static ELICITATION: LazyLock<Validator> =
    LazyLock::new(|| validator(include_str!("../fixtures/native/elicitation_create.schema.json")));

/// Panics when the tool would refuse the request or a question of the spec is not shown verbatim.
pub(crate) fn check(target: Target, spec: &QuestionSpec, request: &Request) {
    let input = &request.input;
    let (tool, schema) = match target {
        Target::ClaudeCode => ("AskUserQuestion", Some(&*CLAUDE_CODE)),
        Target::Codex => ("request_user_input", Some(&*CODEX)),
        Target::Elicitation => ("elicitation/create", Some(&*ELICITATION)),
        Target::StrictText => ("strict-text", None),
        Target::Terminal => ("terminal", None),
    };
    assert_eq!(request.tool, tool);
    if let Some(schema) = schema
        && let Err(error) = schema.validate(input)
    {
        panic!("{tool} would refuse {input}: {error}");
    }
    let holds = |id: &str, text: &Value| {
        let question = spec.question(id).unwrap();
        let text = text.as_str().unwrap_or_default();
        assert!(text.contains(question.question()), "{:?} does not stand in {text:?}", question.question());
    };
    match target {
        Target::Terminal => holds(input["id"].as_str().unwrap(), &input["question"]),
        Target::Elicitation => {
            for id in input["requestedSchema"]["properties"].as_object().unwrap().keys() {
                let id = id.strip_suffix("__other").unwrap_or(id);
                holds(id, &input["requestedSchema"]["properties"][id]["description"]);
            }
        }
        Target::StrictText => {
            let prompt = input["prompt"].as_str().unwrap();
            let asked = |id: &str| prompt.contains(&format!("\n## {id} ("));
            let ids = spec.questions().iter().map(|question| question.id());
            ids.filter(|id| asked(id)).for_each(|id| holds(id, &input["prompt"]));
        }
        Target::ClaudeCode | Target::Codex => cards(target, spec, input),
    }
}

/// The questions of a call: none twice, each with a question of the spec in it, no option twice.
fn cards(target: Target, spec: &QuestionSpec, input: &Value) {
    let mut texts = HashSet::new();
    for native in input["questions"].as_array().unwrap() {
        let text = native["question"].as_str().unwrap();
        assert!(target == Target::Codex || texts.insert(text), "two questions with the text {text:?}");
        assert!(
            spec.questions().iter().any(|question| text.contains(question.question())),
            "no question of the spec stands in {text:?}"
        );
        let mut labels = HashSet::new();
        for option in native["options"].as_array().unwrap() {
            assert!(labels.insert(option["label"].as_str().unwrap()), "two equal labels in {native}");
        }
    }
}
