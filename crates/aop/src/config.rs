//! `aop.yaml`: every key optional, partial overrides merge, unknown keys and bad values are errors with file
//! and line.

use aop_kernel::policy::{HumanInput, Rules};
use aop_kernel::{ErrorCode, Refusal};
use aop_store::PostgresOptions;
use aop_supervisor::EngineChoice;
use aop_turn::Engine;
use serde::{Deserialize, Deserializer, de::Error as _};
use std::collections::BTreeMap;
use std::path::Path;

/// The whole file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    pub(crate) store: StoreChoice,
    pub(crate) policy: Policy,
    pub(crate) run: Run,
    pub(crate) engines: Engines,
    pub(crate) runners: Runners,
    pub(crate) checks: Checks,
    pub(crate) projections: Switch,
    pub(crate) notify: Notify,
}

/// `policy:`
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Policy {
    pub(crate) execution: Execution,
}

/// `policy.execution:`
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Execution {
    pub(crate) human_input: CheckedHumanInput,
    /// An older spelling of `human_input.timeout_ms`.
    human_input_timeout_ms: Option<u64>,
}

/// `policy.execution.human_input:`, with the ranges checked while the line is still known.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CheckedHumanInput(HumanInput);

impl<'de> Deserialize<'de> for CheckedHumanInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let policy = HumanInput::deserialize(deserializer)?;
        if policy.max_open_questions_per_feature == 0 {
            return Err(D::Error::custom(
                "max_open_questions_per_feature is at least 1; to forbid asking set enabled: false",
            ));
        }
        Ok(CheckedHumanInput(policy))
    }
}

/// `store:`
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum StoreChoice {
    /// The embedded store in `.aop/aop.db`.
    #[default]
    Sqlite,
    /// A project on PostgreSQL.
    Postgres(Address),
}

/// An address that may hold a password, and is therefore never shown as it is.
#[derive(Clone, PartialEq)]
pub(crate) struct Address(String);

impl Address {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&without_password(&self.0))
    }
}

impl StoreChoice {
    /// Reads `sqlite` or a `postgres://` address; why not, in words that show no password.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text == "sqlite" {
            return Ok(StoreChoice::Sqlite);
        }
        if !text.starts_with("postgres://") && !text.starts_with("postgresql://") {
            let wanted = "use sqlite or postgres://user@host/database?project=NAME";
            // Words of another notation, among which a password may stand.
            if text.contains('=') {
                return Err(format!("this is not an address of a store; {wanted}"));
            }
            return Err(format!("'{}' is not a store; {wanted}", without_password(text)));
        }
        match PostgresOptions::parse(text) {
            Ok(_) => Ok(StoreChoice::Postgres(Address(text.to_owned()))),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl<'de> Deserialize<'de> for StoreChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        StoreChoice::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// A text with whatever stands between `://` and the last `@` behind it made unreadable.
fn without_password(text: &str) -> String {
    match text.split_once("://").and_then(|(before, rest)| Some((before, rest.rsplit_once('@')?.1))) {
        Some((before, after)) => format!("{before}://…@{after}"),
        None => text.to_owned(),
    }
}

/// `run:`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Run {
    pub(crate) execution_mode: ExecutionMode,
    pub(crate) max_parallel: Positive,
    pub(crate) max_attempt: Positive,
    pub(crate) repair_rounds: u32,
    pub(crate) retries: u32,
    pub(crate) retry_wait_s: u32,
    pub(crate) warm_ms: u64,
    pub(crate) git_timeout_s: Positive,
}

impl Default for Run {
    fn default() -> Self {
        Run {
            execution_mode: ExecutionMode::Interactive,
            max_parallel: Positive(4),
            max_attempt: Positive(20),
            repair_rounds: 2,
            retries: 2,
            retry_wait_s: 30,
            warm_ms: 0,
            git_timeout_s: Positive(600),
        }
    }
}

/// `run.execution_mode`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExecutionMode {
    Interactive,
    Auto,
}

/// A whole number of at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Positive(pub(crate) u32);

impl<'de> Deserialize<'de> for Positive {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u32::deserialize(deserializer)? {
            0 => Err(D::Error::custom("the value is at least 1")),
            number => Ok(Positive(number)),
        }
    }
}

/// `engines:`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Engines {
    pub(crate) default: EngineName,
    pub(crate) roles: BTreeMap<WorkerRole, EngineName>,
    pub(crate) permissions: Permissions,
}

impl Default for Engines {
    fn default() -> Self {
        Engines { default: EngineName::ClaudeCode, roles: BTreeMap::new(), permissions: Permissions::Auto }
    }
}

/// An engine aop can drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum EngineName {
    ClaudeCode,
    Codex,
    Gemini,
    Iflow,
    Scripted,
}

/// A role that an engine plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorkerRole {
    Planner,
    Builder,
    Qa,
}

/// `engines.permissions`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Permissions {
    Auto,
    Ask,
}

/// `runners:`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Runners {
    pub(crate) away_ms: u64,
}

impl Default for Runners {
    fn default() -> Self {
        Runners { away_ms: 600_000 }
    }
}

/// `checks:`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Checks {
    #[serde(deserialize_with = "commands")]
    pub(crate) fast: Vec<String>,
    #[serde(deserialize_with = "commands")]
    pub(crate) full: Vec<String>,
    pub(crate) timeout_s: Positive,
}

impl Default for Checks {
    fn default() -> Self {
        Checks { fast: Vec::new(), full: Vec::new(), timeout_s: Positive(600) }
    }
}

/// Commands of the shell. `true` is one; a blank text and a number are mistakes.
fn commands<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    struct Line(String);

    impl<'de> Deserialize<'de> for Line {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let line = String::deserialize(deserializer)?;
            if line.trim().is_empty() {
                return Err(D::Error::custom("a command is blank"));
            }
            if line.contains('\0') {
                return Err(D::Error::custom("a command has a NUL in it, which no shell can be given"));
            }
            if line.trim().parse::<f64>().is_ok() {
                return Err(D::Error::custom("expected a command, got a number"));
            }
            Ok(Line(line))
        }
    }

    let lines = Vec::<Line>::deserialize(deserializer)?;
    Ok(lines.into_iter().map(|Line(line)| line).collect())
}

/// `notify:`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Notify {
    pub(crate) bell: bool,
}

impl Default for Notify {
    fn default() -> Self {
        Notify { bell: true }
    }
}

/// `on` or `off`; `true` and `false` are taken too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Switch {
    #[default]
    On,
    Off,
}

impl<'de> Deserialize<'de> for Switch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "on" | "true" => Ok(Switch::On),
            "off" | "false" => Ok(Switch::Off),
            other => Err(D::Error::custom(format!("'{other}' is neither on nor off"))),
        }
    }
}

impl EngineName {
    /// The engine.
    pub(crate) fn engine(self) -> Engine {
        match self {
            EngineName::ClaudeCode => Engine::ClaudeCode,
            EngineName::Codex => Engine::Codex,
            EngineName::Gemini => Engine::Gemini,
            EngineName::Iflow => Engine::Iflow,
            EngineName::Scripted => Engine::Scripted,
        }
    }
}

impl Engines {
    /// Who plays which role.
    pub(crate) fn choice(&self) -> EngineChoice {
        let of = |role| self.roles.get(&role).copied().unwrap_or(self.default).engine();
        EngineChoice {
            planner: of(WorkerRole::Planner),
            builder: of(WorkerRole::Builder),
            qa: of(WorkerRole::Qa),
        }
    }
}

impl Config {
    /// Reads the file; the defaults when there is none.
    pub(crate) fn load(path: &Path) -> Result<Self, Refusal> {
        let bytes = match aop_store::read_file(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Config::default()),
            Err(error) => {
                return Err(invalid(path, None, &format!("cannot be read: {error}"))
                    .hint("make it a readable file, or take it away: every key has a default"));
            }
        };
        match std::str::from_utf8(&bytes) {
            Ok(text) => Config::parse(path, text),
            Err(error) => {
                let before = &bytes[..error.valid_up_to()];
                let line = 1 + before.iter().filter(|byte| **byte == b'\n').count() as u64;
                Err(invalid(path, Some(line), "a byte that is not UTF-8 text")
                    .hint("save the file as UTF-8, or write that line again"))
            }
        }
    }

    pub(crate) fn parse(path: &Path, text: &str) -> Result<Self, Refusal> {
        // A file of comments only is an empty document, which is the same as no file.
        if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
            return Ok(Config::default());
        }
        let mut config: Config = serde_saphyr::from_str(text).map_err(|error| {
            let line = error.location().map(|location| location.line());
            let message = said(error.without_snippet());
            let written = line.and_then(|line| text.lines().nth(usize::try_from(line).ok()?.checked_sub(1)?));
            let written = without_password(written.unwrap_or_default().trim());
            let refusal = invalid(path, line, &format!("{message} in `{written}`"));
            match nested(&message) {
                Some(form) => refusal.hint(format!("keys stand inside each other: `{form}`")),
                None => refusal,
            }
        })?;
        if let Some(timeout_ms) = config.policy.execution.human_input_timeout_ms
            && !says(text, "/policy/execution/human_input/timeout_ms")
        {
            config.policy.execution.human_input.0.timeout_ms = timeout_ms;
        }
        Ok(config)
    }

    /// What questions are judged by.
    pub(crate) fn rules(&self) -> Rules {
        Rules {
            human_input: self.policy.execution.human_input.0.clone(),
            check_schema: aop_schema::check_schema,
            check_instance: aop_schema::check_instance,
        }
    }
}

/// What is wrong, in words for who wrote the file; the parser speaks to programmers.
fn said(error: &serde_saphyr::Error) -> String {
    match error {
        serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. } => {
            return format!("key '{key}' stands twice");
        }
        serde_saphyr::Error::DuplicateMappingKey { key: None, .. } => return "a key stands twice".to_owned(),
        serde_saphyr::Error::MultipleDocuments { .. } => {
            return "the file holds more than one document, and the next begins".to_owned();
        }
        _ => {}
    }
    let message = error.to_string();
    let message = message.lines().next().unwrap_or_default();
    // The place stands in front; the parser need not say it again.
    match message.split(" at line ").next().unwrap_or(message) {
        "invalid u64" => "expected a whole number, 0 or more".to_owned(),
        "invalid u32" => format!("expected a whole number from 0 to {}", u32::MAX),
        other if other.contains("externally tagged enum") => "expected one word".to_owned(),
        other if other.contains("expected sequence start") => "expected a list (`[…]`)".to_owned(),
        other if other.contains("expected mapping start") => {
            "expected keys with values (`{ key: value }`)".to_owned()
        }
        other => other.to_owned(),
    }
}

/// How a key with dots, as it stands in texts, is written in the file.
fn nested(message: &str) -> Option<String> {
    let key = message.strip_prefix("unknown field `")?.split('`').next()?;
    let keys: Vec<&str> = key.split('.').collect();
    let (last, outer) = keys.split_last().filter(|(_, outer)| !outer.is_empty())?;
    Some(outer.iter().rev().fold(format!("{last}: …"), |form, key| format!("{key}: {{ {form} }}")))
}

/// Whether a file that can be read has this key. The other name of a key stands back behind it.
fn says(text: &str, pointer: &str) -> bool {
    serde_saphyr::from_str::<serde_json::Value>(text).is_ok_and(|value| value.pointer(pointer).is_some())
}

fn invalid(path: &Path, line: Option<u64>, cause: &str) -> Refusal {
    let place = match line {
        Some(line) => format!("{}:{line}", path.display()),
        None => path.display().to_string(),
    };
    Refusal::new(ErrorCode::InvalidPolicy, format!("{place}: {cause}"))
        .hint("correct that line; every key is optional, so it can also be deleted")
        .fact("file", path.display().to_string())
        .fact("line", line)
}

/// What `aop init` writes: every key with its default, commented out.
pub(crate) const TEMPLATE: &str = include_str!("../assets/aop.yaml");

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, Refusal> {
        Config::parse(Path::new("aop.yaml"), text)
    }

    #[test]
    fn the_template_is_all_defaults() {
        assert_eq!(parse(TEMPLATE).unwrap(), Config::default());
        let uncommented: String = TEMPLATE
            .lines()
            .map(|line| {
                line.strip_prefix("# ")
                    .filter(|rest| rest.contains(':') && !rest.contains(". "))
                    .unwrap_or("")
            })
            .fold(String::new(), |all, line| all + line + "\n");
        assert_eq!(parse(&uncommented).unwrap(), Config::default(), "{uncommented}");
    }

    #[test]
    fn what_is_due_is_said_in_words_and_keys_with_dots_are_shown_as_they_are_written() {
        let refused = |text: &str| parse(text).unwrap_err();
        let dotted = refused("policy.execution.human_input.timeout_ms: 0\n");
        let form = "policy: { execution: { human_input: { timeout_ms: … } } }";
        assert_eq!(dotted.hint, format!("keys stand inside each other: `{form}`"));
        let list = refused("checks: { fast: cargo test }\n").message;
        assert!(list.contains("expected a list (`[…]`)"), "{list}");
        let keys = refused("engines: claude-code\n").message;
        assert!(keys.contains("expected keys with values"), "{keys}");
    }

    #[test]
    fn partial_overrides_merge_with_the_defaults() {
        let config = parse("policy:\n  execution:\n    human_input:\n      timeout_ms: 5000\n").unwrap();
        let policy = config.rules().human_input;
        assert_eq!(policy, HumanInput { timeout_ms: 5000, ..HumanInput::default() });
    }

    #[test]
    fn the_flat_timeout_key_is_an_alias() {
        let config = parse("policy:\n  execution:\n    human_input_timeout_ms: 7000\n").unwrap();
        assert_eq!(config.rules().human_input.timeout_ms, 7000);
        let both = "policy:\n  execution:\n    human_input_timeout_ms: 7000\n    human_input: { timeout_ms: 8000 }\n";
        assert_eq!(parse(both).unwrap().rules().human_input.timeout_ms, 8000, "the key itself wins");
    }

    #[test]
    fn mistakes_are_named_with_file_and_line() {
        for (text, line, part) in [
            ("store: sqlite\npolcy: {}\n", 2, "polcy"),
            ("policy:\n  execution:\n    human_input:\n      on_timeout: explode\n", 4, "explode"),
            (
                "policy:\n  execution:\n    human_input:\n      timeout_ms: soon\n",
                4,
                "expected a whole number, 0 or more in `timeout_ms: soon`",
            ),
            ("run: { retries: 4294967296 }\n", 1, "expected a whole number from 0 to 4294967295"),
            ("store: mysql\n", 1, "mysql"),
            ("store: postgres://ann:hunter2@db:x/team\n", 1, "cannot be read"),
            ("store: postgres://ann:hunter2@db/team?project=a%20b\n", 1, "cannot name a project"),
            ("store: mysql://ann:hunter2@db/team\n", 1, "use sqlite or postgres"),
            ("projections: maybe\n", 1, "maybe"),
            ("run: { max_parallel: 0 }\n", 1, "at least 1"),
            ("checks:\n  fast:\n    - make\n    - ''\n", 4, "a command is blank"),
            ("checks:\n  full: [1]\n", 2, "expected a command, got a number"),
            ("checks:\n  full: [\"a\\0b\"]\n", 2, "has a NUL in it"),
            ("engines: { default: [a] }\n", 1, "expected one word"),
            ("notify: {}\nrun: {}\nnotify: {}\n", 3, "key 'notify' stands twice in"),
            ("store: sqlite\n---\nstore: sqlite\n", 3, "holds more than one document"),
            ("store: sqlite\nrun: { max_parallel: 2\n", 2, "unclosed"),
        ] {
            let refusal = parse(text).unwrap_err();
            assert_eq!(refusal.code, ErrorCode::InvalidPolicy);
            assert!(
                refusal.message.starts_with(&format!("aop.yaml:{line}: ")),
                "{text}: {}",
                refusal.message
            );
            assert!(refusal.message.contains(part), "{text}: {}", refusal.message);
            assert!(!refusal.message.contains("hunter2"), "{}", refusal.message);
        }
    }

    #[test]
    fn a_file_that_is_no_text_is_told_as_such() {
        let folder = tempfile::tempdir().unwrap();
        let refusal = Config::load(folder.path()).unwrap_err();
        assert!(refusal.message.contains("cannot be read: Is a directory"), "{}", refusal.message);
        assert!(refusal.hint.contains("a readable file"), "{}", refusal.hint);
        let file = folder.path().join("aop.yaml");
        // Its settings are somewhere; without them agents would be allowed what they are not.
        std::os::unix::fs::symlink("away/aop.yaml", &file).unwrap();
        let refusal = Config::load(&file).unwrap_err();
        assert!(refusal.message.contains("a link to something that is not there"), "{}", refusal.message);
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, b"store: sqlite\n# caf\xe9\n").unwrap();
        let refusal = Config::load(&file).unwrap_err();
        assert!(
            refusal.message.ends_with("aop.yaml:2: a byte that is not UTF-8 text"),
            "{}",
            refusal.message
        );
        assert!(refusal.hint.contains("as UTF-8"), "{}", refusal.hint);
        assert_eq!(parse("checks: { fast: [true] }").unwrap().checks.fast, ["true"]);
    }

    #[test]
    fn at_least_one_question_may_be_open() {
        let refusal = parse("policy: { execution: { human_input: { max_open_questions_per_feature: 0 } } }")
            .unwrap_err();
        assert!(refusal.message.contains("enabled: false"), "{}", refusal.message);
    }
}
