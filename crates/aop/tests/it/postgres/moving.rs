//! A runner that does not come back: its features wait for it, or go on elsewhere in a new session that is told the
//! answer. Which of the two is said.

use super::runners::{at_work, clone_of, eventually, folder, script_in};
use crate::run_support::{
    Running, ask, assert_nothing_left, built, deliveries, events, heard, pass, plan, script, workshop,
};
use crate::support::Project;
use serde_json::{Value, json};

/// A feature whose `role` asks at the first runner, which is then killed; the question, answered by nobody.
fn left_behind(here: &Project, feature: &str, role: &str, end: Value) -> Value {
    let work = json!({"write": {"path": "work.txt", "text": "half\n"}});
    script(here, feature, &json!({role: [work, ask("Which of the two?"), end]}));
    here.create_feature(feature);
    at_work(here).question(feature)
}

#[test]
fn a_planner_whose_runner_is_gone_is_asked_anew_elsewhere_with_the_answer_once() {
    let here = workshop("runners: { away_ms: 1 }\n");
    let there = clone_of(&here);
    let question = left_behind(&here, "shop", "planner", plan());
    script(&there, "shop", &json!({}));
    there.answer_to(&question, "yes").data();
    let mut run = at_work(&there);
    let said = run.until("the word where it goes on", |line| line["type"] == "feature.noted");
    let text = said["note"].as_str().unwrap();
    assert!(text.contains(&folder(&here)) && text.contains("is gone since"), "{text}");
    assert!(text.contains("in a new session"), "{text}");
    assert_eq!(run.end().0, Some(0));
    let claim = format!("reply:{}", question["question_id"].as_str().unwrap());
    let began = events(&there, "shop", "turn.began");
    assert_eq!(began.iter().filter(|event| event["claim"] == claim.as_str()).count(), 1, "{began:#?}");
    let told = heard(&there);
    let anew: Vec<&String> =
        told.iter().filter(|text| text.contains("An earlier session of yours")).collect();
    assert_eq!(anew.len(), 1, "{told:#?}");
    assert!(anew[0].contains("Which of the two?") && anew[0].contains("yes"), "{}", anew[0]);
    let notes = events(&there, "shop", "feature.noted");
    assert_eq!(
        notes.iter().filter(|event| event["note"] == text).count(),
        1,
        "the log says it once: {notes:#?}"
    );
    // Whoever comes back finds nothing to do.
    assert_eq!(Running::start(&here, &[]).end().0, Some(0));
    assert_eq!(
        (deliveries(&here).len(), deliveries(&there).len()),
        (0, 0),
        "nobody answers a call of no session"
    );
    assert_nothing_left(&here);
    assert_nothing_left(&there);
}

#[test]
fn work_that_was_not_brought_along_is_said_to_be_missing() {
    let here = workshop("runners: { away_ms: 1 }\n");
    let there = clone_of(&here);
    let question = left_behind(&here, "shop", "builder", built());
    script(&there, "shop", &json!({}));
    let run = at_work(&there);
    there.answer_to(&question, "no").data();
    let (code, lines) = run.end();
    assert_eq!(code, Some(0), "{lines:#?}");
    let note = events(&there, "shop", "feature.noted")[0]["note"].as_str().unwrap().to_owned();
    assert!(note.contains("stays there") && note.contains("so does the branch aop/shop"), "{note}");
    there.run(&["merge", "--feature-id", "shop"]).data();
    assert!(there.path("work.txt").exists());
}

#[test]
fn qa_does_not_judge_work_that_stayed_elsewhere() {
    let here = workshop("runners: { away_ms: 1 }\n");
    let there = clone_of(&here);
    let question = left_behind(&here, "shop", "qa", pass());
    script(&there, "shop", &json!({}));
    there.answer_to(&question, "yes").data();
    let (code, lines) = Running::start(&there, &[]).end();
    assert_eq!(code, Some(0), "{lines:#?}");
    let roles: Vec<Value> =
        events(&there, "shop", "turn.began").iter().map(|event| event["role"].clone()).collect();
    assert_eq!(roles, ["planner", "builder", "qa", "builder", "qa"], "the builder had to do it again");
    let told = heard(&there);
    assert!(told.iter().any(|text| text.contains("Which of the two?") && text.contains("yes")), "{told:#?}");
}

#[test]
fn a_feature_waits_for_its_own_runner_for_ever_where_the_settings_say_so() {
    let here = workshop("runners: { away_ms: 0 }\n");
    let there = clone_of(&here);
    let question = left_behind(&here, "shop", "builder", built());
    there.answer_to(&question, "yes").data();
    let mut other = at_work(&there);
    let waits = other.until("the word that it waits", |line| line["type"] == "feature.waits");
    assert!(waits["text"].as_str().unwrap().contains("waits for its runner"), "{waits}");
    assert_eq!(Running::start(&here, &[]).end().0, Some(0));
    assert_eq!(other.end().0, Some(0));
    assert_eq!((deliveries(&here).len(), deliveries(&there).len()), (1, 0));
    assert_eq!(deliveries(&here)[0]["answer"], "yes");
}

#[test]
fn a_runner_that_is_forgotten_is_not_waited_for() {
    let here = workshop("runners: { away_ms: 0 }\n");
    let there = clone_of(&here);
    let question = left_behind(&here, "shop", "builder", built());
    script_in(&[&there], "shop", &json!({}));
    there.answer_to(&question, "yes").data();
    let mut other = at_work(&there);
    other.until("the word that it waits", |line| line["type"] == "feature.waits");
    let id = std::fs::read_to_string(here.path(".aop/runner")).unwrap().trim().to_owned();
    there.run(&["runners", "forget", &id]).data();
    there.run(&["runners", "forget", &id]).refused("invalid_argument", 2);
    assert_eq!(other.end().0, Some(0));
    let note = events(&there, "shop", "feature.noted")[0]["note"].as_str().unwrap().to_owned();
    assert!(note.contains(&format!("{id} was given up")), "{note}");
    eventually("one runner is left", || {
        there.run(&["runners"]).data()["runners"].as_array().unwrap().len() == 1
    });
}
