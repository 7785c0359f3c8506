//! PostgreSQL for the tests: they start their own throw-away servers, and this sees to it that the programs for
//! that are there. Never skipped silently: whoever cannot have them is told.

use crate::packages;
use anyhow::{Context, Result, ensure};
use std::path::Path;

/// Installs Debian's package when it is missing and that is possible; an error otherwise.
pub(crate) fn require() -> Result<()> {
    if installed() || std::env::var_os("AOP_TEST_POSTGRES").is_some() {
        return Ok(());
    }
    const HELP: &str = "the tests need PostgreSQL's server programs (initdb, pg_ctl): install Debian's `postgresql`, \
        or name a server in AOP_TEST_POSTGRES, or use `cargo xtask test --quick`, which leaves those tests out";
    println!("PostgreSQL is not installed; trying apt-get install -y postgresql");
    packages::install(&["postgresql"]).context(HELP)?;
    ensure!(installed(), HELP);
    Ok(())
}

fn installed() -> bool {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let below = versions.map(|entry| entry.path().join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has = |dir: &Path| ["initdb", "pg_ctl", "pg_basebackup"].iter().all(|name| dir.join(name).exists());
    below.chain(std::env::split_paths(&path)).any(|dir| has(&dir))
}
