//! Documents. Whoever writes one takes its lock in a first flight and says what to write in the second. An attempt
//! whose connection broke holds the lock until the server is done with it: the next attempt waits for that, finds by
//! the stamp what became of it, and cannot be overtaken by it later.

use super::Inside;
use super::holding::NOW;
use super::link::Failure;
use crate::error::StoreError;
use crate::rows::parse;
use crate::shelf::{Expect, Shelf};
use deadpool_postgres::Object;
use serde_json::Value;
use tokio_postgres::types::ToSql;
use ulid::Ulid;

const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended($2 || '/' || $3, $1))";
const LOOK: &str = "SELECT value, stamp FROM documents WHERE project = $1 AND shelf = $2 AND key = $3";

impl Inside {
    pub(super) async fn documents(
        &self,
        shelf: Shelf,
        prefix: &str,
    ) -> Result<Vec<(String, Value)>, StoreError> {
        let sql = "SELECT key, value FROM documents
                   WHERE project = $1 AND shelf = $2 AND key >= $3 AND starts_with(key, $3) ORDER BY key";
        let rows = self.said(sql, &[&self.project, &shelf.as_str(), &prefix]).await?;
        rows.iter().map(|row| Ok((row.get(0), document(shelf, row.get(0), row.get(1))?))).collect()
    }

    pub(super) async fn document(&self, shelf: Shelf, key: &str) -> Result<Option<Value>, StoreError> {
        let rows = self.said(LOOK, &[&self.project, &shelf.as_str(), &key]).await?;
        rows.first().map(|row| document(shelf, key, row.get(0))).transpose()
    }

    pub(super) async fn place(
        &self,
        shelf: Shelf,
        key: &str,
        value: Option<&Value>,
        expect: &Expect,
    ) -> Result<bool, StoreError> {
        let text = value.map(Value::to_string);
        let stamp = Ulid::generate().to_string();
        self.link
            .patiently(async |connection, doubt| {
                let slot = Slot { inside: self, connection: &connection, shelf, key };
                let found = slot.look().await.map_err(Failure::before_any_write)?;
                let done = doubt && found.is_from(text.as_deref(), &stamp, expect);
                if done || !found.is_expected(shelf, key, expect)? {
                    connection.batch_execute("ROLLBACK").await?;
                    return Ok(done);
                }
                slot.write(text.as_deref(), &stamp, expect).await
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

/// What stands there.
struct Found(Option<(String, Option<String>)>);

impl Found {
    /// Whether an earlier attempt of this very call left it so. Nothing that is gone carries a stamp: there it is
    /// enough that it is gone.
    fn is_from(&self, text: Option<&str>, stamp: &str, expect: &Expect) -> bool {
        match (&self.0, text) {
            (Some((_, found)), Some(_)) => found.as_deref() == Some(stamp),
            (None, None) => !matches!(expect, Expect::Lease { .. }),
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    /// Whether what is expected of the document holds. A lease is looked at with the write.
    fn is_expected(&self, shelf: Shelf, key: &str, expect: &Expect) -> Result<bool, StoreError> {
        match (expect, &self.0) {
            (Expect::Anything | Expect::Lease { .. }, _) => Ok(true),
            (Expect::Absent, found) => Ok(found.is_none()),
            (Expect::Value(_), None) => Ok(false),
            (Expect::Value(expected), Some((text, _))) => Ok(document(shelf, key, text)? == *expected),
        }
    }
}

impl Slot<'_> {
    /// The first flight: begin, lock, look.
    async fn look(&self) -> Result<Found, Failure> {
        let connection = self.connection;
        let (lock, look) = (connection.prepare_cached(LOCK).await?, connection.prepare_cached(LOOK).await?);
        let shelf = self.shelf.as_str();
        let params: [&(dyn ToSql + Sync); 3] = [&self.inside.project, &shelf, &self.key];
        let (begun, locked, found) = tokio::join!(
            connection.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED"),
            connection.execute(&lock, &params),
            connection.query_opt(&look, &params),
        );
        begun?;
        locked?;
        Ok(Found(found?.map(|row| (row.get(0), row.get(1)))))
    }

    /// The second flight: write and commit. `false`, and nothing is written, when a lease is expected and not held.
    /// Its row is locked by the same statement, so that nobody takes it over between the look and the write.
    async fn write(&self, text: Option<&str>, stamp: &str, expect: &Expect) -> Result<bool, Failure> {
        let (name, epoch) = match expect {
            Expect::Lease { name, epoch } => (Some(name.as_str()), epoch.cast_signed()),
            Expect::Anything | Expect::Absent | Expect::Value(_) => (None, 0),
        };
        let change = match text {
            Some(_) => {
                "INSERT INTO documents (project, shelf, key, value, stamp) SELECT $1, $2, $3, $7, $8 FROM allowed
                 ON CONFLICT (project, shelf, key) DO UPDATE SET value = excluded.value, stamp = excluded.stamp"
            }
            None => "DELETE FROM documents USING allowed WHERE project = $1 AND shelf = $2 AND key = $3",
        };
        let now = NOW.replace("$2", "$6");
        let sql = format!(
            "WITH held AS MATERIALIZED (SELECT 1 FROM leases
                 WHERE project = $1 AND name = $4 AND epoch = $5 AND expires_at > {now} FOR SHARE),
             allowed AS MATERIALIZED (SELECT 1 WHERE $4::text IS NULL UNION ALL SELECT 1 FROM held),
             changed AS ({change})
             SELECT count(*) FROM allowed"
        );
        let statement = self.connection.prepare_cached(&sql).await.map_err(before)?;
        let (given, shelf) = (self.inside.given(), self.shelf.as_str());
        let mut params: Vec<&(dyn ToSql + Sync)> =
            vec![&self.inside.project, &shelf, &self.key, &name, &epoch, &given];
        if text.is_some() {
            params.extend([&text as &(dyn ToSql + Sync), &stamp]);
        }
        let (allowed, committed) = tokio::join!(
            self.connection.query_one_scalar(&statement, &params),
            self.connection.batch_execute("COMMIT"),
        );
        let allowed: i64 = allowed?;
        committed.map_err(|error| Failure::Medium { error, in_doubt: true })?;
        Ok(allowed == 1)
    }
}

fn before(error: tokio_postgres::Error) -> Failure {
    Failure::from(error).before_any_write()
}

fn document(shelf: Shelf, key: &str, text: &str) -> Result<Value, StoreError> {
    parse(&format!("document {} {key}", shelf.as_str()), text)
}
