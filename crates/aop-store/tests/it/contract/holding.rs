//! Leases and claims: one holder at a time, and an epoch that keeps a former one out.

use crate::support::{World, on_every_backend};
use aop_store::ClaimState;

on_every_backend!(
    a_lease_has_one_holder_until_it_runs_out,
    a_lease_that_was_given_back_is_free_and_its_epoch_goes_on,
    a_lease_of_another_name_begins_above_those_that_were_taken_before,
    a_claim_is_taken_once,
    a_claim_goes_to_a_higher_epoch_and_the_former_holder_is_fenced_off,
    a_delivered_claim_is_never_taken_again,
    a_claim_only_moves_forward,
    what_is_delivered_at_once_is_delivered_once,
);

async fn a_lease_has_one_holder_until_it_runs_out(w: &World) {
    let take = async |holder: &str| w.store.acquire_lease("run".into(), holder.into(), 1_000).await.unwrap();
    let first = take("one").await.unwrap();
    assert_eq!(take("two").await, None);
    w.later(999);
    let renewed = take("one").await.unwrap();
    assert_eq!(renewed.epoch, first.epoch, "a renewal is the same holding");
    assert!(renewed.expires_at > first.expires_at);
    w.later(999);
    assert_eq!(take("two").await, None);
    w.later(1);
    let taken = take("two").await.unwrap();
    assert!(taken.epoch > renewed.epoch);
    assert_eq!(take("one").await, None);
    assert!(w.store.acquire_lease("other".into(), "one".into(), 1).await.unwrap().is_some());
}

async fn a_lease_that_was_given_back_is_free_and_its_epoch_goes_on(w: &World) {
    let take = async |holder: &str| w.store.acquire_lease("run".into(), holder.into(), 1_000).await.unwrap();
    let first = take("one").await.unwrap();
    w.store.release_lease("run".into(), first.epoch).await.unwrap();
    let second = take("two").await.unwrap();
    assert!(second.epoch > first.epoch);
    w.store.release_lease("run".into(), first.epoch).await.unwrap();
    assert_eq!(take("one").await, None, "a former holder gives nothing back");
}

async fn a_lease_of_another_name_begins_above_those_that_were_taken_before(w: &World) {
    let take =
        async |name: &str| w.store.acquire_lease(name.into(), "one".into(), 1_000).await.unwrap().unwrap();
    let mut last = take("run").await.epoch;
    for name in ["run/a", "run", "run/b", "run/a"] {
        w.later(1_000);
        let next = take(name).await.epoch;
        assert!(next > last, "{name}");
        last = next;
    }
}

async fn a_claim_is_taken_once(w: &World) {
    let claim =
        async |holder: &str, epoch| w.store.claim("answer:q".into(), holder.into(), epoch).await.unwrap();
    let first = claim("one", 3).await;
    assert_eq!((first.holder.as_str(), first.epoch, first.state), ("one", 3, ClaimState::Claimed));
    assert_eq!(claim("two", 3).await, first, "the same epoch takes nothing over");
    assert_eq!(claim("two", 2).await, first, "nor does a lower one");
    assert_eq!(claim("one", 3).await, first, "asking again is no second claim");
}

async fn a_claim_goes_to_a_higher_epoch_and_the_former_holder_is_fenced_off(w: &World) {
    let subject = || "turn:a".to_owned();
    w.store.claim(subject(), "one".into(), 1).await.unwrap();
    assert!(w.store.advance_claim(subject(), 1, ClaimState::Spawned).await.unwrap());
    let taken = w.store.claim(subject(), "two".into(), 2).await.unwrap();
    assert_eq!((taken.holder.as_str(), taken.epoch), ("two", 2));
    assert_eq!(taken.state, ClaimState::Spawned, "how far it had come is not forgotten");
    assert!(!w.store.advance_claim(subject(), 1, ClaimState::Delivered).await.unwrap());
    assert!(w.store.advance_claim(subject(), 2, ClaimState::Delivered).await.unwrap());
    assert!(!w.store.advance_claim("turn:b".into(), 1, ClaimState::Spawned).await.unwrap());
}

async fn a_delivered_claim_is_never_taken_again(w: &World) {
    let subject = || "turn:a".to_owned();
    w.store.claim(subject(), "one".into(), 1).await.unwrap();
    w.store.advance_claim(subject(), 1, ClaimState::Delivered).await.unwrap();
    let claim = w.store.claim(subject(), "two".into(), 9).await.unwrap();
    assert_eq!((claim.holder.as_str(), claim.state), ("one", ClaimState::Delivered));
    assert!(!w.store.advance_claim(subject(), 9, ClaimState::Claimed).await.unwrap());
}

async fn a_claim_only_moves_forward(w: &World) {
    let subject = || "turn:a".to_owned();
    w.store.claim(subject(), "one".into(), 1).await.unwrap();
    assert!(w.store.advance_claim(subject(), 1, ClaimState::Spawned).await.unwrap());
    assert!(w.store.advance_claim(subject(), 1, ClaimState::Spawned).await.unwrap(), "still held");
    assert!(!w.store.advance_claim(subject(), 1, ClaimState::Claimed).await.unwrap());
    let claim = w.store.claim(subject(), "one".into(), 1).await.unwrap();
    assert_eq!(claim.state, ClaimState::Spawned);
}

async fn what_is_delivered_at_once_is_delivered_once(w: &World) {
    let deliver =
        async |subject: &str, epoch| w.store.deliver(subject.into(), "one".into(), epoch).await.unwrap();
    assert!(deliver("told:a", 1).await);
    assert!(!deliver("told:a", 1).await);
    assert!(!deliver("told:a", 2).await, "not under a higher epoch either");
    w.store.claim("told:b".into(), "two".into(), 2).await.unwrap();
    assert!(!deliver("told:b", 1).await, "it has gone to a higher epoch");
    let claim = w.store.claim("told:b".into(), "two".into(), 2).await.unwrap();
    assert_eq!((claim.holder.as_str(), claim.state), ("two", ClaimState::Claimed));
    assert!(deliver("told:b", 2).await);
}
