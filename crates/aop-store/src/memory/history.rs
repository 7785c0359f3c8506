//! The history of the reference store, given away and taken in.

use super::state::State;
use crate::error::StoreError;
use crate::history::{Entries, Entry, Origin, TRAVELLING, Visit, not_empty, out_of_order, stays};
use crate::port::{Claim, Lease};
use aop_kernel::Envelope;
use aop_kernel::time::Timestamp;

impl State {
    pub(super) fn history(&self, mut visit: Visit) -> Result<Origin, StoreError> {
        let events = self.log.iter().map(|recorded| Entry::Event(recorded.clone()));
        let operations = self.operations.iter().map(|(id, (digest, envelope))| Entry::Operation {
            operation_id: id.clone(),
            digest: digest.clone(),
            envelope: envelope.as_str().to_owned(),
        });
        let leases = self
            .leases
            .iter()
            .map(|(name, (_, lease))| Entry::Lease { name: name.clone(), epoch: lease.epoch });
        let claims = self.claims.iter().map(|(subject, claim)| Entry::Claim {
            subject: subject.clone(),
            holder: claim.holder.clone(),
            epoch: claim.epoch,
            state: claim.state,
        });
        let documents = self.documents.iter().filter(|((shelf, _), _)| TRAVELLING.contains(shelf));
        let documents = documents.map(|((shelf, key), value)| Entry::Document {
            shelf: *shelf,
            key: key.clone(),
            value: value.clone(),
        });
        events.chain(operations).chain(leases).chain(claims).chain(documents).try_for_each(&mut visit)?;
        Ok(Origin { project_id: "memory".to_owned(), seq: self.log.len() as u64 })
    }

    pub(super) fn restore(&mut self, entries: Entries) -> Result<u64, StoreError> {
        if !self.log.is_empty() || !self.operations.is_empty() {
            return Err(not_empty(self.log.len() as u64, self.operations.len() as u64));
        }
        let mut restored = State::new();
        restored.last_at = self.last_at;
        for entry in entries {
            restored.take(entry?)?;
        }
        restored.writes += self.writes;
        // What never travels stays where it is.
        restored.leases.extend(std::mem::take(&mut self.leases));
        restored.documents.extend(std::mem::take(&mut self.documents));
        *self = restored;
        Ok(self.log.len() as u64)
    }

    /// Takes one entry of a history.
    fn take(&mut self, entry: Entry) -> Result<(), StoreError> {
        self.writes += 1;
        match entry {
            Entry::Event(recorded) => {
                let next = self.log.len() as u64 + 1;
                if recorded.seq != next {
                    return Err(out_of_order(next, recorded.seq));
                }
                self.last_at = self.last_at.max(recorded.stamped.at);
                let id = recorded.stamped.feature_id.clone();
                self.record(&id, &[recorded.stamped], &[]);
            }
            Entry::Operation { operation_id, digest, envelope } => {
                self.operations.insert(operation_id, (digest, Envelope::from_ledger(envelope)));
            }
            Entry::Lease { name, epoch } => {
                let lease = Lease { epoch, expires_at: Timestamp::from_millis(0) };
                self.leases.insert(name, (String::new(), lease));
            }
            Entry::Claim { subject, holder, epoch, state } => {
                self.claims.insert(subject, Claim { holder, epoch, state });
            }
            Entry::Document { shelf, key, .. } if !TRAVELLING.contains(&shelf) => {
                return Err(stays(shelf, &key));
            }
            Entry::Document { shelf, key, value } => {
                self.documents.insert((shelf, key), value);
            }
        }
        Ok(())
    }
}
