//! PostgreSQL: one database for a team, many projects in it, many processes on many machines at once.
//!
//! A thread of its own drives the connections, so that a store serves callers on any runtime. Mutations queue
//! for one writer (`writer.rs`); reads run beside it, each on one snapshot (`read.rs`, `inbox.rs`); leases and claims
//! are one statement each (`holding.rs`), documents have a lock each (`shelf.rs`). A server that is away is waited for
//! (`link.rs`), one that is silent is not waited for for ever (`dial.rs`).

mod batch;
mod dial;
mod history;
mod holding;
mod inbox;
mod learn;
mod link;
mod migrate;
mod options;
mod read;
mod shelf;
mod tls;
mod watch;
mod writer;

pub use migrate::Schema;
pub use options::PostgresOptions;

use crate::clock::Clock;
use crate::error::StoreError;
use crate::fault::crash_point;
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
use link::{Length, Link, unavailable};
use serde_json::Value;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Once};
use std::thread::JoinHandle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::LocalSet;
use writer::{Job, Submit};

/// Whose time it is.
#[derive(Clone)]
pub enum TimeSource {
    /// The database's: one clock for all machines.
    Database,
    /// A given one: for tests.
    Given(Arc<dyn Clock>),
}

/// Something to do on the store's own thread.
type Task = Box<dyn FnOnce(Rc<Inside>) -> Pin<Box<dyn Future<Output = ()>>> + Send>;

/// What lives on the store's own thread.
struct Inside {
    link: Link,
    project: i64,
    channel: String,
    time: TimeSource,
    wakes: Arc<Wakes>,
}

/// The store of one project on PostgreSQL.
pub struct PostgresStore {
    place: String,
    tasks: Option<mpsc::UnboundedSender<Task>>,
    jobs: Option<mpsc::UnboundedSender<Job>>,
    wakes: Arc<Wakes>,
    listening: Once,
    thread: Option<JoinHandle<()>>,
}

impl PostgresStore {
    /// Opens the project that the options name. Its tables must be there and up to date.
    pub fn open(options: PostgresOptions, time: TimeSource) -> Result<Self, StoreError> {
        let place = options.place();
        let wakes = Arc::new(Wakes::new(0));
        let (tasks, mut todo) = mpsc::unbounded_channel::<Task>();
        let (jobs, queue) = mpsc::unbounded_channel();
        let (ready, opened) = std::sync::mpsc::channel();
        let announcing = Arc::clone(&wakes);
        let thread = on_a_thread(&options.clone(), async move || {
            let inside = match enter(options, time, announcing).await {
                Ok(inside) => Rc::new(inside),
                // Whoever opens waits for exactly one word.
                Err(error) => return drop(ready.send(Err(error))),
            };
            let _ = ready.send(Ok(()));
            let writer = tokio::task::spawn_local(writer::run(Rc::clone(&inside), queue));
            while let Some(task) = todo.recv().await {
                tokio::task::spawn_local(task(Rc::clone(&inside)));
            }
            // Both channels close together. The queue runs dry first, so that nothing is cut off.
            let _ = writer.await;
        })?;
        let opened = opened.recv().unwrap_or_else(|_| Err(stopped(&place)));
        if let Err(error) = opened {
            let _ = thread.join();
            return Err(error);
        }
        Ok(PostgresStore {
            place,
            tasks: Some(tasks),
            jobs: Some(jobs),
            wakes,
            listening: Once::new(),
            thread: Some(thread),
        })
    }

    /// Makes the tables if there are none and the project if it is not there.
    pub fn create(options: &PostgresOptions) -> Result<(), StoreError> {
        once(options, async |link, project| {
            crash_point("first_start");
            link.attempts(Length::Any, async |connection, _| {
                if migrate::look(link, &connection).await?.applied.is_empty() {
                    migrate::migrate(link, &connection).await?;
                }
                migrate::require_ready(link, &connection).await?;
                crash_point("first_start_before_commit");
                migrate::make_project(&connection, &project).await
            })
            .await
        })
    }

    /// Brings the tables up to date; which migrations that took.
    pub fn migrate(options: &PostgresOptions) -> Result<Vec<String>, StoreError> {
        once(options, async |link, _| {
            link.attempts(Length::Any, async |connection, _| migrate::migrate(link, &connection).await).await
        })
    }

    /// What the tables look like; changes nothing.
    pub fn schema(options: &PostgresOptions) -> Result<Schema, StoreError> {
        once(options, async |link, _| {
            link.patiently(async |connection, _| migrate::look(link, &connection).await).await
        })
    }

    /// Runs something on the store's thread and gives its result to the caller.
    fn call<T: Send + 'static>(
        &self,
        work: impl AsyncFnOnce(&Inside) -> Result<T, StoreError> + Send + 'static,
    ) -> Pending<'_, T> {
        let (reply, answer) = oneshot::channel();
        let task: Task = Box::new(move |inside| {
            Box::pin(async move {
                // A caller that stopped waiting wants no answer.
                let _ = reply.send(work(&inside).await);
            })
        });
        let sent = self.tasks.as_ref().is_some_and(|tasks| tasks.send(task).is_ok());
        self.answer(sent, answer)
    }

    fn answer<T: Send + 'static>(
        &self,
        sent: bool,
        answer: oneshot::Receiver<Result<T, StoreError>>,
    ) -> Pending<'_, T> {
        Box::pin(async move {
            if !sent {
                return Err(stopped(&self.place));
            }
            answer.await.unwrap_or_else(|_| Err(stopped(&self.place)))
        })
    }

    fn enqueue(&self, job: Job) -> bool {
        self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok())
    }

    /// Begins to listen to the commits of others.
    fn listen(&self) {
        self.listening.call_once(|| {
            let task: Task = Box::new(|inside| Box::pin(watch::run(inside)));
            // A store that has stopped has no changes to tell of.
            let _ = self.tasks.as_ref().map(|tasks| tasks.send(task));
        });
    }
}

impl Drop for PostgresStore {
    /// Lets the queue run dry, so that nothing acknowledged-to-be is cut off.
    fn drop(&mut self) {
        self.jobs.take();
        self.tasks.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Starts a thread with a runtime of its own.
fn on_a_thread(
    options: &PostgresOptions,
    work: impl AsyncFnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, StoreError> {
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        if let Ok(runtime) = runtime {
            runtime.block_on(LocalSet::new().run_until(work()));
        }
    };
    std::thread::Builder::new()
        .name("aop-postgres".into())
        .spawn(run)
        .map_err(|error| unavailable(options, &error.to_string(), "the system has no thread to spare"))
}

/// Opens the way to the database, does one thing there and closes it again.
fn once<T: Send + 'static>(
    options: &PostgresOptions,
    work: impl AsyncFnOnce(&Link, String) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let (reply, answer) = std::sync::mpsc::channel();
    let own = hasty(options);
    let thread = on_a_thread(options, async move || {
        let project = own.project.clone().unwrap_or_default();
        let result = match Link::new(own) {
            Ok(link) => work(&link, project).await,
            Err(error) => Err(error),
        };
        let _ = reply.send(result);
    })?;
    let result = answer.recv().unwrap_or_else(|_| Err(stopped(&options.place())));
    let _ = thread.join();
    result
}

/// Somebody who has just typed a command wants to know soon that the server is not there.
fn hasty(options: &PostgresOptions) -> PostgresOptions {
    options.clone().patience(options.patience.min(std::time::Duration::from_secs(3)))
}

/// Checks the tables and finds the project.
async fn enter(options: PostgresOptions, time: TimeSource, wakes: Arc<Wakes>) -> Result<Inside, StoreError> {
    let Some(name) = options.project.clone() else {
        return Err(unavailable(&options, "no project is named", "add ?project=NAME to the address"));
    };
    let first = Link::new(hasty(&options))?;
    let found = first
        .patiently(async |connection, _| {
            migrate::require_ready(&first, &connection).await?;
            migrate::find_project(&connection, &name).await
        })
        .await?;
    let Some(project) = found else {
        let cause = format!("there is no project '{name}' in this database");
        let hint = "run `aop init` to begin it, or `aop store copy` to bring one; check the name for a slip";
        return Err(unavailable(&options, &cause, hint));
    };
    let link = first.with(options);
    Ok(Inside { link, project, channel: format!("aop_{project}"), time, wakes })
}

fn stopped(place: &str) -> StoreError {
    StoreError::Unavailable {
        place: place.into(),
        cause: "the store stopped before it answered".into(),
        hint: "run the command again; if it was committed, its operation id returns the same answer".into(),
    }
}

impl Store for PostgresStore {
    fn submit(&self, request: Request, rules: Arc<Rules>) -> Pending<'_, Receipt> {
        let (reply, answer) = oneshot::channel();
        let sent = self.enqueue(Job::Submit(Box::new(Submit { request, rules, reply })));
        self.answer(sent, answer)
    }

    fn expire(&self) -> Pending<'_, usize> {
        Box::pin(async move {
            let mut changed = 0;
            loop {
                let (reply, answer) = oneshot::channel();
                let sent = self.enqueue(Job::Expire(reply));
                let (some, more) = self.answer(sent, answer).await?;
                changed += some;
                if !more {
                    return Ok(changed);
                }
            }
        })
    }

    fn next_deadline(&self) -> Pending<'_, Option<Timestamp>> {
        self.call(async |inside| inside.read(async |reader| reader.next_deadline().await).await)
    }

    fn now(&self) -> Pending<'_, Timestamp> {
        self.call(async |inside| inside.time().await)
    }

    fn feature(&self, id: FeatureId) -> Pending<'_, Option<Feature>> {
        self.call(async move |inside| {
            inside.read(async |reader| Ok(reader.state(&id).await?.into_feature())).await
        })
    }

    fn spec(&self, id: FeatureId) -> Pending<'_, Option<String>> {
        self.call(async move |inside| inside.read(async |reader| reader.spec(&id).await).await)
    }

    fn features(&self, page: FeaturePage) -> Pending<'_, Vec<Feature>> {
        self.call(async move |inside| inside.read(async |reader| reader.features(&page).await).await)
    }

    fn question(&self, id: QuestionId) -> Pending<'_, Option<Question>> {
        self.call(async move |inside| inside.question(&id).await)
    }

    fn questions(&self, page: QuestionPage) -> Pending<'_, Vec<Question>> {
        self.call(async move |inside| inside.read(async |reader| reader.questions(&page).await).await)
    }

    fn records(&self, page: QuestionPage) -> Pending<'_, Vec<Record>> {
        self.call(async move |inside| inside.read(async |reader| reader.records(&page).await).await)
    }

    fn inbox(&self, skip: usize, limit: usize) -> Pending<'_, Inbox> {
        self.call(async move |inside| inside.read(async |reader| reader.inbox(skip, limit).await).await)
    }

    fn view(&self, id: FeatureId, answers: usize) -> Pending<'_, Option<FeatureView>> {
        self.call(async move |inside| inside.read(async |reader| reader.view(&id, answers).await).await)
    }

    fn events(&self, page: EventPage) -> Pending<'_, Vec<Recorded>> {
        self.call(async move |inside| inside.read(async |reader| reader.events(&page).await).await)
    }

    fn last_events(&self, id: FeatureId, before: Option<u64>, limit: usize) -> Pending<'_, Vec<Recorded>> {
        self.call(async move |inside| {
            inside.read(async |reader| reader.last_events(&id, before, limit).await).await
        })
    }

    fn changed_since(&self, seq: u64) -> Pending<'_, (Vec<(FeatureId, u64)>, u64)> {
        self.call(async move |inside| inside.read(async |reader| reader.changed_since(seq).await).await)
    }

    fn feature_files(&self, id: FeatureId, since: u64) -> Pending<'_, Option<FeatureFiles>> {
        self.call(async move |inside| {
            inside.read(async |reader| reader.feature_files(&id, since).await).await
        })
    }

    fn changes(&self) -> tokio::sync::watch::Receiver<u64> {
        self.listen();
        self.wakes.all()
    }

    fn changes_of(&self, feature: &FeatureId) -> tokio::sync::watch::Receiver<()> {
        self.listen();
        self.wakes.of(feature)
    }

    fn reveal(&self, id: QuestionId) -> Pending<'_, Option<Value>> {
        self.call(async move |inside| inside.read(async |reader| reader.secret(&id).await).await)
    }

    fn forget(&self, id: QuestionId) -> Pending<'_, ()> {
        self.call(async move |inside| inside.forget(&id).await)
    }

    fn entrust(&self, id: QuestionId, answer: Value) -> Pending<'_, ()> {
        self.call(async move |inside| inside.entrust(&id, &answer).await)
    }

    fn acquire_lease(&self, name: String, holder: String, ttl_ms: u64) -> Pending<'_, Option<Lease>> {
        self.call(async move |inside| inside.acquire_lease(&name, &holder, ttl_ms).await)
    }

    fn release_lease(&self, name: String, epoch: u64) -> Pending<'_, ()> {
        self.call(async move |inside| inside.release_lease(&name, epoch).await)
    }

    fn claim(&self, subject: String, holder: String, epoch: u64) -> Pending<'_, Claim> {
        self.call(async move |inside| inside.claim(&subject, &holder, epoch).await)
    }

    fn advance_claim(&self, subject: String, epoch: u64, state: ClaimState) -> Pending<'_, bool> {
        self.call(async move |inside| inside.advance_claim(&subject, epoch, state).await)
    }

    fn document(&self, shelf: Shelf, key: String) -> Pending<'_, Option<Value>> {
        self.call(async move |inside| inside.document(shelf, &key).await)
    }

    fn documents(&self, shelf: Shelf, prefix: String) -> Pending<'_, Vec<(String, Value)>> {
        self.call(async move |inside| inside.documents(shelf, &prefix).await)
    }

    fn place(&self, shelf: Shelf, key: String, value: Option<Value>, expect: Expect) -> Pending<'_, bool> {
        self.call(async move |inside| inside.place(shelf, &key, value.as_ref(), &expect).await)
    }

    fn history(&self, visit: Visit) -> Pending<'_, Origin> {
        self.call(async move |inside| inside.history(visit).await)
    }

    fn restore(&self, entries: Entries) -> Pending<'_, u64> {
        let (reply, answer) = oneshot::channel();
        let sent = self.enqueue(Job::Restore(entries, reply));
        self.answer(sent, answer)
    }

    fn verify(&self) -> Pending<'_, Vec<String>> {
        self.call(async |inside| inside.read_for(Length::Any, async |reader| reader.verify().await).await)
    }
}
