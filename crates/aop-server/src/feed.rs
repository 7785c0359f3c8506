//! The project's events for those who follow them. While anybody does, one task reads each event once and keeps the last
//! ones at hand; whoever is further behind reads from the store. Nobody who follows holds up anybody, and nobody misses an
//! event.

use aop_kernel::Refusal;
use aop_kernel::event::Recorded;
use aop_kernel::ids::FeatureId;
use aop_store::{EventPage, Store};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// So many are kept at hand …
const KEPT: usize = 1_024;
/// … or so many bytes of them.
const KEPT_BYTES: usize = 8 * 1024 * 1024;
/// So many are read or handed out at once …
const PAGE: usize = 256;
/// … or so many bytes of them: a client that does not read keeps what it was handed.
const PAGE_BYTES: usize = 1024 * 1024;
/// So many are read for one who is behind, however long they are.
const BEHIND: usize = 32;
/// A store that cannot be read is tried again after this.
const RETRY: Duration = Duration::from_millis(500);

/// One event as it is sent.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    /// Its number.
    pub(crate) seq: u64,
    /// Whose it is.
    pub(crate) feature: FeatureId,
    /// The event as JSON.
    pub(crate) json: Arc<str>,
}

impl Item {
    fn new(recorded: &Recorded) -> Self {
        let json = serde_json::to_string(recorded)
            .unwrap_or_else(|error| unreachable!("an event is always serializable: {error}"));
        Item { seq: recorded.seq, feature: recorded.stamped.feature_id.clone(), json: json.into() }
    }
}

/// The events of a project, as they come.
#[derive(Clone)]
pub(crate) struct Feed {
    store: Arc<dyn Store>,
    kept: Arc<Mutex<Kept>>,
    /// The last event that followers were told of. Whoever follows has a receiver of it, and nobody else.
    last: Arc<watch::Sender<u64>>,
}

#[derive(Default)]
struct Kept {
    items: VecDeque<Item>,
    bytes: usize,
}

impl Kept {
    fn push(&mut self, item: Item) {
        self.bytes += item.json.len();
        self.items.push_back(item);
        while self.items.len() > KEPT || (self.bytes > KEPT_BYTES && self.items.len() > 1) {
            self.bytes -= self.items.pop_front().map_or(0, |oldest| oldest.json.len());
        }
    }

    /// Those after this one, if all of them are at hand.
    fn after(&self, seq: u64) -> Option<Vec<Item>> {
        let first = self.items.front()?.seq;
        let skipped = usize::try_from((seq + 1).checked_sub(first)?).ok()?;
        Some(one_page(self.items.iter().skip(skipped).cloned()))
    }
}

impl Feed {
    /// Starts the task. It ends with the store or the runtime.
    pub(crate) async fn start(store: Arc<dyn Store>) -> Result<Self, Refusal> {
        let mut changes = store.changes();
        let mut seen = store.last().await?;
        let feed = Feed { store, kept: Arc::default(), last: Arc::new(watch::Sender::new(seen)) };
        let (store, kept, last) =
            (Arc::clone(&feed.store), Arc::clone(&feed.kept), Arc::downgrade(&feed.last));
        tokio::spawn(async move {
            while changes.changed().await.is_ok() {
                let newest = *changes.borrow_and_update();
                loop {
                    // Nobody can follow any more.
                    let Some(last) = last.upgrade() else { return };
                    if last.receiver_count() == 0 {
                        // Whoever comes now reads from the store what was passed over.
                        *lock(&kept) = Kept::default();
                        seen = seen.max(newest);
                        last.send_replace(seen);
                        break;
                    }
                    let page = EventPage { after: seen, feature: None, limit: PAGE };
                    let Ok(events) = store.events(page).await else {
                        tokio::time::sleep(RETRY).await;
                        continue;
                    };
                    let Some(newest) = events.last().map(|event| event.seq) else { break };
                    let items: Vec<Item> = events.iter().map(Item::new).collect();
                    items.into_iter().for_each(|item| lock(&kept).push(item));
                    seen = newest;
                    last.send_replace(seen);
                }
            }
        });
        Ok(feed)
    }

    /// The number of the last event.
    pub(crate) fn last(&self) -> u64 {
        *self.last.borrow()
    }

    /// Changes with every new event.
    pub(crate) fn news(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }

    /// The next events after this one, in order; none when there are none yet.
    pub(crate) async fn after(&self, seq: u64) -> Result<Vec<Item>, Refusal> {
        if seq >= self.last() {
            return Ok(Vec::new());
        }
        if let Some(items) = lock(&self.kept).after(seq) {
            return Ok(items);
        }
        let page = EventPage { after: seq, feature: None, limit: BEHIND };
        Ok(one_page(self.store.events(page).await?.iter().map(Item::new)))
    }
}

/// As many of them as are handed out at once: one at least.
fn one_page(items: impl Iterator<Item = Item>) -> Vec<Item> {
    let mut bytes = 0;
    let fits = |item: &Item| {
        let is_first = bytes == 0;
        bytes += item.json.len();
        is_first || bytes <= PAGE_BYTES
    };
    items.take(PAGE).take_while(fits).collect()
}

fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    // A list of events is whole after any panic.
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::fixture::World;

    /// All that was committed has come here, and everybody has had a turn.
    async fn settled(world: &World, feed: &Feed) {
        let last = world.service.store.last().await.unwrap();
        while feed.last() < last {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn what_nobody_follows_is_not_read_and_whoever_comes_then_misses_nothing() {
        let world = World::new().await;
        let feed = Feed::start(Arc::clone(&world.service.store)).await.unwrap();
        let start = feed.last();
        world.feature("alone", "Alone").await;
        settled(&world, &feed).await;
        assert!(lock(&feed.kept).items.is_empty());
        let numbers =
            async |seq| -> Vec<u64> { feed.after(seq).await.unwrap().iter().map(|item| item.seq).collect() };
        let news = feed.news();
        world.feature("followed", "Followed").await;
        settled(&world, &feed).await;
        let last = feed.last();
        assert!(!lock(&feed.kept).items.is_empty());
        assert_eq!(numbers(start).await, (start + 1..=last).collect::<Vec<_>>());
        drop(news);
        world.feature("alone-again", "Alone again").await;
        settled(&world, &feed).await;
        assert!(lock(&feed.kept).items.is_empty());
        let _news = feed.news();
        world.feature("followed-again", "Followed again").await;
        settled(&world, &feed).await;
        assert_eq!(numbers(last).await, (last + 1..=feed.last()).collect::<Vec<_>>());
    }

    fn item(seq: u64) -> Item {
        Item { seq, feature: FeatureId::parse("shop").unwrap(), json: "{}".into() }
    }

    #[test]
    fn what_is_not_wholly_at_hand_is_left_to_the_store() {
        let mut kept = Kept::default();
        assert!(kept.after(0).is_none());
        (5..10).for_each(|seq| kept.push(item(seq)));
        let numbers =
            |seq| kept.after(seq).map(|items| items.iter().map(|item| item.seq).collect::<Vec<_>>());
        assert_eq!(numbers(3), None);
        assert_eq!(numbers(4), Some(vec![5, 6, 7, 8, 9]));
        assert_eq!(numbers(8), Some(vec![9]));
        assert_eq!(numbers(9), Some(vec![]));
    }

    #[test]
    fn a_page_is_bounded_in_bytes_and_has_one_event_at_least() {
        let mut kept = Kept::default();
        let long: Arc<str> = "x".repeat(PAGE_BYTES / 3).into();
        (1..=9).for_each(|seq| kept.push(Item { json: Arc::clone(&long), ..item(seq) }));
        assert_eq!(kept.after(0).unwrap().len(), 3);
        assert_eq!(kept.after(8).unwrap().len(), 1);
        kept.push(Item { json: "x".repeat(2 * PAGE_BYTES).into(), ..item(10) });
        assert_eq!(kept.after(9).unwrap().len(), 1);
    }

    #[test]
    fn what_is_at_hand_does_not_grow_without_end() {
        let mut kept = Kept::default();
        (1..=5_000).for_each(|seq| kept.push(item(seq)));
        assert_eq!((kept.items.len(), kept.bytes), (KEPT, KEPT * 2));
        let long: Arc<str> = "x".repeat(KEPT_BYTES).into();
        kept.push(Item { json: long, ..item(5_001) });
        assert_eq!(kept.items.len(), 1);
    }
}
