//! Many parked questions: what raising them, holding them, a page of them and an answer cost.

use crate::desk::{Desk, FLOOR, Which};
use crate::machine::resident_mib;
use crate::measure::{percentile, raw_syncs};
use crate::options::Options;
use crate::place::Place;
use crate::ways::Serving;
use aop_testkit::postgres::Server;
use serde_json::{Value, json};
use std::ops::Range;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// They are raised by so many callers at once.
pub(crate) const CALLERS: u64 = 64;

/// Listing is repeated so often …
const LISTED: u32 = 200;
/// … and so many are answered one after the other.
const ANSWERED: usize = 50;

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
        for desk in desks {
            let before = server.map(size);
            let raw = raw_syncs(folder, options.spell / 5);
            let output =
                desk.child("child-park").arg(count.to_string()).stderr(Stdio::inherit()).output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            let mut figures: Value =
                serde_json::from_str(&said).unwrap_or_else(|_| panic!("it said {said:?}"));
            let bytes = server
                .map_or_else(|| files(&desk.folder), |server| size(server) - before.unwrap_or_default());
            figures["store"] = json!(place.name());
            figures["of"] = json!(if desk.is_floor() { "floor" } else { "aop" });
            figures["disk_bytes_each"] = json!(bytes / count);
            figures["raw_fdatasync_per_second"] = json!(raw.round());
            if !desk.is_floor() {
                serve(options, &desk, &mut figures);
            }
            println!("{figures}");
            let _ = std::fs::remove_dir_all(&desk.folder);
        }
    }
}

/// The process that is measured: it raises them, lists and answers some, and stays below a memory of its own.
pub(crate) fn child(which: &Which, count: u64) {
    let desk = which.open();
    let already = shortcut(desk.as_ref(), count, &|_| {});
    let start = Instant::now();
    fill(desk.as_ref(), already..count, |_| {});
    let raised = (already == 0).then(|| (start.elapsed().as_secs_f64() * 100.0).round() / 100.0);
    let after_raising = resident_mib("self");
    let mut pages = times(LISTED, || assert_eq!(desk.page(50).len(), 50));
    let mut inboxes = times(LISTED, || assert_eq!(desk.inbox(50), 50));
    let mut open = desk.page(ANSWERED).into_iter();
    let mut answers = times(u32::try_from(ANSWERED).unwrap(), || desk.answer(&open.next().unwrap()));
    println!(
        "{}",
        json!({"bench": "park", "questions": count, "raised_by_callers": CALLERS,
            "seconds": raised, "resident_after_raising_mib": after_raising, "resident_mib": resident_mib("self"),
            "page_p50_us": percentile(&mut pages, 0.5), "page_p99_us": percentile(&mut pages, 0.99),
            "inbox_p50_us": percentile(&mut inboxes, 0.5), "inbox_p99_us": percentile(&mut inboxes, 0.99),
            "answer_p50_us": percentile(&mut answers, 0.5), "answer_p95_us": percentile(&mut answers, 0.95)})
    );
}

/// `aop serve` on that many: its memory, a page and an answer over HTTP.
fn serve(options: &Options, desk: &Which, figures: &mut Value) {
    std::fs::write(desk.folder.join("aop.yaml"), PATIENT).unwrap();
    desk.place.init(&options.aop, &desk.folder, &desk.name);
    let serving = Serving::go_on(&desk.place, &desk.folder, &desk.name, &options.aop);
    let mut http = serving.connect();
    let list = |http: &mut crate::ways::Http| http.call("GET", "/api/v1/questions?limit=50", &Value::Null);
    let mut pages = times(LISTED, || assert_eq!(list(&mut http)["items"].as_array().unwrap().len(), 50));
    let page = list(&mut http);
    let mut open = page["items"].as_array().unwrap().iter();
    let mut answers = times(u32::try_from(ANSWERED).unwrap(), || {
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
