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

/// How long each rate is measured, and how often.
const SPELL: Duration = Duration::from_secs(2);
const ROUNDS: usize = 5;

/// The rows that a question and its answer write, a transaction and a transition each, with the counter that leaves
/// no gap. Nothing is read and nothing decided: the least that a program can do. `{sizes}` are those of real rows.
const ASK_AND_ANSWER: &str = "\\set project {project}
\\set n random(1, 1000000000000000)
BEGIN;
UPDATE projects SET last_seq = last_seq + 2, last_at = 1 WHERE project = :project RETURNING last_seq AS seq \\gset
INSERT INTO events (project, seq, feature_id, at, question_id, line, event) VALUES
    (:project, :seq - 1, 'f' || :client_id, 1, 'q' || :n, repeat('x', {line}), repeat('x', {event})),
    (:project, :seq - 0, 'f' || :client_id, 1, NULL, repeat('x', {line}), repeat('x', {event}));
INSERT INTO features (project, feature_id, status, adhoc, version, record)
    VALUES (:project, 'f' || :client_id, 'awaiting_input', false, 1, repeat('x', {feature}))
    ON CONFLICT (project, feature_id) DO UPDATE
    SET status = excluded.status, version = excluded.version, record = excluded.record;
INSERT INTO questions (project, question_id, feature_id, status, created_at, record)
    VALUES (:project, 'q' || :n, 'f' || :client_id, 'open', 1, repeat('x', {question}));
INSERT INTO operations (project, operation_id, digest, envelope)
    VALUES (:project, 'a' || :n, repeat('x', 64), repeat('x', {envelope}));
COMMIT;
BEGIN;
UPDATE projects SET last_seq = last_seq + 2, last_at = 1 WHERE project = :project RETURNING last_seq AS seq \\gset
INSERT INTO events (project, seq, feature_id, at, question_id, line, event) VALUES
    (:project, :seq - 1, 'f' || :client_id, 1, 'q' || :n, repeat('x', {line}), repeat('x', {event})),
    (:project, :seq - 0, 'f' || :client_id, 1, NULL, repeat('x', {line}), repeat('x', {event}));
UPDATE features SET status = 'planning', version = 2, record = repeat('x', {feature})
    WHERE project = :project AND feature_id = 'f' || :client_id;
UPDATE questions SET status = 'answered', answered_at = 2, record = repeat('x', {question})
    WHERE project = :project AND question_id = 'q' || :n;
INSERT INTO operations (project, operation_id, digest, envelope)
    VALUES (:project, 'b' || :n, repeat('x', 64), repeat('x', {envelope}));
COMMIT;
";

/// Projects of the yardstick: one that all clients share, and one for each.
const SHARED: &str = "1000";
const APART: &str = "2000 + :client_id";

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
    let options = ["bench", "many"].map(|database| {
        server.sql("postgres", &format!("CREATE DATABASE {database}"));
        PostgresOptions::parse(&server.address(database)).unwrap()
    });
    let rows = typical(&server, &options[0]);
    for callers in [1, 8, 32] {
        transitions(&server, &options[0], &rows, callers);
    }
    wake_up(&options[0]);
    if parked > 0 {
        park(&options[0], &options[1], parked);
    }
}

/// The script of the yardstick with rows as large as those that the store has written.
fn typical(server: &Server, options: &PostgresOptions) -> String {
    churn(&open(options, "typical"), 1, "f", Duration::from_millis(500));
    server.sql(
        "bench",
        "INSERT INTO projects (project, project_id) OVERRIDING SYSTEM VALUE
         SELECT n, 'yardstick-' || n FROM unnest(1000 || ARRAY(SELECT generate_series(2000, 2099))) n",
    );
    let sizes = [
        ("{line}", "line", "events"),
        ("{event}", "event", "events"),
        ("{feature}", "record", "features"),
        ("{question}", "record", "questions"),
        ("{envelope}", "envelope", "operations"),
    ];
    sizes.into_iter().fold(ASK_AND_ANSWER.to_owned(), |script, (place, column, table)| {
        let size = server.sql("bench", &format!("SELECT avg(octet_length({column}))::int FROM {table}"));
        script.replace(place, &size)
    })
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

/// Transitions a second of pgbench with so many clients.
fn pgbench(server: &Server, script: &str, project: &str, clients: u64) -> f64 {
    let file = server.socket().join("script.sql");
    std::fs::write(&file, script.replace("{project}", project)).unwrap();
    let (clients, threads) = (clients.to_string(), clients.min(2).to_string());
    let output = Command::new("/usr/bin/env")
        .args([
            "pgbench", "-n", "-M", "prepared", "-T", "2", "-j", &threads, "-c", &clients, "-U", "aop", "-h",
        ])
        .arg(server.socket())
        .arg("-f")
        .arg(&file)
        .arg("bench")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let rate =
        text.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse::<f64>().ok());
    // Each run of the script asks and answers.
    2.0 * rate.unwrap_or_else(|| panic!("pgbench says: {text}{}", String::from_utf8_lossy(&output.stderr)))
}

/// In turns, because the machine changes under us; the middle of all rounds counts.
fn transitions(server: &Server, options: &PostgresOptions, script: &str, callers: u64) {
    let service = open(options, &format!("callers-{callers}"));
    let mut times = Vec::new();
    let rounds: Vec<[f64; 3]> = (0..ROUNDS)
        .map(|round| {
            let shared = pgbench(server, script, SHARED, callers);
            let (spell, rate) = churn(&service, callers, &format!("r{round}"), SPELL);
            times.extend(spell);
            [rate, shared, pgbench(server, script, APART, callers)]
        })
        .collect();
    let middle = |of: &dyn Fn(&[f64; 3]) -> f64| {
        let mut all: Vec<f64> = rounds.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[ROUNDS / 2]
    };
    let ratio = |to: usize| (middle(&|round| round[0] / round[to]) * 100.0).round() / 100.0;
    line(
        &json!({"bench": "postgres_transition", "callers": callers, "per_second": middle(&|round| round[0]).round(),
        "pgbench_per_second": middle(&|round| round[1]).round(), "ratio": ratio(1),
        "pgbench_without_common_counter_per_second": middle(&|round| round[2]).round(),
        "ratio_without_common_counter": ratio(2),
        "p50_us": percentile(&mut times, 0.5), "p99_us": percentile(&mut times, 0.99)}),
    );
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

/// Many parked questions in one database, none in the other: what a transition costs here and there, in turns, and
/// what the pages of the many cost.
fn park(none: &PostgresOptions, many: &PostgresOptions, count: u64) {
    let (empty, full) = (open(none, "none"), open(many, "many"));
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
                    runtime.block_on(create(&full, &feature));
                    runtime.block_on(ask(&full, &feature, number));
                }
            });
        }
    });
    line(&json!({"bench": "postgres_park", "questions": count, "seconds": start.elapsed().as_secs()}));
    let (mut without, mut with, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let name = format!("r{round}");
        let (mut one, mut other) = (churn(&empty, 1, &name, SPELL).0, churn(&full, 1, &name, SPELL).0);
        ratios.push(percentile(&mut other, 0.5) as f64 / percentile(&mut one, 0.5) as f64);
        without.extend(one);
        with.extend(other);
    }
    ratios.sort_by(f64::total_cmp);
    line(&json!({"bench": "postgres_transition_with_many_parked", "parked": count,
        "p50_us": percentile(&mut with, 0.5), "p50_us_with_none": percentile(&mut without, 0.5),
        "ratio": (ratios[ROUNDS / 2] * 100.0).round() / 100.0}));
    let filter = QuestionFilter::Only(QuestionStatus::Open);
    let page = QuestionPage { feature: None, filter, after: None, limit: 50 };
    pages("postgres_list_50_open", count, async || full.store.questions(page.clone()).await.unwrap().len());
    pages("postgres_inbox_50", count, async || full.store.inbox(0, 50).await.unwrap().items.len());
    pages("postgres_inbox_50_middle", count, async || {
        full.store.inbox(count as usize / 2, 50).await.unwrap().items.len()
    });
}

/// How long it takes to read a page of fifty.
fn pages(bench: &str, parked: u64, read: impl AsyncFn() -> usize) {
    let runtime = runtime();
    let mut times: Vec<Duration> = (0..200)
        .map(|_| {
            let start = Instant::now();
            assert_eq!(runtime.block_on(read()), 50.min(parked as usize));
            start.elapsed()
        })
        .collect();
    line(&json!({"bench": bench, "parked": parked, "p50_us": percentile(&mut times, 0.5),
        "p99_us": percentile(&mut times, 0.99)}));
}
