//! kill -9 with many parked, while more are being raised: how soon the first can be answered, and whether any is lost.

use crate::desk::{Desk, FLOOR, Which};
use crate::measure::percentile;
use crate::options::Options;
use crate::park::{CALLERS, fill, shortcut};
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

/// More are raised and the process is killed amid that so often, because what it leaves depends on when it last moved its
/// log into the database; …
const KILLED: u64 = 15;
/// … each time so many more, which is no multiple of anything.
const MORE: u64 = 83;

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
        let mut killed: Vec<Killed> =
            desks.into_iter().map(|desk| Killed::with(desk, *count, server)).collect();
        // In turns, because the machine changes under us.
        for kill in 0..KILLED {
            if kill > 0 {
                killed.iter_mut().for_each(|killed| killed.raise_and_kill(MORE));
            }
            for killed in &mut killed {
                let (amid, parked) = (killed.reopen(), killed.reopen());
                killed.amid.push(amid);
                killed.parked.push(parked);
            }
        }
        for killed in killed {
            let folder = killed.desk.folder.clone();
            println!("{}", killed.look(options, *count));
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// What a process that was killed has left.
struct Killed {
    desk: Which,
    acknowledged: Vec<String>,
    /// No question has this number or one above it.
    next: u64,
    /// How long the server took to come back, where there is one.
    recovery_ms: Option<u64>,
    /// From opening it to the first answer, when it was killed amid raising …
    amid: Vec<Duration>,
    /// … and when all were parked.
    parked: Vec<Duration>,
    answered: HashSet<String>,
}

impl Killed {
    fn with(desk: Which, count: u64, server: Option<&Server>) -> Self {
        let mut killed = Killed {
            desk,
            acknowledged: Vec::new(),
            next: 0,
            recovery_ms: None,
            amid: Vec::new(),
            parked: Vec::new(),
            answered: HashSet::new(),
        };
        killed.raise_and_kill(count);
        killed.recovery_ms = server.map(|server| {
            server.crash();
            let start = Instant::now();
            server.start();
            u64::try_from(start.elapsed().as_millis()).unwrap()
        });
        killed
    }

    /// Raises until so many more are acknowledged, and kills the process amid the next.
    fn raise_and_kill(&mut self, count: u64) {
        let mut raise = self.desk.child("child-raise");
        let (mut child, said) = start(raise.arg(count.to_string()).arg(self.next.to_string()));
        // What it had said before it died counts as well, and each caller may have begun one that nobody was told of.
        self.next += CALLERS;
        for (line, told) in said.lines().zip(1..) {
            self.acknowledged.push(line.unwrap());
            self.next += 1;
            if told == count {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
    }

    /// Opens it, answers one, and is killed again; how long that took.
    fn reopen(&mut self) -> Duration {
        let (child, said) = start(&mut self.desk.child("child-reopen"));
        let line = said.lines().next().unwrap().unwrap();
        kill(child);
        let (micros, id) = line.split_once(' ').unwrap();
        self.answered.insert(id.to_owned());
        Duration::from_micros(micros.parse().unwrap())
    }

    /// Whether everything is there, and can be answered.
    fn look(mut self, options: &Options, count: u64) -> Value {
        let desk = &self.desk;
        let served = (!desk.is_floor()).then(|| serve(options, desk, &mut self.answered));
        let begin = Instant::now();
        let opened = desk.open();
        opened.page(usize::MAX);
        let listed = begin.elapsed();
        let open = opened.open(usize::MAX);
        let there: HashSet<&str> = open.iter().map(|question| question.id.as_str()).collect();
        let is_lost = |id: &&String| !there.contains(id.as_str()) && !self.answered.contains(*id);
        let lost = self.acknowledged.iter().filter(is_lost).count();
        let sample: Vec<_> = open.iter().step_by(open.len().div_ceil(ANSWERED)).collect();
        answer_all(opened.as_ref(), &sample);
        assert_eq!(opened.page(usize::MAX), open.len() - sample.len(), "an answer did not stay");
        json!({"bench": "killed", "store": desk.place.name(), "of": if desk.is_floor() { "floor" } else { "aop" },
            "parked": count, "acknowledged": self.acknowledged.len(), "lost": lost,
            "amid_raising_p50_us": percentile(&mut self.amid, 0.5),
            "first_answer_p50_us": percentile(&mut self.parked, 0.5), "server_back_ms": self.recovery_ms,
            "served_first_answer_ms": served, "all_listed_ms": u64::try_from(listed.as_millis()).unwrap(),
            "answered_one_by_one": sample.len()})
    }
}

/// The child that raises questions until it is killed.
pub(crate) fn raise(desk: &Which, count: u64, from: u64) {
    let out = Mutex::new(std::io::stdout());
    // One write for each, so that no line is torn.
    let say = |id: &str| out.lock().unwrap().write_all(format!("{id}\n").as_bytes()).unwrap();
    let desk = desk.open();
    let already = if from == 0 { shortcut(desk.as_ref(), count, &say) } else { from };
    fill(desk.as_ref(), already..u64::MAX, say);
}

/// The child that opens what is left and answers the first; it stays until it is killed.
pub(crate) fn reopen(desk: &Which) {
    let start = Instant::now();
    let opened = desk.open();
    let first = opened.open(1).remove(0);
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
