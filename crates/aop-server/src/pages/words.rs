//! What a person reads: times, states and consequences in words. Nothing here decides anything; it says what the
//! record says.

use aop_kernel::event::{Event, Stamped};
use aop_kernel::log::{one_line, sentence};
use aop_kernel::policy::{DecisionPolicy, OnTimeout};
use aop_kernel::question::{Asked, Question, QuestionType, ResolutionMode, redacted};
use aop_kernel::role::Role;
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
    /// The time of day, with the date where it is another day.
    pub(crate) clock: String,
    /// "3 min ago", "12 min left" or "in 12 min".
    pub(crate) words: String,
}

impl When {
    /// How long ago something was.
    pub(crate) fn past(at: Timestamp, now: Timestamp) -> Self {
        let gone = now.as_millis() - at.as_millis();
        let words = if gone < 5_000 { "just now".to_owned() } else { format!("{} ago", span(gone)) };
        When { exact: at.to_string(), full: full(at), clock: clock(at, now), words }
    }

    /// How much time is left.
    pub(crate) fn left(until: Timestamp, now: Timestamp) -> Self {
        let left = until.as_millis() - now.as_millis();
        let words = if left <= 0 { "time is up".to_owned() } else { format!("{} left", span(left)) };
        When { exact: until.to_string(), full: full(until), clock: clock(until, now), words }
    }

    /// In how much time something happens.
    pub(crate) fn ahead(at: Timestamp, now: Timestamp) -> Self {
        let left = at.as_millis() - now.as_millis();
        let words = if left <= 0 { "now".to_owned() } else { format!("in {}", span(left)) };
        When { exact: at.to_string(), full: full(at), clock: clock(at, now), words }
    }
}

/// `2026-03-04 22:00:07 UTC`.
pub(crate) fn full(at: Timestamp) -> String {
    let text = at.to_string();
    format!("{} {} UTC", text.get(..10).unwrap_or(&text), text.get(11..19).unwrap_or_default())
}

/// `22:00 UTC`, or `2026-03-05 09:00 UTC` where that is not today.
fn clock(at: Timestamp, now: Timestamp) -> String {
    let (text, today) = (at.to_string(), now.to_string());
    let time = text.get(11..16).unwrap_or_default();
    match text.get(..10) {
        date if date == today.get(..10) => format!("{time} UTC"),
        date => format!("{} {time} UTC", date.unwrap_or(&text)),
    }
}

/// A part of a line of ours: words, or a command to type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Whether it stood between backticks.
    pub(crate) code: bool,
    pub(crate) text: String,
}

/// A line in parts: what stands between two backticks is a command. A backtick without another is itself.
pub(crate) fn pieces(line: &str) -> Vec<Piece> {
    let parts: Vec<&str> = line.split('`').collect();
    let mut pieces: Vec<Piece> = Vec::with_capacity(parts.len());
    for (index, part) in parts.iter().enumerate() {
        let (opened, closed) = (index % 2 == 1, index + 1 < parts.len());
        let code = opened && closed && !part.trim().is_empty();
        let text = match (opened, closed) {
            (true, true) if !code => format!("`{part}`"),
            (true, false) => format!("`{part}"),
            _ => (*part).to_owned(),
        };
        match pieces.last_mut() {
            Some(last) if !code && !last.code => last.text.push_str(&text),
            _ if text.is_empty() => {}
            _ => pieces.push(Piece { code, text }),
        }
    }
    pieces
}

/// What the log says of an event, in parts. Only reasons name commands: what people and agents said stays sign by sign.
pub(crate) fn told(stamped: &Stamped) -> Vec<Piece> {
    let line = sentence(stamped);
    match &stamped.event {
        Event::StatusChanged { .. } => pieces(&line),
        _ => vec![Piece { code: false, text: line }],
    }
}

/// Why a feature stands where it does, where that says what it waits for. While it waits for an answer the question says
/// why, and while somebody works on it the timeline tells what came before.
pub(crate) fn reason(status: Status, reason: Option<&str>) -> Option<Vec<Piece>> {
    let speaks = status.worker().is_none() && status != Status::AwaitingInput;
    reason.filter(|_| speaks).map(|reason| pieces(&one_line(reason)))
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

/// What saying yes would mean, for the kinds that ask for care. People ask as well, and scripts in their name.
pub(crate) fn caution(asked: &Asked) -> Option<&'static str> {
    match (asked.question_type, asked.role) {
        (QuestionType::Clarification | QuestionType::ExternalDecision, _) => None,
        (QuestionType::PermissionOverride, Role::Human) => Some("Permission is requested."),
        (QuestionType::PermissionOverride, _) => {
            Some("The agent asks for permission to do something it may not do by itself.")
        }
        (QuestionType::RiskAck, Role::Human) => Some("You are asked to accept a risk."),
        (QuestionType::RiskAck, _) => Some("The agent asks you to accept a risk."),
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

/// What a feature does after a question with this `resume_status`, which may be one that this version does not know.
/// How a sentence goes on that begins with the feature.
pub(crate) fn goes_on(name: &str) -> String {
    match Status::parse(name) {
        Some(Status::Qa) => "goes on in review".to_owned(),
        Some(known) if known.worker().is_some() => format!("goes on in {}", status(known).to_lowercase()),
        Some(known) => format!("stays {}", status(known).to_lowercase()),
        None => format!("goes on in {name}"),
    }
}

/// Where a question comes from that brought its feature along.
pub(crate) const LONE: &str = "outside any feature";

/// What happens at the deadline when nobody answers: how a sentence goes on that begins with the time. Nothing but the
/// question is in the feature of a lone one.
pub(crate) fn on_timeout(question: &Question, is_lone: bool) -> String {
    let feature = &question.feature_id;
    let policy = question.expiry_policy;
    match (policy.strict, question.asked.blocking, policy.on_timeout) {
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
                format!("{} decides for itself, and has to say that it did.", asker(&question.asked))
            }
        },
    }
}

/// Who goes on without an answer. People ask as well, and scripts in their name.
fn asker(asked: &Asked) -> &'static str {
    if asked.role == Role::Human { "whoever asked" } else { "the agent" }
}

/// How a question was closed.
pub(crate) fn mode(mode: ResolutionMode, asked: &Asked) -> &'static str {
    match mode {
        ResolutionMode::UserReply => "The first answer stands.",
        ResolutionMode::Expired => "Nobody answered in time.",
        ResolutionMode::EngineJudgement if asked.role == Role::Human => {
            "Nobody answered in time. By policy whoever asked decides for itself, and has to say that it did."
        }
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
        secret if *secret == redacted() => "kept secret".to_owned(),
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
    use serde_json::json;

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
    fn a_deadline_on_another_day_has_a_date() {
        let now = Timestamp::from_millis(1_000_000);
        let soon = When::ahead(now.plus_millis(840_000), now);
        assert_eq!((soon.clock.as_str(), soon.words.as_str()), ("00:30 UTC", "in 14 min"));
        let later = When::ahead(now.plus_millis(86_400_000), now);
        assert_eq!((later.clock.as_str(), later.words.as_str()), ("1970-01-02 00:16 UTC", "in 1 day"));
        assert_eq!(When::ahead(now, now).words, "now");
    }

    #[test]
    fn what_stands_between_two_backticks_is_a_command_and_a_lone_backtick_is_itself() {
        let shown = |line: &str| {
            let shown = pieces(line)
                .into_iter()
                .map(|Piece { code, text }| if code { format!("<{text}>") } else { text });
            shown.collect::<Vec<_>>().join("|")
        };
        assert_eq!(shown("`aop merge` (checks: none)"), "<aop merge>| (checks: none)");
        assert_eq!(shown("see `a`; go on with `b`"), "see |<a>|; go on with |<b>");
        assert_eq!(shown("a ` b"), "a ` b");
        assert_eq!(shown("`a` and `b"), "<a>| and `b");
        assert_eq!(shown("``` `` `"), "``` `` `");
        assert_eq!(shown(""), "");
    }

    #[test]
    fn a_reason_is_shown_where_it_says_what_is_waited_for() {
        for (status, shown) in [
            (Status::Blocked, true),
            (Status::ReadyToMerge, true),
            (Status::Failed, true),
            (Status::Merged, true),
            (Status::AwaitingInput, false),
            (Status::Planning, false),
            (Status::Building, false),
            (Status::Qa, false),
        ] {
            assert_eq!(reason(status, Some("retry")).is_some(), shown, "{status:?}");
        }
        assert_eq!(reason(Status::Blocked, None), None);
    }

    #[test]
    fn a_caution_names_no_agent_where_a_person_asks() {
        for kind in ["permission_override", "risk_ack"] {
            for (role, agent) in [("human", false), ("builder", true)] {
                let asked = crate::pages::fixture::asked(json!({"question_type": kind, "role": role}));
                assert_eq!(caution(&asked).unwrap().contains("agent"), agent, "{kind} {role}");
            }
        }
    }

    #[test]
    fn where_a_person_asked_no_agent_decides_for_itself() {
        for (role, agent) in [("human", false), ("builder", true)] {
            let asked = crate::pages::fixture::asked(json!({"role": role}));
            assert_eq!(mode(ResolutionMode::EngineJudgement, &asked).contains("agent"), agent, "{role}");
            assert_eq!(asker(&asked).contains("agent"), agent, "{role}");
        }
    }

    #[test]
    fn a_sentence_says_where_a_feature_goes_on_or_that_it_stays() {
        for (status, told) in [
            ("building", "goes on in building"),
            ("qa", "goes on in review"),
            ("blocked", "stays blocked"),
            ("ready_to_merge", "stays ready to merge"),
            ("painting", "goes on in painting"),
        ] {
            assert_eq!(goes_on(status), told);
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(cut("äöü", 2), "äö…");
        assert_eq!(cut("äöü", 3), "äöü");
    }
}
