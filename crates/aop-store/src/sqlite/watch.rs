//! Noticing commits. Those of this process are announced by the writer. After each commit it also rings a bell that
//! is heard in other processes, and in this one; whoever hears it asks `PRAGMA data_version`, which takes a few
//! microseconds. A thread listens only once somebody in this process does.

use super::bell::{Bell, Heard};
use super::connect::{counters, explain, open_reader};
use super::read::Reader;
use super::recent::data_version;
use super::writer::Desk;
use crate::error::StoreError;
use crate::wakes::Wakes;
use aop_kernel::time::Timestamp;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once, Weak};
use std::time::Duration;

/// So long after it was rung, the bell is not listened to: many commits a moment are noticed together.
const GAP: Duration = Duration::from_millis(1);

/// Looks for the commits of others as soon as somebody listens.
pub(super) struct Watcher {
    path: PathBuf,
    pub(super) wakes: Arc<Wakes>,
    started: Once,
    closed: Arc<AtomicBool>,
}

impl Watcher {
    pub(super) fn new(path: PathBuf, wakes: Arc<Wakes>) -> Self {
        Watcher { path, wakes, started: Once::new(), closed: Arc::default() }
    }

    /// Starts the thread, if there is none yet.
    pub(super) fn start(&self, desk: Weak<Desk>) {
        self.started.call_once(|| {
            let path = self.path.clone();
            let wakes = Arc::clone(&self.wakes);
            let closed = Arc::clone(&self.closed);
            // Without the thread only commits of other processes go unnoticed; waiters also look at their
            // own deadlines.
            let _ = std::thread::Builder::new()
                .name("aop-watch".into())
                .spawn(move || listen(&path, &wakes, &desk, &closed));
        });
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}

/// Listens as long as the store is open.
fn listen(path: &Path, wakes: &Wakes, desk: &Weak<Desk>, closed: &AtomicBool) {
    let bell = Bell::hang(path);
    let mut seen: Option<i64> = None;
    let mut connection = None;
    while !closed.load(Ordering::Relaxed) {
        if connection.is_none() {
            connection = open_reader(path).ok();
        }
        if let Some(open) = connection.as_ref().filter(|_| wakes.are_wanted()) {
            match notice(open, path, seen, wakes, desk) {
                Ok(version) => seen = Some(version),
                // It is looked at again after the next wait.
                Err(_) => wakes.wake_all(),
            }
        }
        if bell.wait() == Heard::Ring {
            std::thread::sleep(GAP);
        }
    }
}

/// Announces what was committed since this version of the file was looked at; the version it has now.
fn notice(
    connection: &Connection,
    path: &Path,
    seen: Option<i64>,
    wakes: &Wakes,
    desk: &Weak<Desk>,
) -> Result<i64, StoreError> {
    let explained = |error: rusqlite::Error| explain(path, &error);
    let version = data_version(connection).map_err(explained)?;
    if seen == Some(version) {
        return Ok(version);
    }
    // The last commit may be ours and come behind one of others that nobody was told of.
    let ours = desk.upgrade().is_some_and(|desk| desk.wrote_last());
    if ours && wakes.behind().is_none() {
        return Ok(version);
    }
    wakes.raise(counters(connection).map_err(explained)?.0);
    if let Some(told) = wakes.behind() {
        let reader = Reader::begin(connection, path, Timestamp::from_millis(0))?;
        let (changed, last) = reader.changed_since(told)?;
        wakes.found(changed.iter().map(|(feature, _)| feature.as_str()), last);
    }
    Ok(version)
}
