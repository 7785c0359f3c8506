//! What a killed run left behind: its guards end their engines by themselves, and whatever escaped even that is ended
//! here, before any session goes on.

use super::Notice;
use super::context::Context;
use crate::shown::word;
use aop_engine::reap_leftovers;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Ends processes of earlier runs of this project.
pub(super) async fn reap(context: &Context) {
    let runs = context.settings.dir().join("runs");
    let reaped = tokio::task::spawn_blocking(move || {
        let mut count = 0;
        let mut failures = Vec::new();
        for turn in folders(&runs).iter().flat_map(|run| folders(run)).flat_map(|feature| folders(&feature)) {
            match reap_leftovers(&turn) {
                Ok(killed) => count += killed,
                // That is over. What cannot be read may name a process, and is told until somebody has looked at it.
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    failures.push(format!("{}: {error}", turn.display()));
                }
                Err(error) => failures.push(format!(
                    "{}: {error}; make it readable, or if nothing of that turn runs any more remove it: `rm -r -- {}`",
                    turn.display(),
                    word(turn.join("process.json"))
                )),
            }
        }
        (count, failures)
    });
    let Ok((count, failures)) = reaped.await else { return };
    if count > 0 {
        context.show(Notice::Warning(format!("ended {count} processes that an earlier run had left behind")));
    }
    for failure in failures {
        context.show(Notice::Warning(format!("could not look for left-over processes: {failure}")));
    }
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}
