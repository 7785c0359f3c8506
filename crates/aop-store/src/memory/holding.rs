//! Leases, claims and documents of the reference store.

use super::state::State;
use crate::port::{Claim, ClaimState, Lease};
use crate::shelf::{Expect, Shelf};
use aop_kernel::time::Timestamp;
use serde_json::Value;

impl State {
    pub(super) fn acquire_lease(
        &mut self,
        name: String,
        holder: String,
        ttl_ms: u64,
        now: Timestamp,
    ) -> Option<Lease> {
        let moment = now.as_millis().unsigned_abs();
        let epoch = match self.leases.get(&name) {
            None => moment,
            Some((_, lease)) if lease.expires_at <= now => moment.max(lease.epoch + 1),
            Some((owner, lease)) if *owner == holder => lease.epoch,
            Some(_) => return None,
        };
        let lease = Lease { epoch, expires_at: now.plus_millis(ttl_ms) };
        self.leases.insert(name, (holder, lease));
        self.writes += 1;
        Some(lease)
    }

    pub(super) fn release_lease(&mut self, name: &str, epoch: u64) {
        if let Some((_, lease)) = self.leases.get_mut(name).filter(|(_, lease)| lease.epoch == epoch) {
            lease.expires_at = Timestamp::from_millis(0);
            self.writes += 1;
        }
    }

    pub(super) fn claim(&mut self, subject: String, holder: String, epoch: u64) -> Claim {
        let claim = match self.claims.get(&subject) {
            None => Claim { holder, epoch, state: ClaimState::Claimed },
            Some(old) if old.state != ClaimState::Delivered && old.epoch < epoch => {
                Claim { holder, epoch, state: old.state }
            }
            Some(old) => return old.clone(),
        };
        self.claims.insert(subject, claim.clone());
        self.writes += 1;
        claim
    }

    pub(super) fn advance_claim(&mut self, subject: &str, epoch: u64, to: ClaimState) -> bool {
        let held = |claim: &&mut Claim| {
            claim.epoch == epoch && claim.state != ClaimState::Delivered && claim.state <= to
        };
        let Some(claim) = self.claims.get_mut(subject).filter(held) else { return false };
        claim.state = to;
        self.writes += 1;
        true
    }

    pub(super) fn documents(&self, shelf: Shelf, prefix: &str) -> Vec<(String, Value)> {
        let here = self.documents.iter().filter(|((on, key), _)| *on == shelf && key.starts_with(prefix));
        here.map(|((_, key), value)| (key.clone(), value.clone())).collect()
    }

    pub(super) fn place(
        &mut self,
        shelf: Shelf,
        key: String,
        value: Option<Value>,
        expect: &Expect,
        now: Timestamp,
    ) -> bool {
        let key = (shelf, key);
        let holds = match expect {
            Expect::Anything => true,
            Expect::Absent => !self.documents.contains_key(&key),
            Expect::Value(value) => self.documents.get(&key) == Some(value),
            Expect::Lease { name, epoch } => self
                .leases
                .get(name)
                .is_some_and(|(_, lease)| lease.epoch == *epoch && lease.expires_at > now),
        };
        if holds {
            match value {
                Some(value) => self.documents.insert(key, value),
                None => self.documents.remove(&key),
            };
            self.writes += 1;
        }
        holds
    }
}
