//! A scenario: what the scripted engine says, asks and does, role by role.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// `.aop/scripted/<feature_id>.json`, or `default.json` where a feature has none of its own.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    /// The steps of each role, by its name. A role without steps finishes at once.
    pub(crate) roles: BTreeMap<String, Vec<Step>>,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Step {
    /// Says something.
    Say(String),
    /// Asks through its tool: a `prompt` with or without `choices`, or a card of `questions`.
    Ask(Map<String, Value>),
    /// Ends the turn with a question in prose.
    AskProse(String),
    /// Does nothing for a while.
    WaitMs(u64),
    /// Writes a file into the worktree.
    Write(WriteFile),
    /// Ends the turn with a result.
    Finish(Map<String, Value>),
    /// Ends the turn with a failure.
    Fail(String),
    /// Is gone in the middle of the turn, as if killed.
    Crash,
    /// Writes something that is no line of its stream.
    Garbage(String),
}

/// A file to write.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteFile {
    /// Below the worktree.
    pub(crate) path: String,
    /// Its content.
    pub(crate) text: String,
}

/// A scenario that takes a feature through all its phases, with no more in it than that needs.
const LEAST: &str = r#"{"roles": {"planner": [{"finish": {"summary": "a plan", "steps": ["build it"]}}], "builder": [{"finish": {"summary": "built", "files_changed": []}}], "qa": [{"finish": {"verdict": "pass", "summary": "good"}}]}}"#;

/// The folder of scenarios, sessions and deliveries.
pub(crate) fn folder(project: &Path) -> PathBuf {
    project.join(".aop/scripted")
}

/// The scenario of a feature, or why there is none: a sentence and what to do.
pub(crate) fn load(project: &Path, feature_id: &str) -> Result<Scenario, (String, String)> {
    let folder = folder(project);
    let own = folder.join(format!("{feature_id}.json"));
    let common = folder.join("default.json");
    let path = if own.exists() { &own } else { &common };
    let text = crate::plain::read_file(path).map_err(|error| {
        let cause = match error.kind() {
            std::io::ErrorKind::NotFound => format!("there is no scenario {}", own.display()),
            _ => format!("{} cannot be read: {error}", path.display()),
        };
        (
            cause,
            format!(
                "write one there, or {} for every feature without its own, as in `{LEAST}`",
                common.display()
            ),
        )
    })?;
    serde_json::from_slice(&text).map_err(|error| {
        (
            format!("{} is not a scenario: {error}", path.display()),
            "steps are say, ask, ask_prose, wait_ms, write, finish, fail, crash and garbage".to_owned(),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_has_one_form() {
        let text = r#"{"roles": {"planner": [{"say": "a"}, {"ask": {"prompt": "b?"}}, {"ask_prose": "c?"},
            {"wait_ms": 5}, {"write": {"path": "d", "text": "e"}}, {"finish": {"f": 1}}, {"fail": "g"}, "crash",
            {"garbage": "h"}]}}"#;
        let scenario: Scenario = serde_json::from_str(text).unwrap();
        assert_eq!(scenario.roles["planner"].len(), 9);
        assert_eq!(scenario.roles["planner"][7], Step::Crash);
        assert!(serde_json::from_str::<Scenario>(r#"{"roles": {"planner": [{"dance": 1}]}}"#).is_err());
        assert!(serde_json::from_str::<Scenario>(r#"{"roles": {}, "more": 1}"#).is_err());
    }
}
