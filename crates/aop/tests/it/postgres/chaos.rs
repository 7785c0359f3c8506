//! Chaos with a team: two runners in two clones, two servers through which people answer, all of them killed at
//! random and started again, on a database that is restarted and then changes hands. Every feature ends, every answer
//! arrives once, and no process is left.
//!
//! A short run by default; `AOP_CHAOS=full` is a minute.

use super::pair::Pair;
use super::runners::clone_of;
use crate::http_client::Server;
use crate::run_chaos::{Dice, check, furnish};
use crate::run_support::{Running, assert_nothing_left, deliveries, workshop_in};
use crate::support::Project;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Where the servers are to be found just now: address and token.
type Doors = Mutex<[Option<(String, String)>; 2]>;

/// One request to a server that may be killed in the middle of it.
fn request(door: &(String, String), method: &str, path: &str, key: &str, body: &str) -> Option<(u16, Value)> {
    let (address, token) = door;
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
         Idempotency-Key: {key}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let status = answer.split(' ').nth(1)?.parse().ok()?;
    let body = answer.split_once("\r\n\r\n")?.1;
    Some((status, serde_json::from_str(&body[body.find('{')?..=body.rfind('}')?]).ok()?))
}

/// The answer that everybody gives to a question.
fn verdict(question: &str) -> &'static str {
    if question.bytes().map(u32::from).sum::<u32>() % 2 == 0 { "yes" } else { "no" }
}

/// Answers what is open through either server until told to stop; what has an answer for sure.
fn answer_over_http(doors: &Doors, stop: &AtomicBool, mut dice: Dice) -> BTreeMap<String, String> {
    let mut answered = BTreeMap::new();
    while !stop.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_millis(20));
        let place = usize::from(dice.roll(2) == 1);
        let Some(door) = doors.lock().unwrap()[place].clone() else { continue };
        let Some((200, open)) = request(&door, "GET", "/api/v1/questions", "-", "") else { continue };
        for question in open["data"]["items"].as_array().unwrap() {
            if dice.roll(3) == 0 {
                continue;
            }
            let id = question["question_id"].as_str().unwrap();
            let (path, key) = (format!("/api/v1/questions/{id}/answer"), format!("chaos:{place}:{id}"));
            let body = json!({"answer": verdict(id)}).to_string();
            match request(&door, "POST", &path, &key, &body) {
                // Whoever lost was told the answer that won, which is the same.
                Some((200 | 409, _)) => drop(answered.insert(id.to_owned(), verdict(id).to_owned())),
                // Nobody knows whether it was taken; it is looked at again.
                Some((503, _)) | None => break,
                Some(other) => panic!("{other:?}"),
            }
        }
    }
    answered
}

/// Tells those who answer to stop, also when the test has failed.
struct Stopping<'a>(&'a AtomicBool);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A process that is killed and started again: a run, or a server.
type Living = (Option<Running>, Option<Server>);

fn start(place: usize, folders: [&Project; 2], doors: &Doors, specs: &[&str]) -> Living {
    let folder = folders[place % 2];
    if place < 2 {
        return (Some(Running::start(folder, specs)), None);
    }
    let server = Server::start(folder);
    doors.lock().unwrap()[place % 2] = Some((server.address.clone(), server.token.clone()));
    (None, Some(server))
}

/// The features that are not ready.
fn unfinished(project: &Project) -> Vec<Value> {
    let mut features = project.run(&["status"]).data()["features"].as_array().unwrap().clone();
    features.retain(|feature| feature["status"] != "ready_to_merge");
    features
}

#[test]
fn chaos_with_two_runners_two_servers_and_a_database_that_changes_hands_every_answer_arrives_once() {
    let full = std::env::var("AOP_CHAOS").is_ok_and(|value| value == "full");
    let (features, length) = if full { (24, Duration::from_secs(60)) } else { (8, Duration::from_secs(6)) };
    let database = Pair::new();
    let here = workshop_in(
        Project::at(&database.address),
        "run: { max_parallel: 4 }\npolicy: { execution: { human_input: { timeout_ms: 0 } } }\n",
    );
    let there = clone_of(&here);
    let folders = [&here, &there];
    let mut dice = Dice(0x5851_f42d_4c95_7f2d);
    let specs = furnish(&folders, features, &mut dice);
    let specs: Vec<&str> = specs.iter().map(String::as_str).collect();
    let (stop, doors) = (AtomicBool::new(false), Doors::default());
    let acknowledged = std::thread::scope(|scope| {
        let stopping = Stopping(&stop);
        let (doors, stop) = (&doors, &stop);
        let people = [77, 78].map(|seed| scope.spawn(move || answer_over_http(doors, stop, Dice(seed))));
        let mut living = Vec::new();
        for place in 0..4 {
            living.push(Some(start(place, folders, doors, if place == 0 { &specs } else { &[] })));
        }
        let (began, mut kills) = (Instant::now(), [0; 4]);
        let mut troubles =
            [Pair::restart, Pair::change_hands].into_iter().zip([length / 3, length * 2 / 3]).peekable();
        while began.elapsed() < length {
            if let Some((trouble, _)) = troubles.next_if(|(_, due)| began.elapsed() >= *due) {
                trouble(&database);
            }
            std::thread::sleep(Duration::from_millis(200 + dice.roll(800)));
            let place = usize::try_from(dice.roll(4)).unwrap();
            // Dropped: killed with SIGKILL.
            drop(living[place].take());
            kills[place] += 1;
            std::thread::sleep(Duration::from_millis(dice.roll(200)));
            living[place] = Some(start(place, folders, doors, if place == 0 { &specs } else { &[] }));
        }
        println!("kills: {kills:?} (runners, then servers)");
        // People answer until both runs have come to their end.
        let quiet = Instant::now();
        while let left = unfinished(&here)
            && !left.is_empty()
        {
            assert!(quiet.elapsed() < Duration::from_secs(300), "these do not end: {left:#?}");
            std::thread::sleep(Duration::from_millis(500));
        }
        println!("the rest took {:?}", quiet.elapsed());
        for run in living.drain(..2).flatten().filter_map(|living| living.0) {
            let (code, lines) = run.end();
            assert_eq!(code, Some(0), "{:#?}", lines.last());
        }
        drop(stopping);
        people.map(|thread| thread.join().unwrap()).into_iter().flatten().collect::<BTreeMap<_, _>>()
    });
    folders.iter().for_each(|folder| assert_nothing_left(folder));
    let delivered: [Vec<Value>; 2] = folders.map(deliveries);
    println!("deliveries: {} and {}", delivered[0].len(), delivered[1].len());
    let answered =
        here.run(&["questions", "--status", "answered"]).data()["items"].as_array().unwrap().clone();
    let text = |record: &Value, key: &str| record[key].as_str().unwrap().to_owned();
    let answered: BTreeMap<String, String> =
        answered.iter().map(|record| (text(record, "question_id"), text(record, "answer"))).collect();
    println!("{} answers, {} of them acknowledged", answered.len(), acknowledged.len());
    for (id, answer) in &acknowledged {
        assert_eq!(answered.get(id), Some(answer), "an acknowledged answer is there");
    }
    check(&here, features, &delivered.concat(), &answered);
    for folder in folders {
        assert_eq!(folder.run(&["doctor", "--repair"]).data()["healthy"], true);
    }
}
