//! Noticing commits. Those of this process are announced by the writer. After each commit it also rings a bell that
//! is heard in other processes, and in this one; whoever hears it asks `PRAGMA data_version`, which takes a few
//! microseconds. A thread listens only once somebody in this process does.

use super::bell::{Bell, Heard};
use super::connect::{counters, open_reader};
use super::recent::data_version;
use super::writer::Desk;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once, Weak};
use std::time::Duration;
use tokio::sync::watch;

/// So long after it was rung, the bell is not listened to: many commits a moment are noticed together.
const GAP: Duration = Duration::from_millis(1);

/// Announces commits to whoever listens.
pub(super) struct Watcher {
    path: PathBuf,
    sender: watch::Sender<u64>,
    started: Once,
    closed: Arc<AtomicBool>,
}

impl Watcher {
    pub(super) fn new(path: PathBuf, seq: u64) -> Self {
        Watcher { path, sender: watch::Sender::new(seq), started: Once::new(), closed: Arc::default() }
    }

    pub(super) fn sender(&self) -> watch::Sender<u64> {
        self.sender.clone()
    }

    /// A receiver that changes after every commit from now on. The first one starts the thread.
    pub(super) fn subscribe(&self, desk: Weak<Desk>) -> watch::Receiver<u64> {
        let receiver = self.sender.subscribe();
        self.started.call_once(|| {
            let path = self.path.clone();
            let sender = self.sender.clone();
            let closed = Arc::clone(&self.closed);
            // Without the thread only commits of other processes go unnoticed; waiters also look at their
            // own deadlines.
            let _ = std::thread::Builder::new()
                .name("aop-watch".into())
                .spawn(move || listen(&path, &sender, &desk, &closed));
        });
        receiver
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}

/// Listens as long as the store is open.
fn listen(path: &Path, sender: &watch::Sender<u64>, desk: &Weak<Desk>, closed: &AtomicBool) {
    let bell = Bell::hang(path);
    let mut seen: Option<i64> = None;
    let mut connection = None;
    while !closed.load(Ordering::Relaxed) {
        if connection.is_none() {
            connection = open_reader(path).ok();
        }
        if let Some(open) = connection.as_ref().filter(|_| sender.receiver_count() > 0) {
            let version = data_version(open).ok();
            if version.is_some() && version != seen {
                seen = version;
                let ours = desk.upgrade().is_some_and(|desk| desk.wrote_last());
                if let Some((seq, _)) = (!ours).then(|| counters(open).ok()).flatten() {
                    sender.send_if_modified(|last| {
                        let grown = seq > *last;
                        *last = seq.max(*last);
                        grown
                    });
                }
            }
        }
        if bell.wait() == Heard::Ring {
            std::thread::sleep(GAP);
        }
    }
}
