//! What somebody else does on the same server, or the server itself does not do, and who has to wait for it.

use super::team::elsewhere;
use crate::http_client::Server as Http;
use crate::support::{Project, finish};
use aop_kernel::ids::FeatureId;
use aop_store::{PostgresOptions, PostgresStore, Store, StoreError, TimeSource};
use aop_testkit::postgres::Server;
use std::sync::Arc;
use std::time::Duration;

/// A database with the tables in two schemas of it, and the address of a project in each. Both are the first there.
fn two_schemas() -> (Server, [String; 2]) {
    let server = Server::own("-c fsync=off");
    server.sql("postgres", "CREATE DATABASE team");
    let addresses = ["red", "blue"].map(|schema| {
        server.sql("team", &format!("CREATE SCHEMA {schema}"));
        format!("{}?options=-c%20search_path%3D{schema}&project=shop", server.address("team"))
    });
    (server, addresses)
}

#[test]
fn what_happens_in_another_schema_of_the_database_keeps_no_event_back() {
    let (_server, addresses) = two_schemas();
    let folders = [Project::empty(), Project::empty()];
    let run = |at: usize, args: &[&str]| finish(&mut elsewhere(&folders[at], &addresses[at], args)).data();
    (0..2).for_each(|at| drop(run(at, &["init"])));
    let create = |at: usize, id: &str| run(at, &["features", "create", "--feature-id", id, "--title", "A"]);
    let http = Http::start_with(&folders[0], &[], &[("AOP_STORE", &addresses[0])]);
    let mut events = http.follow(&http.token, None);
    create(0, "first");
    assert_eq!(events.next().unwrap().0, 1);
    let neighbour = Http::start_with(&folders[1], &[], &[("AOP_STORE", &addresses[1])]);
    let mut others = neighbour.follow(&neighbour.token, None);
    for number in 1..=5 {
        create(1, &format!("f{number}"));
        // The database tells both servers of it at once.
        assert_eq!(others.next().unwrap().0, number);
    }
    create(0, "second");
    let (number, event) = events.next().expect("the stream goes on");
    assert_eq!((number, &event["feature_id"]), (2, &serde_json::json!("second")));
}

#[test]
fn a_call_behind_many_that_get_no_answer_is_given_up_as_soon_as_they() {
    // Each attempt that is given up leaves a connection behind that the server still works for.
    let server = Server::own("-c fsync=off -c max_connections=400");
    server.sql("postgres", "CREATE DATABASE team");
    let address = format!("{}?project=shop&connect_timeout=1", server.address("team"));
    let options = PostgresOptions::parse(&address).unwrap().patience(Duration::from_secs(2));
    PostgresStore::create(&options).unwrap();
    let store = Arc::new(PostgresStore::open(options, TimeSource::Database).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    std::thread::scope(|scope| {
        // Whoever reads waits, and hears nothing.
        scope.spawn(|| server.sql("team", "BEGIN; LOCK TABLE features; SELECT pg_sleep(15); COMMIT"));
        let is_locked =
            || server.sql("team", "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock'") == "1";
        while !is_locked() {
            std::thread::sleep(Duration::from_millis(20));
        }
        let feature = FeatureId::parse("a").unwrap();
        let refused = runtime.block_on(async {
            let mut calls = tokio::task::JoinSet::new();
            // One behind the other, eight connections at a time, they would take longer than the lock is held.
            for _ in 0..160 {
                let (store, feature) = (Arc::clone(&store), feature.clone());
                calls.spawn(async move { store.feature(feature).await });
            }
            calls.join_all().await
        });
        assert!(is_locked(), "they waited until there was an answer");
        assert!(refused.iter().all(|one| matches!(one, Err(StoreError::Unavailable { .. }))), "{refused:?}");
    });
}
