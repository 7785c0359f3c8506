//! Processes of the real program that are killed at random: what was acknowledged is there, and every effect once.
//! Short here; `AOP_KILL_SECONDS` makes it longer.

use super::pair::Pair;
use super::team::elsewhere;
use crate::http_client::Server;
use crate::support::{Project, Run, question, wait};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

fn duration() -> Duration {
    let seconds = std::env::var("AOP_KILL_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(6))
}

/// Numbers by chance.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn millis(&mut self, limit: u64) -> Duration {
        Duration::from_micros(self.below(limit * 1_000))
    }
}

/// Two processes write to one project, and whoever is killed is started again, with the same operation id.
#[test]
fn processes_that_are_killed_at_random_leave_every_effect_once() {
    let project = Project::with_feature();
    let end = Instant::now() + duration();
    let mut chance = Chance(0x9e37_79b9);
    let note = |number: u64| -> Child {
        let input = json!({"feature_id": "shop", "note": format!("note {number}"), "operation_id": format!("n-{number}")});
        project.spawn(&[
            "tool",
            "call",
            "feature.log_append",
            "--role",
            "human",
            "--input",
            &input.to_string(),
        ])
    };
    let (mut next, mut killed, mut acknowledged) = (0, 0, Vec::new());
    while Instant::now() < end {
        let pair = [next, next + 1];
        next += 2;
        let mut running = pair.map(note);
        std::thread::sleep(chance.millis(60));
        let victim = usize::try_from(chance.below(2)).unwrap();
        // Killed in the middle, or too late; both are fine.
        let _ = running[victim].kill();
        for (number, child) in pair.into_iter().zip(running) {
            let run = wait(child);
            if run.code.is_none() {
                killed += 1;
            } else {
                assert_eq!(run.envelope()["ok"], true, "{run:?}");
                acknowledged.push(number);
            }
        }
    }
    assert!(killed > 5, "{killed} of {next}");
    // Everybody tries again until it is done, as a caller would.
    for number in 0..next {
        wait(note(number)).data();
    }
    let log = project.run(&["log"]).data()["items"].as_array().unwrap().clone();
    let mut notes: Vec<&Value> =
        log.iter().filter(|event| event["type"] == "feature.noted").map(|event| &event["note"]).collect();
    assert_eq!(
        notes.len() as u64,
        next,
        "every note once; {killed} were killed, {} acknowledged",
        acknowledged.len()
    );
    notes.sort_by_key(|note| note.to_string());
    notes.dedup();
    assert_eq!(notes.len() as u64, next);
    assert_eq!(project.run(&["doctor", "--repair"]).data()["healthy"], true);
}

/// A database that changes hands, two machines with a server of aop each.
struct Team {
    database: Pair,
    folders: [Project; 2],
    /// Where the servers listen at the moment, and their tokens.
    doors: [Mutex<Option<(String, String)>>; 2],
    closing: AtomicBool,
    closed: AtomicBool,
    servers_killed: AtomicU32,
    commands_killed: AtomicU32,
    sent_again: AtomicU32,
}

impl Team {
    fn new() -> Self {
        Team {
            database: Pair::new(),
            folders: [Project::empty(), Project::empty()],
            doors: [Mutex::new(None), Mutex::new(None)],
            closing: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            servers_killed: AtomicU32::new(0),
            commands_killed: AtomicU32::new(0),
            sent_again: AtomicU32::new(0),
        }
    }

    /// A server of aop that is killed and started again until the end.
    fn door(&self, number: usize) {
        let mut chance = Chance(77 + number as u64);
        while !self.closed.load(Ordering::SeqCst) {
            // It does not start while the database is away; then it is tried again.
            let Ok(server) =
                Server::attempt(&self.folders[number], &[], &[("AOP_STORE", &self.database.address)])
            else {
                continue;
            };
            *self.doors[number].lock().unwrap() = Some((server.address.clone(), server.token.clone()));
            let until = Instant::now() + Duration::from_millis(300) + chance.millis(2_000);
            while Instant::now() < until && !self.closed.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(10));
            }
            server.kill();
            self.servers_killed.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// A command that is killed now and then, and given again until it is acknowledged.
    fn command(&self, folder: usize, chance: &mut Chance, args: &[&str]) -> Value {
        loop {
            let mut command = elsewhere(&self.folders[folder], &self.database.address, args);
            let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            if chance.below(3) == 0 {
                std::thread::sleep(chance.millis(150));
                // It may have ended already; then there is nothing to kill.
                let _ = child.kill();
            }
            let run = wait(child);
            match run.code {
                None => self.commands_killed.fetch_add(1, Ordering::SeqCst),
                Some(0) => return run.data(),
                Some(_) => {
                    assert_eq!(run.envelope()["error"]["code"], "store_unavailable", "{run:?}");
                    self.sent_again.fetch_add(1, Ordering::SeqCst)
                }
            };
        }
    }

    /// An answer through one of the doors, and again through any of them until it is acknowledged.
    fn answer(&self, chance: &mut Chance, question: &str, operation: &str) {
        loop {
            let door = self.doors[usize::try_from(chance.below(2)).unwrap()].lock().unwrap().clone();
            let reply = door.and_then(|(address, token)| post(&address, &token, question, operation));
            match reply {
                Some(envelope) if envelope["ok"] == true => return,
                Some(envelope) => assert_eq!(envelope["error"]["code"], "store_unavailable", "{envelope}"),
                // Nobody there, or killed before it could answer.
                None => std::thread::sleep(Duration::from_millis(5)),
            }
            self.sent_again.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Asks and answers until the end; the operations of the answers that were acknowledged, by question.
    fn person(&self, number: usize) -> BTreeMap<String, String> {
        let mut chance = Chance(1_000 + number as u64);
        let feature = format!("f{number}");
        let call = |chance: &mut Chance, tool: &str, role: &str, input: Value| {
            let input = input.to_string();
            self.command(number % 2, chance, &["tool", "call", tool, "--role", role, "--input", &input])
        };
        let create = json!({"feature_id": feature, "title": "T", "operation_id": format!("create-{number}")});
        call(&mut chance, "feature.create", "human", create);
        let mut answered = BTreeMap::new();
        while !self.closing.load(Ordering::SeqCst) {
            let round = answered.len();
            let ask = question(&feature, &format!("ask-{number}-{round}"));
            let asked = call(&mut chance, "feature.question_create", "builder", ask);
            let id = asked["question_id"].as_str().unwrap().to_owned();
            let operation = format!("answer-{number}-{round}");
            self.answer(&mut chance, &id, &operation);
            answered.insert(id, operation);
        }
        answered
    }
}

/// Answers a question over HTTP; nothing when no whole answer came.
fn post(address: &str, token: &str, question: &str, operation: &str) -> Option<Value> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let body = json!({"answer": "yes"}).to_string();
    let head = format!(
        "POST /api/v1/questions/{question}/answer HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Authorization: Bearer {token}\r\nIdempotency-Key: {operation}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
}

#[test]
fn servers_and_commands_are_killed_while_the_database_restarts_and_changes_hands_and_no_answer_is_lost() {
    let team = Team::new();
    for folder in &team.folders {
        crate::support::finish(&mut elsewhere(folder, &team.database.address, &["init"])).data();
    }
    let third = duration() / 3;
    let answered: BTreeMap<String, String> = std::thread::scope(|scope| {
        (0..2).for_each(|number| {
            drop(scope.spawn({
                let team = &team;
                move || team.door(number)
            }))
        });
        let people: Vec<_> = (0..4)
            .map(|number| {
                let team = &team;
                scope.spawn(move || team.person(number))
            })
            .collect();
        std::thread::sleep(third);
        team.database.restart();
        std::thread::sleep(third);
        team.database.change_hands();
        std::thread::sleep(third);
        team.closing.store(true, Ordering::SeqCst);
        let answered = people.into_iter().flat_map(|person| person.join().unwrap()).collect();
        team.closed.store(true, Ordering::SeqCst);
        answered
    });
    let run = |args: &[&str]| -> Run {
        crate::support::finish(&mut elsewhere(&team.folders[0], &team.database.address, args))
    };
    let log = run(&["log"]).data()["items"].as_array().unwrap().clone();
    let of = |kind: &str| -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let events = log.iter().filter(|event| event["type"] == kind);
        events.map(|event| (text(&event["question_id"]), text(&event["operation_id"]))).collect()
    };
    let there = of("question.answered");
    assert_eq!(there.len(), answered.len(), "no answer is there twice");
    assert_eq!(there.into_iter().collect::<BTreeMap<_, _>>(), answered, "what was acknowledged is there");
    assert_eq!(of("question.opened").len(), answered.len(), "every question was asked once");
    assert_eq!(run(&["doctor", "--repair"]).data()["healthy"], true);
    let count = |number: &AtomicU32| number.load(Ordering::SeqCst);
    let (servers, commands) = (count(&team.servers_killed), count(&team.commands_killed));
    assert!(servers > 0 && commands > 0, "{servers} servers and {commands} commands were killed");
    println!(
        "{} answers acknowledged, each once; {servers} servers and {commands} commands killed, {} calls sent again",
        answered.len(),
        count(&team.sent_again)
    );
}
