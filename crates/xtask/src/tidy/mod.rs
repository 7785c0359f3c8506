//! `cargo xtask tidy`: the invariants of ARCHITECTURE.md that a program can check.

mod deps;
mod source;

use crate::dependencies;
use anyhow::{Result, bail};

/// Checks all of them and lists every finding.
pub(crate) fn run() -> Result<()> {
    let mut findings = deps::check()?;
    findings.extend(source::check()?);
    findings.extend(dependencies::check()?);
    if findings.is_empty() {
        println!("tidy: all invariants hold");
        return Ok(());
    }
    for finding in &findings {
        eprintln!("tidy: {finding}");
    }
    bail!("{} invariants are broken", findings.len());
}
