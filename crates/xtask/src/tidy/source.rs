//! The source itself: module docs, no stray exemptions, files of one thing, purity in words.

use crate::process;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// At about this length a file has become two.
const LONGEST: usize = 600;

/// What a pure crate never says outside its tests.
const IMPURE: &[&str] = &[
    "std::fs",
    "std::net",
    "std::process",
    "std::env",
    "std::thread",
    "SystemTime",
    "Instant::now",
    "async fn",
];

/// Findings in words.
pub(super) fn check() -> Result<Vec<String>> {
    let root = process::root();
    let mut findings = Vec::new();
    for path in rust_files(&root.join("crates"))? {
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let name = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
        findings.extend(check_file(&name, &text));
    }
    findings.extend(check_gate(&root)?);
    Ok(findings)
}

fn check_file(name: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let is_source = name.contains("/src/");
    if is_source && !text.trim_start().starts_with("//!") {
        findings.push(format!("{name}: has no module documentation (//!)"));
    }
    let length = text.lines().count();
    if is_source && length > LONGEST {
        findings.push(format!("{name}: {length} lines; which second thing moved in?"));
    }
    let exemption = ["#[", "#!["].map(|start| format!("{start}allow("));
    for (number, line) in text.lines().enumerate() {
        if exemption.iter().any(|stray| line.trim_start().starts_with(stray.as_str())) {
            findings.push(format!("{name}:{}: use #[expect(…, reason = …)] instead of allow", number + 1));
        }
    }
    let pure = ["aop-ask", "aop-turn", "aop-kernel"]
        .iter()
        .any(|pure| name.starts_with(&format!("crates/{pure}/src/")));
    if pure {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let said = IMPURE.iter().filter(|word| code.contains(**word));
        findings.extend(said.map(|word| format!("{name}: a pure crate does not say {word}")));
    }
    let moves_status = name.starts_with("crates/aop-kernel/src/") && text.contains(".status = ");
    if moves_status && !name.ends_with("/event.rs") {
        findings.push(format!("{name}: a status changes only in event.rs, through the one table"));
    }
    findings
}

/// CI calls the very command that the README gives.
fn check_gate(root: &Path) -> Result<Vec<String>> {
    let gate = fs::read_to_string(root.join(".ci/run")).context(".ci/run")?;
    let readme = fs::read_to_string(root.join("README.md")).context("README.md")?;
    let command = gate.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    if readme.contains(command) {
        return Ok(Vec::new());
    }
    Ok(vec![format!("README.md does not name the command that .ci/run calls: {command}")])
}

fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::check_file;

    #[test]
    fn a_file_without_module_docs_is_found() {
        assert_eq!(check_file("crates/aop/src/x.rs", "fn main() {}").len(), 1);
        assert!(check_file("crates/aop/src/x.rs", "//! Docs.\nfn main() {}").is_empty());
    }

    #[test]
    fn a_stray_allow_is_found_with_its_line() {
        let found = check_file("crates/aop/src/x.rs", &format!("//! Docs.\n#[{}(dead_code)]\n", "allow"));
        assert_eq!(found, ["crates/aop/src/x.rs:2: use #[expect(…, reason = …)] instead of allow"]);
    }

    #[test]
    fn a_pure_crate_that_reads_a_file_is_found_but_its_tests_may() {
        assert_eq!(check_file("crates/aop-ask/src/x.rs", "//! Docs.\nuse std::fs;\n").len(), 1);
        assert!(check_file("crates/aop-ask/src/x.rs", "//! Docs.\n#[cfg(test)]\nuse std::fs;\n").is_empty());
    }

    #[test]
    fn a_status_that_moves_outside_the_table_is_found() {
        assert_eq!(check_file("crates/aop-kernel/src/x.rs", "//! Docs.\nfeature.status = to;\n").len(), 1);
    }
}
