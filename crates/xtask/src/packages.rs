//! Small programs that tests and benchmarks call, from Debian's packages: installed where they are missing and that is possible.

use anyhow::{Context, Result, ensure};
use std::process::Command;

/// Programs and the packages they come in.
const TOOLS: &[(&str, &str)] =
    &[("curl", "curl"), ("git", "git"), ("jq", "jq"), ("openssl", "openssl"), ("strace", "strace")];

/// Makes sure that they are there.
pub(crate) fn require() -> Result<()> {
    let missing: Vec<&str> =
        TOOLS.iter().filter(|(program, _)| !is_there(program)).map(|(_, package)| *package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    install(&missing).with_context(|| format!("the tests need {}", missing.join(", ")))
}

/// Installs packages with apt-get.
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    let apt = |args: &[&str]| {
        println!("+ apt-get {}", args.join(" "));
        Command::new("apt-get").args(args).env("DEBIAN_FRONTEND", "noninteractive").status()
    };
    // An old list may still do; the installation tells.
    let _ = apt(&["update"]);
    let status = apt(&[&["install", "-y", "--no-install-recommends"], packages].concat())
        .context("there is no apt-get here: install them by hand")?;
    ensure!(status.success(), "apt-get failed (is this root, with a network?): install them by hand");
    Ok(())
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
