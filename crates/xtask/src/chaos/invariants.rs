//! What must hold after every round, whatever was done to the program. docs/guarantees.md lists these by name.

use super::random::Random;
use super::world::World;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A check by its name.
pub(super) type Invariant = (&'static str, fn(&mut World, &mut Random) -> Result<()>);

/// All of them, in the order they are checked.
pub(super) const ALL: &[Invariant] = &[
    ("doctor_is_content_after_repair", doctor_is_content_after_repair),
    ("replay_equals_store", replay_equals_store),
    ("log_has_no_gaps_and_only_grows", log_has_no_gaps_and_only_grows),
    ("acknowledged_is_there", acknowledged_is_there),
    ("retries_are_byte_identical", retries_are_byte_identical),
    ("one_operation_happens_once", one_operation_happens_once),
    ("one_blocking_question_per_feature", one_blocking_question_per_feature),
    ("nobody_invents_an_answer", nobody_invents_an_answer),
];

fn doctor_is_content_after_repair(world: &mut World, _: &mut Random) -> Result<()> {
    world.aop.ask(&["doctor", "--repair"])?.data()?;
    let doctor = world.aop.ask(&["doctor"])?;
    ensure!(doctor.data()?["healthy"] == true, "{doctor:?}");
    Ok(())
}

fn replay_equals_store(world: &mut World, _: &mut Random) -> Result<()> {
    let replay = world.aop.ask(&["replay"])?;
    ensure!(replay.data()?["matches_store"] == true, "{replay:?}");
    Ok(())
}

fn log_has_no_gaps_and_only_grows(world: &mut World, _: &mut Random) -> Result<()> {
    let mut log = world.aop.ask(&["log"])?.data()?;
    let log: Vec<Value> = log["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
    for (event, expected) in log.iter().zip(1_u64..) {
        ensure!(event["seq"] == expected, "event {expected} is missing: {event}");
    }
    ensure!(log.len() >= world.log.len(), "the log lost events: {} of {}", log.len(), world.log.len());
    for (was, is) in world.log.iter().zip(&log) {
        ensure!(was == is, "an event changed: {was} became {is}");
    }
    world.log = log;
    Ok(())
}

fn operations(log: &[Value]) -> BTreeMap<&str, Vec<&str>> {
    let mut by_operation: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for event in log {
        if let Some(id) = event["operation_id"].as_str() {
            by_operation.entry(id).or_default().push(event["type"].as_str().unwrap_or_default());
        }
    }
    by_operation
}

fn acknowledged_is_there(world: &mut World, _: &mut Random) -> Result<()> {
    let logged = operations(&world.log);
    for done in &world.acknowledged {
        ensure!(logged.contains_key(done.operation.id.as_str()), "acknowledged and not in the log: {done:?}");
    }
    Ok(())
}

fn retries_are_byte_identical(world: &mut World, random: &mut Random) -> Result<()> {
    for _ in 0..3 {
        let Some(done) = random.pick(&world.acknowledged).cloned() else { return Ok(()) };
        let again = world.aop.run(&done.operation.args, &[])?;
        ensure!(again.stdout == done.stdout, "{done:?} was repeated and gave {again:?}");
    }
    Ok(())
}

fn one_operation_happens_once(world: &mut World, _: &mut Random) -> Result<()> {
    for (id, types) in operations(&world.log) {
        for once in ["feature.created", "question.opened", "question.answered"] {
            let times = types.iter().filter(|found| **found == once).count();
            ensure!(times <= 1, "{id} made {times} events of type {once}");
        }
    }
    Ok(())
}

/// All questions of all states, page by page.
fn questions(world: &World) -> Result<Vec<Value>> {
    let mut listed = world.aop.ask(&["questions", "--status", "all", "--limit", "1000"])?.data()?;
    Ok(listed["items"].as_array_mut().map(std::mem::take).unwrap_or_default())
}

fn text<'a>(record: &'a Value, key: &str) -> &'a str {
    record[key].as_str().unwrap_or_default()
}

fn one_blocking_question_per_feature(world: &mut World, _: &mut Random) -> Result<()> {
    let questions = questions(world)?;
    let open = || questions.iter().filter(|question| question["status"] == "open");
    let mut holding = BTreeSet::new();
    for question in open().filter(|question| question["blocking"] == true) {
        let feature = text(question, "feature_id").to_owned();
        ensure!(holding.insert(feature), "a second blocking question is open: {question}");
    }
    let features = world.aop.ask(&["features", "list", "--all"])?.data()?;
    for feature in features["items"].as_array().context("a list of features")? {
        let waits = feature["status"] == "awaiting_input";
        let held = holding.contains(text(feature, "feature_id"));
        ensure!(waits == held, "it waits: {waits}, a blocking question is open: {held}: {feature}");
    }
    world.open = open()
        .map(|question| (text(question, "feature_id").to_owned(), text(question, "question_id").to_owned()))
        .collect();
    Ok(())
}

fn nobody_invents_an_answer(world: &mut World, _: &mut Random) -> Result<()> {
    for question in questions(world)?.iter().filter(|question| question["status"] == "answered") {
        let by = text(question, "answered_by");
        let given = world.given.get(text(question, "question_id")).map(Vec::as_slice).unwrap_or_default();
        let known = given.iter().any(|(who, what)| who == by && *what == question["answer"]);
        ensure!(known, "nobody gave this answer: {question}");
    }
    Ok(())
}
