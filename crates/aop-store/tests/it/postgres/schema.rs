//! The tables: made once however many begin at once, refused when they are not ours or not understood; and what
//! somebody changes behind the store's back is found.

use super::{live, world};
use crate::support::{feature_id, wait};
use aop_kernel::role::Role;
use aop_kernel::status::Status;
use aop_store::{PostgresOptions, PostgresStore, StoreError, TimeSource};
use aop_testkit::postgres::Server;
use serde_json::json;
use std::sync::Barrier;
use std::time::Duration;

fn told(error: StoreError) -> (String, String) {
    match error {
        StoreError::Unavailable { cause, hint, .. } => (cause, hint),
        other => panic!("{other:?}"),
    }
}

fn refusal(options: &PostgresOptions) -> (String, String) {
    told(PostgresStore::open(options.clone(), TimeSource::Database).err().unwrap())
}

#[test]
fn tables_are_made_once_and_refused_when_they_are_not_understood() {
    let server = Server::own("");
    server.sql("postgres", "CREATE DATABASE team");
    let options = PostgresOptions::parse(&server.address("team")).unwrap().project("shop");
    let (cause, hint) = refusal(&options);
    assert!(cause.contains("no tables") && hint.contains("aop init"), "{cause}: {hint}");

    let start = Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                start.wait();
                PostgresStore::create(&options).unwrap();
            });
        }
    });
    assert_eq!(server.sql("team", "SELECT count(*) FROM aop_migrations"), "2");
    assert_eq!(server.sql("team", "SELECT count(*) FROM projects"), "1");
    let schema = PostgresStore::schema(&options).unwrap();
    assert_eq!((schema.applied.len(), schema.pending.len()), (2, 0));
    assert_eq!(PostgresStore::migrate(&options).unwrap(), Vec::<String>::new());
    wait(live(&options).feature("a"));

    let (cause, hint) = refusal(&options.clone().project("slip"));
    assert!(cause.contains("no project 'slip'") && hint.contains("aop init"), "{cause}: {hint}");

    server.sql("team", "INSERT INTO aop_migrations VALUES ('0099_future', 'x')");
    let (cause, hint) = refusal(&options);
    assert!(cause.contains("newer") && hint.contains("update"), "{cause}: {hint}");
    server.sql(
        "team",
        "DELETE FROM aop_migrations WHERE name = '0099_future'; UPDATE aop_migrations SET checksum = 'x'",
    );
    let (cause, _) = refusal(&options);
    assert!(cause.contains("0001_start"), "{cause}");

    server.sql(
        "postgres",
        "CREATE DATABASE old ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
    );
    let latin = PostgresOptions::parse(&server.address("old")).unwrap().project("shop");
    let (cause, hint) = told(PostgresStore::create(&latin).unwrap_err());
    assert!(cause.contains("LATIN1") && hint.contains("UTF8"), "{cause}: {hint}");
}

/// An aop that does not know the last step sees a name that it does not have: it says that it is too old.
#[test]
fn tables_of_the_version_before_are_brought_up_to_date_once_and_keep_everything() {
    let server = Server::own("-c fsync=off");
    server.sql("postgres", "CREATE DATABASE team");
    let options = PostgresOptions::parse(&server.address("team")).unwrap().project("shop");
    PostgresStore::create(&options).unwrap();
    let open = wait(async {
        let w = live(&options);
        w.feature_in("a", Status::Qa).await;
        w.ask("a").await
    });
    server.sql("team", "DELETE FROM aop_migrations WHERE name > '0001_start'");

    for refused in [refusal(&options), told(PostgresStore::create(&options).unwrap_err())] {
        let (cause, hint) = refused;
        assert!(
            cause.contains("lack 0002_several_replies") && hint.contains("aop store migrate"),
            "{cause}: {hint}"
        );
    }
    let start = Barrier::new(8);
    let migrated = std::thread::scope(|scope| {
        let each = [(); 8].map(|()| {
            scope.spawn(|| {
                start.wait();
                PostgresStore::migrate(&options).unwrap()
            })
        });
        each.map(|one| one.join().unwrap()).concat()
    });
    assert_eq!(migrated, ["0002_several_replies"]);
    let w = live(&options);
    wait(w.answer("a", &open, json!("x"))).unwrap();
    wait(w.check());
}

#[test]
fn a_role_that_only_reads_and_writes_rows_can_do_everything_but_migrate() {
    let server = Server::own("");
    server.sql("postgres", "CREATE DATABASE team");
    let owner = PostgresOptions::parse(&server.address("team")).unwrap().project("shop");
    PostgresStore::create(&owner).unwrap();
    server.sql(
        "team",
        "CREATE ROLE aop_app LOGIN; GRANT USAGE ON SCHEMA public TO aop_app;
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO aop_app;
         REVOKE INSERT, UPDATE, DELETE ON aop_migrations FROM aop_app; REVOKE DELETE ON projects FROM aop_app;
         REVOKE UPDATE, DELETE ON events, operations FROM aop_app",
    );
    let app = server.address("team").replace("postgres://aop@", "postgres://aop_app@");
    let app = PostgresOptions::parse(&app).unwrap().project("shop");
    let w = live(&app);
    wait(async {
        w.feature_in("a", Status::Qa).await;
        let id = w.ask("a").await;
        w.answer("a", &id, json!("x")).await.unwrap();
        w.store.acquire_lease("run".into(), "one".into(), 1_000).await.unwrap().unwrap();
        w.store.claim("turn".into(), "one".into(), 1).await.unwrap();
        w.store.expire().await.unwrap();
        w.cancel("a").await.unwrap();
        w.check().await;
    });
    PostgresStore::create(&app.project("second")).unwrap();
}

#[test]
fn an_unreachable_server_is_named_without_its_password() {
    let address = "postgres://ann:hunter2@127.0.0.1:9/team?project=shop";
    let options = PostgresOptions::parse(address).unwrap().patience(Duration::from_millis(50));
    let error = PostgresStore::open(options, TimeSource::Database).err().unwrap();
    let said = format!("{error} {error:?}");
    assert!(said.contains("ann@127.0.0.1:9/team") && !said.contains("hunter2"), "{said}");
}

/// Each of these is a difference between the tables and the log, or within a row; `verify` names them all.
#[test]
fn verify_finds_what_somebody_changed_behind_the_stores_back() {
    let damages = [
        ("UPDATE questions SET record = replace(record, 'Which way?', 'forged')", "question q_"),
        ("UPDATE questions SET status = 'answered' WHERE status = 'open'", "question q_"),
        ("UPDATE questions SET expires_at = 1", "question q_"),
        ("DELETE FROM questions", "question q_"),
        ("UPDATE features SET status = 'merged'", "feature 'a'"),
        ("DELETE FROM features", "feature 'a'"),
        ("DELETE FROM events WHERE seq = 2", "event 2 is missing"),
        ("DELETE FROM events WHERE seq = 4", "event 4 is missing"),
        ("UPDATE specs SET spec = 'other'", "specification of feature 'a'"),
    ];
    let server = Server::own("-c fsync=off");
    for (number, (damage, finding)) in damages.into_iter().enumerate() {
        let database = format!("d{number}");
        server.sql("postgres", &format!("CREATE DATABASE {database}"));
        let options = PostgresOptions::parse(&server.address(&database)).unwrap().project("shop");
        PostgresStore::create(&options).unwrap();
        let w = world(&options);
        let create = json!({"feature_id": "a", "title": "A", "spec": "words"});
        wait(w.call(Role::Human, "feature.create", create)).unwrap();
        wait(w.transition("a", Status::Building)).unwrap();
        wait(w.ask("a"));
        assert_eq!(wait(w.store.verify()).unwrap(), Vec::<String>::new());
        server.sql(&database, damage);
        let found = wait(w.store.verify()).unwrap();
        assert!(found.iter().any(|found| found.contains(finding)), "{damage}: {found:?}");
        drop(wait(w.store.spec(feature_id("a"))));
    }
}

#[test]
fn the_planner_is_told_of_a_project_that_grows_and_finds_one_feature_among_many() {
    let server = Server::own("-c autovacuum=off");
    server.sql("postgres", "CREATE DATABASE team");
    let options = PostgresOptions::parse(&server.address("team")).unwrap().project("shop");
    PostgresStore::create(&options).unwrap();
    let w = live(&options);
    // Two events each: past the first count.
    for number in 0..140 {
        let id = format!("f{number}");
        wait(w.feature(&id));
        wait(w.ask(&id));
    }
    let start = std::time::Instant::now();
    // -1: never counted.
    while server.sql("team", "SELECT reltuples FROM pg_class WHERE relname = 'questions'") == "-1" {
        assert!(start.elapsed() < Duration::from_secs(60), "nobody counts");
    }
    let plan = server.sql(
        "team",
        "EXPLAIN SELECT record FROM questions WHERE project = 1 AND feature_id = ANY('{f7}') AND status = 'open'",
    );
    assert!(plan.contains("questions_feature"), "{plan}");
}
