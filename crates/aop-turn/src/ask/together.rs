//! Several asks of one message as one form. What cannot stand in it is left out, and named: a record has one type, one
//! policy, and one thing that it expects.

use super::{Ask, QuestionType, Reply, WaitingCall};
use crate::interaction::{Interaction, Kind};
use crate::native::non_blank;
use crate::outcome::ASK_LEFT_OUT;
use crate::quote::{excerpt, inline};
use aop_ask::{Ids, QuestionSpec};
use serde_json::{Map, Value, json};

/// An ask as it is when it stands alone.
pub(super) struct Part {
    /// The ask.
    pub(super) ask: Ask,
    /// Its questions in words.
    pub(super) lines: Vec<String>,
}

/// One ask of all; none when there are none.
pub(super) fn together(parts: Vec<Part>) -> Option<Ask> {
    let mut parts = parts.into_iter();
    let first = parts.next()?;
    let is_open = can_join(&first);
    let (mut form, mut left) = (vec![first], Vec::new());
    for part in parts {
        let fits = is_open && is_alike(&form[0].ask, &part.ask) && can_join(&part);
        if fits { form.push(part) } else { left.push(part) }
    }
    let mut ask = if form.len() > 1 { joined(&form)? } else { form.pop()?.ask };
    ask.warnings.extend(left.iter().map(|part| {
        let calls: Vec<&str> = part.ask.calls.iter().map(|call| &*call.call_id).collect();
        let asked = inline(&excerpt(&part.ask.interaction.prompt));
        format!(
            "{ASK_LEFT_OUT}: \"{asked}\" (call {}) cannot stand in one form with the rest",
            calls.join(", ")
        )
    }));
    Some(ask)
}

/// Lines that are told apart, where there are several.
pub(super) fn numbered<'a>(lines: impl ExactSizeIterator<Item = &'a str>) -> String {
    if lines.len() == 1 {
        return lines.collect();
    }
    let lines = lines.enumerate().map(|(n, line)| format!("{}. {line}", n + 1));
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether one record can be about both.
fn is_alike(one: &Ask, other: &Ask) -> bool {
    let traits = |ask: &Ask| (ask.question_type, ask.blocking, ask.interaction.default_decision_policy);
    traits(one) == traits(other)
}

/// Whether it may be one question among others. A permission may not, nor a risk: people say yes to each by itself.
fn can_join(part: &Part) -> bool {
    let is_plain =
        matches!(part.ask.question_type, QuestionType::Clarification | QuestionType::ExternalDecision);
    is_plain && questions(&part.ask).is_some_and(|questions| spec(questions).is_some())
}

fn spec(questions: Vec<Value>) -> Option<QuestionSpec> {
    QuestionSpec::from_json(&json!({"version": 1, "topic": "engine_ask", "questions": questions})).ok()
}

/// The ask as questions of a form; none where a form would expect something else.
fn questions(ask: &Ask) -> Option<Vec<Value>> {
    let expected = &ask.expected_answer;
    let has_only = |keys: &[&str]| {
        expected.as_object().is_none_or(|fields| fields.keys().all(|key| keys.contains(&key.as_str())))
    };
    if let Some(spec) = &ask.spec {
        return has_only(&["kind"]).then(|| spec["questions"].as_array().cloned()).flatten();
    }
    let header = non_blank(ask.interaction.ui_hints.get("header")).unwrap_or("Question");
    let prompt = &ask.interaction.prompt;
    let mut question = json!({"id": "question", "header": header, "question": prompt, "kind": "free_text", "required": true});
    match expected.get("kind").and_then(Value::as_str) {
        // A card that is no form has options that none can carry.
        None if ask.reply == Reply::Open => return None,
        None | Some("free_text") if has_only(&["kind"]) => {}
        Some(kind) if has_only(&["kind", "choices", "allow_other", "default"]) => {
            let choices = expected.get("choices")?.as_array()?;
            question["kind"] = kind.into();
            question["options"] =
                choices.iter().map(|label| json!({"label": label, "description": label})).collect();
            for key in ["allow_other", "default"] {
                if let Some(value) = expected.get(key) {
                    question[key] = value.clone();
                }
            }
        }
        _ => return None,
    }
    Some(vec![question])
}

/// The form of these, each of which can join.
fn joined(parts: &[Part]) -> Option<Ask> {
    let first = &parts.first()?.ask;
    let lines: Vec<&str> = parts.iter().flat_map(|part| &part.lines).map(String::as_str).collect();
    let id = first.interaction.interaction_id.clone();
    let mut interaction =
        Interaction::open(id, first.interaction.source_attempt, numbered(lines.into_iter()));
    interaction.kind = Kind::FillFields;
    interaction.default_decision_policy = first.interaction.default_decision_policy;
    let mut ask =
        Ask { question_type: first.question_type, blocking: first.blocking, ..Ask::of(interaction) };
    // Whoever is shown a card may also answer it with one text; then that goes for the whole form.
    let has_card = parts.iter().any(|part| part.ask.reply == Reply::Open);
    ask.reply = if has_card { Reply::Open } else { Reply::AsExpected };
    let (mut all, mut ids, mut details) = (Vec::new(), Ids::default(), Map::new());
    for part in parts {
        let place = all.len();
        for mut question in questions(&part.ask)? {
            let id = ids.give(question["id"].as_str()?);
            question["id"] = id.clone().into();
            ask.interaction.required_fields.push(id);
            all.push(question);
        }
        if !part.ask.details.is_null() {
            details.insert(ask.interaction.required_fields.get(place)?.clone(), part.ask.details.clone());
        }
        let count = all.len() - place;
        ask.calls.extend(part.ask.calls.iter().map(|call| WaitingCall {
            // A card says itself how many are whose.
            questions: if call.questions == 0 { count } else { call.questions },
            call_id: call.call_id.clone(),
        }));
        ask.warnings.extend(part.ask.warnings.iter().cloned());
    }
    if !details.is_empty() {
        ask.details = Value::Object(details);
    }
    ask.spec = Some(spec(all)?.to_json());
    Some(ask)
}

#[cfg(test)]
mod tests {
    use crate::ask::{Ask, from_native, question_arguments};
    use crate::native::{AskBody, NativeAsk, Stage, read_ask, read_permission};
    use serde_json::{Value, json};

    fn native(call: &str, body: AskBody) -> NativeAsk {
        NativeAsk { call_id: call.into(), message: None, stage: Stage::Waiting, body }
    }

    fn asked(bodies: Vec<AskBody>) -> Ask {
        let names = ["a", "b", "c", "d"];
        let asks: Vec<NativeAsk> =
            bodies.into_iter().zip(names).map(|(body, call)| native(call, body)).collect();
        from_native(&asks.iter().collect::<Vec<_>>(), 1).unwrap()
    }

    fn card() -> AskBody {
        read_ask(&json!({"questions": [{"question": "Which?", "header": "Question", "options": ["x", "y"]}]}))
    }

    #[test]
    fn two_prompts_become_one_form_that_is_as_strict_as_they_are() {
        let ask = asked(vec![
            read_ask(&json!({"prompt": "Which database?", "choices": ["Postgres", "SQLite"]})),
            read_ask(&json!({"prompt": "What is it called?", "details": {"so_far": "shop"}})),
        ]);
        assert_eq!(ask.warnings, [""; 0]);
        assert_eq!(ask.interaction.prompt, "1. Which database?\n2. What is it called?");
        let calls: Vec<(&str, usize)> =
            ask.calls.iter().map(|call| (&*call.call_id, call.questions)).collect();
        assert_eq!(calls, [("a", 1), ("b", 1)]);
        let arguments = question_arguments(&ask);
        assert_eq!(
            arguments["spec"]["questions"],
            json!([
                {"id": "question", "header": "Question", "question": "Which database?", "kind": "single_choice",
                    "required": true, "allow_other": false, "options": [
                        {"label": "Postgres", "description": "Postgres"}, {"label": "SQLite", "description": "SQLite"}]},
                {"id": "question_2", "header": "Question", "question": "What is it called?", "kind": "free_text",
                    "required": true}])
        );
        assert_eq!(arguments["details"], json!({"question_2": {"so_far": "shop"}}));
        assert_eq!(arguments["expected_answer"], Value::Null, "a spec expects its form");
        assert_eq!(arguments.get("interaction"), None, "the form is enforced");
    }

    #[test]
    fn a_prompt_and_a_form_beside_a_card_join_it_and_the_reply_stays_open() {
        let spec = json!({"version": 1, "topic": "t", "questions": [
            {"id": "question", "header": "A", "question": "A?", "kind": "free_text", "required": true},
            {"id": "b", "header": "B", "question": "B?", "kind": "free_text", "required": false}]});
        let ask = asked(vec![
            read_ask(&json!({"prompt": "Why?"})),
            card(),
            read_ask(&json!({"prompt": "Fill in.", "spec": spec})),
        ]);
        assert_eq!(ask.warnings, [""; 0]);
        assert_eq!(ask.interaction.prompt, "1. Which?\n2. Why?\n3. Fill in.");
        let calls: Vec<(&str, usize)> =
            ask.calls.iter().map(|call| (&*call.call_id, call.questions)).collect();
        assert_eq!(calls, [("b", 1), ("a", 1), ("c", 2)]);
        let fields = ["question", "question_2", "question_3", "b"];
        assert_eq!(ask.interaction.required_fields, fields);
        let arguments = question_arguments(&ask);
        assert_eq!(arguments["interaction"]["kind"], "fill_fields");
        assert_eq!(arguments["spec"]["questions"][3]["required"], false);
    }

    #[test]
    fn what_cannot_stand_in_one_form_is_left_out_by_name() {
        let permission = || read_permission("Bash", &json!({"command": "make"}), None);
        let risk = || read_ask(&json!({"prompt": "Drop the\ntable?", "question_type": "risk_ack"}));
        let held =
            json!({"prompt": "Config?", "expected_answer": {"kind": "json", "schema": {"type": "object"}}});
        for (bodies, prompt, left) in [
            (vec![permission(), card()], "Which?", vec!["\"Allow the engine to use Bash? make\" (call a)"]),
            (vec![card(), risk()], "Which?", vec!["\"Drop the table?\" (call b)"]),
            (vec![read_ask(&held), card()], "Which?", vec!["\"Config?\" (call a)"]),
            (
                vec![
                    read_ask(&json!({"prompt": "Why?", "blocking": false})),
                    read_ask(&json!({"prompt": "How?"})),
                ],
                "Why?",
                vec!["\"How?\" (call b)"],
            ),
            (
                vec![permission(), permission(), risk()],
                "Drop the\ntable?",
                vec!["Bash? make\" (call a)", "Bash? make\" (call b)"],
            ),
        ] {
            let ask = asked(bodies);
            assert_eq!(ask.interaction.prompt, prompt);
            assert_eq!(ask.warnings.len(), left.len(), "{:?}", ask.warnings);
            for (warning, left) in ask.warnings.iter().zip(left) {
                assert!(warning.starts_with("ASK_LEFT_OUT: ") && warning.contains(left), "{warning}");
            }
        }
    }
}
