//! The contents of the files, as text.

use crate::port::FeatureFiles;
use aop_kernel::feature::FeatureRecord;
use aop_kernel::question::{Question, QuestionState};
use aop_kernel::status::Held;
use serde::Serialize;
use serde_json::json;
use std::fmt::Write;

/// `questions.json`. The records stand as the store has them, so a long history costs no parsing.
pub(super) fn questions(files: &FeatureFiles) -> String {
    let head = format!("{{\"version\":1,\"feature_id\":{},\"items\":[\n", json!(files.feature.id));
    [&head, &files.questions, "\n]}\n"].concat()
}

/// `decisions.md`.
pub(super) fn decisions(files: &FeatureFiles) -> String {
    let head = format!("# Decisions: {}\n\n", aop_kernel::log::one_line(&files.feature.title));
    [&head, &files.log[..]].concat()
}

/// `state.md`: YAML front matter, and a few words below it.
pub(super) fn state(files: &FeatureFiles) -> String {
    let feature = &files.feature;
    let record = feature.record(Held::No);
    let human_input = feature.human_input();
    let mut text = String::from("---\n");
    let mut line = |key: &str, value: &dyn erased::Json| {
        let _ = writeln!(text, "{key}: {}", value.json());
    };
    line("feature_id", &record.feature_id);
    line("title", &record.title);
    line("status", &record.status);
    line("status_reason", &record.status_reason);
    line("activity_state", &record.activity_state);
    line("blocked_from", &record.blocked_from);
    line("role", &record.role);
    line("engine", &record.engine);
    line("version", &record.version);
    line("created_at", &record.created_at);
    line("updated_at", &record.updated_at);
    text.push_str("human_input:\n");
    let mut line = |key: &str, value: &dyn erased::Json| {
        let _ = writeln!(text, "  {key}: {}", value.json());
    };
    line("open_question_id", &human_input.open_question_id);
    line("open_question_count", &human_input.open_question_count);
    line("awaiting_since", &human_input.awaiting_since);
    line("requested_by_role", &human_input.requested_by_role);
    line("resume_status", &human_input.resume_status);
    let _ = writeln!(text, "---\n\n# {}\n", aop_kernel::log::one_line(&feature.title));
    match &feature.waiting {
        Some(waiting) => {
            let id = &waiting.question_id;
            let _ =
                writeln!(text, "Waits for an answer to {id}, asked by the {}. Answer with\n", waiting.role);
            let _ = writeln!(text, "    aop answer {id}");
        }
        None => {
            let why =
                feature.status_reason.as_ref().map(|why| format!(": {}", aop_kernel::log::one_line(why)));
            let _ = writeln!(text, "Status: {}{}.", feature.status, why.unwrap_or_default());
        }
    }
    text
}

/// JSON is YAML too, so a value is written as JSON: no text can be taken for something else. Plain words,
/// which nothing can be mistaken for, go without their quotes.
mod erased {
    use serde::Serialize;
    use std::fmt::Write;

    pub(super) trait Json {
        fn json(&self) -> String;
    }

    impl<T: Serialize> Json for T {
        fn json(&self) -> String {
            let json = serde_json::to_string(self).unwrap_or_else(|_| "null".into());
            match json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
                Some(word) if plain(word) => word.to_owned(),
                _ => printable(&json),
            }
        }
    }

    /// YAML takes fewer characters as they are than JSON does, and breaks lines at more of them.
    fn printable(json: &str) -> String {
        let mut text = String::with_capacity(json.len());
        for c in json.chars() {
            match c {
                '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                    let _ = write!(text, "\\u{:04x}", u32::from(c));
                }
                _ => text.push(c),
            }
        }
        text
    }

    fn plain(word: &str) -> bool {
        const RESERVED: &[&str] = &["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
        word.starts_with(|c: char| c.is_ascii_alphabetic())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !RESERVED.contains(&word.to_ascii_lowercase().as_str())
    }
}

/// `answers/<question_id>.json`: the answer record of a form. A secret stands there as `{"redacted": true}`,
/// which no reader can take for an answer.
pub(super) fn answer(question: &Question) -> Option<String> {
    let QuestionState::Answered { answer, at, by, .. } = &question.state else { return None };
    let spec = question.asked.spec.as_ref()?;
    // A text for the whole card is an answer, but not one of the form's.
    answer.as_object()?;
    let document = json!({"version": spec.version(), "topic": spec.topic(), "answers": answer,
        "answered_at": at, "answered_by": by});
    Some(format!("{document:#}\n"))
}

/// `features/index.json`.
pub(super) fn index(features: &[FeatureRecord]) -> String {
    #[derive(Serialize)]
    struct Index<'a> {
        version: u32,
        features: &'a [FeatureRecord],
    }
    let text = serde_json::to_string_pretty(&Index { version: 1, features });
    format!("{}\n", text.unwrap_or_default())
}
