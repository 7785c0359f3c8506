//! `cargo xtask test`: the one command that README and CI call.

use crate::{run, tidy};
use anyhow::Result;

/// Format, invariants, lints, tests; the cheap ones first.
pub(crate) fn run(quick: bool) -> Result<()> {
    run::cargo(&["fmt", "--all", "--check"])?;
    tidy::run()?;
    if !quick {
        run::cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])?;
    }
    let nextest = run::cargo_output(&["nextest", "--version"]).is_ok();
    if nextest {
        run::cargo(&["nextest", "run", "--workspace", "--no-fail-fast"])
    } else {
        println!("cargo-nextest is not installed; using cargo test (slower, same tests)");
        run::cargo(&["test", "--workspace", "--no-fail-fast"])
    }
}
