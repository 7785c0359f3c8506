//! Starting other programs from the root of the repository.

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Cargo in the root, as if it were called there by hand. What the cargo that started us says about this package would
/// have some build scripts run again, and half of the program built again, at each change between the two.
pub(crate) fn plain_cargo() -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(root());
    for (name, _) in std::env::vars_os() {
        if ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|own| name.to_string_lossy().starts_with(own)) {
            command.env_remove(name);
        }
    }
    command
}

/// Runs cargo and fails when it does.
pub(crate) fn cargo(args: &[&str]) -> Result<()> {
    run(plain_cargo(), args)
}

/// The same with variables set.
pub(crate) fn with_variables(variables: &[(&str, &str)], args: &[&str]) -> Result<()> {
    let mut command = plain_cargo();
    command.envs(variables.iter().copied());
    run(command, args)
}

fn run(mut command: Command, args: &[&str]) -> Result<()> {
    eprintln!("+ cargo {}", args.join(" "));
    let status = command.args(args).status().context("cargo does not start")?;
    ensure!(status.success(), "cargo {} failed", args.first().unwrap_or(&""));
    Ok(())
}

/// Whether the better test runner is there.
pub(crate) fn has_nextest() -> bool {
    cargo_output(&["nextest", "--version"]).is_ok()
}

/// Runs cargo and gives what it printed.
pub(crate) fn cargo_output(args: &[&str]) -> Result<Vec<u8>> {
    let output = plain_cargo().args(args).output().context("cargo does not start")?;
    ensure!(
        output.status.success(),
        "cargo {} failed:\n{}",
        args.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(output.stdout)
}
