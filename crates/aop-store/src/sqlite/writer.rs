//! The writer thread: drains the queue into one transaction, commits, then answers. It starts with the first
//! write, so a command that only reads never pays for it.

use super::batch::{Batch, Company};
use super::connect::{BUSY_TIMEOUT, explain, open_lock, open_writer, unavailable};
use crate::clock::{Clock, Ids};
use crate::error::StoreError;
use crate::fault::crash_point;
use rusqlite::Connection;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// At most so many calls share one commit, so that nobody waits for an endless queue.
const BATCH: usize = 256;

/// After so many pages in the log, they are moved into the database file, off the callers' path.
const CHECKPOINT_PAGES: i32 = 1_000;

/// How long readers may delay the erasure of a secret's older copies before it is put off.
const READER_PATIENCE: Duration = Duration::from_millis(250);

/// Told how the commit went; answers its caller.
type Finish = Box<dyn FnOnce(&Result<(), StoreError>) + Send>;
/// One queued write; without a batch (there was none to be had) it only gives its `Finish`.
type Job = Box<dyn FnOnce(Option<&mut Batch<'_>>) -> Finish + Send>;

/// The handle of the writer thread.
pub(super) struct Writer {
    path: PathBuf,
    clock: Arc<dyn Clock>,
    committed: watch::Sender<u64>,
    running: Mutex<Option<(Sender<Job>, JoinHandle<()>)>>,
}

impl Writer {
    pub(super) fn new(path: PathBuf, clock: Arc<dyn Clock>, committed: watch::Sender<u64>) -> Self {
        Writer { path, clock, committed, running: Mutex::new(None) }
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
            Some((queue, _)) => match queue.send(job) {
                Ok(()) => return Ok(()),
                Err(unsent) => unsent.0,
            },
            None => job,
        };
        let (queue, jobs) = channel();
        let worker = Worker::new(&self.path, Arc::clone(&self.clock), self.committed.clone())?;
        let thread =
            std::thread::Builder::new().name("aop-writer".into()).spawn(move || worker.run(&jobs)).map_err(
                |error| unavailable(&self.path, &error.to_string(), "the system has no thread to spare"),
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
    }
}

/// What the thread owns.
struct Worker {
    path: PathBuf,
    connection: Connection,
    lock: File,
    clock: Arc<dyn Clock>,
    ids: Ids,
    committed: watch::Sender<u64>,
    pages: Arc<AtomicI32>,
    /// A secret was erased, and older copies of its page may still stand in the log.
    erased: bool,
}

impl Worker {
    fn new(path: &Path, clock: Arc<dyn Clock>, committed: watch::Sender<u64>) -> Result<Self, StoreError> {
        let mut connection = open_writer(path)?;
        let pages = Arc::new(AtomicI32::new(0));
        let seen = Arc::clone(&pages);
        connection
            .wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, count| {
                seen.store(count, Ordering::Relaxed);
                Ok(())
            }))
            .map_err(|error| explain(path, &error))?;
        let lock = open_lock(path)?;
        Ok(Worker {
            path: path.to_owned(),
            connection,
            lock,
            clock,
            ids: Ids::new(),
            committed,
            pages,
            erased: false,
        })
    }

    fn run(mut self, jobs: &Receiver<Job>) {
        while let Ok(first) = jobs.recv() {
            let mut batch = vec![first];
            while batch.len() < BATCH {
                match jobs.try_recv() {
                    Ok(job) => batch.push(job),
                    Err(_) => break,
                }
            }
            self.commit(batch);
            if self.pages.load(Ordering::Relaxed) > CHECKPOINT_PAGES {
                self.checkpoint();
            }
        }
    }

    /// One transaction for all of them, then one answer for each.
    fn commit(&mut self, mut jobs: Vec<Job>) {
        let mut finishes = Vec::with_capacity(jobs.len());
        let outcome = self.transact(&mut jobs, &mut finishes);
        finishes.extend(jobs.into_iter().map(|job| job(None)));
        // Announced before it is answered: whoever has the answer finds the commit among the changes.
        if let Ok(seq) = outcome {
            self.committed.send_if_modified(|last| {
                let grown = seq > *last;
                *last = seq.max(*last);
                grown
            });
        }
        let outcome = outcome.map(drop);
        for finish in finishes {
            finish(&outcome);
        }
    }

    fn transact(&mut self, jobs: &mut Vec<Job>, finishes: &mut Vec<Finish>) -> Result<u64, StoreError> {
        let path = &self.path;
        let locked = self.lock.lock();
        let run = |sql: &str| {
            // Prepared once: parsing these few words again for each commit is a noticeable part of it.
            let statement = self.connection.prepare_cached(sql);
            statement.and_then(|mut statement| statement.execute(())).map_err(|error| explain(path, &error))
        };
        let begun = match &locked {
            Ok(()) => run("BEGIN IMMEDIATE"),
            Err(error) => {
                Err(unavailable(path, &error.to_string(), "check the permissions of .aop/write.lock"))
            }
        };
        let result = begun.and_then(|_| {
            let company = if jobs.len() == 1 { Company::Alone } else { Company::Others };
            let mut batch = Batch::begin(&self.connection, path, self.clock.now(), &mut self.ids, company)?;
            for job in jobs.drain(..) {
                finishes.push(job(Some(&mut batch)));
            }
            let (seq, erased) = batch.finish()?;
            crash_point("before_commit");
            run("COMMIT")?;
            crash_point("after_commit");
            self.erased |= erased;
            Ok(seq)
        });
        if result.is_err() && !self.connection.is_autocommit() {
            // When even this fails the connection is beyond use, and the next BEGIN says so.
            let _ = run("ROLLBACK");
        }
        if self.erased {
            self.erased = !empty_log(&self.connection);
        }
        if locked.is_ok() {
            // Closing the file would release it as well; an error here changes nothing that was decided.
            let _ = self.lock.unlock();
        }
        result
    }

    /// Moves the log into the file. A reader in the way only postpones it.
    fn checkpoint(&mut self) {
        let moved =
            self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get::<_, i64>(0));
        if moved.is_ok() {
            self.pages.store(0, Ordering::Relaxed);
        }
    }
}

/// Moves the whole log into the file and empties it, so that no older copy of a page is left. Whoever reads
/// at this moment is in the way; then it is tried again after the next commit.
fn empty_log(connection: &Connection) -> bool {
    let empty = || {
        connection.busy_timeout(READER_PATIENCE)?;
        let busy = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
        connection.busy_timeout(BUSY_TIMEOUT)?;
        busy
    };
    empty() == Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use aop_kernel::{ErrorCode, Refusal};
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
        super::super::connect::open_ready(&path).unwrap();
        Writer::new(path, Arc::new(SystemClock), watch::Sender::new(0))
    }

    fn spec(name: &'static str) -> Work {
        let sql = "INSERT INTO specs (project, feature_id, spec) VALUES (1, ?1, '')";
        Box::new(move |batch| batch.execute(sql, [name]).map(drop))
    }

    fn refuses() -> Work {
        Box::new(|_| Err(Refusal::new(ErrorCode::QuestionAlreadyAnswered, "answered by a neighbour").into()))
    }

    fn written(dir: &Path) -> Vec<String> {
        let connection = open_writer(&dir.join("aop.db")).unwrap();
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
}
