//! Syncs per cycle, counted: by strace around a process of its own and all that it starts, or by PostgreSQL's own
//! count. With one caller the difference of a run and one twice as long leaves out what opening costs. The server counts
//! its own housekeeping too, which falls into one run and not into the next: there the middle of several counts.

use crate::measure::{Until, run};
use crate::options::Options;
use crate::place::Place;
use crate::ways;
use aop_testkit::postgres::Server;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// So many cycles of a way, to be traced.
pub(crate) struct Traced {
    pub(crate) place: Place,
    pub(crate) folder: PathBuf,
    pub(crate) way: String,
    pub(crate) aop: PathBuf,
    pub(crate) callers: u64,
    pub(crate) each: u64,
}

impl Traced {
    pub(crate) fn run(&self) {
        let way = ways::one(&self.way, &self.place, &self.folder, &self.aop);
        let name = format!("traced-{}-{}", self.callers, self.each);
        run(way.as_ref(), &name, self.callers, Until::Done(self.each));
    }

    /// The syncs that strace sees; `None` where it cannot be used.
    fn by_strace(&self, trace: &Path) -> Option<u64> {
        let traced = Command::new("strace")
            .args(["-f", "-qq", "--seccomp-bpf", "-e", "trace=fsync,fdatasync", "-o"])
            .arg(trace)
            .arg(std::env::current_exe().ok()?)
            .args(["child-cycles", self.place.text()])
            .arg(&self.folder)
            .arg(&self.way)
            .arg(&self.aop)
            .args([self.callers.to_string(), self.each.to_string()])
            .stdout(Stdio::null())
            .status();
        let seen = std::fs::read_to_string(trace).ok()?;
        let is_sync = |line: &&str| line.contains("fsync(") || line.contains("fdatasync(");
        traced.ok()?.success().then(|| seen.lines().filter(is_sync).count() as u64)
    }
}

/// So often the server is asked.
const COUNTS: usize = 3;

/// Counts for every way, with the fewest and with the most callers.
pub(crate) fn count(options: &Options, folder: &Path, place: &Place, server: Option<&Server>) {
    let mut few_and_many = vec![options.callers.first(), options.callers.last()];
    few_and_many.dedup();
    for (way, callers) in ways::NAMES.iter().flat_map(|way| few_and_many.iter().map(move |n| (way, n))) {
        let callers = *callers.unwrap();
        // A process for every step takes its time, and does not share commits anyway.
        let slow = *way == ways::COMMAND_LINE;
        if slow && callers > 1 {
            continue;
        }
        // Many callers share syncs as it happens: only over some cycles of each is that a rate.
        let least = if callers > 1 { 10 } else { 2 };
        let each = (options.traced / callers / if slow { 5 } else { 1 }).max(least);
        let traced = |each: u64, count: usize| Traced {
            place: place.clone(),
            folder: folder.join(format!("traced-{}-{callers}-{each}-{count}", way.replace(' ', "-"))),
            way: (*way).to_owned(),
            aop: options.aop.clone(),
            callers,
            each,
        };
        let syncs = |each: u64, count: usize| match server {
            Some(server) => by_postgres(server, &traced(each, count)),
            None => traced(each, count).by_strace(&folder.join("strace")),
        };
        let counted = |count: usize| {
            if callers > 1 {
                // How many of them share a sync differs from run to run by more than opening costs.
                syncs(each, count)
            } else {
                syncs(each, count).zip(syncs(2 * each, count)).map(|(one, two)| two.saturating_sub(one))
            }
        };
        let counts = if server.is_some() { COUNTS } else { 1 };
        let counted = middle((0..counts).map(counted).collect());
        let per_cycle = counted.map(|syncs| syncs as f64 / (callers * each) as f64);
        println!(
            "{}",
            json!({"bench": "syncs", "store": place.name(), "way": way, "callers": callers, "cycles": callers * each,
                "syncs_per_cycle": per_cycle.map(|syncs| (syncs * 100.0).round() / 100.0),
                "counted_by": if server.is_some() { "pg_stat_wal" } else { "strace" }})
        );
    }
}

/// The middle one, if all are known.
fn middle(counts: Vec<Option<u64>>) -> Option<u64> {
    let mut counts = counts.into_iter().collect::<Option<Vec<u64>>>()?;
    counts.sort_unstable();
    counts.get(counts.len() / 2).copied()
}

/// The syncs of its log that the server itself counts.
fn by_postgres(server: &Server, traced: &Traced) -> Option<u64> {
    let before = settled(server)?;
    traced.run();
    Some(settled(server)? - before)
}

/// The count once all who have closed their connections have handed in theirs.
fn settled(server: &Server) -> Option<u64> {
    // Since version 18 the count stands elsewhere.
    let newer = server.sql("bench", "SHOW server_version_num").parse::<u32>().ok()? >= 180_000;
    let sql = if newer {
        "SELECT sum(fsyncs)::bigint FROM pg_stat_io WHERE object = 'wal'"
    } else {
        "SELECT wal_sync FROM pg_stat_wal"
    };
    let read = || server.sql("bench", sql).parse::<u64>().ok();
    let clients = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'";
    let patience = Instant::now() + Duration::from_secs(10);
    let mut last = read()?;
    loop {
        std::thread::sleep(Duration::from_millis(300));
        let now = read()?;
        // The one who asks is a client too.
        let alone = server.sql("bench", clients) == "1";
        if (alone && now == last) || Instant::now() > patience {
            return Some(now);
        }
        last = now;
    }
}
