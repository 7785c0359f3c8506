//! The tables: made and brought up to date one process at a time, each step recorded with its checksum; and
//! the row that makes a project a tenant.

use super::link::{Failure, Link, unavailable};
use deadpool_postgres::Object;

/// Every migration in order, by name.
const MIGRATIONS: &[(&str, &str)] = &[
    ("0001_start", include_str!("../../migrations/postgres/0001_start.sql")),
    ("0002_several_replies", include_str!("../../migrations/postgres/0002_several_replies.sql")),
];

/// "aop1": the lock that makes migrating processes a queue.
const LOCK: i64 = 0x616f_7031;

/// What a database looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    /// The migrations it has, in order.
    pub applied: Vec<String>,
    /// Those it lacks.
    pub pending: Vec<String>,
}

/// A checksum that stays the same on every machine and in every version.
fn checksum(sql: &str) -> String {
    // FNV-1a: this guards against a file changed by mistake, not against anybody's intention.
    let hash = sql.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// Looks at the tables; changes nothing. Refuses what a newer version made, or somebody changed.
pub(super) async fn look(link: &Link, connection: &Object) -> Result<Schema, Failure> {
    let options = link.options();
    let encoding: String = connection.query_one_scalar("SHOW server_encoding", &[]).await?;
    if encoding != "UTF8" {
        let cause = format!("the database is encoded as {encoding}");
        return Err(unavailable(options, &cause, "create one with: createdb --encoding UTF8 NAME").into());
    }
    let found: Option<String> =
        connection.query_one_scalar("SELECT to_regclass('aop_migrations')::text", &[]).await?;
    let mut applied = Vec::new();
    if found.is_some() {
        let rows = connection.query("SELECT name, checksum FROM aop_migrations ORDER BY name", &[]).await?;
        for row in rows {
            let (name, sum): (String, String) = (row.get(0), row.get(1));
            match MIGRATIONS.iter().find(|(known, _)| *known == name) {
                None => {
                    let cause = format!("the tables were made by a newer aop (they have {name})");
                    return Err(unavailable(options, &cause, "update aop on this machine").into());
                }
                Some((_, sql)) if checksum(sql) != sum => {
                    let cause = format!("migration {name} was applied in another form than this aop knows");
                    let hint = "use the aop that made these tables, or copy the project to a new database";
                    return Err(unavailable(options, &cause, hint).into());
                }
                Some(_) => applied.push(name),
            }
        }
    }
    let pending = MIGRATIONS.iter().map(|(name, _)| (*name).to_owned());
    let pending = pending.filter(|name| !applied.contains(name)).collect();
    Ok(Schema { applied, pending })
}

/// Brings the tables up to date; what was missing. Processes that do so at once wait for each other.
pub(super) async fn migrate(link: &Link, connection: &Object) -> Result<Vec<String>, Failure> {
    if look(link, connection).await?.pending.is_empty() {
        return Ok(Vec::new());
    }
    connection.batch_execute("BEGIN").await?;
    connection.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    connection
        .batch_execute(
            "CREATE TABLE IF NOT EXISTS aop_migrations (
                 name       text COLLATE \"C\" PRIMARY KEY,
                 checksum   text NOT NULL,
                 applied_at timestamptz NOT NULL DEFAULT now())",
        )
        .await?;
    // Looked at again behind the lock: another process may have done it meanwhile.
    let pending = look(link, connection).await?.pending;
    for (name, sql) in MIGRATIONS.iter().filter(|(name, _)| pending.iter().any(|missing| missing == name)) {
        connection.batch_execute(sql).await?;
        let sum = checksum(sql);
        let record = "INSERT INTO aop_migrations (name, checksum) VALUES ($1, $2)";
        connection.execute(record, &[name, &sum]).await?;
    }
    connection.batch_execute("COMMIT").await?;
    Ok(pending)
}

/// Refuses tables that are not up to date.
pub(super) async fn require_ready(link: &Link, connection: &Object) -> Result<(), Failure> {
    let schema = look(link, connection).await?;
    if schema.pending.is_empty() {
        return Ok(());
    }
    let cause = if schema.applied.is_empty() {
        "the database has no tables of aop yet".to_owned()
    } else {
        format!("the tables lack {}", schema.pending.join(", "))
    };
    let hint = if schema.applied.is_empty() {
        "run `aop init` to begin here, or `aop store copy` to bring a project"
    } else {
        "run `aop store migrate` once; from then on every machine needs an aop that knows them"
    };
    Err(unavailable(link.options(), &cause, hint).into())
}

/// The row of a project; `None` when there is none by that name.
pub(super) async fn find_project(connection: &Object, project_id: &str) -> Result<Option<i64>, Failure> {
    let sql = "SELECT project FROM projects WHERE project_id = $1";
    Ok(connection.query_opt_scalar(sql, &[&project_id]).await?)
}

/// Makes a project unless it is there.
pub(super) async fn make_project(connection: &Object, project_id: &str) -> Result<(), Failure> {
    let sql = "INSERT INTO projects (project_id) VALUES ($1) ON CONFLICT (project_id) DO NOTHING";
    connection.execute(sql, &[&project_id]).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn migrations_are_named_in_order() {
        assert!(MIGRATIONS.is_sorted_by_key(|(name, _)| *name));
        assert_eq!(checksum("aop"), checksum("aop"));
        assert_ne!(checksum("aop"), checksum("aop "));
    }
}
