//! `cargo xtask test`: the one command that README and CI call.

use crate::{process, tidy};
use anyhow::Result;

/// Format, invariants, lints, tests; the cheap ones first.
pub(crate) fn run(quick: bool) -> Result<()> {
    process::cargo(&["fmt", "--all", "--check"])?;
    tidy::run()?;
    if !quick {
        process::cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])?;
    }
    let nextest = process::cargo_output(&["nextest", "--version"]).is_ok();
    if nextest {
        process::cargo(&["nextest", "run", "--workspace", "--no-fail-fast"])
    } else {
        println!("cargo-nextest is not installed; using cargo test (slower, same tests)");
        process::cargo(&["test", "--workspace", "--no-fail-fast"])
    }
}
