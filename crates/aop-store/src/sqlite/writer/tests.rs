//! Batches, who writes where, and what is left when something fails.

use super::super::connect::{BUSY_TIMEOUT, open_lock, open_ready, open_writer};
use super::*;
use crate::clock::SystemClock;
use aop_kernel::time::Timestamp;
use aop_kernel::{ErrorCode, Refusal};
use std::thread::{ThreadId, current};
type Work = Box<dyn FnOnce(&mut Batch<'_>) -> Result<(), StoreError> + Send>;

/// Runs these as members of one batch: they queue up behind a write that waits for them.
fn in_one_batch(writer: &Writer, members: Vec<Work>) -> Vec<Result<(), StoreError>> {
    let (go, wait) = channel::<()>();
    let (started, drained) = channel();
    let first = move |_: &mut Batch<'_>| {
        started.send(()).unwrap();
        assert!(wait.recv().is_err(), "let go");
        Ok(())
    };
    writer.enqueue(first, oneshot::channel().0).unwrap();
    drained.recv().unwrap();
    let answers: Vec<_> = members
        .into_iter()
        .map(|work| {
            let (reply, answer) = oneshot::channel();
            writer.enqueue(work, reply).unwrap();
            answer
        })
        .collect();
    drop(go);
    answers.into_iter().map(|answer| answer.blocking_recv().unwrap()).collect()
}

fn writer(dir: &Path) -> Writer {
    writer_that_waits(dir, BUSY_TIMEOUT)
}

fn writer_that_waits(dir: &Path, patience: Duration) -> Writer {
    let path = dir.join("aop.db");
    open_ready(&path).unwrap();
    let (turn, site) = (Turn::new(&path, patience), Arc::new(Site::of(&path).unwrap()));
    Writer::new(turn, site, Arc::new(SystemClock), Arc::new(Wakes::new(0)), Spare::default())
}

fn spec(name: &'static str) -> Work {
    let sql = "INSERT INTO specs (project, feature_id, spec) VALUES (1, ?1, '')";
    Box::new(move |batch| batch.execute(sql, [name]).map(drop))
}

fn refuses() -> Work {
    Box::new(|_| Err(Refusal::new(ErrorCode::QuestionAlreadyAnswered, "answered by a neighbour").into()))
}

fn written(dir: &Path) -> Vec<String> {
    let connection = open_writer(&dir.join("aop.db"), None).unwrap();
    let mut query = connection.prepare("SELECT feature_id FROM specs ORDER BY 1").unwrap();
    query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn a_failed_commit_fails_every_member_of_its_batch_refusals_too() {
    let dir = tempfile::TempDir::new().unwrap();
    let spoils: Work = Box::new(|batch| {
        batch.execute("CREATE TABLE parent (id INTEGER PRIMARY KEY) STRICT", ())?;
        batch.execute(
            "CREATE TABLE child (id INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED) STRICT",
            (),
        )?;
        batch.execute("INSERT INTO child VALUES (7)", ()).map(drop)
    });
    let results = in_one_batch(&writer(dir.path()), vec![spec("a"), spoils, refuses()]);
    for result in results {
        assert!(matches!(result, Err(StoreError::Unavailable { .. })), "{result:?}");
    }
    assert_eq!(written(dir.path()), Vec::<String>::new());
}

#[test]
fn one_refusal_or_failure_does_not_sink_its_neighbours() {
    let dir = tempfile::TempDir::new().unwrap();
    let fails: Work = Box::new(|batch| {
        batch.execute("INSERT INTO specs (project, feature_id, spec) VALUES (1, 'half', '')", ())?;
        batch.execute("INSERT INTO specs (project, feature_id, spec) VALUES (1, 'half', '')", ()).map(drop)
    });
    let results = in_one_batch(&writer(dir.path()), vec![spec("a"), refuses(), fails, spec("b")]);
    assert!(matches!(
        results.as_slice(),
        [Ok(()), Err(StoreError::Refused(_)), Err(StoreError::Unavailable { .. }), Ok(())]
    ));
    assert_eq!(written(dir.path()), ["a", "b"]);
}

#[test]
fn a_member_that_cannot_be_undone_fails_the_batch() {
    let dir = tempfile::TempDir::new().unwrap();
    let unreadable: Work = Box::new(|batch| {
        let sql =
            "INSERT INTO events (project, seq, feature_id, at, line, event) VALUES (1, 1, 'a', 0, '', '{')";
        batch.execute(sql, ()).map(drop)
    });
    let fails: Work = Box::new(|batch| {
        spec("half")(batch)?;
        Err(unavailable(Path::new("aop.db"), "broken off", ""))
    });
    let results = in_one_batch(&writer(dir.path()), vec![unreadable, fails, spec("a")]);
    for result in results {
        assert!(matches!(result, Err(StoreError::Damaged { .. })), "{result:?}");
    }
    assert_eq!(written(dir.path()), Vec::<String>::new());
}

#[test]
fn every_commit_that_is_answered_is_synced_also_after_one_that_was_not() {
    let dir = tempfile::TempDir::new().unwrap();
    let writer = writer(dir.path());
    let full = || {
        let pragma = |connection: &Connection| {
            Ok(connection.pragma_query_value(None, "synchronous", |row| row.get::<_, i64>(0)).unwrap())
        };
        writer.write_here(spec_now).map_err(drop).unwrap().unwrap();
        assert_eq!(writer.read_here(pragma).ok().unwrap().unwrap(), 2);
    };
    full();
    writer.settle_here().unwrap().unwrap();
    full();
    let (reply, answer) = oneshot::channel();
    writer.settle_in_turn(reply).unwrap();
    answer.blocking_recv().unwrap().unwrap();
    drop(writer.desk.seize());
    full();
    let connection = open_writer(&dir.path().join("aop.db"), None).unwrap();
    let unsettle =
        "INSERT INTO events (project, seq, feature_id, at, line, event) VALUES (1, 1, 'a', 0, '', '{')";
    connection.execute(unsettle, ()).unwrap();
    writer.settle_here().unwrap().unwrap_err();
    connection.execute("DELETE FROM events", ()).unwrap();
    full();
}

fn spec_now(batch: &mut Batch<'_>) -> Result<(), StoreError> {
    batch.execute("DELETE FROM specs", ()).map(drop)
}

#[test]
fn a_member_that_fails_leaves_no_time_behind() {
    let dir = tempfile::TempDir::new().unwrap();
    let later = Timestamp::from_millis(SystemClock.now().as_millis() + 1_000_000_000);
    let from_the_future: Work = Box::new(move |batch| {
        batch.now = later;
        spec("half")(batch)?;
        Err(unavailable(Path::new("aop.db"), "the history breaks off", ""))
    });
    let results = in_one_batch(&writer(dir.path()), vec![from_the_future, spec("a")]);
    assert!(matches!(results.as_slice(), [Err(StoreError::Unavailable { .. }), Ok(())]), "{results:?}");
    let connection = open_ready(&dir.path().join("aop.db")).unwrap();
    let (_, used) = super::super::connect::counters(&connection).unwrap();
    assert!(used < later, "{used}");
}

#[test]
fn what_a_failed_write_saw_of_other_processes_is_still_to_be_announced() {
    let dir = tempfile::TempDir::new().unwrap();
    let (writer, other) = (writer(dir.path()), writer(dir.path()));
    writer.write_here(spec("a")).ok().unwrap().unwrap();
    assert!(writer.desk.wrote_last());
    other.write_here(spec("b")).ok().unwrap().unwrap();
    assert!(!writer.desk.wrote_last());
    let fails = |_: &mut Batch<'_>| Err::<(), _>(unavailable(Path::new("aop.db"), "disk full", ""));
    assert!(writer.write_here(fails).ok().unwrap().is_err());
    assert!(!writer.desk.wrote_last());
}

#[test]
fn a_member_that_fails_alone_leaves_nothing_behind() {
    let dir = tempfile::TempDir::new().unwrap();
    let writer = writer(dir.path());
    let (reply, answer) = oneshot::channel();
    let half = |batch: &mut Batch<'_>| -> Result<(), StoreError> {
        batch.execute("INSERT INTO specs (project, feature_id, spec) VALUES (1, 'half', '')", ())?;
        Err(unavailable(Path::new("aop.db"), "the disk is gone", ""))
    };
    writer.enqueue(half, reply).unwrap();
    let failed = answer.blocking_recv().unwrap().unwrap_err();
    assert!(failed.to_string().contains("the disk is gone"), "{failed}");
    assert_eq!(written(dir.path()), Vec::<String>::new());
}

/// A full disk can make SQLite end the transaction in the middle of a batch.
#[test]
fn a_transaction_that_was_rolled_back_as_a_whole_fails_every_member() {
    let dir = tempfile::TempDir::new().unwrap();
    let writer = writer(dir.path());
    let rolls_back: Work = Box::new(|batch| {
        batch.execute("ROLLBACK", ())?;
        Err(unavailable(Path::new("aop.db"), "disk full", ""))
    });
    let results = in_one_batch(&writer, vec![spec("a"), rolls_back, spec("b"), refuses()]);
    for result in results {
        assert!(matches!(result, Err(StoreError::Unavailable { .. })), "{result:?}");
    }
    assert_eq!(written(dir.path()), Vec::<String>::new());
    assert!(matches!(in_one_batch(&writer, vec![spec("c")]).as_slice(), [Ok(())]));
    assert_eq!(written(dir.path()), ["c"]);
}

fn here(_: &mut Batch<'_>) -> Result<ThreadId, StoreError> {
    Ok(current().id())
}

/// Where a write is done that may be done here.
fn place(writer: &Writer) -> Option<ThreadId> {
    writer.write_here(here).ok().map(Result::unwrap)
}

/// The same when the writer's thread has answered and is about to put its pen down.
fn place_in_the_end(writer: &Writer) -> Option<ThreadId> {
    let places = std::iter::repeat_with(|| {
        std::thread::yield_now();
        place(writer)
    });
    places.flatten().next()
}

#[test]
fn a_caller_that_finds_nobody_writing_commits_on_its_own_thread() {
    let dir = tempfile::TempDir::new().unwrap();
    let writer = writer(dir.path());
    assert_eq!(place(&writer), Some(current().id()));
    let (go, wait) = channel::<()>();
    let (started, begun) = channel();
    let (reply, answer) = oneshot::channel();
    let busy = move |_: &mut Batch<'_>| {
        started.send(()).unwrap();
        assert!(wait.recv().is_err(), "let go");
        Ok(())
    };
    writer.enqueue(busy, reply).unwrap();
    begun.recv().unwrap();
    assert_eq!(place(&writer), None, "the thread is writing");
    drop(go);
    answer.blocking_recv().unwrap().unwrap();
}

#[test]
fn a_read_uses_the_connection_that_writes_while_nobody_does() {
    let dir = tempfile::TempDir::new().unwrap();
    let writer = writer(dir.path());
    let specs = |connection: &Connection| {
        Ok(connection.query_row("SELECT count(*) FROM specs", (), |row| row.get::<_, i64>(0)).unwrap())
    };
    assert!(writer.read_here(specs).is_err(), "there is none yet");
    writer.write_here(spec("a")).ok().unwrap().unwrap();
    assert_eq!(writer.read_here(specs).ok().unwrap().unwrap(), 1);
    let (go, wait) = channel::<()>();
    let (started, begun) = channel();
    let (reply, answer) = oneshot::channel();
    let half = move |batch: &mut Batch<'_>| {
        spec("b")(batch)?;
        started.send(()).unwrap();
        assert!(wait.recv().is_err(), "let go");
        Ok(())
    };
    writer.enqueue(half, reply).unwrap();
    begun.recv().unwrap();
    assert!(writer.read_here(specs).is_err(), "what is half written is not shown");
    drop(go);
    answer.blocking_recv().unwrap().unwrap();
}

#[test]
fn a_write_goes_to_the_queue_while_another_process_writes() {
    let dir = tempfile::TempDir::new().unwrap();
    let writer = writer(dir.path());
    let other = open_lock(&dir.path().join("aop.db")).unwrap();
    other.lock().unwrap();
    assert_eq!(place(&writer), None);
    let (reply, answer) = oneshot::channel();
    writer.enqueue(here, reply).unwrap();
    other.unlock().unwrap();
    assert_ne!(answer.blocking_recv().unwrap().unwrap(), current().id());
    assert_eq!(place_in_the_end(&writer), Some(current().id()));
}

#[test]
fn a_process_that_does_not_let_go_of_the_store_is_named_and_stops_nobody_for_ever() {
    let dir = tempfile::TempDir::new().unwrap();
    let writer = writer_that_waits(dir.path(), Duration::from_millis(1));
    writer.write_here(spec("a")).ok().unwrap().unwrap();
    let other = open_lock(&dir.path().join("aop.db")).unwrap();
    other.lock().unwrap();
    let (reply, written_late) = oneshot::channel();
    writer.enqueue(spec("b"), reply).unwrap();
    let (reply, settled) = oneshot::channel();
    writer.settle_in_turn(reply).unwrap();
    for error in [written_late.blocking_recv(), settled.blocking_recv()] {
        let error = error.unwrap().unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
        let who = format!("process {} writes", std::process::id());
        assert!(!cfg!(target_os = "linux") || error.to_string().contains(&who), "{error}");
    }
    other.unlock().unwrap();
    let (reply, answer) = oneshot::channel();
    writer.enqueue(spec("c"), reply).unwrap();
    answer.blocking_recv().unwrap().unwrap();
    assert_eq!(written(dir.path()), ["a", "c"]);
}

#[test]
fn nothing_is_written_to_a_file_that_had_taken_the_place_of_the_store_for_a_while() {
    let dir = tempfile::TempDir::new().unwrap();
    let [place, gone, other] = [".aop", "gone", "other"].map(|name| dir.path().join(name));
    std::fs::create_dir(&place).unwrap();
    let writer = writer(&place);
    let write = |name| writer.write_here(spec(name)).unwrap_or_else(|_| panic!("nobody else writes"));
    write("a").unwrap();
    std::fs::rename(&place, &gone).unwrap();
    std::fs::create_dir(&place).unwrap();
    drop(open_ready(&place.join("aop.db")).unwrap());
    // The connection goes with this error, and the next one is opened on what is there now.
    writer.settle_here().unwrap().unwrap_err();
    write("b").unwrap_err();
    assert!(writer.read_here(|_| Ok(())).is_err(), "it is not kept for reading either");
    std::fs::rename(&place, &other).unwrap();
    std::fs::rename(&gone, &place).unwrap();
    write("c").unwrap();
    assert_eq!((written(&place), written(&other)), (vec!["a".into(), "c".into()], Vec::new()));
}

#[test]
fn a_thread_that_serves_many_never_waits_for_a_commit() {
    let dir = tempfile::TempDir::new().unwrap();
    let writer = writer(dir.path());
    let many = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    assert_eq!(many.block_on(async { place(&writer) }), None);
    let one = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(one.block_on(async { place(&writer) }), Some(current().id()));
}

#[test]
fn a_write_that_panics_leaves_nothing_behind_and_the_next_one_succeeds() {
    let dir = tempfile::TempDir::new().unwrap();
    let writer = writer(dir.path());
    let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let half = |batch: &mut Batch<'_>| -> Result<(), StoreError> {
            batch.execute("INSERT INTO specs (project, feature_id, spec) VALUES (1, 'half', '')", ())?;
            panic!("in the middle")
        };
        writer.write_here(half).is_ok()
    }));
    assert!(panics.is_err());
    assert!(matches!(in_one_batch(&writer, vec![spec("a")]).as_slice(), [Ok(())]));
    assert_eq!(place_in_the_end(&writer), Some(current().id()));
    assert_eq!(written(dir.path()), ["a"]);
}
