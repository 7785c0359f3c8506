//! What becomes of somebody who is still typing when their question is closed.

use crate::support::{Project, binary, question};
use crate::terminal::{Keyboard, PROMPT};
use serde_json::{Value, json};

/// What reads the keys that the program leaves to others.
const SHELL: &str = "echo 'shell>'; read -r rest; echo got:$rest";

/// Presses what is meant for the shell, and gives the whole screen.
fn next(mut keyboard: Keyboard) -> String {
    keyboard.until("shell>");
    keyboard.press(b"next\n");
    keyboard.end()
}

/// Has a question asked that takes any text; its id.
fn asked(project: &Project, feature: &str, more: &Value) -> String {
    let mut input = question(feature, &format!("op-{feature}"));
    input["expected_answer"] = json!({"kind": "free_text"});
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let asked = project.tool("feature.question_create", "builder", &input).data();
    asked["question_id"].as_str().unwrap().to_owned()
}

#[test]
fn what_was_typed_for_a_question_that_expires_is_shown_and_its_last_keys_are_not_left_to_the_shell() {
    let project = Project::with_feature();
    project.create_feature("other");
    asked(&project, "shop", &json!({}));
    let mut answering = Keyboard::start(&project, &format!("{} answer; {SHELL}", binary()));
    answering.until(PROMPT);
    let id = asked(&project, "other", &json!({"timeout_ms": 8_000}));
    answering.press(b"one\r");
    answering.until("Answered");
    answering.until(PROMPT);
    answering.press(b"rm -rf");
    answering.until("not sent: rm -rf");
    answering.until(&format!("too late for {id}: expired: nobody answered in time"));
    answering.until(&format!("\n  aop reopen --feature-id other --question-id {id}"));
    answering.until("press Enter to go on");
    answering.press(b" folder\r");
    answering.until("1 answered, 1 expired; nothing else waits.");
    let seen = next(answering);
    assert!(seen.contains("got:next") && !seen.contains("folder"), "{seen}");
}

#[test]
fn a_secret_that_was_typed_and_not_sent_is_not_shown() {
    let project = Project::with_feature();
    let secret = json!({"id": "key", "header": "Key", "question": "Which key?", "kind": "free_text", "required": true,
        "secret": true});
    let spec = json!({"version": 1, "topic": "t", "questions": [secret]});
    let id = asked(&project, "shop", &json!({"spec": spec, "expected_answer": null}));
    let mut answering = Keyboard::start(&project, &format!("{} answer; {SHELL}", binary()));
    answering.until(PROMPT);
    answering.press(b"hunter2");
    answering.until("> *******");
    project.run(&["cancel", "--feature-id", "shop"]).data();
    answering.until("not sent: (not shown)");
    answering.until(&format!("too late for {id}: withdrawn"));
    answering.until("press Enter to go on");
    answering.press(b"\r");
    answering.until("1 withdrawn; nothing else waits.");
    let seen = next(answering);
    assert!(!seen.contains("hunter") && !seen.contains("aop reopen"), "{seen}");
}

#[test]
fn what_was_chosen_and_typed_among_several_is_shown_when_it_can_not_be_sent() {
    let project = Project::with_feature();
    let several = json!({"kind": "multi_choice", "choices": ["Linux", "macOS"], "allow_other": true});
    let id = asked(&project, "shop", &json!({"expected_answer": several}));
    let mut answering = Keyboard::start(&project, &format!("{} answer", binary()));
    answering.until(PROMPT);
    answering.press(b" \x1b[A\r");
    answering.until("your own answer: enter to add it");
    answering.press(b"BSD\r");
    answering.until("Added: BSD.");
    answering.press(b"Plan");
    answering.until("> Plan");
    project.answer(&id, r#"["macOS"]"#).data();
    answering.until("not sent: Linux, BSD, Plan");
    answering.until("press Enter to go on");
    answering.press(b"\r");
    let seen = answering.end();
    assert!(seen.contains("1 answered elsewhere; nothing else waits."), "{seen}");
}

#[test]
fn a_script_that_asks_goes_on_when_whoever_typed_has_seen_that_somebody_was_faster() {
    let project = Project::new();
    let mut asking = Keyboard::start(&project, &format!("{} ask 'Anybody?' --plain; {SHELL}", binary()));
    let question = project.opened_question();
    asking.until(PROMPT);
    asking.press(b"no, ne");
    asking.until("> no, ne");
    project.answer_to(&question, "yes").data();
    asking.until("not sent: no, ne");
    asking.until("Answered elsewhere, by human ");
    asking.until("press Enter to go on, or type nothing for 10 s");
    asking.press(b"ver\r");
    let seen = next(asking);
    assert!(seen.contains("yes\nshell>") && seen.contains("got:next"), "{seen}");
}
