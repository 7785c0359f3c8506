//! The gate cycle: ask durably, somebody waits, answer durably, the waiter has it. In process, over HTTP and through
//! the command line, beside a floor that does the same two durable commits with bare SQLite and nothing else, and
//! beside the rate at which the disk syncs. JSON lines on stdout; nothing is asserted. `cargo xtask bench gate`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark stops at the first surprise and prints its figures"
)]

#[path = "common/calls.rs"]
mod calls;

use aop_kernel::ids::QuestionId;
use aop_kernel::question::QuestionStatus;
use aop_kernel::tools::{QuestionFilter, Tool};
use aop_store::{QuestionPage, Service, SqliteStore, SystemClock};
use calls::{call, create, service};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long each rate is measured.
const SPELL: Duration = Duration::from_secs(3);

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let value = |name: &str| args.iter().position(|arg| arg == name).and_then(|at| args.get(at + 1)).cloned();
    let home = value("--folder").map_or_else(std::env::temp_dir, PathBuf::from);
    if let Some(count) = value("--park-and-stay") {
        return park_and_stay(&home, count.parse().unwrap());
    }
    let folder = tempfile::tempdir_in(&home).unwrap();
    let binary = value("--aop").map(PathBuf::from);
    let parked = value("--parked").unwrap_or_else(|| "1000,10000,100000".to_owned());
    eprintln!("measuring in {} …", folder.path().display());
    for callers in [1, 8, 64] {
        floor(folder.path(), callers);
        in_process(folder.path(), callers);
        if let Some(binary) = &binary {
            over_http(folder.path(), binary, callers);
        }
    }
    if let Some(binary) = &binary {
        command_line(folder.path(), binary);
    }
    for count in parked.split(',').filter_map(|count| count.parse().ok()) {
        park(folder.path(), count);
        killed(folder.path(), count);
    }
}

/// The time of a cycle, from before the question to the waiter's answer.
type Cycle<'a> = Box<dyn FnMut(u64) + 'a>;

/// Runs cycles on so many threads for the spell; prints rate, percentiles and the disk's own rate.
fn measure<'a>(what: &str, folder: &Path, callers: u64, caller: impl Fn(u64) -> Cycle<'a> + Sync) {
    let before = raw_syncs(folder);
    let counter = AtomicU64::new(0);
    let mut times: Vec<Duration> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..callers)
            .map(|number| {
                let (counter, caller) = (&counter, &caller);
                scope.spawn(move || {
                    let mut cycle = caller(number);
                    let start = Instant::now();
                    let mut times = Vec::new();
                    while start.elapsed() < SPELL {
                        let one = Instant::now();
                        cycle(counter.fetch_add(1, Ordering::Relaxed));
                        times.push(one.elapsed());
                    }
                    times
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    times.sort_unstable();
    let raw = f64::midpoint(before, raw_syncs(folder));
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_micros() as u64;
    let rate = times.len() as f64 / SPELL.as_secs_f64();
    println!(
        "{}",
        json!({"bench": "gate", "way": what, "callers": callers, "cycles_per_second": rate.round(), "p50_us": at(0.5),
            "p95_us": at(0.95), "p99_us": at(0.99), "raw_fdatasync_per_second": raw.round()})
    );
}

/// How many times a second this disk syncs an appended record: the yardstick.
fn raw_syncs(folder: &Path) -> f64 {
    let mut file = tempfile::tempfile_in(folder).unwrap();
    let start = Instant::now();
    let mut count = 0_u32;
    while start.elapsed() < Duration::from_millis(700) {
        file.write_all(&[7_u8; 512]).unwrap();
        file.sync_data().unwrap();
        count += 1;
    }
    f64::from(count) / start.elapsed().as_secs_f64()
}

/// Two commits in bare SQLite, one connection, and a channel to the waiter: what nobody can go below by much.
fn floor(folder: &Path, callers: u64) {
    let path = folder.join(format!("floor-{callers}.db"));
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    connection.pragma_update(None, "synchronous", "FULL").unwrap();
    connection
        .execute_batch("CREATE TABLE q (id INTEGER PRIMARY KEY, prompt TEXT, answer TEXT) STRICT")
        .unwrap();
    let connection = Mutex::new(connection);
    measure("floor", folder, callers, |_| {
        let connection = &connection;
        Box::new(move |number| {
            let id = i64::try_from(number).unwrap();
            let (send, receive) = std::sync::mpsc::channel();
            let insert =
                "INSERT INTO q (id, prompt) VALUES (?1, 'Which of the two would you rather have here?')";
            connection.lock().unwrap().prepare_cached(insert).unwrap().execute([id]).unwrap();
            let update = "UPDATE q SET answer = 'this' WHERE id = ?1 AND answer IS NULL";
            connection.lock().unwrap().prepare_cached(update).unwrap().execute([id]).unwrap();
            send.send("this").unwrap();
            receive.recv().unwrap();
        })
    });
}

fn open(dir: &Path) -> Service {
    std::fs::create_dir_all(dir).unwrap();
    let store = Arc::new(SqliteStore::open(dir, Arc::new(SystemClock)).unwrap());
    service(store)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

fn question(feature: &str, number: u64) -> Value {
    json!({"feature_id": feature, "role": "builder", "session_id": "bench", "question_type": "clarification",
        "prompt": "Which of the two would you rather have here?",
        "expected_answer": {"kind": "single_choice", "choices": ["this", "that"]},
        "operation_id": format!("ask-{feature}-{number}")})
}

fn answer(feature: &str, id: &Value, number: u64) -> Value {
    json!({"feature_id": feature, "question_id": id, "answer": "this", "answered_by": "bench",
        "operation_id": format!("answer-{feature}-{number}")})
}

/// The store's own service, with a waiter on its changes.
fn in_process(folder: &Path, callers: u64) {
    let service = open(&folder.join(format!("in-process-{callers}")));
    measure("in process", folder, callers, |number| {
        let (service, runtime, feature) = (&service, runtime(), format!("f-{number}"));
        runtime.block_on(create(service, &feature));
        Box::new(move |number| {
            runtime.block_on(async {
                let id = call(service, Tool::QuestionCreate, question(&feature, number)).await["question_id"]
                    .clone();
                let mut changes = service.store.changes();
                let waiter = async {
                    let id = QuestionId::parse(id.as_str().unwrap()).unwrap();
                    while service.store.question(id.clone()).await.unwrap().unwrap().is_open() {
                        changes.changed().await.unwrap();
                    }
                };
                tokio::join!(waiter, call(service, Tool::QuestionAnswer, answer(&feature, &id, number)));
            });
        })
    });
}

/// A connection that is kept open.
struct Http {
    stream: BufReader<TcpStream>,
    token: String,
}

impl Http {
    fn connect(server: &Value) -> Self {
        let address = server["url"].as_str().unwrap().trim_start_matches("http://").to_owned();
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Http { stream: BufReader::new(stream), token: server["token"].as_str().unwrap().to_owned() }
    }

    fn send(&mut self, method: &str, path: &str, body: &Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut header = String::new();
            self.stream.read_line(&mut header).unwrap();
            if header == "\r\n" {
                break;
            }
            if let Some((name, value)) =
                header.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            {
                assert!(!name.is_empty());
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        let reply: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(reply["ok"], true, "{reply}");
        reply["data"].clone()
    }
}

fn project(folder: &Path, name: &str, binary: &Path) -> PathBuf {
    let root = folder.join(name);
    std::fs::create_dir_all(&root).unwrap();
    assert!(
        Command::new(binary).arg("init").current_dir(&root).stdout(Stdio::null()).status().unwrap().success()
    );
    std::fs::write(root.join("aop.yaml"), "projections: off\n").unwrap();
    root
}

/// `aop serve`: two connections for each caller, one of them waits.
fn over_http(folder: &Path, binary: &Path, callers: u64) {
    let root = project(folder, &format!("http-{callers}"), binary);
    let mut child: Child = Command::new(binary)
        .args(["serve", "--listen", "127.0.0.1:0"])
        .current_dir(&root)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let server: Value = serde_json::from_str(&first).unwrap();
    measure("over HTTP", folder, callers, |number| {
        let (mut acts, mut waits, feature) =
            (Http::connect(&server), Http::connect(&server), format!("f-{number}"));
        let create =
            json!({"feature_id": feature, "title": "bench", "operation_id": format!("create-{feature}")});
        acts.send("POST", "/api/v1/tools/feature.create", &create);
        acts.receive();
        Box::new(move |number| {
            acts.send("POST", "/api/v1/tools/feature.question_create", &question(&feature, number));
            let id = acts.receive()["question_id"].clone();
            waits.send(
                "GET",
                &format!("/api/v1/questions/{}/wait?timeout_s=50", id.as_str().unwrap()),
                &Value::Null,
            );
            acts.send("POST", "/api/v1/tools/feature.question_answer", &answer(&feature, &id, number));
            acts.receive();
            assert_eq!(waits.receive()["answer"], "this");
        })
    });
    child.kill().unwrap();
    child.wait().unwrap();
}

/// `aop tool call` twice, each a process: what a hook or a script pays.
fn command_line(folder: &Path, binary: &Path) {
    let root = project(folder, "command-line", binary);
    let run = |tool: &str, input: &Value| -> Value {
        let output = Command::new(binary)
            .args(["tool", "call", tool, "--role", "human", "--input", &input.to_string()])
            .current_dir(&root)
            .output()
            .unwrap();
        let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(reply["ok"], true, "{reply}");
        reply["data"].clone()
    };
    run("feature.create", &json!({"feature_id": "f", "title": "bench", "operation_id": "create"}));
    measure("command line", folder, 1, |_| {
        let run = &run;
        Box::new(move |number| {
            let id = run("feature.question_create", &question("f", number))["question_id"].clone();
            run("feature.question_answer", &answer("f", &id, number));
        })
    });
}

fn fill(service: &Service, count: u64, said: impl Fn(u64) + Sync) {
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
                    runtime.block_on(create(service, &feature));
                    runtime.block_on(call(service, Tool::QuestionCreate, question(&feature, number)));
                    said(number);
                }
            });
        }
    });
}

fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or_default() / 1024
}

fn page(limit: usize) -> QuestionPage {
    QuestionPage { feature: None, filter: QuestionFilter::Only(QuestionStatus::Open), after: None, limit }
}

/// Many parked questions: what raising them, a page and an answer cost.
fn park(folder: &Path, count: u64) {
    let dir = folder.join(format!("parked-{count}"));
    let service = open(&dir);
    let start = Instant::now();
    fill(&service, count, |_| {});
    let seconds = start.elapsed().as_secs_f64();
    let disk: u64 =
        std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    let runtime = runtime();
    let time = |work: &dyn Fn()| {
        let mut times: Vec<Duration> = (0..50)
            .map(|_| {
                let start = Instant::now();
                work();
                start.elapsed()
            })
            .collect();
        times.sort_unstable();
        times[25].as_micros() as u64
    };
    let list = time(&|| drop(runtime.block_on(service.store.questions(page(50))).unwrap()));
    let answered = time(&|| {
        let open = runtime.block_on(service.store.questions(page(1))).unwrap().remove(0);
        let input = answer(open.feature_id.as_str(), &json!(open.id), 0);
        runtime.block_on(call(&service, Tool::QuestionAnswer, input));
    });
    println!(
        "{}",
        json!({"bench": "park", "questions": count, "seconds": (seconds * 10.0).round() / 10.0, "resident_mib": resident_mib(),
            "disk_bytes_each": disk / count, "page_of_50_p50_us": list, "find_and_answer_p50_us": answered})
    );
}

/// The child: parks questions, says which are acknowledged, and waits to be killed.
fn park_and_stay(dir: &Path, count: u64) {
    let service = open(dir);
    let out = Mutex::new(std::io::stdout());
    fill(&service, count, |number| writeln!(out.lock().unwrap(), "{number}").unwrap());
    println!("all");
    std::thread::park();
}

/// kill -9 with so many parked: the time from opening to the first answer, and whether any is lost.
fn killed(folder: &Path, count: u64) {
    let dir = folder.join(format!("killed-{count}"));
    std::fs::create_dir_all(&dir).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--folder", dir.to_str().unwrap(), "--park-and-stay", &count.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let acknowledged = lines.map(|line| line.unwrap()).take_while(|line| line != "all").count() as u64;
    child.kill().unwrap();
    child.wait().unwrap();
    let start = Instant::now();
    let service = open(&dir);
    let runtime = runtime();
    let first = runtime.block_on(service.store.questions(page(1))).unwrap().remove(0);
    runtime.block_on(call(
        &service,
        Tool::QuestionAnswer,
        answer(first.feature_id.as_str(), &json!(first.id), 0),
    ));
    let elapsed = start.elapsed();
    let open = runtime.block_on(service.store.questions(page(usize::MAX))).unwrap().len() as u64;
    println!(
        "{}",
        json!({"bench": "killed", "parked": count, "acknowledged": acknowledged, "lost": acknowledged - 1 - open.min(acknowledged - 1),
            "first_answer_after_us": elapsed.as_micros() as u64})
    );
}
