//! What `aop serve` takes: a thousand waits at once, and two hundred followers while answers come in. JSON lines on
//! stdout; nothing is asserted. `cargo xtask bench serve` runs it on the optimised binary; `--waits N`,
//! `--followers N`, `--rate N` and `--seconds N` change the size.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark stops at the first surprise and prints its figures"
)]

use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

struct Options {
    aop: PathBuf,
    waits: usize,
    followers: usize,
    rate: u32,
    seconds: u32,
}

fn main() {
    let mut options = Options { aop: "aop".into(), waits: 1_000, followers: 200, rate: 50, seconds: 30 };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        // Cargo adds flags of its own.
        let mut value = || args.next().unwrap();
        match name.as_str() {
            "--aop" => options.aop = value().into(),
            "--waits" => options.waits = value().parse().unwrap(),
            "--followers" => options.followers = value().parse().unwrap(),
            "--rate" => options.rate = value().parse().unwrap(),
            "--seconds" => options.seconds = value().parse().unwrap(),
            _ => {}
        }
    }
    for way in ["stateless", "session"] {
        println!("{}", waits(&options, way));
    }
    println!("{}", followers(&options));
}

/// A server of a project of its own.
struct Server {
    child: Child,
    address: String,
    token: String,
    _folder: tempfile::TempDir,
}

impl Server {
    fn start(aop: &Path) -> Self {
        let folder = tempfile::TempDir::with_prefix("aop-bench-").unwrap();
        let command = |args: &[&str]| {
            let mut command = Command::new(aop);
            command.args(args).current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::piped());
            command
        };
        assert!(command(&["init"]).stdout(Stdio::null()).status().unwrap().success());
        let settings = "policy:\n  execution:\n    human_input:\n      timeout_ms: 0\n";
        std::fs::write(folder.path().join("aop.yaml"), settings).unwrap();
        let mut child = command(&["serve", "--listen", "127.0.0.1:0"]).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        let text = |key: &str| ready[key].as_str().unwrap().to_owned();
        let address = text("url").trim_start_matches("http://").to_owned();
        Server { child, address, token: text("token"), _folder: folder }
    }

    /// Megabytes in memory now.
    fn memory(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0
    }

    fn send(&self, method: &str, path: &str, more: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_nodelay(true).unwrap();
        let more: String = more.iter().map(|(key, value)| format!("{key}: {value}\r\n")).collect();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n{more}\r\n{body}",
            self.address,
            self.token,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let mut text = String::new();
        self.send("POST", path, &[], &body.to_string()).read_to_string(&mut text).unwrap();
        let body = text.split_once("\r\n\r\n").unwrap().1;
        serde_json::from_str(body).unwrap()
    }

    fn questions(&self) -> Vec<Value> {
        let mut all = Vec::new();
        let mut path = "/api/v1/questions?limit=500".to_owned();
        loop {
            let mut text = String::new();
            self.send("GET", &path, &[], "").read_to_string(&mut text).unwrap();
            let page: Value = serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap();
            all.extend(page["data"]["items"].as_array().unwrap().iter().cloned());
            match page["data"]["next_cursor"].as_str() {
                Some(next) => path = format!("/api/v1/questions?limit=500&cursor={next}"),
                None => return all,
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// So many `ask_user` calls wait at once; each is answered, and the time until its client has the answer is taken.
fn waits(options: &Options, way: &str) -> Value {
    let server = Server::start(&options.aop);
    let idle = server.memory();
    let (arrived, arrivals) = mpsc::channel();
    let (opened, openings) = mpsc::channel();
    std::thread::scope(|scope| {
        for number in 0..options.waits {
            let (server, arrived, opened) = (&server, arrived.clone(), opened.clone());
            let wait = move || {
                let stream = ask(server, way, number);
                opened.send(()).unwrap();
                let mut text = String::new();
                let mut reader = BufReader::new(stream);
                while reader.read_line(&mut text).unwrap() > 0 && !text.contains("ANSWERED") {}
                arrived.send((number, Instant::now(), text.contains("ANSWERED"))).unwrap();
            };
            std::thread::Builder::new().stack_size(128 * 1024).spawn_scoped(scope, wait).unwrap();
        }
        openings.iter().take(options.waits).for_each(drop);
        let questions = loop {
            let open = server.questions();
            if open.len() == options.waits {
                break open;
            }
        };
        let waiting = server.memory();
        let mut delays = Vec::new();
        for question in &questions {
            let id = question["question_id"].as_str().unwrap();
            let number: usize =
                question["prompt"].as_str().unwrap().rsplit(' ').next().unwrap().parse().unwrap();
            let sent = Instant::now();
            let answered = server.post(&format!("/api/v1/questions/{id}/answer"), &json!({"answer": "yes"}));
            assert_eq!(answered["ok"], true, "{answered}");
            let (who, when, good) = arrivals.recv_timeout(Duration::from_secs(10)).unwrap();
            assert!(good && who == number, "an answer went astray");
            delays.push(when.duration_since(sent));
        }
        json!({"bench": "waits", "way": way, "waits": options.waits, "idle_mb": round(idle), "waiting_mb": round(waiting),
            "after_mb": round(server.memory()), "delivery_p50_ms": percentile(&mut delays, 50),
            "delivery_p99_ms": percentile(&mut delays, 99)})
    })
}

/// Begins an `ask_user` and leaves it waiting.
fn ask(server: &Server, way: &str, number: usize) -> TcpStream {
    let arguments = json!({"prompt": format!("Question {number}"), "choices": ["yes", "no"]});
    let accept = ("Accept", "application/json, text/event-stream");
    let params = json!({"name": "ask_user", "arguments": arguments});
    if way == "stateless" {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {}});
        let mut params = params;
        params["_meta"] = meta;
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let headers = [
            accept,
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", "ask_user"),
        ];
        return server.send("POST", "/mcp", &headers, &message.to_string());
    }
    let params_of = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"}});
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params_of});
    let mut text = String::new();
    server.send("POST", "/mcp", &[accept], &message.to_string()).read_to_string(&mut text).unwrap();
    let session =
        text.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap().trim().to_owned();
    let headers = [accept, ("Mcp-Session-Id", session.as_str())];
    let message = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    server.send("POST", "/mcp", &headers, &message.to_string()).read_to_string(&mut text).unwrap();
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    server.send("POST", "/mcp", &headers, &message.to_string())
}

/// So many clients follow the events while so many answers a second come in.
fn followers(options: &Options) -> Value {
    let server = Server::start(&options.aop);
    let count = (options.rate * options.seconds) as usize;
    let questions: Vec<String> = (0..count)
        .map(|number| {
            let asked = server.post("/api/v1/questions", &json!({"prompt": format!("Question {number}")}));
            asked["data"]["question_id"].as_str().unwrap().to_owned()
        })
        .collect();
    let (told, tellings) = mpsc::channel();
    let (ready, readiness) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..options.followers {
            let (server, told, ready) = (&server, told.clone(), ready.clone());
            let follow = move || {
                let stream = server.send("GET", "/events", &[], "");
                let mut lines = BufReader::new(stream).lines();
                let mut last: Option<u64> = None;
                let (mut answered, mut gaps) = (0_usize, 0_u64);
                while let Some(Ok(line)) = lines.next() {
                    if let Some(id) = line.strip_prefix("id: ") {
                        let id: u64 = id.parse().unwrap();
                        match last {
                            None => ready.send(()).unwrap(),
                            Some(last) => gaps += id - last - 1,
                        }
                        last = Some(id);
                    }
                    answered += usize::from(line.contains("\"type\":\"question.answered\""));
                    if answered == count {
                        break;
                    }
                }
                told.send((answered, gaps)).unwrap();
            };
            std::thread::Builder::new().stack_size(128 * 1024).spawn_scoped(scope, follow).unwrap();
        }
        readiness.iter().take(options.followers).for_each(drop);
        let before = server.memory();
        let start = Instant::now();
        let mut delays: Vec<Duration> = std::thread::scope(|answering| {
            let server = &server;
            let posts: Vec<_> = questions
                .iter()
                .enumerate()
                .map(|(number, id)| {
                    let due = start + Duration::from_secs(1) * number as u32 / options.rate;
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    answering.spawn(move || {
                        let sent = Instant::now();
                        let body = json!({"answer": "go on"});
                        let answered = server.post(&format!("/api/v1/questions/{id}/answer"), &body);
                        assert_eq!(answered["ok"], true, "{answered}");
                        sent.elapsed()
                    })
                })
                .collect();
            posts.into_iter().map(|post| post.join().unwrap()).collect()
        });
        let took = start.elapsed();
        let mut lost: HashMap<&str, u64> = HashMap::new();
        for _ in 0..options.followers {
            let (answered, gaps) = tellings.recv_timeout(Duration::from_secs(30)).unwrap();
            *lost.entry("answers").or_default() += (count - answered) as u64;
            *lost.entry("events").or_default() += gaps;
        }
        json!({"bench": "followers", "followers": options.followers, "answers": count,
            "answers_per_s": round(count as f64 / took.as_secs_f64()), "lost_answers": lost["answers"],
            "lost_events": lost["events"], "answer_p50_ms": percentile(&mut delays, 50),
            "answer_p99_ms": percentile(&mut delays, 99), "before_mb": round(before), "after_mb": round(server.memory())})
    })
}

fn percentile(delays: &mut [Duration], percent: usize) -> f64 {
    delays.sort_unstable();
    let place = (delays.len() * percent / 100).min(delays.len() - 1);
    round(delays[place].as_secs_f64() * 1_000.0)
}

fn round(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}
