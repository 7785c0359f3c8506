//! The page of the settings: every key of `aop.yaml` with its type, its default and what it means.

use super::GENERATED;
use crate::config::TEMPLATE;
use std::fmt::Write as _;

/// A key, what it takes, its default as YAML, and what it means.
const KEYS: &[(&str, &str, &str, &str)] = &[
    (
        "store",
        "`sqlite` or an address",
        "sqlite",
        "where questions and answers are kept; the address is `postgres://user@host/database?project=NAME` \
         ([a team on PostgreSQL](../team.md))",
    ),
    (
        "policy.execution.human_input.enabled",
        "boolean",
        "true",
        "`false`: asking is refused with `unsupported_operation`, and agents are told that nobody is there",
    ),
    (
        "policy.execution.human_input.timeout_ms",
        "integer, milliseconds",
        "900000",
        "how long a question waits; `0`: forever. A question may ask for less, down to a second, not for more",
    ),
    (
        "policy.execution.human_input.on_timeout",
        "`block_feature` or `fail_feature`",
        "block_feature",
        "what a strict timeout does to the feature",
    ),
    (
        "policy.execution.human_input.strict",
        "boolean",
        "true",
        "`false`: the question's `default_decision_policy` decides at the timeout",
    ),
    (
        "policy.execution.human_input.max_open_questions_per_feature",
        "integer, at least 1",
        "1",
        "open questions of a feature; at most one of them blocks, whatever this says",
    ),
    (
        "policy.execution.human_input.context_answer_history_limit",
        "integer",
        "3",
        "how many answers a turn is shown",
    ),
    (
        "policy.execution.human_input_timeout_ms",
        "integer, milliseconds",
        "900000",
        "an older spelling of `human_input.timeout_ms`",
    ),
    (
        "run.execution_mode",
        "`interactive` or `auto`",
        "interactive",
        "`auto`: nobody is asked, agents decide for themselves",
    ),
    ("run.max_parallel", "integer, at least 1", "4", "features worked on at once"),
    (
        "run.max_attempt",
        "integer, at least 1",
        "20",
        "turns of a role in one phase; when the last of them asks or has no result, the feature fails",
    ),
    (
        "run.repair_rounds",
        "integer",
        "2",
        "corrective messages for a result that fails its schema; times the builder gets its work back",
    ),
    (
        "run.retries",
        "integer",
        "2",
        "failed turns in a row that are tried again before the feature is blocked",
    ),
    (
        "run.retry_wait_s",
        "integer, seconds",
        "30",
        "how long the first of them waits when the engine failed; each further one four times as long, at most 15 minutes",
    ),
    (
        "run.warm_ms",
        "integer, milliseconds",
        "0",
        "how long an engine that asked is kept for a live answer before it is parked",
    ),
    (
        "run.git_timeout_s",
        "integer, seconds, at least 1",
        "600",
        "how long each git in a run may take, with its hooks and filters, before it is ended and the feature blocked",
    ),
    (
        "engines.default",
        "`claude-code`, `codex`, `gemini`, `iflow` or `scripted`",
        "claude-code",
        "the [engine](../engines.md) of every role that has none of its own",
    ),
    (
        "engines.roles",
        "map from `planner`, `builder`, `qa` to an engine",
        "{}",
        "an engine for a role of its own",
    ),
    (
        "engines.permissions",
        "`auto` or `ask`",
        "auto",
        "`ask`: the engine's own permission prompts become questions; an engine that has none (`gemini`, `iflow`, \
         `scripted`) is not run",
    ),
    (
        "runners.away_ms",
        "integer, milliseconds",
        "600000",
        "on PostgreSQL: how long a feature waits for its own [runner](../team.md#runners) before another goes on with \
         it in a new session; `0`: forever",
    ),
    (
        "checks.fast",
        "list of commands",
        "[]",
        "run after building, with `sh -c` in the feature's worktree; all must pass",
    ),
    ("checks.full", "list of commands", "[]", "the same after qa"),
    ("checks.timeout_s", "integer, seconds, at least 1", "600", "how long each of them may take"),
    ("projections", "`on` or `off`", "on", "`off`: no files below `.aop/features/`"),
    ("notify.bell", "boolean", "true", "ring when a question opens during `aop run`"),
];

pub(super) fn page() -> String {
    let mut page = format!(
        "{GENERATED}\n\n# Settings\n\nEvery key of `aop.yaml`. All are optional; [configuration](../configuration.md) \
         says how the file is read, and which environment variables there are.\n\n\
         | key | takes | default | meaning |\n|---|---|---|---|\n"
    );
    for (key, takes, default, meaning) in KEYS {
        // Writing to a String cannot fail.
        let _ = writeln!(page, "| `{key}` | {takes} | `{default}` | {meaning} |");
    }
    let _ = write!(page, "\nThe file that `aop init` writes:\n\n```yaml\n{}\n```\n", TEMPLATE.trim_end());
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// A file that sets one key.
    fn file(key: &str, value: &str) -> String {
        let names: Vec<&str> = key.split('.').collect();
        let lines = names.iter().enumerate().map(|(depth, name)| format!("{}{name}:", "  ".repeat(depth)));
        format!("{} {value}\n", lines.collect::<Vec<_>>().join("\n"))
    }

    fn read(key: &str, value: &str) -> Result<Config, String> {
        Config::parse(Path::new("aop.yaml"), &file(key, value)).map_err(|refusal| refusal.message)
    }

    #[test]
    fn every_key_is_taken_and_its_default_is_the_one_that_is_named() {
        for (key, _, default, _) in KEYS {
            let nonsense = read(key, "{ no: [thing] }").unwrap_err();
            assert!(!nonsense.contains("unknown field `no`"), "{key} is a group and no key");
            let config = read(key, default).unwrap();
            if !key.ends_with("human_input_timeout_ms") {
                assert_eq!(config, Config::default(), "{key}: {default} is not the default");
            }
        }
    }

    /// What the file takes is what the reader of the file names when it is given something else.
    #[test]
    fn no_key_is_left_out() {
        let keys: BTreeSet<&str> = KEYS.iter().map(|(key, ..)| *key).collect();
        let mut groups = vec![String::new()];
        let mut found = 0;
        while let Some(group) = groups.pop() {
            let below =
                |name: &str| if group.is_empty() { name.to_owned() } else { format!("{group}.{name}") };
            let said = read(&below("nothing"), "1").unwrap_err();
            let (_, expected) = said.split_once("expected one of ").unwrap();
            let (names, _) = expected.split_once(" in ").unwrap();
            for name in names.split(", ") {
                let key = below(name);
                if keys.contains(key.as_str()) {
                    found += 1;
                } else {
                    assert!(key.split('.').count() < 5, "{key} is neither a key of the table nor a group");
                    groups.push(key);
                }
            }
        }
        assert_eq!(found, KEYS.len());
    }
}
