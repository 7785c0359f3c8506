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
    let runner: &[&str] = if nextest { &["nextest", "run"] } else { &["test"] };
    if !nextest {
        println!("cargo-nextest is not installed; using cargo test (slower, same tests)");
    }
    process::cargo(&[runner, &["--workspace", "--no-fail-fast"]].concat())
}

/// The same properties with many more cases, in optimised code. Not the binary's own tests: the crash points
/// they need are only in builds with debug assertions.
pub(crate) fn nightly() -> Result<()> {
    let packages = ["-p", "aop-ask", "-p", "aop-turn", "-p", "aop-kernel", "-p", "aop-store"];
    let args = [&["test", "--release", "--no-fail-fast"][..], &packages].concat();
    process::with_variable("PROPTEST_CASES", "10000", &args)
}
