//! A commit is in the log first and in the other tables of the file a little later: nobody may notice.

use crate::sqlite::{tamper, world};
use crate::support::{QUARTER, World, page, question_id, wait};
use aop_kernel::question::QuestionStatus;
use aop_kernel::role::{Caller, Role};
use aop_kernel::status::Status;
use aop_kernel::tools::QuestionFilter;
use aop_store::{Entry, QuestionPage, StoreError};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How many events the tables do not hold.
fn unsettled(dir: &Path) -> i64 {
    let connection = Connection::open(dir.join("aop.db")).unwrap();
    let sql = "SELECT ifnull((SELECT max(seq) FROM events), 0) - settled FROM projects";
    connection.query_row(sql, (), |row| row.get(0)).unwrap()
}

/// Waits until the tables hold all.
fn until_settled(dir: &Path) {
    let start = Instant::now();
    while unsettled(dir) > 0 {
        assert!(start.elapsed() < Duration::from_secs(60), "{} events are still unsettled", unsettled(dir));
        std::thread::yield_now();
    }
}

fn note(number: usize) -> Value {
    json!({"feature_id": "a", "note": "n", "operation_id": format!("note-{number}")})
}

fn answer(id: &str) -> Value {
    json!({"feature_id": "a", "question_id": id, "answer": "x", "answered_by": "ann", "operation_id": "answer"})
}

/// A process that asked and died: what it wrote is in the log alone.
fn died_after_asking(dir: &Path) -> String {
    let w = world(dir);
    wait(w.feature_in("a", Status::Qa));
    wait(w.show("a"));
    let asked = wait(w.ask("a"));
    std::mem::forget(w);
    assert!(unsettled(dir) > 0, "the test needs something that is in the log alone");
    asked
}

/// A project with a feature, whose table of questions takes no more.
fn without_room(dir: &Path) -> World {
    let w = world(dir);
    wait(w.feature("a"));
    wait(w.show("a"));
    tamper(dir, "CREATE TRIGGER full BEFORE INSERT ON questions BEGIN SELECT raise(ABORT, 'no room'); END");
    w
}

/// What a process that comes after a crash does first must find everything, whatever it is.
#[test]
fn what_a_crash_left_in_the_log_alone_is_found_by_whoever_comes_next() {
    let firsts: [fn(&World, &str); 6] = [
        |w, id| assert_eq!(wait(w.list("a", "open")), [id]),
        |w, id| assert!(wait(w.store.question(question_id(id))).unwrap().unwrap().is_open()),
        |w, id| {
            assert_eq!(
                wait(w.call(Role::Human, "feature.question_answer", answer(id))).unwrap()["feature_status"],
                "qa"
            )
        },
        |w, _| {
            w.later(QUARTER);
            assert_eq!(wait(w.store.expire()).unwrap(), 1);
        },
        |w, _| assert_eq!(wait(w.store.inbox(0, 9)).unwrap().total, 1),
        |w, _| assert_eq!(wait(w.store.verify()).unwrap(), Vec::<String>::new()),
    ];
    for first in firsts {
        let dir = TempDir::new().unwrap();
        let id = died_after_asking(dir.path());
        let w = world(dir.path());
        first(&w, &id);
        wait(w.check());
    }
}

#[test]
fn a_retry_after_a_crash_gets_the_same_words_though_they_are_in_the_log_alone() {
    let dir = TempDir::new().unwrap();
    let caller = Caller::new(Role::Human);
    let id = died_after_asking(dir.path());
    let w = world(dir.path());
    let first = wait(w.raw(&caller, "feature.question_answer", &answer(&id))).unwrap();
    assert_eq!(wait(w.raw(&caller, "feature.question_answer", &answer(&id))).unwrap(), first);
    std::mem::forget(w);
    assert!(unsettled(dir.path()) > 0);
    let w = world(dir.path());
    assert_eq!(wait(w.raw(&caller, "feature.question_answer", &answer(&id))).unwrap(), first);
    let mut other = answer(&id);
    other["answer"] = json!("y");
    let refused = wait(w.raw(&caller, "feature.question_answer", &other)).unwrap_err();
    assert_eq!(refused.code.as_str(), "operation_id_reuse_mismatch");
    wait(w.check());
}

#[test]
fn another_process_reads_what_is_in_the_log_alone() {
    let dir = TempDir::new().unwrap();
    let (one, two) = (world(dir.path()), world(dir.path()));
    wait(one.feature("a"));
    let mut in_the_log_alone = 0;
    for round in 0..20 {
        let id = wait(one.ask("a"));
        // A writer that once had to wait for the other has a thread from then on, which may have settled it by now.
        in_the_log_alone += usize::from(unsettled(dir.path()) > 0);
        if round % 2 == 0 {
            assert_eq!(wait(two.list("a", "open")), [&*id]);
        }
        assert!(wait(two.store.question(question_id(&id))).unwrap().unwrap().is_open());
        wait(one.answer("a", &id, json!("x"))).unwrap();
        assert!(!wait(two.store.question(question_id(&id))).unwrap().unwrap().is_open());
        assert!(!wait(one.store.question(question_id(&id))).unwrap().unwrap().is_open());
    }
    assert!(in_the_log_alone > 0);
    wait(two.check());
}

#[test]
fn a_list_waits_for_another_process_that_writes_and_then_holds_what_is_in_the_log_alone() {
    let dir = TempDir::new().unwrap();
    let w = world(dir.path());
    wait(w.feature("a"));
    let id = wait(w.ask("a"));
    assert!(unsettled(dir.path()) > 0);
    let other = File::open(dir.path().join("write.lock")).unwrap();
    other.lock().unwrap();
    std::thread::scope(|scope| {
        let list = scope.spawn(|| wait(w.list("a", "open")));
        assert!(!list.is_finished(), "it cannot be: nobody can bring the tables up to the log");
        other.unlock().unwrap();
        assert_eq!(list.join().unwrap(), [id]);
    });
    assert_eq!(unsettled(dir.path()), 0);
    wait(w.check());
}

#[test]
fn a_commit_of_another_process_is_announced_though_a_read_settled_it_first() {
    let dir = TempDir::new().unwrap();
    let (one, two) = (world(dir.path()), world(dir.path()));
    let mut changes = one.store.changes();
    wait(async {
        for round in 1..=50 {
            let name = format!("f{round}");
            two.feature(&name).await;
            one.show(&name).await;
            changes.changed().await.unwrap();
            assert_eq!(*changes.borrow_and_update(), round);
        }
    });
}

#[test]
fn a_question_in_the_log_alone_is_due_by_the_latest_time_that_any_process_used() {
    let dir = TempDir::new().unwrap();
    let (behind, ahead) = (world(dir.path()), world(dir.path()));
    wait(behind.feature("a"));
    let id = wait(behind.ask("a"));
    assert!(wait(behind.store.question(question_id(&id))).unwrap().unwrap().is_open());
    ahead.later(QUARTER + 1);
    wait(ahead.store.acquire_lease("l".into(), "h".into(), 1)).unwrap();
    assert!(!wait(behind.store.question(question_id(&id))).unwrap().unwrap().is_open());
    assert_eq!(wait(behind.list("a", "open")), Vec::<String>::new());
}

#[test]
fn what_is_in_the_log_alone_is_exported_and_checked_without_the_tables() {
    let dir = TempDir::new().unwrap();
    let w = without_room(dir.path());
    wait(w.ask("a"));
    assert!(unsettled(dir.path()) > 0);
    assert_eq!(wait(w.store.verify()).unwrap(), Vec::<String>::new());
    let seen = Arc::new(Mutex::new((0, 0)));
    let counts = Arc::clone(&seen);
    let count = move |entry: Entry| {
        let mut seen = counts.lock().unwrap();
        match entry {
            Entry::Event(_) => seen.0 += 1,
            Entry::Operation { .. } => seen.1 += 1,
            Entry::Lease { .. } | Entry::Claim { .. } | Entry::Document { .. } => {}
        }
        Ok(())
    };
    wait(w.store.history(Box::new(count))).unwrap();
    assert_eq!(*seen.lock().unwrap(), (3, 2));
}

#[test]
fn a_store_that_is_closed_leaves_nothing_unsettled() {
    let dir = TempDir::new().unwrap();
    let w = world(dir.path());
    wait(w.feature("a"));
    assert!(unsettled(dir.path()) > 0);
    drop(w);
    assert_eq!(unsettled(dir.path()), 0);
}

#[test]
fn many_commits_are_settled_even_if_nobody_looks() {
    let dir = TempDir::new().unwrap();
    let w = world(dir.path());
    wait(w.feature("a"));
    let next = AtomicUsize::new(0);
    let most = std::thread::scope(|scope| {
        let writing: Vec<_> = (0..16)
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= 4_000 {
                            break;
                        }
                        wait(w.call(Role::Human, "feature.log_append", note(number))).unwrap();
                    }
                })
            })
            .collect();
        let mut most = 0;
        while writing.iter().any(|thread| !thread.is_finished()) {
            most = unsettled(dir.path()).max(most);
        }
        most
    });
    // One event each; a thousand rows, and what one commit more adds.
    assert!(most < 1_500, "{most}");
    wait(w.check());
}

#[test]
fn a_store_that_falls_quiet_is_settled() {
    let dir = TempDir::new().unwrap();
    let w = world(dir.path());
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    runtime.block_on(w.feature("a"));
    until_settled(dir.path());
    wait(w.check());
}

#[test]
fn when_the_tables_cannot_be_written_reading_says_so_and_nothing_is_lost() {
    let dir = TempDir::new().unwrap();
    let w = without_room(dir.path());
    let id = wait(w.ask("a"));
    for _ in 0..2 {
        match wait(w.store.inbox(0, 9)) {
            Err(StoreError::Unavailable { cause, .. }) => assert!(cause.contains("no room"), "{cause}"),
            other => panic!("{other:?}"),
        }
    }
    tamper(dir.path(), "DROP TRIGGER full");
    assert_eq!(wait(w.list("a", "open")), [&*id]);
    wait(w.answer("a", &id, json!("x"))).unwrap();
    wait(w.check());
}

fn open_questions() -> QuestionPage {
    page(QuestionFilter::Only(QuestionStatus::Open), 9)
}

#[test]
#[cfg(target_os = "linux")]
fn a_short_list_and_the_inbox_open_no_connection_of_their_own() {
    let dir = TempDir::new().unwrap();
    let w = world(dir.path());
    wait(w.feature("a"));
    let id = wait(w.ask("a"));
    assert_eq!(wait(w.store.questions(open_questions())).unwrap().len(), 1);
    wait(w.answer("a", &id, json!("x"))).unwrap();
    wait(w.ask("a"));
    assert_eq!(wait(w.store.inbox(0, 9)).unwrap().total, 1);
    let file = dir.path().join("aop.db");
    let held = std::fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path());
    let connections = held.filter(|held| std::fs::read_link(held).is_ok_and(|to| to == file)).count();
    assert_eq!(connections, 1);
    wait(w.check());
}

#[test]
fn a_list_that_meets_a_damaged_record_keeps_nobody_from_writing() {
    let dir = TempDir::new().unwrap();
    let w = world(dir.path());
    wait(w.feature("a"));
    wait(w.ask("a"));
    assert_eq!(wait(w.store.inbox(0, 9)).unwrap().total, 1);
    tamper(dir.path(), "UPDATE questions SET record = '{'");
    assert!(matches!(wait(w.store.inbox(0, 9)), Err(StoreError::Damaged { .. })));
    assert!(matches!(wait(w.store.questions(open_questions())), Err(StoreError::Damaged { .. })));
    wait(w.feature("b"));
    assert_eq!(wait(w.show("b")).id.as_str(), "b");
}
