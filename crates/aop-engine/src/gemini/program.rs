//! The program: where it is and which version. Asking it costs seconds (it loads all of itself first), so the package
//! that it belongs to is read instead.

use crate::port::EngineError;
use crate::process::Surroundings;
use aop_turn::Engine;
use aop_turn::command::Version;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

const PROGRAM: &str = "gemini";
const PACKAGE: &str = "@google/gemini-cli";
const INSTALL: &str = "npm install -g @google/gemini-cli";
/// The version that the tests run. In older ones the flags or the hooks that we need are missing or different.
const OLDEST: Version = Version(0, 61, 0);
/// A program that does not tell its version within this time is not waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// The program and its version, or what to do about it.
pub(super) async fn find(around: &Surroundings) -> Result<(PathBuf, String), EngineError> {
    let engine = Engine::Gemini;
    let path = around.find(PROGRAM).ok_or_else(|| EngineError::NotInstalled {
        engine,
        program: PROGRAM.to_owned(),
        hint: format!("install it with `{INSTALL}`"),
    })?;
    let unusable =
        |cause| EngineError::Unusable { engine, cause, hint: format!("install it anew with `{INSTALL}`") };
    let printed = match packaged(&path) {
        Some(version) => version,
        None => asked(&path, around).await.map_err(unusable)?,
    };
    match Version::parse(&printed) {
        Some(version) if version >= OLDEST => Ok((path, printed)),
        Some(_) => Err(unusable(format!(
            "{} is version {printed}; {}.{}.{} is the oldest that can be driven",
            path.display(),
            OLDEST.0,
            OLDEST.1,
            OLDEST.2
        ))),
        None => Err(unusable(format!("`{} --version` prints no version: {printed:?}", path.display()))),
    }
}

/// What the npm package says that the program belongs to.
fn packaged(path: &Path) -> Option<String> {
    let real = std::fs::canonicalize(path).ok()?;
    let package = real.ancestors().skip(1).take(3).find_map(|folder| {
        let text = std::fs::read_to_string(folder.join("package.json")).ok()?;
        serde_json::from_str::<Value>(&text).ok().filter(|package| package["name"] == PACKAGE)
    })?;
    Some(package["version"].as_str()?.to_owned())
}

/// What the program says itself.
async fn asked(path: &Path, around: &Surroundings) -> Result<String, String> {
    let mut command = tokio::process::Command::new(path);
    command.arg("--version").env_clear().envs(around.inherited()).stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output()).await;
    let output = output.map_err(|_| format!("`{} --version` does not end", path.display()))?;
    let output = output.map_err(|error| format!("{} does not start: {error}", path.display()))?;
    if !output.status.success() {
        return Err(format!("`{} --version` fails ({})", path.display(), output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned())
}
