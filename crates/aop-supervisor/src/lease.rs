//! Who runs a project. A run holds a lease with a fencing epoch; what an earlier holder still does is refused by
//! it. Beside the lease stands who the holder is, so that a second run can say so, and so that a holder that is
//! known to be dead need not be waited for.

use aop_kernel::ids::RunId;
use aop_kernel::time::Timestamp;
use aop_kernel::{ErrorCode, Refusal};
use aop_store::{Expect, Shelf, Store};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The lease of a project's run. Runners that share a project will take one lease per feature under other names.
const LEASE: &str = "run";
/// Where the holder introduces itself.
const CURRENT: &str = "current";
/// How long a run may be silent before anybody may take over.
const TTL: Duration = Duration::from_secs(15);
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

/// The lease of this run.
pub struct RunLease {
    store: Arc<dyn Store>,
    /// This run.
    pub info: RunInfo,
    epoch: AtomicU64,
}

impl RunInfo {
    /// This process.
    pub fn of_this_process(now: Timestamp) -> Result<Self, Refusal> {
        let pid = std::process::id();
        Ok(RunInfo {
            run_id: RunId::parse(&format!("r_{}", ulid::Ulid::generate()))?,
            pid,
            start_time: start_time(pid).unwrap_or_default(),
            host: first_line("/proc/sys/kernel/hostname"),
            boot: first_line("/proc/sys/kernel/random/boot_id"),
            since: now,
        })
    }

    /// Whether this run is known to be gone: its process on this machine is no more. Of another machine nothing
    /// is known.
    pub fn is_dead(&self) -> bool {
        if self.host != first_line("/proc/sys/kernel/hostname") {
            return false;
        }
        self.boot != first_line("/proc/sys/kernel/random/boot_id")
            || start_time(self.pid) != Some(self.start_time)
    }
}

impl RunLease {
    /// Takes the project. Refused with `run_already_active` while another run has it.
    pub async fn acquire(store: Arc<dyn Store>, takeover: Takeover) -> Result<Self, Refusal> {
        let info = RunInfo::of_this_process(store.now().await?)?;
        for _ in 0..3 {
            if let Some(epoch) = grant(&store, &info).await? {
                let lease = RunLease { store, info, epoch: AtomicU64::new(epoch) };
                lease.introduce(None).await?;
                return Ok(lease);
            }
            let Some(holder) = current(store.as_ref()).await? else { continue };
            if takeover == Takeover::Force || holder.info.is_dead() {
                store.release_lease(LEASE.to_owned(), holder.epoch).await?;
            } else {
                return Err(already_active(&holder.info));
            }
        }
        Err(Refusal::new(ErrorCode::RunAlreadyActive, "another run took this project at the same moment")
            .hint("look again with `aop status`; a run that died is taken over after 15 seconds"))
    }

    /// The epoch that everything of this run is fenced with.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    /// What must hold for this run to write a document.
    pub(crate) fn expected(&self) -> Expect {
        Expect::Lease { name: LEASE.to_owned(), epoch: self.epoch() }
    }

    /// Says that it is still there. False when somebody else has the project.
    pub(crate) async fn renew(&self) -> Result<bool, Refusal> {
        let Some(epoch) = grant(&self.store, &self.info).await? else { return Ok(false) };
        if self.epoch.swap(epoch, Ordering::SeqCst) != epoch {
            // The machine slept past the end of the lease and nobody took it: turns keep the epoch they began
            // with, and what somebody else took meanwhile is refused by it.
            self.introduce(None).await?;
        }
        Ok(true)
    }

    /// Gives the project back.
    pub async fn release(&self) -> Result<(), Refusal> {
        let now = self.store.now().await?;
        self.introduce(Some(now)).await?;
        Ok(self.store.release_lease(LEASE.to_owned(), self.epoch()).await?)
    }

    async fn introduce(&self, ended_at: Option<Timestamp>) -> Result<(), Refusal> {
        let record = json!(RunRecord { info: self.info.clone(), epoch: self.epoch(), ended_at });
        for key in [self.info.run_id.as_str(), CURRENT] {
            self.store.place(Shelf::Runs, key.to_owned(), Some(record.clone()), self.expected()).await?;
        }
        Ok(())
    }
}

/// The run that last had the project.
pub(crate) async fn current(store: &dyn Store) -> Result<Option<RunRecord>, Refusal> {
    let document = store.document(Shelf::Runs, CURRENT.to_owned()).await?;
    Ok(document.and_then(|value| serde_json::from_value(value).ok()))
}

async fn grant(store: &Arc<dyn Store>, info: &RunInfo) -> Result<Option<u64>, Refusal> {
    let ttl = u64::try_from(TTL.as_millis()).unwrap_or(u64::MAX);
    let lease = store.acquire_lease(LEASE.to_owned(), info.run_id.to_string(), ttl).await?;
    Ok(lease.map(|lease| lease.epoch))
}

fn already_active(holder: &RunInfo) -> Refusal {
    let RunInfo { run_id, pid, host, since, .. } = holder;
    Refusal::new(
        ErrorCode::RunAlreadyActive,
        format!("run {run_id} has this project: process {pid} on {host}, since {since}"),
    )
    .hint("watch it with `aop status --watch`, stop it with Ctrl-C, or take over with `aop run --takeover`")
    .fact("run_id", run_id)
    .fact("pid", pid)
    .fact("host", host)
    .fact("since", since)
}

fn first_line(path: &str) -> String {
    std::fs::read_to_string(path)
        .ok()
        .and_then(|text| text.lines().next().map(str::to_owned))
        .unwrap_or_default()
}

/// When a process began, in clock ticks since the machine's start; none when there is no such process.
fn start_time(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in brackets and may hold anything; what is counted comes after it.
    let after = text.rsplit_once(')')?.1;
    let mut fields = after.split_whitespace();
    // A process that only waits to be collected is gone.
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}
