//! Small file work: atomic replacement, a lock with an end to its patience, a number in a file.

use super::ProjectionError;
use crate::folder::make_folder;
use crate::plain::{open_lock_file, read_text_file};
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Replaces a file as a whole: readers see the old content or the new, never a part. Not synced: the file can
/// be made again from the store. Nothing below `root` is followed out of it.
pub(super) fn write_atomically(root: &Path, path: &Path, content: &[u8]) -> Result<(), ProjectionError> {
    let failed = |cause| ProjectionError::File { path: path.to_owned(), cause };
    let parent = path.parent().unwrap_or(Path::new("."));
    check_folders(root, parent)?;
    make_folder(parent).map_err(failed)?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let temporary = parent.join(format!(".{name}.tmp"));
    write_anew(&temporary, content).and_then(|()| put(&temporary, path)).map_err(|cause| {
        // A piece of a file that cannot be put in its place is of use to nobody.
        let _ = fs::remove_file(&temporary);
        failed(cause)
    })
}

/// Takes a file away; one that is not there is away already.
pub(super) fn remove(path: &Path) -> Result<(), ProjectionError> {
    match take_away(path) {
        Err(cause) if cause.kind() != ErrorKind::NotFound => {
            Err(ProjectionError::File { path: path.to_owned(), cause })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Puts a file in its place.
fn put(temporary: &Path, path: &Path) -> std::io::Result<()> {
    match fs::rename(temporary, path) {
        Err(cause) if cause.kind() == ErrorKind::IsADirectory => {
            clear(path)?;
            fs::rename(temporary, path)
        }
        put => put,
    }
}

fn take_away(path: &Path) -> std::io::Result<()> {
    match fs::remove_file(path) {
        Err(cause) if cause.kind() == ErrorKind::IsADirectory => clear(path),
        taken => taken,
    }
}

/// Takes a folder away that is in the place of a file, when it is empty; what is in it may be somebody's.
fn clear(path: &Path) -> std::io::Result<()> {
    fs::remove_dir(path).map_err(|cause| {
        if cause.kind() != ErrorKind::DirectoryNotEmpty {
            return cause;
        }
        let name = path.file_name().unwrap_or_default().display();
        let what = format!(
            "{name} is a folder with something in it, and a file belongs there; move it away, then `aop doctor --repair`"
        );
        std::io::Error::other(what)
    })
}

/// What is written in a folder that is a link lands wherever it leads, and nothing is written below what is no folder.
fn check_folders(root: &Path, folder: &Path) -> Result<(), ProjectionError> {
    let wrong = |path: &Path| {
        let there = fs::symlink_metadata(path).ok().filter(|there| !there.is_dir())?;
        Some(match there.is_symlink() {
            true => "it is a symbolic link; put a folder in its place",
            false => "a folder belongs there; move it away, then `aop doctor --repair`",
        })
    };
    let mut folders = folder.ancestors().take_while(|folder| *folder != root);
    let found = folders.find_map(|path| Some((path, wrong(path)?)));
    found.map_or(Ok(()), |(path, why)| {
        Err(ProjectionError::File { path: path.to_owned(), cause: std::io::Error::other(why) })
    })
}

/// Writes a file that was not there, and so is no link. What a crash left in its place goes first.
fn write_anew(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut file = match File::create_new(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            take_away(path)?;
            File::create_new(path)?
        }
        created => created?,
    };
    file.write_all(content)
}

/// Takes the lock, or gives up after a while.
pub(super) fn try_lock_for(path: &Path, patience: Duration) -> Result<File, ProjectionError> {
    let failed = |cause| ProjectionError::File { path: path.to_owned(), cause };
    let file = open_lock_file(path).map_err(failed)?;
    let deadline = Instant::now() + patience;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(TryLockError::WouldBlock) => return Err(ProjectionError::Busy),
            Err(TryLockError::Error(cause)) => return Err(failed(cause)),
        }
    }
}

/// The number in a file; 0 when there is none.
pub(super) fn read_number(path: &Path) -> u64 {
    read_text_file(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}
