//! The live table as lines: what is worked on, what waits, and the command that answers it. Pure, so that it can be
//! tested without a terminal.

use crate::commands::status::coloured;
use crate::output::live::AIRY;
use crate::output::style::{bold, clean, cyan, dim, green, yellow};
use crate::output::table::{Listed, and_more, cut, fit_into, seen, table, widths};
use crate::output::when::{ahead, relative};
use crate::output::wrap::wrapped;
use aop_kernel::feature::FeatureRecord;
use aop_kernel::ids::FeatureId;
use aop_kernel::question::Question;
use aop_kernel::status::{ActivityState, Status};
use aop_kernel::tools::is_lone_feature;
use std::collections::BTreeMap;

/// What is shown.
#[derive(Default)]
pub(super) struct Picture {
    pub(super) features: Vec<FeatureRecord>,
    /// Open questions, oldest first.
    pub(super) questions: Vec<Question>,
    /// How many there are open, with those that are not among these.
    pub(super) open: usize,
    /// Whether there are more than were counted.
    pub(super) uncounted: bool,
    /// What each worker said last.
    pub(super) said: BTreeMap<FeatureId, String>,
    /// How a command elsewhere has to name the project, where it would not be found from this folder.
    pub(super) elsewhere: Option<String>,
}

/// How the person who looks at it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// With a key, or with a command elsewhere.
    Key,
    /// With a command elsewhere.
    Command,
    /// Not at all: others do.
    Nothing,
}

const SPINNER: &[char] = &['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// How many questions are shown in full.
const QUESTIONS: usize = 2;

/// What a table needs to say anything: its header, a row, and how many there are besides.
const TABLE: usize = 3;

/// How much of an id is always worth more than who asked.
const LEAST: usize = 8;

const HEADER: &[&str] = &["", "FEATURE", "STATUS", "ROLE", "ENGINE", "SINCE", ""];

impl Picture {
    /// Whether something moves.
    pub(super) fn is_moving(&self) -> bool {
        self.features.iter().any(|feature| feature.activity_state == ActivityState::Working)
    }

    /// The lines, for a terminal of this size at this tick: never more than it has beside the cursor's own. Where there
    /// is little room the questions and the last line stay, and the table gives way.
    pub(super) fn lines(&self, (columns, rows): (usize, usize), tick: usize, way: Way) -> Vec<String> {
        let mut left = rows.saturating_sub(1);
        let gap = usize::from(left >= AIRY);
        left = left.saturating_sub(1 + gap);
        let questions = self.waiting(columns, left, gap, way);
        let mut lines = self.work(columns, left.saturating_sub(questions.len()), gap, tick);
        lines.extend(questions);
        lines.extend(std::iter::repeat_n(String::new(), gap));
        let answer = if way == Way::Key && !self.questions.is_empty() { "a answers · " } else { "" };
        // A command that would not find the project from here is of no use to anybody.
        let on = if self.elsewhere.is_some() { "" } else { "; `aop run` continues" };
        lines.push(dim(&format!("{answer}Ctrl-C stops{on}")));
        lines
    }

    /// The questions, and how many there are besides.
    fn waiting(&self, columns: usize, left: usize, gap: usize, way: Way) -> Vec<String> {
        let mut lines = Vec::new();
        let mut shown = 0;
        for (place, question) in self.questions.iter().take(QUESTIONS).enumerate() {
            // The key opens the first.
            let way = if way == Way::Key && place > 0 { Way::Command } else { way };
            let asked = asked(question, columns, way, self.elsewhere.as_deref());
            // A second one leaves the table some room.
            if place > 0 && lines.len() + gap + asked.len() + 1 + gap + TABLE > left {
                break;
            }
            lines.extend(std::iter::repeat_n(String::new(), gap));
            lines.extend(asked);
            shown += 1;
        }
        let more = self.open.max(self.questions.len()) - shown;
        if more > 0 && lines.len() < left {
            let than = if self.uncounted { "more than " } else { "" };
            let all = if self.elsewhere.is_some() { "" } else { " (`aop questions` lists all)" };
            lines.push(yellow(&format!("… and {than}{more} more{all}")));
        }
        lines.truncate(left);
        lines
    }

    /// The table, and below it whole what does not fit into a row.
    fn work(&self, columns: usize, left: usize, gap: usize, tick: usize) -> Vec<String> {
        let Some(mut left) = left.checked_sub(gap + 1).filter(|left| *left > 0) else { return Vec::new() };
        let mut features: Vec<&FeatureRecord> = self.features.iter().collect();
        features.sort_by_key(|feature| (urgency(feature), feature.feature_id.clone()));
        let total = features.len();
        features.truncate(fit_into(left, std::iter::repeat_n(1, total)));
        let hidden = total - features.len();
        left -= features.len() + usize::from(hidden > 0);
        let mut rows: Vec<Vec<String>> = features.iter().map(|feature| row(feature, tick)).collect();
        let used: usize = widths(HEADER, &rows).iter().map(|width| width + 2).sum();
        let room = columns.saturating_sub(1 + used);
        let mut below = Vec::new();
        for (feature, row) in features.iter().zip(&mut rows) {
            let remark = self.remark(feature);
            let note = wrapped(
                &format!("  {} {remark}", bold(feature.feature_id.as_str())),
                columns.saturating_sub(1),
            );
            let height = note.lines().count();
            let is_next_step = feature.activity_state != ActivityState::Working;
            if is_next_step && seen(&remark) > room && below.len() + height + gap <= left {
                below.extend(note.lines().map(str::to_owned));
            } else {
                row.push(dim(&cut(&remark, room.max(10))));
            }
        }
        let mut lines = vec![String::new(); gap];
        lines.extend(table(HEADER, &rows).lines().map(str::to_owned));
        if hidden > 0 {
            let all = if self.elsewhere.is_some() { Listed::Nowhere } else { Listed::ByStatus };
            lines.push(and_more(hidden, all));
        }
        if !below.is_empty() {
            lines.extend(std::iter::repeat_n(String::new(), gap));
            lines.extend(below);
        }
        lines
    }

    /// What a worker said last, or what to do next.
    fn remark(&self, feature: &FeatureRecord) -> String {
        let remark = match feature.activity_state {
            ActivityState::Working => self.said.get(&feature.feature_id).map(|said| prose(said).to_owned()),
            ActivityState::Blocked | ActivityState::Done => feature.status_reason.clone(),
            ActivityState::WaitingInput | ActivityState::Idle => None,
        };
        clean(&aop_kernel::log::one_line(&remark.unwrap_or_default()))
    }
}

/// Where a command is typed.
const IN_ANOTHER: &str = "in another terminal";

/// What a worker said to people: without the JSON that it ends with, which is for this program.
fn prose(said: &str) -> &str {
    let end = [said.find("{\""), said.find("```json")].into_iter().flatten().min();
    said[..end.unwrap_or(said.len())].trim_end()
}

/// The cells of a feature before its remark.
fn row(feature: &FeatureRecord, tick: usize) -> Vec<String> {
    let sign = match feature.activity_state {
        ActivityState::Working => cyan(&SPINNER[tick % SPINNER.len()].to_string()),
        ActivityState::WaitingInput => yellow("?"),
        ActivityState::Blocked => yellow("!"),
        ActivityState::Done if feature.status == Status::Failed => yellow("✗"),
        ActivityState::Done => green("✓"),
        ActivityState::Idle => " ".to_owned(),
    };
    vec![
        sign,
        bold(feature.feature_id.as_str()),
        coloured(feature.status.as_str()),
        feature.role.map(|role| role.as_str().to_owned()).unwrap_or_default(),
        dim(&clean(feature.engine.as_deref().unwrap_or_default())),
        dim(&relative(feature.status_since)),
    ]
}

/// What needs a person comes first, then what moves, then the rest.
fn urgency(feature: &FeatureRecord) -> u8 {
    match feature.activity_state {
        ActivityState::WaitingInput => 0,
        ActivityState::Working => 1,
        ActivityState::Blocked => 2,
        ActivityState::Idle => 3,
        ActivityState::Done => 4,
    }
}

/// Whose question it is and until when it waits. Where there is little room the id is cut, which the table has, and who
/// asked is left out; the deadline stays.
fn head(question: &Question, columns: usize) -> String {
    let kind = question.asked.question_type.as_str();
    let by = format!("{} asked {}", question.asked.role, relative(question.created_at));
    let until = question.expires_at.map(|at| format!("expires {}", ahead(at)));
    let whole = until.as_ref().map_or_else(|| by.clone(), |until| format!("{by} · {until}"));
    let id = question.feature_id.as_str();
    if is_lone_feature(&question.feature_id) {
        return format!("{} {}  {}", yellow("?"), yellow(kind), dim(&whole));
    }
    // Beside what stands between them, and the last column.
    let room = |told: &str| columns.saturating_sub(7 + seen(kind) + seen(told));
    let told = if room(&whole) >= seen(id).min(LEAST) { whole } else { until.unwrap_or(by) };
    format!("{} {}  {}  {}", yellow("?"), bold(&cut(id, room(&told).max(2))), yellow(kind), dim(&told))
}

fn asked(question: &Question, columns: usize, way: Way, elsewhere: Option<&str>) -> Vec<String> {
    let head = head(question, columns);
    let prompt = format!("  {}", clean(&cut(&question.asked.prompt, columns.saturating_sub(4))));
    let aop = elsewhere.map_or("aop".to_owned(), |root| format!("aop --project {root}"));
    let command = format!("{aop} answer {}", question.id);
    // Half a command is of no use to anybody; the shortest walks through all that waits.
    let command = if 2 + seen(&command) < columns { command } else { format!("{aop} answer") };
    let how = match way {
        Way::Key => vec![format!("  {}, or in another terminal:", bold("press a")), format!("  {command}")],
        Way::Command if seen(&command) + seen(IN_ANOTHER) + 4 < columns => {
            vec![format!("  {command}  {}", dim(IN_ANOTHER))]
        }
        Way::Command => vec![format!("  {command}")],
        Way::Nothing => Vec::new(),
    };
    [head, prompt].into_iter().chain(how).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use aop_kernel::feature::Feature;

    fn feature(id: &str, status: &str) -> FeatureRecord {
        let json = serde_json::json!({"id": id, "title": "t", "adhoc": false, "status": status, "status_reason": null,
            "blocked_from": null, "waiting": null, "open_question_count": 0, "role": "planner", "engine": "scripted",
            "version": 1, "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"});
        serde_json::from_value::<Feature>(json).unwrap().record(aop_kernel::status::Held::No)
    }

    #[test]
    fn what_needs_a_person_stands_first_and_the_rest_is_counted() {
        let mut features: Vec<FeatureRecord> =
            (0..40).map(|n| feature(&format!("f{n:02}"), "ready_to_merge")).collect();
        features.push(feature("zz", "awaiting_input"));
        let picture = Picture { features, ..Picture::default() };
        let lines = picture.lines((100, 24), 0, Way::Key);
        assert!(lines.len() < 24, "{lines:#?}");
        assert!(lines[2].contains("zz"), "{lines:#?}");
        assert!(lines.iter().any(|line| line.contains("… and 23 more")), "{lines:#?}");
    }

    fn question(id: &str) -> Question {
        let json = serde_json::json!({"feature_id": id, "question_id": "q_01JA0000000000000000000000", "status": "open",
            "blocking": true, "question_type": "clarification", "role": "builder", "session_id": "s",
            "prompt": "Which one?", "created_at": "2026-01-01T00:00:00Z", "expires_at": null,
            "default_decision_policy": "decline", "expiry_policy": {"strict": true, "on_timeout": "block_feature"}, "resume_status": "building"});
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn the_deadline_of_a_question_is_seen_however_long_the_id_is() {
        let mut question = question("checkout-with-many-payments");
        let now = aop_store::Clock::now(&aop_store::SystemClock);
        question.created_at = now;
        question.expires_at = Some(now.plus_millis(900_000));
        let lines = |columns| head(&question, columns);
        let end = "clarification  builder asked just now · expires in 15 min";
        assert_eq!(lines(100), format!("? checkout-with-many-payments  {end}"));
        assert_eq!(lines(80), format!("? checkout-with-man…  {end}"));
        assert_eq!(lines(60), "? checkout-with-many-pay…  clarification  expires in 15 min");
        for columns in 40..120 {
            let line = lines(columns);
            assert!(seen(&line) < columns && line.ends_with("expires in 15 min"), "{columns}: {line}");
        }
    }

    #[test]
    fn a_low_terminal_is_never_flooded_and_keeps_the_question_and_the_last_line() {
        for rows in 2..40 {
            for (count, waiting) in [(0, 0), (1, 1), (3, 2), (30, 5)] {
                let features = (0..count).map(|n| feature(&format!("f{n:02}"), "ready_to_merge")).collect();
                let questions = (0..waiting).map(|n| question(&format!("q{n}"))).collect();
                let picture = Picture { features, questions, ..Picture::default() };
                let lines = picture.lines((80, rows), 0, Way::Key);
                assert!(lines.len() < rows, "{rows}: {lines:#?}");
                assert!(lines.last().unwrap().contains("Ctrl-C stops"), "{rows}: {lines:#?}");
                let question = lines.iter().any(|line| line.contains("Which one?"));
                assert_eq!(question, waiting > 0 && rows > 3, "{rows}: {lines:#?}");
                let row = lines.iter().any(|line| line.contains("f00"));
                assert!(row || count == 0 || rows < 10, "{rows}: {lines:#?}");
            }
        }
    }

    #[test]
    fn a_next_step_that_does_not_fit_its_row_stands_whole_below_the_table() {
        let step = "`aop merge --feature-id checkout` (checks: 2 passed)";
        let mut ready = feature("checkout", "ready_to_merge");
        ready.status_reason = Some(step.to_owned());
        let picture = Picture { features: vec![ready], ..Picture::default() };
        let wide = picture.lines((140, 24), 0, Way::Key);
        assert!(wide[2].ends_with(step), "{wide:#?}");
        for columns in [60, 80] {
            let lines = picture.lines((columns, 24), 0, Way::Key);
            assert!(!lines[2].contains("aop merge"), "{lines:#?}");
            let text = lines.join(" ").replace("   ", " ");
            assert!(text.contains(&format!("  checkout {step}")), "{lines:#?}");
        }
    }

    #[test]
    fn the_view_says_where_its_key_and_where_a_command_is_typed_which_stands_whole() {
        let id = "q_01JA0000000000000000000000";
        let told = |columns, elsewhere| {
            let lines = asked(&question("shop"), columns, Way::Key, elsewhere);
            assert_eq!(lines[2], "  press a, or in another terminal:");
            assert!(lines.len() == 4 && seen(&lines[3]) < columns.max(30), "{lines:#?}");
            lines[3].trim().to_owned()
        };
        assert_eq!(told(60, None), format!("aop answer {id}"));
        assert_eq!(told(30, None), "aop answer");
        assert_eq!(told(80, Some("/tmp/demo")), format!("aop --project /tmp/demo answer {id}"));
        let narrow = asked(&question("shop"), 60, Way::Command, None);
        assert_eq!(narrow[2], format!("  aop answer {id}"));
        let second = asked(&question("shop"), 80, Way::Command, None);
        assert!(second.len() == 3 && second[2].starts_with(&format!("  aop answer {id}")), "{second:#?}");
    }

    #[test]
    fn the_questions_that_are_not_shown_are_counted_however_many_were_read() {
        let questions = (0..20).map(|n| question(&format!("q{n}"))).collect();
        let mut picture = Picture { questions, open: 30, ..Picture::default() };
        let told = |picture: &Picture| {
            let lines = picture.lines((80, 40), 0, Way::Key);
            lines.into_iter().find(|line| line.starts_with("… and ")).unwrap()
        };
        assert_eq!(told(&picture), "… and 28 more (`aop questions` lists all)");
        picture.uncounted = true;
        assert_eq!(told(&picture), "… and more than 28 more (`aop questions` lists all)");
    }

    #[test]
    fn no_command_is_shown_that_would_not_find_the_project() {
        let features = (0..40).map(|n| feature(&format!("f{n:02}"), "ready_to_merge")).collect();
        let questions = (0..5).map(|n| question(&format!("q{n}"))).collect();
        let mut picture = Picture { features, questions, ..Picture::default() };
        assert_eq!(
            picture.lines((80, 24), 0, Way::Key).last().unwrap(),
            "a answers · Ctrl-C stops; `aop run` continues"
        );
        picture.elsewhere = Some("/tmp/demo".to_owned());
        let lines = picture.lines((80, 24), 0, Way::Key);
        assert_eq!(lines.last().unwrap(), "a answers · Ctrl-C stops");
        assert!(!lines.iter().any(|line| line.contains("`aop ")), "{lines:#?}");
    }

    #[test]
    fn what_a_worker_says_to_this_program_is_not_shown_to_people() {
        for (said, shown) in [
            ("Done. {\"summary\": 1", "Done."),
            ("I use {id} here", "I use {id} here"),
            ("{\"outcome\"", ""),
            ("Here it is: ```json {", "Here it is:"),
        ] {
            assert_eq!(prose(said), shown);
        }
    }
}
