//! Two commits in the bare database and a channel to the waiter: what nobody can go below by much. Each commit is what
//! a question that may be retried needs at least: its record, an event, and the operation in a list without doubles.

use super::{Cycle, Way};
use crate::desk::PROMPT;
use crate::place::Place;
use rusqlite::Connection;
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{LazyLock, Mutex};
use tokio_postgres::NoTls;
use ulid::Ulid;

pub(super) const NAME: &str = "floor";

/// The question as JSON, 600 bytes of it.
static RECORD: LazyLock<String> = LazyLock::new(|| {
    format!(r#"{{"prompt":"{PROMPT}","details":"{}"}}"#, "x".repeat(600 - 28 - PROMPT.len()))
});

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS questions (id TEXT PRIMARY KEY, status TEXT NOT NULL, created BIGINT NOT NULL, record TEXT NOT NULL);
    CREATE INDEX IF NOT EXISTS questions_open ON questions (status, created);
    CREATE TABLE IF NOT EXISTS events (seq INTEGER PRIMARY KEY, operation TEXT NOT NULL UNIQUE,
        question TEXT NOT NULL REFERENCES questions (id), event TEXT NOT NULL);";

pub(super) fn set_up(place: &Place, folder: &Path) -> Box<dyn Way> {
    match place {
        Place::Sqlite => Box::new(Bare::open(&folder.join("floor.db"))),
        Place::Postgres(address) => {
            let floor = BarePostgres(address.clone());
            let counted = TABLES.replace("seq INTEGER", "seq BIGSERIAL");
            floor.caller_sql(&format!(
                "CREATE SCHEMA IF NOT EXISTS floor; SET search_path = floor; {counted}"
            ));
            Box::new(floor)
        }
    }
}

/// An id as ours are.
fn question_id() -> String {
    format!("q_{}", Ulid::generate())
}

/// A database that is as durable as ours, with one connection.
pub(crate) struct Bare(Mutex<Connection>);

impl Bare {
    pub(crate) fn open(path: &Path) -> Self {
        let connection = Connection::open(path).unwrap();
        for (pragma, value) in [("journal_mode", "WAL"), ("synchronous", "FULL"), ("foreign_keys", "ON")] {
            connection.pragma_update(None, pragma, value).unwrap();
        }
        connection.execute_batch(TABLES).unwrap();
        Bare(Mutex::new(connection))
    }

    /// These in one commit.
    pub(crate) fn ask(&self, ids: &[String]) {
        self.commit(|connection| {
            for id in ids {
                run(
                    connection,
                    "INSERT INTO questions (id, status, created, record) SELECT ?1, 'open', coalesce(max(seq), 0), ?2 FROM events",
                    &[id, &RECORD],
                );
                record(connection, id, "asked");
            }
        });
    }

    pub(crate) fn answer(&self, id: &str) {
        self.commit(|connection| {
            let sql =
                "UPDATE questions SET status = 'answered', record = ?2 WHERE id = ?1 AND status = 'open'";
            run(connection, sql, &[id, &RECORD]);
            record(connection, id, "answered");
        });
    }

    /// The oldest open ones: id and record.
    pub(crate) fn page(&self, limit: usize) -> Vec<(String, String)> {
        let connection = self.0.lock().unwrap();
        let sql = "SELECT id, record FROM questions WHERE status = 'open' ORDER BY created LIMIT ?1";
        let mut query = connection.prepare_cached(sql).unwrap();
        let limit = i64::try_from(limit).unwrap_or(-1);
        let rows = query.query_map([limit], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.map(Result::unwrap).collect()
    }

    fn commit(&self, work: impl FnOnce(&Connection)) {
        let connection = self.0.lock().unwrap();
        let run = |sql| connection.prepare_cached(sql).unwrap().execute(()).unwrap();
        run("BEGIN IMMEDIATE");
        work(&connection);
        run("COMMIT");
    }
}

fn record(connection: &Connection, id: &str, event: &str) {
    let sql = "INSERT INTO events (operation, question, event) VALUES (?2 || '-' || ?1, ?1, ?2)";
    run(connection, sql, &[id, event]);
}

fn run(connection: &Connection, sql: &str, params: &[&str]) {
    let changed =
        connection.prepare_cached(sql).unwrap().execute(rusqlite::params_from_iter(params)).unwrap();
    assert_eq!(changed, 1, "{sql}");
}

impl Way for Bare {
    fn name(&self) -> &'static str {
        NAME
    }

    fn caller(&self, _: &str) -> Cycle<'_> {
        Box::new(move || {
            let id = [question_id()];
            let (answered, waiter) = channel();
            self.ask(&id);
            self.answer(&id[0]);
            answered.send("this").unwrap();
            assert_eq!(waiter.recv().unwrap(), "this");
        })
    }
}

/// A connection for each caller; the server shares syncs among them by itself.
struct BarePostgres(String);

impl BarePostgres {
    fn caller_sql(&self, sql: &str) {
        let (runtime, client) = self.connect();
        runtime.block_on(client.batch_execute(sql)).unwrap();
    }

    fn connect(&self) -> (tokio::runtime::Runtime, tokio_postgres::Client) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (client, connection) = runtime.block_on(tokio_postgres::connect(&self.0, NoTls)).unwrap();
        runtime.spawn(async { connection.await.unwrap() });
        (runtime, client)
    }
}

impl Way for BarePostgres {
    fn name(&self) -> &'static str {
        NAME
    }

    fn caller(&self, _: &str) -> Cycle<'_> {
        let (runtime, client) = self.connect();
        let prepare = |sql: &str| runtime.block_on(client.prepare(sql)).unwrap();
        runtime.block_on(client.batch_execute("SET search_path = floor")).unwrap();
        // Each of them is one statement, and so one commit and one way to the server and back.
        let event = "INSERT INTO events (operation, question, event)";
        let ask = prepare(&format!(
            "WITH asked AS (INSERT INTO questions VALUES ($1, 'open', extract(epoch FROM now()) * 1000, $2) RETURNING id)
             {event} SELECT 'ask-' || id, id, 'asked' FROM asked"
        ));
        let answer = prepare(&format!(
            "WITH answered AS (UPDATE questions SET status = 'answered', record = $2 WHERE id = $1 AND status = 'open' RETURNING id)
             {event} SELECT 'answer-' || id, id, 'answered' FROM answered"
        ));
        Box::new(move || {
            let id = question_id();
            let (answered, waiter) = channel();
            for statement in [&ask, &answer] {
                assert_eq!(runtime.block_on(client.execute(statement, &[&id, &*RECORD])).unwrap(), 1);
            }
            answered.send("this").unwrap();
            assert_eq!(waiter.recv().unwrap(), "this");
        })
    }
}
