//! Leases and claims: who may do something, fenced by an epoch that only grows.

use super::batch::Batch;
use super::connect::PROJECT;
use crate::error::StoreError;
use crate::port::{Claim, ClaimState, Lease};

impl Batch<'_> {
    /// Takes or renews a lease; the epoch grows when the holder changes or the lease had run out.
    pub(super) fn acquire_lease(
        &mut self,
        name: &str,
        holder: &str,
        ttl_ms: u64,
    ) -> Result<Option<Lease>, StoreError> {
        let found = self.first(
            "SELECT holder, epoch, expires_at FROM leases WHERE project = ?1 AND name = ?2",
            (PROJECT, name),
            |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)),
        )?;
        let epoch = match found {
            None => self.now.as_millis(),
            Some((_, epoch, until)) if until <= self.now.as_millis() => self.now.as_millis().max(epoch + 1),
            Some((owner, epoch, _)) if owner == holder => epoch,
            Some(_) => return Ok(None),
        };
        let expires_at = self.now.plus_millis(ttl_ms);
        self.execute(
            "INSERT INTO leases (project, name, holder, epoch, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (project, name) DO UPDATE SET holder = ?3, epoch = ?4, expires_at = ?5",
            (PROJECT, name, holder, epoch, expires_at.as_millis()),
        )?;
        Ok(Some(Lease { epoch: epoch.unsigned_abs(), expires_at }))
    }

    /// Gives a lease back; the row stays, because the epoch must go on growing.
    pub(super) fn release_lease(&mut self, name: &str, epoch: u64) -> Result<(), StoreError> {
        self.execute(
            "UPDATE leases SET expires_at = 0 WHERE project = ?1 AND name = ?2 AND epoch = ?3",
            (PROJECT, name, epoch.cast_signed()),
        )?;
        Ok(())
    }

    /// Claims a subject, or shows who has it.
    pub(super) fn claim(&mut self, subject: &str, holder: &str, epoch: u64) -> Result<Claim, StoreError> {
        self.execute(
            "INSERT INTO claims (project, subject, holder, epoch, state, updated_at) VALUES (?1, ?2, ?3, ?4, 'claimed', ?5)
             ON CONFLICT (project, subject) DO UPDATE SET holder = ?3, epoch = ?4, updated_at = ?5
             WHERE state <> 'delivered' AND epoch < ?4",
            (PROJECT, subject, holder, epoch.cast_signed(), self.now.as_millis()),
        )?;
        let found = self.first(
            "SELECT holder, epoch, state FROM claims WHERE project = ?1 AND subject = ?2",
            (PROJECT, subject),
            |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?.unsigned_abs(), row.get::<_, String>(2)?))
            },
        )?;
        let claim = found.and_then(|(holder, epoch, state)| {
            Some(Claim { holder, epoch, state: ClaimState::parse(&state)? })
        });
        claim.ok_or_else(|| StoreError::Damaged {
            place: format!("claim {subject}"),
            cause: "unknown state".into(),
        })
    }

    /// Moves a claim forward; never backwards, and never under an older epoch.
    pub(super) fn advance_claim(
        &mut self,
        subject: &str,
        epoch: u64,
        state: ClaimState,
    ) -> Result<bool, StoreError> {
        let held: Option<String> = self.first(
            "SELECT state FROM claims WHERE project = ?1 AND subject = ?2 AND epoch = ?3 AND state <> 'delivered'",
            (PROJECT, subject, epoch.cast_signed()),
            |row| row.get(0),
        )?;
        if held.and_then(|name| ClaimState::parse(&name)).is_none_or(|now| now > state) {
            return Ok(false);
        }
        self.execute(
            "UPDATE claims SET state = ?3, updated_at = ?4 WHERE project = ?1 AND subject = ?2",
            (PROJECT, subject, state.as_str(), self.now.as_millis()),
        )?;
        Ok(true)
    }
}
