//! `cargo xtask test-browser`: the dashboard in a real browser, Debian's chromium through chromedriver.
//!
//! Where they are missing and it may, it installs them with apt-get; else it fails and says so. Tests in a browser
//! stand in modules called `browser_…`; they are never skipped. Pictures of every page stay in `target/screenshots`.

use crate::{packages, process};
use anyhow::Result;

/// The tests in a browser, as nextest says it.
pub(crate) const BROWSER: &str = "test(/(^|::)browser_/)";

/// What to run.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct BrowserTests {
    /// Only tests whose name contains this
    filter: Option<String>,
}

/// Installs what is missing and runs the tests.
pub(crate) fn run(tests: &BrowserTests) -> Result<()> {
    packages::require(&[packages::BROWSER])?;
    if process::has_nextest() {
        let narrow = tests.filter.iter().map(|filter| format!(" & test({filter})"));
        let expression = BROWSER.to_owned() + &narrow.collect::<String>();
        return process::cargo(&["nextest", "run", "-p", "aop", "--no-fail-fast", "-E", &expression]);
    }
    let narrow = tests.filter.as_deref().unwrap_or("browser_");
    process::cargo(&["test", "-p", "aop", "--no-fail-fast", "--", narrow])
}
