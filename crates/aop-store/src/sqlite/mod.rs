//! The embedded store: SQLite in WAL mode at `.aop/aop.db`, `synchronous=FULL`.
//!
//! One connection writes. Callers queue for it, the queue is drained into one commit, replies go out after it; a
//! caller that finds nobody writing commits itself. Other processes may write too: a lock file makes them a fair
//! queue. Reads have connections of their own and wait for nobody, unless the tables lack what the log has; a short one may
//! use the writer's while nobody writes, and so may one for whose sake the writer has just taken its connection.

mod batch;
mod bell;
mod chain;
mod claims;
mod connect;
mod glance;
mod history;
mod inbox;
#[cfg(test)]
mod plan;
mod read;
mod recent;
mod settle;
mod shelf;
mod site;
mod submit;
mod tail;
mod turn;
mod verify;
mod watch;
mod worker;
mod writer;

use crate::clock::Clock;
use crate::decide::EXPIRE_AT_ONCE;
use crate::error::StoreError;
use crate::history::{Entries, Origin, Visit};
use crate::port::{
    Claim, ClaimState, EventPage, FeatureFiles, FeaturePage, FeatureView, Inbox, Lease, Pending,
    QuestionPage, Receipt, Store,
};
use crate::record::Record;
use crate::shelf::{Expect, Shelf};
use crate::wakes::Wakes;
use aop_kernel::event::Recorded;
use aop_kernel::feature::Feature;
use aop_kernel::ids::{FeatureId, QuestionId};
use aop_kernel::lifecycle::Request;
use aop_kernel::policy::Rules;
use aop_kernel::question::Question;
use aop_kernel::time::Timestamp;
use batch::Batch;
use glance::Glance;
use read::Reader;
use rusqlite::Connection;
use serde_json::Value;
use site::Site;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use turn::Turn;
use writer::{Spare, Writer};

/// So often a read that finds the tables behind the log waits until they are not.
const LOOKS: usize = 2;

/// The embedded store of one project.
pub struct SqliteStore {
    site: Arc<Site>,
    clock: Arc<dyn Clock>,
    spare: Spare,
    writer: Writer,
    watcher: watch::Watcher,
}

impl SqliteStore {
    /// Opens `.aop/aop.db` below the given `.aop` folder, and creates or migrates it under the write lock.
    pub fn open(dir: &Path, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        Self::open_patiently(dir, clock, connect::BUSY_TIMEOUT)
    }

    /// The same for somebody whose writes wait this long for another process that does not let go.
    pub fn open_patiently(dir: &Path, clock: Arc<dyn Clock>, patience: Duration) -> Result<Self, StoreError> {
        let path = dir.join("aop.db");
        let first = connect::open_ready(&path)?;
        let site = Arc::new(Site::of(&path)?);
        let (seq, _) = connect::counters(&first).map_err(|error| connect::explain(&path, &error))?;
        let wakes = Arc::new(Wakes::new(seq));
        let watcher = watch::Watcher::new(path.clone(), Arc::clone(&wakes));
        let spare = Spare::new(Mutex::new(vec![first]));
        let turn = Turn::new(&path, patience);
        let writer = Writer::new(turn, Arc::clone(&site), Arc::clone(&clock), wakes, Arc::clone(&spare));
        Ok(SqliteStore { site, clock, spare, writer, watcher })
    }

    /// Runs one read on a consistent snapshot whose tables hold at least what was committed before.
    fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Reader<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Pending<'_, T> {
        let (now, mut work) = (self.clock.now(), work);
        Box::pin(async move {
            let mut lent = false;
            for _ in 0..LOOKS {
                let read = |connection: &Connection| {
                    let reader = Reader::begin(connection, &self.site.path, now)?;
                    if reader.is_behind()? { Ok(Err(work)) } else { work(&reader).map(Ok) }
                };
                let seen = if lent { self.on_writers(read) } else { self.on_spare(read) };
                match seen? {
                    Ok(seen) => return Ok(seen),
                    Err(again) => work = again,
                }
                lent = self.settle().await?;
            }
            // Somebody writes all the time; what was committed before the first look is there by now.
            self.read_log(work).await
        })
    }

    /// The same, where the tables that follow the log are not looked at.
    fn read_log<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Reader<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Pending<'_, T> {
        let now = self.clock.now();
        Box::pin(async move {
            self.on_spare(|connection| work(&Reader::begin(connection, &self.site.path, now)?))
        })
    }

    /// Brings the tables up to the log, on this thread or after the next batch; whether the writer took its connection
    /// for that.
    async fn settle(&self) -> Result<bool, StoreError> {
        if let Some(settled) = self.writer.settle_here() {
            return settled;
        }
        let (reply, answer) = oneshot::channel();
        self.writer.settle_in_turn(reply)?;
        answer.await.unwrap_or_else(|_| Err(writer::stopped(&self.site.path))).map(|()| false)
    }

    /// Runs one read that usually is short; only where that does not tell all, a longer one. Whatever is that short may
    /// use the connection that writes, while nobody does: its pages are at hand, and another connection is memory.
    fn glance<T: Send + 'static>(
        &self,
        look: impl Fn(&Glance<'_>) -> Result<Option<T>, StoreError> + Send + Sync + 'static,
        work: impl FnOnce(&Reader<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Pending<'_, T> {
        let now = self.clock.now();
        Box::pin(async move {
            let look =
                |connection: &Connection| look(&Glance { connection, path: &self.site.path, clock: now });
            if let Some(seen) = self.on_writers(look)? {
                return Ok(seen);
            }
            if self.writer.is_unsettled() || self.is_behind()? {
                self.settle().await?;
                if let Some(seen) = self.on_writers(look)? {
                    return Ok(seen);
                }
            }
            self.read(work).await
        })
    }

    /// The same for what is found in the tables only: before they are brought up to the log a look would find nothing, and
    /// would open a connection for it while the writer is about just that. A process that has not written yet does not
    /// know how its neighbours left them, and asks.
    fn list<T: Send + 'static>(
        &self,
        look: impl Fn(&Glance<'_>) -> Result<Option<T>, StoreError> + Send + Sync + 'static,
        work: impl FnOnce(&Reader<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Pending<'_, T> {
        Box::pin(async move {
            if self.writer.is_unsettled() || self.writer.is_fresh() && self.is_behind()? {
                self.settle().await?;
            }
            self.glance(look, work).await
        })
    }

    /// Whether the tables lack anything that the log has.
    fn is_behind(&self) -> Result<bool, StoreError> {
        self.on_writers(|connection| {
            connect::is_behind(connection).map_err(|error| connect::explain(&self.site.path, &error))
        })
    }

    /// Reads on a connection that nobody else uses meanwhile.
    fn on_spare<T>(&self, read: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let connection = self.borrow()?;
        let result = read(&connection);
        self.spare().push(connection);
        result
    }

    /// A connection to the file that the store was opened on, while that is in its place.
    fn borrow(&self) -> Result<Connection, StoreError> {
        let found = self.spare().pop();
        let connection = found.map_or_else(|| connect::open_reader(&self.site.path), Ok)?;
        self.site.check().map(|()| connection)
    }

    fn spare(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads on the connection that writes, while nobody does: to open another costs as much as most reads.
    fn on_writers<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.writer.read_here(read).unwrap_or_else(|read| self.on_spare(read))
    }

    /// Runs one write, on this thread or inside the next batch, and answers after its commit.
    fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Batch<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Pending<'_, T> {
        match self.writer.write_here(work) {
            Ok(result) => Box::pin(std::future::ready(result)),
            Err(work) => self.write_in_turn(work),
        }
    }

    /// Runs one write inside the next batch, on the writer's thread.
    fn write_in_turn<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Batch<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Pending<'_, T> {
        let (reply, answer) = oneshot::channel();
        let queued = self.writer.enqueue(work, reply);
        Box::pin(async move {
            queued?;
            answer.await.unwrap_or_else(|_| Err(writer::stopped(&self.site.path)))
        })
    }
}

impl Store for SqliteStore {
    fn submit(&self, request: Request, rules: Arc<Rules>) -> Pending<'_, Receipt> {
        self.write(move |batch| batch.submit(&request, &rules))
    }

    fn expire(&self) -> Pending<'_, usize> {
        Box::pin(async move {
            let mut changed = 0;
            loop {
                let now = self.write(|batch| batch.expire()).await?;
                changed += now;
                if now < EXPIRE_AT_ONCE {
                    return Ok(changed);
                }
            }
        })
    }

    fn next_deadline(&self) -> Pending<'_, Option<Timestamp>> {
        self.read(|reader| reader.next_deadline())
    }

    fn now(&self) -> Pending<'_, Timestamp> {
        self.read_log(|reader| reader.now())
    }

    fn feature(&self, id: FeatureId) -> Pending<'_, Option<Feature>> {
        self.read(move |reader| Ok(reader.view(&id)?.into_feature()))
    }

    fn spec(&self, id: FeatureId) -> Pending<'_, Option<String>> {
        self.read(move |reader| reader.spec(&id))
    }

    fn features(&self, page: FeaturePage) -> Pending<'_, Vec<Feature>> {
        self.read(move |reader| reader.features(&page))
    }

    fn question(&self, id: QuestionId) -> Pending<'_, Option<Question>> {
        let (same, tail) = (id.clone(), self.writer.tail());
        if let Some(closed) = tail.closed(&id) {
            return Box::pin(std::future::ready(self.site.check().map(|()| Some(closed))));
        }
        self.glance(move |glance| glance.question(&same, &tail), move |reader| reader.question(&id))
    }

    fn questions(&self, page: QuestionPage) -> Pending<'_, Vec<Question>> {
        if page.open_of_one().is_some() {
            return self.read(move |reader| reader.questions(&page));
        }
        let records = self.records(page);
        Box::pin(async move { records.await?.iter().map(Record::question).collect() })
    }

    fn records(&self, page: QuestionPage) -> Pending<'_, Vec<Record>> {
        let same = page.clone();
        self.list(move |glance| glance.records(&same), move |reader| reader.records(&page))
    }

    fn inbox(&self, skip: usize, limit: usize) -> Pending<'_, Inbox> {
        self.list(move |glance| glance.inbox(skip, limit), move |reader| reader.inbox(skip, limit))
    }

    fn view(&self, id: FeatureId, answers: usize) -> Pending<'_, Option<FeatureView>> {
        self.read(move |reader| {
            let state = reader.view(&id)?;
            let open = state.open_questions().cloned().collect();
            let Some(feature) = state.feature else { return Ok(None) };
            let answers = reader.recent_answers(&id, answers)?;
            Ok(Some(FeatureView { feature, spec: reader.spec(&id)?, open, answers }))
        })
    }

    fn events(&self, page: EventPage) -> Pending<'_, Vec<Recorded>> {
        if page.feature.is_some() {
            return self.read(move |reader| reader.events(&page));
        }
        self.read_log(move |reader| reader.events(&page))
    }

    fn last_events(&self, id: FeatureId, before: Option<u64>, limit: usize) -> Pending<'_, Vec<Recorded>> {
        self.read(move |reader| reader.last_events(&id, before, limit))
    }

    fn changed_since(&self, seq: u64) -> Pending<'_, (Vec<(FeatureId, u64)>, u64)> {
        self.read_log(move |reader| reader.changed_since(seq))
    }

    fn feature_files(&self, id: FeatureId, since: u64) -> Pending<'_, Option<FeatureFiles>> {
        self.read(move |reader| reader.feature_files(&id, since))
    }

    fn changes(&self) -> tokio::sync::watch::Receiver<u64> {
        self.watcher.start(self.writer.desk());
        self.watcher.wakes.all()
    }

    fn changes_of(&self, feature: &FeatureId) -> tokio::sync::watch::Receiver<()> {
        self.watcher.start(self.writer.desk());
        self.watcher.wakes.of(feature)
    }

    fn reveal(&self, id: QuestionId) -> Pending<'_, Option<Value>> {
        self.read_log(move |reader| reader.secret(&id))
    }

    fn forget(&self, id: QuestionId) -> Pending<'_, ()> {
        self.write(move |batch| batch.forget(&id))
    }

    fn entrust(&self, id: QuestionId, answer: Value) -> Pending<'_, ()> {
        self.write(move |batch| batch.entrust(&id, &answer))
    }

    fn acquire_lease(&self, name: String, holder: String, ttl_ms: u64) -> Pending<'_, Option<Lease>> {
        self.write(move |batch| batch.acquire_lease(&name, &holder, ttl_ms))
    }

    fn release_lease(&self, name: String, epoch: u64) -> Pending<'_, ()> {
        self.write(move |batch| batch.release_lease(&name, epoch))
    }

    fn claim(&self, subject: String, holder: String, epoch: u64) -> Pending<'_, Claim> {
        self.write(move |batch| batch.claim(&subject, &holder, epoch))
    }

    fn advance_claim(&self, subject: String, epoch: u64, state: ClaimState) -> Pending<'_, bool> {
        self.write(move |batch| batch.advance_claim(&subject, epoch, state))
    }

    fn deliver(&self, subject: String, holder: String, epoch: u64) -> Pending<'_, bool> {
        self.write(move |batch| {
            batch.claim(&subject, &holder, epoch)?;
            batch.advance_claim(&subject, epoch, ClaimState::Delivered)
        })
    }

    fn document(&self, shelf: Shelf, key: String) -> Pending<'_, Option<Value>> {
        self.read_log(move |reader| reader.document(shelf, &key))
    }

    fn documents(&self, shelf: Shelf, prefix: String) -> Pending<'_, Vec<(String, Value)>> {
        self.read_log(move |reader| reader.documents(shelf, &prefix))
    }

    fn place(&self, shelf: Shelf, key: String, value: Option<Value>, expect: Expect) -> Pending<'_, bool> {
        self.write(move |batch| batch.place(shelf, &key, value.as_ref(), &expect))
    }

    fn history(&self, visit: Visit) -> Pending<'_, Origin> {
        // It has its own way to what only the log has, and so does the check-up.
        self.read_log(move |reader| reader.history(visit))
    }

    fn restore(&self, entries: Entries) -> Pending<'_, u64> {
        // The entries may come from another task of this thread, which must not be kept waiting.
        self.write_in_turn(move |batch| batch.restore(entries))
    }

    fn verify(&self) -> Pending<'_, Vec<String>> {
        self.read_log(|reader| reader.verify())
    }
}
