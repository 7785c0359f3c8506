//! What a worker is told at the beginning of a turn: its role, the specification, what was planned and checked, and
//! what people said, word for word.

use crate::check::CheckReport;
use crate::note::Note;
use aop_kernel::question::{Question, QuestionState};
use aop_kernel::words;
use aop_turn::Role;
use serde_json::{Map, Value};

/// Everything that a turn is told.
pub(crate) struct Briefing<'a> {
    pub(crate) role: Role,
    pub(crate) feature_id: &'a str,
    pub(crate) title: &'a str,
    pub(crate) spec: Option<&'a str>,
    pub(crate) plan: Option<&'a Map<String, Value>>,
    pub(crate) changes: Option<&'a Map<String, Value>>,
    pub(crate) verdict: Option<&'a Map<String, Value>>,
    pub(crate) check: Option<&'a CheckReport>,
    pub(crate) open: &'a [Question],
    /// Newest first.
    pub(crate) answers: &'a [Question],
    /// A question that this role waited for, and how it ended.
    pub(crate) ended: Option<(&'a str, &'a str)>,
    pub(crate) notes: &'a [Note],
    pub(crate) schema: &'a Value,
}

/// The message that begins a turn.
pub(crate) fn briefing(briefing: &Briefing<'_>) -> String {
    let mut text =
        format!("# Feature {}: {}\n\n{}\n", briefing.feature_id, briefing.title, duty(briefing.role));
    section(
        &mut text,
        "Specification",
        briefing.spec.unwrap_or("(none was given; the title is all there is)"),
    );
    let document = |map: &Map<String, Value>| format!("{:#}", Value::Object(map.clone()));
    if let Some(plan) = briefing.plan {
        section(&mut text, "The plan", &document(plan));
    }
    if let (Role::Qa, Some(changes)) = (briefing.role, briefing.changes) {
        section(&mut text, "What the builder says it did", &document(changes));
    }
    if let (Role::Builder, Some(verdict)) = (briefing.role, briefing.verdict) {
        section(&mut text, "What qa says about the work so far", &document(verdict));
    }
    if let Some(check) = briefing.check {
        section(&mut text, "The last checks", &evidence(check));
    }
    if !briefing.answers.is_empty() || !briefing.open.is_empty() {
        section(&mut text, "What people were asked", &said(briefing.open, briefing.answers));
    }
    if let Some((asked, words)) = briefing.ended {
        section(&mut text, "The question that you waited for", &format!("{asked}\n\n{words}"));
    }
    text.push_str(&notes(briefing.notes));
    section(
        &mut text,
        "Your result",
        &format!("One JSON object that fits this schema:\n\n{:#}", briefing.schema),
    );
    text
}

/// The notes as a section; nothing where there are none.
pub(crate) fn notes(notes: &[Note]) -> String {
    let mut text = String::new();
    if !notes.is_empty() {
        let line = |note: &Note| format!("- {} ({}): {}", note.from, note.at, note.text);
        let lines: Vec<String> = notes.iter().map(line).collect();
        section(&mut text, "Notes for you (no answers to questions)", &lines.join("\n"));
    }
    text
}

/// What a turn that was cut off is told.
pub(crate) fn again(briefing: &str) -> String {
    format!(
        "Your turn was cut off in the middle and goes on here. What you have done already stands; do not do it twice, \
         look at the files before you repeat anything.\n\n{briefing}"
    )
}

/// What the session of a role is told whose earlier session is on another machine.
pub(crate) fn elsewhere(briefing: &str) -> String {
    format!(
        "An earlier session of yours worked on this on another machine and cannot go on; you go on in its place. What it \
         committed to the branch may be here, what it did not is not: look at the files before you build on it.\n\n{briefing}"
    )
}

fn duty(role: Role) -> &'static str {
    match role {
        Role::Planner => {
            "You are the planner. Work out how this feature is to be built: read the specification and the code, and \
             write a plan that somebody else can follow. Change no files. When the specification can be read in two \
             ways that lead to different work, ask before you plan."
        }
        Role::Builder => {
            "You are the builder. Carry out the plan in this worktree. Stay within the files that the plan names: \
             before you change others, or anything that protects the project (permissions, secrets, pipelines, \
             policies), ask for permission and say why. If checks failed, mend what they show."
        }
        Role::Qa => {
            "You are qa. Judge the work in this worktree against the specification and the plan: read the changes, run \
             what can be run, try to break it. When going on means taking a risk that somebody should know of, ask for \
             that risk to be acknowledged. Your verdict is `pass`, or `fail` with findings the builder can act on."
        }
    }
}

fn section(text: &mut String, title: &str, body: &str) {
    text.push_str(&format!("\n## {title}\n\n{}\n", body.trim_end()));
}

fn evidence(check: &CheckReport) -> String {
    let how = if check.passed { "passed" } else { "FAILED" };
    let mut text = format!("The {} checks {how} on commit {}: {}", check.name, check.commit, check.note);
    if !check.output.trim().is_empty() {
        text.push_str(&format!("\n\nThe end of the output:\n\n{}", check.output.trim_end()));
    }
    text
}

/// Open questions, then answers from the newest on, each with how it came about.
fn said(open: &[Question], answers: &[Question]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for question in open {
        parts.push(format!("Open, nobody has answered yet ({}): {}", question.id, question.asked.prompt));
    }
    for question in answers {
        let end = match &question.state {
            QuestionState::Answered { answer, by, resolution, .. } => {
                words::answered(answer, by, resolution.mode)
            }
            QuestionState::Open | QuestionState::Expired { .. } | QuestionState::Withdrawn { .. } => continue,
        };
        parts.push(format!(
            "The {} asked ({}): {}\n{end}",
            question.asked.role, question.id, question.asked.prompt
        ));
    }
    parts.join("\n\n")
}
