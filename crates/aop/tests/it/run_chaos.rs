//! Chaos: many features whose agents ask at random, answered at random, while `aop run` is killed again and again. Every
//! feature comes to its end, every answer reaches its session once, and no process is left behind.
//!
//! A short run by default; `AOP_CHAOS=full` (part of `cargo xtask test --nightly`) is fifty features for a minute.

use crate::run_support::{
    Running, ask, assert_nothing_left, built, deliveries, events, pass, plan, script, workshop,
};
use crate::support::Project;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Numbers that look random and are the same every time.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// Steps of a role: some waits, some asks, the end.
fn steps(dice: &mut Dice, end: Value) -> Value {
    let mut steps = Vec::new();
    for number in 0..dice.roll(3) {
        steps.push(json!({"wait_ms": dice.roll(60)}));
        steps.push(if dice.roll(4) == 0 {
            json!({"ask_prose": format!("In prose, number {number}?")})
        } else {
            ask("Which?")
        });
    }
    steps.push(json!({"wait_ms": dice.roll(60)}));
    steps.push(end);
    json!(steps)
}

/// Scenarios of many features in every folder that may play them, and the files that enrol them from the first.
pub(crate) fn furnish(folders: &[&Project], features: usize, dice: &mut Dice) -> Vec<String> {
    let mut furnish_one = |number: usize| {
        let name = format!("f{number}");
        let roles = json!({"planner": steps(dice, plan()), "builder": steps(dice, built()), "qa": steps(dice, pass())});
        folders.iter().for_each(|folder| script(folder, &name, &roles));
        let path = folders[0].path(&format!("{name}.md"));
        std::fs::write(&path, format!("# Feature {number}\n")).unwrap();
        path.display().to_string()
    };
    (0..features).map(&mut furnish_one).collect()
}

/// Answers whatever is open, now and then, until told to stop. What was answered.
fn answer_at_random(project: &Project, stop: &AtomicBool, mut dice: Dice) -> BTreeMap<String, String> {
    let mut answered = BTreeMap::new();
    while !stop.load(Ordering::SeqCst) {
        let items = project.run(&["questions"]).data()["items"].as_array().unwrap().clone();
        for question in items {
            if dice.roll(3) == 0 {
                continue;
            }
            let answer = if dice.roll(2) == 0 { "yes" } else { "no" };
            if project.answer_to(&question, answer).code == Some(0) {
                answered.insert(question["question_id"].as_str().unwrap().to_owned(), answer.to_owned());
            }
        }
        std::thread::sleep(Duration::from_millis(30));
    }
    answered
}

#[test]
fn chaos_killed_again_and_again_every_feature_ends_and_every_answer_arrives_once() {
    let full = std::env::var("AOP_CHAOS").is_ok_and(|value| value == "full");
    let (features, length) = if full { (50, Duration::from_secs(60)) } else { (10, Duration::from_secs(6)) };
    let project = workshop("run: { max_parallel: 8 }\n");
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let specs = furnish(&[&project], features, &mut dice);
    let specs: Vec<&str> = specs.iter().map(String::as_str).collect();
    let stop = AtomicBool::new(false);
    let answered = std::thread::scope(|scope| {
        let answerer = scope.spawn(|| answer_at_random(&project, &stop, Dice(77)));
        let began = Instant::now();
        let mut kills = 0;
        let mut enrolled: &[&str] = &specs;
        while began.elapsed() < length {
            let run = Running::start(&project, enrolled);
            enrolled = &[];
            std::thread::sleep(Duration::from_millis(300 + dice.roll(1_200)));
            // Dropped: killed with SIGKILL.
            drop(run);
            kills += 1;
        }
        let (code, lines) = Running::start(&project, &[]).end();
        stop.store(true, Ordering::SeqCst);
        assert_eq!(code, Some(0), "{lines:#?}");
        println!("{kills} kills");
        answerer.join().unwrap()
    });
    assert_nothing_left(&project);
    project.assert_healthy();
    check(&project, features, &deliveries(&project), &answered);
}

/// Every feature has arrived, every answer reached its session once, and nothing began twice.
#[expect(clippy::print_stdout, reason = "figures for whoever looks at the output of the test")]
pub(crate) fn check(
    project: &Project,
    features: usize,
    delivered: &[Value],
    answered: &BTreeMap<String, String>,
) {
    let mut resumes: BTreeMap<String, usize> = BTreeMap::new();
    let mut cut_off = BTreeSet::new();
    let mut opened = 0;
    let mut prose = 0;
    for number in 0..features {
        let name = format!("f{number}");
        assert_eq!(project.feature(&name)["status"], "ready_to_merge", "{name}");
        for event in events(project, &name, "turn.began") {
            *resumes.entry(event["claim"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        let cut = events(project, &name, "turn.continued").into_iter();
        cut_off.extend(cut.map(|event| event["claim"].as_str().unwrap().to_owned()));
        for event in events(project, &name, "question.opened") {
            opened += 1;
            prose += usize::from(event["question"]["engine_ref"]["call_id"].is_null());
        }
    }
    println!("{opened} questions, {prose} of them in prose, {} deliveries", delivered.len());
    assert_eq!(answered.len(), opened, "everything that was asked was answered");
    for (id, answer) in answered {
        let lines: Vec<&Value> = delivered.iter().filter(|line| line["question_id"] == id.as_str()).collect();
        assert_eq!(lines.len(), 1, "{id} was delivered once: {lines:?}");
        assert_eq!(lines[0]["answer"], answer.as_str());
        // An answer that was there before the engine could be parked is told live, within the turn that asked.
        let claim = lines[0]["claim"].as_str().unwrap();
        let resume = format!("reply:{id}");
        assert_eq!(resumes.get(claim), Some(&1), "{id}: {claim} began once");
        // A turn that was cut off right after that goes on as a resume, and is not told again.
        assert!(
            resumes.contains_key(&resume) == (claim == resume) || cut_off.contains(claim),
            "{id} was resumed, or told live, not both"
        );
    }
    for (claim, times) in resumes {
        assert_eq!(times, 1, "{claim} began once");
    }
    assert_eq!(delivered.len(), opened, "nothing else was delivered");
}
