//! `cargo xtask dist`: what a package holds: the optimised binary that knows its commit, man pages, completions.

use crate::process;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The shells that completions are made for.
const SHELLS: &[(&str, &str)] = &[("bash", "aop.bash"), ("zsh", "_aop"), ("fish", "aop.fish")];

/// Builds into `target/package/`.
pub(crate) fn run() -> Result<()> {
    let version = version()?;
    process::with_variables(&[("AOP_VERSION", &version)], &["build", "--profile", "dist", "-p", "aop"])?;
    let package = process::target().join("package");
    let binary = package.join("aop");
    fs::create_dir_all(package.join("man"))?;
    fs::copy(process::target().join("dist/aop"), &binary).context("target/dist/aop")?;
    aop(&binary, &["manual", "man", "--output", &package.join("man").display().to_string()])?;
    for (shell, name) in SHELLS {
        fs::write(package.join(name), aop(&binary, &["completions", shell])?)?;
    }
    let size = fs::metadata(&binary)?.len();
    println!("dist: aop {version}, {} KiB, in {}", size / 1024, package.display());
    Ok(())
}

/// The version of the crate and the commit, for instance `0.1.0 (1a2b3c4d5e 2026-11-15)`.
fn version() -> Result<String> {
    let git = Command::new("git")
        .args(["log", "-1", "--format=%h %cs"])
        .current_dir(process::root())
        .output()
        .context("git does not start")?;
    let commit = String::from_utf8_lossy(&git.stdout).trim().to_owned();
    let number = env!("CARGO_PKG_VERSION");
    Ok(if commit.is_empty() { number.to_owned() } else { format!("{number} ({commit})") })
}

fn aop(binary: &Path, args: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new(binary).args(args).env_clear().output()?;
    ensure!(output.status.success(), "aop {} failed", args.join(" "));
    Ok(output.stdout)
}
