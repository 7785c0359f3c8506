//! What the figures were taken on.

use serde_json::{Value, json};
use std::fs::read_to_string;
use std::path::Path;
use std::process::Command;

/// One line: processors, memory, kernel, file system, date, commit.
pub(crate) fn line(folder: &Path) -> Value {
    let after = |file: &str, key: &str| {
        let text = read_to_string(file).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default().to_owned();
        line.trim_start_matches([' ', '\t', ':']).to_owned()
    };
    let memory: u64 = after("/proc/meminfo", "MemTotal").trim_end_matches(" kB").parse().unwrap_or_default();
    json!({"bench": "machine", "date": said("date", &["-u", "+%Y-%m-%d"]),
        "commit": said("git", &["rev-parse", "--short", "HEAD"]),
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "processor": after("/proc/cpuinfo", "model name"),
        "memory_gib": memory / 1024 / 1024,
        "kernel": read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim(),
        "file_system": said("stat", &["-f", "-c", "%T", &folder.display().to_string()]),
        "sqlite": rusqlite::version(), "postgres": said("psql", &["--version"]).trim_start_matches("psql (PostgreSQL) ")})
}

fn said(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}

/// What a process has in memory, in MiB, to a tenth.
pub(crate) fn resident_mib(process: &str) -> f64 {
    let status = read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse().unwrap_or_default();
    (kilobytes / 102.4).round() / 10.0
}
