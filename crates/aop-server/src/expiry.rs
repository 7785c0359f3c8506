//! The clock of a server: what is due is expired when it is due.

use aop_kernel::Refusal;
use aop_store::Store;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// A deadline further away is looked at again after this: the machine may have slept, or its clock been set.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);
/// A store that cannot be reached is tried again after this.
const RETRY: Duration = Duration::from_secs(1);
/// Commits that follow each other this closely are looked at together: each look has the store bring its tables up to
/// the log. A deadline that is known is kept on time all the same.
const PERIOD: Duration = Duration::from_millis(50);

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
            let due = Instant::now() + wait;
            tokio::select! {
                () = tokio::time::sleep_until(due) => {}
                changed = changes.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    tokio::time::sleep_until(due.min(Instant::now() + PERIOD)).await;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::fixture::World;
    use aop_store::EventPage;
    use serde_json::json;

    /// A project in which two questions are open for ten and for twenty seconds, and the clock runs.
    async fn ticking() -> (World, JoinHandle<()>) {
        let world = World::new().await;
        world.feature("shop", "Shop").await;
        for seconds in [10, 20] {
            world.ask("shop", json!({"blocking": false, "timeout_ms": seconds * 1_000})).await;
        }
        let clock = start(Arc::clone(&world.service.store), |why| panic!("{why}"));
        (world, clock)
    }

    /// Both clocks go on, and whoever waits for that gets a turn.
    async fn pass(world: &World, millis: u64) {
        world.clock.advance(millis.cast_signed());
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }

    /// How many expiries are written down.
    async fn written(world: &World) -> usize {
        let page = EventPage { after: 0, feature: None, limit: 0 };
        let events = world.service.store.events(page).await.unwrap();
        events
            .iter()
            .filter(|event| serde_json::to_value(event).unwrap()["type"] == "question.expired")
            .count()
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_due_is_written_down_when_it_is_due() {
        let (world, _clock) = ticking().await;
        pass(&world, 9_999).await;
        assert_eq!(written(&world).await, 0);
        pass(&world, 2).await;
        assert_eq!(written(&world).await, 1);
        pass(&world, 10_000).await;
        assert_eq!(written(&world).await, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_commit_just_before_a_deadline_does_not_put_it_off() {
        let (world, _clock) = ticking().await;
        pass(&world, 9_999).await;
        world.ask("shop", json!({"blocking": false})).await;
        pass(&world, 2).await;
        assert_eq!(written(&world).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_that_is_nearer_than_those_before_is_found_after_a_while() {
        let (world, _clock) = ticking().await;
        pass(&world, 100).await;
        world.ask("shop", json!({"blocking": false, "timeout_ms": 1_000})).await;
        // Nearly all of its time has gone by before anybody looks.
        world.clock.advance(1_000);
        tokio::time::sleep(PERIOD / 2).await;
        assert_eq!(written(&world).await, 0, "it is looked at together with what comes closely after it");
        tokio::time::sleep(PERIOD).await;
        assert_eq!(written(&world).await, 1);
    }
}
