//! Who is woken by what. Every commit wakes one task, which looks up the features it changed and wakes only those
//! who wait for them: a thousand waits cost a commit one look, and not a thousand.

use aop_kernel::Refusal;
use aop_kernel::ids::FeatureId;
use aop_store::Store;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// More than any event's number, also for a database that counts with a sign.
const AFTER_ALL: u64 = i64::MAX as u64;

/// The waits of one server, by feature.
#[derive(Clone, Default)]
pub(crate) struct Wakes(Arc<Mutex<HashMap<FeatureId, watch::Sender<()>>>>);

impl Wakes {
    /// Starts the task. It ends with the store or the runtime.
    pub(crate) async fn start(store: Arc<dyn Store>) -> Result<Self, Refusal> {
        let wakes = Wakes::default();
        let mut changes = store.changes();
        let (_, mut seen) = store.changed_since(AFTER_ALL).await?;
        let task = wakes.clone();
        tokio::spawn(async move {
            while changes.changed().await.is_ok() {
                changes.borrow_and_update();
                match store.changed_since(seen).await {
                    Ok((changed, last)) => {
                        changed.iter().for_each(|(feature, _)| task.wake(feature));
                        seen = last;
                    }
                    // Whoever waits looks for itself and reports what it finds.
                    Err(_) => task.wake_all(),
                }
            }
        });
        Ok(wakes)
    }

    /// Changes after every commit from now on that touches the feature.
    pub(crate) fn of(&self, feature: &FeatureId) -> watch::Receiver<()> {
        let mut waits = self.waits();
        if waits.len().is_power_of_two() {
            // Now and then those that nobody waits for any more are cleared away.
            waits.retain(|_, wait| wait.receiver_count() > 0);
        }
        waits.entry(feature.clone()).or_insert_with(|| watch::channel(()).0).subscribe()
    }

    fn waits(&self) -> MutexGuard<'_, HashMap<FeatureId, watch::Sender<()>>> {
        // A map of senders is whole after any panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, feature: &FeatureId) {
        let mut waits = self.waits();
        if waits.get(feature).is_some_and(|wait| wait.send(()).is_err()) {
            // Nobody is left who waits for it.
            waits.remove(feature);
        }
    }

    fn wake_all(&self) {
        self.waits().retain(|_, wait| wait.send(()).is_ok());
    }
}
