//! What the store does, beside what the disk allows in the same run. JSON lines on stdout; nothing is asserted,
//! because an absolute time on a shared machine means little. `cargo xtask bench store` runs it.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark stops at the first surprise and prints its figures"
)]

#[path = "common/calls.rs"]
mod calls;
#[path = "common/churn.rs"]
mod churn;

use aop_kernel::question::QuestionStatus;
use aop_kernel::tools::QuestionFilter;
use aop_store::{Projector, QuestionPage, Service, SqliteStore, SystemClock};
use calls::{create, service};
use churn::{answer, ask, churn, percentile};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long each rate is measured.
const SPELL: Duration = Duration::from_secs(2);

fn main() {
    let options = Options::read();
    if let Some(count) = options.only_transitions {
        return only_transitions(&options.folder, count);
    }
    let folder = tempfile::tempdir_in(&options.folder).unwrap();
    eprintln!("measuring in {} …", folder.path().display());
    if let Some(callers) = options.only_callers {
        return transitions(folder.path(), callers);
    }
    syncs(&options.folder);
    for callers in [1, 8, 32] {
        transitions(folder.path(), callers);
    }
    if options.parked == 0 {
        return;
    }
    parked(folder.path(), options.parked, options.binary.as_deref());
    projection(folder.path());
}

struct Options {
    folder: PathBuf,
    parked: u64,
    binary: Option<PathBuf>,
    only_transitions: Option<u64>,
    only_callers: Option<u64>,
}

impl Options {
    /// `--folder DIR` to measure another disk, `--parked N` questions, `--aop BINARY` for its start-up time.
    fn read() -> Self {
        let mut options = Options {
            folder: std::env::temp_dir(),
            parked: 100_000,
            binary: None,
            only_transitions: None,
            only_callers: None,
        };
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--folder" => options.folder = args.next().unwrap().into(),
                "--parked" => options.parked = args.next().unwrap().parse().unwrap(),
                "--aop" => options.binary = args.next().map(PathBuf::from),
                "--callers" => options.only_callers = Some(args.next().unwrap().parse().unwrap()),
                "--only-transitions" => {
                    options.only_transitions = Some(args.next().unwrap().parse().unwrap())
                }
                _ => {}
            }
        }
        options
    }
}

fn line(figures: &Value) {
    println!("{figures}");
}

fn open(dir: &Path) -> Service {
    std::fs::create_dir_all(dir).unwrap();
    let store = Arc::new(SqliteStore::open(dir, Arc::new(SystemClock)).unwrap());
    service(store)
}

/// How many times a second this disk syncs an appended record: the yardstick.
fn raw_syncs(folder: &Path) -> f64 {
    let mut file = tempfile::tempfile_in(folder).unwrap();
    let record = [7_u8; 512];
    let start = Instant::now();
    let mut count = 0_u32;
    while start.elapsed() < SPELL / 2 {
        file.write_all(&record).unwrap();
        file.sync_data().unwrap();
        count += 1;
    }
    f64::from(count) / start.elapsed().as_secs_f64()
}

fn transitions(folder: &Path, callers: u64) {
    // The yardstick is taken before and after, because the machine changes under us.
    let before = raw_syncs(folder);
    let service = open(&folder.join(format!("callers-{callers}")));
    let cpu = cpu_time();
    let (mut times, rate) = churn(&service, callers, "f", SPELL);
    let cpu = (cpu_time() - cpu).as_micros() / times.len() as u128;
    let raw = f64::midpoint(before, raw_syncs(folder));
    line(
        &json!({"bench": "transition", "callers": callers, "per_second": rate.round(), "raw_fdatasync_per_second": raw.round(),
        "ratio": (rate / raw * 100.0).round() / 100.0, "p50_us": percentile(&mut times, 0.5), "p99_us": percentile(&mut times, 0.99), "cpu_us_per_transition": u64::try_from(cpu).unwrap()}),
    );
}

/// What this process has used of the processors so far, in hundredths of a second as Linux counts.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// Syncs per transition, counted by strace in a process of its own.
fn syncs(folder: &Path) {
    const COUNT: u64 = 200;
    let trace = folder.join(format!("aop-bench-{}.strace", std::process::id()));
    let this = std::env::current_exe().unwrap();
    let run = |count: u64| -> Option<u64> {
        let status = Command::new("strace")
            .args(["-f", "-qq", "-e", "trace=fsync,fdatasync", "-o"])
            .arg(&trace)
            .arg(&this)
            .args(["--folder", folder.to_str()?, "--only-transitions", &count.to_string()])
            .status()
            .ok()?;
        let seen = std::fs::read_to_string(&trace).ok()?;
        status.success().then(|| seen.lines().filter(|line| line.contains("sync(")).count() as u64)
    };
    // The difference of two runs leaves out what opening costs.
    let counted = run(COUNT).zip(run(2 * COUNT)).map(|(one, two)| (two - one) as f64 / COUNT as f64);
    let _ = std::fs::remove_file(&trace);
    line(&json!({"bench": "syncs_per_transition", "syncs": counted,
        "note": if counted.is_none() { "install strace to count" } else { "by strace; checkpoints included" }}));
}

fn only_transitions(folder: &Path, count: u64) {
    let folder = tempfile::tempdir_in(folder).unwrap();
    let service = open(folder.path());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        create(&service, "f").await;
        for operation in 0..count / 2 {
            let question = ask(&service, "f", operation).await;
            answer(&service, "f", &question, operation).await;
        }
    });
}

/// Many parked questions: what a page, a commit and a question cost then.
fn parked(folder: &Path, count: u64, binary: Option<&Path>) {
    let root = folder.join("parked");
    let dir = root.join(".aop");
    let service = open(&dir);
    let (mut empty, _) = churn(&service, 1, "early", SPELL);
    let start = Instant::now();
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        break;
                    }
                    let feature = format!("parked-{number}");
                    runtime.block_on(create(&service, &feature));
                    runtime.block_on(ask(&service, &feature, number));
                }
            });
        }
    });
    let elapsed = start.elapsed();
    let size: u64 =
        std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    line(
        &json!({"bench": "park", "questions": count, "seconds": (elapsed.as_secs_f64() * 10.0).round() / 10.0,
        "bytes_per_question_with_its_feature": size / count}),
    );
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let filter = QuestionFilter::Only(QuestionStatus::Open);
    let page = QuestionPage { feature: None, filter, after: None, limit: 50 };
    let mut pages: Vec<Duration> = (0..200)
        .map(|_| {
            let start = Instant::now();
            assert_eq!(runtime.block_on(service.store.questions(page.clone())).unwrap().len(), 50);
            start.elapsed()
        })
        .collect();
    line(
        &json!({"bench": "list_50_open", "of": count, "p50_us": percentile(&mut pages, 0.5), "p99_us": percentile(&mut pages, 0.99)}),
    );
    let (mut full, _) = churn(&service, 1, "late", SPELL);
    line(
        &json!({"bench": "transition_cost_with_many_parked", "parked": count, "p50_us": percentile(&mut full, 0.5),
        "p50_us_when_empty": percentile(&mut empty, 0.5)}),
    );
    drop(service);
    if let Some(binary) = binary {
        start_up(&root, binary, count);
    }
}

/// The whole command from cold, as a person starts it.
fn start_up(root: &Path, binary: &Path, parked: u64) {
    let mut times: Vec<Duration> = (0..50)
        .map(|_| {
            let start = Instant::now();
            let output =
                Command::new(binary).args(["questions", "--limit", "50"]).current_dir(root).output().unwrap();
            assert!(output.status.success());
            start.elapsed()
        })
        .collect();
    line(
        &json!({"bench": "aop_questions_from_cold", "parked": parked, "p50_us": percentile(&mut times, 0.5), "best_us": percentile(&mut times, 0.0)}),
    );
}

/// The files of a feature with a long history.
fn projection(folder: &Path) {
    const CLOSED: u64 = 10_000;
    let dir = folder.join("long");
    let service = open(&dir);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        create(&service, "f").await;
        for operation in 0..CLOSED {
            let question = ask(&service, "f", operation).await;
            answer(&service, "f", &question, operation).await;
        }
    });
    let projector = Projector::new(&dir);
    runtime.block_on(projector.catch_up(service.store.as_ref())).unwrap();
    let mut times: Vec<Duration> = (0..20)
        .map(|round| {
            runtime.block_on(ask(&service, "f", CLOSED + round));
            let start = Instant::now();
            runtime.block_on(projector.catch_up(service.store.as_ref())).unwrap();
            let elapsed = start.elapsed();
            let filter = QuestionFilter::Only(QuestionStatus::Open);
            let page = QuestionPage { feature: None, filter, after: None, limit: 1 };
            let open = runtime.block_on(service.store.questions(page)).unwrap();
            runtime.block_on(answer(&service, "f", &open[0].id, CLOSED + round));
            elapsed
        })
        .collect();
    line(
        &json!({"bench": "project_feature", "closed_questions": CLOSED, "p50_ms": percentile(&mut times, 0.5) / 1000,
        "p99_ms": percentile(&mut times, 0.99) / 1000}),
    );
}
