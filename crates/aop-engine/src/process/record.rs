//! What a turn leaves on disk about its process while it runs: `process.json` in the turn's folder. It is there
//! before the guard is, and the guard takes it away when nothing is left. Whoever finds one later may find processes
//! too, and ends them.

use super::Started;
use super::family::{kill_group, kill_marked, marked, process};
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
    /// The turn's folder: in a copy of it the processes are not the copy's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) folder: Option<PathBuf>,
}

impl Record {
    /// Of a turn in this folder that is about to begin.
    pub(super) fn new(mark: &str, dir: &Path) -> Self {
        // A name that JSON cannot hold is left out.
        let folder = dir.canonicalize().ok().filter(|folder| folder.to_str().is_some());
        Record { mark: mark.to_owned(), engine: None, folder }
    }

    pub(super) fn path(dir: &Path) -> PathBuf {
        dir.join(FILE)
    }

    /// Writes it so that a reader finds the old one or the new one.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        let fresh = path.with_extension("json.new");
        std::fs::write(&fresh, serde_json::to_vec(self)?)?;
        std::fs::rename(&fresh, path)
    }

    /// Ends the turn's processes; how many there were.
    fn end_all(&self) -> usize {
        let mark = format!("{MARK}={}", self.mark);
        if let Some(engine) = &self.engine {
            let began = process(engine.pgid).map(|process| process.start_time);
            if is_engine(began, engine, marked(engine.pgid, &mark)) {
                kill_group(engine.pgid);
            }
        }
        kill_marked(&mark)
    }
}

/// Whether the process with the engine's id is the engine: it began at the recorded moment, and carries the mark. Codex
/// closes its environment to everybody; that alone is no objection.
fn is_engine(began: Option<u64>, engine: &Started, marked: io::Result<bool>) -> bool {
    let is_marked = marked.unwrap_or_else(|error| error.kind() == io::ErrorKind::PermissionDenied);
    began == Some(engine.start_time) && is_marked
}

/// Ends what is left of a turn whose `aop` and guard are gone, and returns how many processes that were. A folder
/// without a record has nothing left. Processes are taken for the turn's only when they carry its mark, and the group of
/// the engine's only when that began at the recorded moment as well, where an environment that nobody may read is no
/// objection; nothing of the folder that this one is a copy of is touched. A record that cannot be parsed, or is no file, is
/// an error once ([`io::ErrorKind::InvalidData`]): it is taken away.
pub fn reap_leftovers(run_dir: &Path) -> io::Result<usize> {
    let path = Record::path(run_dir);
    let content = match crate::plain::read_file(&path) {
        Ok(content) => content,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        // What is there and is no file was never written by us.
        Err(error) if path.metadata().is_ok_and(|there| !there.is_file()) => {
            return Err(removed(&path, &error));
        }
        Err(error) => return Err(io::Error::new(error.kind(), format!("its {FILE}: {error}"))),
    };
    let record: Record = match serde_json::from_slice(&content) {
        Ok(record) => record,
        Err(error) => return Err(removed(&path, &error)),
    };
    let killed = if record.folder.as_ref().is_some_and(|folder| is_copy(folder, run_dir)) {
        0
    } else {
        record.end_all()
    };
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(killed),
    }
}

/// Takes a record away by which nobody can find a process, later no more than now, and says so. It is written whole, so the
/// machine went down meanwhile, or somebody else wrote it; no process outlives the first.
fn removed(path: &Path, why: &dyn std::fmt::Display) -> io::Error {
    let what = format!("its {FILE} names no process ({why})");
    match std::fs::remove_file(path) {
        Ok(()) => {
            let what = format!("{what} and was removed; nothing is left to do");
            io::Error::new(io::ErrorKind::InvalidData, what)
        }
        Err(error) => io::Error::new(error.kind(), format!("{what} and cannot be removed: {error}")),
    }
}

/// Whether what was written down in the folder `there` and is read in the folder `here` came by copying: both are there,
/// and they are two. Where the first is gone it was moved.
pub fn is_copy(there: &Path, here: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let which = |path: &Path| path.metadata().map(|found| (found.dev(), found.ino())).ok();
    matches!((which(there), which(here)), (Some(there), Some(here)) if there != here)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_names_no_process_is_told_once_and_taken_away() {
        for torn in ["", "{\"mark\":\"m", "{}"] {
            let dir = tempfile::TempDir::new().unwrap();
            std::fs::write(Record::path(dir.path()), torn).unwrap();
            let told = reap_leftovers(dir.path()).unwrap_err().to_string();
            assert!(told.contains("process.json") && told.contains("was removed"), "{told}");
            assert!(!Record::path(dir.path()).exists());
            assert_eq!(reap_leftovers(dir.path()).unwrap(), 0, "{torn:?}: the next run has nothing to tell");
        }
    }

    #[test]
    fn what_is_no_file_in_the_place_of_a_record_is_not_waited_for_and_is_told_once() {
        let dir = tempfile::TempDir::new().unwrap();
        let make: [fn(&Path); 2] = [
            |path| assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success()),
            |path| std::os::unix::fs::symlink("/dev/zero", path).unwrap(),
        ];
        for make in make {
            make(&Record::path(dir.path()));
            let told = reap_leftovers(dir.path()).unwrap_err();
            assert_eq!(told.kind(), io::ErrorKind::InvalidData, "{told}");
            assert_eq!(reap_leftovers(dir.path()).unwrap(), 0, "the next run has nothing to tell");
        }
    }

    #[test]
    fn a_process_is_the_engine_by_when_it_began_and_by_its_mark_where_that_can_be_read() {
        let engine = Started { pgid: 7, start_time: 42 };
        let closed = || Err(io::ErrorKind::PermissionDenied.into());
        assert!(is_engine(Some(42), &engine, Ok(true)) && is_engine(Some(42), &engine, closed()));
        assert!(!is_engine(Some(42), &engine, Ok(false)), "somebody else's");
        for began in [Some(43), None] {
            assert!(
                !is_engine(began, &engine, Ok(true)) && !is_engine(began, &engine, closed()),
                "{began:?}"
            );
        }
    }
}
