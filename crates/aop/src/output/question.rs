//! A question as a person sees it in a terminal.

use super::style::{bold, clean, cyan, dim, green, red, yellow};
use super::when::relative;
use aop_kernel::question::{AnswerKind, Question, QuestionState, QuestionType, ResolutionMode};
use serde_json::Value;
use std::fmt::Write;

/// The whole question: what is asked, what can be answered, how long it waits.
pub(crate) fn card(question: &Question) -> String {
    let prompt = indent(&clean(&question.asked.prompt));
    format!("{}\n{prompt}\n{}{}", headline(question), choices(question), ending(question))
}

/// What stands above a prompt, which shows the question and its choices itself.
pub(crate) fn above_prompt(question: &Question) -> String {
    let until = question.expires_at.map(|at| dim(&format!("  expires {}", relative(at)))).unwrap_or_default();
    let head = format!("{}{until}", headline(question));
    let prompt = clean(&question.asked.prompt);
    // A form asks its own questions; a long prompt reads better above than beside the cursor.
    if question.asked.spec.is_some() || prompt.lines().count() > 1 {
        format!("{head}\n{}", indent(&prompt))
    } else {
        head
    }
}

fn headline(question: &Question) -> String {
    let asked = &question.asked;
    let kind = match asked.question_type {
        QuestionType::Clarification | QuestionType::ExternalDecision => cyan(asked.question_type.as_str()),
        QuestionType::PermissionOverride | QuestionType::RiskAck => yellow(asked.question_type.as_str()),
    };
    let blocking = if asked.blocking { "" } else { ", non-blocking" };
    format!(
        "{}  {}  {kind}{blocking}  {}",
        bold(question.feature_id.as_str()),
        question.id,
        dim(&format!("{} asked {}", asked.role, relative(question.created_at)))
    )
}

fn choices(question: &Question) -> String {
    let mut text = String::new();
    if let Some(expected) = &question.asked.expected_answer {
        for choice in expected.choices.iter().flatten() {
            // Writing to a String cannot fail, here and below.
            let _ = writeln!(text, "    {} {}", dim("•"), clean(choice));
        }
        let note = match expected.kind {
            AnswerKind::MultiChoice => "several can be chosen",
            AnswerKind::Json => "the answer is JSON",
            AnswerKind::SingleChoice | AnswerKind::FreeText | AnswerKind::Form => "",
        };
        if !note.is_empty() {
            let _ = writeln!(text, "    {}", dim(note));
        }
    }
    for field in question.asked.spec.iter().flat_map(|spec| spec.questions()) {
        let _ = writeln!(text, "    {} {}", bold(field.id()), clean(field.question()));
        for option in field.options() {
            let _ = writeln!(
                text,
                "      {} {} {}",
                dim("•"),
                clean(option.label()),
                dim(&clean(option.description()))
            );
        }
    }
    text
}

/// How it ended, or how it can be answered and until when.
fn ending(question: &Question) -> String {
    let id = &question.id;
    match &question.state {
        QuestionState::Open => {
            let until =
                question.expires_at.map(|at| format!("  expires {}", relative(at))).unwrap_or_default();
            let command =
                format!("aop answer --feature-id {} --question-id {id} --answer …", question.feature_id);
            format!("    {}{}\n", green(&command), dim(&until))
        }
        QuestionState::Answered { answer, at, by, resolution } => {
            let who = if resolution.mode == ResolutionMode::DefaultByPolicy {
                yellow("nobody answered; the declared default applies by policy")
            } else {
                format!("answered by {}", bold(&clean(by)))
            };
            format!("    {who} {}: {}\n", dim(&relative(*at)), clean(&shown(answer)))
        }
        QuestionState::Expired { resolution } => {
            let note = resolution.note.as_deref().unwrap_or("nobody answered in time");
            format!("    {} {}\n", red("expired:"), clean(note))
        }
        QuestionState::Withdrawn { resolution } => {
            let note = resolution.note.as_deref().map(|note| format!(": {note}")).unwrap_or_default();
            format!("    {}{}\n", yellow("withdrawn"), clean(&note))
        }
    }
}

/// An answer as text: text as it is, anything else as JSON.
pub(crate) fn shown(answer: &Value) -> String {
    answer.as_str().map_or_else(|| answer.to_string(), str::to_owned)
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}
