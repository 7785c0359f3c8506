//! Runners: project folders on some machine that work on features of one shared project. Each has an id that is made
//! once and kept in its `.aop/`, and a record in the store that says who it is, which engines it has and when it was
//! last seen.

use crate::lease::{CURRENT, RunRecord, TTL};
use aop_kernel::time::Timestamp;
use aop_kernel::{ErrorCode, Refusal};
use aop_store::{Expect, Shelf, Store};
use aop_turn::Engine;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file below `.aop/` that holds the id.
const ID_FILE: &str = "runner";

/// A folder that can work on features.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its id, `n_` and a ULID.
    pub id: String,
    /// The folder.
    pub folder: PathBuf,
    /// The engines that were found there.
    pub engines: Vec<Engine>,
}

/// What the store knows of a runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunnerRecord {
    /// Its id.
    pub runner_id: String,
    /// Its folder on its machine.
    pub folder: String,
    /// The engines that it has.
    pub engines: Vec<String>,
    /// When it last spoke.
    pub seen: Timestamp,
    /// Its last run.
    #[serde(flatten)]
    pub run: RunRecord,
}

impl RunnerRecord {
    /// What people call it.
    pub fn name(&self) -> String {
        format!("{}:{}", self.run.info.host, self.folder)
    }

    /// Since when nobody runs there; none while somebody does.
    pub fn gone_since(&self, now: Timestamp) -> Option<Timestamp> {
        if self.run.ended_at.is_some() {
            return self.run.ended_at;
        }
        let is_silent = self.seen.plus_millis(millis(TTL)) <= now;
        (is_silent || self.run.info.was_seen_dying()).then_some(self.seen)
    }

    /// Whether it has an engine.
    pub(crate) fn has(&self, engine: Engine) -> bool {
        self.engines.iter().any(|name| name == engine.as_str())
    }
}

/// The id of this folder's runner, if it has been one.
pub(crate) fn known_runner(dir: &Path) -> Option<String> {
    let text = aop_store::read_text_file(&dir.join(ID_FILE)).ok()?;
    Some(text.trim().to_owned()).filter(|id| !id.is_empty())
}

/// The id of this folder's runner, made when there is none. Of two that make it at once one wins.
pub fn runner_id(dir: &Path) -> Result<String, Refusal> {
    let path = dir.join(ID_FILE);
    let made = || -> io::Result<()> {
        let id = format!("n_{}", ulid::Ulid::generate());
        let fresh = dir.join(format!("{ID_FILE}.{}", std::process::id()));
        std::fs::write(&fresh, format!("{id}\n"))?;
        let linked = std::fs::hard_link(&fresh, &path);
        std::fs::remove_file(&fresh)?;
        match linked {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    };
    if known_runner(dir).is_none() {
        made().map_err(|error| cannot(&path, &error.to_string()))?;
    }
    known_runner(dir).ok_or_else(|| cannot(&path, "it holds no id"))
}

fn cannot(path: &Path, cause: &str) -> Refusal {
    Refusal::new(ErrorCode::Internal, format!("{}: {cause}", path.display()))
        .hint("check that .aop/ is writable; the file may be deleted, it is made again")
}

/// Every runner that has ever worked on the project, by id.
pub(crate) async fn runners(store: &dyn Store) -> Result<Vec<RunnerRecord>, Refusal> {
    let found = store.documents(Shelf::Runners, String::new()).await?;
    Ok(found.into_iter().filter_map(|(_, value)| serde_json::from_value(value).ok()).collect())
}

/// Who works on a project, as one look at it shows.
#[derive(Debug, Clone)]
pub struct AtWork {
    /// Every runner.
    pub runners: Vec<RunnerRecord>,
    /// When that was.
    pub now: Timestamp,
    /// Whether anybody is at work: the one run, or any of the runners. Of a run on another machine that broke off nothing
    /// is known.
    pub anybody: bool,
}

/// Looks who works on the project in this folder.
pub async fn at_work(store: &dyn Store, root: &Path) -> Result<AtWork, Refusal> {
    let now = store.now().await?;
    let runners = runners(store).await?;
    let mut anybody = runners.iter().any(|runner| runner.gone_since(now).is_none());
    if !anybody {
        let run = store.document(Shelf::Runs, CURRENT.to_owned()).await?;
        let run: Option<RunRecord> = run.and_then(|value| serde_json::from_value(value).ok());
        let is_alive = |run: &RunRecord| run.ended_at.is_none() && !run.info.is_dead();
        anybody = run.is_some_and(|run| is_alive(&run) && !run.info.is_of_a_copy(root));
    }
    Ok(AtWork { runners, now, anybody })
}

/// Strikes a runner that will not come back off the list: whatever waits for it may be taken by others at once.
pub async fn forget_runner(store: &dyn Store, id: &str) -> Result<RunnerRecord, Refusal> {
    let unknown = || {
        Refusal::invalid_argument(format!("no runner '{id}'"))
            .hint("`aop runners` lists them")
            .fact("runner_id", id)
    };
    let value = store.document(Shelf::Runners, id.to_owned()).await?.ok_or_else(unknown)?;
    let record: RunnerRecord = serde_json::from_value(value.clone()).map_err(|_| unknown())?;
    let alive = || {
        Refusal::new(ErrorCode::RunAlreadyActive, format!("runner {} is active", record.name()))
            .hint("stop its `aop run` first")
            .fact("runner_id", id)
    };
    if record.gone_since(store.now().await?).is_none() {
        return Err(alive());
    }
    // One that has come back meanwhile has said so in its record.
    if !store.place(Shelf::Runners, id.to_owned(), None, Expect::Value(value)).await? {
        return Err(alive());
    }
    Ok(record)
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
