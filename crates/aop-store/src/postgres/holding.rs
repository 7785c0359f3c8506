//! Leases, claims, documents and the erasure of secrets: one statement each, in the database's own clock. They
//! need no place in the log, so they do not wait for its counter. When a connection breaks over one of them it is
//! said again; what the first attempt may have done is then found and recognised.

use super::link::Failure;
use super::{Inside, TimeSource};
use crate::error::StoreError;
use crate::port::{Claim, ClaimState, Lease};
use crate::rows::parse;
use crate::shelf::{Expect, Shelf};
use aop_kernel::ids::QuestionId;
use aop_kernel::time::Timestamp;
use deadpool_postgres::Object;
use serde_json::Value;
use tokio_postgres::types::ToSql;

/// The time now: the clock's, but never earlier than the last commit's. `$1` is the project, `$2` a clock that
/// stands in for the database's.
const NOW: &str = "greatest((SELECT last_at FROM projects WHERE project = $1),
    coalesce($2, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint))";

impl Inside {
    /// The clock that stands in for the database's, in tests.
    fn given(&self) -> Option<i64> {
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
        let sql = "WITH moment AS (
                UPDATE projects SET last_at = greatest(last_at,
                    coalesce($2, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint))
                WHERE project = $1 RETURNING last_at AS now)
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

    pub(super) async fn documents(
        &self,
        shelf: Shelf,
        prefix: &str,
    ) -> Result<Vec<(String, Value)>, StoreError> {
        let sql = "SELECT key, value FROM documents
                   WHERE project = $1 AND shelf = $2 AND key >= $3 AND starts_with(key, $3) ORDER BY key";
        let rows = self.said(sql, &[&self.project, &shelf.as_str(), &prefix]).await?;
        rows.iter().map(|row| document(shelf, row.get(0), row.get(1))).collect()
    }

    pub(super) async fn document(&self, shelf: Shelf, key: &str) -> Result<Option<Value>, StoreError> {
        let sql = "SELECT value FROM documents WHERE project = $1 AND shelf = $2 AND key = $3";
        let rows = self.said(sql, &[&self.project, &shelf.as_str(), &key]).await?;
        rows.first().map(|row| Ok(document(shelf, key.into(), row.get(0))?.1)).transpose()
    }

    pub(super) async fn place(
        &self,
        shelf: Shelf,
        key: &str,
        value: Option<&Value>,
        expect: &Expect,
    ) -> Result<bool, StoreError> {
        let text = value.map(Value::to_string);
        self.link
            .patiently(async |connection, doubt| {
                let slot = Slot { inside: self, connection: &connection, shelf, key };
                let placed = slot.place(text.as_deref(), expect).await?;
                // In doubt, what stands as it was to be placed is what the first attempt placed.
                let stands = async || -> Result<bool, Failure> { Ok(slot.current().await? == text) };
                Ok(placed || (doubt && !matches!(expect, Expect::Lease { .. }) && stands().await?))
            })
            .await
    }

    /// One statement that may be said twice without harm.
    async fn said(
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

/// The place of one document.
struct Slot<'a> {
    inside: &'a Inside,
    connection: &'a Object,
    shelf: Shelf,
    key: &'a str,
}

impl Slot<'_> {
    async fn place(&self, text: Option<&str>, expect: &Expect) -> Result<bool, Failure> {
        match (expect, text) {
            (Expect::Anything, Some(text)) => {
                let sql = "INSERT INTO documents (project, shelf, key, value) VALUES ($1, $2, $3, $4)
                           ON CONFLICT (project, shelf, key) DO UPDATE SET value = excluded.value";
                self.run(sql, &[&text]).await?;
                Ok(true)
            }
            (Expect::Anything, None) => {
                self.run("DELETE FROM documents WHERE project = $1 AND shelf = $2 AND key = $3", &[]).await?;
                Ok(true)
            }
            (Expect::Absent, Some(text)) => {
                let sql = "INSERT INTO documents (project, shelf, key, value) VALUES ($1, $2, $3, $4)
                           ON CONFLICT (project, shelf, key) DO NOTHING";
                Ok(self.run(sql, &[&text]).await? == 1)
            }
            (Expect::Absent, None) => Ok(self.current().await?.is_none()),
            (Expect::Value(expected), text) => self.swap(text, expected).await,
            (Expect::Lease { name, epoch }, text) => self.under_lease(text, name, *epoch).await,
        }
    }

    /// Replaces a value if it is the expected one at that moment. Equal values may be written differently, so the
    /// text that was read is what the statement compares.
    async fn swap(&self, text: Option<&str>, expected: &Value) -> Result<bool, Failure> {
        loop {
            let Some(current) = self.current().await? else { return Ok(false) };
            let parsed: Value = parse(&format!("document {} {}", self.shelf.as_str(), self.key), &current)?;
            if parsed != *expected {
                return Ok(false);
            }
            let changed = match text {
                Some(text) => {
                    let sql = "UPDATE documents SET value = $5
                               WHERE project = $1 AND shelf = $2 AND key = $3 AND value = $4";
                    self.run(sql, &[&current, &text]).await?
                }
                None => {
                    let sql =
                        "DELETE FROM documents WHERE project = $1 AND shelf = $2 AND key = $3 AND value = $4";
                    self.run(sql, &[&current]).await?
                }
            };
            if changed == 1 {
                return Ok(true);
            }
        }
    }

    /// Writes only while the lease is held under this epoch. The lease's row is locked by the same statement, so
    /// that nobody can take it over between the look and the write.
    async fn under_lease(&self, text: Option<&str>, name: &str, epoch: u64) -> Result<bool, Failure> {
        let now = NOW.replace("$2", "$6");
        let held = format!(
            "WITH held AS MATERIALIZED (SELECT 1 FROM leases
                 WHERE project = $1 AND name = $4 AND epoch = $5 AND expires_at > {now} FOR SHARE)"
        );
        let (epoch, given) = (epoch.cast_signed(), self.inside.given());
        match text {
            Some(text) => {
                let sql = format!(
                    "{held} INSERT INTO documents (project, shelf, key, value) SELECT $1, $2, $3, $7 FROM held
                     ON CONFLICT (project, shelf, key) DO UPDATE SET value = excluded.value"
                );
                Ok(self.run(&sql, &[&name, &epoch, &given, &text]).await? == 1)
            }
            None => {
                let sql = format!(
                    "{held}, gone AS (DELETE FROM documents USING held
                         WHERE project = $1 AND shelf = $2 AND key = $3 RETURNING 1)
                     SELECT (SELECT count(*) FROM gone), count(*) FROM held HAVING count(*) = 1"
                );
                Ok(self.run(&sql, &[&name, &epoch, &given]).await? == 1)
            }
        }
    }

    async fn current(&self) -> Result<Option<String>, Failure> {
        let sql = "SELECT value FROM documents WHERE project = $1 AND shelf = $2 AND key = $3";
        let statement = self.connection.prepare_cached(sql).await?;
        let (project, shelf) = (self.inside.project, self.shelf.as_str());
        Ok(self.connection.query_opt_scalar(&statement, &[&project, &shelf, &self.key]).await?)
    }

    /// Runs a statement whose first parameters are project, shelf and key; how many rows it touched.
    async fn run(&self, sql: &str, more: &[&(dyn ToSql + Sync)]) -> Result<u64, Failure> {
        let statement = self.connection.prepare_cached(sql).await?;
        let shelf = self.shelf.as_str();
        let mut params: Vec<&(dyn ToSql + Sync)> = vec![&self.inside.project, &shelf, &self.key];
        params.extend(more);
        Ok(self.connection.execute(&statement, &params).await?)
    }
}

fn document(shelf: Shelf, key: String, text: &str) -> Result<(String, Value), StoreError> {
    let value = parse(&format!("document {} {key}", shelf.as_str()), text)?;
    Ok((key, value))
}
