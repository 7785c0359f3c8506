//! Writing. Mutations queue for one thread that drains the queue into one transaction, commits, then answers; behind
//! them it brings the tables up to the log for whoever waits to read there. A caller that finds nobody writing commits on
//! its own thread instead: to hand a write over and its answer back costs as much as to decide it. All this starts with
//! the first write, so a command that only reads, and finds the tables up to date, never pays for it.

use super::batch::{Added, Batch, Company};
use super::connect::unavailable;
use super::site::Site;
use super::tail::Shared;
use super::turn::Turn;
use super::worker::Worker;
use crate::clock::Clock;
use crate::decide::BATCH;
use crate::error::StoreError;
use crate::wakes::Wakes;
use aop_kernel::ids::FeatureId;
use rusqlite::Connection;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;

/// So long after its last commit the thread brings the tables up to the log, if nobody has looked there before.
const QUIET: Duration = Duration::from_millis(5);

/// Told how the commit went; answers its caller.
type Finish = Box<dyn FnOnce(&Result<(), StoreError>) + Send>;
/// One queued write; without a batch (there was none to be had) it only gives its `Finish`.
type Write = Box<dyn FnOnce(Option<&mut Batch<'_>>) -> Finish + Send>;
/// Told how it went.
type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// What the thread is asked for.
enum Job {
    Write(Write),
    /// To bring the tables up to the log.
    Settle(Reply<()>),
}

/// What to do when another process holds the lock.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lock {
    Try,
    Wait,
}

/// Connections for reading.
pub(super) type Spare = Arc<Mutex<Vec<Connection>>>;

/// Where writes come in.
pub(super) struct Writer {
    desk: Arc<Desk>,
    running: Mutex<Option<(Sender<Job>, JoinHandle<()>)>>,
}

/// What the thread and the callers share.
pub(super) struct Desk {
    /// Where to wait while another process writes.
    turn: Arc<Turn>,
    /// The file that the store was opened on.
    site: Arc<Site>,
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
    /// What queues for the thread and was not taken yet: nobody overtakes it.
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
                    Arc::clone(&self.site),
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

    /// Brings the tables up to the log; nothing comes of it where the lock is only tried and another process has it.
    fn settle(
        &self,
        held: &mut MutexGuard<'_, Option<Worker>>,
        lock: Lock,
    ) -> Option<Result<(), StoreError>> {
        let settled = self.ready(held).and_then(|worker| match lock {
            Lock::Try if worker.lock.try_lock().is_err() => Ok(None),
            Lock::Try => worker.settle().map(Some),
            Lock::Wait => self.turn.take(&mut worker.lock).and_then(|()| worker.settle()).map(Some),
        });
        let settled = settled.transpose()?;
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
    pub(super) fn new(
        turn: Arc<Turn>,
        site: Arc<Site>,
        clock: Arc<dyn Clock>,
        wakes: Arc<Wakes>,
        spare: Spare,
    ) -> Self {
        let (tail, erased, worker, queued) = Default::default();
        let desk = Arc::new(Desk { turn, site, clock, wakes, spare, tail, erased, worker, queued });
        Writer { desk, running: Mutex::new(None) }
    }

    pub(super) fn desk(&self) -> Weak<Desk> {
        Arc::downgrade(&self.desk)
    }

    /// What was written to the log and not yet to the other tables.
    pub(super) fn tail(&self) -> Shared {
        self.desk.tail.clone()
    }

    /// Whether there is any of that.
    pub(super) fn is_unsettled(&self) -> bool {
        self.desk.is_unsettled()
    }

    /// Whether nothing was written here yet.
    pub(super) fn is_fresh(&self) -> bool {
        self.desk.worker.try_lock().is_ok_and(|worker| worker.is_none())
    }

    /// Reads on the connection that writes, if nobody writes or queues for it: it knows what was just committed.
    /// Otherwise gives the work back.
    pub(super) fn read_here<T, W>(&self, work: W) -> Result<Result<T, StoreError>, W>
    where
        W: FnOnce(&Connection) -> Result<T, StoreError>,
    {
        if self.desk.queued.load(Ordering::SeqCst) > 0 {
            return Err(work);
        }
        match self.desk.worker.try_lock().as_deref() {
            // One that could not even be rolled back shows what nobody committed.
            Ok(Some(worker)) if worker.connection.is_autocommit() => {
                Ok(self.desk.site.check().and_then(|()| work(&worker.connection)))
            }
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
        let (mut work, mut result) = (Some(work), None);
        let outcome = worker.transact(Company::Alone, &mut |batch| {
            result = work.take().map(|work| batch.member(work));
        });
        desk.announce(&outcome);
        let due = worker.checkpoint_is_due() || desk.tail.look().is_long();
        drop(held);
        if due {
            // An empty write: the thread does it after that, and this caller has its answer meanwhile.
            let _ = self.enqueue(|_| Ok(()), oneshot::channel().0);
        }
        Ok(outcome.and_then(|_| result.unwrap_or_else(|| Err(stopped(&desk.site.path)))))
    }

    /// Brings the tables up to the log on this thread, if nobody writes or queues for it, in this process or another;
    /// whether a connection was taken for that.
    pub(super) fn settle_here(&self) -> Option<Result<bool, StoreError>> {
        let mut held = self.desk.worker.try_lock().ok()?;
        if self.desk.queued.load(Ordering::SeqCst) > 0 {
            return None;
        }
        let takes = held.is_none();
        Some(self.desk.settle(&mut held, Lock::Try)?.map(|()| takes))
    }

    /// Has the thread bring the tables up to the log, behind the writes that queue already.
    pub(super) fn settle_in_turn(&self, reply: Reply<()>) -> Result<(), StoreError> {
        self.send(Job::Settle(reply))
    }

    /// Queues a write; its caller hears of it after the commit.
    pub(super) fn enqueue<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Batch<'_>) -> Result<T, StoreError> + Send + 'static,
        reply: Reply<T>,
    ) -> Result<(), StoreError> {
        self.send(Job::Write(Box::new(move |batch| {
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
        })))
    }

    fn send(&self, job: Job) -> Result<(), StoreError> {
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
        let thread = std::thread::Builder::new()
            .name("aop-writer".into())
            .spawn(move || desk.run(&jobs))
            .map_err(|error| {
                unavailable(&self.desk.site.path, &error.to_string(), "the system has no thread to spare")
            })?;
        // The thread is at the other end of a channel made just above.
        let _ = queue.send(job);
        *running = Some((queue, thread));
        Ok(())
    }
}

impl Drop for Writer {
    /// Lets the queue run dry, so that nothing acknowledged-to-be is cut off, unless another process writes on and on.
    fn drop(&mut self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((queue, thread)) = running {
            drop(queue);
            self.desk.turn.leave();
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
                Some(Err(RecvTimeoutError::Timeout)) => {
                    let mut held = self.seize();
                    let settled = self.settle(&mut held, Lock::Try);
                    held.as_mut().into_iter().for_each(Worker::checkpoint_if_due);
                    drop(held);
                    match settled {
                        Some(Ok(())) => continue,
                        // Somebody else writes, and will settle, or it cannot be done now.
                        Some(Err(_)) | None => jobs.recv().ok(),
                    }
                }
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
            self.work_off(&mut held, batch);
        }
    }

    /// The writes in one commit, then what is to be done for the tables, which needs no sync.
    fn work_off(&self, held: &mut MutexGuard<'_, Option<Worker>>, jobs: Vec<Job>) {
        let (mut writes, mut settles) = (Vec::with_capacity(jobs.len()), Vec::new());
        for job in jobs {
            match job {
                Job::Write(write) => writes.push(write),
                Job::Settle(reply) => settles.push(reply),
            }
        }
        if !writes.is_empty() {
            self.commit(held, writes);
        }
        let lock = if settles.is_empty() { Lock::Try } else { Lock::Wait };
        let is_wanted = lock == Lock::Wait || self.tail.look().is_long();
        if let Some(settled) = is_wanted.then(|| self.settle(held, lock)).flatten() {
            for reply in settles {
                // Whoever stopped waiting does not mind.
                let _ = reply.send(settled.clone());
            }
        }
        held.as_mut().into_iter().for_each(Worker::checkpoint_if_due);
    }

    /// One transaction for all of them, then one answer for each.
    fn commit(&self, held: &mut MutexGuard<'_, Option<Worker>>, mut writes: Vec<Write>) {
        let mut finishes = Vec::with_capacity(writes.len());
        let company = if writes.len() == 1 { Company::Alone } else { Company::Others };
        let outcome = self.ready(held).and_then(|worker| {
            self.turn.take(&mut worker.lock)?;
            worker.transact(company, &mut |batch| {
                finishes.extend(writes.drain(..).map(|write| write(Some(batch))));
            })
        });
        finishes.extend(writes.into_iter().map(|write| write(None)));
        self.announce(&outcome);
        let outcome = outcome.map(drop);
        for finish in finishes {
            finish(&outcome);
        }
    }
}

/// The writer broke off in the middle of a call.
pub(super) fn stopped(path: &Path) -> StoreError {
    let hint = "run the command again; if it was committed, its operation id returns the same answer";
    unavailable(path, "the writer stopped before it answered", hint)
}

#[cfg(test)]
mod tests;
