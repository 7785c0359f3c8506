//! The port: what a store owes. SQLite, PostgreSQL and the strict in-memory one keep the same promises and
//! pass the same contract suite.

use crate::error::StoreError;
use crate::history::{Entries, Origin, Visit};
use crate::record::Record;
use crate::shelf::{Expect, Shelf};
use aop_kernel::Envelope;
use aop_kernel::event::Recorded;
use aop_kernel::feature::Feature;
use aop_kernel::ids::{FeatureId, QuestionId};
use aop_kernel::lifecycle::Request;
use aop_kernel::policy::Rules;
use aop_kernel::question::{Question, QuestionStatus};
use aop_kernel::status::Status;
use aop_kernel::time::Timestamp;
use aop_kernel::tools::QuestionFilter;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::watch;

/// A call under way.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// What came of a mutation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// What the caller is told.
    pub envelope: Envelope,
    /// The last event of the project at that moment.
    pub seq: u64,
    /// Whether this was the first time (false: the ledger's answer to a retry).
    pub fresh: bool,
}

/// Which questions to list, and where to go on.
#[derive(Debug, Clone)]
pub struct QuestionPage {
    /// Only this feature's.
    pub feature: Option<FeatureId>,
    /// Which of them.
    pub filter: QuestionFilter,
    /// Only those after this one, in the order of the list.
    pub after: Option<(Timestamp, QuestionId)>,
    /// At most so many.
    pub limit: usize,
}

impl QuestionPage {
    /// The feature, when only what is open there is asked for.
    pub(crate) fn open_of_one(&self) -> Option<&FeatureId> {
        self.feature.as_ref().filter(|_| self.filter == QuestionFilter::Only(QuestionStatus::Open))
    }
}

/// Which features to list.
#[derive(Debug, Clone, Default)]
pub struct FeaturePage {
    /// Only those with this status.
    pub status: Option<Status>,
    /// Also those that `aop ask` made.
    pub adhoc: bool,
    /// Only this one.
    pub only: Option<FeatureId>,
}

/// Which events to list.
#[derive(Debug, Clone, Default)]
pub struct EventPage {
    /// Only those after this one.
    pub after: u64,
    /// Only this feature's.
    pub feature: Option<FeatureId>,
    /// At most so many; 0 is all.
    pub limit: usize,
}

/// Everything a feature's files are made of, from one snapshot.
#[derive(Debug, Clone)]
pub struct FeatureFiles {
    /// The feature as committed.
    pub feature: Arc<Feature>,
    /// Its specification.
    pub spec: Option<String>,
    /// Its question records in list order, as JSON texts joined by a comma and a line break.
    pub questions: String,
    /// Its log, a line each: time and words.
    pub log: String,
    /// Answered questions that have a form, among those closed after the given event.
    pub forms: Vec<Question>,
}

/// What a turn is told of its feature, from one snapshot.
#[derive(Debug, Clone)]
pub struct FeatureView {
    /// The feature.
    pub feature: Arc<Feature>,
    /// Its specification.
    pub spec: Option<String>,
    /// Its open questions, in list order.
    pub open: Vec<Question>,
    /// Its last answered questions, newest first.
    pub answers: Vec<Question>,
}

/// What waits for a person.
#[derive(Debug, Clone, PartialEq)]
pub struct Inbox {
    /// How many open questions there are, counted up to [`Inbox::COUNTED`] beyond the page.
    pub total: usize,
    /// Whether there are more than were counted.
    pub more: bool,
    /// A page of them, the most urgent first: by deadline, then those without one; ties by age, then id.
    pub items: Vec<Question>,
}

impl Inbox {
    /// Nobody reads further than this, and counting a million would take longer than finding the page.
    pub const COUNTED: usize = 1_000;

    /// At most so many are counted.
    pub(crate) fn countable(skip: usize, limit: usize) -> usize {
        skip.saturating_add(limit).saturating_add(Inbox::COUNTED)
    }

    /// A page of so many, counted until one was too many.
    pub(crate) fn counted(found: usize, skip: usize, limit: usize, items: Vec<Question>) -> Self {
        let most = Inbox::countable(skip, limit);
        Inbox { total: found.min(most), more: found > most, items }
    }

    /// The page of a list of open questions in any order.
    pub(crate) fn of(mut open: Vec<Question>, skip: usize, limit: usize) -> Self {
        let total = open.len();
        open.sort_by(|a, b| {
            let urgency = |question: &Question| {
                (question.expires_at.is_none(), question.expires_at, question.created_at)
            };
            urgency(a).cmp(&urgency(b)).then_with(|| a.id.cmp(&b.id))
        });
        Inbox::counted(total, skip, limit, open.into_iter().skip(skip).take(limit).collect())
    }
}

/// A lease that was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// Grows with every change of holder: what an earlier holder still does is refused by it. It is the time of that
    /// change in milliseconds, so that a holder under another name, or after a copy to another store, has a higher one.
    pub epoch: u64,
    /// Until when it is held unless renewed.
    pub expires_at: Timestamp,
}

/// How far a claim has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimState {
    /// Somebody will do it.
    Claimed,
    /// The engine has been started for it.
    Spawned,
    /// It is done; never again.
    Delivered,
}

impl ClaimState {
    /// The name in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            ClaimState::Claimed => "claimed",
            ClaimState::Spawned => "spawned",
            ClaimState::Delivered => "delivered",
        }
    }

    /// Finds a state by its name.
    pub fn parse(name: &str) -> Option<Self> {
        [ClaimState::Claimed, ClaimState::Spawned, ClaimState::Delivered]
            .into_iter()
            .find(|s| s.as_str() == name)
    }
}

/// A claim as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Who has it.
    pub holder: String,
    /// The fencing epoch it was taken under.
    pub epoch: u64,
    /// How far it has come.
    pub state: ClaimState,
}

/// Durable storage of one project.
///
/// Reads present the state with everything due already expired, without writing it. They show all that was committed
/// before they began. Lists of questions are ordered by `created_at`, then id.
pub trait Store: Send + Sync {
    /// Decides and commits one mutation: events, rows and ledger together or not at all. When this returns
    /// `Ok`, the change survives power loss. A retry of an operation returns the first success and writes
    /// nothing. What was due before is expired first and stays so even when the request is refused.
    fn submit(&self, request: Request, rules: Arc<Rules>) -> Pending<'_, Receipt>;

    /// Commits the expiry of everything due now, the feature with the earliest deadline first, ties by id.
    /// Returns how many features changed.
    fn expire(&self) -> Pending<'_, usize>;

    /// The earliest deadline of an open question.
    fn next_deadline(&self) -> Pending<'_, Option<Timestamp>>;

    /// The time as the store sees it: the clock's, but never earlier than the last commit's.
    fn now(&self) -> Pending<'_, Timestamp>;

    /// One feature.
    fn feature(&self, id: FeatureId) -> Pending<'_, Option<Feature>>;

    /// The specification of a feature.
    fn spec(&self, id: FeatureId) -> Pending<'_, Option<String>>;

    /// Features by id.
    fn features(&self, page: FeaturePage) -> Pending<'_, Vec<Feature>>;

    /// One question, whichever feature it belongs to.
    fn question(&self, id: QuestionId) -> Pending<'_, Option<Question>>;

    /// A page of questions.
    fn questions(&self, page: QuestionPage) -> Pending<'_, Vec<Question>>;

    /// The same page for whoever only passes it on. A store that has the records as texts gives them as they are.
    fn records(&self, page: QuestionPage) -> Pending<'_, Vec<Record>> {
        Box::pin(async move { self.questions(page).await?.iter().map(Record::of).collect() })
    }

    /// A page of everything open, the most urgent first. A store that can find it without reading all that is
    /// open does so.
    fn inbox(&self, skip: usize, limit: usize) -> Pending<'_, Inbox> {
        Box::pin(async move {
            let filter = QuestionFilter::Only(QuestionStatus::Open);
            let page = QuestionPage { feature: None, filter, after: None, limit: usize::MAX };
            Ok(Inbox::of(self.questions(page).await?, skip, limit))
        })
    }

    /// A feature with its open questions and so many of its last answers, all of one moment.
    fn view(&self, id: FeatureId, answers: usize) -> Pending<'_, Option<FeatureView>>;

    /// Committed events in order.
    fn events(&self, page: EventPage) -> Pending<'_, Vec<Recorded>>;

    /// The last events of a feature, newest first; only those before a number, if one is given. A store that can
    /// read backwards does so.
    fn last_events(&self, id: FeatureId, before: Option<u64>, limit: usize) -> Pending<'_, Vec<Recorded>> {
        Box::pin(async move {
            let mut events = self.events(EventPage { after: 0, feature: Some(id), limit: 0 }).await?;
            events.retain(|event| before.is_none_or(|before| event.seq < before));
            Ok(events.into_iter().rev().take(limit).collect())
        })
    }

    /// Features with events after this one, each with the first of them, and the last event there is.
    fn changed_since(&self, seq: u64) -> Pending<'_, (Vec<(FeatureId, u64)>, u64)>;

    /// The last event there is; 0 before the first.
    fn last(&self) -> Pending<'_, u64> {
        // More than any event's number, also for a database that counts with a sign.
        const AFTER_ALL: u64 = i64::MAX as u64;
        Box::pin(async move { Ok(self.changed_since(AFTER_ALL).await?.1) })
    }

    /// What the files of a feature are made of. `forms` covers what was closed from event `since` on.
    fn feature_files(&self, id: FeatureId, since: u64) -> Pending<'_, Option<FeatureFiles>>;

    /// A receiver that changes after every commit that appended events, of this process or another.
    fn changes(&self) -> watch::Receiver<u64>;

    /// A receiver that changes after every commit from now on that appends events to this feature, of this process or
    /// another; the feature need not be there yet. Sometimes it changes for nothing, when what was touched cannot be
    /// known. It never misses a commit: whoever reads after it was made, and again after each change, sees the last.
    fn changes_of(&self, feature: &FeatureId) -> watch::Receiver<()>;

    /// A secret answer, for the engine that asked.
    fn reveal(&self, id: QuestionId) -> Pending<'_, Option<Value>>;

    /// Erases a secret answer once it was delivered. Erasing twice is no error.
    fn forget(&self, id: QuestionId) -> Pending<'_, ()>;

    /// Puts a secret answer away again, for a copy of a project. Nothing happens when the question is not there.
    fn entrust(&self, id: QuestionId, answer: Value) -> Pending<'_, ()>;

    /// Takes or renews a lease. `None` when somebody else holds it.
    fn acquire_lease(&self, name: String, holder: String, ttl_ms: u64) -> Pending<'_, Option<Lease>>;

    /// Gives a lease back; nothing happens when it is no longer held under this epoch.
    fn release_lease(&self, name: String, epoch: u64) -> Pending<'_, ()>;

    /// Claims a subject once. `Ok` holds the claim as it stands: the caller has it exactly when holder and
    /// epoch are its own. A higher epoch takes over a claim that is not delivered; a lower one never does.
    fn claim(&self, subject: String, holder: String, epoch: u64) -> Pending<'_, Claim>;

    /// Moves a claim forward under its epoch. `false`, and nothing moves, when the claim has gone to somebody
    /// else or has come further than that already.
    fn advance_claim(&self, subject: String, epoch: u64, state: ClaimState) -> Pending<'_, bool>;

    /// Claims a subject and says that it is done; `false` when it was done before or has gone to a higher epoch. A
    /// store that can do both in one commit does so.
    fn deliver(&self, subject: String, holder: String, epoch: u64) -> Pending<'_, bool> {
        Box::pin(async move {
            self.claim(subject.clone(), holder, epoch).await?;
            self.advance_claim(subject, epoch, ClaimState::Delivered).await
        })
    }

    /// A document on a shelf.
    fn document(&self, shelf: Shelf, key: String) -> Pending<'_, Option<Value>>;

    /// The documents of a shelf whose keys begin so, by key.
    fn documents(&self, shelf: Shelf, prefix: String) -> Pending<'_, Vec<(String, Value)>>;

    /// Puts a document on a shelf, or takes it away (`None`), if what is expected holds at that moment. `true`
    /// means that it now stands so and survives power loss; `false`, that nothing was written.
    fn place(&self, shelf: Shelf, key: String, value: Option<Value>, expect: Expect) -> Pending<'_, bool>;

    /// Shows the whole history as of one moment: see [`crate::Entry`] for what is in it and in which order.
    fn history(&self, visit: Visit) -> Pending<'_, Origin>;

    /// Takes a history into a project that has none, all of it in one commit or nothing; the last event. An
    /// error among the entries undoes what came before it. `project_not_empty` when there is a history already.
    fn restore(&self, entries: Entries) -> Pending<'_, u64>;

    /// Compares the tables with a replay of the log and checks the medium. Each finding is one sentence.
    fn verify(&self) -> Pending<'_, Vec<String>>;
}
