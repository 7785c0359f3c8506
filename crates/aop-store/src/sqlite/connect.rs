//! Opening the file: creation and migration under the write lock, connection settings, and what SQLite's
//! errors mean to a person.

use super::turn::Turn;
use crate::error::StoreError;
use crate::fault::crash_point;
use aop_kernel::time::Timestamp;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, TransactionBehavior, config::DbConfig};
use std::fs::File;
use std::path::Path;
use std::time::Duration;
use ulid::Ulid;

/// "aop1" in the file's header, so that another program's database is never taken for ours.
const APPLICATION_ID: i64 = 0x616f_7031;

/// Every migration in order; a file's `user_version` says how many it has.
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/sqlite/0001_start.sql"),
    include_str!("../../migrations/sqlite/0002_fewer_trees.sql"),
    include_str!("../../migrations/sqlite/0003_chained_events.sql"),
    include_str!("../../migrations/sqlite/0004_log_first.sql"),
    include_str!("../../migrations/sqlite/0005_several_replies.sql"),
];

/// How long to wait for a lock: one that SQLite itself holds, or another process that writes.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Of some fifty pages, in KiB as SQLite takes it: the upper levels of every index stay at hand, the system keeps the rest
/// of what is read often, and there are as many readers as read at once.
const CACHE: i64 = -192;

/// The only project a file holds.
pub(super) const PROJECT: i64 = 1;

/// Opens a connection to a store that is created and migrated.
pub(super) fn open_ready(path: &Path) -> Result<Connection, StoreError> {
    if path.exists() {
        let connection = open_reader(path)?;
        if state_of(&connection, path)? == MIGRATIONS.len() {
            return Ok(connection);
        }
    }
    prepare(path)?;
    open_reader(path)
}

/// A connection that only reads.
pub(super) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let connection = open_existing(path)?;
    let settings = || {
        connection.pragma_update(None, "query_only", true)?;
        connection.pragma_update(None, "cache_size", CACHE)
    };
    settings().map_err(|error| explain(path, &error))?;
    Ok(connection)
}

/// The connection that writes: one that has read until now, or another.
pub(super) fn open_writer(path: &Path, spare: Option<Connection>) -> Result<Connection, StoreError> {
    let connection = match spare {
        Some(connection) => connection,
        None => open_existing(path)?,
    };
    let settings = || {
        connection.pragma_update(None, "query_only", false)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        // An erased secret leaves no copy in free pages.
        connection.pragma_update(None, "secure_delete", true)?;
        connection.pragma_update(None, "cache_size", CACHE)?;
        // The writer checkpoints itself, after the callers have their replies.
        connection.pragma_update(None, "wal_autocheckpoint", 0)
    };
    settings().map_err(|error| explain(path, &error))?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

fn open_existing(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // Closing the last connection must not cost a checkpoint: one-shot commands would each pay for it.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        // A statement stays as it was prepared whatever it is given: its way is fixed by a test (`plan`), and to
        // prepare it anew costs more than a page of questions.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        Ok(connection)
    };
    open().map_err(|error| explain(path, &error))
}

/// How many migrations the file has; refuses what is not ours.
fn state_of(connection: &Connection, path: &Path) -> Result<usize, StoreError> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let application = pragma("application_id").map_err(|error| explain(path, &error))?;
    if application != APPLICATION_ID {
        let tables: i64 = connection
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .map_err(|error| explain(path, &error))?;
        if tables == 0 {
            return Ok(0);
        }
        return Err(unavailable(
            path,
            "this is a database, but not one of aop's",
            "restore aop.db from a backup; to start over, move .aop away and run `aop init`",
        ));
    }
    let version = pragma("user_version").map_err(|error| explain(path, &error))?;
    let found = usize::try_from(version).unwrap_or_default();
    if found > MIGRATIONS.len() {
        return Err(unavailable(path, "the store was written by a newer aop", "update aop on this machine"));
    }
    Ok(found)
}

/// Creates the file if there is none and brings it up to date, one process at a time.
fn prepare(path: &Path) -> Result<(), StoreError> {
    let mut lock = open_lock(path)?;
    Turn::new(path, BUSY_TIMEOUT).take(&mut lock)?;
    create_private(path)?;
    crash_point("first_start");
    let mut connection = open_existing(path)?;
    let done = state_of(&connection, path)?;
    if done == MIGRATIONS.len() {
        return Ok(());
    }
    let mut migrate = || {
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for migration in &MIGRATIONS[done..] {
            transaction.execute_batch(migration)?;
        }
        transaction.execute(
            "INSERT OR IGNORE INTO projects (project, project_id) VALUES (?1, ?2)",
            (PROJECT, format!("p_{}", Ulid::generate())),
        )?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(
            None,
            "user_version",
            i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX),
        )?;
        crash_point("first_start_before_commit");
        transaction.commit()
    };
    migrate().map_err(|error| explain(path, &error))
}

/// Makes an empty file that only its owner can read: it will hold secret answers.
fn create_private(path: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::OpenOptionsExt;
    let made = File::options().write(true).create_new(true).mode(0o600).open(path);
    match made {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(unavailable(path, &error.to_string(), "check that .aop/ is there and writable")),
    }
}

/// The lock file that makes the writers of all processes one fair queue.
pub(super) fn open_lock(path: &Path) -> Result<File, StoreError> {
    let lock = super::bell::rope(path);
    super::bell::open_rope(&lock)
        .map_err(|error| unavailable(&lock, &error.to_string(), "check that .aop/ is there and writable"))
}

/// The last committed event, and the latest time ever used.
pub(super) fn counters(connection: &Connection) -> rusqlite::Result<(u64, Timestamp)> {
    let sql = "SELECT ifnull(e.seq, 0), max(p.used_at, ifnull(e.at, 0))
               FROM projects p LEFT JOIN events e ON e.seq = (SELECT max(seq) FROM events) WHERE p.project = ?1";
    let counters = |row: &rusqlite::Row<'_>| {
        Ok((row.get::<_, i64>(0)?.unsigned_abs(), Timestamp::from_millis(row.get(1)?)))
    };
    connection.prepare_cached(sql)?.query_row([PROJECT], counters)
}

/// Whether the tables lack anything that the log has.
pub(super) fn is_behind(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT settled < ifnull((SELECT max(seq) FROM events), 0) FROM projects WHERE project = ?1";
    #[cfg(test)]
    super::plan::note(connection, sql);
    let behind = connection.prepare_cached(sql)?.query_row([PROJECT], |row| row.get(0)).optional()?;
    Ok(behind.unwrap_or_default())
}

/// An unavailable store, in words.
pub(super) fn unavailable(path: &Path, cause: &str, hint: &str) -> StoreError {
    StoreError::Unavailable { place: path.display().to_string(), cause: cause.into(), hint: hint.into() }
}

/// SQLite keeps a path in 512 bytes, and adds the endings of its own files to it.
const LONGEST_PATH: usize = 480;

/// What an SQLite error means to a person, and what to do about it.
pub(super) fn explain(path: &Path, error: &rusqlite::Error) -> StoreError {
    let hint = match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => {
            "this file is not a database: restore it from a backup; to start over, move .aop away and run `aop init`"
        }
        Some(ErrorCode::DatabaseCorrupt) => {
            "the file is damaged: run `aop doctor`, then restore it from a backup"
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            "the disk or the folder is read-only: make .aop/ writable and run the command again"
        }
        Some(ErrorCode::DiskFull) => "the disk is full: free some space and run the command again",
        Some(ErrorCode::CannotOpen) if path.as_os_str().len() > LONGEST_PATH => {
            "SQLite opens no file whose path is longer than some 490 bytes: move the project to a folder with a shorter path"
        }
        Some(ErrorCode::CannotOpen) => "check that .aop/ and its files are readable and writable for you",
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program holds the file: run the command again"
        }
        _ => "check disk space and the permissions of .aop/, then run `aop doctor`",
    };
    unavailable(path, &error.to_string(), hint)
}
