//! Small file work: atomic replacement, a lock with an end to its patience, a number in a file.

use super::ProjectionError;
use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

/// Replaces a file as a whole: readers see the old content or the new, never a part. Not synced: the file can
/// be made again from the store.
pub(super) fn write_atomically(path: &Path, content: &[u8]) -> Result<(), ProjectionError> {
    let failed = |cause| ProjectionError::File { path: path.to_owned(), cause };
    let parent = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(failed)?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let temporary = parent.join(format!(".{name}.tmp"));
    fs::write(&temporary, content).map_err(failed)?;
    fs::rename(&temporary, path).map_err(failed)
}

/// Takes the lock, or gives up after a while.
pub(super) fn try_lock_for(path: &Path, patience: Duration) -> Result<File, ProjectionError> {
    let failed = |cause| ProjectionError::File { path: path.to_owned(), cause };
    let file = File::options().create(true).truncate(false).write(true).open(path).map_err(failed)?;
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
    fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}
