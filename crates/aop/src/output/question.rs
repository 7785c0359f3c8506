//! A question as a person sees it in a terminal.

use super::style::{bold, clean, cyan, dim, exact, green, red, yellow};
use super::table::cut;
use super::when::{ahead, relative};
use aop_ask::Kind;
use aop_kernel::log::in_words;
use aop_kernel::question::{AnswerKind, Asked, Question, QuestionState, QuestionType, ResolutionMode};
use aop_kernel::status::Status;
use aop_kernel::tools::is_lone_feature;
use serde_json::Value;
use std::fmt::Write;

/// How many lines the details of a question take at most, and how many characters one of them, where nothing is allowed by
/// the answer.
const DETAILS: usize = 16;
const DETAIL: usize = 600;

/// The whole question: what is asked, what can be answered, how long it waits.
pub(crate) fn card(question: &Question) -> String {
    let prompt = indent(&exact(&question.asked.prompt, question.asked.question_type));
    format!(
        "{}\n{prompt}\n{}{}{}",
        headline(question),
        details(question),
        choices(question),
        ending(question)
    )
}

/// What stands above a prompt, which shows the question and its choices itself.
pub(crate) fn above_prompt(question: &Question) -> String {
    let mut text = format!("{}\n", headline(question));
    // A form asks its own questions.
    if question.asked.spec.is_some() {
        let _ = writeln!(text, "{}", indent(&exact(&question.asked.prompt, question.asked.question_type)));
    }
    text.push_str(&details(question));
    text.push_str(&notes(question));
    text.truncate(text.trim_end().len());
    text
}

/// What the asker wants shown besides, a line for each; very long ones are cut.
fn details(question: &Question) -> String {
    let kind = question.asked.question_type;
    // What is allowed may stand here alone: all of it is shown.
    let (most_lines, most) = if kind.grants() { (usize::MAX, usize::MAX) } else { (DETAILS, DETAIL) };
    let mut text = String::new();
    let mut is_cut = false;
    for (key, value) in question.asked.material() {
        let value = shown(value);
        let mut kept: String = value.chars().take(most).collect();
        if kept.len() < value.len() {
            is_cut = true;
            kept.push('…');
        }
        let value = below(&exact(kept.trim_end(), kind), 6);
        let _ = writeln!(text, "    {} {value}", dim(&format!("{}:", exact(key, kind).replace('\n', " "))));
    }
    if text.lines().count() > most_lines {
        is_cut = true;
        text = text.lines().take(most_lines).map(|line| format!("{line}\n")).collect();
    }
    if is_cut {
        let _ = writeln!(text, "    {}", dim("… (`aop questions --json` has all of it)"));
    }
    text
}

/// What an answer has to be beyond what its choices say.
fn notes(question: &Question) -> String {
    let Some(expected) = &question.asked.expected_answer else { return String::new() };
    let mut notes = Vec::new();
    match expected.kind {
        AnswerKind::MultiChoice => notes.push("several can be chosen".to_owned()),
        AnswerKind::Json => notes.push("the answer is JSON".to_owned()),
        AnswerKind::SingleChoice | AnswerKind::FreeText | AnswerKind::Form => {}
    }
    let other = expected.allow_other == Some(true) || question.asked.interaction.is_some();
    if other && expected.choices.is_some() {
        notes.push("or type your own answer".to_owned());
    }
    if let Some(default) = &expected.default {
        notes.push(format!("default: {}", bounded(default)));
    }
    if let Some(schema) = &expected.schema {
        notes.push(format!("schema: {}", bounded(schema)));
    }
    notes.iter().map(|note| format!("    {}\n", dim(note))).collect()
}

/// A value on one line of some length.
fn bounded(value: &Value) -> String {
    cut(&clean(&shown(value)), DETAIL)
}

/// What an answer to a field of a form has to be, and what it is when nothing else is said.
fn field_notes(field: &aop_ask::Question) -> String {
    let flags = [
        (field.kind() == Kind::MultiChoice, "several"),
        (field.allow_other(), "or your own answer"),
        (!field.required(), "optional"),
        (field.secret(), "secret"),
    ];
    let mut notes: Vec<String> =
        flags.iter().filter(|(holds, _)| *holds).map(|(_, note)| (*note).to_owned()).collect();
    notes.extend(field.default().map(|default| format!("default: {}", bounded(&default.to_json()))));
    if notes.is_empty() { String::new() } else { format!(" {}", dim(&format!("({})", notes.join(", ")))) }
}

fn headline(question: &Question) -> String {
    let asked = &question.asked;
    let kind = match asked.question_type {
        QuestionType::Clarification | QuestionType::ExternalDecision => cyan(asked.question_type.as_str()),
        QuestionType::PermissionOverride | QuestionType::RiskAck => yellow(asked.question_type.as_str()),
    };
    let feature = (!is_lone_feature(&question.feature_id)).then(|| bold(question.feature_id.as_str()));
    let blocking = (!asked.blocking).then(|| dim("non-blocking"));
    let by = dim(&format!("{} asked {}", asked.role, relative(question.created_at)));
    let until = question.expires_at.filter(|_| question.is_open());
    let until = until.map(|at| dim(&format!("expires {}", ahead(at))));
    let parts = feature.into_iter().chain([kind]).chain(blocking).chain([by]).chain(until);
    format!("{}\n{}", parts.collect::<Vec<_>>().join(&dim(" · ")), dim(question.id.as_str()))
}

fn choices(question: &Question) -> String {
    let mut text = String::new();
    let kind = question.asked.question_type;
    if let Some(expected) = &question.asked.expected_answer {
        for choice in expected.choices.iter().flatten() {
            // Writing to a String cannot fail, here and below.
            let _ = writeln!(text, "    {} {}", dim("•"), below(&exact(choice, kind), 6));
        }
    }
    for option in question.asked.offered() {
        let _ = writeln!(text, "    {} {}", dim("•"), below(&exact(&option.label, kind), 6));
    }
    text.push_str(&notes(question));
    for field in question.asked.spec.iter().flat_map(|spec| spec.questions()) {
        let _ = writeln!(
            text,
            "    {} {}{}",
            bold(&format!("{}:", field.id())),
            below(&exact(field.question(), kind), 6),
            field_notes(field)
        );
        for option in field.options() {
            let _ = write!(text, "      {} {}", dim("•"), below(&exact(option.label(), kind), 8));
            if option.description() != option.label() {
                let _ =
                    write!(text, " {}", dim(&below(&exact(&format!("— {}", option.description()), kind), 8)));
            }
            text.push('\n');
        }
    }
    text
}

/// The command that answers a question. Without the answer in it, so that nothing is answered by pasting it: on a terminal
/// it opens the prompt.
pub(crate) fn to_answer(id: &str) -> String {
    format!("aop answer {id}")
}

/// An answer as people say it: what is JSON by the question's own words stays that.
pub(crate) fn answered(asked: &Asked, answer: &Value) -> String {
    let is_json = asked.expected_answer.as_ref().is_some_and(|expected| expected.kind == AnswerKind::Json);
    if is_json { shown(answer) } else { in_words(answer).into_owned() }
}

/// How it ended, or how it can be answered.
pub(crate) fn ending(question: &Question) -> String {
    match &question.state {
        QuestionState::Open => {
            format!("    {}\n", green(&to_answer(question.id.as_str())))
        }
        QuestionState::Answered { answer, at, by, resolution } => {
            let who = if resolution.mode == ResolutionMode::DefaultByPolicy {
                yellow("nobody answered; the declared default applies by policy")
            } else {
                format!("answered by {}", bold(&clean(by)))
            };
            format!(
                "    {who} {}: {}\n",
                dim(&relative(*at)),
                below(&clean(&answered(&question.asked, answer)), 6)
            )
        }
        QuestionState::Expired { resolution } => {
            let note = resolution.note.as_deref().unwrap_or("nobody answered in time");
            format!("    {} {}\n", red("expired:"), below(&clean(note), 6))
        }
        QuestionState::Withdrawn { resolution } => {
            let note = resolution.note.as_deref().map(|note| format!(": {note}")).unwrap_or_default();
            format!("    {}{}\n", yellow("withdrawn"), below(&clean(&note), 6))
        }
    }
}

/// What whoever was about to answer is told: which question it was, how it ended, and how it is asked again.
pub(crate) fn too_late(question: &Question) -> String {
    let told = format!("{} {}", bold(&format!("too late for {}:", question.id)), ending(question).trim());
    let again = to_reopen(question).map(|command| format!("\nAsk it again with\n  {command}"));
    told + &again.unwrap_or_default()
}

/// The command that asks a question again which nobody answered in time. What failed with it is not worked on any more.
pub(crate) fn to_reopen(question: &Question) -> Option<String> {
    let expired = matches!(question.state, QuestionState::Expired { .. });
    (expired && question.stops_at() != Some(Status::Failed))
        .then(|| format!("aop reopen --feature-id {} --question-id {}", question.feature_id, question.id))
}

/// An answer as text: text as it is, anything else as JSON.
pub(crate) fn shown(answer: &Value) -> String {
    answer.as_str().map_or_else(|| answer.to_string(), str::to_owned)
}

/// What others wrote, its further lines so many columns to the right: none of them looks like a line of ours.
fn below(text: &str, columns: usize) -> String {
    text.replace('\n', &format!("\n{:columns$}", ""))
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn asked(more: Value) -> Question {
        let mut record = json!({"feature_id": "shop", "question_id": "q_01JA0000000000000000000000", "status": "open",
            "blocking": true, "question_type": "clarification", "role": "builder", "session_id": "s",
            "prompt": "Which one?", "created_at": "2026-01-01T00:00:00Z", "expires_at": null,
            "default_decision_policy": "decline", "expiry_policy": {"strict": true, "on_timeout": "block_feature"}, "resume_status": "building"});
        record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(record).unwrap()
    }

    #[test]
    fn what_is_allowed_is_shown_to_its_end_and_anything_else_is_cut() {
        let script = (0..40).map(|line| format!("echo {line}\n")).collect::<String>() + "rm -rf /srv/data";
        let details =
            json!({"script": script, "input": {"note": "ok ".repeat(600), "sql": "DROP TABLE users"}});
        for (kind, is_whole) in [("permission_override", true), ("risk_ack", true), ("clarification", false)]
        {
            let question = asked(json!({"question_type": kind, "details": details}));
            for text in [card(&question), above_prompt(&question)] {
                for end in ["rm -rf /srv/data", "DROP TABLE users"] {
                    assert_eq!(text.contains(end), is_whole, "{kind}: {text}");
                }
                assert_eq!(text.contains("has all of it"), !is_whole, "{kind}: {text}");
            }
        }
    }

    #[test]
    fn what_an_engine_offers_and_says_beside_its_question_is_shown() {
        let question =
            asked(json!({"interaction": {"options": [{"label": "Left", "value": "l"}, {"label": "Right"}],
            "context": {"file": "x.rs"}}}));
        let text = card(&question);
        for part in ["• Left\n", "• Right\n", r#"context: {"file":"x.rs"}"#] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn no_line_that_an_agent_wrote_begins_where_those_of_the_list_do() {
        let forged = "no\n\nb9  q_01JA0000000000000000000001  permission_override\n  Delete everything?";
        let option = json!({"label": forged, "description": forged});
        let spec = json!({"version": 1, "topic": "t", "questions": [{"id": "a", "header": "h", "question": forged,
            "kind": "single_choice", "required": true, "options": [option]}]});
        let expected = json!({"kind": "single_choice", "choices": [forged]});
        let resolution = json!({"mode": "withdrawn", "surface": "cli", "operation_id": "o", "note": forged});
        let answered = json!({"mode": "user_reply", "surface": "cli", "operation_id": "o", "note": null});
        for more in [
            json!({"prompt": forged, "expected_answer": expected, "details": {"a": forged, forged: 1}}),
            json!({"spec": spec}),
            json!({"status": "withdrawn", "resolution": resolution}),
            json!({"status": "answered", "resolution": answered, "answer": forged, "answered_by": "ada",
                "answered_at": "2026-01-01T00:00:00Z"}),
        ] {
            let question = asked(more);
            for text in [card(&question), above_prompt(&question)] {
                let ours = text.lines().filter(|line| !line.is_empty() && !line.starts_with("  ")).count();
                // Whose it is, and its id.
                assert_eq!(ours, 2, "{text}");
            }
        }
    }

    #[test]
    fn the_heading_has_the_deadline_and_a_name_that_tells_something_and_the_command_is_whole() {
        let lone = "ask-01m7ttmfpeajcwmg9tzarxqb9s";
        let id = "q_01JA0000000000000000000000";
        for (feature, begin) in
            [("shop", "shop · clarification · builder asked "), (lone, "clarification · builder asked ")]
        {
            let question = asked(json!({"feature_id": feature, "expires_at": "2126-01-01T00:00:00Z"}));
            for text in [card(&question), above_prompt(&question)] {
                let lines: Vec<&str> = text.lines().collect();
                assert!(lines[0].starts_with(begin) && lines[0].contains(" · expires in "), "{text}");
                assert!(lines[0].len() < 80 && lines[1] == id, "{text}");
            }
            let command = format!("aop answer {id}");
            assert!(card(&question).lines().any(|line| line.trim() == command), "{}", card(&question));
        }
    }

    #[test]
    fn a_form_is_answered_in_words_and_what_was_asked_for_as_json_in_json() {
        let answer = json!({"flow": "Three steps"});
        assert_eq!(answered(&asked(json!({})).asked, &answer), "Three steps");
        let json = asked(json!({"expected_answer": {"kind": "json"}}));
        assert_eq!(answered(&json.asked, &answer), r#"{"flow":"Three steps"}"#);
    }

    #[test]
    fn details_stand_with_the_question_harmless_and_bounded() {
        let long = "x".repeat(5_000);
        let details = json!({"command": "rm -rf build", "env": {"A": 1}, "e\u{1b}[2Jvil": "\u{1b}]0;owned\u{7}\nsecond"});
        for text in
            [card(&asked(json!({"details": details}))), above_prompt(&asked(json!({"details": details})))]
        {
            for line in ["command: rm -rf build", r#"env: {"A":1}"#, "e[2Jvil: ]0;owned", "  second"] {
                assert!(text.lines().any(|found| found.trim_start() == line.trim_start()), "{text}");
            }
            assert!(!text.contains('\u{1b}') && !text.contains("aop questions"), "{text}");
        }
        let many: serde_json::Map<String, Value> = (0..50).map(|n| (format!("k{n:02}"), json!(n))).collect();
        for details in [json!({"patch": long}), json!({"lines": "a\n".repeat(90)}), json!(many)] {
            let text = above_prompt(&asked(json!({"details": details})));
            assert!(text.len() < 1_000 && text.lines().count() < 20, "{text}");
            assert!(text.ends_with("… (`aop questions --json` has all of it)"), "{text}");
        }
    }

    #[test]
    fn what_an_answer_has_to_be_is_said_with_its_default() {
        let expected =
            json!({"kind": "single_choice", "choices": ["a", "b"], "allow_other": true, "default": "b"});
        let text = card(&asked(json!({"expected_answer": expected})));
        assert!(text.contains("    or type your own answer\n    default: b\n"), "{text}");
        let expected = json!({"kind": "json", "schema": {"type": "object"}});
        let text = above_prompt(&asked(json!({"expected_answer": expected})));
        assert!(text.ends_with("    the answer is JSON\n    schema: {\"type\":\"object\"}"), "{text}");
        let field = json!({"id": "k", "header": "Key", "question": "Key?", "kind": "free_text", "required": false, "secret": true});
        let parts = json!({"id": "p", "header": "Parts", "question": "Parts?", "kind": "multi_choice", "required": true,
            "allow_other": true, "default": ["x"], "options": [{"label": "x", "description": "X"}, {"label": "y", "description": "Y"}]});
        let spec = json!({"version": 1, "topic": "t", "questions": [field, parts]});
        let text = card(&asked(json!({"spec": spec, "expected_answer": {"kind": "form"}})));
        assert!(text.contains("    k: Key? (optional, secret)\n"), "{text}");
        assert!(text.contains("    p: Parts? (several, or your own answer, default: [\"x\"])\n"), "{text}");
    }
}
