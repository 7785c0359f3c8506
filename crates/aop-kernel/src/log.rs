//! The decision log in words: one line for each event, for `decisions.md` and `aop log`.

use crate::event::{Event, Stamped};
use crate::question::{Question, ResolutionMode};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::{self, Write as _};

/// One event as one line without a line break.
pub fn sentence(stamped: &Stamped) -> String {
    // As long as most: to grow there in steps would copy it several times.
    let mut line = String::with_capacity(256);
    // Writing to memory cannot fail.
    let _ = write!(line, "{}", Sentence(stamped));
    line
}

struct Sentence<'a>(&'a Stamped);

impl fmt::Display for Sentence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let actor = self.0.actor.as_str();
        match &self.0.event {
            Event::FeatureCreated { title, adhoc, .. } => {
                let what = if *adhoc { "question outside any feature" } else { "feature" };
                write!(f, "{actor} created the {what} \"{}\"", folded(title))
            }
            Event::StatusChanged { from, to, reason } => {
                write!(f, "{from} → {to}")?;
                with_note(f, reason.as_deref())
            }
            Event::Noted { note } => write!(f, "{actor} noted: {}", folded(note)),
            Event::TurnBegan { claim, role, engine, attempt, reply_to, .. } => match reply_to {
                Some(question) => write!(
                    f,
                    "{role} goes on with the end of {question} ({engine}, attempt {attempt}, {claim})"
                ),
                None => write!(f, "{role} began a turn ({engine}, attempt {attempt}, {claim})"),
            },
            Event::TurnContinued { claim, .. } => write!(f, "the turn {claim} was cut off and goes on"),
            Event::TurnEnded { role, end, .. } => write!(f, "{role} {}", folded(&end.in_words())),
            Event::CheckBegan { name, commit, .. } => write!(f, "{name} checks began on {}", short(commit)),
            Event::CheckEnded { name, passed, note, .. } => {
                let how = if *passed { "passed" } else { "failed" };
                write!(f, "{name} checks {how}: {}", folded(note))
            }
            Event::Merged { commit, merge_commit, into } => {
                write!(f, "{} was merged into {} as {}", short(commit), folded(into), short(merge_commit))
            }
            Event::QuestionOpened { question } => opened(f, question),
            Event::QuestionAnswered { question_id, answer, answered_by, resolution } => {
                if resolution.mode == ResolutionMode::DefaultByPolicy {
                    let how = "nobody answered in time; the declared default applies by policy";
                    write!(f, "{question_id}: {how}: ")?;
                } else {
                    write!(f, "{question_id} answered by {}: ", folded(answered_by))?;
                }
                match answer {
                    Value::String(text) => f.write_str(&folded(text)),
                    other => f.write_str(&folded(&other.to_string())),
                }
            }
            Event::QuestionExpired { question_id, resolution } => {
                let note = resolution.note.as_deref().unwrap_or("nobody answered in time");
                write!(f, "{question_id} expired: {}", folded(note))
            }
            Event::QuestionWithdrawn { question_id, resolution } => {
                write!(f, "{question_id} withdrawn by {actor}")?;
                with_note(f, resolution.note.as_deref())
            }
        }
    }
}

fn with_note(f: &mut fmt::Formatter<'_>, note: Option<&str>) -> fmt::Result {
    match note {
        Some(note) => write!(f, ": {}", folded(note)),
        None => Ok(()),
    }
}

/// As much of a commit's name as people read.
fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

fn opened(f: &mut fmt::Formatter<'_>, question: &Question) -> fmt::Result {
    let asked = &question.asked;
    let blocking = if asked.blocking { "" } else { "non-blocking " };
    write!(f, "{} asked {} ({blocking}{})", asked.role, question.id, asked.question_type.as_str())?;
    if let Some(old) = &question.reopened_from {
        write!(f, " (asks {old} again)")?;
    }
    write!(f, ": {}", folded(&asked.prompt))
}

/// Folds white space and control characters, and cuts: a log line stays a line whatever an agent wrote.
pub fn one_line(text: &str) -> String {
    folded(text).into_owned()
}

const SHOWN: usize = 300;

fn folded(text: &str) -> Cow<'_, str> {
    if is_folded(text) {
        return Cow::Borrowed(text);
    }
    let mut line = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > SHOWN && line.chars().count() > SHOWN {
            let cut: String = line.chars().take(SHOWN).collect();
            return format!("{cut}…").into();
        }
    }
    line.into()
}

/// Whether it is short and plain, words with one space between two: most texts are, and stay as they are.
fn is_folded(text: &str) -> bool {
    let mut before = b' ';
    let fits = |byte: u8| {
        let fits = byte.is_ascii_graphic() || (byte == b' ' && before != b' ');
        before = byte;
        fits
    };
    text.len() <= SHOWN && text.bytes().all(fits) && before != b' '
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn a_log_line_has_no_breaks_and_an_end() {
        assert_eq!(one_line(" a\nb\t\u{1b}[31mc  d\r\n"), "a b [31mc d");
        assert!(one_line(&"word ".repeat(1000)).chars().count() <= 301);
    }

    #[test]
    fn a_line_that_is_folded_stays_as_it_is() {
        for text in ["a", "a b", "Which of the two?", "ü", "a ü", &"x".repeat(300)] {
            assert_eq!(one_line(text), text);
        }
        for (text, line) in [
            (" a", "a"),
            ("a ", "a"),
            ("a  b", "a b"),
            ("a\tb", "a b"),
            (" ", ""),
            ("", ""),
            ("a\u{7f}", "a"),
        ] {
            assert_eq!(one_line(text), line, "{text:?}");
        }
        assert_eq!(one_line(&"x".repeat(301)), format!("{}…", "x".repeat(300)));
    }
}
