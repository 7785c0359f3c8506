//! What the store does on PostgreSQL, beside what pgbench does on the same tables, server and machine in the same
//! run. JSON lines on stdout; nothing is asserted. `cargo xtask bench store --postgres` runs it.
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
use aop_store::{PostgresOptions, PostgresStore, QuestionPage, Service, TimeSource};
use aop_testkit::postgres::Server;
use calls::{create, service};
use churn::{answer, ask, churn, percentile};
use serde_json::{Value, json};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// How long each rate is measured.
const SPELL: Duration = Duration::from_secs(3);

/// Two statements and four round trips: what a program does that asks and answers in one transaction.
const PLAIN: &str = "\\set id random(1, 1000000000000)
BEGIN;
INSERT INTO questions (project, question_id, feature_id, status, created_at, record)
    VALUES (0, 'b' || :id || '-' || :client_id, 'f' || :client_id, 'open', 1, repeat('x', 600));
UPDATE questions SET status = 'answered', answered_at = 2
    WHERE project = 0 AND question_id = 'b' || :id || '-' || :client_id AND status = 'open';
COMMIT;
";

/// The rows that a transition writes, one statement each, with the counter that leaves no gap.
const SAME_WORK: &str = "\\set id random(1, 1000000000000)
BEGIN;
UPDATE projects SET last_seq = last_seq + 1 WHERE project_id = 'yardstick';
INSERT INTO events (project, seq, feature_id, at, line, event)
    VALUES (0, :id, 'f' || :client_id, 1, repeat('x', 80), repeat('x', 400));
INSERT INTO questions (project, question_id, feature_id, status, created_at, record)
    VALUES (0, 'c' || :id || '-' || :client_id, 'f' || :client_id, 'open', 1, repeat('x', 600));
INSERT INTO operations (project, operation_id, digest, envelope)
    VALUES (0, 'c' || :id || '-' || :client_id, repeat('x', 64), repeat('x', 200));
COMMIT;
";

fn main() {
    let mut args = std::env::args().skip(1);
    let mut parked = 100_000;
    while let Some(arg) = args.next() {
        if arg == "--parked" {
            parked = args.next().unwrap().parse().unwrap();
        }
    }
    eprintln!("measuring on a server of its own …");
    let server = Server::own("-c shared_buffers=512MB -c max_connections=200");
    server.sql("postgres", "CREATE DATABASE bench");
    let options = PostgresOptions::parse(&server.address("bench")).unwrap();
    PostgresStore::create(&options.clone().project("yardstick")).unwrap();
    for callers in [1, 8, 32] {
        transitions(&server, &options, callers);
    }
    wake_up(&options);
    if parked > 0 {
        park(&options, parked);
    }
}

fn line(figures: &Value) {
    println!("{figures}");
}

fn open(options: &PostgresOptions, project: &str) -> Service {
    let options = options.clone().project(project);
    PostgresStore::create(&options).unwrap();
    let store = Arc::new(PostgresStore::open(options, TimeSource::Database).unwrap());
    service(store)
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

/// Transactions a second of pgbench with so many clients.
fn pgbench(server: &Server, script: &str, clients: u64) -> f64 {
    let file = server.socket().join("script.sql");
    std::fs::write(&file, script).unwrap();
    let clients = clients.to_string();
    let output = Command::new("/usr/bin/env")
        .args(["pgbench", "-n", "-M", "prepared", "-j", "2", "-T", "3", "-c", &clients, "-U", "aop", "-h"])
        .arg(server.socket())
        .arg("-f")
        .arg(&file)
        .arg("bench")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let rate = text.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
    rate.unwrap_or_else(|| panic!("pgbench says: {text}{}", String::from_utf8_lossy(&output.stderr)))
}

fn transitions(server: &Server, options: &PostgresOptions, callers: u64) {
    let service = open(options, &format!("callers-{callers}"));
    // The yardstick is taken before and after, because the machine changes under us.
    let before = (pgbench(server, PLAIN, callers), pgbench(server, SAME_WORK, callers));
    let (mut times, rate) = churn(&service, callers, "f", SPELL);
    let after = (pgbench(server, PLAIN, callers), pgbench(server, SAME_WORK, callers));
    let plain = f64::midpoint(before.0, after.0);
    let same = f64::midpoint(before.1, after.1);
    let ratio = |to: f64| (rate / to * 100.0).round() / 100.0;
    line(&json!({"bench": "postgres_transition", "callers": callers, "per_second": rate.round(),
        "pgbench_per_second": plain.round(), "ratio": ratio(plain),
        "pgbench_same_work_per_second": same.round(), "ratio_same_work": ratio(same),
        "p50_us": percentile(&mut times, 0.5), "p99_us": percentile(&mut times, 0.99)}));
}

/// From the call that answers to the one who waits for it on another connection.
fn wake_up(options: &PostgresOptions) {
    let (here, there) = (open(options, "wake-up"), open(options, "wake-up"));
    let runtime = runtime();
    let mut changes = there.store.changes();
    runtime.block_on(create(&here, "f"));
    let mut times: Vec<Duration> = (0..300)
        .map(|operation| {
            runtime.block_on(async {
                let question = ask(&here, "f", operation).await;
                while *changes.borrow_and_update() < 1 + operation * 4 + 2 {
                    changes.changed().await.unwrap();
                }
                let start = Instant::now();
                answer(&here, "f", &question, operation).await;
                while *changes.borrow_and_update() < 1 + operation * 4 + 4 {
                    changes.changed().await.unwrap();
                }
                start.elapsed()
            })
        })
        .collect();
    line(&json!({"bench": "postgres_answer_to_waiting_runner", "p50_us": percentile(&mut times, 0.5),
        "p99_us": percentile(&mut times, 0.99)}));
}

/// Many parked questions: what a page and a transition cost then.
fn park(options: &PostgresOptions, count: u64) {
    let service = open(options, "parked");
    let (mut empty, _) = churn(&service, 1, "early", SPELL);
    let start = Instant::now();
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                let runtime = runtime();
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
    line(&json!({"bench": "postgres_park", "questions": count, "seconds": start.elapsed().as_secs()}));
    let runtime = runtime();
    let filter = QuestionFilter::Only(QuestionStatus::Open);
    let page = QuestionPage { feature: None, filter, after: None, limit: 50 };
    let mut pages: Vec<Duration> = (0..200)
        .map(|_| {
            let start = Instant::now();
            assert_eq!(runtime.block_on(service.store.questions(page.clone())).unwrap().len(), 50);
            start.elapsed()
        })
        .collect();
    let (mut full, _) = churn(&service, 1, "late", SPELL);
    line(&json!({"bench": "postgres_with_many_parked", "parked": count,
        "transition_p50_us": percentile(&mut full, 0.5), "transition_p50_us_when_empty": percentile(&mut empty, 0.5),
        "list_50_open_p50_us": percentile(&mut pages, 0.5), "list_50_open_p99_us": percentile(&mut pages, 0.99)}));
}
