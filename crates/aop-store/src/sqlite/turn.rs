//! The lock that makes the writers of all processes one queue, and how long to stand in it. The system's queue knows no
//! limit, so a thread of its own stands there; it comes into being only where another process writes at that moment.

use super::bell::rope;
use super::connect::{open_lock, unavailable};
use crate::error::StoreError;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long whoever leaves still waits, for what nobody has been told of yet.
const FAREWELL: Duration = Duration::from_secs(1);

/// Where the writers of this process wait for those of others.
pub(super) struct Turn {
    database: PathBuf,
    patience: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// A thread stands in the queue.
    stands: bool,
    /// Somebody waits for that thread.
    waits: bool,
    got: Option<Result<File, StoreError>>,
    leaves: bool,
}

impl Turn {
    pub(super) fn new(database: &Path, patience: Duration) -> Arc<Self> {
        let (state, changed) = Default::default();
        Arc::new(Turn { database: database.to_owned(), patience, state, changed })
    }

    /// Waits until no other process writes, and locks the file or another that stands for the same.
    pub(super) fn take(self: &Arc<Self>, lock: &mut File) -> Result<(), StoreError> {
        if lock.try_lock().is_ok() {
            return Ok(());
        }
        *lock = self.wait()?;
        Ok(())
    }

    /// Whoever waits gives up soon.
    pub(super) fn leave(&self) {
        self.state().leaves = true;
        self.changed.notify_all();
    }

    fn wait(self: &Arc<Self>) -> Result<File, StoreError> {
        let mut state = self.state();
        if !state.stands {
            let turn = Arc::clone(self);
            std::thread::Builder::new().name("aop-turn".into()).spawn(move || turn.stand()).map_err(
                |error| unavailable(&self.database, &error.to_string(), "the system has no thread to spare"),
            )?;
            state.stands = true;
        }
        state.waits = true;
        let state = self.wait_while(state, self.patience, |state| state.got.is_none() && !state.leaves);
        let farewell = if state.leaves { FAREWELL.min(self.patience) } else { Duration::ZERO };
        let mut state = self.wait_while(state, farewell, |state| state.got.is_none());
        state.waits = false;
        let got = state.got.take();
        drop(state);
        got.unwrap_or_else(|| Err(self.held()))
    }

    /// What the thread does. One that comes to its turn too late lets it pass.
    fn stand(&self) {
        let got = open_lock(&self.database).and_then(|file| {
            let hint = "check the permissions of .aop/write.lock";
            file.lock().map_err(|error| unavailable(&self.database, &error.to_string(), hint))?;
            Ok(file)
        });
        let mut state = self.state();
        state.stands = false;
        if state.waits {
            state.got = Some(got);
        }
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while<'a>(
        &self,
        state: MutexGuard<'a, State>,
        time: Duration,
        goes_on: impl Fn(&State) -> bool,
    ) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout_while(state, time, |state| goes_on(state));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn held(&self) -> StoreError {
        let (who, let_go) = match holder(&rope(&self.database)) {
            Some(pid) => {
                (format!("process {pid}"), format!("`kill -CONT {pid}` lets it go on if it was stopped"))
            }
            None => {
                ("another process".to_owned(), "look for an aop that was stopped and let it go on".to_owned())
            }
        };
        let cause = format!("{who} writes to the store and has not let go of it for {:?}", self.patience);
        unavailable(&self.database, &cause, &format!("{let_go}; then run the command again"))
    }
}

/// The process that holds the lock, where the system tells.
fn holder(lock: &Path) -> Option<u32> {
    let meta = lock.metadata().ok()?;
    let (major, minor) = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
    holder_in(
        &std::fs::read_to_string("/proc/locks").ok()?,
        &format!("{major:02x}:{minor:02x}:{}", meta.ino()),
    )
}

/// The same in the system's list; whoever only waits stands there with an arrow.
fn holder_in(locks: &str, file: &str) -> Option<u32> {
    locks.lines().find_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        match words.as_slice() {
            [_, "FLOCK", _, _, pid, held, ..] if *held == file => pid.parse().ok().filter(|pid| *pid > 0),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_in_the_list_of_locks_is_not_its_holder() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 00:1f:12 0 EOF\n2: FLOCK  ADVISORY  WRITE 8 00:1f:12 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 9 00:1f:13 0 EOF\n3: FLOCK  ADVISORY  WRITE 10 00:1f:13 0 EOF\n";
        assert_eq!(holder_in(locks, "00:1f:12"), Some(8));
        assert_eq!(holder_in(locks, "00:1f:13"), Some(10));
        assert_eq!(holder_in(locks, "00:1f:14"), None);
    }

    #[test]
    fn a_turn_that_comes_after_the_limit_is_let_pass() {
        let dir = tempfile::TempDir::new().unwrap();
        let database = dir.path().join("aop.db");
        let turn = Turn::new(&database, Duration::ZERO);
        let (holder, mut lock) = (open_lock(&database).unwrap(), open_lock(&database).unwrap());
        holder.lock().unwrap();
        for _ in 0..3 {
            let error = turn.take(&mut lock).unwrap_err().to_string();
            assert!(error.contains("has not let go"), "{error}");
        }
        assert!(turn.state().stands, "one thread stands there for all of them");
        holder.unlock().unwrap();
        let state = turn.state();
        drop(turn.wait_while(state, Duration::from_secs(600), |state| state.stands));
        // What the thread locked is closed behind its last word.
        while lock.try_lock().is_err() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn whoever_leaves_does_not_wait_for_the_limit() {
        let dir = tempfile::TempDir::new().unwrap();
        let database = dir.path().join("aop.db");
        let turn = Turn::new(&database, Duration::from_secs(600));
        let (holder, mut lock) = (open_lock(&database).unwrap(), open_lock(&database).unwrap());
        holder.lock().unwrap();
        turn.leave();
        turn.take(&mut lock).unwrap_err();
    }
}
