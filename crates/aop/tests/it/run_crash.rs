//! `aop run` killed with SIGKILL at named points: the next run loses nothing and repeats nothing.

use crate::run_support::{
    Running, ask, assert_nothing_left, built, deliveries, events, heard, pass, plan, script, workshop,
};
use crate::support::Project;
use serde_json::json;

fn spec(project: &Project) -> String {
    let path = project.path("shop.md");
    std::fs::write(&path, "# The shop\n").unwrap();
    path.display().to_string()
}

/// A run that dies at this point.
fn dies_at(project: &Project, point: &str, args: &[&str]) {
    let (code, lines) = Running::start_with(project, args, &[("AOP_CRASH_AT", point)]).end();
    assert_eq!(code, None, "{point} was not reached: {lines:#?}");
}

/// Everything that must hold once the feature is at its end.
fn assert_whole(project: &Project, point: &str) {
    assert_eq!(project.feature("shop")["status"], "ready_to_merge", "{point}");
    let began = events(project, "shop", "turn.began");
    let mut claims: Vec<&str> = began.iter().map(|event| event["claim"].as_str().unwrap()).collect();
    let count = claims.len();
    claims.dedup();
    assert_eq!(claims.len(), count, "{point}: no claim begins twice: {claims:?}");
    assert_eq!(events(project, "shop", "turn.ended").len(), count, "{point}: every turn has one end");
    project.assert_healthy();
    assert_nothing_left(project);
}

#[test]
fn a_run_killed_anywhere_in_a_first_turn_is_continued_under_the_same_claim() {
    for point in [
        "turn_claimed",
        "turn_began",
        "turn_spawned",
        "session_kept",
        "turn_played",
        "turn_judged",
        "turn_ended",
    ] {
        let project = workshop("");
        script(&project, "shop", &json!({}));
        dies_at(&project, point, &[&spec(&project)]);
        assert_eq!(Running::start(&project, &[]).end().0, Some(0), "{point}");
        assert_whole(&project, point);
        assert_eq!(events(&project, "shop", "turn.began").len(), 3, "{point}: one turn for each role");
    }
}

#[test]
fn a_run_killed_anywhere_around_a_question_asks_it_once() {
    for point in ["question_recorded", "turn_played", "turn_ended"] {
        let project = workshop("");
        script(&project, "shop", &json!({"planner": [ask("Which?"), plan()]}));
        dies_at(&project, point, &[&spec(&project)]);
        let items = project.run(&["questions"]).data()["items"].clone();
        assert_eq!(items.as_array().unwrap().len(), 1, "{point}");
        assert_nothing_left(&project);
        project.answer_to(&items[0], "yes").data();
        assert_eq!(Running::start(&project, &[]).end().0, Some(0), "{point}");
        assert_whole(&project, point);
        assert_eq!(events(&project, "shop", "question.opened").len(), 1, "{point}");
        assert_eq!(deliveries(&project).len(), 1, "{point}");
    }
}

#[test]
fn a_question_in_prose_is_asked_once_whenever_the_run_is_killed() {
    for point in ["turn_played", "turn_judged", "turn_ended"] {
        let project = workshop("");
        script(&project, "shop", &json!({"planner": [{"ask_prose": "Which database?"}, plan()]}));
        dies_at(&project, point, &[&spec(&project)]);
        let mut run = Running::start(&project, &[]);
        let question = match project.run(&["questions"]).data()["items"].get(0) {
            Some(found) => found.clone(),
            None => run.question("shop"),
        };
        project.answer_to(&question, "SQLite").data();
        assert_eq!(run.end().0, Some(0), "{point}");
        assert_whole(&project, point);
        assert_eq!(events(&project, "shop", "question.opened").len(), 1, "{point}");
    }
}

#[test]
fn a_resume_killed_anywhere_delivers_the_answer_once_under_one_claim() {
    for point in ["turn_claimed", "turn_began", "turn_spawned", "turn_played", "turn_judged", "turn_ended"] {
        let project = workshop("");
        script(&project, "shop", &json!({"builder": [ask("Which?"), built()]}));
        let mut run = Running::start(&project, &["--exit-when-parked", &spec(&project)]);
        let question = run.question("shop");
        assert_eq!(run.end().0, Some(3));
        project.answer_to(&question, "no").data();
        dies_at(&project, point, &[]);
        assert_eq!(Running::start(&project, &[]).end().0, Some(0), "{point}");
        assert_whole(&project, point);
        let delivered = deliveries(&project);
        assert_eq!(delivered.len(), 1, "{point}: {delivered:?}");
        assert_eq!(delivered[0]["answer"], "no", "{point}");
        let resumed = events(&project, "shop", "turn.began");
        let resumed = resumed.iter().filter(|event| event["reply_to"] == question["question_id"]);
        assert_eq!(resumed.count(), 1, "{point}");
    }
}

#[test]
fn a_run_killed_during_checks_runs_them_again_and_goes_on() {
    for point in ["check_began", "check_ended"] {
        let project = workshop("checks: { fast: [\"true\"], full: [\"true\"] }\n");
        script(&project, "shop", &json!({"qa": [pass()]}));
        dies_at(&project, point, &[&spec(&project)]);
        assert_eq!(Running::start(&project, &[]).end().0, Some(0), "{point}");
        assert_whole(&project, point);
    }
}

#[test]
fn a_conversation_that_is_gone_is_begun_anew_and_told_everything_with_the_answer_once() {
    let points =
        ["turn_spawned", "conversation_gone", "session_kept", "turn_played", "turn_judged", "turn_ended"];
    for point in std::iter::once(None).chain(points.map(Some)) {
        let project = workshop("");
        script(&project, "shop", &json!({"builder": [ask("Which colour?"), built()]}));
        let mut run = Running::start(&project, &["--exit-when-parked", &spec(&project)]);
        let question = run.question("shop");
        assert_eq!(run.end().0, Some(3));
        project.answer_to(&question, "no").data();
        std::fs::remove_dir_all(project.path(".aop/scripted/sessions")).unwrap();
        script(&project, "shop", &json!({"builder": [built()]}));
        if let Some(point) = point {
            dies_at(&project, point, &[]);
        }
        assert_eq!(Running::start(&project, &[]).end().0, Some(0), "{point:?}");
        assert_whole(&project, point.unwrap_or("no crash"));
        let id = question["question_id"].as_str().unwrap();
        let told = heard(&project);
        let anew: Vec<&String> =
            told.iter().filter(|text| text.contains(&format!("The end of your question {id}"))).collect();
        assert_eq!(anew.len(), 1, "{point:?}: {told:#?}");
        for part in ["# The shop", "Which colour?", "a human", "\"no\"", "## Your result"] {
            assert!(anew[0].contains(part), "{point:?}: {part} is not in {}", anew[0]);
        }
        assert_eq!(deliveries(&project).len(), 0, "{point:?}: nobody answers a call of no session");
        let began = events(&project, "shop", "turn.began");
        assert_eq!(began.iter().filter(|event| event["reply_to"] == id).count(), 1, "{point:?}");
    }
}

#[test]
fn an_answer_that_a_lost_conversation_was_given_is_told_once_to_the_one_in_its_place() {
    for is_live in [true, false] {
        let project = workshop(if is_live { "run: { warm_ms: 60000 }\n" } else { "" });
        let question;
        if is_live {
            // Given while the process waited; the turn was cut off before its end.
            script(&project, "shop", &json!({"planner": [ask("Which colour?"), plan()]}));
            let dies = [("AOP_CRASH_AT", "turn_played")];
            let mut run = Running::start_with(&project, &[&spec(&project)], &dies);
            question = run.question("shop");
            project.answer_to(&question, "no").data();
            assert_eq!(run.end().0, None);
        } else {
            // Given at the beginning of a turn that failed then.
            script(&project, "shop", &json!({"planner": [ask("Which colour?"), {"fail": "no network"}]}));
            let mut run = Running::start(&project, &["--exit-when-parked", &spec(&project)]);
            question = run.question("shop");
            assert_eq!(run.end().0, Some(3));
            project.answer_to(&question, "no").data();
            dies_at(&project, "turn_ended", &[]);
        }
        assert_eq!(deliveries(&project).len(), 1, "live: {is_live}");
        assert_nothing_left(&project);
        std::fs::remove_dir_all(project.path(".aop/scripted/sessions")).unwrap();
        script(&project, "shop", &json!({}));
        assert_eq!(Running::start(&project, &[]).end().0, Some(0), "live: {is_live}");
        assert_whole(&project, "after the loss");
        let told: Vec<String> =
            heard(&project).into_iter().filter(|text| text.contains("You are the planner.")).collect();
        assert_eq!(told.len(), 1, "live: {is_live}: {told:#?}");
        for part in ["# The shop", "Which colour?", "a human (\"human\") answered: \"no\""] {
            assert_eq!(told[0].matches(part).count(), 1, "live: {is_live}: {part} in {}", told[0]);
        }
        assert_eq!(deliveries(&project).len(), 1, "live: {is_live}: nobody answers a call of no session");
        assert_eq!(events(&project, "shop", "question.opened").len(), 1, "live: {is_live}");
    }
}

#[test]
fn a_session_that_was_killed_before_it_was_told_anything_is_told_its_task() {
    let project = workshop("");
    script(&project, "shop", &json!({}));
    dies_at(&project, "turn_played", &[&spec(&project)]);
    assert_nothing_left(&project);
    // As its process writes it when it starts, before anything comes.
    let [session] =
        &std::fs::read_dir(project.path(".aop/scripted/sessions")).unwrap().collect::<Vec<_>>()[..]
    else {
        panic!("one session")
    };
    let path = session.as_ref().unwrap().path();
    let mut begun: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    for (key, value) in [("next", json!(0)), ("heard", json!([])), ("ended_with", json!(null))] {
        begun[key] = value;
    }
    std::fs::write(&path, begun.to_string()).unwrap();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0));
    assert_whole(&project, "before the task");
    let told = heard(&project).iter().filter(|text| text.contains("You are the planner.")).count();
    assert_eq!(told, 1);
}
