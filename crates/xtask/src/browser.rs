//! `cargo xtask test-browser`: the dashboard in a real browser, Debian's chromium through chromedriver.
//!
//! Where they are missing and it may, it installs them with apt-get; else it fails and says so. Tests in a browser
//! stand in modules called `browser_…`; they are never skipped. Pictures of every page stay in `target/screenshots`.

use crate::process;
use anyhow::{Context, Result, bail, ensure};
use std::process::Command;

/// The tests in a browser, as nextest says it.
pub(crate) const BROWSER: &str = "test(/(^|::)browser_/)";

/// The programs, and the packages that hold them. A bare machine has no letters to draw with either.
const PROGRAMS: [&str; 2] = ["chromium", "chromedriver"];
const PACKAGES: [&str; 3] = ["chromium", "chromium-driver", "fonts-dejavu-core"];

/// What to run.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct BrowserTests {
    /// Only tests whose name contains this
    filter: Option<String>,
}

/// Installs what is missing and runs the tests.
pub(crate) fn run(tests: &BrowserTests) -> Result<()> {
    provide()?;
    if process::has_nextest() {
        let narrow = tests.filter.iter().map(|filter| format!(" & test({filter})"));
        let expression = BROWSER.to_owned() + &narrow.collect::<String>();
        return process::cargo(&["nextest", "run", "-p", "aop", "--no-fail-fast", "-E", &expression]);
    }
    let narrow = tests.filter.as_deref().unwrap_or("browser_");
    process::cargo(&["test", "-p", "aop", "--no-fail-fast", "--", narrow])
}

fn provide() -> Result<()> {
    let missing: Vec<&str> = PROGRAMS.into_iter().filter(|program| !is_there(program)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let wanted = missing.join(" and ");
    let by_hand = format!("install them: `apt-get install {}`", PACKAGES.join(" "));
    if !is_there("apt-get") {
        bail!("nothing was tested in a browser: {wanted} not found, and there is no apt-get; {by_hand}");
    }
    for args in [&["update"][..], &[&["install", "-y", "--no-install-recommends"], &PACKAGES[..]].concat()] {
        eprintln!("+ apt-get {}", args.join(" "));
        let mut apt = Command::new("apt-get");
        let status = apt.args(args).env("DEBIAN_FRONTEND", "noninteractive").status();
        let status = status.context("apt-get does not start")?;
        ensure!(
            status.success() || args == ["update"],
            "nothing was tested in a browser: {wanted} not found, and apt-get failed (is this root, with a network?); {by_hand}"
        );
    }
    Ok(())
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
