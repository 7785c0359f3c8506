//! The files below `.aop/features/`, brought up to date behind the answers. A caller never waits for them: what
//! it was told is committed, and any number of changes while one pass runs are one further pass.

use aop_store::{Projector, Store};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Tells the background that something changed.
#[derive(Clone)]
pub(crate) struct Files {
    wake: Arc<watch::Sender<Wanted>>,
}

/// The task behind it.
pub(crate) struct Background {
    wake: Arc<watch::Sender<Wanted>>,
    task: JoinHandle<()>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Wanted {
    changes: u64,
    stop: bool,
}

/// Starts the background. Without a folder it does nothing.
pub(crate) fn start(folder: Option<PathBuf>, store: Arc<dyn Store>, warn: fn(&str)) -> (Files, Background) {
    let (wake, mut wanted) = watch::channel(Wanted::default());
    let wake = Arc::new(wake);
    let commits = store.changes();
    let task = tokio::spawn(async move {
        let mut done = (0, *commits.borrow());
        while wanted.changed().await.is_ok() {
            let Wanted { changes, stop } = *wanted.borrow_and_update();
            // The last commit too: whoever says that something changed may be stopped before it does.
            let now = (changes, *commits.borrow());
            if let Some(folder) = folder.clone().filter(|_| now != done) {
                write(folder, Arc::clone(&store), warn).await;
            }
            done = now;
            if stop {
                return;
            }
        }
    });
    (Files { wake: Arc::clone(&wake) }, Background { wake, task })
}

/// One pass, on a thread of its own: writing and syncing files would hold up every other call.
async fn write(folder: PathBuf, store: Arc<dyn Store>, warn: fn(&str)) {
    let runtime = Handle::current();
    let pass = tokio::task::spawn_blocking(move || {
        runtime.block_on(Projector::new(&folder).catch_up(store.as_ref())).map_err(|error| error.to_string())
    });
    let failure = match pass.await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error,
        Err(error) => error.to_string(),
    };
    warn(&format!(
        "the changes are stored, but their files are behind: {failure} (`aop doctor --repair` rebuilds them)"
    ));
}

impl Files {
    /// Something was committed.
    pub(crate) fn changed(&self) {
        self.wake.send_modify(|wanted| wanted.changes += 1);
    }
}

impl Background {
    /// Writes what is still to be written and ends.
    pub(crate) async fn finish(self) {
        self.wake.send_modify(|wanted| wanted.stop = true);
        // A task that panicked has nothing left to finish.
        let _ = self.task.await;
    }
}
