//! What a turn leaves on disk about its process while it runs: `process.json` in the turn's folder. It is there
//! before the guard is, and the guard takes it away when nothing is left. Whoever finds one later may find processes
//! too, and ends them.

use super::Started;
use super::family::{kill_group, kill_marked, process};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// The variable that marks every process of one turn. Its value is unique, so it cannot name another turn's.
pub(super) const MARK: &str = "AOP_TURN_MARK";

const FILE: &str = "process.json";

/// The file's content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The value of [`MARK`].
    pub(super) mark: String,
    /// The engine's process, from the moment that it runs.
    pub(super) engine: Option<Started>,
}

impl Record {
    pub(super) fn path(dir: &Path) -> PathBuf {
        dir.join(FILE)
    }

    /// Writes it so that a reader finds the old one or the new one.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        let fresh = path.with_extension("json.new");
        std::fs::write(&fresh, serde_json::to_vec(self)?)?;
        std::fs::rename(&fresh, path)
    }
}

/// Ends what is left of a turn whose `aop` and guard are gone, and returns how many processes that were. A folder
/// without a record has nothing left. The engine's process is taken for itself only when it began at the recorded
/// moment, all others only when they carry the turn's mark; nobody else's process is ever touched.
pub fn reap_leftovers(run_dir: &Path) -> io::Result<usize> {
    let path = Record::path(run_dir);
    let content = match std::fs::read(&path) {
        Ok(content) => content,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let record: Record = serde_json::from_slice(&content)?;
    if let Some(engine) = record.engine
        && process(engine.pgid).is_some_and(|process| process.start_time == engine.start_time)
    {
        kill_group(engine.pgid);
    }
    let killed = kill_marked(&format!("{MARK}={}", record.mark));
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(killed),
    }
}

/// Ends everything of the turn that a process belongs to, when that is a turn of ours; any other process is left alone.
pub(crate) fn end_turn_of(pid: i32) {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let mut variables =
        environment.split(|byte| *byte == 0).filter_map(|variable| std::str::from_utf8(variable).ok());
    if let Some(mark) = variables.find(|variable| variable.starts_with(&format!("{MARK}="))) {
        kill_marked(mark);
    }
}
