//! What only the embedded store has: a file that several processes share, and that may be something else.

use crate::contract::waking;
use crate::support::{START, World, feature_id, question_id, wait};
use aop_kernel::role::{Caller, Role};
use aop_kernel::status::Status;
use aop_kernel::time::Timestamp;
use aop_store::{ManualClock, SqliteStore, StoreError};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Barrier};
use tempfile::TempDir;

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::from_millis(START)))
}

/// A world on a folder that may be shared with another one.
pub(crate) fn world(dir: &Path) -> World {
    let clock = clock();
    let store = Arc::new(SqliteStore::open(dir, clock.clone()).unwrap());
    World::on(store, clock, TempDir::new().unwrap())
}

/// Changes the file behind the store's back.
pub(crate) fn tamper(dir: &Path, sql: &str) {
    Connection::open(dir.join("aop.db")).unwrap().execute_batch(sql).unwrap();
}

fn refusal_to_open(dir: &Path) -> (String, String) {
    match SqliteStore::open(dir, clock()) {
        Ok(_) => panic!("opened"),
        Err(StoreError::Unavailable { cause, hint, place }) => {
            assert!(place.ends_with("aop.db"), "{place}");
            (cause, hint)
        }
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn a_store_whose_file_was_removed_or_replaced_acknowledges_and_shows_nothing() {
    let dir = TempDir::new().unwrap();
    let place = dir.path().join(".aop");
    std::fs::create_dir(&place).unwrap();
    let world = world(&place);
    wait(world.feature("a"));
    let write = || wait(world.store.acquire_lease("name".into(), "me".into(), 1_000)).map(drop);
    let settle = || wait(world.store.feature(feature_id("a"))).map(drop);
    let glance = || wait(world.store.inbox(0, 9)).map(drop);
    let unavailable = |what: Result<(), StoreError>| {
        assert!(matches!(what, Err(StoreError::Unavailable { .. })), "{what:?}");
    };
    write().unwrap();
    // From now on there is a connection for it.
    settle().unwrap();
    let id = wait(world.ask("a"));
    wait(world.answer("a", &id, json!("x"))).unwrap();
    // Found in memory: the tables do not have it yet.
    let closed = || wait(world.store.question(question_id(&id))).map(drop);
    closed().unwrap();
    std::fs::rename(&place, dir.path().join("gone")).unwrap();
    unavailable(closed());
    unavailable(settle());
    unavailable(glance());
    unavailable(write());
    unavailable(wait(world.store.now()).map(drop));
    std::fs::create_dir(&place).unwrap();
    drop(SqliteStore::open(&place, clock()).unwrap());
    unavailable(closed());
    unavailable(write());
    unavailable(settle());
    unavailable(glance());
    unavailable(wait(world.store.now()).map(drop));
    std::fs::rename(&place, dir.path().join("other")).unwrap();
    std::fs::rename(dir.path().join("gone"), &place).unwrap();
    closed().unwrap();
    write().unwrap();
    settle().unwrap();
}

#[test]
fn a_store_waits_for_another_process_as_long_as_it_was_opened_for() {
    let dir = TempDir::new().unwrap();
    let patience = std::time::Duration::from_millis(7);
    let store = SqliteStore::open_patiently(dir.path(), clock(), patience).unwrap();
    let lock = std::fs::File::options().write(true).open(dir.path().join("write.lock")).unwrap();
    lock.lock().unwrap();
    let write = aop_store::Store::acquire_lease(&store, "name".into(), "me".into(), 1_000);
    let error = wait(write).unwrap_err().to_string();
    assert!(error.contains("has not let go of it for 7ms"), "{error}");
}

#[test]
fn two_stores_on_one_file_answering_at_once_have_one_winner() {
    let dir = TempDir::new().unwrap();
    let worlds = [world(dir.path()), world(dir.path())];
    for round in 0..20 {
        let feature = format!("f{round}");
        wait(worlds[0].feature(&feature));
        let id = wait(worlds[0].ask(&feature));
        let start = Barrier::new(2);
        let results: Vec<_> = std::thread::scope(|scope| {
            let answering: Vec<_> = worlds
                .iter()
                .enumerate()
                .map(|(number, world)| {
                    let (start, id, feature) = (&start, &id, &feature);
                    let input = json!({"feature_id": feature, "question_id": id, "answer": format!("a{number}"),
                        "answered_by": format!("p{number}"), "operation_id": format!("{feature}-{number}")});
                    scope.spawn(move || {
                        start.wait();
                        wait(world.call(Role::Human, "feature.question_answer", input))
                    })
                })
                .collect();
            answering.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let winner = results.iter().position(Result::is_ok).unwrap();
        let lost = results[1 - winner].as_ref().unwrap_err();
        assert_eq!(lost.code.as_str(), "question_already_answered");
        assert_eq!(lost.facts["answered_by"], format!("p{winner}"));
        assert_eq!(lost.facts["answer"], format!("a{winner}"));
    }
    wait(worlds[1].check());
}

#[test]
fn two_stores_on_one_file_writing_at_once_lose_nothing_and_leave_no_gap() {
    let dir = TempDir::new().unwrap();
    let worlds = [world(dir.path()), world(dir.path())];
    wait(worlds[0].feature("a"));
    std::thread::scope(|scope| {
        for (number, world) in worlds.iter().enumerate() {
            scope.spawn(move || {
                for step in 0..30 {
                    let note =
                        json!({"feature_id": "a", "note": "n", "operation_id": format!("{number}-{step}")});
                    wait(world.call(Role::Human, "feature.log_append", note)).unwrap();
                    assert!(wait(world.show("a")).version > 1, "reading goes on meanwhile");
                }
            });
        }
    });
    for world in &worlds {
        assert_eq!(wait(world.events()).len(), 61);
        assert_eq!(wait(world.show("a")).version, 61);
        wait(world.check());
    }
}

#[test]
fn one_operation_through_two_stores_has_one_effect_and_equal_envelopes() {
    let dir = TempDir::new().unwrap();
    let (one, two) = (world(dir.path()), world(dir.path()));
    let input = json!({"feature_id": "a", "title": "A", "operation_id": "once"});
    let caller = Caller::new(Role::Human);
    let first = wait(one.raw(&caller, "feature.create", &input)).unwrap();
    assert_eq!(wait(two.raw(&caller, "feature.create", &input)).unwrap(), first);
    assert_eq!(wait(one.events()).len(), 1);
}

#[test]
fn time_never_runs_backwards_between_processes_with_different_clocks() {
    let dir = TempDir::new().unwrap();
    let (ahead, behind) = (world(dir.path()), world(dir.path()));
    ahead.later(3_600_000);
    wait(ahead.feature("a"));
    let note = json!({"feature_id": "a", "note": "n", "operation_id": "behind"});
    wait(behind.call(Role::Human, "feature.log_append", note)).unwrap();
    assert!(wait(ahead.events()).is_sorted_by_key(|event| event.stamped.at));
    assert_eq!(wait(behind.store.now()).unwrap().as_millis(), START + 3_600_000);
}

#[test]
fn a_commit_of_another_process_wakes_whoever_waits() {
    let dir = TempDir::new().unwrap();
    let (one, two) = (world(dir.path()), world(dir.path()));
    let mut changes = one.store.changes();
    wait(async {
        two.feature("a").await;
        changes.changed().await.unwrap();
        assert_eq!(*changes.borrow_and_update(), 1);
    });
}

#[test]
fn a_commit_of_another_process_wakes_those_who_wait_for_its_feature() {
    let dir = TempDir::new().unwrap();
    let (one, two) = (world(dir.path()), world(dir.path()));
    wait(waking::a_commit_of_another_process_wakes_those_who_wait_for_its_feature(&one, &two));
}

#[test]
fn a_commit_of_ours_right_behind_one_of_theirs_hides_nothing() {
    let dir = TempDir::new().unwrap();
    let (one, two) = (world(dir.path()), world(dir.path()));
    wait(waking::a_commit_of_ours_right_behind_one_of_theirs_hides_nothing(&one, &two));
}

/// What a write saw of another process before it failed was told to nobody.
#[test]
fn a_failed_write_of_ours_right_behind_one_of_theirs_hides_nothing() {
    let dir = TempDir::new().unwrap();
    let (one, two) = (world(dir.path()), world(dir.path()));
    wait(async {
        for name in ["broken", "ours", "theirs"] {
            two.feature(name).await;
        }
        two.show("broken").await;
        tamper(dir.path(), "UPDATE features SET record = '{' WHERE feature_id = 'broken'");
        let mut theirs = waking::waiter(&one, "theirs");
        for round in 0..50 {
            theirs.mark_unchanged();
            waking::note(&two, "theirs").await;
            let note = json!({"feature_id": "broken", "note": "n"});
            let failed = one.call(Role::Human, "feature.log_append", note).await.unwrap_err();
            assert_eq!(failed.code.as_str(), "store_unavailable", "{failed}");
            if round % 2 == 0 {
                waking::note(&one, "ours").await;
            }
            waking::woken(&mut theirs).await;
        }
    });
}

#[test]
fn a_look_at_the_commits_of_others_that_fails_wakes_everybody() {
    let dir = TempDir::new().unwrap();
    let w = world(dir.path());
    let mut anybody = waking::waiter(&w, "a");
    tamper(dir.path(), "ALTER TABLE events RENAME TO gone");
    wait(waking::woken(&mut anybody));
}

#[test]
fn what_was_acknowledged_is_there_after_opening_again() {
    let dir = TempDir::new().unwrap();
    let (id, before) = {
        let w = world(dir.path());
        wait(w.feature_in("a", Status::Qa));
        (wait(w.ask("a")), wait(w.everything()))
    };
    let w = world(dir.path());
    assert_eq!(wait(w.everything()), before);
    let answer = json!({"feature_id": "a", "question_id": id, "answer": "x", "answered_by": "ann", "operation_id": "later"});
    assert_eq!(wait(w.call(Role::Human, "feature.question_answer", answer)).unwrap()["feature_status"], "qa");
    wait(w.check());
}

#[test]
fn edge_06_unusable_resume_status_falls_back_to_planning() {
    for unusable in ["hibernating", "merged", "awaiting_input"] {
        let dir = TempDir::new().unwrap();
        let w = world(dir.path());
        wait(w.feature_in("a", Status::Qa));
        let id = wait(w.ask("a"));
        wait(w.show("a"));
        let set = format!("UPDATE questions SET record = json_set(record, '$.resume_status', '{unusable}')");
        tamper(dir.path(), &set);
        let data = wait(w.answer("a", &id, json!("x"))).unwrap();
        assert_eq!((&data["feature_status"], &data["resume_status"]), (&json!("planning"), &json!(unusable)));
        let log = wait(w.log("a")).join("\n");
        assert!(log.contains("resume_fallback_to_planning") && log.contains(unusable), "{log}");
    }
}

#[test]
fn edge_07_projects_share_nothing_and_files_stay_below_the_selected_root() {
    let root = TempDir::new().unwrap();
    let dirs = ["one/.aop", "two/.aop"].map(|name| root.path().join(name));
    dirs.iter().for_each(|dir| std::fs::create_dir_all(dir).unwrap());
    let worlds = dirs.each_ref().map(|dir| world(dir));
    wait(worlds[0].feature("a"));
    let id = wait(worlds[0].ask("a"));
    wait(worlds[1].feature("a"));
    assert_eq!(wait(worlds[1].store.question(question_id(&id))).unwrap(), None);
    assert_eq!(wait(worlds[1].status("a")), Status::Planning);
    wait(worlds[1].refuses("question_not_found", worlds[1].answer("a", &id, json!("x"))));
    wait(aop_store::Projector::new(&dirs[0]).catch_up(worlds[0].store.as_ref())).unwrap();
    assert!(dirs[0].join("features/a/questions.json").exists());
    assert!(!dirs[1].join("features").exists());
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 2);
}

#[test]
fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let dir = TempDir::new().unwrap();
    let text = "this is my shopping list, not a database\n".repeat(50);
    std::fs::write(dir.path().join("aop.db"), &text).unwrap();
    let (cause, hint) = refusal_to_open(dir.path());
    assert!(cause.contains("not a database"), "{cause}");
    assert!(hint.contains("aop init"), "{hint}");
    assert_eq!(std::fs::read_to_string(dir.path().join("aop.db")).unwrap(), text);
}

#[test]
fn another_programs_database_is_refused_and_left_alone() {
    let dir = TempDir::new().unwrap();
    tamper(dir.path(), "CREATE TABLE recipes (name TEXT); INSERT INTO recipes VALUES ('soup')");
    let before = std::fs::read(dir.path().join("aop.db")).unwrap();
    let (cause, _) = refusal_to_open(dir.path());
    assert!(cause.contains("not one of aop's"), "{cause}");
    assert_eq!(std::fs::read(dir.path().join("aop.db")).unwrap(), before);
}

#[test]
fn a_store_of_a_newer_version_is_refused_and_left_alone() {
    let dir = TempDir::new().unwrap();
    drop(world(dir.path()));
    tamper(dir.path(), "PRAGMA user_version = 99");
    let (cause, hint) = refusal_to_open(dir.path());
    assert!(cause.contains("newer"), "{cause}");
    assert!(hint.contains("update"), "{hint}");
}

#[test]
fn a_missing_folder_is_named_and_not_made() {
    let root = TempDir::new().unwrap();
    let dir = root.path().join("nowhere");
    match SqliteStore::open(&dir, clock()) {
        Err(StoreError::Unavailable { place, .. }) => assert!(place.contains("nowhere"), "{place}"),
        other => panic!("{:?}", other.err()),
    }
    assert!(!dir.exists());
}

/// Makes the file what the first version of its schema would have made of it.
fn as_first_version(dir: &Path) {
    let (today, first) = (dir.join("aop.db"), dir.join("first.db"));
    let connection = Connection::open(&first).unwrap();
    connection.execute_batch(include_str!("../../migrations/sqlite/0001_start.sql")).unwrap();
    let same = ["specs", "questions"];
    let copies = same.map(|table| format!("INSERT INTO {table} SELECT * FROM today.{table};")).concat();
    let sql = format!(
        "ATTACH '{}' AS today; {copies}
         INSERT INTO operations SELECT l.project, l.operation_id, ifnull(l.digest, e.digest), ifnull(l.envelope, e.envelope)
            FROM today.ledger l LEFT JOIN today.events e ON e.seq = l.seq;
         INSERT INTO projects SELECT project, project_id, (SELECT max(seq) FROM today.events), used_at FROM today.projects;
         INSERT INTO features SELECT project, feature_id, status, adhoc, version, record FROM today.features;
         INSERT INTO log SELECT project, feature_id, seq, at, question_id, line FROM today.events;
         INSERT INTO events SELECT project, seq, feature_id, event FROM today.events;
         DETACH today; PRAGMA application_id = 0x616f7031; PRAGMA user_version = 1",
        today.display()
    );
    connection.execute_batch(&sql).unwrap();
    drop(connection);
    for end in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(dir.join(format!("aop.db{end}")));
    }
    std::fs::rename(first, today).unwrap();
}

#[test]
fn a_store_of_the_first_version_is_brought_up_to_date_and_keeps_everything() {
    let dir = TempDir::new().unwrap();
    let (open, before) = {
        let w = world(dir.path());
        w.policy(|policy| policy.max_open_questions_per_feature = 2);
        wait(w.feature_in("a", Status::Qa));
        let closed = wait(w.ask("a"));
        wait(w.answer("a", &closed, json!("x"))).unwrap();
        let open = wait(w.ask("a"));
        wait(w.ask_with("a", json!({"blocking": false}))).unwrap();
        wait(w.feature("b"));
        (open, wait(w.everything()))
    };
    as_first_version(dir.path());
    let w = world(dir.path());
    assert_eq!(wait(w.everything()), before);
    wait(w.check());
    wait(w.answer("a", &open, json!("y"))).unwrap();
    assert_eq!(wait(w.status("a")), Status::Qa);
    assert_eq!(wait(w.show("a")).open_question_count, 1);
    wait(w.check());
}

/// An aop that knows four steps refuses a file that has five: it says that it is too old.
#[test]
fn a_store_of_the_version_before_gets_the_number_of_this_one_however_many_open_it_at_once() {
    let dir = TempDir::new().unwrap();
    let open = {
        let w = world(dir.path());
        wait(w.feature_in("a", Status::Qa));
        wait(w.ask("a"))
    };
    tamper(dir.path(), "PRAGMA user_version = 4");
    let start = Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                start.wait();
                SqliteStore::open(dir.path(), clock()).unwrap();
            });
        }
    });
    let connection = Connection::open(dir.path().join("aop.db")).unwrap();
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 5);
    let w = world(dir.path());
    wait(w.answer("a", &open, json!("y"))).unwrap();
    wait(w.check());
}

#[test]
fn a_store_of_the_first_version_that_is_not_whole_is_refused_and_left_alone() {
    let dir = TempDir::new().unwrap();
    wait(world(dir.path()).feature("a"));
    as_first_version(dir.path());
    tamper(dir.path(), "DELETE FROM log");
    refusal_to_open(dir.path());
    let connection = Connection::open(dir.path().join("aop.db")).unwrap();
    let events: i64 = connection.query_row("SELECT count(*) FROM events", (), |row| row.get(0)).unwrap();
    assert_eq!(events, 1);
}

#[test]
fn a_process_of_an_earlier_version_that_still_runs_can_change_no_feature() {
    let dir = TempDir::new().unwrap();
    wait(world(dir.path()).feature("a"));
    for (columns, values, missing) in [("", "", "features.open"), (", open", ", ''", "features.last")] {
        let as_then = format!(
            "INSERT INTO features (project, feature_id, status, adhoc, version, record{columns})
             VALUES (1, 'a', 'qa', 0, 2, '{{}}'{values})
             ON CONFLICT (project, feature_id) DO UPDATE SET status = 'qa', version = 2, record = '{{}}'"
        );
        let connection = Connection::open(dir.path().join("aop.db")).unwrap();
        let refused = connection.execute(&as_then, ()).unwrap_err();
        assert!(refused.to_string().contains(missing), "{refused}");
    }
}

/// The version before wrote features, questions and operations together with the log, and read them there.
#[test]
fn a_process_of_the_version_before_that_still_runs_finds_out_at_once() {
    let dir = TempDir::new().unwrap();
    wait(world(dir.path()).feature("a"));
    let connection = Connection::open(dir.path().join("aop.db")).unwrap();
    let refused = connection.prepare("SELECT last_at FROM projects WHERE project = 1").unwrap_err();
    assert!(refused.to_string().contains("no such column: last_at"), "{refused}");
}

/// Each of these is a difference between the tables and the log, or within a row; `verify` names them all.
#[test]
fn verify_finds_what_somebody_changed_behind_the_stores_back() {
    let damages = [
        ("UPDATE questions SET record = json_set(record, '$.prompt', 'forged')", "question q_"),
        ("UPDATE questions SET status = 'answered' WHERE status = 'open'", "question q_"),
        ("UPDATE questions SET expires_at = 1", "question q_"),
        ("DELETE FROM questions", "question q_"),
        ("UPDATE features SET record = json_set(record, '$.status', 'merged')", "feature 'a'"),
        ("UPDATE features SET status = 'merged'", "feature 'a'"),
        (
            "UPDATE features SET record = json_set(record, '$.status_since', '2026-01-01T00:00:00.000Z')",
            "feature 'a'",
        ),
        ("DELETE FROM features", "feature 'a'"),
        ("DELETE FROM events WHERE seq = 2", "event 2 is missing"),
        ("DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)", "event 4 is missing"),
        (
            "INSERT INTO questions SELECT project, 'q_01J9ZQ4V7K3M2N1P0R5S6T7V8W', feature_id, status, created_at,
             expires_at, answered_at, json_set(record, '$.question_id', 'q_01J9ZQ4V7K3M2N1P0R5S6T7V8W') FROM questions",
            "question q_01J9ZQ4V7K3M2N1P0R5S6T7V8W",
        ),
        ("UPDATE specs SET spec = 'other'", "specification of feature 'a'"),
        ("UPDATE features SET open = ''", "open questions of feature 'a'"),
        ("UPDATE features SET last = 3", "events of feature 'a'"),
        ("UPDATE events SET at = at + 1 WHERE seq = 1", "row of event 1"),
        ("UPDATE events SET question_id = NULL WHERE seq = 3", "row of event 3"),
        ("UPDATE events SET previous = NULL WHERE seq = 3", "events of feature 'a'"),
        ("DELETE FROM ledger", "operation 'op"),
        ("UPDATE ledger SET seq = 1", "operation 'op"),
    ];
    for (damage, finding) in damages {
        let dir = TempDir::new().unwrap();
        let w = world(dir.path());
        let create = json!({"feature_id": "a", "title": "A", "spec": "words"});
        wait(w.call(Role::Human, "feature.create", create)).unwrap();
        wait(w.transition("a", Status::Building)).unwrap();
        wait(w.ask("a"));
        wait(w.show("a"));
        assert_eq!(wait(w.store.verify()).unwrap(), Vec::<String>::new());
        tamper(dir.path(), damage);
        let found = wait(w.store.verify()).unwrap();
        assert!(found.iter().any(|found| found.contains(finding)), "{damage}: {found:?}");
    }
}

/// An earlier version did not write since when a status holds.
#[test]
fn a_record_that_does_not_say_since_when_its_status_holds_is_as_good_until_it_changes() {
    let dir = TempDir::new().unwrap();
    wait(world(dir.path()).feature("a"));
    tamper(dir.path(), "UPDATE features SET record = json_remove(record, '$.status_since')");
    let w = world(dir.path());
    let healthy = || assert_eq!(wait(w.store.verify()).unwrap(), Vec::<String>::new());
    assert_eq!(wait(w.show("a")).status_since, None);
    healthy();
    wait(w.call(Role::Human, "feature.log_append", json!({"feature_id": "a", "note": "n"}))).unwrap();
    assert_eq!(wait(w.show("a")).status_since, None);
    healthy();
    wait(w.transition("a", Status::Building)).unwrap();
    assert_eq!(wait(w.show("a")).status_since, Some(wait(w.store.now()).unwrap()));
    healthy();
}

#[test]
fn a_hole_among_the_events_of_a_feature_is_named_and_a_chain_bent_forwards_ends() {
    let dir = TempDir::new().unwrap();
    let w = world(dir.path());
    wait(w.feature("a"));
    for _ in 0..3 {
        wait(w.call(Role::Human, "feature.log_append", json!({"feature_id": "a", "note": "n"}))).unwrap();
    }
    wait(w.show("a"));
    let last = || wait(w.store.last_events(feature_id("a"), None, 9));
    assert_eq!(last().unwrap().len(), 4);
    tamper(dir.path(), "UPDATE events SET previous = 4 WHERE seq = 3");
    assert_eq!(last().unwrap().len(), 2);
    tamper(dir.path(), "DELETE FROM events WHERE seq = 3");
    let error = last().unwrap_err();
    assert!(matches!(&error, StoreError::Damaged { place, .. } if place == "event 3"), "{error:?}");
}

/// The pages of an erased secret are overwritten, in the file and in its log.
#[test]
fn a_forgotten_secret_is_in_no_file_of_the_store() {
    let dir = TempDir::new().unwrap();
    let secret = "correct-horse-battery-staple";
    let w = world(dir.path());
    wait(w.feature("a"));
    let spec = json!({"version": 1, "topic": "t", "questions": [{"id": "key", "header": "Key",
        "question": "Key?", "kind": "free_text", "required": true, "secret": true}]});
    let data: Value = wait(w.ask_with("a", json!({"spec": spec}))).unwrap();
    let id = data["question_id"].as_str().unwrap();
    wait(w.answer("a", id, json!({"key": secret}))).unwrap();
    let holds = || {
        std::fs::read_dir(dir.path()).unwrap().any(|entry| {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            bytes.windows(secret.len()).any(|window| window == secret.as_bytes())
        })
    };
    assert!(holds(), "it has to be somewhere until it is delivered");
    wait(w.store.forget(question_id(id))).unwrap();
    assert!(!holds());
    assert_eq!(wait(w.store.feature(feature_id("a"))).unwrap().unwrap().status, Status::Planning);
}
