//! Which file the store was opened on. Whoever holds one that was removed or replaced would go on writing where nobody
//! ever looks again.

use super::connect::unavailable;
use crate::error::StoreError;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A path and the file that was found there.
pub(super) struct Site {
    pub(super) path: PathBuf,
    /// Its device and its number there.
    file: (u64, u64),
}

impl Site {
    pub(super) fn of(path: &Path) -> Result<Self, StoreError> {
        Ok(Site { path: path.to_owned(), file: file_at(path)? })
    }

    /// Whether the file is still there.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        if file_at(&self.path)? == self.file {
            return Ok(());
        }
        Err(unavailable(&self.path, "another file has taken its place since it was opened", AGAIN))
    }
}

const AGAIN: &str = "start the command that says this again (a server too): it opens what is there then";

fn file_at(path: &Path) -> Result<(u64, u64), StoreError> {
    let found = path.metadata().map_err(|error| unavailable(path, &error.to_string(), AGAIN))?;
    Ok((found.dev(), found.ino()))
}
