//! The decision log in words: one line for each event, for `decisions.md` and `aop log`.

use crate::event::{Event, Stamped};
use crate::question::{Question, ResolutionMode, redacted};
use crate::signs::straight;
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
                let what = if *adhoc { "asked outside any feature:" } else { "created the feature" };
                write!(f, "{actor} {what} \"{}\"", folded(title))
            }
            Event::StatusChanged { from, to, reason, .. } => {
                write!(f, "{from} → {to}")?;
                with_note(f, reason.as_deref())
            }
            Event::Noted { note } => write!(f, "{actor} noted: {}", folded(note)),
            Event::TurnBegan { claim, role, engine, attempt, reply_to, .. } => match reply_to {
                Some(question) => {
                    write!(f, "{role} resumes: {question} is closed ({engine}, attempt {attempt}, {claim})")
                }
                None => write!(f, "{role} began a turn ({engine}, attempt {attempt}, {claim})"),
            },
            Event::TurnContinued { claim, .. } => {
                // It was cut off, or never began because its engine was not there.
                write!(f, "turn {} starts again", claim.strip_prefix("turn:").unwrap_or(claim))
            }
            Event::TurnEnded { role, end, .. } => write!(f, "{role} {}", folded(&end.in_words())),
            Event::CheckBegan { name, commit, .. } => write!(f, "{name} checks began on {}", short(commit)),
            Event::CheckEnded { name, passed, note, .. } => {
                let how = if *passed { "passed" } else { "failed" };
                write!(f, "{name} checks {how}: {}", folded(note))
            }
            Event::Merged { commit, merge_commit, into } => {
                write!(f, "{} was merged into {} as {}", short(commit), folded(into), short(merge_commit))
            }
            Event::QuestionOpened { question, .. } => opened(f, actor, question),
            Event::QuestionAnswered { question_id, answer, answered_by, resolution } => {
                if resolution.mode == ResolutionMode::DefaultByPolicy {
                    let how = "nobody answered in time; the declared default applies by policy";
                    write!(f, "{question_id}: {how}: ")?;
                } else {
                    write!(f, "{question_id} answered by {}: ", folded(answered_by))?;
                }
                f.write_str(&folded(&in_words(answer)))
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

/// A recorded answer as people say it. What a form or several choices give is told without brackets and quotes, and of a
/// form with one field the value; any other JSON stays JSON.
pub fn in_words(answer: &Value) -> Cow<'_, str> {
    let fields = || {
        let fields = answer.as_object().filter(|fields| !fields.is_empty())?;
        let values: Vec<Cow<'_, str>> = fields.values().map(given).collect::<Option<_>>()?;
        let all = fields.keys().zip(&values).map(|(id, value)| format!("{id}: {value}"));
        let told = if let [only] = values.as_slice() {
            only.clone()
        } else {
            all.collect::<Vec<_>>().join("; ").into()
        };
        Some(told)
    };
    given(answer).or_else(fields).unwrap_or_else(|| answer.to_string().into())
}

/// What a question or a field of a form was answered, if it is such an answer.
fn given(answer: &Value) -> Option<Cow<'_, str>> {
    match answer {
        Value::String(text) => Some(text.into()),
        Value::Array(items) if !items.is_empty() => {
            let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
            texts.map(|texts| texts.join(", ").into())
        }
        secret if *secret == redacted() => Some("(kept secret)".into()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn with_note(f: &mut fmt::Formatter<'_>, note: Option<&str>) -> fmt::Result {
    match note {
        Some(note) => write!(f, ": {}", folded(note)),
        None => Ok(()),
    }
}

/// As much of a commit's name as people read.
pub fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

fn opened(f: &mut fmt::Formatter<'_>, actor: &str, question: &Question) -> fmt::Result {
    let asked = &question.asked;
    let blocking = if asked.blocking { "" } else { "non-blocking " };
    match &question.reopened_from {
        // Whoever asked it first had no part in that.
        Some(old) => write!(f, "{actor} asked {}'s question {old} again as {}", asked.role, question.id)?,
        None => write!(f, "{} asked {}", asked.role, question.id)?,
    }
    write!(f, " ({blocking}{}): {}", asked.question_type.as_str(), folded(&asked.prompt))
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
    let text = straight(text);
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
    use super::{one_line, sentence};
    use crate::event::{Actor, Stamped};
    use crate::ids::FeatureId;
    use crate::time::Timestamp;
    use serde_json::{Value, json};

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

    #[test]
    fn every_event_has_its_line() {
        let id = "q_01J9ZQ4V7K3M2N1P0R5S6T7V8W";
        let question = |blocking: bool, from: Value| {
            json!({"question_id": id, "feature_id": "a", "status": "open", "blocking": blocking,
                "question_type": "risk_ack", "role": "qa", "session_id": "s", "prompt": "Is it\nsafe?",
                "default_decision_policy": "decline", "expiry_policy": {"strict": true, "on_timeout": "block_feature"},
                "reopened_from": from, "created_at": "2026-03-04T22:00:00.007Z"})
        };
        let end = |mode: &str, note: Value| json!({"mode": mode, "surface": "cli", "operation_id": null, "note": note});
        let answered = |answer: Value, mode: &str| {
            json!({"type": "question.answered", "question_id": id, "answer": answer, "answered_by": "ann\tb",
                "resolution": end(mode, Value::Null)})
        };
        let turn = |reply_to: Value| {
            json!({"type": "turn.began", "claim": "c", "epoch": 1, "role": "builder", "engine": "e", "attempt": 2,
                "reply_to": reply_to})
        };
        let commit = "0123456789abcdef";
        for (event, line) in [
            (
                json!({"type": "feature.created", "title": " T ", "spec": "s", "adhoc": false}),
                "human created the feature \"T\"".to_owned(),
            ),
            (
                json!({"type": "feature.created", "title": "T", "spec": null, "adhoc": true}),
                "human asked outside any feature: \"T\"".to_owned(),
            ),
            (
                json!({"type": "feature.status_changed", "from": "qa", "to": "building", "reason": null}),
                "qa → building".to_owned(),
            ),
            (
                json!({"type": "feature.status_changed", "from": "qa", "to": "failed", "reason": "no\nway"}),
                "qa → failed: no way".to_owned(),
            ),
            (json!({"type": "feature.noted", "note": "n"}), "human noted: n".to_owned()),
            (turn(Value::Null), "builder began a turn (e, attempt 2, c)".to_owned()),
            (turn(json!(id)), format!("builder resumes: {id} is closed (e, attempt 2, c)")),
            (
                json!({"type": "turn.continued", "claim": "turn:a:1", "epoch": 2}),
                "turn a:1 starts again".to_owned(),
            ),
            (
                json!({"type": "turn.ended", "claim": "c", "role": "qa",
                "end": {"outcome": "error", "code": "x", "message": "m\n", "delivered": true}}),
                "qa failed (x): m".to_owned(),
            ),
            (
                json!({"type": "check.began", "name": "fast", "epoch": 1, "commit": commit}),
                "fast checks began on 0123456789ab".to_owned(),
            ),
            (
                json!({"type": "check.ended", "name": "full", "commit": commit, "passed": false, "note": "1  of 2"}),
                "full checks failed: 1 of 2".to_owned(),
            ),
            (
                json!({"type": "feature.merged", "commit": commit, "merge_commit": "fedcba", "into": "main"}),
                "0123456789ab was merged into main as fedcba".to_owned(),
            ),
            (
                json!({"type": "question.opened", "question": question(true, Value::Null)}),
                format!("qa asked {id} (risk_ack): Is it safe?"),
            ),
            (
                json!({"type": "question.opened", "question": question(false, json!(id))}),
                format!("human asked qa's question {id} again as {id} (non-blocking risk_ack): Is it safe?"),
            ),
            (answered(json!("yes "), "user_reply"), format!("{id} answered by ann b: yes")),
            (
                answered(json!({"a": [1, "x"]}), "user_reply"),
                format!("{id} answered by ann b: {{\"a\":[1,\"x\"]}}"),
            ),
            (
                answered(json!({"flow": "Three\nsteps"}), "user_reply"),
                format!("{id} answered by ann b: Three steps"),
            ),
            (answered(json!(["A", "B"]), "user_reply"), format!("{id} answered by ann b: A, B")),
            (
                answered(json!({"a": "x", "key": {"redacted": true}, "parts": ["A", "B"]}), "user_reply"),
                format!("{id} answered by ann b: a: x; key: (kept secret); parts: A, B"),
            ),
            (
                answered(json!({"redacted": true}), "user_reply"),
                format!("{id} answered by ann b: (kept secret)"),
            ),
            (
                answered(json!(true), "default_by_policy"),
                format!("{id}: nobody answered in time; the declared default applies by policy: true"),
            ),
            (
                json!({"type": "question.expired", "question_id": id, "resolution": end("expired", Value::Null)}),
                format!("{id} expired: nobody answered in time"),
            ),
            (
                json!({"type": "question.expired", "question_id": id, "resolution": end("expired", json!("late"))}),
                format!("{id} expired: late"),
            ),
            (
                json!({"type": "question.withdrawn", "question_id": id, "resolution": end("withdrawn", Value::Null)}),
                format!("{id} withdrawn by human"),
            ),
            (
                json!({"type": "question.withdrawn", "question_id": id, "resolution": end("withdrawn", json!("no need"))}),
                format!("{id} withdrawn by human: no need"),
            ),
        ] {
            let stamped = Stamped {
                feature_id: FeatureId::parse("a").unwrap(),
                at: Timestamp::from_millis(0),
                actor: Actor::Human,
                operation_id: None,
                event: serde_json::from_value(event).unwrap(),
            };
            assert_eq!(sentence(&stamped), line);
        }
    }
}
