//! The live table as lines: what is worked on, what waits, and the command that answers it. Pure, so that it can be
//! tested without a terminal.

use crate::commands::status::coloured;
use crate::output::style::{bold, clean, cyan, dim, green, yellow};
use crate::output::table::{cut, table};
use crate::output::when::relative;
use aop_kernel::feature::FeatureRecord;
use aop_kernel::ids::FeatureId;
use aop_kernel::question::Question;
use aop_kernel::status::{ActivityState, Status};
use std::collections::BTreeMap;

/// What is shown.
#[derive(Default)]
pub(super) struct Picture {
    pub(super) features: Vec<FeatureRecord>,
    /// Open questions, oldest first.
    pub(super) questions: Vec<Question>,
    /// What each worker said last.
    pub(super) said: BTreeMap<FeatureId, String>,
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

impl Picture {
    /// Whether something moves.
    pub(super) fn is_moving(&self) -> bool {
        self.features.iter().any(|feature| feature.activity_state == ActivityState::Working)
    }

    /// The lines, for a terminal of this size at this tick.
    pub(super) fn lines(&self, (columns, rows): (usize, usize), tick: usize, way: Way) -> Vec<String> {
        let mut features: Vec<&FeatureRecord> = self.features.iter().collect();
        features.sort_by_key(|feature| (urgency(feature), feature.feature_id.clone()));
        let room = rows.saturating_sub(7 + 4 * self.questions.len().min(QUESTIONS)).max(3);
        let hidden = features.len().saturating_sub(room);
        let shown = features.iter().take(room);
        let rows: Vec<Vec<String>> = shown.map(|feature| self.row(feature, columns, tick)).collect();
        let mut lines = vec![String::new()];
        let text = table(&["", "FEATURE", "STATUS", "ROLE", "ENGINE", "SINCE", ""], &rows);
        lines.extend(text.lines().map(str::to_owned));
        if hidden > 0 {
            lines.push(dim(&format!("  … and {hidden} more (`aop status` lists all)")));
        }
        for (place, question) in self.questions.iter().take(QUESTIONS).enumerate() {
            lines.push(String::new());
            // The key opens the first.
            let way = if way == Way::Key && place > 0 { Way::Command } else { way };
            lines.extend(asked(question, columns, way));
        }
        let more = self.questions.len().saturating_sub(QUESTIONS);
        if more > 0 {
            lines.push(yellow(&format!("… and {more} more (`aop questions` lists all)")));
        }
        lines.push(String::new());
        let answer = if way == Way::Key && !self.questions.is_empty() { "a answers · " } else { "" };
        lines.push(dim(&format!("{answer}Ctrl-C stops; the next `aop run` goes on from here")));
        lines
    }

    fn row(&self, feature: &FeatureRecord, columns: usize, tick: usize) -> Vec<String> {
        let sign = match feature.activity_state {
            ActivityState::Working => cyan(&SPINNER[tick % SPINNER.len()].to_string()),
            ActivityState::WaitingInput => yellow("?"),
            ActivityState::Blocked => yellow("!"),
            ActivityState::Done if feature.status == Status::Failed => yellow("✗"),
            ActivityState::Done => green("✓"),
            ActivityState::Idle => " ".to_owned(),
        };
        let remark = match feature.activity_state {
            ActivityState::Working => self.said.get(&feature.feature_id).cloned(),
            ActivityState::Blocked | ActivityState::Done => feature.status_reason.clone(),
            ActivityState::WaitingInput | ActivityState::Idle => None,
        };
        let remark = clean(&cut(&remark.unwrap_or_default(), columns.saturating_sub(60).max(10)));
        vec![
            sign,
            bold(feature.feature_id.as_str()),
            coloured(feature.status.as_str()),
            feature.role.map(|role| role.as_str().to_owned()).unwrap_or_default(),
            dim(&clean(feature.engine.as_deref().unwrap_or_default())),
            dim(&relative(feature.awaiting_since.unwrap_or(feature.updated_at))),
            dim(&remark),
        ]
    }
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

fn asked(question: &Question, columns: usize, way: Way) -> Vec<String> {
    let asked = &question.asked;
    let until = question.expires_at.map(|at| format!(" · expires {}", relative(at))).unwrap_or_default();
    let head = format!(
        "{} {}  {}  {}",
        yellow("?"),
        bold(question.feature_id.as_str()),
        yellow(asked.question_type.as_str()),
        dim(&format!("{} asked {}{until}", asked.role, relative(question.created_at)))
    );
    let prompt = format!("  {}", clean(&cut(&asked.prompt, columns.saturating_sub(4))));
    let whole =
        format!("aop answer --feature-id {} --question-id {} --answer …", question.feature_id, question.id);
    // Half a command is of no use to anybody; this one walks through all that waits.
    let fits = whole.chars().count() + "  press a or: ".len() < columns;
    let command = if fits { whole } else { "aop answer".to_owned() };
    let how = match way {
        Way::Key => Some(format!("  {} {}", bold("press a"), dim(&format!("or: {command}")))),
        Way::Command => Some(format!("  {command}")),
        Way::Nothing => None,
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
        assert!(lines.iter().any(|line| line.contains("… and 24 more")), "{lines:#?}");
    }
}
