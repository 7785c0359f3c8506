//! `aop run`: features travel from specification to ready-to-merge around the questions of their agents. The tests of
//! sections 13.2, 13.5 and 14 of the human-input specification stand here by number.

use crate::run_support::{
    Running, ask, assert_nothing_left, built, deliveries, events, git, pass, plan, script, workshop,
};
use crate::support::{Project, finish, wait};
use serde_json::{Value, json};
use std::os::unix::ffi::OsStrExt;

fn spec(project: &Project, name: &str) -> String {
    let path = project.path(&format!("{name}.md"));
    std::fs::write(&path, format!("# The {name}\n\nBuild the {name}.\n")).unwrap();
    path.display().to_string()
}

#[test]
fn a_feature_travels_from_specification_to_ready_to_merge() {
    let project = workshop("");
    script(&project, "default", &json!({}));
    let (code, lines) = Running::start(&project, &[&spec(&project, "checkout")]).end();
    assert_eq!(code, Some(0));
    let moves: Vec<&Value> = lines.iter().filter(|line| line["type"] == "feature.status_changed").collect();
    let to: Vec<&str> = moves.iter().map(|line| line["to"].as_str().unwrap()).collect();
    assert_eq!(to, ["building", "qa", "ready_to_merge"]);
    let feature = project.feature("checkout");
    assert_eq!(
        (&feature["title"], &feature["role"], &feature["engine"]),
        (&json!("The checkout"), &json!("qa"), &json!("scripted"))
    );
    assert_eq!(feature["activity_state"], "done");
    let next = "merge with `aop merge --feature-id checkout` (no full checks are configured)";
    assert_eq!(feature["status_reason"], next);
    let refused = project.run(&["retry", "--feature-id", "checkout"]).refused("invalid_status_transition", 1);
    assert_eq!(refused["details"]["hint"], "merge it with `aop merge --feature-id checkout`");
    assert_eq!(git(&project, &["show", "aop/checkout:work.txt"]), "work");
    assert_eq!(
        git(&project, &["status", "--porcelain"]),
        "?? checkout.md",
        "only the test's own file is new"
    );
    assert_nothing_left(&project);
    project.assert_healthy();
}

#[test]
fn s13_2_a_feature_in_awaiting_input_is_skipped_by_every_phase_and_the_others_keep_moving() {
    let project = workshop("");
    script(&project, "asks", &json!({"planner": [ask("Which?"), plan()]}));
    script(&project, "moves", &json!({}));
    let mut run = Running::start(&project, &[&spec(&project, "asks"), &spec(&project, "moves")]);
    run.question("asks");
    run.until("the other at its end", |line| line["feature_id"] == "moves" && line["to"] == "ready_to_merge");
    assert_eq!(project.feature("asks")["status"], "awaiting_input");
    assert_eq!(project.feature("asks")["activity_state"], "waiting_input");
    assert_eq!(events(&project, "asks", "turn.began").len(), 1, "no turn while the question is open");
    assert_eq!(events(&project, "asks", "check.began").len(), 0);
    assert_nothing_left(&project);
}

#[test]
fn s13_2_answering_resumes_the_next_iteration_in_the_recorded_phase() {
    for phase in ["planner", "builder", "qa"] {
        let project = workshop("");
        let end = json!({"planner": plan(), "builder": built(), "qa": pass()});
        script(&project, "shop", &json!({phase: [ask("Go on?"), end[phase].clone()]}));
        let mut run = Running::start(&project, &[&spec(&project, "shop")]);
        let question = run.question("shop");
        let status = json!({"planner": "planning", "builder": "building", "qa": "qa"})[phase].clone();
        assert_eq!(question["resume_status"], status);
        project.answer_to(&question, "yes").data();
        run.status("shop", status.as_str().unwrap());
        let began = run.until("the turn that goes on", |line| line["type"] == "turn.began");
        assert_eq!(began["role"], phase);
        assert_eq!(began["reply_to"], question["question_id"]);
        assert_eq!(run.end().0, Some(0));
        assert_eq!(deliveries(&project).len(), 1);
        assert_eq!(deliveries(&project)[0]["answer"], "yes");
        project.assert_healthy();
    }
}

fn permission() -> Value {
    // The payload stands on a line of its own, below the engine's label.
    let request = json!({"type": "REQUEST", "request": {"action": "ask_user_input",
        "question_type": "permission_override", "prompt": "May I edit policy.yaml?",
        "expected_answer": {"kind": "single_choice", "choices": ["approve", "deny"]}}});
    json!({"ask_prose": format!("I need a permission.\n{request}")})
}

#[test]
fn s13_5_builder_asks_permission_and_while_unanswered_no_patch_and_no_check_happens() {
    let project = workshop("checks: { fast: [\"echo checked >> ../../../checked.txt\"] }\n");
    script(
        &project,
        "shop",
        &json!({"builder": [permission(), {"write": {"path": "policy.yaml", "text": "open"}}, built()]}),
    );
    let mut run = Running::start(&project, &[&spec(&project, "shop")]);
    let question = run.question("shop");
    assert_eq!(question["question_type"], "permission_override");
    run.until("the end of the turn", |line| line["type"] == "turn.ended" && line["role"] == "builder");
    assert_nothing_left(&project);
    assert!(!project.path(".aop/worktrees/shop/policy.yaml").exists());
    assert!(!project.path("checked.txt").exists());
    let input = json!({"feature_id": "shop", "to": "qa", "operation_id": "push"});
    project.tool("feature.transition", "orchestrator", &input).refused("question_open_blocks_action", 1);
    project.run(&["merge", "--feature-id", "shop"]).refused("question_open_blocks_action", 1);
    project.answer_to(&question, "approve").data();
    assert_eq!(run.end().0, Some(0));
    assert_eq!(git(&project, &["show", "aop/shop:policy.yaml"]), "open");
    assert!(project.path("checked.txt").exists());
}

#[test]
fn s13_5_answer_given_the_builder_resumes_and_can_go_on_with_the_repair_of_checks() {
    let project = workshop("checks: { fast: [\"test -f fixed.txt\"] }\n");
    script(
        &project,
        "shop",
        &json!({"builder": [
        ask("May I?"), built(), {"write": {"path": "fixed.txt", "text": "x"}}, built()]}),
    );
    let mut run = Running::start(&project, &[&spec(&project, "shop")]);
    let question = run.question("shop");
    project.answer_to(&question, "yes").data();
    let (code, lines) = run.end();
    assert_eq!(code, Some(0), "{lines:#?}");
    let checks: Vec<bool> = events(&project, "shop", "check.ended")
        .iter()
        .filter(|event| event["name"] == "fast")
        .map(|event| event["passed"].as_bool().unwrap())
        .collect();
    assert_eq!(checks, [false, true]);
}

#[test]
fn s14_1_a_question_of_an_agent_is_a_persisted_record_with_the_way_back_to_its_session() {
    let project = workshop("");
    script(&project, "shop", &json!({"planner": [ask("Which?"), plan()]}));
    let mut run = Running::start(&project, &["--exit-when-parked", &spec(&project, "shop")]);
    let question = run.question("shop");
    assert_eq!(run.end().0, Some(3), "all that is left waits for a person");
    let text = std::fs::read_to_string(project.path(".aop/features/shop/questions.json")).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(file["items"][0]["question_id"], question["question_id"]);
    assert_eq!(file["items"][0]["role"], "planner");
    assert_eq!(file["items"][0]["engine_ref"]["engine"], "scripted");
    assert!(file["items"][0]["engine_ref"]["call_id"].is_string());
    assert_nothing_left(&project);
}

#[test]
fn s14_4_the_same_answer_again_is_one_answer_and_one_turn() {
    let project = workshop("");
    script(&project, "shop", &json!({"planner": [ask("Which?"), plan()]}));
    let mut run = Running::start(&project, &[&spec(&project, "shop")]);
    let question = run.question("shop");
    let id = question["question_id"].as_str().unwrap();
    let args =
        ["answer", "--feature-id", "shop", "--question-id", id, "--answer", "no", "--operation-id", "once"];
    let first = project.run(&args).data();
    assert_eq!(project.run(&args).data(), first);
    project.answer_to(&question, "yes").refused("question_already_answered", 1);
    assert_eq!(run.end().0, Some(0));
    let began = events(&project, "shop", "turn.began");
    assert_eq!(began.iter().filter(|event| event["reply_to"] == question["question_id"]).count(), 1);
    assert_eq!(deliveries(&project).len(), 1);
    assert_eq!(deliveries(&project)[0]["answer"], "no");
}

#[test]
fn an_answer_given_while_nobody_runs_reaches_the_session_of_the_next_run() {
    let project = workshop("");
    script(&project, "shop", &json!({"builder": [ask("Which?"), built()]}));
    let mut run = Running::start(&project, &["--exit-when-parked", &spec(&project, "shop")]);
    let question = run.question("shop");
    assert_eq!(run.end().0, Some(3));
    project.answer_to(&question, "yes").data();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0));
    let delivered = deliveries(&project);
    assert_eq!(delivered.len(), 1);
    assert_eq!(delivered[0]["claim"], format!("reply:{}", question["question_id"].as_str().unwrap()));
}

#[test]
fn a_second_run_says_who_runs() {
    let project = workshop("");
    script(&project, "shop", &json!({"planner": [ask("Which?"), plan()]}));
    let mut run = Running::start(&project, &[&spec(&project, "shop")]);
    let started = run.until("the start", |line| line["type"] == "run.started");
    run.question("shop");
    let refused = project.run(&["run"]).refused("run_already_active", 1);
    assert_eq!(refused["details"]["run_id"], started["run_id"]);
    assert_eq!(refused["details"]["pid"], run.pid());
    assert!(refused["message"].as_str().unwrap().contains(&run.pid().to_string()));
    assert_eq!(project.run(&["resume"]).refused("run_already_active", 1)["details"]["pid"], run.pid());
}

#[test]
fn a_run_that_is_taken_over_stops_and_changes_nothing_any_more() {
    let project = workshop("");
    script(&project, "shop", &json!({"planner": [ask("Which?"), plan()]}));
    let mut first = Running::start(&project, &[&spec(&project, "shop")]);
    let question = first.question("shop");
    let mut second = Running::start(&project, &["--takeover"]);
    second.until("the start", |line| line["type"] == "run.started");
    project.answer_to(&question, "yes").data();
    assert_eq!(second.end().0, Some(0));
    let (code, lines) = first.end();
    assert_eq!(code, Some(1), "the first was told that it lost the project");
    let ended = lines.last().unwrap();
    assert_eq!((&ended["type"], &ended["reason"]), (&json!("run.ended"), &json!("taken_over")));
    assert_eq!(deliveries(&project).len(), 1);
    let began = events(&project, "shop", "turn.began");
    assert_eq!(began.iter().filter(|event| !event["reply_to"].is_null()).count(), 1);
    assert_nothing_left(&project);
}

#[test]
fn a_feature_without_a_specification_is_told_from_one_with_another() {
    let project = workshop("");
    script(&project, "default", &json!({}));
    project.create_feature("search");
    let search = spec(&project, "search");
    let error = project.run(&["run", &search]).refused("feature_already_exists", 1);
    let (message, hint) = (&error["message"], &error["details"]["hint"]);
    assert!(message.as_str().unwrap().contains("made without a specification"), "{error}");
    for way in ["works from the title alone", "aop cancel --feature-id search", &format!("--spec {search}")] {
        assert!(hint.as_str().unwrap().contains(way), "{error}");
    }
    std::fs::create_dir(project.path("a `b`")).unwrap();
    std::fs::copy(project.path(&search), project.path("a `b`/search.md")).unwrap();
    let error = project.run(&["run", "a `b`/search.md"]).refused("feature_already_exists", 1);
    let hint = error["details"]["hint"].as_str().unwrap();
    assert!(
        hint.contains(r#"--spec "$(printf 'a \140b\140/search.md')"`"#),
        "one word, up to the end: {hint}"
    );
    assert_eq!(Running::start(&project, &[]).end().0, Some(0), "the title alone is enough");
    assert_eq!(Running::start(&project, &[&spec(&project, "shop")]).end().0, Some(0));
    std::fs::write(project.path("shop.md"), "# Another\n").unwrap();
    let error = project.run(&["run", "shop.md"]).refused("feature_already_exists", 1);
    assert!(error["message"].as_str().unwrap().contains("another specification"), "{error}");
}

#[test]
fn a_run_that_is_refused_for_one_specification_makes_a_feature_of_none() {
    let project = workshop("");
    script(&project, "default", &json!({}));
    let (search, shop) = (spec(&project, "search"), spec(&project, "shop"));
    assert_eq!(Running::start(&project, &[&search]).end().0, Some(0));
    std::fs::write(&search, "# Another\n").unwrap();
    project.run(&["run", &shop, &search]).refused("feature_already_exists", 1);
    std::fs::write(project.path("large.md"), "x".repeat(1 << 20)).unwrap();
    let error = project.run(&["run", &shop, "large.md"]).refused("payload_too_large", 1);
    assert!(error["message"].as_str().unwrap().starts_with("large.md makes no feature: "), "{error}");
    let features = project.run(&["status"]).data()["features"].clone();
    assert_eq!(features.as_array().unwrap().len(), 1, "{features}");
    // So whoever has changed it meanwhile is not told that it is too late.
    std::fs::write(&shop, "# The shop, thought over\n").unwrap();
    assert_eq!(Running::start(&project, &[&shop]).end().0, Some(0));
}

#[test]
fn a_run_that_is_refused_for_a_specification_takes_no_other_over() {
    let project = workshop("");
    script(&project, "shop", &json!({"planner": [ask("Which?"), plan()]}));
    let shop = spec(&project, "shop");
    let mut first = Running::start(&project, &[&shop]);
    let question = first.question("shop");
    std::fs::write(project.path(&shop), "# Another\n").unwrap();
    let search = spec(&project, "search");
    project.run(&["run", "--takeover", &search, &shop]).refused("feature_already_exists", 1);
    project.answer_to(&question, "yes").data();
    assert_eq!(first.end().0, Some(0), "it goes on");
    let features = project.run(&["status"]).data()["features"].clone();
    assert_eq!(features.as_array().unwrap().len(), 1, "{features}");
}

#[test]
fn a_run_that_is_taken_over_says_by_which_run() {
    let project = workshop("");
    script(&project, "shop", &json!({"planner": [ask("Which?"), plan()]}));
    let first = project.spawn(&["run", &spec(&project, "shop")]);
    project.opened_question();
    let mut second = Running::start(&project, &["--takeover"]);
    let started = second.until("the start", |line| line["type"] == "run.started");
    let first = wait(first);
    assert_eq!(first.code, Some(1), "{first:?}");
    let ended: Value = serde_json::from_str(first.stdout.lines().last().unwrap()).unwrap();
    assert_eq!((&ended["type"], &ended["reason"]), (&json!("run.ended"), &json!("taken_over")));
    for key in ["run_id", "pid", "host", "since"] {
        assert_eq!(ended["taken_over_by"][key], started[key], "{key}");
    }
    let who = format!("run {} (process {} on ", started["run_id"].as_str().unwrap(), second.pid());
    assert!(first.stderr.contains(&who) && first.stderr.contains("over; this run has stopped"), "{first:?}");
}

#[test]
fn ctrl_c_ends_the_engines_and_the_next_run_goes_on() {
    let project = workshop("");
    script(&project, "shop", &json!({"planner": [{"say": "thinking"}, {"wait_ms": 2000}, plan()]}));
    let mut run = Running::start(&project, &[&spec(&project, "shop")]);
    run.until("the turn", |line| line["type"] == "turn.began");
    run.interrupt();
    assert_eq!(run.end().0, Some(130));
    assert_nothing_left(&project);
    let (code, lines) = Running::start(&project, &[]).end();
    assert_eq!(code, Some(0));
    assert!(lines.iter().any(|line| line["type"] == "turn.continued"), "{lines:#?}");
    assert_eq!(events(&project, "shop", "turn.began").len(), 3, "one turn for each role, and no other");
}

#[test]
fn a_feature_that_is_named_counts_for_the_exit_code_also_when_it_was_over_before() {
    let project = workshop("run: { max_attempt: 1 }\n");
    script(&project, "shop", &json!({"planner": [{"ask_prose": "One?"}, plan()]}));
    script(&project, "search", &json!({}));
    let (shop, search) = (spec(&project, "shop"), spec(&project, "search"));
    assert_eq!(Running::start(&project, &[&shop]).end().0, Some(1));
    let mut again = Running::start(&project, &[&shop]);
    let ended = again.until("the end", |line| line["type"] == "run.ended");
    assert_eq!(
        (&ended["features"][0]["feature_id"], &ended["features"][0]["status"]),
        (&json!("shop"), &json!("failed"))
    );
    assert_eq!(again.end().0, Some(1));
    assert_eq!(Running::start(&project, &[&search]).end().0, Some(0), "what is not named is history");
}

#[test]
fn where_something_failed_and_something_waits_the_exit_code_is_that_of_waiting() {
    let project = workshop("run: { max_attempt: 1 }\n");
    script(&project, "shop", &json!({"planner": [{"ask_prose": "One?"}, plan()]}));
    script(&project, "search", &json!({}));
    let packets = project.path(".aop/features/search/packets");
    std::fs::create_dir_all(&packets).unwrap();
    std::fs::write(packets.join("planning.json"), crate::run_rules::packet().to_string()).unwrap();
    let (shop, search) = (spec(&project, "shop"), spec(&project, "search"));
    assert_eq!(Running::start(&project, &["--exit-when-parked", &shop, &search]).end().0, Some(3));
    for (id, status) in [("shop", "failed"), ("search", "awaiting_input")] {
        assert_eq!(project.feature(id)["status"], status);
    }
}

#[test]
fn a_folder_that_is_no_repository_is_refused_with_the_next_step() {
    let project = Project::new();
    let refused = project.run(&["run"]);
    let envelope: Value = serde_json::from_str(refused.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(envelope["error"]["code"], "unsupported_operation");
    assert!(envelope["error"]["details"]["hint"].as_str().unwrap().contains("git init"));
}

#[test]
fn a_project_whose_path_is_not_utf_8_is_refused_before_anything_is_written() {
    let project = workshop("");
    script(&project, "shop", &json!({}));
    let shop = spec(&project, "shop");
    let around = project.beside();
    let root = around.root().join(std::ffi::OsStr::from_bytes(b"shop\xff"));
    let copy = finish(std::process::Command::new("cp").arg("-a").arg(project.root()).arg(&root));
    assert_eq!(copy.code, Some(0), "{copy:?}");
    let refused = finish(project.command(&["run", &shop]).current_dir(&root));
    let error = refused.refused("unsupported_operation", 1);
    assert!(error["message"].as_str().unwrap().contains("is not UTF-8"), "{error}");
    assert_eq!(std::fs::read_dir(around.root()).unwrap().count(), 1, "nothing was made beside it");
    // What its hint says.
    let renamed = around.root().join("shop");
    std::fs::rename(&root, &renamed).unwrap();
    let status = finish(project.command(&["status"]).current_dir(&renamed));
    assert_eq!(status.data()["features"], json!([]));
    let ran = finish(project.command(&["run", &shop]).current_dir(&renamed));
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn a_persons_own_question_stops_the_turn_that_is_under_way_and_it_goes_on_after_the_answer() {
    let project = workshop("");
    script(&project, "shop", &json!({"builder": [{"wait_ms": 3000}, built()]}));
    let mut run = Running::start(&project, &[&spec(&project, "shop")]);
    run.until("the builder", |line| line["type"] == "turn.began" && line["role"] == "builder");
    let mut question = crate::support::question("shop", "mine");
    question["role"] = json!("human");
    let asked = project.tool("feature.question_create", "human", &question).data();
    run.status("shop", "awaiting_input");
    assert_nothing_left(&project);
    let record = json!({"feature_id": "shop", "question_id": asked["question_id"]});
    project.answer_to(&record, "yes").data();
    run.until("the turn going on", |line| line["type"] == "turn.continued");
    assert_eq!(run.end().0, Some(0));
}

#[test]
fn a_question_that_the_orchestrator_opens_in_a_workers_name_stops_the_turn() {
    let project = workshop("");
    let late = json!({"write": {"path": "late.txt", "text": "late"}});
    let steps = |then: Value| json!({"builder": [then, late, built()]});
    script(&project, "shop", &steps(json!({"wait_ms": 60000})));
    let mut run = Running::start(&project, &["--exit-when-parked", &spec(&project, "shop")]);
    run.until("the builder", |line| line["type"] == "turn.began" && line["role"] == "builder");
    let mut question = crate::support::question("shop", "ask:theirs");
    let asked = project.tool("feature.question_create", "orchestrator", &question).data();
    assert_eq!(run.end().0, Some(3));
    assert!(!project.path(".aop/worktrees/shop/late.txt").exists(), "nobody works on it while it waits");
    assert_nothing_left(&project);
    question["question_id"] = asked["question_id"].clone();
    script(&project, "shop", &steps(json!({"say": "quicker"})));
    project.answer_to(&question, "yes").data();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0), "what was cut off goes on, and is told");
    let began = events(&project, "shop", "turn.began");
    assert!(began.iter().any(|event| event["reply_to"] == asked["question_id"]), "{began:?}");
}

#[test]
fn a_question_stops_the_check_unless_the_check_asks_itself() {
    for (actor, role) in [("orchestrator", "builder"), ("planner", "planner"), ("qa", "qa")] {
        let project = workshop("checks: { fast: [\"until test -e ../../../go; do sleep 0.05; done\"] }\n");
        script(&project, "shop", &json!({}));
        let mut run = Running::start(&project, &["--exit-when-parked", &spec(&project, "shop")]);
        run.until("the check", |line| line["type"] == "check.began");
        let mut question = crate::support::question("shop", "beside");
        question["role"] = json!(role);
        question["question_id"] =
            project.tool("feature.question_create", actor, &question).data()["question_id"].clone();
        assert_eq!(run.end().0, Some(3), "{actor}");
        assert_eq!(events(&project, "shop", "check.ended").len(), 0, "{actor}: no check ends while it waits");
        assert_nothing_left(&project);
        std::fs::write(project.path("go"), "").unwrap();
        project.answer_to(&question, "yes").data();
        assert_eq!(Running::start(&project, &[]).end().0, Some(0), "{actor}");
    }
}

#[test]
fn a_check_that_asks_waits_for_its_answer_and_goes_on_with_it() {
    for name in ["fast", "full"] {
        let command = "test \\\"$(aop ask --plain 'ok?' --choice yes --choice no)\\\" = yes";
        let project = workshop(&format!("checks: {{ {name}: [\"{command}\"] }}\n"));
        script(&project, "shop", &json!({}));
        let mut run = Running::start(&project, &[&spec(&project, "shop")]);
        let question = run.question("shop");
        assert_eq!(question["role"], "builder");
        project.answer_to(&question, "yes").data();
        assert_eq!(run.end().0, Some(0), "{name}");
        assert_eq!(events(&project, "shop", "question.opened").len(), 1, "{name}: it is asked once");
        let ended = events(&project, "shop", "check.ended");
        assert!(ended.iter().all(|event| event["passed"] == true), "{name}: {ended:#?}");
        assert_nothing_left(&project);
        project.assert_healthy();
    }
}

/// A workshop whose fast check asks and goes on at once: `ask.sh` names the question, `then` follows.
fn leaves_its_question(operation: &str, then: &str) -> Project {
    let project = workshop("checks: { fast: [\"sh ../../../ask.sh\", \"touch ../../../second\"] }\n");
    script(&project, "shop", &json!({}));
    let question = crate::support::question("shop", "OPERATION").to_string();
    let asks = "aop tool call feature.question_create --input - || exit 1";
    let text = format!("sed \"s/OPERATION/{operation}/\" <<'END' | {asks}\n{question}\nEND\n{then}\n");
    std::fs::write(project.path("ask.sh"), text).unwrap();
    project
}

/// Runs until the feature waits, and answers.
fn park_and_answer(project: &Project, args: &[&str]) {
    let run = Running::start(project, &[&["--exit-when-parked"], args].concat());
    assert_eq!(run.end().0, Some(3));
    assert_eq!(events(project, "shop", "check.ended").len(), 0, "no check ends while the feature waits");
    assert!(!project.path("second").exists(), "nor does it go on");
    let open = project.run(&["questions", "--status", "open"]).data();
    project.answer_to(&open["items"][0], "yes").data();
}

#[test]
fn a_check_that_does_not_wait_for_its_answer_runs_again_when_it_is_there_and_finds_it() {
    let project =
        leaves_its_question("once", "aop questions --status answered | grep -q '\"answer\":\"yes\"'");
    park_and_answer(&project, &[&spec(&project, "shop")]);
    assert_eq!(Running::start(&project, &[]).end().0, Some(0));
    assert_eq!(events(&project, "shop", "question.opened").len(), 1, "it is asked once");
    let ended = events(&project, "shop", "check.ended");
    assert!(ended.iter().all(|event| event["passed"] == true), "{ended:#?}");
    assert!(project.path("second").exists());
    project.assert_healthy();
}

#[test]
fn a_check_that_asks_the_same_anew_each_time_blocks_its_feature_with_the_next_step() {
    let project = leaves_its_question("$$", "");
    park_and_answer(&project, &[&spec(&project, "shop")]);
    park_and_answer(&project, &[]);
    Running::start(&project, &[]).end();
    assert_eq!(project.feature("shop")["status"], "blocked");
    assert_eq!(events(&project, "shop", "question.opened").len(), 2, "it is run again once");
    let moved = events(&project, "shop", "feature.status_changed");
    let reason = moved.last().unwrap()["reason"].as_str().unwrap();
    assert!(reason.contains("--operation-id") && reason.contains("aop retry --feature-id shop"), "{reason}");
    std::fs::write(project.path("ask.sh"), "true\n").unwrap();
    project.run(&["retry", "--feature-id", "shop"]).data();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0));
}

#[test]
fn a_check_that_waits_for_its_answer_until_its_time_is_over_is_told_so() {
    let command = "aop ask --plain 'ok?' --choice yes --choice no";
    let project = workshop(&format!("checks: {{ fast: [\"{command}\"], timeout_s: 4 }}\n"));
    script(&project, "shop", &json!({}));
    park_and_answer(&project, &[&spec(&project, "shop")]);
    park_and_answer(&project, &[]);
    Running::start(&project, &[]).end();
    assert_eq!(project.feature("shop")["status"], "blocked");
    let moved = events(&project, "shop", "feature.status_changed");
    let reason = moved.last().unwrap()["reason"].as_str().unwrap();
    assert!(reason.contains("until their 4 s are over") && reason.contains("checks.timeout_s"), "{reason}");
}
