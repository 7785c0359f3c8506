//! The processes of this machine, as far as they may have come from an engine: who descends from whom, who carries
//! a mark in its environment, and how all of them are ended.
//!
//! Agents start shells in sessions of their own, so a process group does not hold everything they started. A guard
//! adopts whatever loses its parent; until it ends, everything descends from it. Both need `/proc`: elsewhere the
//! process group has to do.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::time::Duration;

/// So many rounds of a millisecond or two for a process that the kernel cannot end yet.
const PATIENCE: u32 = 1000;

/// One process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    /// When it began, in clock ticks since boot: together with the id it names one process for ever.
    pub(super) start_time: u64,
    /// It has ended and only waits to be noticed.
    pub(super) is_dead: bool,
}

/// What descends from this process is adopted by it, however it detaches itself.
pub(super) fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    // Without it the process group still goes; nothing better can be done about it here.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Every process there is; none where the system does not show them.
pub(super) fn processes() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(process)
        .collect()
}

/// One process by its id.
pub(super) fn process(pid: i32) -> Option<Process> {
    parse_stat(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// When a process began, in clock ticks since boot; none when it is gone, or only waits to be noticed.
pub fn start_time(pid: u32) -> Option<u64> {
    let process = process(i32::try_from(pid).ok()?)?;
    (!process.is_dead).then_some(process.start_time)
}

/// Reads `/proc/PID/stat`. The name stands in brackets and may hold brackets and blanks itself.
fn parse_stat(stat: &str) -> Option<Process> {
    let (pid, rest) = stat.split_once(' ')?;
    let (_, rest) = rest.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let is_dead = matches!(fields.next()?, "Z" | "X");
    let parent = fields.next()?.parse().ok()?;
    // The start time is field 22; state is field 3 and parent field 4.
    let start_time = fields.nth(17)?.parse().ok()?;
    Some(Process { pid: pid.parse().ok()?, parent, start_time, is_dead })
}

/// The living descendants of a process.
fn descendants(of: i32, table: &[Process]) -> Vec<i32> {
    let mut family = vec![of];
    let mut next = 0;
    while let Some(parent) = family.get(next).copied() {
        next += 1;
        family.extend(table.iter().filter(|process| process.parent == parent).map(|process| process.pid));
    }
    let is_alive = |pid: &i32| table.iter().any(|process| process.pid == *pid && !process.is_dead);
    family.into_iter().skip(1).filter(is_alive).collect()
}

/// Ends a process group. One that is gone is no error.
pub(super) fn kill_group(group: i32) {
    if let Some(group) = Pid::from_raw(group).filter(|_| group > 1) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

fn kill(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid).filter(|_| pid > 1) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Ends everything that descends from this process, and what those start meanwhile.
pub(super) fn kill_descendants() {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    kill_until_none(|| descendants(own, &processes()));
}

/// Ends everything that descends from this process, and sees it off. Only for a process without children that
/// somebody else in it waits for.
///
/// What has lost its parent is a child of the process that adopted it, so a process without children has no
/// descendants either: the kernel's word for it, where a list of processes may have been read in a bad moment.
pub(super) fn end_family() {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    for _ in 0..PATIENCE {
        if !has_children() {
            return;
        }
        descendants(own, &processes()).into_iter().for_each(kill);
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether any child is left, having seen off those that have ended.
fn has_children() -> bool {
    use rustix::process::{WaitOptions, wait};
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// Ends every process that has this text in its environment, but not this one. A process that is no longer shown its
/// own environment (it belongs to somebody else) is left alone.
pub(super) fn kill_marked(mark: &str) -> usize {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    kill_until_none(|| {
        let pids = processes().into_iter().map(|process| process.pid);
        pids.filter(|pid| *pid != own && is_marked(*pid, mark)).collect()
    })
}

/// Whether a process has this text in its environment, as far as that can be read.
fn is_marked(pid: i32, mark: &str) -> bool {
    marked(pid, mark).unwrap_or(false)
}

/// The same, with the reason why nobody can tell.
pub(super) fn marked(pid: i32, mark: &str) -> std::io::Result<bool> {
    let environment = std::fs::read(format!("/proc/{pid}/environ"))?;
    Ok(environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes()))
}

/// Kills what `find` finds until it finds nothing; how many were found first. A process that the kernel cannot end
/// yet is waited for.
fn kill_until_none(find: impl Fn() -> Vec<i32>) -> usize {
    let mut first = None;
    for round in 0..PATIENCE {
        let found = find();
        let count = *first.get_or_insert(found.len());
        if found.is_empty() {
            return count;
        }
        found.into_iter().for_each(kill);
        std::thread::sleep(Duration::from_millis(if round < 20 { 1 } else { 2 }));
    }
    first.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_blanks_does_not_move_the_fields() {
        let tail = "S 41 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 1";
        for name in ["sleep", "a) b", ") S 1 (", ""] {
            let process = parse_stat(&format!("43 ({name}) {tail}")).unwrap();
            assert_eq!(process, Process { pid: 43, parent: 41, start_time: 98765, is_dead: false }, "{name}");
        }
        assert_eq!(parse_stat("43 (x) S"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn grandchildren_descend_and_the_dead_are_left_out() {
        let process = |pid, parent, is_dead| Process { pid, parent, start_time: 0, is_dead };
        let table = [
            process(2, 1, false),
            process(3, 2, true),
            process(4, 3, false),
            process(5, 1, false),
            process(6, 4, false),
        ];
        assert_eq!(descendants(2, &table), [4, 6]);
        assert_eq!(descendants(9, &table), [0; 0]);
    }

    #[test]
    fn this_process_is_shown_where_there_is_a_process_table() {
        let own = i32::try_from(std::process::id()).unwrap();
        if std::path::Path::new("/proc/self/stat").exists() {
            assert!(process(own).is_some_and(|process| process.start_time > 0 && !process.is_dead));
        }
    }
}
