//! Who writes a thread. Codex lets one process at a time have a thread, by a lock file that the process keeps open.

use crate::process::end_turn_of;
use std::path::Path;

/// Ends the process that holds a thread, if it came from an earlier turn of ours. Nobody else's is touched: a person may
/// have opened the conversation in a terminal.
pub(super) async fn end_left_over(home: &Path, thread: &str) {
    let lock = home.join("thread-writer-locks").join(format!("{thread}.lock"));
    let _ = tokio::task::spawn_blocking(move || holders(&lock).into_iter().for_each(end_turn_of)).await;
}

/// The processes that have a file open, where the system shows that.
fn holders(file: &Path) -> Vec<i32> {
    let Ok(file) = file.canonicalize() else { return Vec::new() };
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let has_it_open = |pid: &i32| {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        open.into_iter().any(|entry| std::fs::read_link(entry.path()).is_ok_and(|target| target == file))
    };
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(has_it_open).collect()
}
