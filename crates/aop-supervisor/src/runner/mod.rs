//! The loop: features that can be worked on get a task each, up to a limit; those that wait cost nothing. Every commit,
//! of this process or another, wakes it; so do the next deadline of a question and the end of a feature's rest.

mod context;
mod feature;
mod leftovers;
mod whose;

pub(crate) use context::{Context, Stop};

use crate::lease::{RENEWAL, RunInfo, RunLease};
use crate::runners::runners;
use crate::settings::{Drivers, Settings};
use crate::step::is_ready;
use aop_kernel::feature::{Feature, FeatureRecord};
use aop_kernel::ids::FeatureId;
use aop_kernel::status::{Held, Status};
use aop_kernel::{ErrorCode, Refusal};
use aop_store::{FeaturePage, Service};
use feature::{Outcome, work_on};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use whose::Left;

/// Something worth showing that is no event of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// An engine was started for a turn.
    Started {
        /// The feature.
        feature_id: FeatureId,
        /// The turn.
        claim: String,
    },
    /// A worker said or did something.
    Said {
        /// The feature.
        feature_id: FeatureId,
        /// What.
        text: String,
    },
    /// A feature waits for a runner that is not there.
    Waits {
        /// The feature.
        feature_id: FeatureId,
        /// For which, in words.
        text: String,
    },
    /// The user should know.
    Warning(String),
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Nothing is left to do.
    Finished,
    /// All that is left waits for a person, and that was to be the end.
    Parked,
    /// It was told to stop.
    Stopped,
    /// Another run is in its place.
    TakenOver,
}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct RunEnd {
    /// Why.
    pub reason: Reason,
    /// The features that were not over when it began, came later or were named, as they stand now.
    pub features: Vec<FeatureRecord>,
    /// By which run it was taken over, as far as that has introduced itself.
    pub taken_over_by: Option<RunInfo>,
    /// Whether the project was given back. One that was stopped while the store was away leaves that to time.
    pub given_back: bool,
}

/// A run of one project.
pub struct Runner {
    context: Arc<Context>,
    /// Features that are not over, as last seen.
    known: BTreeMap<FeatureId, Feature>,
    /// All features that this run has had to do with.
    met: BTreeSet<FeatureId>,
    /// Those among them that nobody had worked on.
    unbegun: BTreeSet<FeatureId>,
    /// Those among them of which it is not written down yet what they branch off.
    fresh: Vec<FeatureId>,
    ready: VecDeque<FeatureId>,
    tasks: JoinSet<(FeatureId, Outcome)>,
    /// Features that could be worked on, and are not for this run.
    left: BTreeMap<FeatureId, Left>,
    /// Features whose engine failed, and when it is tried again. They have no task, which others may need meanwhile; but
    /// they stay held: another runner knows nothing of the wait, and would try at once.
    resting: BTreeMap<FeatureId, Instant>,
    /// What people were told of those that were left.
    told: BTreeMap<FeatureId, String>,
    seen: u64,
}

/// How long a run that was stopped, or that lost its store, tries to give back what it holds. What it cannot give back
/// runs out by itself.
const ENDING: Duration = Duration::from_secs(3);

/// So long a store may take to say that the run still holds its lease before people are told.
const SLOW: Duration = Duration::from_secs(3);

/// So long the loop sleeps at most when nothing happens.
const LONGEST: Duration = Duration::from_secs(3600);

/// How soon a feature that another runner held is tried again: that it was let go is no commit.
const HELD: Duration = Duration::from_secs(1);

impl Runner {
    /// A run under this lease.
    pub fn new(
        service: Service,
        settings: Settings,
        drivers: Drivers,
        lease: RunLease,
        notices: mpsc::UnboundedSender<Notice>,
    ) -> Self {
        let context = Arc::new(Context::new(service, settings, drivers, lease, notices));
        Runner {
            context,
            known: BTreeMap::new(),
            met: BTreeSet::new(),
            unbegun: BTreeSet::new(),
            fresh: Vec::new(),
            ready: VecDeque::new(),
            tasks: JoinSet::new(),
            left: BTreeMap::new(),
            resting: BTreeMap::new(),
            told: BTreeMap::new(),
            seen: 0,
        }
    }

    /// The user named these: how they stand is how the run ends, also when they were over before it began.
    #[must_use]
    pub fn naming(mut self, features: impl IntoIterator<Item = FeatureId>) -> Self {
        self.met.extend(features);
        self
    }

    /// Runs until nothing is left to do or `stop` says so. Whatever happens, no engine is left, and the lease is given
    /// back unless the store cannot be reached for that: then it runs out.
    pub async fn run(mut self, stop: watch::Receiver<bool>) -> Result<RunEnd, Refusal> {
        let ended = self.begin_and_turn_around(stop).await;
        self.context.stop_all();
        self.tasks.shutdown().await;
        let giving_back = async {
            self.context.lease.release().await?;
            self.features().await
        };
        if let Ok(reason @ (Reason::Finished | Reason::Parked)) = ended {
            return Ok(RunEnd {
                reason,
                features: giving_back.await?,
                taken_over_by: None,
                given_back: true,
            });
        }
        let features = tokio::time::timeout(ENDING, async {
            // Whoever takes over on this machine says so before it sends the signal to stop.
            let successor = self.context.lease.successor().await?;
            Ok::<_, Refusal>((giving_back.await?, successor))
        });
        let (features, taken_over_by, given_back) = match features.await {
            Ok(Ok((features, successor))) => (features, successor, true),
            _ => (self.last_seen(), None, false),
        };
        let reason = match ended {
            Ok(_) if taken_over_by.is_some() => Reason::TakenOver,
            Err(refusal) if refusal.code == ErrorCode::RunAlreadyActive => Reason::TakenOver,
            ended => ended?,
        };
        Ok(RunEnd { reason, features, taken_over_by, given_back })
    }

    async fn begin_and_turn_around(&mut self, mut stop: watch::Receiver<bool>) -> Result<Reason, Refusal> {
        self.context.git.check_repository().await?;
        self.context.git.mend_worktrees().await;
        leftovers::reap(&self.context).await;
        tokio::select! {
            ended = self.turn_around() => ended,
            // Also while a call waits for the store.
            () = told_to_stop(&mut stop) => Ok(Reason::Stopped),
        }
    }

    async fn turn_around(&mut self) -> Result<Reason, Refusal> {
        let mut changes = self.context.store().changes();
        changes.borrow_and_update();
        self.read_all().await?;
        let mut renewal = tokio::time::interval(RENEWAL);
        renewal.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            self.context.store().expire().await?;
            self.notice_changes().await?;
            self.context.write_bases(std::mem::take(&mut self.fresh)).await?;
            self.wake_rested();
            self.start_tasks();
            if let Some(reason) = self.reason_to_end() {
                return Ok(reason);
            }
            let deadline = self.until_deadline().await?;
            tokio::select! {
                changed = changes.changed() => {
                    if changed.is_err() {
                        return Err(Refusal::new(ErrorCode::Internal, "the store stopped announcing changes"));
                    }
                    changes.borrow_and_update();
                }
                Some(joined) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                    self.task_ended(joined).await?;
                }
                () = tokio::time::sleep(deadline) => {}
                () = tokio::time::sleep(HELD), if self.left.values().any(|left| *left == Left::Held) => {
                    self.look_again(|left| *left == Left::Held);
                }
                _ = renewal.tick() => self.renew_aloud().await?,
            }
        }
    }

    /// Why the run ends now, if it does: nothing is left for any runner, or only what waits for a person or for a
    /// runner that is not there.
    fn reason_to_end(&self) -> Option<Reason> {
        if !self.tasks.is_empty() || !self.ready.is_empty() || !self.resting.is_empty() {
            return None;
        }
        let waits = self.known.values().any(|feature| feature.status == Status::AwaitingInput);
        if !waits && self.left.is_empty() {
            return Some(Reason::Finished);
        }
        let is_parked = self.left.values().all(Left::is_nobodys);
        (is_parked && self.context.settings.exit_when_parked).then_some(Reason::Parked)
    }

    /// Renews, and tells people when the store keeps it waiting.
    async fn renew_aloud(&mut self) -> Result<(), Refusal> {
        let context = Arc::clone(&self.context);
        let mut renewed = std::pin::pin!(self.renew());
        tokio::select! {
            renewed = &mut renewed => renewed,
            () = tokio::time::sleep(SLOW) => {
                context.show(Notice::Warning("the store does not answer; waiting for it".to_owned()));
                renewed.await
            }
        }
    }

    /// Says that this run is still there, and finds out what it has lost and what it may have gained.
    async fn renew(&mut self) -> Result<(), Refusal> {
        if !self.context.lease.renew().await? {
            return Err(self.context.taken_over());
        }
        for id in self.context.lease.keep_all().await? {
            self.context.show(Notice::Warning(format!("another runner has {id}; the work on it stops here")));
            self.context.interrupt(&id);
            if self.resting.remove(&id).is_some() {
                self.look_at(id);
            }
        }
        if !self.left.is_empty() {
            let store = self.context.store();
            let (now, all) = (store.now().await?, runners(store).await?);
            let away_ms = self.context.away_ms();
            self.look_again(|left| left.is_outdated(&all, now, away_ms));
        }
        Ok(())
    }

    /// Features that were left alone for such a reason are tried again.
    fn look_again(&mut self, wanted: impl Fn(&Left) -> bool) {
        let again = self.left.iter().filter(|(_, left)| wanted(left));
        let again: Vec<FeatureId> = again.map(|(id, _)| id.clone()).collect();
        again.into_iter().for_each(|id| self.look_at(id));
    }

    /// Features whose time has come are tried again.
    fn wake_rested(&mut self) {
        let now = Instant::now();
        let rested = self.resting.iter().filter(|(_, until)| **until <= now);
        let rested: Vec<FeatureId> = rested.map(|(id, _)| id.clone()).collect();
        rested.into_iter().for_each(|id| self.look_at(id));
    }

    /// A feature gets a task when it is its turn.
    fn look_at(&mut self, id: FeatureId) {
        if !self.ready.contains(&id) {
            self.ready.push_back(id);
        }
    }

    /// How long until a question is due or a feature has rested. Those that have, and wait for a task, need no timer.
    async fn until_deadline(&self) -> Result<Duration, Refusal> {
        let rests = self.resting.iter().filter(|(id, _)| !self.ready.contains(id)).map(|(_, until)| *until);
        let now = Instant::now();
        let rest = rests.min().map_or(LONGEST, |until| until.saturating_duration_since(now));
        let store = self.context.store();
        let Some(deadline) = store.next_deadline().await? else { return Ok(rest.min(LONGEST)) };
        let now = store.now().await?;
        let left = u64::try_from(deadline.as_millis() - now.as_millis()).unwrap_or_default();
        Ok(rest.min(Duration::from_millis(left + 1)).min(LONGEST))
    }

    async fn read_all(&mut self) -> Result<(), Refusal> {
        let last = self.context.store().last().await?;
        for feature in self.context.store().features(FeaturePage::default()).await? {
            self.see(feature).await?;
        }
        self.seen = last;
        Ok(())
    }

    /// Looks at what was committed since the last time, and at nothing else.
    async fn notice_changes(&mut self) -> Result<(), Refusal> {
        let (changed, last) = self.context.store().changed_since(self.seen).await?;
        for (id, _) in changed {
            if let Some(feature) = self.context.store().feature(id).await? {
                self.see(feature).await?;
            }
        }
        self.seen = last;
        Ok(())
    }

    async fn see(&mut self, feature: Feature) -> Result<(), Refusal> {
        if feature.adhoc {
            return Ok(());
        }
        let id = feature.id.clone();
        if self.context.is_busy(&id) {
            self.context.interrupt_if_moved_on(&feature).await?;
        }
        if !is_ready(&feature) {
            self.left.remove(&id);
            if self.resting.remove(&id).is_some() {
                // What cannot be given back runs out by itself.
                let _ = self.context.lease.let_go(&id).await;
            }
        }
        if feature.status.is_terminal() {
            self.known.remove(&id);
            self.ready.retain(|ready| *ready != id);
            return Ok(());
        }
        self.met.insert(id.clone());
        if is_ready(&feature) && feature.work.turns == 0 && self.unbegun.insert(id.clone()) {
            self.fresh.push(id.clone());
        }
        if is_ready(&feature) && !self.context.is_busy(&id) {
            self.look_at(id.clone());
        }
        self.known.insert(id, feature);
        Ok(())
    }

    fn start_tasks(&mut self) {
        while self.tasks.len() < self.context.settings.max_parallel {
            let Some(id) = self.ready.pop_front() else { return };
            self.left.remove(&id);
            self.resting.remove(&id);
            self.context.begin_task(&id);
            let context = Arc::clone(&self.context);
            self.tasks.spawn(async move {
                let outcome = work_on(&context, &id).await;
                if !matches!(outcome, Outcome::RestingUntil(..)) {
                    // What cannot be given back runs out by itself.
                    let _ = context.lease.let_go(&id).await;
                }
                (id, outcome)
            });
        }
    }

    async fn task_ended(
        &mut self,
        joined: Result<(FeatureId, Outcome), tokio::task::JoinError>,
    ) -> Result<(), Refusal> {
        let (id, outcome) = joined
            .map_err(|error| Refusal::new(ErrorCode::Internal, format!("a feature's task broke: {error}")))?;
        self.context.end_task(&id);
        let seen_at = match &outcome {
            Outcome::Resting => None,
            Outcome::RestingUntil(_, version) | Outcome::Left(_, version) => Some(*version),
            Outcome::Broken(refusal) => return Err(refusal.clone()),
        };
        if let Outcome::RestingUntil(until, _) = &outcome {
            self.resting.insert(id.clone(), *until);
        }
        // What happened to it while its task was ending has to be seen too.
        let Some(feature) = self.context.store().feature(id).await? else { return Ok(()) };
        if seen_at != Some(feature.version) {
            return self.see(feature).await;
        }
        if let Outcome::Left(left, _) = outcome {
            self.leave(&feature.id, left);
        }
        Ok(())
    }

    /// Another runner is to do this one; where none can, people are told, once.
    fn leave(&mut self, id: &FeatureId, left: Left) {
        if let Some(text) = left.in_words(self.context.away_ms())
            && self.told.insert(id.clone(), text.clone()).as_ref() != Some(&text)
        {
            self.context.show(Notice::Waits { feature_id: id.clone(), text });
        }
        self.left.insert(id.clone(), left);
    }

    /// The same as they were when the store could last be read.
    fn last_seen(&self) -> Vec<FeatureRecord> {
        self.known.values().map(|feature| feature.record(Held::No)).collect()
    }

    async fn features(&self) -> Result<Vec<FeatureRecord>, Refusal> {
        let mut records = Vec::new();
        for id in &self.met {
            if let Some(feature) = self.context.store().feature(id.clone()).await? {
                records.push(feature.record(Held::No));
            }
        }
        Ok(records)
    }
}

/// Waits for the word. A sender that is gone never says it.
async fn told_to_stop(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}
