//! `cargo xtask docs`: renews the reference from the program. A test fails when it is behind.

use crate::process;
use anyhow::{Context, Result, ensure};
use std::process::Command;

/// The pages that `aop manual` prints.
const PAGES: &[&str] = &["cli", "errors", "http", "schemas", "settings", "tools"];

/// Writes every page below docs/reference/.
pub(crate) fn run() -> Result<()> {
    process::cargo(&["build", "--quiet", "-p", "aop"])?;
    let folder = process::root().join("docs/reference");
    std::fs::create_dir_all(&folder)?;
    for page in PAGES {
        let output =
            Command::new(process::target().join("debug/aop")).args(["manual", page]).env_clear().output()?;
        ensure!(output.status.success(), "aop manual {page} failed");
        let path = folder.join(format!("{page}.md"));
        std::fs::write(&path, output.stdout).with_context(|| path.display().to_string())?;
        println!("docs: {}", path.display());
    }
    Ok(())
}
