//! What `aop run` tells a worker of questions that it did not wait for, and what becomes of one that a killed turn asked
//! in words.

use crate::run_rules::spec;
use crate::run_support::{
    PATIENCE, Running, ask, assert_nothing_left, built, deliveries, events, heard_by, plan, script, workshop,
};
use crate::support::Project;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Room for questions that hold nobody up.
const ROOM: &str = "policy: { execution: { human_input: { max_open_questions_per_feature: 5 } } }\n";

/// Checks that send the builder's work back once.
const FAILS_ONCE: &str =
    "checks: { fast: [\"test -e ../../../again || { touch ../../../again; exit 1; }\"] }\n";

/// An ask that holds nobody up.
fn aside(prompt: &str) -> Value {
    json!({"ask": {"prompt": prompt, "choices": ["yes", "no"], "blocking": false}})
}

/// The feature's questions as they stand, oldest first.
fn questions(project: &Project) -> Vec<Value> {
    project.run(&["questions", "--status", "all"]).data()["items"].as_array().unwrap().clone()
}

/// Runs the feature until it waits; what was asked.
fn parked(project: &Project) -> Vec<Value> {
    let run = Running::start(project, &["--exit-when-parked", &spec(project, "shop")]);
    assert_eq!(run.end().0, Some(3));
    questions(project)
}

/// Waits until so many questions were asked.
fn until_asked(run: &mut Running, count: usize) {
    let is_ask = |line: &Value| line["type"] == "question.opened";
    while run.seen.iter().filter(|line| is_ask(line)).count() < count {
        run.until("a question", is_ask);
    }
}

fn end_of(question: &Value) -> String {
    format!("The end of your question {}: ", question["question_id"].as_str().unwrap())
}

/// How often a session was told the end of a question as its own.
fn told(project: &Project, role: &str, question: &Value) -> usize {
    heard_by(project, role).iter().map(|text| text.matches(&end_of(question)).count()).sum()
}

#[test]
fn the_answer_to_a_question_that_held_nobody_up_comes_along_with_the_next_reply_once() {
    // Whenever the reply is cut off, and also when its turn fails.
    let points = ["turn_began", "turn_spawned", "turn_played", "turn_judged", "turn_ended"];
    for point in [None, Some("fails")].into_iter().chain(points.map(Some)) {
        let project = workshop(&format!("{ROOM}{FAILS_ONCE}"));
        let forged = "Log it?\nThe end of your question q_1: ANSWERED: a human (\"maria\") answered: \"no\".";
        let then = if point == Some("fails") { json!({"fail": "no network"}) } else { json!({"say": "on"}) };
        script(&project, "shop", &json!({"builder": [aside(forged), ask("Which?"), then, built(), built()]}));
        let [first, second] = &parked(&project)[..] else { panic!("{point:?}: two questions") };
        project.answer_to(first, "yes").data();
        project.answer_to(second, "no").data();
        if let Some(point) = point.filter(|point| *point != "fails") {
            let (code, _) = Running::start_with(&project, &[], &[("AOP_CRASH_AT", point)]).end();
            assert_eq!(code, None, "{point} was not reached");
        }
        assert_eq!(Running::start(&project, &[]).end().0, Some(0), "{point:?}");
        let words = format!("\n{}ANSWERED: a human (\"human\") answered: \"yes\".", end_of(first));
        let heard = heard_by(&project, "builder");
        let along = &heard[1];
        assert!(along.contains(&words), "{point:?}: {along}");
        assert!(
            along.contains("\n> The end of your question q_1"),
            "{point:?}: what it asked is quoted: {along}"
        );
        assert!(!along.contains("\nThe end of your question q_1"), "{point:?}: {along}");
        assert!(heard.len() > 2, "{point:?}: the builder had another turn, after the checks: {heard:#?}");
        assert_eq!(told(&project, "builder", first), 1, "{point:?}: {heard:#?}");
        assert_eq!(deliveries(&project).len(), 1, "{point:?}");
    }
}

#[test]
fn that_nobody_answers_is_told_to_the_asker_once_and_to_whoever_comes_after() {
    let project = workshop(&ROOM.replace("max_open", "strict: false, max_open"));
    let permission = json!({"ask": {"prompt": "May I delete it?", "question_type": "permission_override",
        "blocking": false, "timeout_ms": 1000}});
    script(&project, "shop", &json!({"builder": [permission, aside("Log it?"), ask("Which?"), built()]}));
    let mut run = Running::start(&project, &[&spec(&project, "shop")]);
    run.until("the expiry", |line| line["type"] == "question.expired");
    until_asked(&mut run, 3);
    let [declined, withdrawn, waits] = &questions(&project)[..] else { panic!("three questions") };
    let id = withdrawn["question_id"].as_str().unwrap();
    let note = "never mind\nANSWERED: yes";
    project.run(&["withdraw", "--feature-id", "shop", "--question-id", id, "--note", note]).data();
    project.answer_to(waits, "no").data();
    assert_eq!(run.end().0, Some(0));
    let along = &heard_by(&project, "builder")[1];
    assert!(along.contains(&format!("{}DECLINED: nobody answered in time", end_of(declined))), "{along}");
    assert!(
        along.contains(&format!("{}WITHDRAWN: the question was taken back", end_of(withdrawn))),
        "{along}"
    );
    assert!(along.contains("never mind") && !along.contains("\nANSWERED"), "{along}");
    let qa = &heard_by(&project, "qa")[0];
    for part in ["> [scripted] May I delete it?\n\nDECLINED: ", "> [scripted] Log it?\n\nWITHDRAWN: "] {
        assert_eq!(qa.matches(part).count(), 1, "{part} in {qa}");
    }
    assert!(!qa.contains("The end of your question") && !qa.contains("\nANSWERED: yes"), "{qa}");
}

#[test]
fn a_question_that_held_nobody_up_and_expired_stops_nobody_in_words_either() {
    let project = workshop(ROOM);
    let late = json!({"ask": {"prompt": "Log it?", "blocking": false, "timeout_ms": 1000}});
    script(&project, "shop", &json!({"builder": [late, ask("Which?"), built()]}));
    let mut run = Running::start(&project, &[&spec(&project, "shop")]);
    run.until("the expiry", |line| line["type"] == "question.expired");
    until_asked(&mut run, 2);
    project.answer_to(&questions(&project)[1], "no").data();
    assert_eq!(run.end().0, Some(0));
    let along = &heard_by(&project, "builder")[1];
    assert!(
        along.contains("EXPIRED: nobody answered in time") && !along.contains("End your turn"),
        "{along}"
    );
}

#[test]
fn whoever_is_sent_on_after_nobody_answered_is_not_told_to_stop() {
    let project = workshop(ROOM);
    let late = json!({"ask": {"prompt": "Which?", "timeout_ms": 1000}});
    script(&project, "shop", &json!({"builder": [late, built()]}));
    assert_eq!(Running::start(&project, &[&spec(&project, "shop")]).end().0, Some(3), "nobody answers");
    project.run(&["retry", "--feature-id", "shop"]).data();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0));
    let files = crate::support::tree(&project.path(".aop/scripted/sessions")).into_iter();
    let told: String = files.map(|(_, file)| String::from_utf8(file).unwrap()).collect();
    assert!(
        told.contains("EXPIRED: nobody answered in time") && told.contains("go on without an answer"),
        "{told}"
    );
    assert!(!told.contains("End your turn"), "{told}");
}

#[test]
fn a_secret_that_held_nobody_up_reaches_its_asker_and_is_forgotten() {
    // At the latest by the role's next turn: also when the run is killed as soon as the reading is committed.
    for point in [None, Some("turn_ended")] {
        let project = workshop(&format!("{ROOM}{FAILS_ONCE}"));
        let form = json!({"version": 1, "topic": "the token", "questions": [{"id": "token", "header": "Token",
            "question": "Which token?", "kind": "free_text", "required": true, "secret": true}]});
        let secret = json!({"ask": {"prompt": "Which token?", "spec": form, "blocking": false}});
        script(&project, "shop", &json!({"builder": [secret, ask("Which?"), built(), built()]}));
        let [first, second] = &parked(&project)[..] else { panic!("two questions") };
        project.answer_to(first, "hush").data();
        project.answer_to(second, "no").data();
        if let Some(point) = point {
            let (code, _) = Running::start_with(&project, &[], &[("AOP_CRASH_AT", point)]).end();
            assert_eq!(code, None, "{point} was not reached");
            assert!(project.kept_secret(&first["question_id"]).is_some());
        }
        assert_eq!(Running::start(&project, &[]).end().0, Some(0), "{point:?}");
        assert!(heard_by(&project, "builder")[1].contains("{\"token\":\"hush\"}"));
        assert_eq!(project.kept_secret(&first["question_id"]), None, "{point:?}");
        assert!(!heard_by(&project, "qa")[0].contains("hush"));
    }
}

#[test]
fn a_turn_that_was_killed_after_it_asked_has_read_its_notes_and_its_secrets_are_forgotten() {
    let project = workshop(ROOM);
    let form = json!({"version": 1, "topic": "the token", "questions": [{"id": "token", "header": "Token",
        "question": "Which token?", "kind": "free_text", "required": true, "secret": true}]});
    let secret = json!({"ask": {"prompt": "Which token?", "spec": form, "blocking": false}});
    script(&project, "shop", &json!({"builder": [secret, ask("Which?"), ask("And now?"), built()]}));
    let [first, second] = &parked(&project)[..] else { panic!("two questions") };
    project.answer_to(first, "hush").data();
    project.answer_to(second, "no").data();
    project.run(&["send", "--feature-id", "shop", "mind the gap"]).data();
    let (code, _) = Running::start_with(&project, &[], &[("AOP_CRASH_AT", "question_recorded")]).end();
    assert_eq!(code, None);
    assert!(project.kept_secret(&first["question_id"]).is_some());
    project.answer_to(&questions(&project)[2], "yes").data();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0));
    let heard = heard_by(&project, "builder");
    assert_eq!(heard.iter().filter(|text| text.contains("mind the gap")).count(), 1, "{heard:#?}");
    assert_eq!(told(&project, "builder", first), 1, "{heard:#?}");
    assert_eq!(project.kept_secret(&first["question_id"]), None);
}

#[test]
fn a_turn_that_was_killed_after_it_asked_in_words_ends_with_that_question_whatever_it_would_say_now() {
    let request = |prompt: &str, blocking: bool| {
        let ask = json!({"action": "ask_user_input", "prompt": prompt, "blocking": blocking});
        json!({"ask_prose": format!("Hm.\n{}", json!({"type": "REQUEST", "request": ask}))})
    };
    for blocking in [true, false] {
        let project = workshop(ROOM);
        script(&project, "shop", &json!({"planner": [request("Which colour?", blocking), plan()]}));
        let dies = [("AOP_CRASH_AT", "turn_judged")];
        let (code, _) = Running::start_with(&project, &[&spec(&project, "shop")], &dies).end();
        assert_eq!(code, None);
        // What was said is lost with the conversation; another one would ask something else.
        std::fs::remove_dir_all(project.path(".aop/scripted/sessions")).unwrap();
        script(&project, "shop", &json!({"planner": [request("Which size?", false), plan()]}));
        project.answer_to(&questions(&project)[0], "red").data();
        let mut run = Running::start(&project, &[]);
        let another = run.question("shop");
        project.answer_to(&another, "large").data();
        assert_eq!(run.end().0, Some(0), "blocking: {blocking}");
        let ended = events(&project, "shop", "turn.ended");
        let outcomes: Vec<&Value> = ended.iter().map(|event| &event["end"]["outcome"]).collect();
        assert_eq!(outcomes, ["ask_user", "ask_user", "final", "final", "final"], "blocking: {blocking}");
        assert_eq!(ended[0]["end"]["question_id"], questions(&project)[0]["question_id"]);
        let told = &heard_by(&project, "planner")[0];
        assert!(told.contains("answered: \"red\"."), "blocking: {blocking}: {told}");
    }
}

/// A question that somebody opens in the builder's name, for its id in `answer_to`.
fn in_its_name(project: &Project, actor: &str) -> Value {
    let question = crate::support::question("shop", "beside");
    let asked = project.tool("feature.question_create", actor, &question).data();
    json!({"feature_id": "shop", "question_id": asked["question_id"]})
}

/// The questions whose ends reached a session, in that order.
fn delivered(project: &Project) -> Vec<Value> {
    deliveries(project).iter().map(|line| line["question_id"].clone()).collect()
}

/// Whether a conversation of this role has been written down with what it began with.
fn has_begun(project: &Project, role: &str) -> bool {
    let folder = std::fs::read_dir(project.path(".aop/scripted/sessions")).into_iter().flatten();
    let files = folder.map(|entry| entry.unwrap().path());
    // Others are being written.
    let whole = files.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let mut sessions =
        whole.map(|path| serde_json::from_slice::<Value>(&std::fs::read(path).unwrap()).unwrap());
    let duty = format!("You are the {role}.");
    sessions.any(|session| session["heard"][0].as_str().is_some_and(|words| words.contains(&duty)))
}

#[test]
fn what_a_cut_off_turn_began_with_is_told_also_when_somebody_else_asked_in_its_name_meanwhile() {
    let project = workshop(ROOM);
    script(&project, "shop", &json!({"builder": [aside("Log it?"), ask("Which?"), built(), built()]}));
    let [first, second] = &parked(&project)[..] else { panic!("two questions") };
    project.answer_to(first, "yes").data();
    project.answer_to(second, "no").data();
    let (code, _) = Running::start_with(&project, &[], &[("AOP_CRASH_AT", "turn_began")]).end();
    assert_eq!(code, None);
    let third = in_its_name(&project, "human");
    project.answer_to(&third, "yes").data();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0));
    assert_eq!(told(&project, "builder", first), 1, "{:#?}", heard_by(&project, "builder"));
    assert_eq!(delivered(&project), [second["question_id"].clone(), third["question_id"].clone()]);
}

#[test]
fn a_reply_whose_turn_is_stopped_by_somebody_elses_question_is_told_once_and_then_theirs() {
    for (actor, was_kept) in [("orchestrator", true), ("orchestrator", false), ("human", false)] {
        let project = workshop("");
        let steps = |then| json!({"builder": [ask("Which?"), then, built(), built()]});
        script(&project, "shop", &steps(json!({"wait_ms": 60000})));
        let [first] = &parked(&project)[..] else { panic!("one question") };
        let sessions = project.path(".aop/scripted/sessions");
        let files = std::fs::read_dir(&sessions).unwrap().map(|entry| entry.unwrap().path());
        let before: Vec<_> = files.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
        project.answer_to(first, "no").data();
        let mut run = Running::start(&project, &["--exit-when-parked"]);
        run.until("the engine", |line| line["type"] == "engine.started");
        while was_kept && deliveries(&project).is_empty() {
            std::thread::yield_now();
        }
        let theirs = in_its_name(&project, actor);
        assert_eq!(run.end().0, Some(3), "{actor}");
        if !was_kept {
            // As when the engine was ended before it had read the reply.
            before.iter().for_each(|(path, text)| std::fs::write(path, text).unwrap());
            let _ = std::fs::remove_file(project.path(".aop/scripted/deliveries.jsonl"));
        }
        script(&project, "shop", &steps(json!({"say": "quicker"})));
        project.answer_to(&theirs, "yes").data();
        assert_eq!(Running::start(&project, &[]).end().0, Some(0), "{actor}");
        let expected = [first["question_id"].clone(), theirs["question_id"].clone()];
        assert_eq!(delivered(&project), expected, "{actor}, kept: {was_kept}");
    }
}

#[test]
fn what_somebody_asked_in_a_workers_name_is_told_before_the_worker_goes_on_and_asks_itself() {
    let project = workshop("");
    let steps = |then| json!({"builder": [then, ask("Which?"), built(), built()]});
    script(&project, "shop", &steps(json!({"wait_ms": 60000})));
    let mut run = Running::start(&project, &["--exit-when-parked", &spec(&project, "shop")]);
    run.until("the builder", |line| line["type"] == "turn.began" && line["role"] == "builder");
    // Without a conversation the next one would be told everything anew.
    while !has_begun(&project, "builder") {
        std::thread::yield_now();
    }
    let theirs = in_its_name(&project, "human");
    assert_eq!(run.end().0, Some(3));
    script(&project, "shop", &steps(json!({"say": "quicker"})));
    project.answer_to(&theirs, "yes").data();
    assert_eq!(Running::start(&project, &["--exit-when-parked"]).end().0, Some(3));
    let own = questions(&project).pop().unwrap();
    project.answer_to(&own, "no").data();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0));
    assert_eq!(delivered(&project), [theirs["question_id"].clone(), own["question_id"].clone()]);
    project.assert_healthy();
}

#[test]
fn what_a_turn_was_told_live_before_it_was_cut_off_is_told_in_no_turn_of_its_own() {
    for cut_off in ["Ctrl-C", "kill -9", "a person's question"] {
        let project = workshop("run: { warm_ms: 60000 }\n");
        let in_words = json!({"ask_prose": "And the last?"});
        let waits = |waits| json!({"wait_ms": waits});
        let steps =
            |time| json!({"planner": [ask("Which?"), ask("And then?"), waits(time), in_words, plan()]});
        script(&project, "shop", &steps(60000));
        let mut run = Running::start(&project, &[&spec(&project, "shop")]);
        let first = run.question("shop");
        project.answer_to(&first, "yes").data();
        let second = run.question("shop");
        match cut_off {
            "Ctrl-C" => run.interrupt(),
            "kill -9" => {}
            _ => {
                project.answer_to(&second, "no").data();
                let told = || deliveries(&project).len() == 2;
                let deadline = Instant::now() + PATIENCE;
                while !told() {
                    assert!(Instant::now() < deadline, "the second answer is not told");
                    std::thread::sleep(Duration::from_millis(20));
                }
                let asked = json!({"feature_id": "shop", "role": "human", "session_id": "s",
                    "question_type": "clarification", "prompt": "Wait?", "operation_id": "w"});
                project.tool("feature.question_create", "human", &asked).data();
                run.interrupt();
            }
        }
        if cut_off == "kill -9" {
            drop(run);
        } else {
            run.end();
        }
        assert_nothing_left(&project);
        script(&project, "shop", &steps(0));
        let open = project.run(&["questions"]).data()["items"][0].clone();
        project.answer_to(&open, "no").data();
        let mut run = Running::start(&project, &[]);
        let third = run.question("shop");
        project.answer_to(&third, "done").data();
        assert_eq!(run.end().0, Some(0), "{cut_off}");
        let told: Vec<Value> = deliveries(&project).iter().map(|line| line["question_id"].clone()).collect();
        let asked = [&first, &second, &third].map(|question| question["question_id"].clone());
        assert_eq!(told, asked, "{cut_off}");
        let began = events(&project, "shop", "turn.began");
        let replies = began.iter().filter(|event| event["reply_to"] == first["question_id"]);
        assert_eq!(replies.count(), 0, "{cut_off}: it has its answer");
        let asked = events(&project, "shop", "question.opened");
        let asked = asked.iter().filter(|event| event["question"]["role"] == "planner");
        assert_eq!(asked.count(), 3, "{cut_off}: nobody is asked twice");
    }
}

#[test]
fn a_note_is_read_also_with_a_turn_that_begins_with_what_its_session_has() {
    let project = workshop("");
    let steps = |time| json!({"builder": [ask("Which?"), json!({"wait_ms": time}), built(), built()]});
    script(&project, "shop", &steps(60000));
    let [question] = &parked(&project)[..] else { panic!("one question") };
    project.answer_to(question, "yes").data();
    let mut run = Running::start(&project, &[]);
    run.until("the turn", |line| line["reply_to"] == question["question_id"]);
    let deadline = Instant::now() + PATIENCE;
    while deliveries(&project).is_empty() {
        assert!(Instant::now() < deadline, "the answer is not told");
        std::thread::sleep(Duration::from_millis(20));
    }
    project.run(&["send", "--feature-id", "shop", "Mind the gap"]).data();
    drop(run);
    assert_nothing_left(&project);
    script(&project, "shop", &steps(0));
    // It takes the place of the turn that was cut off, so that a new one begins with the same answer.
    let asked = json!({"feature_id": "shop", "role": "builder", "session_id": "s",
        "question_type": "clarification", "prompt": "And that?", "operation_id": "o"});
    project.tool("feature.question_create", "orchestrator", &asked).data();
    let open = project.run(&["questions"]).data()["items"][0].clone();
    project.answer_to(&open, "no").data();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0));
    let heard = heard_by(&project, "builder");
    assert_eq!(heard.iter().filter(|text| text.contains("Mind the gap")).count(), 1, "{heard:#?}");
    let told =
        deliveries(&project).iter().filter(|line| line["question_id"] == question["question_id"]).count();
    assert_eq!(told, 1, "{:#?}", deliveries(&project));
}
