//! The project's own `CODEX_HOME`, `.aop/engines/codex/`.
//!
//! Codex writes into its home: trust entries into `config.toml`, sessions, databases, skills. None of that may reach the
//! user's home, and the sessions have to stay where a resume finds them. So each project has a home of its own: the
//! user's settings are copied into it before every turn, and the user's sign-in is linked, because Codex renews it in
//! place and a copy would go stale.

use crate::port::EngineError;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The variable that names the home.
pub(crate) const HOME_VARIABLE: &str = "CODEX_HOME";
/// Copied before every turn, with every profile (`NAME.config.toml`).
const COPIED: [&str; 3] = ["config.toml", "AGENTS.md", "AGENTS.override.md"];
/// Linked: the sign-in, and that of MCP servers.
const LINKED: [&str; 2] = ["auth.json", ".credentials.json"];
/// What earlier versions of ours have let Codex leave there: the environment of its shells, for good.
const SNAPSHOTS: &str = "shell_snapshots";

/// Where the home of a project is.
pub(crate) fn path(project: &Path) -> PathBuf {
    project.join(crate::AOP_DIR).join("engines").join("codex")
}

/// Makes the home of a project ready for a turn.
pub(super) fn prepare(project: &Path, env: &BTreeMap<OsString, OsString>) -> Result<PathBuf, EngineError> {
    let home = path(project);
    let failed = |error: io::Error| EngineError::System {
        what: format!("preparing Codex's home {}", home.display()),
        cause: error.to_string(),
    };
    make_private(&home).map_err(failed)?;
    // What cannot be taken away now is tried again next time.
    let _ = std::fs::remove_dir_all(home.join(SNAPSHOTS));
    if let Some(user) = of_the_user(env).filter(|user| !is_same(user, &home)) {
        for name in COPIED.map(OsString::from).into_iter().chain(profiles(&user)) {
            copy(&user.join(&name), &home.join(&name)).map_err(failed)?;
        }
        for name in LINKED {
            link(&user.join(name), &home.join(name)).map_err(failed)?;
        }
    }
    Ok(home)
}

/// The first start of a version in a home. Codex then makes its databases, and processes that do so at the same moment
/// fail; so the others wait until one has done it.
#[derive(Debug)]
pub(super) struct FirstStart {
    mark: PathBuf,
    _lock: File,
}

impl FirstStart {
    /// Waits for its turn; nothing when the version has been started here before.
    pub(super) async fn wait(home: &Path, version: &str) -> Result<Option<FirstStart>, EngineError> {
        let mark = home.join(format!("aop-started-{version}"));
        if mark.exists() {
            return Ok(None);
        }
        let path = home.join("aop-start.lock");
        let failed = |error: io::Error| EngineError::System {
            what: format!("locking {}", path.display()),
            cause: error.to_string(),
        };
        let lock = File::create(&path).map_err(failed)?;
        let locked = tokio::task::spawn_blocking(move || lock.lock().map(|()| lock)).await;
        let lock = locked.map_err(io::Error::other).and_then(|lock| lock).map_err(failed)?;
        Ok((!mark.exists()).then_some(FirstStart { mark, _lock: lock }))
    }

    /// It runs; the next one need not wait.
    pub(super) fn done(self) {
        // What cannot be marked is done with care again.
        let _ = std::fs::write(&self.mark, "");
    }
}

/// The home that Codex would use without us.
fn of_the_user(env: &BTreeMap<OsString, OsString>) -> Option<PathBuf> {
    let set = |name: &str| env.get(OsStr::new(name)).filter(|value| !value.is_empty()).map(PathBuf::from);
    set(HOME_VARIABLE).or_else(|| set("HOME").map(|home| home.join(".codex")))
}

fn is_same(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// The sessions in it hold what the agent read.
fn make_private(home: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    if let Some(parent) = home.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match std::fs::DirBuilder::new().mode(0o700).create(home) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && home.is_dir() => Ok(()),
        other => other,
    }
}

fn profiles(user: &Path) -> Vec<OsString> {
    let entries = std::fs::read_dir(user).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name())
        .filter(|name| name.to_string_lossy().ends_with(".config.toml"))
        .collect()
}

/// Two turns may start at the same moment: each reader finds a whole file.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let content = match std::fs::read(from) {
        Ok(content) => content,
        Err(error) if is_absent(&error) => return remove(to),
        Err(error) => return Err(error),
    };
    if std::fs::read(to).is_ok_and(|known| known == content) {
        return Ok(());
    }
    let fresh = to.with_extension(format!("new.{}", std::process::id()));
    write_private(&fresh, &content)?;
    std::fs::rename(fresh, to)
}

/// Settings may hold keys.
fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).open(path)?.write_all(content)
}

/// A file of its own in the place of the link is a sign-in that somebody made for this project: it stays.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    let exists = from.exists();
    match std::fs::symlink_metadata(to) {
        Ok(found) if !found.file_type().is_symlink() => return Ok(()),
        Ok(_) if exists && std::fs::read_link(to).is_ok_and(|target| target == from) => return Ok(()),
        Ok(_) => remove(to)?,
        Err(error) if is_absent(&error) => {}
        Err(error) => return Err(error),
    }
    if !exists {
        return Ok(());
    }
    match std::os::unix::fs::symlink(from, to) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if !is_absent(&error) => Err(error),
        _ => Ok(()),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place {
        dir: tempfile::TempDir,
        env: BTreeMap<OsString, OsString>,
    }

    fn place() -> Place {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("user/.codex")).unwrap();
        let env = [("HOME".into(), dir.path().join("user").into())].into();
        Place { dir, env }
    }

    impl Place {
        fn user(&self, name: &str) -> PathBuf {
            self.dir.path().join("user/.codex").join(name)
        }

        fn prepare(&self) -> PathBuf {
            prepare(&self.dir.path().join("project"), &self.env).unwrap()
        }
    }

    #[test]
    fn settings_are_copied_again_each_time_and_the_sign_in_is_linked() {
        let place = place();
        std::fs::write(place.user("config.toml"), "model = \"a\"").unwrap();
        std::fs::write(place.user("work.config.toml"), "model = \"w\"").unwrap();
        std::fs::write(place.user("auth.json"), "{}").unwrap();
        let home = place.prepare();
        // Codex adds trust entries to its own copy; the next turn begins with the user's settings again.
        std::fs::write(home.join("config.toml"), "model = \"a\"\n[projects.\"/p\"]").unwrap();
        std::fs::write(place.user("config.toml"), "model = \"b\"").unwrap();
        assert_eq!(place.prepare(), home);
        assert_eq!(std::fs::read_to_string(home.join("config.toml")).unwrap(), "model = \"b\"");
        assert_eq!(std::fs::read_to_string(home.join("work.config.toml")).unwrap(), "model = \"w\"");
        assert_eq!(std::fs::read_link(home.join("auth.json")).unwrap(), place.user("auth.json"));
        assert_eq!(std::fs::read_to_string(place.user("config.toml")).unwrap(), "model = \"b\"");
    }

    #[test]
    fn what_the_user_takes_away_goes_here_too() {
        let place = place();
        std::fs::write(place.user("config.toml"), "x = 1").unwrap();
        std::fs::write(place.user("auth.json"), "{}").unwrap();
        let home = place.prepare();
        std::fs::remove_file(place.user("config.toml")).unwrap();
        std::fs::remove_file(place.user("auth.json")).unwrap();
        place.prepare();
        assert!(!home.join("config.toml").exists());
        assert!(std::fs::symlink_metadata(home.join("auth.json")).is_err());
    }

    #[test]
    fn an_environment_that_an_earlier_version_left_is_taken_away() {
        let place = place();
        let left = place.prepare().join("shell_snapshots");
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.join("t.1.sh"), "export PGPASSWORD=x").unwrap();
        std::fs::create_dir_all(place.user("shell_snapshots")).unwrap();
        place.prepare();
        assert!(!left.exists());
        assert!(place.user("shell_snapshots").exists(), "the user's own Codex is not ours");
    }

    #[test]
    fn a_sign_in_of_the_projects_own_stays() {
        let place = place();
        let home = place.prepare();
        std::fs::write(home.join("auth.json"), "own").unwrap();
        std::fs::write(place.user("auth.json"), "user").unwrap();
        place.prepare();
        assert_eq!(std::fs::read_to_string(home.join("auth.json")).unwrap(), "own");
    }

    #[test]
    fn nobody_else_can_look_into_it() {
        use std::os::unix::fs::PermissionsExt;
        let place = place();
        let mode = std::fs::metadata(place.prepare()).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
    }

    #[tokio::test]
    async fn the_first_start_of_a_version_is_had_by_one_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let first = FirstStart::wait(dir.path(), "1.0.0").await.unwrap().unwrap();
        let mut second = std::pin::pin!(FirstStart::wait(dir.path(), "1.0.0"));
        let early = tokio::time::timeout(std::time::Duration::from_millis(50), &mut second).await;
        assert!(early.is_err(), "it waits");
        first.done();
        assert!(second.await.unwrap().is_none(), "it need not be careful any more");
        assert!(
            FirstStart::wait(dir.path(), "1.1.0").await.unwrap().is_some(),
            "another version is another start"
        );
    }
}
