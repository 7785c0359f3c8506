//! PostgreSQL for the tests: they start their own throw-away servers, and this knows whether the programs for that are
//! there, or a server is named that is used instead.

use std::path::Path;

/// Whether the tests on PostgreSQL can run.
pub(crate) fn is_there() -> bool {
    if std::env::var_os("AOP_TEST_POSTGRES").is_some() {
        return true;
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let below = versions.map(|entry| entry.path().join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has = |dir: &Path| ["initdb", "pg_ctl", "pg_basebackup"].iter().all(|name| dir.join(name).exists());
    below.chain(std::env::split_paths(&path)).any(|dir| has(&dir))
}
