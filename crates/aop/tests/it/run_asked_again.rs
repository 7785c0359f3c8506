//! What `aop run` does with questions that a person asks again.

use crate::run_rules::{packet, spec};
use crate::run_support::{
    Running, ask, assert_nothing_left, built, deliveries, events, pass, plan, script, workshop,
};
use crate::support::{Project, question};
use serde_json::{Value, json};

/// Asks a closed question again; what to answer it with.
fn reopen(project: &Project, question: &Value) -> Value {
    let id = question["question_id"].as_str().unwrap();
    let again = project.run(&["reopen", "--feature-id", "shop", "--question-id", id]).data();
    json!({"feature_id": "shop", "question_id": again["question_id"]})
}

fn withdraw(project: &Project, question: &Value) {
    let id = question["question_id"].as_str().unwrap();
    project.run(&["withdraw", "--feature-id", "shop", "--question-id", id]).data();
}

/// What the sessions of the scripted engine hold, as text.
fn sessions(project: &Project) -> String {
    let files = std::fs::read_dir(project.path(".aop/scripted/sessions")).unwrap();
    files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect()
}

/// Runs the feature until it waits; the question.
fn parked(project: &Project) -> Value {
    let mut run = Running::start(project, &["--exit-when-parked", &spec(project, "shop")]);
    let question = run.question("shop");
    assert_eq!(run.end().0, Some(3));
    question
}

#[test]
fn the_answer_to_a_question_asked_again_reaches_its_worker_also_when_all_was_done_without_it() {
    let project = workshop("");
    let fail = json!({"finish": {"verdict": "fail", "summary": "the risk is not accepted"}});
    script(
        &project,
        "shop",
        &json!({"builder": [built(), built()], "qa": [ask("Is the risk taken?"), pass(), fail, pass()]}),
    );
    let mut run = Running::start(&project, &[&spec(&project, "shop")]);
    let question = run.question("shop");
    withdraw(&project, &question);
    assert_eq!(run.end().0, Some(0));
    assert_eq!(project.feature("shop")["status"], "ready_to_merge");
    let again = reopen(&project, &question);
    assert_eq!(project.answer_to(&again, "no").data()["feature_status"], "qa");
    project.run(&["merge", "--feature-id", "shop"]).refused("invalid_status_transition", 1);
    let (code, lines) = Running::start(&project, &[]).end();
    assert_eq!(code, Some(0));
    let began = lines.iter().filter(|line| line["type"] == "turn.began").collect::<Vec<_>>();
    assert_eq!((&began[0]["role"], &began[0]["reply_to"]), (&json!("qa"), &again["question_id"]));
    assert!(lines.iter().any(|line| line["from"] == "qa" && line["to"] == "building"), "qa has decided anew");
    let told = sessions(&project);
    let words = "answered: \\\"no\\\". Act on this answer.";
    assert!(told.contains("Is the risk taken?") && told.contains(words), "{told}");
}

#[test]
fn a_question_that_a_person_opens_in_a_workers_name_stops_the_turn() {
    let project = workshop("");
    let writes = json!({"write": {"path": "late.txt", "text": "late"}});
    let steps = |then: Value| json!({"planner": [ask("Which?"), then, writes, plan(), plan()]});
    script(&project, "shop", &steps(json!({"wait_ms": 60000})));
    let question = parked(&project);
    withdraw(&project, &question);
    let mut run = Running::start(&project, &["--exit-when-parked"]);
    run.until("the turn that is told so", |line| line["reply_to"] == question["question_id"]);
    let again = reopen(&project, &question);
    let (code, lines) = run.end();
    assert_eq!(code, Some(3));
    assert!(!lines.iter().any(|line| line["type"] == "turn.ended" && line["end"]["outcome"] == "final"));
    assert!(!project.path(".aop/worktrees/shop/late.txt").exists(), "nobody works on it while it waits");
    assert_nothing_left(&project);
    script(&project, "shop", &steps(json!({"say": "quicker"})));
    project.answer_to(&again, "no").data();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0), "what was cut off goes on, and is told");
    let began = events(&project, "shop", "turn.began");
    let told = began.iter().filter(|event| event["reply_to"] == again["question_id"]);
    assert_eq!(told.count(), 1);
    assert!(sessions(&project).contains("answered: \\\"no\\\""));
}

#[test]
fn a_question_that_a_person_opens_in_a_workers_name_stops_the_check() {
    let project = workshop("checks: { fast: [\"until test -e ../../../go; do sleep 0.05; done\"] }\n");
    script(&project, "shop", &json!({"builder": [ask("Which?"), built(), built()]}));
    let question = parked(&project);
    withdraw(&project, &question);
    let mut run = Running::start(&project, &["--exit-when-parked"]);
    run.until("the check", |line| line["type"] == "check.began");
    let again = reopen(&project, &question);
    assert_eq!(run.end().0, Some(3));
    assert_eq!(events(&project, "shop", "check.ended").len(), 0, "no check ends while it waits");
    assert_nothing_left(&project);
    std::fs::write(project.path("go"), "").unwrap();
    project.answer_to(&again, "no").data();
    let (code, lines) = Running::start(&project, &[]).end();
    assert_eq!(code, Some(0));
    let first = lines.iter().find(|line| line["type"] == "turn.began").unwrap();
    assert_eq!((&first["role"], &first["reply_to"]), (&json!("builder"), &again["question_id"]));
}

#[test]
fn a_gate_opens_on_the_answer_to_its_question_that_was_asked_again() {
    let project = workshop("policy: { execution: { human_input: { timeout_ms: 1000 } } }\n");
    script(&project, "shop", &json!({}));
    let packets = project.path(".aop/features/shop/packets");
    std::fs::create_dir_all(&packets).unwrap();
    std::fs::write(packets.join("planning.json"), packet().to_string()).unwrap();
    let question = {
        let mut run = Running::start(&project, &[&spec(&project, "shop")]);
        let question = run.question("shop");
        assert_eq!(run.end().0, Some(3), "blocked by the timeout");
        question
    };
    let again = reopen(&project, &question);
    project.answer_to(&again, "Web").data();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0));
    assert_eq!(events(&project, "shop", "question.opened").len(), 2, "nobody is asked a third time");
    let text = std::fs::read_to_string(project.path("answers/platform.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["answers"]["platform"], "Web");
}

#[test]
fn a_gate_that_nobody_answers_blocks_its_feature_under_any_policy_and_retry_asks_anew() {
    let project = workshop("policy: { execution: { human_input: { strict: false, timeout_ms: 1000 } } }\n");
    script(&project, "shop", &json!({}));
    let packets = project.path(".aop/features/shop/packets");
    std::fs::create_dir_all(&packets).unwrap();
    std::fs::write(packets.join("building.json"), packet().to_string()).unwrap();
    let mut run = Running::start(&project, &[&spec(&project, "shop")]);
    let first = run.question("shop");
    assert_eq!(run.end().0, Some(3), "blocked");
    let feature = project.feature("shop");
    let id = first["question_id"].as_str().unwrap();
    let next = format!("aop reopen --feature-id shop --question-id {id}");
    assert!(feature["status_reason"].as_str().unwrap().contains(&next), "{feature}");
    assert_eq!(events(&project, "shop", "question.opened").len(), 1);
    let expired = events(&project, "shop", "question.expired");
    assert_eq!(expired[0]["resolution"]["mode"], "expired", "no engine is there to decide");
    let settings = std::fs::read_to_string(project.path("aop.yaml")).unwrap();
    std::fs::write(project.path("aop.yaml"), settings.replace("1000", "0")).unwrap();
    project.run(&["retry", "--feature-id", "shop"]).data();
    let mut run = Running::start(&project, &[]);
    let second = run.question("shop");
    assert_ne!(second["question_id"], first["question_id"]);
    project.answer_to(&second, "Web").data();
    assert_eq!(run.end().0, Some(0));
}

#[test]
fn a_gate_is_asked_also_before_a_first_turn_that_begins_with_an_answer() {
    let project = workshop("");
    script(&project, "shop", &json!({}));
    let packets = project.path(".aop/features/shop/packets");
    std::fs::create_dir_all(&packets).unwrap();
    std::fs::write(packets.join("building.json"), packet().to_string()).unwrap();
    project.create_feature("shop");
    // In the builder's name, while it is planned.
    let early = project.tool("feature.question_create", "human", &question("shop", "early")).data();
    withdraw(&project, &early);
    let again = reopen(&project, &early);
    project.answer_to(&again, "yes").data();
    let mut run = Running::start(&project, &[]);
    let gate = run.question("shop");
    assert_eq!((&gate["role"], &gate["resume_status"]), (&json!("orchestrator"), &json!("building")));
    assert_eq!(events(&project, "shop", "turn.began").len(), 1, "only the planner's");
    project.answer_to(&gate, "Web").data();
    assert_eq!(run.end().0, Some(0));
    let began = events(&project, "shop", "turn.began");
    assert_eq!((&began[1]["role"], &began[1]["reply_to"]), (&json!("builder"), &again["question_id"]));
}

#[test]
fn a_question_of_a_turn_that_was_cut_off_stays_its_own_when_a_person_asks_it_again() {
    let in_words = json!({"type": "REQUEST", "request": {"action": "ask_user_input", "prompt": "Which?"}});
    let in_words = json!({"ask_prose": in_words.to_string()});
    for (asks, dies) in [(ask("Which?"), "question_recorded"), (in_words, "turn_judged")] {
        let project = workshop("");
        script(&project, "shop", &json!({"planner": [asks, plan()]}));
        let dying = [("AOP_CRASH_AT", dies)];
        let (code, _) = Running::start_with(&project, &[&spec(&project, "shop")], &dying).end();
        assert_eq!(code, None, "{dies}");
        let asked = project.run(&["questions", "--feature-id", "shop"]).data()["items"][0].clone();
        withdraw(&project, &asked);
        let again = reopen(&project, &asked);
        project.answer_to(&again, "no").data();
        assert_eq!(Running::start(&project, &[]).end().0, Some(0), "{dies}");
        let ended = events(&project, "shop", "turn.ended");
        assert_eq!(ended[0]["end"]["question_id"], again["question_id"], "{dies}: {:#}", ended[0]);
        let heard = deliveries(&project).iter().map(|line| line["question_id"].clone()).collect::<Vec<_>>();
        assert_eq!(heard, [again["question_id"].clone()], "{dies}");
    }
}

#[test]
fn a_turn_whose_phase_a_person_leaves_is_stopped_and_gets_its_end() {
    let project = workshop("");
    script(&project, "shop", &json!({"builder": [{"wait_ms": 120_000}, built()]}));
    let mut run = Running::start(&project, &[&spec(&project, "shop")]);
    run.until("the builder", |line| line["type"] == "engine.started" && line["claim"] == "turn:shop:2");
    let on = json!({"feature_id": "shop", "to": "qa", "operation_id": "on"});
    project.tool("feature.transition", "human", &on).data();
    assert_eq!(run.end().0, Some(0));
    let ended = events(&project, "shop", "turn.ended");
    let roles: Vec<&Value> = ended.iter().map(|event| &event["role"]).collect();
    assert_eq!(roles, ["planner", "builder", "qa"]);
    assert_eq!(ended[1]["end"]["code"], "version_conflict", "{:#}", ended[1]);
    assert_nothing_left(&project);
}

#[test]
fn a_turn_whose_phase_is_left_by_an_earlier_question_asked_again_gets_its_end_and_its_session_the_answer_once()
 {
    for when in
        ["question_recorded", "turn_claimed", "turn_began", "turn_spawned", "turn_played", "under way"]
    {
        let project = workshop("");
        let waits = json!({"wait_ms": if when == "under way" { 60000 } else { 0 }});
        let steps = |waits| json!({"planner": [ask("Which plan?"), plan(), plan()], "builder": [ask("Which?"), waits, built(), built()]});
        script(&project, "shop", &steps(waits));
        let earlier = parked(&project);
        withdraw(&project, &earlier);
        let dies = [("AOP_CRASH_AT", when)];
        let dies = |at: bool| if at { &dies[..] } else { &[] };
        // The builder is killed as soon as it has asked, or with the answer, or not at all.
        let mut run =
            Running::start_with(&project, &["--exit-when-parked"], dies(when == "question_recorded"));
        run.until("the builder", |line| line["type"] == "turn.began" && line["role"] == "builder");
        run.end();
        let question = project.run(&["questions"]).data()["items"][0].clone();
        project.answer_to(&question, "no").data();
        let again = if when == "under way" {
            let mut run = Running::start(&project, &["--exit-when-parked"]);
            run.until("the turn", |line| line["reply_to"] == question["question_id"]);
            let again = reopen(&project, &earlier);
            assert_eq!(run.end().0, Some(3));
            again
        } else {
            if when != "question_recorded" {
                assert_eq!(
                    Running::start_with(&project, &[], dies(true)).end().0,
                    None,
                    "{when} was not reached"
                );
            }
            reopen(&project, &earlier)
        };
        script(&project, "shop", &steps(json!({"say": "quicker"})));
        assert_eq!(project.answer_to(&again, "yes").data()["feature_status"], "planning", "{when}");
        assert_eq!(Running::start(&project, &[]).end().0, Some(0), "{when}");
        assert_eq!(project.feature("shop")["status"], "ready_to_merge", "{when}");
        assert_eq!(events(&project, "shop", "question.opened").len(), 3, "{when}: nobody is asked twice");
        let (began, ended) = (events(&project, "shop", "turn.began"), events(&project, "shop", "turn.ended"));
        let claims = |events: &[Value]| events.iter().map(|event| event["claim"].clone()).collect::<Vec<_>>();
        assert_eq!(claims(&began), claims(&ended), "{when}: every turn has its end");
        let told =
            deliveries(&project).iter().filter(|line| line["question_id"] == question["question_id"]).count();
        assert_eq!(told, 1, "{when}: {:#?}", deliveries(&project));
        project.assert_healthy();
    }
}
