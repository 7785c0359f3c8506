//! The files of a process that stays, brought up to date behind the work: any number of commits while one pass runs, or
//! closely after it, are one further pass. Nothing waits for them; what a caller was told is committed.

use super::{ProjectionError, Projector};
use crate::port::Store;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Commits that follow each other this closely share a pass.
const PERIOD: Duration = Duration::from_millis(100);

/// So long after a pass that failed another is tried.
const AGAIN: Duration = Duration::from_secs(5);

/// The task behind it.
pub struct Files {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Files {
    /// Starts it for this `.aop` folder. It follows every commit, whoever made it.
    pub fn start(
        folder: PathBuf,
        store: Arc<dyn Store>,
        warn: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        let (stop, mut stopped) = watch::channel(false);
        let mut changes = store.changes();
        let projector = Projector::new(&folder);
        let task = tokio::spawn(async move {
            let (mut stop, mut behind) = (false, false);
            loop {
                // Both are looked at before the pass, so that what happens during it leads to another.
                changes.borrow_and_update();
                let written = pass(projector.clone(), Arc::clone(&store), stop).await;
                let failed = written.is_err();
                let left = written.unwrap_or_else(|why| {
                    // Said once, and tried until it succeeds.
                    if !behind {
                        warn(&format!(
                            "the changes are stored, but their files are behind: {why} (`aop doctor --repair` rebuilds them)"
                        ));
                    }
                    Some(AGAIN)
                });
                behind = failed;
                if stop {
                    return;
                }
                tokio::select! {
                    Ok(()) = changes.changed() => {}
                    () = after(left) => {}
                    _ = stopped.wait_for(|stop| *stop) => stop = true,
                }
                if !stop {
                    tokio::select! {
                        () = tokio::time::sleep(PERIOD) => {}
                        _ = stopped.wait_for(|stop| *stop) => stop = true,
                    }
                }
            }
        });
        Files { stop, task }
    }

    /// Writes what is still to be written and ends.
    pub async fn finish(self) {
        self.stop.send_replace(true);
        // A task that panicked has nothing left to finish.
        let _ = self.task.await;
    }
}

/// After this time, or never.
async fn after(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

/// One pass, on a thread of its own: writing files would hold up everything else. The last one leaves nothing.
async fn pass(projector: Projector, store: Arc<dyn Store>, last: bool) -> Result<Option<Duration>, String> {
    let runtime = Handle::current();
    let pass = tokio::task::spawn_blocking(move || {
        let written: Result<_, ProjectionError> = runtime.block_on(async {
            if last {
                projector.finish(store.as_ref()).await.map(|()| None)
            } else {
                projector.catch_up(store.as_ref()).await
            }
        });
        written.map_err(|error| error.to_string())
    });
    pass.await.map_err(|error| error.to_string())?
}
