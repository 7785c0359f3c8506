//! A home for Gemini CLI in the project: `.aop/engines/gemini/.gemini`. Only there can a server and a hook be added
//! without touching the user's settings (a settings file that is passed by a variable counts only when it belongs to
//! root). Settings are made anew for each turn; sign-in, instructions and extensions are links to the user's own;
//! conversations stay with the project.

use super::settings;
use crate::port::EngineError;
use crate::process::Surroundings;
use aop_turn::Engine;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The variable that moves the program's home.
pub(crate) const HOME_VARIABLE: &str = "GEMINI_CLI_HOME";

/// What the user's own folder lends.
const LENT: &[&str] = &[
    "oauth_creds.json",
    "google_accounts.json",
    "gemini-credentials.json",
    "mcp-oauth-tokens.json",
    "a2a-oauth-tokens.json",
    "GEMINI.md",
    ".env",
    "agents",
    "commands",
    "extensions",
    "policies",
    "skills",
];

/// The home of a project.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    folder: PathBuf,
}

impl Home {
    /// Of this project, whether it is there or not.
    pub(crate) fn of(project: &Path) -> Self {
        Home { folder: project.join(".aop/engines/gemini") }
    }

    /// The value of the variable.
    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }

    /// Where the program keeps everything.
    pub(super) fn gemini(&self) -> PathBuf {
        self.folder.join(".gemini")
    }

    /// Makes it ready for a turn.
    pub(super) fn prepare(&self, around: &Surroundings) -> Result<(), EngineError> {
        let own = self.gemini();
        let failed = |what: &Path| {
            let what = format!("preparing {}", what.display());
            move |error: io::Error| EngineError::System { what, cause: error.to_string() }
        };
        // The user's settings may hold keys, so nobody else reads the copy.
        DirBuilder::new().recursive(true).mode(0o700).create(&own).map_err(failed(&own))?;
        let users = users_home(around);
        for name in LENT {
            let lent = users.as_ref().map(|home| home.join(".gemini").join(name));
            link(lent.as_deref(), &own.join(name)).map_err(failed(&own.join(name)))?;
        }
        let lent = users.as_ref().map(|home| home.join(".env"));
        link(lent.as_deref(), &self.folder.join(".env")).map_err(failed(&self.folder.join(".env")))?;
        let known = match &users {
            Some(home) => users_settings(&home.join(".gemini/settings.json"))?,
            None => Value::Null,
        };
        let settings = settings::with_ours(known, &around.aop);
        let path = own.join("settings.json");
        write_whole(&path, format!("{settings:#}\n").as_bytes()).map_err(failed(&path))
    }
}

/// The home that the program would use by itself.
fn users_home(around: &Surroundings) -> Option<PathBuf> {
    let set = |name: &str| around.env.get(OsStr::new(name)).filter(|value| !value.is_empty());
    set(HOME_VARIABLE).or_else(|| set("HOME")).map(PathBuf::from)
}

fn users_settings(path: &Path) -> Result<Value, EngineError> {
    let unusable = |cause: String| EngineError::Unusable {
        engine: Engine::Gemini,
        cause: format!("the settings in {} cannot be read: {cause}", path.display()),
        hint: "correct the file; `gemini` itself says where".to_owned(),
    };
    match std::fs::read_to_string(path) {
        Ok(text) => settings::read(&text).map_err(|error| unusable(error.to_string())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Value::Null),
        Err(error) => Err(unusable(error.to_string())),
    }
}

/// Makes the link point there, or takes it away when there is nothing. Another turn may do the same at this moment.
fn link(lent: Option<&Path>, link: &Path) -> io::Result<()> {
    let lent = lent.filter(|lent| lent.exists());
    let standing = std::fs::read_link(link).ok();
    match lent {
        Some(lent) if standing.as_deref() == Some(lent) => Ok(()),
        Some(lent) => {
            // What stands there instead was written by the program in place of the link; the user's own counts.
            let fresh = link.with_file_name(format!(".link-{}", ulid::Ulid::generate()));
            std::os::unix::fs::symlink(lent, &fresh)?;
            let moved = std::fs::rename(&fresh, link);
            if moved.is_err() {
                let _ = std::fs::remove_file(&fresh);
            }
            moved
        }
        None if standing.is_some() => std::fs::remove_file(link).or_else(|error| match error.kind() {
            ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        }),
        None => Ok(()),
    }
}

/// In one step, readable by the user alone.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let fresh = path.with_file_name(format!(".new-{}", ulid::Ulid::generate()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    file.write_all(bytes)?;
    std::fs::rename(&fresh, path)
}
