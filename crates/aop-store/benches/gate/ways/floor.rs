//! Two commits in the bare database and a channel to the waiter: what nobody can go below by much.

use super::{Cycle, Way};
use crate::desk::PROMPT;
use crate::place::Place;
use rusqlite::Connection;
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use tokio_postgres::NoTls;

pub(super) const NAME: &str = "floor";

pub(super) fn set_up(place: &Place, folder: &Path) -> Box<dyn Way> {
    match place {
        Place::Sqlite => Box::new(Bare(Mutex::new(open(&folder.join("floor.db"))))),
        Place::Postgres(address) => {
            let floor = BarePostgres(address.clone());
            floor.caller_sql(
                "CREATE TABLE IF NOT EXISTS floor (id TEXT PRIMARY KEY, prompt TEXT, answer TEXT)",
            );
            Box::new(floor)
        }
    }
}

/// A database with one table, as durable as ours.
pub(crate) fn open(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    connection.pragma_update(None, "synchronous", "FULL").unwrap();
    connection
        .execute_batch("CREATE TABLE IF NOT EXISTS q (id TEXT PRIMARY KEY, prompt TEXT, answer TEXT) STRICT, WITHOUT ROWID")
        .unwrap();
    connection
}

pub(crate) const ASK: &str = "INSERT INTO q (id, prompt) VALUES (?1, ?2)";
pub(crate) const ANSWER: &str = "UPDATE q SET answer = ?2 WHERE id = ?1 AND answer IS NULL";

struct Bare(Mutex<Connection>);

impl Way for Bare {
    fn name(&self) -> &'static str {
        NAME
    }

    fn caller(&self, feature: &str) -> Cycle<'_> {
        let feature = feature.to_owned();
        Box::new(move |number| {
            let id = format!("{feature}-{number}");
            let (answered, waiter) = channel();
            let commit = |sql: &str, value: &str| {
                let connection = self.0.lock().unwrap();
                let changed = connection.prepare_cached(sql).unwrap().execute((&id, value)).unwrap();
                assert_eq!(changed, 1);
            };
            commit(ASK, PROMPT);
            commit(ANSWER, "this");
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

    fn caller(&self, feature: &str) -> Cycle<'_> {
        let (runtime, client) = self.connect();
        let prepare = |sql| runtime.block_on(client.prepare(sql)).unwrap();
        let ask = prepare("INSERT INTO floor (id, prompt) VALUES ($1, $2)");
        let answer = prepare("UPDATE floor SET answer = $2 WHERE id = $1 AND answer IS NULL");
        let feature = feature.to_owned();
        Box::new(move |number| {
            let id = format!("{feature}-{number}");
            let (answered, waiter) = channel();
            for (statement, value) in [(&ask, PROMPT), (&answer, "this")] {
                assert_eq!(runtime.block_on(client.execute(statement, &[&id, &value])).unwrap(), 1);
            }
            answered.send("this").unwrap();
            assert_eq!(waiter.recv().unwrap(), "this");
        })
    }
}
