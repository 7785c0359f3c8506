//! The Python programs that tests use as clients: the official MCP SDK and schemathesis, from PyPI at pinned versions,
//! each in an environment of its own, in the cache outside the clone.

use crate::packages;
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is installed.
const PINS: [(&str, &str); 2] = [("mcp", "2.3.0"), ("schemathesis", "4.32.5")];

/// The variable in which the tests look for the folder.
pub(crate) const VARIABLE: &str = "AOP_TEST_PYTHON";

/// Makes sure that all of them are there; the folder they are in.
pub(crate) fn provide(cache: &Path, offline: bool) -> Result<PathBuf> {
    let folder = cache.join("python");
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    for (package, version) in PINS {
        let place = folder.join(format!("{package}-{version}"));
        if !place.join("installed").is_file() {
            if offline {
                bail!(
                    "nothing was tested: {package} {version} is not in {} and --offline forbids to fetch it",
                    folder.display()
                );
            }
            packages::require(&[packages::CLIENTS])?;
            install(package, version, &place)?;
        }
        link(&place, &folder.join(package))?;
    }
    Ok(folder)
}

/// An environment remembers where it was made, so it is made in its place; the mark is set when it is whole.
fn install(package: &str, version: &str, place: &Path) -> Result<()> {
    eprintln!("+ pip install {package}=={version}");
    let _ = std::fs::remove_dir_all(place);
    run(Command::new("python3").args(["-m", "venv"]).arg(place))
        .context("python3 cannot make environments")?;
    let pin = format!("{package}=={version}");
    let pip = place.join("bin/pip");
    run(Command::new(pip).args(["install", "--quiet", "--disable-pip-version-check", &pin]))?;
    std::fs::write(place.join("installed"), "")?;
    Ok(())
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{command:?} does not start"))?;
    ensure!(status.success(), "{command:?} failed");
    Ok(())
}

/// Points a plain name at the pinned version.
fn link(to: &Path, from: &Path) -> Result<()> {
    if std::fs::read_link(from).is_ok_and(|known| known == to) {
        return Ok(());
    }
    let fresh = from.with_extension(format!("{}.new", std::process::id()));
    let _ = std::fs::remove_file(&fresh);
    std::os::unix::fs::symlink(to, &fresh)?;
    std::fs::rename(&fresh, from).with_context(|| from.display().to_string())
}
