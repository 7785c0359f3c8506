//! Which Codex is installed, and what that one can do.

use super::home::HOME_VARIABLE;
use super::thread::SNAPSHOTS;
use crate::port::EngineError;
use crate::process::Surroundings;
use crate::program::missing;
use aop_turn::Engine;
use aop_turn::command::Version;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::process::Command;

/// The name on the search path.
const PROGRAM: &str = "codex";
/// The version that the tests run.
pub(crate) const TESTED: Version = Version(0, 166, 0);
/// From here on threads can be resumed with an answer: `thread/inject_items` and asking outside plan mode.
const ASKS_FROM: Version = Version(0, 149, 0);
/// From here on the interface works by way of a server of its own, and can be told not to.
const DAEMON_FROM: Version = Version(0, 156, 0);
/// Older ones write other lines than the parser knows.
pub(crate) const OLDEST: Version = Version(0, 98, 0);
/// Longer than any program needs to print its version.
const PATIENCE: Duration = Duration::from_secs(30);
/// How the file of the last look is called.
const SEEN: &str = "aop-version.json";

/// An installed Codex.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    /// Where it is.
    pub(super) path: PathBuf,
    /// Its version.
    pub(super) version: Version,
}

/// What was seen last, so that a program is asked for its version once and not in every turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    path: PathBuf,
    /// When the file was written, and when it was put there: installers may set the former as they like.
    written: (i64, i64),
    placed: (i64, i64),
    bytes: u64,
    version: String,
}

impl Program {
    /// Whether the app-server of this version can ask and take answers.
    pub(super) fn asks_natively(&self) -> bool {
        self.version >= ASKS_FROM
    }

    /// What the interface of this version is started with, before the conversation's handle. A server of its own would stay
    /// for good, with the agent's credential, and would hold the conversation for a while after the person has left it.
    pub(super) fn interface(&self) -> Vec<String> {
        let no_snapshots = format!("{SNAPSHOTS}=false");
        let no_daemon = (self.version >= DAEMON_FROM).then_some("--no-daemon");
        ["resume", "-c", &no_snapshots].into_iter().chain(no_daemon).map(str::to_owned).collect()
    }

    /// The version as text.
    pub(super) fn version_text(&self) -> String {
        text(self.version)
    }

    /// Finds the program, and its version, once for each build of it.
    pub(super) async fn find(surroundings: &Surroundings, home: &Path) -> Result<Program, EngineError> {
        let path = surroundings.find(PROGRAM).ok_or_else(|| {
            let hint = format!("install it with `npm install -g @openai/codex@{}`", text(TESTED));
            missing(Engine::Codex, PROGRAM, hint, surroundings)
        })?;
        let known = stamp(&path).and_then(|now| now.remembered(home));
        let printed = match known {
            Some(version) => version,
            None => {
                let printed = printed_version(surroundings, home, &path).await?;
                if let Some(mut seen) = stamp(&path) {
                    seen.version.clone_from(&printed);
                    seen.remember(home);
                }
                printed
            }
        };
        let version = Version::parse(&printed).ok_or_else(|| {
            unusable(&path, format!("its version reads {:?}, which is not a version", excerpt(&printed)))
        })?;
        if version < OLDEST {
            return Err(unusable(
                &path,
                format!("it is version {}, older than {}", text(version), text(OLDEST)),
            ));
        }
        Ok(Program { path, version })
    }
}

fn text(version: Version) -> String {
    let Version(major, minor, patch) = version;
    format!("{major}.{minor}.{patch}")
}

fn unusable(path: &Path, cause: String) -> EngineError {
    EngineError::Unusable {
        engine: Engine::Codex,
        cause: format!("{}: {cause}", path.display()),
        hint: format!("install a version that is tested: npm install -g @openai/codex@{}", text(TESTED)),
    }
}

async fn printed_version(
    surroundings: &Surroundings,
    home: &Path,
    path: &Path,
) -> Result<String, EngineError> {
    let mut command = Command::new(path);
    command.arg("--version").env_clear().envs(surroundings.inherited());
    command.env(HOME_VARIABLE, OsString::from(home)).stdin(std::process::Stdio::null()).kill_on_drop(true);
    let output = match tokio::time::timeout(PATIENCE, command.output()).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => return Err(unusable(path, format!("it cannot be started: {error}"))),
        Err(_) => return Err(unusable(path, "it does not print its version".to_owned())),
    };
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(unusable(path, format!("--version fails: {}", excerpt(errors.trim()))));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn excerpt(text: &str) -> String {
    text.chars().take(200).collect()
}

fn stamp(path: &Path) -> Option<Seen> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(path).ok()?;
    Some(Seen {
        path: path.to_owned(),
        written: (found.mtime(), found.mtime_nsec()),
        placed: (found.ctime(), found.ctime_nsec()),
        bytes: found.len(),
        version: String::new(),
    })
}

impl Seen {
    fn remembered(&self, home: &Path) -> Option<String> {
        let known: Seen = serde_json::from_slice(&std::fs::read(home.join(SEEN)).ok()?).ok()?;
        let same = Seen { version: String::new(), ..known.clone() } == *self;
        same.then_some(known.version)
    }

    /// What cannot be remembered is looked up again.
    fn remember(&self, home: &Path) {
        let fresh = home.join(format!("{SEEN}.{}", std::process::id()));
        if let Ok(content) = serde_json::to_vec(self)
            && std::fs::write(&fresh, content).is_ok()
        {
            let _ = std::fs::rename(fresh, home.join(SEEN));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn program(dir: &Path, script: &str) -> Surroundings {
        let path = dir.join("codex");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let env = [("PATH".into(), std::env::join_paths([dir, Path::new("/bin")]).unwrap())].into();
        Surroundings { aop: dir.join("aop"), env }
    }

    #[tokio::test]
    async fn a_version_is_asked_for_once_for_each_build() {
        let dir = tempfile::tempdir().unwrap();
        let surroundings =
            program(dir.path(), &format!("echo x >> {}/asked; echo codex-cli 0.166.0", dir.path().display()));
        for _ in 0..3 {
            let found = Program::find(&surroundings, dir.path()).await.unwrap();
            assert_eq!((found.version_text().as_str(), found.asks_natively()), ("0.166.0", true));
        }
        assert_eq!(std::fs::read_to_string(dir.path().join("asked")).unwrap(), "x\n");
        let surroundings = program(dir.path(), "echo codex-cli 0.120.0");
        let found = Program::find(&surroundings, dir.path()).await.unwrap();
        assert_eq!((found.version_text().as_str(), found.asks_natively()), ("0.120.0", false));
    }

    #[tokio::test]
    async fn what_cannot_be_used_is_named_with_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        for (script, cause) in [
            ("echo codex-cli 0.97.9", "older than"),
            ("echo hello", "which is not a version"),
            ("echo broken >&2; exit 3", "broken"),
        ] {
            let surroundings = program(dir.path(), script);
            let error = Program::find(&surroundings, dir.path()).await.unwrap_err();
            let EngineError::Unusable { cause: found, hint, .. } = error else { panic!("{error}") };
            assert!(found.contains(cause) && hint.contains("npm install"), "{found}");
        }
        let nothing = Surroundings { aop: dir.path().join("aop"), env: Default::default() };
        let error = Program::find(&nothing, dir.path()).await.unwrap_err();
        assert!(matches!(error, EngineError::NotInstalled { .. }), "{error}");
    }
}
