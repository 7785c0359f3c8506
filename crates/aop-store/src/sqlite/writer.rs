//! Writing. Mutations queue for one thread that drains the queue into one transaction, commits, then answers. A
//! caller that finds nobody writing commits on its own thread instead: to hand a write over and its answer back
//! costs as much as to decide it. All this starts with the first write, so a command that only reads never pays
//! for it.

use super::batch::{Added, Batch, Company};
use super::connect::unavailable;
use super::tail::Shared;
use super::worker::Worker;
use crate::clock::Clock;
use crate::error::StoreError;
use crate::wakes::Wakes;
use aop_kernel::ids::FeatureId;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;

/// At most so many calls share one commit, so that nobody waits for an endless queue.
const BATCH: usize = 256;

/// So long after its last commit the thread brings the tables up to the log, if nobody has looked there before.
const QUIET: Duration = Duration::from_millis(5);

/// Told how the commit went; answers its caller.
type Finish = Box<dyn FnOnce(&Result<(), StoreError>) + Send>;
/// One queued write; without a batch (there was none to be had) it only gives its `Finish`.
type Job = Box<dyn FnOnce(Option<&mut Batch<'_>>) -> Finish + Send>;

/// Connections for reading.
pub(super) type Spare = Arc<Mutex<Vec<Connection>>>;

/// Where writes come in.
pub(super) struct Writer {
    desk: Arc<Desk>,
    running: Mutex<Option<(Sender<Job>, JoinHandle<()>)>>,
}

/// What the thread and the callers share.
pub(super) struct Desk {
    path: PathBuf,
    clock: Arc<dyn Clock>,
    wakes: Arc<Wakes>,
    /// Connections that nobody reads on at the moment. The first write takes one of them.
    spare: Spare,
    /// What was written to the log and not yet to the other tables.
    tail: Shared,
    /// Whether a secret was erased, and older copies of its page may still stand in SQLite's log.
    erased: Arc<AtomicBool>,
    /// Whoever holds it writes.
    worker: Mutex<Option<Worker>>,
    /// Writes in the queue that the thread has not taken yet: nobody overtakes them.
    queued: AtomicUsize,
}

impl Desk {
    /// Waits until nobody else writes. A write that panicked may have left its transaction open: then another
    /// worker starts afresh.
    fn seize(&self) -> MutexGuard<'_, Option<Worker>> {
        self.worker.lock().unwrap_or_else(|poisoned| {
            self.worker.clear_poison();
            let mut held = poisoned.into_inner();
            *held = None;
            held
        })
    }

    /// The worker, ready to write.
    fn ready<'a>(&self, held: &'a mut MutexGuard<'_, Option<Worker>>) -> Result<&'a mut Worker, StoreError> {
        match &mut **held {
            Some(worker) => Ok(worker),
            none => {
                let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
                Ok(none.insert(Worker::new(
                    &self.path,
                    Arc::clone(&self.clock),
                    spare,
                    self.tail.clone(),
                    Arc::clone(&self.erased),
                )?))
            }
        }
    }

    /// Whether the last commit of all was made here, and is announced.
    pub(super) fn wrote_last(&self) -> bool {
        let held = self.worker.try_lock();
        held.is_ok_and(|worker| worker.as_ref().is_some_and(Worker::wrote_last))
    }

    /// Brings the tables up to the log, if the lock is to be had.
    fn settle(&self, held: &mut MutexGuard<'_, Option<Worker>>) -> Option<Result<(), StoreError>> {
        let settled = match self.ready(held) {
            Ok(worker) if worker.lock.try_lock().is_err() => return None,
            Ok(worker) => worker.settle(),
            Err(error) => Err(error),
        };
        if settled.is_err() {
            **held = None;
        }
        // What others wrote has been seen by it.
        self.announce(&settled);
        Some(settled.map(drop))
    }

    fn is_unsettled(&self) -> bool {
        !self.tail.look().is_empty()
    }

    /// Announced before it is answered: whoever has the answer finds the commit among the changes.
    fn announce(&self, outcome: &Result<Added, StoreError>) {
        if let Ok(Added { before, last, features }) = outcome {
            self.wakes.committed(*before, *last, features.iter().map(FeatureId::as_str));
        }
    }
}

impl Writer {
    pub(super) fn new(path: PathBuf, clock: Arc<dyn Clock>, wakes: Arc<Wakes>, spare: Spare) -> Self {
        let (tail, erased, worker, queued) = Default::default();
        let desk = Arc::new(Desk { path, clock, wakes, spare, tail, erased, worker, queued });
        Writer { desk, running: Mutex::new(None) }
    }

    pub(super) fn desk(&self) -> Weak<Desk> {
        Arc::downgrade(&self.desk)
    }

    /// What was written to the log and not yet to the other tables.
    pub(super) fn tail(&self) -> Shared {
        self.desk.tail.clone()
    }

    /// Reads on the connection that writes, if nobody writes or queues for it: it knows what was just committed.
    /// Otherwise gives the work back.
    pub(super) fn read_here<T, W>(&self, work: W) -> Result<T, W>
    where
        W: FnOnce(&Connection) -> T,
    {
        if self.desk.queued.load(Ordering::SeqCst) > 0 {
            return Err(work);
        }
        match self.desk.worker.try_lock().as_deref() {
            // One that could not even be rolled back shows what nobody committed.
            Ok(Some(worker)) if worker.connection.is_autocommit() => Ok(work(&worker.connection)),
            Ok(_) | Err(_) => Err(work),
        }
    }

    /// Writes on this thread, if nobody writes or queues for it, in this process or another. Otherwise gives the
    /// work back; so it does on a thread that has other tasks to serve meanwhile.
    pub(super) fn write_here<T, W>(&self, work: W) -> Result<Result<T, StoreError>, W>
    where
        W: FnOnce(&mut Batch<'_>) -> Result<T, StoreError>,
    {
        let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
        if !matches!(flavor, Err(_) | Ok(RuntimeFlavor::CurrentThread)) {
            return Err(work);
        }
        let desk = &*self.desk;
        let Ok(mut held) = desk.worker.try_lock() else { return Err(work) };
        if desk.queued.load(Ordering::SeqCst) > 0 {
            return Err(work);
        }
        let worker = match desk.ready(&mut held) {
            Ok(worker) => worker,
            Err(error) => return Ok(Err(error)),
        };
        if worker.lock.try_lock().is_err() {
            return Err(work);
        }
        let mut result = None;
        let outcome = worker.transact(Company::Alone, |batch| result = Some(batch.member(work)));
        desk.announce(&outcome);
        let due = worker.checkpoint_is_due() || desk.tail.look().is_long();
        drop(held);
        if due {
            // An empty write: the thread does it after that, and this caller has its answer meanwhile.
            let _ = self.enqueue(|_| Ok(()), oneshot::channel().0);
        }
        Ok(outcome.and_then(|_| result.unwrap_or_else(|| Err(stopped(&desk.path)))))
    }

    /// Brings the tables up to the log on this thread, if nobody writes or queues for it, in this process or another.
    pub(super) fn settle_here(&self) -> Option<Result<(), StoreError>> {
        let mut held = self.desk.worker.try_lock().ok()?;
        if self.desk.queued.load(Ordering::SeqCst) > 0 {
            return None;
        }
        self.desk.settle(&mut held)
    }

    /// Queues a write; its caller hears of it after the commit.
    pub(super) fn enqueue<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Batch<'_>) -> Result<T, StoreError> + Send + 'static,
        reply: oneshot::Sender<Result<T, StoreError>>,
    ) -> Result<(), StoreError> {
        let job: Job = Box::new(move |batch| {
            let result = batch.map(|batch| batch.member(work));
            Box::new(move |commit| {
                let outcome = match (result, commit) {
                    // Refusals too: one may rest on a neighbour's change that has just been lost with this
                    // commit, and would tell of a winner who never won.
                    (_, Err(error)) => Err(error.clone()),
                    (Some(result), Ok(())) => result,
                    // Never: without a batch there is no commit. The closed channel says so to the caller.
                    (None, Ok(())) => return,
                };
                // A caller that stopped waiting loses nothing: its operation id tells it later.
                let _ = reply.send(outcome);
            })
        });
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let job = match &*running {
            Some((queue, _)) => {
                self.desk.queued.fetch_add(1, Ordering::SeqCst);
                match queue.send(job) {
                    Ok(()) => return Ok(()),
                    Err(unsent) => unsent.0,
                }
            }
            None => job,
        };
        let (queue, jobs) = channel();
        let desk = Arc::clone(&self.desk);
        desk.queued.store(1, Ordering::SeqCst);
        let thread =
            std::thread::Builder::new().name("aop-writer".into()).spawn(move || desk.run(&jobs)).map_err(
                |error| unavailable(&self.desk.path, &error.to_string(), "the system has no thread to spare"),
            )?;
        // The thread is at the other end of a channel made just above.
        let _ = queue.send(job);
        *running = Some((queue, thread));
        Ok(())
    }
}

impl Drop for Writer {
    /// Lets the queue run dry, so that nothing acknowledged-to-be is cut off.
    fn drop(&mut self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((queue, thread)) = running {
            drop(queue);
            let _ = thread.join();
        }
        if self.desk.is_unsettled() {
            // Whoever opens the file next would have to, and would have to read the log for it.
            let _ = self.settle_here();
        }
    }
}

impl Desk {
    fn run(&self, jobs: &Receiver<Job>) {
        loop {
            let first = match self.is_unsettled().then(|| jobs.recv_timeout(QUIET)) {
                None => jobs.recv().ok(),
                Some(Ok(first)) => Some(first),
                Some(Err(RecvTimeoutError::Disconnected)) => None,
                Some(Err(RecvTimeoutError::Timeout)) => match self.settle(&mut self.seize()) {
                    Some(Ok(())) => continue,
                    // Somebody else writes, and will settle, or it cannot be done now.
                    Some(Err(_)) | None => jobs.recv().ok(),
                },
            };
            let Some(first) = first else { return };
            let mut held = self.seize();
            let mut batch = vec![first];
            while batch.len() < BATCH {
                match jobs.try_recv() {
                    Ok(job) => batch.push(job),
                    Err(_) => break,
                }
            }
            self.queued.fetch_sub(batch.len(), Ordering::SeqCst);
            self.commit(&mut held, batch);
        }
    }

    /// One transaction for all of them, then one answer for each.
    fn commit(&self, held: &mut MutexGuard<'_, Option<Worker>>, mut jobs: Vec<Job>) {
        let mut finishes = Vec::with_capacity(jobs.len());
        let company = if jobs.len() == 1 { Company::Alone } else { Company::Others };
        let outcome = self.ready(held).and_then(|worker| {
            worker.lock.lock().map_err(|error| {
                unavailable(&self.path, &error.to_string(), "check the permissions of .aop/write.lock")
            })?;
            worker.transact(company, |batch| finishes.extend(jobs.drain(..).map(|job| job(Some(batch)))))
        });
        finishes.extend(jobs.into_iter().map(|job| job(None)));
        self.announce(&outcome);
        let outcome = outcome.map(drop);
        for finish in finishes {
            finish(&outcome);
        }
        if self.tail.look().is_long() {
            self.settle(held);
        }
        if let Some(worker) = held.as_mut().filter(|worker| worker.checkpoint_is_due()) {
            worker.checkpoint();
        }
    }
}

/// The writer broke off in the middle of a call.
pub(super) fn stopped(path: &Path) -> StoreError {
    let hint = "run the command again; if it was committed, its operation id returns the same answer";
    unavailable(path, "the writer stopped before it answered", hint)
}

#[cfg(test)]
mod tests {
    use super::super::connect::{open_lock, open_ready, open_writer};
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
        let path = dir.join("aop.db");
        open_ready(&path).unwrap();
        Writer::new(path, Arc::new(SystemClock), Arc::new(Wakes::new(0)), Spare::default())
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
            batch
                .execute("INSERT INTO specs (project, feature_id, spec) VALUES (1, 'half', '')", ())
                .map(drop)
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
            let sql = "INSERT INTO events (project, seq, feature_id, at, line, event) VALUES (1, 1, 'a', 0, '', '{')";
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
                connection.pragma_query_value(None, "synchronous", |row| row.get::<_, i64>(0)).unwrap()
            };
            writer.write_here(spec_now).map_err(drop).unwrap().unwrap();
            assert_eq!(writer.read_here(pragma).map_err(drop), Ok(2));
        };
        full();
        writer.settle_here().unwrap().unwrap();
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
            connection.query_row("SELECT count(*) FROM specs", (), |row| row.get::<_, i64>(0)).unwrap()
        };
        assert!(writer.read_here(specs).is_err(), "there is none yet");
        writer.write_here(spec("a")).ok().unwrap().unwrap();
        assert_eq!(writer.read_here(specs).ok(), Some(1));
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
}
