//! Leases, claims and the erasure of secrets: one statement each, in the database's own clock. They need no place
//! in the log. When a connection breaks over one of them it is said again; what the first attempt may have done is
//! then found and recognised, and should it come late, the epoch refuses it.

use super::{Inside, TimeSource};
use crate::error::StoreError;
use crate::port::{Claim, ClaimState, Lease};
use aop_kernel::ids::QuestionId;
use aop_kernel::time::Timestamp;
use serde_json::Value;
use tokio_postgres::types::ToSql;

/// The time now: the clock's, but never earlier than the last commit's. `$1` is the project, `$2` a clock that
/// stands in for the database's.
pub(super) const NOW: &str = "greatest((SELECT last_at FROM projects WHERE project = $1),
    coalesce($2, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint))";

impl Inside {
    /// The clock that stands in for the database's, in tests.
    pub(super) fn given(&self) -> Option<i64> {
        match &self.time {
            TimeSource::Database => None,
            TimeSource::Given(clock) => Some(clock.now().as_millis()),
        }
    }

    pub(super) async fn acquire_lease(
        &self,
        name: &str,
        holder: &str,
        ttl_ms: u64,
    ) -> Result<Option<Lease>, StoreError> {
        // The time of a lease is time that has been used: should another server with a slower clock take over,
        // it goes on from here, and the lease does not last longer for it.
        // A lease that another holds is passed over: many runners look for one of many features, and those who find
        // it taken write nothing and wait for nobody.
        let sql = "WITH moment AS (
                UPDATE projects SET last_at = greatest(last_at,
                    coalesce($2, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint))
                WHERE project = $1 AND NOT EXISTS (SELECT FROM leases WHERE project = $1 AND name = $3
                    AND holder <> $4 AND expires_at > greatest(last_at,
                        coalesce($2, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)))
                RETURNING last_at AS now)
             INSERT INTO leases (project, name, holder, epoch, expires_at)
             SELECT $1, $3, $4, now, now + $5 FROM moment
             ON CONFLICT (project, name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at,
                 epoch = CASE WHEN leases.expires_at <= excluded.epoch THEN greatest(leases.epoch + 1, excluded.epoch)
                              ELSE leases.epoch END
             WHERE leases.expires_at <= excluded.epoch OR leases.holder = excluded.holder
             RETURNING epoch, expires_at";
        let ttl = i64::try_from(ttl_ms).unwrap_or(i64::MAX / 4).min(i64::MAX / 4);
        let rows = self.said(sql, &[&self.project, &self.given(), &name, &holder, &ttl]).await?;
        Ok(rows.first().map(|row| Lease {
            epoch: row.get::<_, i64>(0).unsigned_abs(),
            expires_at: Timestamp::from_millis(row.get(1)),
        }))
    }

    /// The row stays, because the epoch must go on growing.
    pub(super) async fn release_lease(&self, name: &str, epoch: u64) -> Result<(), StoreError> {
        let sql = "UPDATE leases SET expires_at = 0 WHERE project = $1 AND name = $2 AND epoch = $3";
        self.said(sql, &[&self.project, &name, &epoch.cast_signed()]).await.map(drop)
    }

    pub(super) async fn claim(&self, subject: &str, holder: &str, epoch: u64) -> Result<Claim, StoreError> {
        let take = format!(
            "INSERT INTO claims (project, subject, holder, epoch, state, updated_at)
             VALUES ($1, $3, $4, $5, 'claimed', {NOW})
             ON CONFLICT (project, subject) DO UPDATE
             SET holder = excluded.holder, epoch = excluded.epoch, updated_at = excluded.updated_at
             WHERE claims.state <> 'delivered' AND claims.epoch < excluded.epoch"
        );
        self.said(&take, &[&self.project, &self.given(), &subject, &holder, &epoch.cast_signed()]).await?;
        let look = "SELECT holder, epoch, state FROM claims WHERE project = $1 AND subject = $2";
        let rows = self.said(look, &[&self.project, &subject]).await?;
        let claim = rows.first().and_then(|row| {
            let state = ClaimState::parse(row.get(2))?;
            Some(Claim { holder: row.get(0), epoch: row.get::<_, i64>(1).unsigned_abs(), state })
        });
        claim.ok_or_else(|| StoreError::Damaged {
            place: format!("claim {subject}"),
            cause: "unknown state".into(),
        })
    }

    pub(super) async fn advance_claim(
        &self,
        subject: &str,
        epoch: u64,
        to: ClaimState,
    ) -> Result<bool, StoreError> {
        let sql = format!(
            "UPDATE claims SET state = $5, updated_at = {NOW}
             WHERE project = $1 AND subject = $3 AND epoch = $4 AND state = ANY($6)"
        );
        let all = [ClaimState::Claimed, ClaimState::Spawned];
        let from = |doubt: bool| -> Vec<&'static str> {
            // In doubt, a claim that stands under our epoch where we wanted it is the one we moved.
            let delivered = (doubt && to == ClaimState::Delivered).then_some(to);
            all.into_iter().filter(|state| *state <= to).chain(delivered).map(ClaimState::as_str).collect()
        };
        let (project, given, epoch) = (self.project, self.given(), epoch.cast_signed());
        self.link
            .patiently(async |connection, doubt| {
                let statement = connection.prepare_cached(&sql).await?;
                let from = from(doubt);
                let params: [&(dyn ToSql + Sync); 6] =
                    [&project, &given, &subject, &epoch, &to.as_str(), &from];
                Ok(connection.execute(&statement, &params).await? == 1)
            })
            .await
    }

    pub(super) async fn forget(&self, id: &QuestionId) -> Result<(), StoreError> {
        let sql = "DELETE FROM secrets WHERE project = $1 AND question_id = $2";
        self.said(sql, &[&self.project, &id.as_str()]).await.map(drop)
    }

    pub(super) async fn entrust(&self, id: &QuestionId, answer: &Value) -> Result<(), StoreError> {
        let sql = "INSERT INTO secrets (project, question_id, feature_id, answer)
                   SELECT project, question_id, feature_id, $3 FROM questions WHERE project = $1 AND question_id = $2
                   ON CONFLICT (project, question_id) DO UPDATE SET answer = excluded.answer";
        self.said(sql, &[&self.project, &id.as_str(), &answer.to_string()]).await.map(drop)
    }

    /// One statement that may be said twice without harm.
    pub(super) async fn said(
        &self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<tokio_postgres::Row>, StoreError> {
        self.link
            .patiently(async |connection, _| {
                let statement = connection.prepare_cached(sql).await?;
                Ok(connection.query(&statement, params).await?)
            })
            .await
    }
}
