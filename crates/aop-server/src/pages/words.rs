//! What a person reads: times, states and consequences in words. Nothing here decides anything; it says what the
//! record says.

use aop_kernel::policy::{DecisionPolicy, OnTimeout};
use aop_kernel::question::{Question, QuestionType, ResolutionMode};
use aop_kernel::status::Status;
use aop_kernel::time::Timestamp;
use serde_json::Value;

/// A time with the words that a page shows for it; a script keeps the words true while the page is open.
#[derive(Debug, Clone)]
pub(crate) struct When {
    /// RFC 3339, for machines.
    pub(crate) exact: String,
    /// For people without a script, and on hovering.
    pub(crate) full: String,
    /// "3 min ago" or "12 min left".
    pub(crate) words: String,
}

impl When {
    /// How long ago something was.
    pub(crate) fn past(at: Timestamp, now: Timestamp) -> Self {
        let gone = now.as_millis() - at.as_millis();
        let words = if gone < 5_000 { "just now".to_owned() } else { format!("{} ago", span(gone)) };
        When { exact: at.to_string(), full: full(at), words }
    }

    /// How much time is left.
    pub(crate) fn left(until: Timestamp, now: Timestamp) -> Self {
        let left = until.as_millis() - now.as_millis();
        let words = if left <= 0 { "time is up".to_owned() } else { format!("{} left", span(left)) };
        When { exact: until.to_string(), full: full(until), words }
    }
}

/// `2026-03-04 22:00:07 UTC`.
pub(crate) fn full(at: Timestamp) -> String {
    let text = at.to_string();
    format!("{} {} UTC", text.get(..10).unwrap_or(&text), text.get(11..19).unwrap_or_default())
}

/// A length of time, in the one or two units that matter.
pub(crate) fn span(millis: i64) -> String {
    let seconds = millis.max(0) / 1_000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => two(seconds / 3_600, "h", seconds % 3_600 / 60, "min"),
        _ => two(
            seconds / 86_400,
            if seconds < 172_800 { "day" } else { "days" },
            seconds % 86_400 / 3_600,
            "h",
        ),
    }
}

fn two(large: i64, unit: &str, small: i64, smaller: &str) -> String {
    if small == 0 { format!("{large} {unit}") } else { format!("{large} {unit} {small} {smaller}") }
}

/// How urgent a deadline looks.
pub(crate) fn urgency(until: Option<Timestamp>, now: Timestamp) -> &'static str {
    match until.map(|until| until.as_millis() - now.as_millis()) {
        Some(left) if left < 2 * 60_000 => "now",
        Some(left) if left < 10 * 60_000 => "soon",
        Some(_) | None => "calm",
    }
}

/// What a question is about: a name, and how careful it asks to be.
pub(crate) fn about(kind: QuestionType) -> (&'static str, &'static str) {
    match kind {
        QuestionType::Clarification => ("Clarification", "plain"),
        QuestionType::ExternalDecision => ("Decision", "plain"),
        QuestionType::PermissionOverride => ("Permission", "careful"),
        QuestionType::RiskAck => ("Risk", "careful"),
    }
}

/// What saying yes would mean, for the kinds that ask for care.
pub(crate) fn caution(kind: QuestionType) -> Option<&'static str> {
    match kind {
        QuestionType::Clarification | QuestionType::ExternalDecision => None,
        QuestionType::PermissionOverride => {
            Some("The agent asks for permission to do something it may not do by itself.")
        }
        QuestionType::RiskAck => Some("The agent asks you to accept a risk."),
    }
}

/// A status as people say it.
pub(crate) fn status(status: Status) -> &'static str {
    match status {
        Status::Planning => "Planning",
        Status::Building => "Building",
        Status::Qa => "In review",
        Status::Blocked => "Blocked",
        Status::AwaitingInput => "Waiting for you",
        Status::ReadyToMerge => "Ready to merge",
        Status::Merged => "Merged",
        Status::Failed => "Failed",
    }
}

/// A recorded `resume_status`, which may be one that this version does not know.
pub(crate) fn resume(name: &str) -> String {
    Status::parse(name).map_or_else(|| name.to_owned(), |known| status(known).to_lowercase())
}

/// Where a question comes from that brought its feature along.
pub(crate) const LONE: &str = "outside any feature";

/// What happens when nobody answers, as one or two sentences. Nothing but the question is in the feature of a lone one.
pub(crate) fn on_timeout(question: &Question, is_lone: bool) -> String {
    let Some(until) = question.expires_at else {
        return "Nothing happens by itself: it waits until somebody answers.".to_owned();
    };
    let feature = &question.feature_id;
    let policy = question.expiry_policy;
    let then = match (policy.strict, question.asked.blocking, policy.on_timeout) {
        (true, ..) if is_lone => {
            "the question expires, and whoever asked is told that nobody answered.".to_owned()
        }
        (true, true, OnTimeout::BlockFeature) => {
            format!("the question expires and {feature} is blocked until somebody decides how to go on.")
        }
        (true, true, OnTimeout::FailFeature) => format!("the question expires and {feature} is given up."),
        (true, false, _) => format!("the question expires; {feature} goes on as it does now."),
        (false, _, _) => match (question.asked.default_decision_policy, question.declared_default()) {
            (DecisionPolicy::UseDefault, Some(default)) => format!(
                "the declared default applies: {}. It is marked as policy, not as anybody's answer.",
                plain(&default)
            ),
            (DecisionPolicy::Decline, _) => "it counts as not permitted.".to_owned(),
            (DecisionPolicy::EngineJudgement, _) | (DecisionPolicy::UseDefault, None) => {
                "the agent decides for itself, and has to say that it did.".to_owned()
            }
        },
    };
    format!("If nobody answers by {}, {then}", full(until))
}

/// How a question was closed.
pub(crate) fn mode(mode: ResolutionMode) -> &'static str {
    match mode {
        ResolutionMode::UserReply => "The first answer stands.",
        ResolutionMode::Expired => "Nobody answered in time.",
        ResolutionMode::EngineJudgement => {
            "Nobody answered in time. By policy the agent decides for itself, and has to say that it did."
        }
        ResolutionMode::DefaultByPolicy => {
            "Nobody answered in time. The declared default applies by policy; no person chose it."
        }
        ResolutionMode::DeclinedByPolicy => "Nobody answered in time. By policy that means: not permitted.",
        ResolutionMode::Withdrawn => "The question was taken back.",
    }
}

/// The door through which an answer came.
pub(crate) fn door(surface: &str) -> String {
    match surface {
        "http" => "in a browser or over HTTP".to_owned(),
        "cli" | "terminal" => "in a terminal".to_owned(),
        "mcp" => "in an MCP client".to_owned(),
        "tool" => "by a tool call".to_owned(),
        other => format!("through {other}"),
    }
}

/// An answer on one line; what is secret has been taken out before.
pub(crate) fn plain(answer: &Value) -> String {
    match answer {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Object(map) if map.get("redacted") == Some(&Value::Bool(true)) => "kept secret".to_owned(),
        Value::Object(map) => {
            map.iter().map(|(id, value)| format!("{id}: {}", plain(value))).collect::<Vec<_>>().join("; ")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => answer.to_string(),
    }
}

/// At most so many characters.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// A count with its noun.
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_have_one_or_two_units() {
        for (millis, words) in [
            (-5, "0 s"),
            (59_999, "59 s"),
            (61_000, "1 min"),
            (3_600_000, "1 h"),
            (3_600_000 + 125_000, "1 h 2 min"),
            (86_400_000, "1 day"),
            (3 * 86_400_000 + 7_300_000, "3 days 2 h"),
        ] {
            assert_eq!(span(millis), words);
        }
    }

    #[test]
    fn a_deadline_says_what_is_left_and_when_it_is_over() {
        let now = Timestamp::from_millis(1_000_000);
        assert_eq!(When::left(now.plus_millis(720_000), now).words, "12 min left");
        assert_eq!(When::left(now, now).words, "time is up");
        assert_eq!(When::past(now, now).words, "just now");
        assert_eq!(When::past(now, now.plus_millis(180_000)).full, "1970-01-01 00:16:40 UTC");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(cut("äöü", 2), "äö…");
        assert_eq!(cut("äöü", 3), "äöü");
    }
}
