//! `cargo xtask bench serve-driver`: the normal server on a project of its own, for a load driver from outside. Nothing
//! of it is special; `docs/howto/load.md` shows the three requests.

use crate::dist;
use anyhow::{Context, Result, ensure};
use std::process::{Command, Stdio};

/// Serves until it is interrupted. What else is given goes to `aop serve`; `AOP_STORE` chooses PostgreSQL.
pub(super) fn run(rest: &[String]) -> Result<()> {
    let aop = dist::binary()?;
    let folder = std::env::temp_dir().join(format!("aop-driver-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let init = Command::new(&aop).arg("init").current_dir(&folder).stdout(Stdio::null()).status()?;
    ensure!(init.success(), "aop init failed in {}", folder.display());
    eprintln!(
        "a project of its own in {}; docs/howto/load.md shows what to send; Ctrl-C ends it",
        folder.display()
    );
    let mut serve = Command::new(&aop);
    serve.args(["serve", "--json"]).args(rest).current_dir(&folder);
    let status = serve.status().context("aop serve does not start")?;
    let _ = std::fs::remove_dir_all(&folder);
    // 130: somebody pressed Ctrl-C, as told above.
    ensure!(status.success() || status.code() == Some(130), "aop serve ended with {status}");
    Ok(())
}
