//! The clock of a server: what is due is expired when it is due.

use aop_kernel::Refusal;
use aop_store::Store;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// A deadline further away is looked at again after this: the machine may have slept, or its clock been set.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);
/// A store that cannot be reached is tried again after this.
const RETRY: Duration = Duration::from_secs(1);

/// Starts it.
pub(crate) fn start(store: Arc<dyn Store>, warn: fn(&str)) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut changes = store.changes();
        let mut failed = false;
        loop {
            // Marked as seen before looking, so that a change in between wakes the wait below.
            changes.borrow_and_update();
            let wait = match due(store.as_ref()).await {
                Ok(wait) => {
                    failed = false;
                    wait
                }
                Err(refusal) => {
                    if !std::mem::replace(&mut failed, true) {
                        warn(&format!(
                            "deadlines cannot be looked at: {} ({})",
                            refusal.message, refusal.hint
                        ));
                    }
                    RETRY
                }
            };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                changed = changes.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
            }
        }
    })
}

/// Expires what is due. How long until something else is.
async fn due(store: &dyn Store) -> Result<Duration, Refusal> {
    let (Some(deadline), now) = (store.next_deadline().await?, store.now().await?) else {
        return Ok(LONGEST_SLEEP);
    };
    let left = deadline.as_millis().saturating_sub(now.as_millis());
    if left > 0 {
        return Ok(Duration::from_millis(left.unsigned_abs()).min(LONGEST_SLEEP));
    }
    // Others may have done it in the same moment; either way it is done, and the next look says what is next.
    store.expire().await?;
    Ok(Duration::ZERO)
}
