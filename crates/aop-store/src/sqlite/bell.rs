//! A bell that is heard in other processes: whoever has committed reads a byte of the lock file of the writers, and the
//! system tells everybody who watches it. Nothing is written for it.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long to wait for a ring before looking all the same: a process may die between its commit and its ring, and not
/// every file system carries rings from one machine to another.
const PATIENCE: Duration = Duration::from_millis(250);

/// How long when nothing can be heard at all.
const DEAF: Duration = Duration::from_millis(20);

/// What a wait ended with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// Somebody committed, or was about to.
    Ring,
    /// The time was over.
    Nothing,
}

/// What listens to it.
pub(super) struct Bell {
    ear: Option<Ear>,
    patience: Duration,
}

impl Bell {
    /// Listens from now on to the commits on this database.
    pub(super) fn hang(database: &Path) -> Self {
        match Ear::open(&rope(database)) {
            Some(ear) => Bell { ear: Some(ear), patience: PATIENCE },
            None => Bell { ear: None, patience: DEAF },
        }
    }

    /// Waits for the next ring, or until it is time to look without one.
    pub(super) fn wait(&self) -> Heard {
        match self.ear.as_ref().map(|ear| ear.listen(self.patience)) {
            Some(Ok(heard)) => heard,
            Some(Err(_)) | None => {
                std::thread::sleep(DEAF);
                Heard::Nothing
            }
        }
    }
}

#[cfg(target_os = "linux")]
struct Ear(std::os::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl Ear {
    fn open(rope: &Path) -> Option<Self> {
        use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
        let ear = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
        add_watch(&ear, rope, WatchFlags::ACCESS).ok()?;
        Some(Ear(ear))
    }

    fn listen(&self, patience: Duration) -> Result<Heard, rustix::io::Errno> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let time =
            Timespec { tv_sec: patience.as_secs().cast_signed(), tv_nsec: patience.subsec_nanos().into() };
        if poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&time))? == 0 {
            return Ok(Heard::Nothing);
        }
        // All that was rung so far counts as one.
        while rustix::io::read(&self.0, &mut [0_u8; 4096]).is_ok() {}
        Ok(Heard::Ring)
    }
}

/// Elsewhere nobody tells.
#[cfg(not(target_os = "linux"))]
struct Ear;

#[cfg(not(target_os = "linux"))]
impl Ear {
    fn open(_: &Path) -> Option<Self> {
        None
    }

    fn listen(&self, patience: Duration) -> Result<Heard, std::convert::Infallible> {
        std::thread::sleep(patience);
        Ok(Heard::Nothing)
    }
}

/// Tells everybody who listens.
pub(super) fn ring(rope: &File) {
    // Whoever does not hear it looks a little later.
    let _ = rope.read_at(&mut [0], 0);
}

/// What is pulled: the lock file, which is there as soon as anything was written.
pub(super) fn rope(database: &Path) -> PathBuf {
    database.with_file_name("write.lock")
}

/// Opens it, and makes it with something to read.
pub(super) fn open_rope(rope: &Path) -> std::io::Result<File> {
    let mut file = File::options().create(true).truncate(false).read(true).write(true).open(rope)?;
    if file.metadata()?.len() == 0 {
        // On a full disk nothing is heard, and everybody looks a little later.
        let _ = file.write_all(b"\n");
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_ring_is_heard_at_once_and_several_count_as_one() {
        let dir = tempfile::TempDir::new().unwrap();
        let database = dir.path().join("aop.db");
        let rope = open_rope(&rope(&database)).unwrap();
        let mut bell = Bell { patience: Duration::from_secs(600), ..Bell::hang(&database) };
        ring(&rope);
        ring(&rope);
        assert_eq!(bell.wait(), Heard::Ring);
        bell.patience = Duration::ZERO;
        assert_eq!(bell.wait(), Heard::Nothing);
    }

    #[test]
    fn without_anything_to_listen_to_the_time_passes() {
        let bell = Bell::hang(Path::new("/nowhere/aop.db"));
        assert_eq!((bell.wait(), bell.patience), (Heard::Nothing, DEAF));
    }
}
