//! What the dashboard says beside questions: why a feature stands still, who worked on it, when a deadline is.

use crate::http_client::Server;
use crate::pages::Visit;
use crate::run_support::{Running, script, workshop};
use crate::support::{Project, question};
use serde_json::json;

#[test]
fn a_command_in_a_reason_is_marked_and_nothing_in_it_becomes_markup() {
    let project = Project::with_feature();
    project.ask("one");
    let reason = "see `aop log <x-evil>`, then `` or `";
    let blocked = json!({"feature_id": "shop", "to": "blocked", "reason": reason, "operation_id": "t"});
    project.create_feature("stuck");
    let stuck = json!({"feature_id": "stuck", "to": "blocked", "reason": reason, "operation_id": "s"});
    assert_ne!(project.tool("feature.transition", "human", &blocked).code, Some(0), "it waits for an answer");
    project.tool("feature.transition", "human", &stuck).data();
    let asked = json!({"feature_id": "stuck", "role": "builder", "session_id": "s", "operation_id": "q", "blocking": false,
        "question_type": "permission_override", "prompt": "Run `rm -rf build`?"});
    let asked = project.tool("feature.question_create", "builder", &asked).data();
    let server = Server::start(&project);
    let visit = Visit::sign_in(&server);
    let shown = "see <code>aop log &#60;x-evil&#62;</code>, then `` or `";
    let beside = format!("/questions/{}", asked["question_id"].as_str().unwrap());
    for path in ["/features", "/features/stuck", "/features/stuck/changes", &beside] {
        let page = visit.get(path).body;
        assert!(page.contains(shown) && !page.contains("<x-evil"), "{path}: {page}");
    }
    // What somebody asks to be allowed keeps every sign.
    let timeline = visit.get("/features/stuck").body;
    assert!(timeline.contains("(non-blocking permission_override): Run `rm -rf build`?"), "{timeline}");
}

#[test]
fn a_feature_that_no_run_works_on_says_so_until_one_does() {
    let project = workshop("");
    script(&project, "shop", &json!({"planner": [{"say": "Thinking."}, {"wait_ms": 60_000}]}));
    project.create_feature("shop");
    let server = Server::start(&project);
    let visit = Visit::sign_in(&server);
    let idle = "No run is active; start one with <code>aop run</code>.";
    for path in ["/features", "/features/shop", "/features/shop/changes", "/features/shop/transcripts"] {
        let page = visit.get(path).body;
        assert_eq!(page.matches(idle).count(), 1, "{path}: {page}");
    }
    let mut run = Running::start(&project, &[]);
    run.until("it is at work", |line| line["type"] == "engine.started");
    for path in ["/features", "/features/shop"] {
        let page = visit.get(path).body;
        assert!(page.contains("planner on scripted") && !page.contains(idle), "{path}: {page}");
    }
    run.interrupt();
    run.end();
    let page = visit.get("/features").body;
    assert!(page.contains(idle) && !page.contains("planner on scripted"), "{page}");
}

#[test]
fn whoever_answers_on_a_page_is_told_when_no_run_goes_on() {
    let project = Project::with_feature();
    let field =
        json!({"id": "a", "header": "Note", "question": "Anything?", "kind": "free_text", "required": false});
    let mut asks = question("shop", "one");
    asks["expected_answer"] = json!(null);
    asks["spec"] = json!({"version": 1, "topic": "t", "questions": [field]});
    project.tool("feature.question_create", "builder", &asks).data();
    let id = project.opened_question()["question_id"].as_str().unwrap().to_owned();
    let server = Server::start(&project);
    let visit = Visit::sign_in(&server);
    let (path, idle) = (format!("/questions/{id}"), "No run is active; start one with <code>aop run</code>.");
    for path in [&path, "/features", "/features/shop"] {
        let page = visit.get(path).body;
        assert_eq!(page.matches(idle).count(), 1, "{path}: {page}");
    }
    let page = visit.get(&path).body;
    assert!(page.contains("shop <b>goes on in planning</b>.") && page.contains(">optional<"), "{page}");
    let answer = json!({"feature_id": "shop", "question_id": id, "answer": {}, "answered_by": "ada",
        "operation_id": "a"});
    project.tool("feature.question_answer", "human", &answer).data();
    let page = visit.get(&path).body;
    assert!(page.contains("Nothing was filled in.") && page.matches(idle).count() == 1, "{page}");
}

#[test]
fn a_transcript_names_the_role_that_worked_and_when() {
    let project = workshop("");
    script(&project, "shop", &json!({"planner": [{"fail": "no"}]}));
    project.create_feature("shop");
    Running::start(&project, &["--exit-when-parked"]).end();
    let server = Server::start(&project);
    let visit = Visit::sign_in(&server);
    let page = visit.get("/features/shop/transcripts").body;
    assert!(page.contains("<th scope=\"row\">planner <span"), "{page}");
    let rows = page.matches("<th scope=\"row\">").count();
    assert_eq!(page.matches(" data-past>").count(), rows, "{page}");
    let link = page.split("<td><a href=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    assert!(visit.get(&link).body.contains("<h2>planner: transcript.jsonl</h2>"), "{link}");
    // One that no log tells of is listed by its name.
    let other = project.path(".aop/runs/r_01J9ZQ4V7K3M2N1P0R5S6T7V8W/shop/turn-other-1");
    std::fs::create_dir_all(&other).unwrap();
    std::fs::write(other.join("transcript.jsonl"), "{}").unwrap();
    let page = visit.get("/features/shop/transcripts").body;
    assert!(
        page.contains("<th scope=\"row\"><span class=\"mono muted\" dir=\"auto\">turn-other-1<"),
        "{page}"
    );
}

#[test]
fn a_deadline_says_when_and_in_how_much_time_and_one_that_is_not_there_says_that() {
    let project = Project::with_settings("policy: {execution: {human_input: {timeout_ms: 0}}}\n");
    let mut input = question("shop", "q");
    input["timeout_ms"] = json!(840_000);
    let first = project.tool("feature.question_create", "builder", &input).data();
    let server = Server::start(&project);
    let visit = Visit::sign_in(&server);
    let path = |asked: &serde_json::Value| format!("/questions/{}", asked["question_id"].as_str().unwrap());
    let page = visit.get(&path(&first)).body;
    let (_, told) = page.split_once("After <time ").unwrap();
    let words: String =
        told.split('<').filter_map(|part| part.split_once('>')).map(|(_, text)| text).collect();
    assert!(words.contains(" UTC (in 13 min), the question expires and shop is blocked"), "{words}");
    assert!(!page.contains("If nobody answers by"), "{page}");
    input["timeout_ms"] = json!(null);
    input["blocking"] = json!(false);
    input["operation_id"] = json!("r");
    let endless = serde_json::Map::from_iter(
        input.as_object().unwrap().clone().into_iter().filter(|(key, _)| key != "timeout_ms"),
    );
    project.create_feature("other");
    let mut endless = json!(endless);
    endless["feature_id"] = json!("other");
    let second = project.tool("feature.question_create", "builder", &endless).data();
    let page = visit.get(&path(&second)).body;
    assert!(page.contains("<p>Nothing happens by itself: it waits until somebody answers.</p>"), "{page}");
}

#[test]
fn activity_sums_up_what_is_asked_outside_any_feature_and_dates_its_chart() {
    let project = Project::with_feature();
    project.ask("one");
    let server = Server::start(&project);
    for operation in ["a", "b"] {
        server
            .send("POST", "/api/v1/questions", &json!({"prompt": "Which?", "operation_id": operation}))
            .data();
    }
    let page = Visit::sign_in(&server).get("/activity").body;
    assert_eq!(page.matches("<th scope=\"row\">outside any feature</th>").count(), 1, "{page}");
    assert!(!page.contains("ask-"), "{page}");
    let dates = page.split("<p class=\"ends\"").nth(1).unwrap().split("</p>").next().unwrap();
    assert_eq!(dates.matches("<span>20").count(), 2, "{dates}");
    assert!(page.contains("<dt>Total wait</dt>") && page.contains("<dt>Average</dt>"), "{page}");
}

#[test]
fn a_link_to_sign_in_promises_nothing_about_its_token() {
    let server = Server::start(&Project::with_feature());
    let page = server.request("GET", "/login?token=foo", &[("Accept", "text/html")], "").body;
    assert!(page.contains("Click to sign in with this link.") && !page.contains("you can answer"), "{page}");
}
