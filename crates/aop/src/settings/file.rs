//! One settings file: read, changed as a text, shown as a difference, written whole or not at all.

use aop_kernel::{ErrorCode, Refusal};
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file as it is and as it should be.
pub(crate) struct Change {
    pub(crate) path: PathBuf,
    before: Option<String>,
    pub(crate) after: String,
    /// Nothing is left in it that it would be kept for.
    goes: bool,
}

impl Change {
    /// Reads the file; one that is not there begins as `empty`.
    pub(crate) fn of(path: &Path, empty: &str) -> Result<Self, Refusal> {
        let before = read(path)?;
        let after = before.clone().filter(|text| !text.trim().is_empty()).unwrap_or_else(|| empty.to_owned());
        Ok(Change { path: path.to_owned(), before, after, goes: false })
    }

    /// Changes the text. What cannot be understood is left alone.
    pub(crate) fn with(
        mut self,
        change: impl FnOnce(&str) -> Result<String, String>,
    ) -> Result<Self, Refusal> {
        self.after = change(&self.after).map_err(|why| {
            Refusal::new(
                ErrorCode::InvalidDocument,
                format!("{} was not changed: {why}", self.path.display()),
            )
            .hint("correct the file by hand, or move it away, and try again")
            .fact("file", self.path.display().to_string())
        })?;
        Ok(self)
    }

    /// Removes the file when the change leaves this in it and nothing else. Where a link leads to it, somebody put it
    /// there, and it stays.
    pub(crate) fn or_gone(mut self, shell: &str) -> Self {
        let held = self.before.as_deref().is_some_and(|text| !text.trim().is_empty());
        if held && self.is_needed() && self.after == shell && !self.path.is_symlink() {
            self.after.clear();
            self.goes = true;
        }
        self
    }

    /// Whether anything is different.
    pub(crate) fn is_needed(&self) -> bool {
        self.before.as_deref() != Some(&self.after)
    }

    /// Whether there is a file.
    pub(crate) fn exists(&self) -> bool {
        self.before.is_some()
    }

    /// What is different, line by line.
    pub(crate) fn diff(&self) -> String {
        let before: Vec<&str> = self.before.as_deref().unwrap_or_default().lines().collect();
        let after: Vec<&str> = self.after.lines().collect();
        let head = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
        let rest = before.len().min(after.len()) - head;
        let tail = before.iter().rev().zip(after.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
        let path = self.path.display().to_string();
        let mut diff = format!("--- {path}\n+++ {}\n", if self.goes { "/dev/null" } else { &path });
        let mut lines = |sign: char, lines: &[&str]| {
            lines.iter().for_each(|line| diff.push_str(&format!("{sign}{line}\n")));
        };
        lines(' ', &after[head.saturating_sub(2)..head]);
        lines('-', &before[head..before.len() - tail]);
        lines('+', &after[head..after.len() - tail]);
        lines(' ', &after[after.len() - tail..(after.len() - tail + 2).min(after.len())]);
        diff
    }

    /// Writes the file: beside it first, then in its place, or removes it. Links are followed, rights are kept. A file
    /// that somebody else changed meanwhile is not touched.
    pub(crate) fn write(&self) -> Result<(), Refusal> {
        let place = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let failed = |error: std::io::Error| {
            Refusal::new(ErrorCode::StoreUnavailable, format!("{}: {error}", place.display()))
                .hint("check that the folder exists and is writable; nothing was changed")
        };
        if read(&self.path)? != self.before {
            let message = format!("{} was changed by somebody else meanwhile", self.path.display());
            return Err(Refusal::new(ErrorCode::VersionConflict, message).hint("try again"));
        }
        if self.goes {
            return fs::remove_file(&place).map_err(failed);
        }
        let folder = place.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(failed)?;
        let rights = fs::metadata(&place).ok().map(|known| known.permissions());
        let beside = folder.join(format!(".aop-{}.tmp", ulid::Ulid::generate()));
        let written = (|| {
            let mut file = create(&beside, rights.is_some())?;
            file.write_all(self.after.as_bytes())?;
            if let Some(rights) = rights {
                file.set_permissions(rights)?;
            }
            file.sync_all()?;
            fs::rename(&beside, &place)
        })();
        if written.is_err() {
            // The half-written copy; whether it goes or stays, the file itself was not touched.
            let _ = fs::remove_file(&beside);
        }
        written.map_err(failed)
    }
}

/// A file where none stands. The copy of another may hold what nobody else is to read: it is its owner's alone until it
/// has the rights of the other, also when a kill leaves it there.
fn create(path: &Path, is_copy: bool) -> std::io::Result<fs::File> {
    let mode = if is_copy { 0o600 } else { 0o666 };
    fs::File::options().write(true).create_new(true).mode(mode).open(path)
}

fn read(path: &Path) -> Result<Option<String>, Refusal> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        // A link to nothing was made by somebody, for a place that is not there at the moment.
        Err(error) if error.kind() == ErrorKind::NotFound && !path.is_symlink() => Ok(None),
        Err(error) => Err(Refusal::new(
            ErrorCode::InvalidDocument,
            format!("{} cannot be read: {error}", path.display()),
        )
        .hint("nothing was changed; look at the file and its rights")
        .fact("file", path.display().to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_copy_of_a_settings_file_is_its_owners_alone_until_it_takes_the_files_place() {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy");
        let file = create(&copy, true).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(
            create(&copy, true).unwrap_err().kind(),
            ErrorKind::AlreadyExists,
            "nothing is written over"
        );

        let path = folder.path().join("settings.json");
        fs::write(&path, "{}").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let change = Change::of(&path, "{}").unwrap().with(|_| Ok("{\"a\": 1}".to_owned())).unwrap();
        change.write().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\"a\": 1}");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "the file, and the copy of this test");

        let link = folder.path().join("link.json");
        std::os::unix::fs::symlink(folder.path().join("away"), &link).unwrap();
        assert!(Change::of(&link, "{}").err().unwrap().message.contains("cannot be read"), "a link is kept");
    }
}
