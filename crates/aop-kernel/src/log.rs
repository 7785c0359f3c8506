//! The decision log in words: one line for each event, for `decisions.md` and `aop log`.

use crate::event::{Event, Stamped};
use crate::question::{Question, ResolutionMode};
use serde_json::Value;

/// One event as one line without a line break.
pub fn sentence(stamped: &Stamped) -> String {
    let actor = stamped.actor.as_str();
    match &stamped.event {
        Event::FeatureCreated { title, adhoc, .. } => {
            let what = if *adhoc { "question outside any feature" } else { "feature" };
            format!("{actor} created the {what} \"{}\"", one_line(title))
        }
        Event::StatusChanged { from, to, reason } => {
            format!(
                "{from} → {to}{}",
                reason.as_ref().map(|why| format!(": {}", one_line(why))).unwrap_or_default()
            )
        }
        Event::Noted { note } => format!("{actor} noted: {}", one_line(note)),
        Event::TurnBegan { claim, role, engine, attempt, reply_to, .. } => match reply_to {
            Some(question) => {
                format!("{role} goes on with the end of {question} ({engine}, attempt {attempt}, {claim})")
            }
            None => format!("{role} began a turn ({engine}, attempt {attempt}, {claim})"),
        },
        Event::TurnContinued { claim, .. } => format!("the turn {claim} was cut off and goes on"),
        Event::TurnEnded { role, end, .. } => format!("{role} {}", one_line(&end.in_words())),
        Event::CheckBegan { name, commit, .. } => format!("{name} checks began on {}", short(commit)),
        Event::CheckEnded { name, passed, note, .. } => {
            let how = if *passed { "passed" } else { "failed" };
            format!("{name} checks {how}: {}", one_line(note))
        }
        Event::Merged { commit, merge_commit, into } => {
            format!("{} was merged into {} as {}", short(commit), one_line(into), short(merge_commit))
        }
        Event::QuestionOpened { question } => opened(question),
        Event::QuestionAnswered { question_id, answer, answered_by, resolution } => {
            let answer = shown(answer);
            if resolution.mode == ResolutionMode::DefaultByPolicy {
                format!(
                    "{question_id}: nobody answered in time; the declared default applies by policy: {answer}"
                )
            } else {
                format!("{question_id} answered by {}: {answer}", one_line(answered_by))
            }
        }
        Event::QuestionExpired { question_id, resolution } => {
            let note = resolution.note.as_deref().unwrap_or("nobody answered in time");
            format!("{question_id} expired: {}", one_line(note))
        }
        Event::QuestionWithdrawn { question_id, resolution } => {
            let note =
                resolution.note.as_ref().map(|note| format!(": {}", one_line(note))).unwrap_or_default();
            format!("{question_id} withdrawn by {actor}{note}")
        }
    }
}

/// As much of a commit's name as people read.
fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

fn opened(question: &Question) -> String {
    let asked = &question.asked;
    let again = question.reopened_from.as_ref().map(|old| format!(" (asks {old} again)")).unwrap_or_default();
    let blocking = if asked.blocking { "" } else { "non-blocking " };
    format!(
        "{} asked {} ({blocking}{}){again}: {}",
        asked.role,
        question.id,
        asked.question_type.as_str(),
        one_line(&asked.prompt)
    )
}

fn shown(answer: &Value) -> String {
    one_line(&answer.as_str().map_or_else(|| answer.to_string(), str::to_owned))
}

/// Folds white space and control characters, and cuts: a log line stays a line whatever an agent wrote.
pub fn one_line(text: &str) -> String {
    const SHOWN: usize = 300;
    let mut line = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > SHOWN && line.chars().count() > SHOWN {
            let cut: String = line.chars().take(SHOWN).collect();
            return format!("{cut}…");
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn a_log_line_has_no_breaks_and_an_end() {
        assert_eq!(one_line(" a\nb\t\u{1b}[31mc  d\r\n"), "a b [31mc d");
        assert!(one_line(&"word ".repeat(1000)).chars().count() <= 301);
    }
}
