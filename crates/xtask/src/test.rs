//! `cargo xtask test`: the one command that README and CI call.

use crate::browser::{self, BrowserTests};
use crate::engines::{self, EngineTests};
use crate::{bench, chaos, packages, postgres, process, tidy};
use anyhow::Result;

/// Format, invariants, lints, tests; the cheap ones first, the browser and the real agent programs last.
pub(crate) fn run(quick: bool) -> Result<()> {
    process::cargo(&["fmt", "--all", "--check"])?;
    tidy::run()?;
    if !quick {
        process::cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])?;
    }
    let mut apart = format!("not {} and not {}", engines::REAL, browser::BROWSER);
    let mut skipped = vec!["--skip", "real_", "--skip", "browser_"];
    if quick {
        apart.push_str(" and not test(/postgres/)");
        skipped.extend(["--skip", "postgres"]);
        println!("the tests on PostgreSQL are left out");
    } else {
        packages::require()?;
        postgres::require()?;
    }
    if process::has_nextest() {
        process::cargo(&["nextest", "run", "--workspace", "--no-fail-fast", "-E", &apart])?;
    } else {
        println!("cargo-nextest is not installed; using cargo test (slower, same tests)");
        process::cargo(&[&["test", "--workspace", "--no-fail-fast", "--"], skipped.as_slice()].concat())?;
    }
    if !quick {
        chaos::short()?;
        bench::short()?;
    }
    if quick {
        println!(
            "the tests of real agent programs and in a browser were left out; `cargo xtask test-engines` and"
        );
        println!("`cargo xtask test-browser` run them");
        return Ok(());
    }
    browser::run(&BrowserTests::default())?;
    engines::run(&EngineTests::default())
}

/// The same properties with many more cases, in optimised code; then the long chaos run of the binary, which needs the
/// debug build like all of its tests: the crash points are only there.
pub(crate) fn nightly() -> Result<()> {
    postgres::require()?;
    let packages = ["-p", "aop-ask", "-p", "aop-turn", "-p", "aop-kernel", "-p", "aop-store"];
    let args = [&["test", "--release", "--no-fail-fast"][..], &packages].concat();
    process::with_variables(&[("PROPTEST_CASES", "10000")], &args)?;
    let chaos = ["test", "-p", "aop", "--test", "it", "run_chaos", "--", "--nocapture"];
    process::with_variables(&[("AOP_CHAOS", "full")], &chaos)?;
    // A minute of processes that are killed at random on PostgreSQL. In debug, as the crash points above.
    let killing = ["test", "-p", "aop", "--test", "it", "postgres::team::processes_that_are_killed"];
    process::with_variables(&[("AOP_KILL_SECONDS", "60")], &killing)
}
