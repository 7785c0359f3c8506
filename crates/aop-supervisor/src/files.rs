//! The files below `.aop/features/`, brought up to date behind the work: any number of commits while one pass runs
//! are one further pass. Nothing waits for them.

use aop_store::{Projector, Store};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Commits that follow each other this closely share a pass.
const PERIOD: Duration = Duration::from_millis(100);

/// The task behind it.
pub struct Files {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Files {
    /// Starts it for this `.aop` folder.
    pub fn start(folder: PathBuf, store: Arc<dyn Store>, warn: fn(&str)) -> Self {
        let (stop, mut stopped) = watch::channel(false);
        let mut changes = store.changes();
        let task = tokio::spawn(async move {
            loop {
                changes.borrow_and_update();
                pass(folder.clone(), Arc::clone(&store), warn).await;
                if *stopped.borrow() {
                    return;
                }
                tokio::select! {
                    _ = changes.changed() => {}
                    _ = stopped.changed() => {}
                }
                tokio::select! {
                    () = tokio::time::sleep(PERIOD) => {}
                    _ = stopped.wait_for(|stop| *stop) => {}
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

/// One pass, on a thread of its own: writing files would hold up the run.
async fn pass(folder: PathBuf, store: Arc<dyn Store>, warn: fn(&str)) {
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
