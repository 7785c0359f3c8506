//! `cargo xtask test`: the one command that README and CI call.

use crate::browser::{self, BrowserTests};
use crate::engines::{self, EngineTests};
use crate::{bench, chaos, packages, process, tidy};
use anyhow::Result;

/// Tests that the inner loop leaves out, by a part of their names: each starts many processes or many cases.
const SLOW: &[&str] = &["run_chaos", "run_scale", "run_crash"];

/// Format, invariants, lints, tests; the cheap ones first, the browser and the real agent programs last. What is missing
/// on this machine is installed or told before anything else: nobody waits half an hour for that.
pub(crate) fn run(quick: bool) -> Result<()> {
    use packages::{BENCH, BROWSER, CLIENTS, ENGINES, POSTGRES, TESTS};
    packages::require(if quick { &[TESTS] } else { &[TESTS, POSTGRES, BENCH, BROWSER, ENGINES, CLIENTS] })?;
    process::cargo(&["fmt", "--all", "--check"])?;
    tidy::run()?;
    if quick {
        let slow: String = SLOW.iter().map(|name| format!(" and not test({name})")).collect();
        let skipped = ["real_", "browser_", "postgres"].iter().chain(SLOW).flat_map(|name| ["--skip", name]);
        tests(
            &format!("not {} and not {} and not test(postgres){slow}", engines::REAL, browser::BROWSER),
            &skipped.collect::<Vec<_>>(),
            Pace::Brisk,
        )?;
        println!(
            "left out: the lints, the campaign of faults, the real agent programs, the browser, PostgreSQL, and"
        );
        println!("tests that take long; `cargo xtask test` runs all of them");
        return Ok(());
    }
    process::cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])?;
    tests(
        &format!("not {} and not {}", engines::REAL, browser::BROWSER),
        &["--skip", "real_", "--skip", "browser_"],
        Pace::Steady,
    )?;
    chaos::proven("sqlite", 0.33)?;
    bench::short()?;
    browser::run(&BrowserTests::default())?;
    engines::run(&EngineTests::default())
}

/// How many tests run at once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// As many as there are cores: some of them start a dozen processes.
    Steady,
    /// Twice as many: most of the quick ones wait for processes and clocks more than they compute.
    Brisk,
}

/// Runs tests by an expression of nextest's; without nextest, all but the skipped ones.
fn tests(expression: &str, skipped: &[&str], pace: Pace) -> Result<()> {
    if process::has_nextest() {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = if pace == Pace::Brisk { 2 * threads } else { threads }.to_string();
        let args = ["--workspace", "--no-fail-fast", "--test-threads", &threads, "-E", expression];
        return process::cargo(&[&["nextest", "run"], &args[..]].concat());
    }
    println!("cargo-nextest is not installed; using cargo test (slower, same tests)");
    process::cargo(&[&["test", "--workspace", "--no-fail-fast", "--"], skipped].concat())
}

/// All of `cargo deny`, which takes minutes to build; the same properties with many more cases, in optimised code; then
/// the long chaos run of the binary, which needs the debug build like all of its tests: the crash points are only there.
pub(crate) fn nightly() -> Result<()> {
    packages::require(&[packages::TESTS, packages::POSTGRES])?;
    if process::cargo_output(&["deny", "--version"]).is_err() {
        process::cargo(&["install", "--locked", "cargo-deny"])?;
    }
    process::cargo(&["deny", "check"])?;
    let packages = ["-p", "aop-ask", "-p", "aop-turn", "-p", "aop-kernel", "-p", "aop-store"];
    let args = [&["test", "--release", "--no-fail-fast"][..], &packages].concat();
    process::with_variables(&[("PROPTEST_CASES", "10000")], &args)?;
    let chaos = ["test", "-p", "aop", "--test", "it", "run_chaos", "--", "--nocapture"];
    process::with_variables(&[("AOP_CHAOS", "full")], &chaos)?;
    // Two minutes of processes that are killed at random on PostgreSQL. In debug, as the crash points above.
    let killing = ["test", "-p", "aop", "--test", "it", "postgres::killed", "--", "--nocapture"];
    process::with_variables(&[("AOP_KILL_SECONDS", "60")], &killing)?;
    chaos::proven("postgres", 2.0)
}
