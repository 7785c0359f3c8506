//! kill -9 with many parked, while more are being raised: how soon the first can be answered, and whether any is lost.

use crate::desk::{Desk, FLOOR, Which};
use crate::measure::percentile;
use crate::options::Options;
use crate::park::{fill, shortcut};
use crate::place::Place;
use crate::ways::Serving;
use aop_testkit::postgres::Server;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// It is opened so often, each time after another kill.
const OPENED: usize = 5;

/// At most so many of those that were acknowledged are answered one by one, spread over all of them.
const ANSWERED: usize = 1_000;

pub(crate) fn all(options: &Options, folder: &Path, place: &Place, server: Option<&Server>) {
    for count in &options.killed {
        let ours = Which {
            place: place.clone(),
            folder: folder.join(format!("killed-{count}")),
            name: format!("killed-{count}"),
        };
        let floor = Which {
            name: FLOOR.to_owned(),
            folder: folder.join(format!("killed-floor-{count}")),
            ..ours.clone()
        };
        let desks = if server.is_none() { vec![floor, ours] } else { vec![ours] };
        for desk in desks {
            println!("{}", one(options, &desk, *count, server));
            let _ = std::fs::remove_dir_all(&desk.folder);
        }
    }
}

fn one(options: &Options, desk: &Which, count: u64, server: Option<&Server>) -> Value {
    let acknowledged = raise_and_kill(desk, count);
    let recovery = server.map(|server| {
        server.crash();
        let start = Instant::now();
        server.start();
        u64::try_from(start.elapsed().as_millis()).unwrap()
    });
    let mut answered = HashSet::new();
    let mut first: Vec<Duration> = (0..OPENED)
        .map(|_| {
            let (child, said) = start(&mut desk.child("child-reopen"));
            let line = said.lines().next().unwrap().unwrap();
            kill(child);
            let (micros, id) = line.split_once(' ').unwrap();
            answered.insert(id.to_owned());
            Duration::from_micros(micros.parse().unwrap())
        })
        .collect();
    let served = (!desk.is_floor()).then(|| serve(options, desk, &mut answered));
    let begin = Instant::now();
    let opened = desk.open();
    let open = opened.page(usize::MAX);
    let listed = begin.elapsed();
    let there: HashSet<&str> = open.iter().map(|question| question.id.as_str()).collect();
    let is_lost = |id: &&String| !there.contains(id.as_str()) && !answered.contains(*id);
    let lost = acknowledged.iter().filter(is_lost).count();
    let mut sample = open.iter().step_by(open.len().div_ceil(ANSWERED));
    let sample: Vec<_> = sample.by_ref().collect();
    answer_all(opened.as_ref(), &sample);
    assert_eq!(opened.page(usize::MAX).len(), open.len() - sample.len(), "an answer did not stay");
    json!({"bench": "killed", "store": desk.place.name(), "of": if desk.is_floor() { "floor" } else { "aop" },
        "parked": count, "acknowledged": acknowledged.len(), "lost": lost,
        "first_answer_after_first_kill_us": u64::try_from(first[0].as_micros()).unwrap(),
        "first_answer_p50_us": percentile(&mut first, 0.5), "server_back_ms": recovery,
        "served_first_answer_ms": served, "all_listed_ms": u64::try_from(listed.as_millis()).unwrap(),
        "answered_one_by_one": sample.len()})
}

/// What is acknowledged until so many are; then the process that raises them is killed amid the next.
fn raise_and_kill(desk: &Which, count: u64) -> Vec<String> {
    let (mut child, said) = start(desk.child("child-raise").arg(count.to_string()));
    let mut acknowledged = Vec::new();
    let mut killed = false;
    // What it had said before it died counts as well.
    for line in said.lines() {
        acknowledged.push(line.unwrap());
        if acknowledged.len() as u64 >= count && !killed {
            child.kill().unwrap();
            killed = true;
        }
    }
    child.wait().unwrap();
    acknowledged
}

/// The child that raises questions until it is killed.
pub(crate) fn raise(desk: &Which, count: u64) {
    let out = Mutex::new(std::io::stdout());
    // One write for each, so that no line is torn.
    let say = |id: &str| out.lock().unwrap().write_all(format!("{id}\n").as_bytes()).unwrap();
    let desk = desk.open();
    let already = shortcut(desk.as_ref(), count, &say);
    fill(desk.as_ref(), already..u64::MAX, say);
}

/// The child that opens what is left and answers the first; it stays until it is killed.
pub(crate) fn reopen(desk: &Which) {
    let start = Instant::now();
    let opened = desk.open();
    let first = opened.page(1).remove(0);
    opened.answer(&first);
    let micros = start.elapsed().as_micros();
    println!("{micros} {}", first.id);
    loop {
        std::thread::park();
    }
}

/// From the start of `aop serve` to the first answer over HTTP, in milliseconds.
fn serve(options: &Options, desk: &Which, answered: &mut HashSet<String>) -> u64 {
    std::fs::write(desk.folder.join("aop.yaml"), crate::park::PATIENT).unwrap();
    desk.place.init(&options.aop, &desk.folder, &desk.name);
    let start = Instant::now();
    let serving = Serving::go_on(&desk.place, &desk.folder, &desk.name, &options.aop);
    let mut http = serving.connect();
    let page = http.call("GET", "/api/v1/questions?limit=1", &Value::Null);
    let id = page["items"][0]["question_id"].as_str().unwrap().to_owned();
    http.call("POST", &format!("/api/v1/questions/{id}/answer"), &json!({"answer": "this"}));
    answered.insert(id);
    u64::try_from(start.elapsed().as_millis()).unwrap()
}

fn answer_all(desk: &dyn Desk, questions: &[&crate::desk::Open]) {
    std::thread::scope(|scope| {
        for share in questions.chunks(questions.len().div_ceil(16).max(1)) {
            scope.spawn(move || share.iter().for_each(|question| desk.answer(question)));
        }
    });
}

fn start(command: &mut Command) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let said = BufReader::new(child.stdout.take().unwrap());
    (child, said)
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}
