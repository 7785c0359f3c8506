//! A server that takes connections and never says a word: stopped, or gone behind a proxy that holds the line. It is
//! not waited for for ever, and one that answers is used instead.

use super::live;
use crate::support::{new_project, wait};
use aop_store::{PostgresOptions, PostgresStore, StoreError, TimeSource};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Far less than for ever, and more than a slow machine needs.
const SOON: Duration = Duration::from_secs(20);

#[test]
fn a_server_that_takes_connections_and_never_answers_is_given_up_and_told_of() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let address = format!("postgres://aop@127.0.0.1:{port}/team?project=shop&connect_timeout=1");
    let options = PostgresOptions::parse(&address).unwrap().patience(Duration::from_millis(50));
    let start = Instant::now();
    let given_up = [
        PostgresStore::open(options.clone(), TimeSource::Database).err().unwrap(),
        PostgresStore::create(&options).unwrap_err(),
    ];
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    for error in given_up {
        let StoreError::Unavailable { cause, hint, .. } = error else { panic!("{error:?}") };
        assert!(cause.contains("takes connections and does not answer"), "{cause}");
        assert!(hint.contains("connect_timeout"), "{hint}");
    }
}

#[test]
fn a_silent_server_is_passed_over_for_the_next_one_and_asked_last_from_then_on() {
    let silent = TempDir::with_prefix("silent").unwrap();
    let listener = UnixListener::bind(silent.path().join(".s.PGSQL.5432")).unwrap();
    let direct = new_project();
    let place = direct.place();
    let (healthy, database) = place.strip_prefix("postgres://aop@").unwrap().split_once(":5432/").unwrap();
    let hosts = [silent.path().to_str().unwrap(), healthy].map(|host| host.replace('/', "%2F"));
    let [first, second] = hosts;
    let address = format!("postgres://aop@{first}:5432,{second}:5432/{database}?connect_timeout=1");
    let options = PostgresOptions::parse(&address).unwrap().project(direct.project_id().unwrap());
    let w = live(&options);
    let mut changes = w.store.changes();
    wait(async {
        w.feature("a").await;
        // Whoever listens comes through as well: this commit is another process's.
        let other = live(&direct);
        let id = other.ask("a").await;
        while *changes.borrow_and_update() < 2 {
            changes.changed().await.unwrap();
        }
        w.answer("a", &id, serde_json::json!("x")).await.unwrap();
        w.check().await;
    });
    listener.set_nonblocking(true).unwrap();
    assert_eq!(listener.incoming().take_while(Result::is_ok).count(), 1, "asked once, and then avoided");
}
