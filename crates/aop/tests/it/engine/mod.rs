//! Engines as real processes: the guard, and each driver against the program it drives.

mod claude_hook;
mod claude_stand_in;
mod gemini_stand_in;
mod guard;
mod host;
mod iflow_stand_in;
mod real_claude;
mod real_claude_crash;
mod real_claude_own_rules;
mod real_claude_run;
mod real_codex;
mod real_gemini;
mod real_self_test;
mod scripted;

use aop_engine::Surroundings;
use std::path::Path;
use std::time::{Duration, Instant};

/// Surroundings with nothing of the caller's but the search path.
fn around(home: &Path) -> Surroundings {
    let path = std::env::var_os("PATH").unwrap_or_default();
    Surroundings {
        aop: crate::support::binary().into(),
        env: [("PATH".into(), path), ("HOME".into(), home.into())].into(),
    }
}

/// Whether any process of this turn or project runs: they carry its folder in their environment.
fn processes_of(project: &Path) -> Vec<String> {
    let mark = format!("AOP_PROJECT={}", project.display());
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let has_mark = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    pids.filter(has_mark)
        .filter(|pid| is_alive(*pid))
        .map(|pid| {
            std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default().replace('\0', " ")
        })
        .collect()
}

/// Whether a process runs; one that only waits to be noticed does not.
fn is_alive(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
    })
}

/// Waits until something holds; fails after ten seconds.
#[track_caller]
fn until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < end, "not within ten seconds: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
