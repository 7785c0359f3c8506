//! Many parked questions: what raising them, holding them, a page of them and an answer cost.

use crate::desk::{Desk, FLOOR, Which};
use crate::machine::resident_mib;
use crate::measure::{percentile, raw_syncs};
use crate::options::Options;
use crate::place::Place;
use crate::ways::Serving;
use aop_testkit::postgres::Server;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Lines, Write};
use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// They are raised by so many callers at once.
pub(crate) const CALLERS: u64 = 64;

/// They are looked at so often, in turns with the floor, because the machine changes under us: the middle of fewer would
/// be another one in each run. A small pile is looked at less often, or nothing would be left of it. Each time …
const LOOKS: RangeInclusive<u64> = 10..=40;
/// … so many pages are listed …
const LISTED: u32 = 20;
/// … and so many questions answered one after the other.
const ANSWERED: u32 = 5;

/// So many pages over HTTP …
const SERVED_PAGES: u32 = 200;
/// … and so many answers, all from one page.
const SERVED_ANSWERS: u32 = 50;

/// The settings of a project whose questions never expire, and whose files nobody reads.
pub(crate) const PATIENT: &str =
    "projections: off\npolicy:\n  execution:\n    human_input:\n      timeout_ms: 0\n";

/// Each number of questions in our store; on SQLite beside the floor.
pub(crate) fn all(options: &Options, folder: &Path, place: &Place, server: Option<&Server>) {
    for count in &options.parked {
        let ours = Which {
            place: place.clone(),
            folder: folder.join(format!("parked-{count}")),
            name: format!("parked-{count}"),
        };
        let floor =
            Which { name: FLOOR.to_owned(), folder: folder.join(format!("floor-{count}")), ..ours.clone() };
        let desks = if server.is_none() { vec![floor, ours] } else { vec![ours] };
        let before = server.map(size);
        let mut parked: Vec<Parked> = desks
            .into_iter()
            .map(|desk| Parked::start(desk, *count, raw_syncs(folder, options.spell / 5)))
            .collect();
        for _ in 0..(count / 20).clamp(*LOOKS.start(), *LOOKS.end()) {
            parked.iter_mut().for_each(Parked::look);
        }
        for parked in parked {
            let (desk, mut figures) = parked.end();
            let bytes = server
                .map_or_else(|| files(&desk.folder), |server| size(server) - before.unwrap_or_default());
            figures["store"] = json!(place.name());
            figures["of"] = json!(if desk.is_floor() { "floor" } else { "aop" });
            figures["disk_bytes_each"] = json!(bytes / count);
            if !desk.is_floor() {
                serve(options, &desk, &mut figures);
            }
            println!("{figures}");
            let _ = std::fs::remove_dir_all(&desk.folder);
        }
    }
}

/// A process that has raised them, and what is known of it.
struct Parked {
    desk: Which,
    process: Child,
    said: Lines<BufReader<ChildStdout>>,
    figures: Value,
    looks: Vec<Value>,
}

impl Parked {
    fn start(desk: Which, count: u64, raw: f64) -> Self {
        let mut child = desk.child("child-park");
        let mut process =
            child.arg(count.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut parked = Parked { desk, process, said, figures: Value::Null, looks: Vec::new() };
        parked.figures = parked.next();
        parked.figures["raw_fdatasync_per_second"] = json!(raw.round());
        parked
    }

    fn next(&mut self) -> Value {
        serde_json::from_str(&self.said.next().unwrap().unwrap()).unwrap()
    }

    /// Has it list and answer some.
    fn look(&mut self) {
        writeln!(self.process.stdin.as_mut().unwrap(), "look").unwrap();
        let seen = self.next();
        self.looks.push(seen);
    }

    fn end(mut self) -> (Which, Value) {
        drop(self.process.stdin.take());
        self.figures["resident_mib"] = self.next()["resident_mib"].clone();
        assert!(self.process.wait().unwrap().success());
        for (name, shares) in [("page", [50, 99]), ("inbox", [50, 99]), ("answer", [50, 95])] {
            let times = self.looks.iter().flat_map(|look| look[name].as_array().unwrap());
            let mut times: Vec<Duration> =
                times.map(|time| Duration::from_nanos(time.as_u64().unwrap())).collect();
            for share in shares {
                self.figures[format!("{name}_p{share}_us")] =
                    json!(percentile(&mut times, f64::from(share) / 100.0));
            }
        }
        (self.desk, self.figures)
    }
}

/// The process that is measured: it raises them, lists and answers some whenever it is told to, and has a memory of its
/// own.
pub(crate) fn child(which: &Which, count: u64) {
    let desk = which.open();
    let already = shortcut(desk.as_ref(), count, &|_| {});
    let start = Instant::now();
    fill(desk.as_ref(), already..count, |_| {});
    let raised = (already == 0).then(|| (start.elapsed().as_secs_f64() * 100.0).round() / 100.0);
    println!(
        "{}",
        json!({"bench": "park", "questions": count, "raised_by_callers": CALLERS, "seconds": raised,
            "resident_after_raising_mib": resident_mib("self")})
    );
    for line in std::io::stdin().lines() {
        line.unwrap();
        let pages = times(LISTED, || assert_eq!(desk.page(50), 50));
        let inboxes = times(LISTED, || assert_eq!(desk.inbox(50), 50));
        let mut open = desk.open(ANSWERED as usize).into_iter();
        let answers = times(ANSWERED, || desk.answer(&open.next().unwrap()));
        let nanos = |times: Vec<Duration>| -> Vec<u64> {
            times.iter().map(|time| u64::try_from(time.as_nanos()).unwrap()).collect()
        };
        println!("{}", json!({"page": nanos(pages), "inbox": nanos(inboxes), "answer": nanos(answers)}));
    }
    println!("{}", json!({"resident_mib": resident_mib("self")}));
}

/// `aop serve` on that many: its memory, a page and an answer over HTTP.
fn serve(options: &Options, desk: &Which, figures: &mut Value) {
    std::fs::write(desk.folder.join("aop.yaml"), PATIENT).unwrap();
    desk.place.init(&options.aop, &desk.folder, &desk.name);
    let serving = Serving::go_on(&desk.place, &desk.folder, &desk.name, &options.aop);
    let mut http = serving.connect();
    let list = |http: &mut crate::ways::Http| http.call("GET", "/api/v1/questions?limit=50", &Value::Null);
    let mut pages =
        times(SERVED_PAGES, || assert_eq!(list(&mut http)["items"].as_array().unwrap().len(), 50));
    let page = list(&mut http);
    let mut open = page["items"].as_array().unwrap().iter();
    let mut answers = times(SERVED_ANSWERS, || {
        let id = open.next().unwrap()["question_id"].as_str().unwrap();
        http.call("POST", &format!("/api/v1/questions/{id}/answer"), &json!({"answer": "this"}));
    });
    figures["served_resident_mib"] = json!(resident_mib(&serving.process()));
    figures["served_page_p50_us"] = json!(percentile(&mut pages, 0.5));
    figures["served_answer_p50_us"] = json!(percentile(&mut answers, 0.5));
}

/// The floor gets all but the last thousand in a few commits when there are more than this: one by one they would take an
/// hour, and what is wanted of raising is looked at below.
const ONE_BY_ONE: u64 = 10_000;

pub(crate) fn shortcut(desk: &dyn Desk, count: u64, said: &dyn Fn(&str)) -> u64 {
    if count > ONE_BY_ONE { desk.raise_in_bulk(0..count - 1_000, said) } else { 0 }
}

/// Raises these, on many threads; each is named once it is durable.
pub(crate) fn fill(desk: &dyn Desk, numbers: Range<u64>, said: impl Fn(&str) + Sync) {
    let next = AtomicU64::new(numbers.start);
    std::thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= numbers.end {
                        break;
                    }
                    said(&desk.raise(number));
                }
            });
        }
    });
}

fn times(count: u32, mut work: impl FnMut()) -> Vec<Duration> {
    let one = |_| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    (0..count).map(one).collect()
}

/// The bytes of all files below a folder.
fn files(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { files(&path) } else { path.metadata().unwrap().len() }).sum()
}

fn size(server: &Server) -> u64 {
    server.sql("bench", "SELECT pg_database_size('bench')").parse().unwrap()
}
