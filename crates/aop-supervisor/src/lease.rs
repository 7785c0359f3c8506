//! Who runs. In a store of its own a project has one run, which holds the project's lease; in a shared one every
//! folder is a runner and holds the lease of that runner. Beside the lease stands who the holder is, so that a
//! second run can say so, and so that a holder that is known to be dead need not be waited for.
//!
//! What is done to a feature is fenced by an epoch: that of the project's lease, or of the feature's own (`holding`).

use crate::runners::{Identity, RunnerRecord, millis};
use aop_engine::AOP_DIR;
use aop_engine::is_copy;
use aop_engine::process::start_time;
use aop_kernel::ids::{FeatureId, RunId};
use aop_kernel::time::Timestamp;
use aop_kernel::{ErrorCode, Refusal};
use aop_store::{Expect, Shelf, Store};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The lease of a project that has one run.
const PROJECT: &str = "run";
/// Where the holder of the project introduces itself.
pub(crate) const CURRENT: &str = "current";
/// How long a run may be silent before anybody may take over.
pub(crate) const TTL: Duration = Duration::from_secs(15);
/// How often it speaks.
pub(crate) const RENEWAL: Duration = Duration::from_secs(4);

/// When to take over a run that holds the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takeover {
    /// When it is dead or silent.
    IfDead,
    /// In any case.
    Force,
}

/// A run, for people and for whoever comes next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Its id.
    pub run_id: RunId,
    /// Its process.
    pub pid: u32,
    /// When that process began, in the kernel's own measure: an id may be used again.
    pub start_time: u64,
    /// Its machine.
    pub host: String,
    /// This start of the machine.
    pub boot: String,
    /// Since when it runs.
    pub since: Timestamp,
    /// The project's folder, without symlinks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<PathBuf>,
}

/// The document of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Who.
    #[serde(flatten)]
    pub info: RunInfo,
    /// Under which epoch.
    pub epoch: u64,
    /// When it ended by itself.
    pub ended_at: Option<Timestamp>,
}

/// What this run holds.
pub struct RunLease {
    pub(crate) store: Arc<dyn Store>,
    /// This run.
    pub info: RunInfo,
    /// The folder it works in, where several may work on the project.
    pub(crate) runner: Option<Identity>,
    epoch: AtomicU64,
    /// The features that it holds, with their epochs.
    pub(crate) held: Mutex<HashMap<FeatureId, u64>>,
    /// The features that it has held before.
    pub(crate) met: Mutex<HashSet<FeatureId>>,
}

impl RunInfo {
    /// This process, in the project with this root.
    pub fn of_this_process(now: Timestamp, root: &Path) -> Result<Self, Refusal> {
        let pid = std::process::id();
        Ok(RunInfo {
            run_id: RunId::parse(&format!("r_{}", ulid::Ulid::generate()))?,
            pid,
            start_time: start_time(pid).unwrap_or_default(),
            host: first_line("/proc/sys/kernel/hostname"),
            boot: first_line("/proc/sys/kernel/random/boot_id"),
            since: now,
            // A name that JSON cannot hold is left out.
            root: root.canonicalize().ok().filter(|root| root.to_str().is_some()),
        })
    }

    /// Whether this run has another folder, and what is read about it here came with a copy of that.
    pub(crate) fn is_of_a_copy(&self, root: &Path) -> bool {
        self.host == first_line("/proc/sys/kernel/hostname")
            && self.root.as_ref().is_some_and(|there| is_copy(&there.join(AOP_DIR), &root.join(AOP_DIR)))
    }

    /// Whether this run is known to be gone: its process on this machine is no more. Of another machine nothing
    /// is known.
    pub fn is_dead(&self) -> bool {
        // Without /proc nothing is known of this one either: then its lease decides.
        if self.host.is_empty() || self.host != first_line("/proc/sys/kernel/hostname") {
            return false;
        }
        self.boot != first_line("/proc/sys/kernel/random/boot_id") || !self.has_process()
    }

    /// The same, where machines may share a name: only of a process of this very start of the machine anything is known.
    pub(crate) fn was_seen_dying(&self) -> bool {
        self.boot == first_line("/proc/sys/kernel/random/boot_id") && self.is_dead()
    }

    fn has_process(&self) -> bool {
        start_time(self.pid) == Some(self.start_time)
    }
}

impl RunLease {
    /// Takes the project, or the runner where one is named. Refused with `run_already_active` while another run has
    /// it.
    pub async fn acquire(
        store: Arc<dyn Store>,
        root: &Path,
        takeover: Takeover,
        runner: Option<Identity>,
    ) -> Result<Self, Refusal> {
        let info = RunInfo::of_this_process(store.now().await?, root)?;
        let (held, met) = (Mutex::default(), Mutex::default());
        let lease = RunLease { store, info, runner, epoch: AtomicU64::new(0), held, met };
        let mut replaced = None;
        // A run that was killed before it could introduce itself is known to nobody: its lease has to run out.
        let deadline = tokio::time::Instant::now() + TTL + RENEWAL;
        for attempt in 0.. {
            if let Some(epoch) = lease.grant(&lease.name(), lease.info.run_id.as_str()).await? {
                lease.epoch.store(epoch, Ordering::SeqCst);
                lease.introduce(None).await?;
                if let Some(holder) = replaced {
                    see_off(&holder).await;
                }
                return Ok(lease);
            }
            if let Some(holder) = lease.holder().await? {
                // A store of its own that was copied says who runs in the original, which has nothing to do with it.
                let is_foreign = lease.runner.is_none() && holder.info.is_of_a_copy(root);
                if takeover == Takeover::IfDead && !is_foreign && !holder.info.is_dead() {
                    return Err(lease.already_active(&holder.info));
                }
                lease.store.release_lease(lease.name(), holder.epoch).await?;
                replaced = Some(holder.info).filter(|_| !is_foreign);
            }
            if tokio::time::Instant::now() >= deadline {
                break;
            }
            if attempt > 0 {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        Err(Refusal::new(ErrorCode::RunAlreadyActive, "another run took over at the same moment")
            .hint("look again with `aop status`; a run that died is taken over after 15 seconds"))
    }

    /// Says that it is still there. False when another run is in its place.
    pub(crate) async fn renew(&self) -> Result<bool, Refusal> {
        let Some(epoch) = self.grant(&self.name(), self.info.run_id.as_str()).await? else {
            return Ok(false);
        };
        if epoch != self.epoch() && self.successor().await?.is_some() {
            self.store.release_lease(self.name(), epoch).await?;
            return Ok(false);
        }
        // The machine may have slept past the end of the lease while nobody took it: turns keep the epoch they began
        // with, and what somebody else took meanwhile is refused by it.
        if self.epoch.swap(epoch, Ordering::SeqCst) != epoch || self.runner.is_some() {
            self.introduce(None).await?;
        }
        Ok(true)
    }

    /// The run that has had its place since, though it may have left it again.
    pub(crate) async fn successor(&self) -> Result<Option<RunInfo>, Refusal> {
        let last = self.holder().await?.map(|last| last.info);
        Ok(last.filter(|last| last.run_id != self.info.run_id))
    }

    /// Gives everything back.
    pub async fn release(&self) -> Result<(), Refusal> {
        self.let_all_go().await?;
        let now = self.store.now().await?;
        self.introduce(Some(now)).await?;
        Ok(self.store.release_lease(self.name(), self.epoch()).await?)
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    /// The lease's name.
    pub(crate) fn name(&self) -> String {
        match &self.runner {
            None => PROJECT.to_owned(),
            Some(runner) => format!("runner/{}", runner.id),
        }
    }

    pub(crate) async fn grant(&self, name: &str, holder: &str) -> Result<Option<u64>, Refusal> {
        let lease = self.store.acquire_lease(name.to_owned(), holder.to_owned(), millis(TTL)).await?;
        Ok(lease.map(|lease| lease.epoch))
    }

    async fn introduce(&self, ended_at: Option<Timestamp>) -> Result<(), Refusal> {
        let run = RunRecord { info: self.info.clone(), epoch: self.epoch(), ended_at };
        let expected = Expect::Lease { name: self.name(), epoch: self.epoch() };
        let place = async |shelf, key: &str, value| {
            self.store.place(shelf, key.to_owned(), Some(value), expected.clone()).await
        };
        place(Shelf::Runs, self.info.run_id.as_str(), json!(run)).await?;
        match &self.runner {
            None => place(Shelf::Runs, CURRENT, json!(run)).await?,
            Some(Identity { id, folder, engines }) => {
                let record = RunnerRecord {
                    runner_id: id.clone(),
                    folder: folder.display().to_string(),
                    engines: engines.iter().map(|engine| engine.as_str().to_owned()).collect(),
                    seen: ended_at.unwrap_or(self.store.now().await?),
                    run,
                };
                place(Shelf::Runners, id, json!(record)).await?
            }
        };
        Ok(())
    }

    /// The run that last had it.
    async fn holder(&self) -> Result<Option<RunRecord>, Refusal> {
        let (shelf, key) = match &self.runner {
            None => (Shelf::Runs, CURRENT.to_owned()),
            Some(runner) => (Shelf::Runners, runner.id.clone()),
        };
        let document = self.store.document(shelf, key).await?;
        Ok(document.and_then(|value| serde_json::from_value(value).ok()))
    }

    fn already_active(&self, holder: &RunInfo) -> Refusal {
        let RunInfo { run_id, pid, host, since, .. } = holder;
        let what = if self.runner.is_some() { "this folder" } else { "this project" };
        Refusal::new(
            ErrorCode::RunAlreadyActive,
            format!("run {run_id} has {what}: process {pid} on {host}, since {since}"),
        )
        .hint(
            "watch it with `aop status --watch`, stop it with Ctrl-C, or take over with `aop run --takeover`",
        )
        .fact("run_id", run_id)
        .fact("pid", pid)
        .fact("host", host)
        .fact("since", since)
    }
}

/// Waits until a run that was taken over is gone, so that its engines and ours never share a session. Fenced it is
/// already; on this machine it is told, elsewhere it finds out when it renews its lease.
async fn see_off(holder: &RunInfo) {
    let is_here = holder.host == first_line("/proc/sys/kernel/hostname");
    if is_here
        && !holder.is_dead()
        && let Some(pid) = i32::try_from(holder.pid).ok().and_then(Pid::from_raw)
    {
        // It stops its engines in good order. One that cannot be told finds out like one elsewhere.
        let _ = kill_process(pid, Signal::TERM);
    }
    let deadline = tokio::time::Instant::now() + 2 * RENEWAL;
    while !holder.is_dead() && tokio::time::Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn first_line(path: &str) -> String {
    std::fs::read_to_string(path)
        .ok()
        .and_then(|text| text.lines().next().map(str::to_owned))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use aop_store::{ManualClock, MemoryStore};

    #[test]
    fn of_a_run_nothing_is_known_where_the_system_tells_nothing() {
        let mut run = RunInfo::of_this_process(Timestamp::from_millis(0), Path::new("/")).unwrap();
        assert!(!run.is_dead(), "it is this one");
        run.start_time += 1;
        assert!(run.is_dead(), "its number is another process's");
        (run.host, run.boot, run.start_time) = Default::default();
        assert!(!run.is_dead(), "without /proc");
    }

    #[tokio::test]
    async fn a_run_that_slept_goes_on_unless_another_has_had_its_place() {
        let clock = Arc::new(ManualClock::at(Timestamp::from_millis(1_000_000)));
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(clock.clone()));
        let sleep = || clock.advance(i64::try_from(millis(2 * TTL)).unwrap());
        let begin = async || {
            RunLease::acquire(Arc::clone(&store), Path::new("/"), Takeover::IfDead, None).await.unwrap()
        };
        let first = begin().await;
        sleep();
        assert!(first.renew().await.unwrap(), "nobody was there meanwhile");
        sleep();
        let second = begin().await;
        assert!(!first.renew().await.unwrap(), "another is there");
        second.release().await.unwrap();
        assert!(!first.renew().await.unwrap(), "another was there");
        begin().await.release().await.unwrap();
    }
}
