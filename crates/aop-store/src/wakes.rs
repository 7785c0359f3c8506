//! Who is woken by what. Every commit is told to whoever follows all of them, and to those who wait for a feature that it
//! touches: a thousand waits cost a commit on one of them one wake, and not a thousand.
//!
//! A commit of this process says itself what it touched. Others have to be looked up, so the number is kept up to which
//! everybody has been told. A commit of ours that comes right behind one of theirs does not move it past theirs.

use aop_kernel::ids::FeatureId;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// So many events behind, everybody is woken: looking up what they touched could take longer than that.
const FAR: u64 = 10_000;

/// Below so many waits nothing is cleared away.
const ROOM: usize = 64;

/// Announces the commits of one store.
pub(crate) struct Wakes {
    last: watch::Sender<u64>,
    waits: Mutex<Waits>,
}

/// Those who wait, by feature.
struct Waits {
    features: HashMap<String, watch::Sender<()>>,
    /// With so many of them it is time to look for those that nobody waits for any more.
    room: usize,
    /// Nobody waits for anything that happened up to this event.
    told: u64,
}

impl Waits {
    /// Whether nobody waits for anything; there may be features left that somebody waited for.
    fn are_over(&self) -> bool {
        self.features.values().all(|wait| wait.receiver_count() == 0)
    }

    fn wake(&mut self, feature: &str) {
        if self.features.get(feature).is_some_and(|wait| wait.send(()).is_err()) {
            // Nobody is left who waits for it.
            self.features.remove(feature);
        }
    }

    fn wake_all(&mut self) {
        self.features.retain(|_, wait| wait.send(()).is_ok());
    }
}

impl Wakes {
    /// For a store whose last event is this one.
    pub(crate) fn new(last: u64) -> Self {
        let waits = Waits { features: HashMap::new(), room: ROOM, told: last };
        Wakes { last: watch::Sender::new(last), waits: Mutex::new(waits) }
    }

    /// Changes after every commit from now on.
    pub(crate) fn all(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }

    /// Changes after every commit from now on that touches the feature.
    pub(crate) fn of(&self, feature: &FeatureId) -> watch::Receiver<()> {
        let mut waits = self.waits();
        if waits.features.len() >= waits.room {
            waits.features.retain(|_, wait| wait.receiver_count() > 0);
            waits.room = ROOM.max(2 * waits.features.len());
        }
        waits.features.entry(feature.to_string()).or_insert_with(|| watch::Sender::new(())).subscribe()
    }

    /// The last event that was announced.
    pub(crate) fn last(&self) -> u64 {
        *self.last.borrow()
    }

    /// Whether anybody would hear of a commit.
    pub(crate) fn are_wanted(&self) -> bool {
        self.last.receiver_count() > 0 || !self.waits().are_over()
    }

    /// Announces a commit of this process: the last event before it, its own last, and the features between the two.
    pub(crate) fn committed<'a>(&self, before: u64, last: u64, features: impl IntoIterator<Item = &'a str>) {
        let mut waits = self.waits();
        if !waits.features.is_empty() {
            features.into_iter().for_each(|feature| waits.wake(feature));
        }
        if waits.features.is_empty() || before <= waits.told {
            waits.told = waits.told.max(last);
        }
        drop(waits);
        self.raise(last);
    }

    /// Tells those who follow everything that this event is there.
    pub(crate) fn raise(&self, seq: u64) {
        self.last.send_if_modified(|last| {
            let grown = seq > *last;
            *last = seq.max(*last);
            grown
        });
    }

    /// The event after which features have to be looked up, if anybody may wait for what was announced since.
    pub(crate) fn behind(&self) -> Option<u64> {
        let mut waits = self.waits();
        let last = self.last();
        if waits.are_over() || last.saturating_sub(waits.told) > FAR {
            waits.wake_all();
            waits.told = waits.told.max(last);
        }
        (waits.told < last).then_some(waits.told)
    }

    /// Wakes those who wait for what was looked up: the features with events after [`Self::behind`], up to this one.
    pub(crate) fn found<'a>(&self, features: impl IntoIterator<Item = &'a str>, last: u64) {
        let mut waits = self.waits();
        features.into_iter().for_each(|feature| waits.wake(feature));
        waits.told = waits.told.max(last);
        drop(waits);
        self.raise(last);
    }

    /// Wakes everybody who waits for a feature: it cannot be known which were touched. Each looks for itself and
    /// reports what it finds.
    pub(crate) fn wake_all(&self) {
        self.waits().wake_all();
    }

    fn waits(&self) -> MutexGuard<'_, Waits> {
        // A map of senders is whole after any panic.
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> FeatureId {
        FeatureId::parse(name).unwrap()
    }

    /// Whether it was woken since it was asked last.
    fn woken(wait: &mut watch::Receiver<()>) -> bool {
        let woken = wait.has_changed().unwrap();
        wait.mark_unchanged();
        woken
    }

    #[test]
    fn a_commit_wakes_those_who_wait_for_its_features_and_nobody_else() {
        let wakes = Wakes::new(4);
        let (mut a, mut also_a, mut b) = (wakes.of(&id("a")), wakes.of(&id("a")), wakes.of(&id("b")));
        let all = wakes.all();
        wakes.committed(4, 6, ["a", "c"]);
        assert!(woken(&mut a) && woken(&mut also_a) && !woken(&mut b));
        assert_eq!((*all.borrow(), wakes.behind()), (6, None));
    }

    #[test]
    fn what_others_committed_before_our_own_is_still_to_be_looked_up() {
        let wakes = Wakes::new(4);
        let (mut theirs, mut ours) = (wakes.of(&id("theirs")), wakes.of(&id("ours")));
        wakes.committed(5, 6, ["ours"]);
        assert!(woken(&mut ours) && !woken(&mut theirs));
        assert_eq!(wakes.behind(), Some(4));
        wakes.committed(6, 7, ["ours"]);
        assert_eq!(wakes.behind(), Some(4));
        wakes.found(["theirs", "ours"], 7);
        assert!(woken(&mut theirs));
        assert_eq!(wakes.behind(), None);
        wakes.committed(7, 8, ["ours"]);
        assert_eq!(wakes.behind(), None);
    }

    #[test]
    fn a_look_that_was_overtaken_by_a_commit_takes_nothing_back() {
        let wakes = Wakes::new(4);
        let _wait = wakes.of(&id("a"));
        wakes.raise(5);
        assert_eq!(wakes.behind(), Some(4));
        wakes.found(["a"], 6);
        wakes.committed(5, 6, ["a"]);
        wakes.found(["a"], 5);
        assert_eq!((wakes.last(), wakes.behind()), (6, None));
    }

    #[test]
    fn nothing_is_looked_up_while_nobody_waits_for_a_feature() {
        let wakes = Wakes::new(0);
        wakes.committed(7, 8, ["a"]);
        wakes.raise(9);
        assert_eq!(wakes.behind(), None);
        assert!(!wakes.are_wanted());
        drop(wakes.of(&id("a")));
        wakes.raise(10);
        assert_eq!(wakes.behind(), None);
        assert!(!wakes.are_wanted());
        let mut wait = wakes.of(&id("a"));
        assert_eq!(wakes.behind(), None);
        assert!(!woken(&mut wait));
    }

    #[test]
    fn far_behind_everybody_is_woken_instead() {
        let wakes = Wakes::new(0);
        let mut wait = wakes.of(&id("a"));
        wakes.raise(FAR + 1);
        assert_eq!(wakes.behind(), None);
        assert!(woken(&mut wait));
    }

    #[test]
    fn features_that_nobody_waits_for_any_more_are_cleared_away() {
        let wakes = Wakes::new(0);
        let kept = wakes.of(&id("kept"));
        for number in 0..10_000 {
            drop(wakes.of(&id(&format!("f{number}"))));
        }
        assert!(wakes.waits().features.len() <= ROOM);
        assert!(wakes.waits().features.contains_key("kept"));
        drop(kept);
        wakes.committed(0, 1, ["kept"]);
        assert!(!wakes.waits().features.contains_key("kept"));
    }
}
