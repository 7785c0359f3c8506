//! Files that are not whole yet. One without a name is gone with its process, however that ends; one that will get a
//! name is locked while it is written, so that whoever finds it later knows that nobody will finish it.

use std::fs::File;
use std::io::{Error, Result};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const PREFIX: &str = ".aop-export-";
const SUFFIX: &str = ".partial";

/// A file without a name where the system keeps such, else in this folder; and where that is.
pub(crate) fn nameless(else_in: &Path) -> Result<(File, PathBuf)> {
    let made = |folder: PathBuf| {
        let (file, path) = create(&folder)?;
        std::fs::remove_file(path)?;
        Ok::<_, Error>((file, folder))
    };
    made(std::env::temp_dir()).or_else(|first| made(else_in.to_owned()).map_err(|_| first))
}

/// A file that will take its place when it is whole, and is gone when it does not.
pub(crate) struct Partial {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
}

impl Partial {
    /// Begins one in the folder where it will have its name.
    pub(crate) fn begin(folder: &Path) -> Result<Self> {
        loop {
            let (file, path) = create(folder)?;
            file.lock()?;
            // Somebody may have found it before it was locked.
            if file.metadata()?.nlink() > 0 {
                return Ok(Partial { path, file });
            }
        }
    }

    /// Gives it its name.
    pub(crate) fn finish(self, output: &Path) -> Result<()> {
        self.file.sync_all()?;
        std::fs::rename(&self.path, output)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // After the rename there is nothing left to remove.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Removes what others have begun in this folder and will not finish, because they were killed.
pub(crate) fn sweep(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
        if is_ours && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            let abandoned = File::open(entry.path()).ok().filter(|file| file.try_lock().is_ok());
            if abandoned.is_some() {
                // Whoever comes next tries again.
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

/// Answers may be private: only their owner reads the file, like the store itself.
fn create(folder: &Path) -> Result<(File, PathBuf)> {
    let path = folder.join(format!("{PREFIX}{}{SUFFIX}", ulid::Ulid::generate()));
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    Ok((file, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_abandoned_is_swept_away_and_what_is_being_written_stays() {
        let folder = tempfile::tempdir().unwrap();
        let abandoned = folder.path().join(".aop-export-4711.partial");
        std::fs::write(&abandoned, "half").unwrap();
        let theirs = folder.path().join("notes.partial");
        std::fs::write(&theirs, "mine").unwrap();
        let written = Partial::begin(folder.path()).unwrap();
        sweep(folder.path());
        assert!(!abandoned.exists() && theirs.exists() && written.path.exists());
        let path = written.path.clone();
        drop(written);
        assert!(!path.exists(), "one that was not finished leaves nothing");
    }
}
