//! An ask as the arguments of `feature.question_create`, without what only the caller knows (feature, role,
//! session, operation).

use super::{Ask, Reply};
use serde_json::{Map, Value, json};

/// The record takes no longer prompt.
const MAX_PROMPT_BYTES: usize = 64 << 10;
const CUT_NOTE: &str =
    "\n\n[… the middle is left out here; the whole message is in the transcript of the turn …]\n\n";

/// The arguments. An open interaction goes along so that surfaces can show it as the engine meant it; a record with
/// an interaction takes any text, so one that expects something has none.
pub fn question_arguments(ask: &Ask) -> Map<String, Value> {
    let prompt = fitted(&ask.interaction.prompt);
    let mut interaction = ask.interaction.clone();
    interaction.prompt.clone_from(&prompt);
    let mut arguments = Map::new();
    arguments.insert("question_type".into(), ask.question_type.as_str().into());
    arguments.insert("prompt".into(), prompt.into());
    arguments.insert("details".into(), ask.details.clone());
    arguments.insert("expected_answer".into(), ask.expected_answer.clone());
    arguments.insert("blocking".into(), ask.blocking.into());
    if let Some(spec) = &ask.spec {
        arguments.insert("spec".into(), spec.clone());
    }
    arguments.insert("default_decision_policy".into(), interaction.default_decision_policy.as_str().into());
    match ask.reply {
        Reply::Open => arguments.insert("interaction".into(), json!(interaction)),
        Reply::AsExpected => None,
    };
    arguments
}

/// Beginning and end of what is too long: what is asked often stands last.
fn fitted(prompt: &str) -> String {
    if prompt.len() <= MAX_PROMPT_BYTES {
        return prompt.to_owned();
    }
    let half = (MAX_PROMPT_BYTES - CUT_NOTE.len()) / 2;
    let begin = prompt.floor_char_boundary(half);
    let end = prompt.ceil_char_boundary(prompt.len() - half);
    format!("{}{CUT_NOTE}{}", &prompt[..begin], &prompt[end..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::dialect::read_payload;
    use crate::ask::{Payload, from_native};
    use crate::interaction::InteractionId;
    use crate::native::{NativeAsk, Stage, read_ask, read_permission};

    fn native(call: &str, input: &Value) -> NativeAsk {
        NativeAsk { call_id: call.into(), message: None, stage: Stage::Waiting, body: read_ask(input) }
    }

    #[test]
    fn a_worker_request_keeps_its_record_fields() {
        let object = json!({"type": "REQUEST", "request": {"action": "ask_user_input",
            "question_type": "permission_override", "prompt": "May I?", "details": {"paths": ["a"]},
            "expected_answer": {"kind": "single_choice", "choices": ["approve", "deny"]}, "blocking": true}});
        let Payload::Ask(ask) = read_payload(object.as_object().unwrap(), 3) else { panic!() };
        let arguments = question_arguments(&ask);
        assert_eq!(arguments["question_type"], "permission_override");
        assert_eq!(arguments["details"], json!({"paths": ["a"]}));
        assert_eq!(arguments["expected_answer"]["choices"], json!(["approve", "deny"]));
        assert_eq!(arguments["default_decision_policy"], "decline");
        assert_eq!(arguments.get("interaction"), None, "the record enforces what it expects");
        assert_eq!(ask.interaction.interaction_id, InteractionId::Number(3));
        assert_eq!(ask.interaction.options[0].label, "approve");
    }

    #[test]
    fn slips_in_side_fields_do_not_cost_the_question() {
        let object = json!({"type": "REQUEST", "request": {"action": "ask_user_input", "prompt": "?",
            "question_type": "whim", "details": "why not", "expected_answer": {"kind": "single_choice", "choices": ["a", "a"]}}});
        let Payload::Ask(ask) = read_payload(object.as_object().unwrap(), 1) else { panic!() };
        let arguments = question_arguments(&ask);
        assert_eq!(arguments["question_type"], "clarification");
        assert_eq!(arguments["expected_answer"], Value::Null);
        assert_eq!(arguments["details"], json!({"text": "why not"}));
        assert_eq!(arguments["interaction"]["prompt"], "?", "nothing is expected, so the reply is open");
    }

    #[test]
    fn an_expectation_keeps_only_what_goes_with_its_kind() {
        for (given, kept) in [
            (json!({"kind": "free_text", "choices": ["a"], "why": 1}), json!({"kind": "free_text"})),
            (
                json!({"kind": "multi_choice", "choices": ["a", "b"], "allow_other": true, "default": ["a"], "x": 1}),
                json!({"kind": "multi_choice", "choices": ["a", "b"], "allow_other": true, "default": ["a"]}),
            ),
            (
                json!({"kind": "single_choice", "choices": ["a"], "default": "z"}),
                json!({"kind": "single_choice", "choices": ["a"]}),
            ),
            (
                json!({"kind": "json", "schema": {"type": "object"}, "choices": []}),
                json!({"kind": "json", "schema": {"type": "object"}}),
            ),
            (json!({"kind": "single_choice", "choices": ["a", "__other__"]}), Value::Null),
            (json!({"kind": "form"}), Value::Null),
            (json!("yes"), Value::Null),
        ] {
            let object = json!({"type": "REQUEST", "request": {"action": "ask_user_input", "prompt": "?", "expected_answer": given}});
            let Payload::Ask(ask) = read_payload(object.as_object().unwrap(), 1) else { panic!() };
            assert_eq!(question_arguments(&ask)["expected_answer"], kept);
        }
    }

    #[test]
    fn two_cards_become_one_form() {
        let first =
            native("a", &json!({"questions": [{"question": "One?", "header": "H", "options": ["x", "y"]}]}));
        let second = native("b", &json!({"questions": [{"question": "Two?", "header": "H"}]}));
        let ask = from_native(&[&first, &second], 1).unwrap();
        let calls: Vec<(&str, usize)> =
            ask.calls.iter().map(|call| (call.call_id.as_str(), call.questions)).collect();
        assert_eq!(calls, [("a", 1), ("b", 1)]);
        assert_eq!(ask.interaction.prompt, "1. One?\n2. Two?");
        let arguments = question_arguments(&ask);
        assert_eq!(arguments["spec"]["questions"][1]["id"], "h_2");
        assert_eq!(arguments["interaction"]["kind"], "fill_fields");
        assert_eq!(arguments["interaction"]["required_fields"], json!(["h", "h_2"]));
        assert_eq!(arguments["expected_answer"], Value::Null);
    }

    #[test]
    fn a_permission_is_declined_when_nobody_answers() {
        let body = read_permission("Bash", &json!({"command": "rm -r build"}), Some("clean"));
        let ask = NativeAsk { call_id: "t".into(), message: None, stage: Stage::Waiting, body };
        let arguments = question_arguments(&from_native(&[&ask], 1).unwrap());
        assert_eq!(arguments["question_type"], "permission_override");
        assert_eq!(arguments["default_decision_policy"], "decline");
        assert_eq!(arguments["details"]["input"]["command"], "rm -r build");
        assert!(arguments["prompt"].as_str().unwrap().contains("rm -r build"));
    }

    #[test]
    fn our_own_tool_keeps_choices_or_spec() {
        let ask = native("c", &json!({"prompt": "Which?", "choices": ["a", "b"], "spec": {"version": 0}}));
        let ask = from_native(&[&ask], 1).unwrap();
        assert_eq!(ask.interaction.kind.as_str(), "choose_one");
        let arguments = question_arguments(&ask);
        assert_eq!(
            arguments["expected_answer"],
            json!({"kind": "single_choice", "choices": ["a", "b"], "allow_other": false})
        );
        assert_eq!(arguments.get("spec"), None, "an unusable spec does not cost the question");

        let spec = json!({"version": 1, "topic": "t", "questions": [
            {"id": "a", "header": "A", "question": "A?", "kind": "free_text", "required": true}]});
        let ask = native("c", &json!({"prompt": "Which?", "choices": ["a", "b"], "spec": spec}));
        let arguments = question_arguments(&from_native(&[&ask], 1).unwrap());
        assert_eq!(arguments["spec"], spec);
        assert_eq!(arguments["expected_answer"], Value::Null, "a spec expects its form");
    }

    #[test]
    fn a_prompt_longer_than_the_record_takes_loses_its_middle_and_not_what_is_asked() {
        let ask = Ask::open(InteractionId::Number(1), 1, format!("{} Which?", "ä".repeat(40_000)));
        let arguments = question_arguments(&ask);
        let prompt = arguments["prompt"].as_str().unwrap();
        assert!(prompt.len() <= MAX_PROMPT_BYTES && prompt.contains("in the transcript of the turn"));
        assert!(prompt.starts_with('ä') && prompt.ends_with(" Which?"));
        assert_eq!(arguments["interaction"]["prompt"], prompt);
    }
}
