//! The programs of engines: found on the search path, asked for their version, told how to get them.

use crate::codex;
use crate::port::EngineError;
use crate::process::Surroundings;
use aop_turn::Engine;
use aop_turn::command::Version;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::process::Command;

/// A program that does not tell its version within this time is not waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is known of an engine's program without running it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Its name on the search path.
    pub program: &'static str,
    /// How to get it.
    pub install: &'static str,
    /// The oldest version that the driver was tried with.
    pub oldest: Option<Version>,
    /// The version that the tests run.
    pub tested: Option<Version>,
}

/// A program that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Where.
    pub path: PathBuf,
    /// Which version, as it prints it.
    pub version: String,
}

/// What is known of an engine's program; nothing of the scripted engine, which is this program.
pub fn known(engine: Engine) -> Option<Known> {
    let known = |program, install, oldest, tested| Some(Known { program, install, oldest, tested });
    match engine {
        Engine::ClaudeCode => known(
            "claude",
            "npm install -g @anthropic-ai/claude-code",
            Some(Version(2, 1, 197)),
            Some(Version(2, 1, 325)),
        ),
        Engine::Codex => {
            known("codex", "npm install -g @openai/codex", Some(codex::OLDEST), Some(codex::TESTED))
        }
        Engine::Gemini => known(
            "gemini",
            "npm install -g @google/gemini-cli",
            Some(Version(0, 61, 0)),
            Some(Version(0, 61, 0)),
        ),
        Engine::Iflow => known("iflow", "npm install -g @iflow-ai/iflow-cli (discontinued)", None, None),
        Engine::Scripted => None,
    }
}

/// Finds an engine's program and its version, or says what to do about it.
pub(crate) async fn find(engine: Engine, around: &Surroundings) -> Result<Installed, EngineError> {
    let Some(known) = known(engine) else {
        return Ok(Installed { path: around.aop.clone(), version: env!("CARGO_PKG_VERSION").to_owned() });
    };
    let path = around.find(known.program).ok_or_else(|| {
        missing(engine, known.program, format!("install it with `{}`", known.install), around)
    })?;
    let unusable = |cause: String| EngineError::Unusable {
        engine,
        cause,
        hint: format!("install it again with `{}`", known.install),
    };
    let printed = version(&path, around).await.map_err(unusable)?;
    match (Version::parse(&printed), known.oldest) {
        (None, _) => Err(unusable(format!("`{} --version` prints no version: {printed:?}", path.display()))),
        (Some(found), Some(oldest)) if found < oldest => Err(unusable(format!(
            "{} is version {printed}; {}.{}.{} is the oldest that can be driven",
            path.display(),
            oldest.0,
            oldest.1,
            oldest.2
        ))),
        (Some(_), _) => Ok(Installed { path, version: printed }),
    }
}

/// An engine whose program is not there, with those whose programs are.
pub(crate) fn missing(engine: Engine, program: &str, hint: String, around: &Surroundings) -> EngineError {
    let is_there = |other: &Engine| known(*other).is_some_and(|known| around.find(known.program).is_some());
    let others = Engine::ALL.iter().copied().filter(is_there).collect();
    EngineError::NotInstalled { engine, program: program.to_owned(), hint, others }
}

/// What is remembered of a program: it tells the same until its file changes.
type Remembered = HashMap<(PathBuf, SystemTime), String>;

/// What a program prints when it is asked for its version.
pub async fn version(path: &Path, around: &Surroundings) -> Result<String, String> {
    static REMEMBERED: OnceLock<Mutex<Remembered>> = OnceLock::new();
    let remembered = || REMEMBERED.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    let changed = std::fs::metadata(path).and_then(|file| file.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let key = (path.to_path_buf(), changed);
    if let Some(version) = remembered().get(&key) {
        return Ok(version.clone());
    }
    if let Some(version) = crate::gemini::packaged_version(path) {
        return Ok(version);
    }
    let mut command = Command::new(path);
    command.arg("--version").env_clear().envs(around.inherited()).stdin(std::process::Stdio::null());
    command.kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output()).await;
    let output = output.map_err(|_| format!("`{} --version` does not end", path.display()))?;
    let output = output.map_err(|error| format!("{} does not start: {error}", path.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned();
    if !output.status.success() {
        return Err(format!("`{} --version` fails ({})", path.display(), output.status));
    }
    remembered().insert(key, line.clone());
    Ok(line)
}
