//! Dependencies: arrows point inward only, the pure crates stay pure, heavy crates stay where they belong.

use crate::process;
use anyhow::Result;
use serde_json::Value;

/// Which of our crates each of our crates may use.
const ARROWS: &[(&str, &[&str])] = &[
    ("aop-ask", &[]),
    ("aop-schema", &[]),
    ("aop-turn", &["aop-ask"]),
    ("aop-kernel", &["aop-ask"]),
    ("aop-store", &["aop-kernel", "aop-ask"]),
    ("aop-engine", &["aop-turn", "aop-ask"]),
    ("aop-supervisor", &["aop-engine", "aop-turn", "aop-store", "aop-kernel", "aop-ask"]),
    ("aop-server", &["aop-ask", "aop-kernel", "aop-store"]),
    ("aop-testkit", &[]),
    ("aop", PROGRAM),
    ("aop", &["aop-testkit"]),
    ("aop-fuzz", PROGRAM),
    ("xtask", &["aop-testkit"]),
];

/// What the program is made of, and what is fuzzed of it.
const PROGRAM: &[&str] = &[
    "aop-ask",
    "aop-turn",
    "aop-kernel",
    "aop-schema",
    "aop-store",
    "aop-engine",
    "aop-supervisor",
    "aop-server",
];

/// All that a pure crate may use: no async, no database, no process, no clock, no randomness.
const PURE: &[&str] = &["aop-ask", "aop-turn", "aop-kernel"];
const PURE_MAY_USE: &[&str] = &["aop-ask", "jiff", "memchr", "serde", "serde_json", "sha2", "thiserror"];

/// Crates that only one of ours may name.
const FENCED: &[(&str, &[&str])] = &[
    ("rusqlite", &["aop-store"]),
    ("tokio-postgres", &["aop-store"]),
    ("jsonschema", &["aop-schema"]),
    ("rmcp", &["aop-server"]),
    ("axum", &["aop-server", "aop-testkit"]),
    ("crossterm", &["aop"]),
    ("clap", &["aop", "xtask"]),
    ("anyhow", &["xtask"]),
];

/// Findings in words.
pub(super) fn check() -> Result<Vec<String>> {
    let output = process::cargo_output(&["metadata", "--format-version", "1", "--no-deps", "--offline"])?;
    let metadata: Value = serde_json::from_slice(&output)?;
    let packages = metadata["packages"].as_array().cloned().unwrap_or_default();
    Ok(packages.iter().flat_map(check_package).collect())
}

fn check_package(package: &Value) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    let arrows: Vec<_> = ARROWS.iter().filter(|(from, _)| *from == name).flat_map(|(_, to)| *to).collect();
    if !ARROWS.iter().any(|(from, _)| *from == name) {
        return vec![format!("{name} has no entry in the table of arrows (xtask/src/tidy/deps.rs)")];
    }
    let mut findings = Vec::new();
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        let used = dependency["name"].as_str().unwrap_or_default();
        let for_tests = dependency["kind"] == "dev";
        if used.starts_with("aop") && !arrows.contains(&&used) && !for_tests {
            findings.push(format!("{name} may not use {used}: arrows point inward only"));
        }
        if PURE.contains(&name) && !PURE_MAY_USE.contains(&used) && !for_tests {
            findings.push(format!("{name} is pure and may not use {used}"));
        }
        let fence = FENCED.iter().find(|(fenced, _)| *fenced == used);
        if fence.is_some_and(|(_, owners)| !owners.contains(&name)) && !for_tests {
            findings.push(format!("{name} may not name {used}"));
        }
    }
    findings
}
