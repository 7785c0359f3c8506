//! What every task of a run shares, and the ways in which a task can be told to stop.

use super::Notice;
use crate::git::{Base, Git};
use crate::holding::Fence;
use crate::lease::RunLease;
use crate::room::is_full;
use crate::runners::known_runner;
use crate::settings::{Drivers, Settings, Worktrees};
use aop_kernel::event::{Actor, Event, Stamped};
use aop_kernel::feature::Feature;
use aop_kernel::ids::{FeatureId, QuestionId};
use aop_kernel::lifecycle::Request;
use aop_kernel::own::OwnOperation;
use aop_kernel::role::Role;
use aop_kernel::status::Status;
use aop_kernel::work::Work;
use aop_kernel::{Envelope, ErrorCode, Refusal};
use aop_store::{Expect, Service, Shelf, Store, StoreError, make_folder};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// So many events are looked through at a time.
const LOOKED_THROUGH: usize = 16;

/// Why a task stops what it does.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Stop {
    /// It was told to: the feature waits, is over, or the run ends.
    #[error("it was told to stop")]
    Cut,
    /// Another runner has the feature.
    #[error("another runner has the feature")]
    Lost,
    /// The feature is no longer where it was; look again.
    #[error("the feature has moved on")]
    Stale,
    /// This feature cannot go on without a person.
    #[error("{0}")]
    Feature(Refusal),
    /// Nothing of this run can go on.
    #[error("{0}")]
    Run(Refusal),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        match refusal.code {
            ErrorCode::QuestionConflictOpen if is_full(&refusal) => Stop::Feature(refusal),
            ErrorCode::VersionConflict
            | ErrorCode::QuestionOpenBlocksAction
            | ErrorCode::QuestionConflictOpen
            | ErrorCode::QuestionAnswerNotAllowedInTerminalState
            | ErrorCode::InvalidStatusTransition => Stop::Stale,
            ErrorCode::StoreUnavailable | ErrorCode::RunAlreadyActive => Stop::Run(refusal),
            _ => Stop::Feature(refusal),
        }
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Refusal::from(error).into()
    }
}

impl Stop {
    pub(crate) fn into_refusal(self) -> Refusal {
        match self {
            Stop::Feature(refusal) | Stop::Run(refusal) => refusal,
            Stop::Cut | Stop::Lost | Stop::Stale => {
                Refusal::new(ErrorCode::VersionConflict, self.to_string())
            }
        }
    }
}

/// What every task shares.
pub(crate) struct Context {
    pub(crate) service: Service,
    pub(crate) settings: Settings,
    pub(crate) drivers: Drivers,
    pub(crate) lease: RunLease,
    pub(crate) git: Git,
    /// This folder, as sessions name it.
    pub(crate) runner_id: Option<String>,
    notices: mpsc::UnboundedSender<Notice>,
    busy: Mutex<HashMap<FeatureId, watch::Sender<bool>>>,
    /// When the next turn of a feature may begin, where an engine has failed.
    resting: Mutex<HashMap<FeatureId, Instant>>,
}

impl Context {
    pub(super) fn new(
        service: Service,
        settings: Settings,
        drivers: Drivers,
        lease: RunLease,
        notices: mpsc::UnboundedSender<Notice>,
    ) -> Self {
        let git = Git::with(&settings.root, settings.worktrees).within(settings.git_timeout);
        let runner_id = match &lease.runner {
            Some(runner) => Some(runner.id.clone()),
            None => known_runner(&settings.dir()),
        };
        let (busy, resting) = (Mutex::default(), Mutex::default());
        Context { service, settings, drivers, lease, git, runner_id, notices, busy, resting }
    }

    pub(crate) fn store(&self) -> &dyn Store {
        self.service.store.as_ref()
    }

    /// Commits a request.
    pub(crate) async fn submit(&self, request: Request) -> Result<Envelope, Stop> {
        Ok(self.service.submit(request).await?.envelope)
    }

    /// What keeps others from this feature.
    pub(crate) fn fence(&self, feature: &FeatureId) -> Result<Fence, Stop> {
        self.lease.fence(feature).ok_or(Stop::Lost)
    }

    /// Makes sure that a feature is still this run's, for what carries no epoch.
    pub(crate) async fn confirm(&self, feature: &FeatureId) -> Result<(), Stop> {
        if self.lease.runner.is_none() {
            return Ok(());
        }
        self.fence(feature)?;
        if self.lease.keep(feature).await? { Ok(()) } else { Err(Stop::Lost) }
    }

    /// Writes a document about a feature, as long as this run has it.
    pub(crate) async fn place(
        &self,
        feature: &FeatureId,
        shelf: Shelf,
        key: String,
        value: Option<Value>,
    ) -> Result<(), Stop> {
        for _ in 0..2 {
            let expected = self.fence(feature)?.expected();
            if self.store().place(shelf, key.clone(), value.clone(), expected).await? {
                return Ok(());
            }
            // Perhaps the machine only slept past the end of the lease.
            if !self.lease.keep(feature).await? {
                break;
            }
        }
        Err(self.lost())
    }

    /// Somebody else has what is being worked on: the feature, or all of the project.
    pub(crate) fn lost(&self) -> Stop {
        if self.lease.runner.is_some() { Stop::Lost } else { Stop::Run(self.taken_over()) }
    }

    /// Another run is in this one's place.
    pub(crate) fn taken_over(&self) -> Refusal {
        let run = &self.lease.info.run_id;
        let what = if self.lease.runner.is_some() { "folder" } else { "project" };
        Refusal::new(ErrorCode::RunAlreadyActive, format!("another run took the {what} over from {run}"))
            .hint("this run has stopped, and its engines with it; `aop status` shows where everything stands")
    }

    /// The worktree of a feature, off the base that was written down for it. Stores of earlier versions have none.
    pub(crate) async fn worktree(&self, feature: &FeatureId) -> Result<PathBuf, Stop> {
        let base = self.store().document(Shelf::Sessions, self.base_key(feature)).await?;
        let base: Option<Base> = base.and_then(|base| serde_json::from_value(base).ok());
        let made = self.git.worktree_from(feature, base.as_ref()).await;
        Ok(made.map_err(|error| Refusal::from(error.stopping(feature)))?)
    }

    fn base_key(&self, feature: &FeatureId) -> String {
        Base::key(feature, self.lease.runner.as_ref().map(|runner| runner.id.as_str()))
    }

    /// Writes down what these features branch off, unless it is written already.
    pub(super) async fn write_bases(&self, features: Vec<FeatureId>) -> Result<(), Refusal> {
        if features.is_empty() || self.settings.worktrees == Worktrees::Plain {
            return Ok(());
        }
        let Some(base) = self.git.base().await else { return Ok(()) };
        for feature in features {
            let (key, base) = (self.base_key(&feature), json!(base));
            self.store().place(Shelf::Sessions, key, Some(base), Expect::Absent).await?;
        }
        Ok(())
    }

    /// Where a feature goes that its builder has to see again: to the builder, or to a person after some rounds.
    pub(crate) fn back_to_builder(&self, feature: &Feature, why: &str) -> (Status, String) {
        let rounds = feature.work.returns;
        if rounds < self.settings.repair_rounds {
            return (Status::Building, why.to_owned());
        }
        let id = &feature.id;
        let reason = format!(
            "{why}, and the builder has had its work back {rounds} times (see `aop log --feature-id {id}`, then `aop retry --feature-id {id}`)"
        );
        (Status::Blocked, reason)
    }

    /// The folder of this run for a feature.
    pub(crate) fn run_dir(&self, feature: &FeatureId) -> Result<PathBuf, Stop> {
        let path =
            self.settings.dir().join("runs").join(self.lease.info.run_id.as_str()).join(feature.as_str());
        make(&path, feature)?;
        Ok(path)
    }

    /// A folder that is one process's alone.
    pub(crate) fn turn_dir(&self, feature: &FeatureId, what: &str, round: u32) -> Result<PathBuf, Stop> {
        let folder = self.run_dir(feature)?;
        let name = what.replace([':', '/'], "-");
        let name = if round == 0 { name } else { format!("{name}-repair-{round}") };
        let mut number = 1;
        loop {
            let path = folder.join(if number == 1 { name.clone() } else { format!("{name}.{number}") });
            match std::fs::create_dir(&path) {
                Ok(()) => {
                    make(&path.join("artifacts"), feature)?;
                    return Ok(path);
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(cannot_make(&path, feature, &error).into()),
            }
        }
    }

    /// Shows what a worker does.
    pub(crate) fn say(&self, feature: &FeatureId, text: &str) {
        self.show(Notice::Said { feature_id: feature.clone(), text: text.to_owned() });
    }

    /// Shows that an engine runs.
    pub(crate) fn started(&self, feature: &FeatureId, claim: &str) {
        self.show(Notice::Started { feature_id: feature.clone(), claim: claim.to_owned() });
    }

    /// Shows something; nobody has to look.
    pub(crate) fn show(&self, notice: Notice) {
        let _ = self.notices.send(notice);
    }

    /// Waits for something that ends when the task is told to stop.
    pub(crate) async fn until_stopped<T>(
        &self,
        feature: &FeatureId,
        future: impl Future<Output = T>,
    ) -> Result<T, Stop> {
        let receiver = self.busy().get(feature).map(watch::Sender::subscribe);
        let Some(mut stop) = receiver else { return Err(Stop::Cut) };
        tokio::select! {
            biased;
            () = told(&mut stop) => Err(Stop::Cut),
            done = future => Ok(done),
        }
    }

    /// Lets the next turn of a feature begin only after so long.
    pub(crate) fn rest(&self, feature: &FeatureId, time: Duration) {
        self.resting().insert(feature.clone(), Instant::now() + time);
    }

    /// When the next turn of a feature may begin, if that is not yet. A person who sends it on is not kept waiting: then
    /// nothing has failed yet.
    pub(super) fn rests_until(&self, feature: &Feature) -> Option<Instant> {
        let mut resting = self.resting();
        let until = resting.get(&feature.id).copied()?;
        if feature.work.failures > 0 && Instant::now() < until {
            return Some(until);
        }
        resting.remove(&feature.id);
        None
    }

    fn resting(&self) -> MutexGuard<'_, HashMap<FeatureId, Instant>> {
        // Plain data, whole after any panic.
        self.resting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the feature's task was told to stop.
    pub(super) fn is_stopped(&self, feature: &FeatureId) -> bool {
        self.busy().get(feature).is_none_or(|stop| *stop.borrow())
    }

    pub(super) fn is_busy(&self, feature: &FeatureId) -> bool {
        self.busy().contains_key(feature)
    }

    pub(super) fn begin_task(&self, feature: &FeatureId) {
        self.busy().insert(feature.clone(), watch::Sender::new(false));
    }

    pub(super) fn end_task(&self, feature: &FeatureId) {
        self.busy().remove(feature);
    }

    /// Stops the work on a feature.
    pub(super) fn interrupt(&self, feature: &FeatureId) {
        if let Some(stop) = self.busy().get(feature) {
            stop.send_replace(true);
        }
    }

    pub(super) fn stop_all(&self) {
        for stop in self.busy().values() {
            stop.send_replace(true);
        }
    }

    /// Stops the work on a feature that somebody else has stopped: asked something about it, in whoever's name, moved it
    /// or cancelled it. A question of the turn itself does not: its engine parks by itself. Nor does one of the check
    /// itself: its program waits for the answer, and would ask again from the start.
    pub(super) async fn interrupt_if_moved_on(&self, feature: &Feature) -> Result<(), Refusal> {
        let goes_on = match &feature.waiting {
            None => feature
                .status
                .worker()
                .is_some_and(|worker| feature.work.turn.as_ref().is_none_or(|turn| turn.role == worker)),
            Some(waiting) => {
                Some(waiting.role) == at_work(feature)
                    && self.has_asked(feature, &waiting.question_id).await?
            }
        };
        if !goes_on {
            self.interrupt(&feature.id);
        }
        Ok(())
    }

    /// Whether what is under way asked this question in its role itself.
    pub(crate) async fn has_asked(&self, feature: &Feature, question: &QuestionId) -> Result<bool, Refusal> {
        let opened = self.opened(&feature.id, question).await?;
        Ok(opened.is_some_and(|opened| is_asked_by(&feature.work, &opened)))
    }

    /// The event by which a question was opened. It is among the last of its feature while it is waited for.
    async fn opened(&self, feature: &FeatureId, question: &QuestionId) -> Result<Option<Stamped>, Refusal> {
        let mut before = None;
        loop {
            let page = self.store().last_events(feature.clone(), before, LOOKED_THROUGH).await?;
            let Some(oldest) = page.last().map(|recorded| recorded.seq) else { return Ok(None) };
            let opens = |event: &Event| matches!(event, Event::QuestionOpened { question: opened, .. } if opened.id == *question);
            if let Some(found) = page.into_iter().find(|recorded| opens(&recorded.stamped.event)) {
                return Ok(Some(found.stamped));
            }
            before = Some(oldest);
        }
    }

    fn busy(&self) -> MutexGuard<'_, HashMap<FeatureId, watch::Sender<bool>>> {
        // A map of senders is whole after any panic.
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The role in which the feature is worked on. Whatever a check starts acts as the builder.
fn at_work(feature: &Feature) -> Option<Role> {
    if feature.work.check.is_some() { Some(Role::Builder) } else { feature.role }
}

/// Whether what is under way has asked in its role: a worker, whose own programs no record tells from others with its
/// role; or a run in the name of the turn, this one or one that has just ended.
fn is_asked_by(work: &Work, opened: &Stamped) -> bool {
    match opened.actor {
        Actor::Planner | Actor::Builder | Actor::Qa => true,
        Actor::Orchestrator => {
            let operation = opened.operation_id.as_ref().map_or("", |id| id.as_str());
            let of = operation.strip_prefix(OwnOperation::Ask.prefix());
            let is_of =
                |of: &str| work.turn.as_ref().is_none_or(|turn| of.starts_with(&format!("{}:", turn.claim)));
            work.check.is_none() && of.is_some_and(is_of)
        }
        Actor::Human | Actor::Policy => false,
    }
}

fn make(path: &Path, feature: &FeatureId) -> Result<(), Refusal> {
    make_folder(path).map_err(|error| cannot_make(path, feature, &error))
}

fn cannot_make(path: &Path, feature: &FeatureId, error: &std::io::Error) -> Refusal {
    Refusal::new(ErrorCode::Internal, format!("{} cannot be made: {error}", path.display())).hint(format!(
        "check that the disk has space and .aop/ is writable, then `aop retry --feature-id {feature}`"
    ))
}

/// Waits until the task is told to stop, or has nobody any more who could tell it.
async fn told(stop: &mut watch::Receiver<bool>) {
    // The guard on the value is gone before anything else is waited for.
    let _ = stop.wait_for(|stop| *stop).await.is_ok();
}

#[cfg(test)]
mod tests {
    use super::*;
    use aop_kernel::ids::OperationId;
    use aop_kernel::time::Timestamp;
    use aop_kernel::work::{CheckInHand, CheckName, TurnInHand};

    #[test]
    fn a_turn_parks_by_itself_when_it_has_asked_and_is_stopped_by_whoever_else_has() {
        let at = Timestamp::from_millis(0);
        let claim = "turn:shop:2".to_owned();
        let turn = TurnInHand { claim, epoch: 1, role: Role::Builder, reply_to: None, since: at };
        let in_turn = Work { turn: Some(turn), ..Work::default() };
        let check = CheckInHand { name: CheckName::Fast, epoch: 1, since: at };
        let in_check = Work { check: Some(check), ..Work::default() };
        let asked_in = |work: &Work, actor, operation: &str| {
            let feature_id = FeatureId::parse("shop").unwrap();
            let operation_id = Some(OperationId::parse(operation).unwrap());
            let event = Event::Noted { note: String::new() };
            is_asked_by(work, &Stamped { feature_id, at, actor, operation_id, event })
        };
        let asked = |actor, operation: &str| asked_in(&in_turn, actor, operation);
        // The hook, the host, `aop mcp` and `aop tool call` of the engine.
        for own in ["claude:s:toolu_1", "ask:turn:shop:2:0123456789abcdef", "ask_0123", "op_1"] {
            assert!(asked(Actor::Builder, own), "{own}");
            assert!(!asked(Actor::Human, own), "{own}");
        }
        assert!(asked(Actor::Orchestrator, "ask:turn:shop:2:0123456789abcdef"), "what it asked in words");
        for other in
            ["op_1", "ask:x", "ask:turn:shop:21:0123456789abcdef", "ask:turn:other:2:0123456789abcdef"]
        {
            assert!(!asked(Actor::Orchestrator, other), "{other}");
            assert!(!asked_in(&in_check, Actor::Orchestrator, other), "{other}");
        }
        assert!(asked_in(&in_check, Actor::Builder, "ask_0123"), "what a check starts");
        assert!(!asked_in(&in_check, Actor::Human, "ask_0123"));
    }
}
