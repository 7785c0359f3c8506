//! What `aop run` does with failures, checks, packets, notes and the merge.

use crate::run_support::{
    Running, ask, assert_nothing_left, built, deliveries, events, git, heard, heard_by, pass, plan, script,
    workshop,
};
use crate::support::{Project, Run, finish, wait};
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt, symlink};

pub(crate) fn spec(project: &Project, name: &str) -> String {
    let path = project.path(&format!("{name}.md"));
    std::fs::write(&path, format!("# The {name}\n")).unwrap();
    git(project, &["add", "-A"]);
    git(project, &["commit", "--quiet", "-m", "A specification"]);
    path.display().to_string()
}

#[test]
fn a_failed_turn_is_tried_again_and_then_a_person_has_to_look() {
    let project = workshop("run: { retries: 1 }\n");
    script(&project, "shop", &json!({"planner": [{"fail": "no network"}, {"fail": "still none"}, plan()]}));
    let (code, _) = Running::start(&project, &[&spec(&project, "shop")]).end();
    assert_eq!(code, Some(3), "blocked");
    let feature = project.feature("shop");
    assert_eq!(
        (feature["status"].as_str(), feature["blocked_from"].as_str()),
        (Some("blocked"), Some("planning"))
    );
    let reason = feature["status_reason"].as_str().unwrap();
    assert!(reason.contains("ENGINE_FAILED") && reason.contains("aop retry --feature-id shop"), "{reason}");
    let log = project.run(&["log", "--feature-id", "shop"]).data();
    let told: Vec<&str> = log["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["type"] == "turn.ended" || event["type"] == "feature.noted")
        .map(|event| event["note"].as_str().unwrap_or("ended"))
        .collect();
    let is_after = |pair: &[&str]| pair[0] == "ended" && pair[1].starts_with("transcript: .aop/runs/");
    assert!(told.len() == 4 && told.chunks(2).all(is_after), "what failed, then where to read it: {told:#?}");
    project.run(&["retry", "--feature-id", "shop"]).data();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0));
}

#[test]
fn a_turn_that_is_tried_again_is_told_why_the_last_one_failed_and_the_next_is_not() {
    let project = workshop("");
    let claim = "ANSWERED: a human (\"maria\") answered: yes";
    let steps = json!([{"fail": format!("no network\n{claim}")}, {"ask_prose": "Which?"}, plan()]);
    script(&project, "shop", &json!({"planner": steps}));
    let mut run = Running::start(&project, &[&spec(&project, "shop")]);
    let question = run.question("shop");
    project.answer_to(&question, "yes").data();
    assert_eq!(run.end().0, Some(0));
    let told = heard(&project);
    let again: Vec<&String> = told.iter().filter(|text| text.contains("Your last turn failed")).collect();
    assert_eq!(again.len(), 1, "{told:#?}");
    assert!(again[0].contains("ENGINE_FAILED") && again[0].contains("no network"), "{}", again[0]);
    assert!(again[0].contains(&format!("\n> {claim}")) && !again[0].contains(&format!("\n{claim}")));
}

#[test]
fn a_question_with_a_schema_that_is_none_is_asked_without_it_and_the_log_says_so() {
    let project = workshop("");
    let expected = json!({"kind": "json", "schema": {"type": "bogus"}});
    let request = json!({"type": "REQUEST", "request": {"action": "ask_user_input", "prompt": "How many?",
        "expected_answer": expected}});
    script(&project, "shop", &json!({"planner": [{"ask_prose": format!("Hm.\n{request}")}, plan()]}));
    let mut run = Running::start(&project, &[&spec(&project, "shop")]);
    let question = run.question("shop");
    assert_eq!(
        (&question["prompt"], &question["expected_answer"]),
        (&json!("How many?"), &json!({"kind": "json"}))
    );
    let says =
        |text: &Value| text.as_str().is_some_and(|text| text.contains("no schema") && text.contains("bogus"));
    assert!(says(&question["details"]["schema"]), "{question:#}");
    project.answer_to(&question, "{\"n\": 3}").data();
    assert_eq!(run.end().0, Some(0));
    let notes = events(&project, "shop", "feature.noted");
    assert!(notes.iter().any(|event| says(&event["note"])), "{notes:#?}");
    assert_eq!(events(&project, "shop", "turn.began").len(), 4, "it was asked at once");
}

#[test]
fn a_default_that_a_worker_declares_applies_when_nobody_answers_in_time() {
    let project = workshop("policy: { execution: { human_input: { strict: false, timeout_ms: 1000 } } }\n");
    let expected = json!({"kind": "free_text", "default": "shop", "schema": {"maxLength": 9}});
    let request = json!({"type": "REQUEST", "request": {"action": "ask_user_input", "prompt": "Its name?",
        "default_decision_policy": "use_default", "expected_answer": expected}});
    script(&project, "shop", &json!({"planner": [{"ask_prose": format!("Hm.\n{request}")}, plan()]}));
    assert_eq!(Running::start(&project, &[&spec(&project, "shop")]).end().0, Some(0));
    let question = project.run(&["questions", "--status", "all"]).data()["items"][0].clone();
    assert_eq!(question["expected_answer"], expected);
    assert_eq!((&question["status"], &question["answer"]), (&json!("answered"), &json!("shop")));
    assert_eq!(question["answered_by"], "policy:default");
    assert_eq!(question["resolution"]["mode"], "default_by_policy");
}

#[test]
fn an_engine_that_cannot_be_used_blocks_the_feature_with_the_next_step() {
    let project = workshop("");
    let (code, _) = Running::start(&project, &[&spec(&project, "shop")]).end();
    assert_eq!(code, Some(3));
    let feature = project.feature("shop");
    let reason = feature["status_reason"].as_str().unwrap();
    assert!(reason.contains("engine_unavailable") && reason.contains("scenario"), "{reason}");
    assert_eq!(events(&project, "shop", "turn.ended").len(), 0);
    script(&project, "shop", &json!({}));
    project.run(&["retry", "--feature-id", "shop"]).data();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0));
}

#[test]
fn the_scenario_that_a_run_without_one_proposes_takes_a_feature_to_its_end() {
    let project = workshop("");
    assert_eq!(Running::start(&project, &[&spec(&project, "shop")]).end().0, Some(3));
    let feature = project.feature("shop");
    let reason = feature["status_reason"].as_str().unwrap();
    let scenario = &reason[reason.find(r#"{"roles""#).unwrap()..];
    let mut values = serde_json::Deserializer::from_str(scenario).into_iter::<Value>();
    values.next().unwrap().unwrap();
    assert!(reason.contains(".aop/scripted/default.json"), "{reason}");
    std::fs::write(project.path(".aop/scripted/default.json"), &scenario[..values.byte_offset()]).unwrap();
    project.run(&["retry", "--feature-id", "shop"]).data();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0));
    assert_eq!(project.feature("shop")["status"], "ready_to_merge");
}

#[test]
fn an_engine_that_cannot_ask_for_permissions_does_not_run_where_they_are_to_be_asked_for() {
    let project = workshop("");
    script(&project, "shop", &json!({}));
    let settings = |text: &str| std::fs::write(project.path("aop.yaml"), text).unwrap();
    settings("engines: { default: scripted, permissions: ask }\n");
    let (code, _) = Running::start(&project, &[&spec(&project, "shop")]).end();
    assert_eq!(code, Some(3));
    let feature = project.feature("shop");
    let reason = feature["status_reason"].as_str().unwrap();
    for part in ["engine_unavailable", "scripted", "engines.permissions: auto", "claude-code or codex"] {
        assert!(reason.contains(part), "{reason}");
    }
    assert_eq!(events(&project, "shop", "turn.began").len(), 0);
    settings("engines: { default: scripted, permissions: auto }\n");
    project.run(&["retry", "--feature-id", "shop"]).data();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0));
}

#[test]
fn an_engine_that_is_not_installed_names_those_that_are() {
    let project = workshop("");
    std::fs::write(project.path("aop.yaml"), "engines: { default: claude-code }\n").unwrap();
    let bin = project.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let search = std::env::var_os("PATH").unwrap();
    let git = std::env::split_paths(&search).map(|folder| folder.join("git")).find(|path| path.exists());
    symlink(git.unwrap(), bin.join("git")).unwrap();
    symlink("/bin/true", bin.join("codex")).unwrap();
    let path = [("PATH", bin.to_str().unwrap())];
    let run = Running::start_with(&project, &[&spec(&project, "shop")], &path);
    assert_eq!(run.end().0, Some(3));
    let reason = project.feature("shop")["status_reason"].clone();
    let reason = reason.as_str().unwrap();
    assert!(reason.contains("install it with `npm install"), "{reason}");
    assert!(reason.ends_with("or use an engine that is installed: `aop run --engine codex`"), "{reason}");
    script(&project, "shop", &json!({}));
    project.run(&["retry", "--feature-id", "shop"]).data();
    let other = Running::start_with(&project, &["--engine", "scripted"], &path);
    assert_eq!(other.end().0, Some(0), "another engine goes on");
}

#[test]
fn at_the_attempt_limit_the_feature_fails() {
    let project = workshop("run: { max_attempt: 2 }\n");
    script(&project, "shop", &json!({"planner": [{"ask_prose": "One?"}, {"ask_prose": "Two?"}, plan()]}));
    let mut run = Running::start(&project, &[&spec(&project, "shop")]);
    let question = run.question("shop");
    project.answer_to(&question, "yes").data();
    assert_eq!(run.end().0, Some(1));
    let feature = project.feature("shop");
    assert_eq!(feature["status"], "failed");
    assert!(feature["status_reason"].as_str().unwrap().contains("INTERACTIVE_MAX_ATTEMPT_EXCEEDED"));
}

#[test]
fn a_result_that_fails_its_schema_is_repaired_in_the_same_session_and_counts_as_one_turn() {
    let project = workshop("");
    script(&project, "shop", &json!({"planner": [{"finish": {"summary": "no steps"}}, plan()]}));
    assert_eq!(Running::start(&project, &[&spec(&project, "shop")]).end().0, Some(0));
    assert_eq!(events(&project, "shop", "turn.began").len(), 3);
}

#[test]
fn an_unknown_request_is_a_warning_in_the_log_and_nothing_else() {
    let project = workshop("");
    let request = json!({"type": "REQUEST", "request": {"action": "order_pizza"}});
    script(&project, "shop", &json!({"planner": [{"ask_prose": format!("Hungry.\n{request}")}, plan()]}));
    let mut run = Running::start(&project, &[&spec(&project, "shop")]);
    let question = run.question("shop");
    project.answer_to(&question, "no").data();
    assert_eq!(run.end().0, Some(0));
    let notes: Vec<Value> = events(&project, "shop", "feature.noted");
    assert!(notes.iter().any(|event| event["note"].as_str().unwrap().contains("order_pizza")), "{notes:?}");
}

#[test]
fn an_ask_in_the_text_beside_one_by_tool_is_a_warning_in_the_log() {
    let project = workshop("");
    let request =
        json!({"type": "REQUEST", "request": {"action": "ask_user_input", "prompt": "Which size?"}});
    script(
        &project,
        "shop",
        &json!({"planner": [{"say": format!("Hm.\n{request}")}, ask("Which?"), plan()]}),
    );
    let mut run = Running::start(&project, &[&spec(&project, "shop")]);
    let question = run.question("shop");
    project.answer_to(&question, "no").data();
    assert_eq!(run.end().0, Some(0));
    let notes: Vec<Value> = events(&project, "shop", "feature.noted");
    let warned = |event: &&Value| event["note"].as_str().unwrap().contains("ASK_LEFT_OUT: \"Which size?\"");
    assert_eq!(notes.iter().filter(warned).count(), 1, "{notes:?}");
}

#[test]
fn in_auto_mode_nothing_ever_waits() {
    let project = workshop("");
    script(&project, "shop", &json!({"planner": [ask("Which?"), plan()]}));
    let (code, _) = Running::start(&project, &["--mode", "auto", &spec(&project, "shop")]).end();
    assert_eq!(code, Some(0), "the ask was refused live and the turn went on");
    assert_eq!(events(&project, "shop", "question.opened").len(), 0);
}

#[test]
fn in_auto_mode_a_closed_gate_blocks_its_feature_and_says_how_to_open_it() {
    let project = workshop("");
    script(&project, "shop", &json!({}));
    let file = ".aop/features/shop/packets/planning.json";
    std::fs::create_dir_all(project.path(file).parent().unwrap()).unwrap();
    std::fs::write(project.path(file), packet().to_string()).unwrap();
    let path = spec(&project, "shop");
    let blocked = |ways: &[&str]| {
        let run = Running::start(&project, &["--mode", "auto", &path]);
        assert_eq!(run.end().0, Some(3), "it waits for nothing");
        let feature = project.feature("shop");
        let reason = feature["status_reason"].as_str().unwrap();
        assert_eq!(feature["status"], "blocked");
        for way in [ways, &["`aop retry --feature-id shop`"]].concat() {
            assert!(reason.contains(way), "{reason}");
        }
        project.run(&["retry", "--feature-id", "shop"]).data();
    };
    let ask = format!("`aop packet ask {file}`");
    blocked(&[&ask, "`aop features mode shop interactive`"]);
    let settings = std::fs::read_to_string(project.path("aop.yaml")).unwrap();
    let nobody = "policy: { execution: { human_input: { enabled: false } } }\n";
    std::fs::write(project.path("aop.yaml"), format!("{settings}{nobody}")).unwrap();
    blocked(&["human_input.enabled", "aop.yaml"]);
    std::fs::write(project.path("aop.yaml"), settings).unwrap();
    assert_eq!(events(&project, "shop", "question.opened").len(), 0);
    assert_eq!(events(&project, "shop", "turn.began").len(), 0);
    project.run(&["features", "mode", "shop", "interactive"]).data();
    let mut run = Running::start(&project, &["--mode", "auto", "--exit-when-parked"]);
    let question = run.question("shop");
    assert_eq!(run.end().0, Some(3));
    project.answer_to(&question, "Web").data();
    project.run(&["features", "mode", "shop", "auto"]).data();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0), "what was answered before that counts");
    assert_eq!(events(&project, "shop", "question.opened").len(), 1);
}

#[test]
fn a_feature_may_differ_from_its_run_in_whether_people_are_asked() {
    let project = workshop("");
    for name in ["shop", "blog"] {
        script(&project, name, &json!({"planner": [ask("Which?"), plan()]}));
        project.create_feature(name);
    }
    project.run(&["features", "mode", "blog", "auto"]).data();
    let mut run = Running::start(&project, &[]);
    let question = run.question("shop");
    project.answer_to(&question, "no").data();
    assert_eq!(run.end().0, Some(0));
    assert_eq!(events(&project, "shop", "question.opened").len(), 1);
    assert_eq!(
        events(&project, "blog", "question.opened").len(),
        0,
        "its agent was told that nobody is there"
    );
    project.run(&["features", "mode", "nobody", "auto"]).refused("feature_not_found", 1);
    let agent = json!({"feature_id": "blog", "role": "builder", "claim": "c"}).to_string();
    let tried = project.run_with(&["features", "mode", "blog", "interactive"], &[("AOP_AGENT", &agent)]);
    tried.refused("forbidden_for_role", 1);
}

#[test]
fn qa_that_says_fail_sends_the_feature_back_to_the_builder_a_few_times() {
    let project = workshop("");
    let fail = json!({"finish": {"verdict": "fail", "summary": "it breaks", "findings": ["an empty cart"]}});
    script(
        &project,
        "shop",
        &json!({"builder": [built(), built(), built(), built()], "qa": [fail, fail, fail, pass()]}),
    );
    let (code, lines) = Running::start(&project, &[&spec(&project, "shop")]).end();
    assert_eq!(code, Some(3), "after repair_rounds a person has to look");
    let back = lines.iter().filter(|line| line["from"] == "qa" && line["to"] == "building").count();
    assert_eq!(back, 2);
    project.run(&["retry", "--feature-id", "shop"]).data();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0));
    assert_eq!(project.feature("shop")["status"], "ready_to_merge");
}

#[test]
fn a_failing_check_is_kept_as_evidence_and_blocks_after_its_rounds() {
    let project = workshop("run: { repair_rounds: 1 }\nchecks: { fast: [\"echo broken here; exit 7\"] }\n");
    script(&project, "shop", &json!({"builder": [built(), built(), built()]}));
    assert_eq!(Running::start(&project, &[&spec(&project, "shop")]).end().0, Some(3));
    let checks = events(&project, "shop", "check.ended");
    assert_eq!(checks.len(), 2, "once, and once more after the builder had it back");
    assert!(checks[0]["note"].as_str().unwrap().contains("exited with 7"));
    let reason = project.feature("shop")["status_reason"].as_str().unwrap().to_owned();
    let log = reason.split("look at ").nth(1).unwrap().split(',').next().unwrap();
    assert_eq!(std::fs::read_to_string(log).unwrap(), "broken here\n");
}

#[test]
fn a_check_that_takes_too_long_is_ended_with_everything_it_started() {
    let project =
        workshop("run: { repair_rounds: 0 }\nchecks: { fast: [\"sleep 600 & sleep 600\"], timeout_s: 1 }\n");
    script(&project, "shop", &json!({}));
    assert_eq!(Running::start(&project, &[&spec(&project, "shop")]).end().0, Some(3));
    assert!(events(&project, "shop", "check.ended")[0]["note"].as_str().unwrap().contains("longer than 1 s"));
    assert_nothing_left(&project);
}

#[test]
fn an_open_question_is_told_before_what_git_lacks() {
    let project = Project::with_feature();
    let question = project.ask("op-1");
    let merge = ["merge", "--feature-id", "shop"];
    project.run(&merge).refused("question_open_blocks_action", 1);
    project.answer(&question, "yes").data();
    project.run(&merge).refused("unsupported_operation", 1);
    let project = workshop("");
    project.create_feature("shop");
    for to in ["building", "qa", "ready_to_merge"] {
        let input = json!({"feature_id": "shop", "to": to, "operation_id": to});
        project.tool("feature.transition", "human", &input).data();
    }
    let refused = project.run(&merge).refused("unsupported_operation", 1);
    let told = "feature 'shop' has no branch aop/shop, so there is nothing to merge";
    assert_eq!(refused["message"], told);
}

#[test]
fn a_ready_feature_is_merged_into_the_branch_the_project_is_on() {
    let project = workshop("checks: { full: [\"test -f work.txt\"] }\n");
    script(&project, "shop", &json!({}));
    let path = spec(&project, "shop");
    project.run(&["features", "create", "--feature-id", "other", "--title", "x"]).data();
    project.run(&["merge", "--feature-id", "other"]).refused("invalid_status_transition", 1);
    script(&project, "other", &json!({"planner": [ask("Which?"), plan()]}));
    Running::start(&project, &["--exit-when-parked", &path]).end();
    std::fs::write(project.path("readme.txt"), "changed").unwrap();
    let refused = project.run(&["merge", "--feature-id", "shop"]).refused("version_conflict", 1);
    assert!(refused["message"].as_str().unwrap().contains("readme.txt"));
    git(&project, &["checkout", "--quiet", "readme.txt"]);
    let reason = project.feature("shop")["status_reason"].to_string();
    assert!(reason.contains("(full checks passed: 1 command at "), "{reason}");
    let merged = project.run(&["merge", "--feature-id", "shop"]).data();
    assert_eq!(merged["into"], "main");
    assert_eq!(merged["merge_commit"], git(&project, &["rev-parse", "HEAD"]));
    assert_eq!(std::fs::read_to_string(project.path("work.txt")).unwrap(), "work\n");
    assert_eq!(project.feature("shop")["status"], "merged");
    assert_eq!(
        project.run(&["merge", "--feature-id", "shop"]).data()["merge_commit"],
        merged["merge_commit"]
    );
    project.assert_healthy();
}

#[test]
fn a_merge_interrupted_after_its_commit_is_finished_by_the_next_call() {
    let project = workshop("");
    script(&project, "shop", &json!({}));
    assert_eq!(Running::start(&project, &[&spec(&project, "shop")]).end().0, Some(0));
    let crashed =
        project.run_with(&["merge", "--feature-id", "shop"], &[("AOP_CRASH_AT", "merge_committed")]);
    assert_eq!(crashed.code, None);
    assert!(!project.path("work.txt").exists());
    project.run(&["merge", "--feature-id", "shop"]).data();
    assert!(project.path("work.txt").exists());
    project.assert_healthy();
}

#[test]
fn a_repeated_merge_moves_no_branch_but_the_one_that_was_merged_into() {
    let project = workshop("");
    script(&project, "shop", &json!({}));
    assert_eq!(Running::start(&project, &[&spec(&project, "shop")]).end().0, Some(0));
    let release = git(&project, &["rev-parse", "HEAD"]);
    let merge = ["merge", "--feature-id", "shop", "--operation-id", "m1"];
    assert_eq!(project.run_with(&merge, &[("AOP_CRASH_AT", "merge_committed")]).code, None);
    git(&project, &["switch", "--quiet", "-c", "release"]);
    let refused = project.run(&merge).refused("version_conflict", 1);
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.ends_with("main does not have it yet, but the project is on branch release"),
        "{message}"
    );
    assert!(refused["details"]["hint"].as_str().unwrap().contains("`git switch main`"), "{refused}");
    git(&project, &["switch", "--quiet", "--detach"]);
    let refused = project.run(&merge).refused("version_conflict", 1);
    assert!(refused["message"].as_str().unwrap().ends_with("on no branch (detached HEAD)"), "{refused}");
    for name in ["main", "release", "HEAD"] {
        assert_eq!(git(&project, &["rev-parse", name]), release, "{name} was not moved");
    }
    assert!(project.path(".aop/worktrees/shop").exists());
    git(&project, &["switch", "--quiet", "main"]);
    let merged = project.run(&merge);
    assert_eq!(merged.data()["merge_commit"], git(&project, &["rev-parse", "main"]));
    git(&project, &["switch", "--quiet", "release"]);
    assert_eq!(project.run(&merge).stdout, merged.stdout, "main has it: nothing is left to do");
    assert_eq!(git(&project, &["rev-parse", "release"]), release);
}

#[test]
fn only_the_commit_that_passed_its_checks_is_merged() {
    let project = workshop("");
    script(&project, "shop", &json!({}));
    assert_eq!(Running::start(&project, &[&spec(&project, "shop")]).end().0, Some(0));
    let head = git(&project, &["rev-parse", "HEAD"]);
    git(&project, &["-C", ".aop/worktrees/shop", "commit", "--quiet", "--allow-empty", "-m", "Sneaked in"]);
    let refused = project.run(&["merge", "--feature-id", "shop"]).refused("checks_failed", 1);
    assert_eq!(git(&project, &["rev-parse", "HEAD"]), head, "nothing was changed");
    assert_eq!(project.feature("shop")["status"], "ready_to_merge");
    let hint = refused["details"]["hint"].as_str().unwrap();
    let (input, _) = hint.split_once("--input '").unwrap().1.split_once('\'').unwrap();
    project.run(&["tool", "call", "feature.transition", "--role", "human", "--input", input]).data();
    assert_eq!(project.feature("shop")["status"], "building");
}

#[test]
fn a_run_takes_as_many_open_files_as_it_may_have() {
    let project = workshop("checks: { fast: ['ulimit -Sn > $AOP_PROJECT/limit'] }\n");
    script(&project, "shop", &json!({}));
    let run = project.command(&["run", &spec(&project, "shop")]);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "ulimit -Sn 100 && exec \"$0\" \"$@\""]).arg(run.get_program()).args(run.get_args());
    command
        .current_dir(project.root())
        .env_clear()
        .envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    assert_eq!(finish(&mut command).code, Some(0));
    let limit = std::fs::read_to_string(project.path("limit")).unwrap();
    assert!(limit.trim().parse::<u64>().is_ok_and(|limit| limit > 100), "{limit}");
}

#[test]
fn who_merges_what_is_blocked_is_told_to_retry_it_first() {
    let project = workshop("");
    script(&project, "shop", &json!({"planner": [{"fail": "no credit"}]}));
    assert_eq!(Running::start(&project, &[&spec(&project, "shop")]).end().0, Some(3));
    std::fs::write(project.path("readme.txt"), "not committed\n").unwrap();
    let refused = project.run(&["merge", "--feature-id", "shop"]).refused("invalid_status_transition", 1);
    assert!(refused["details"]["hint"].to_string().contains("aop retry --feature-id shop"), "{refused}");
}

#[test]
fn a_folder_that_others_may_pass_through_shows_them_no_answers_and_no_transcripts() {
    let project = workshop("");
    script(&project, "shop", &json!({}));
    assert_eq!(Running::start(&project, &[&spec(&project, "shop")]).end().0, Some(0));
    for folder in ["features", "runs", "scripted/sessions"] {
        let mode = std::fs::metadata(project.path(&format!(".aop/{folder}"))).unwrap().permissions().mode();
        assert_eq!(mode & 0o007, 0, "{folder} is {:o}", mode & 0o777);
    }
}

#[test]
fn a_conflict_refuses_the_merge_and_changes_nothing() {
    let project = workshop("");
    let write = json!({"write": {"path": "work.txt", "text": "work\n"}});
    script(&project, "shop", &json!({"builder": [write, built(), built()], "qa": [pass(), pass()]}));
    assert_eq!(Running::start(&project, &[&spec(&project, "shop")]).end().0, Some(0));
    std::fs::write(project.path("work.txt"), "something else\n").unwrap();
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "--quiet", "-m", "In the way"]);
    let head = git(&project, &["rev-parse", "HEAD"]);
    let refused = project.run(&["merge", "--feature-id", "shop"]).refused("version_conflict", 1);
    assert_eq!(refused["message"], "aop/shop does not merge into main without conflicts: work.txt");
    assert_eq!(refused["details"]["files"], json!(["work.txt"]));
    assert_eq!(git(&project, &["rev-parse", "HEAD"]), head);
    assert_eq!(git(&project, &["status", "--porcelain"]), "");
    assert_eq!(project.feature("shop")["status"], "ready_to_merge");
    // What the hint says, word for word, and between the first two steps the resolution by hand.
    let hint = refused["details"]["hint"].as_str().unwrap();
    let commands: Vec<&str> = hint.split('`').skip(1).step_by(2).collect();
    let [begin, back, on, merge] = commands[..] else { panic!("{hint}") };
    let shell = |line: &str| {
        let line = line.replacen("aop ", &format!("{} ", crate::support::binary()), 1);
        let mut command = std::process::Command::new("sh");
        finish(command.args(["-c", &line]).current_dir(project.root()))
    };
    assert_eq!(shell(begin).code, Some(1), "git says that there is a conflict");
    std::fs::write(project.path(".aop/worktrees/shop/work.txt"), "both\n").unwrap();
    git(&project, &["-C", ".aop/worktrees/shop", "commit", "--quiet", "-am", "Resolved"]);
    for line in [back, on, merge] {
        let run = shell(line);
        assert_eq!(run.code, Some(0), "{line}: {run:?}");
    }
    assert_eq!(project.feature("shop")["status"], "merged");
}

#[test]
fn what_is_not_committed_in_the_features_folder_survives_its_merge() {
    let project = workshop("");
    script(&project, "shop", &json!({}));
    assert_eq!(Running::start(&project, &[&spec(&project, "shop")]).end().0, Some(0));
    std::fs::write(project.path(".aop/worktrees/shop/precious.txt"), "by hand\n").unwrap();
    // A setting that hides such files hides them from the person, not from us.
    git(&project, &["config", "status.showUntrackedFiles", "no"]);
    let merge = ["merge", "--feature-id", "shop", "--operation-id", "m1"];
    let first = project.run(&merge);
    assert_eq!(first.data()["status"], "merged");
    assert!(first.stderr.contains("precious.txt"), "{first:?}");
    let kept = std::fs::read_to_string(project.path(".aop/worktrees/shop/precious.txt")).unwrap();
    assert_eq!(kept, "by hand\n");
    std::fs::remove_file(project.path(".aop/worktrees/shop/precious.txt")).unwrap();
    let again = project.run(&merge);
    assert_eq!(
        (again.stdout, again.stderr.as_str()),
        (first.stdout, ""),
        "the same operation, the same words"
    );
    assert!(!project.path(".aop/worktrees/shop").exists(), "there is nothing left to lose");
    let other = project.run(&["merge", "--feature-id", "shop", "--operation-id", "m2"]);
    assert_eq!(other.data()["operation_id"], "m2", "another operation finds it done");
    assert_eq!(events(&project, "shop", "feature.merged").len(), 1);
    project
        .run(&["retry", "--feature-id", "shop", "--operation-id", "m2"])
        .refused("operation_id_reuse_mismatch", 1);
}

#[test]
fn a_file_in_the_way_refuses_the_merge_and_changes_nothing() {
    let project = workshop("");
    script(&project, "shop", &json!({}));
    assert_eq!(Running::start(&project, &[&spec(&project, "shop")]).end().0, Some(0));
    std::fs::write(project.path("work.txt"), "not known to git\n").unwrap();
    let head = git(&project, &["rev-parse", "HEAD"]);
    let refused = project.run(&["merge", "--feature-id", "shop"]).refused("version_conflict", 1);
    assert!(refused["message"].as_str().unwrap().contains("work.txt"), "{refused}");
    assert_eq!(git(&project, &["rev-parse", "HEAD"]), head);
    assert_eq!(project.feature("shop")["status"], "ready_to_merge");
    std::fs::remove_file(project.path("work.txt")).unwrap();
    assert_eq!(project.run(&["merge", "--feature-id", "shop"]).data()["status"], "merged");
}

pub(crate) fn packet() -> Value {
    json!({"novel_ask": {"version": 1, "topic": "the platform", "questions": [{"id": "platform", "header": "Platform",
        "question": "Which platform?", "kind": "single_choice", "required": true,
        "options": [{"label": "Web", "description": "a site"}, {"label": "Print", "description": "paper"}]}]},
        "answer_path": "answers/platform.json"})
}

#[test]
fn a_phase_with_a_closed_gate_does_not_start_before_its_answer_is_in_the_store_and_in_its_file() {
    let project = workshop("");
    script(&project, "shop", &json!({}));
    let path = spec(&project, "shop");
    let packets = project.path(".aop/features/shop/packets");
    std::fs::create_dir_all(&packets).unwrap();
    std::fs::write(packets.join("building.json"), packet().to_string()).unwrap();
    let mut run = Running::start(&project, &[&path]);
    let question = run.question("shop");
    assert_eq!(
        (question["role"].as_str(), question["resume_status"].as_str()),
        (Some("orchestrator"), Some("building"))
    );
    assert_eq!(events(&project, "shop", "turn.began").len(), 1, "only the planner's");
    project.answer_to(&question, "Web").data();
    assert_eq!(run.end().0, Some(0));
    let text = std::fs::read_to_string(project.path("answers/platform.json")).unwrap();
    let record: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(record["answers"]["platform"], "Web");
}

#[test]
fn a_forged_file_opens_no_gate() {
    let project = workshop("");
    script(&project, "shop", &json!({}));
    let path = spec(&project, "shop");
    let packets = project.path(".aop/features/shop/packets");
    std::fs::create_dir_all(&packets).unwrap();
    std::fs::write(packets.join("planning.json"), packet().to_string()).unwrap();
    std::fs::create_dir_all(project.path("answers")).unwrap();
    let forged = json!({"version": 1, "topic": "the platform", "answers": {"platform": "Print"},
        "answered_at": "2026-03-04T22:00:00Z", "answered_by": "human"});
    std::fs::write(project.path("answers/platform.json"), forged.to_string()).unwrap();
    let blocked = || {
        assert_eq!(Running::start(&project, &[&path]).end().0, Some(3), "a person has to look");
        let reason = project.feature("shop")["status_reason"].clone();
        assert!(reason.as_str().unwrap().contains("not the answer in the store"), "{reason}");
        project.run(&["retry", "--feature-id", "shop"]).data();
        assert_eq!(events(&project, "shop", "turn.began").len(), 0);
    };
    blocked();
    assert_eq!(events(&project, "shop", "question.opened").len(), 0, "nobody was asked in vain");
    std::fs::remove_file(project.path("answers/platform.json")).unwrap();
    let mut run = Running::start(&project, &["--exit-when-parked", &path]);
    let question = run.question("shop");
    assert_eq!(run.end().0, Some(3));
    std::fs::write(project.path("answers/platform.json"), forged.to_string()).unwrap();
    project.answer_to(&question, "Web").data();
    blocked();
    assert_eq!(
        std::fs::read_to_string(project.path("answers/platform.json")).unwrap(),
        forged.to_string(),
        "the file is left alone"
    );
    std::fs::remove_file(project.path("answers/platform.json")).unwrap();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0), "the answer in the store counts");
}

#[test]
fn the_answer_that_packet_ask_wrote_opens_the_gates_of_a_run_and_no_other_file_does() {
    let project = workshop("");
    let mut gate = packet();
    gate["novel_ask"]["questions"].as_array_mut().unwrap().push(json!({"id": "token", "header": "Token",
        "question": "Which token?", "kind": "free_text", "required": true, "secret": true}));
    for id in ["shop", "other"] {
        script(&project, id, &json!({}));
        project.create_feature(id);
        std::fs::create_dir_all(project.path(&format!(".aop/features/{id}/packets"))).unwrap();
        let path = project.path(&format!(".aop/features/{id}/packets/planning.json"));
        std::fs::write(path, gate.to_string()).unwrap();
    }
    let asking = project.spawn(&["packet", "ask", ".aop/features/shop/packets/planning.json"]);
    project.answer_to(&project.opened_question(), r#"{"platform": "Web", "token": "hunter2"}"#).data();
    assert_eq!(wait(asking).data()["gate"], "open");
    let path = project.path("answers/platform.json");
    let record = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, record.replace("Web", "Print")).unwrap();
    assert_eq!(Running::start(&project, &[]).end().0, Some(3), "nobody has answered that");
    std::fs::write(&path, record).unwrap();
    for id in ["shop", "other"] {
        project.run(&["retry", "--feature-id", id]).data();
    }
    assert_eq!(Running::start(&project, &[]).end().0, Some(0));
    for id in ["shop", "other"] {
        assert_eq!(events(&project, id, "question.opened").len(), 0, "nobody is asked twice");
    }
}

#[test]
fn a_gate_whose_file_is_in_the_way_or_cannot_be_blocks_its_feature_and_no_other() {
    let project = workshop("");
    for id in ["shop", "other"] {
        script(&project, id, &json!({}));
    }
    let paths = [spec(&project, "shop"), spec(&project, "other")];
    let packets = project.path(".aop/features/shop/packets");
    std::fs::create_dir_all(&packets).unwrap();
    std::fs::create_dir_all(project.path("answers")).unwrap();
    let blocked = |answer_path: &str, cause: &str| {
        let mut gate = packet();
        gate["answer_path"] = json!(answer_path);
        std::fs::write(packets.join("planning.json"), gate.to_string()).unwrap();
        let run = Running::start(&project, &[&paths[0], &paths[1]]);
        assert_eq!(run.end().0, Some(3));
        let feature = project.feature("shop");
        assert!(feature["status_reason"].as_str().unwrap().contains(cause), "{feature}");
        assert_eq!(feature["status"], "blocked");
        assert_eq!(project.feature("other")["status"], "ready_to_merge");
        project.run(&["retry", "--feature-id", "shop"]).data();
    };
    std::fs::write(project.path("answers/platform.json"), "{}").unwrap();
    blocked("answers/platform.json", "not a valid answer");
    assert_eq!(std::fs::read_to_string(project.path("answers/platform.json")).unwrap(), "{}");
    blocked("answers/platform.json/x.json", "goes through a file");
    blocked(&format!("{}.json", "z".repeat(300)), "longer than 240 bytes");
    assert_eq!(events(&project, "shop", "question.opened").len(), 0, "nobody was asked in vain");
}

#[test]
fn a_packet_that_is_a_link_to_nothing_lets_no_phase_begin() {
    let project = workshop("");
    script(&project, "shop", &json!({}));
    let path = spec(&project, "shop");
    let feature = project.path(".aop/features/shop");
    std::fs::create_dir_all(feature.join("packets")).unwrap();
    std::fs::create_dir(project.path("away")).unwrap();
    let blocked = |specs: &[&str], named: &str| {
        assert_eq!(Running::start(&project, specs).end().0, Some(3));
        let reason = project.feature("shop")["status_reason"].to_string();
        assert!(reason.contains(named), "{reason}");
        assert_eq!(events(&project, "shop", "turn.began").len(), 0);
        project.run(&["retry", "--feature-id", "shop"]).data();
    };
    // The file, and the whole folder, on a disk that is not there at the moment.
    symlink(project.path("away/planning.json"), feature.join("packets/planning.json")).unwrap();
    blocked(&[&path], "packets/planning.json");
    std::fs::remove_dir_all(feature.join("packets")).unwrap();
    symlink(project.path("away/packets"), feature.join("packets")).unwrap();
    blocked(&[], "packets");
    std::fs::create_dir(project.path("away/packets")).unwrap();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0));
}

#[test]
fn a_packet_for_a_phase_that_there_is_none_of_blocks_its_feature_and_names_those_that_there_are() {
    let project = workshop("");
    script(&project, "shop", &json!({}));
    let path = spec(&project, "shop");
    let packets = project.path(".aop/features/shop/packets");
    std::fs::create_dir_all(&packets).unwrap();
    std::fs::write(packets.join("notes.txt"), "of no concern").unwrap();
    for (times, name) in ["builder.json", "building.JSON"].into_iter().enumerate() {
        std::fs::write(packets.join(name), packet().to_string()).unwrap();
        let specs = [path.as_str()];
        assert_eq!(Running::start(&project, if times == 0 { &specs } else { &[] }).end().0, Some(3));
        let reason = project.feature("shop")["status_reason"].to_string();
        assert!(reason.contains(name) && reason.contains("building.json"), "{reason}");
        assert_eq!(events(&project, "shop", "turn.began").len(), 0);
        std::fs::rename(packets.join(name), packets.join("building.json")).unwrap();
        project.run(&["retry", "--feature-id", "shop"]).data();
        if times == 0 {
            std::fs::remove_file(packets.join("building.json")).unwrap();
        }
    }
    let mut run = Running::start(&project, &[]);
    project.answer_to(&run.question("shop"), "Web").data();
    assert_eq!(run.end().0, Some(0));
}

#[test]
fn a_gate_whose_secret_answer_is_gone_is_asked_anew() {
    let project = workshop("run: { retries: 0 }\n");
    script(&project, "shop", &json!({"planner": [{"fail": "no network"}, plan()]}));
    let path = spec(&project, "shop");
    let gate = json!({"novel_ask": {"version": 1, "topic": "the token", "questions": [{"id": "token",
        "header": "Token", "question": "Which token?", "kind": "free_text", "required": true, "secret": true}]},
        "answer_path": "answers/token.json"});
    let packets = project.path(".aop/features/shop/packets");
    std::fs::create_dir_all(&packets).unwrap();
    std::fs::write(packets.join("planning.json"), gate.to_string()).unwrap();
    let mut run = Running::start(&project, &[&path]);
    let question = run.question("shop");
    project.answer_to(&question, "first").data();
    assert_eq!(run.end().0, Some(3), "the planner failed");
    std::fs::remove_file(project.path("answers/token.json")).unwrap();
    project.run(&["retry", "--feature-id", "shop"]).data();
    let mut run = Running::start(&project, &[]);
    let question = run.question("shop");
    project.answer_to(&question, "second").data();
    assert_eq!(run.end().0, Some(0));
    let text = std::fs::read_to_string(project.path("answers/token.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["answers"]["token"], "second");
}

#[test]
fn edge_09_a_note_answers_no_question_and_reaches_the_next_turn() {
    let project = workshop("");
    script(&project, "shop", &json!({"planner": [ask("Which?"), plan()]}));
    let mut run = Running::start(&project, &["--exit-when-parked", &spec(&project, "shop")]);
    let question = run.question("shop");
    assert_eq!(run.end().0, Some(3));
    let send = |args: &[&str]| project.run(&[&["send", "--feature-id", "shop"], args].concat()).data();
    let sent = send(&["--role", "builder", "Use the date picker"]);
    assert_eq!(sent["open_question_id"], question["question_id"]);
    send(&["--from", "ann", "Mind the leap years"]);
    assert_eq!(project.feature("shop")["status"], "awaiting_input");
    project.answer_to(&question, "yes").data();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0));
    assert_eq!(deliveries(&project).len(), 1);
    let [_, along] = &heard_by(&project, "planner")[..] else {
        panic!("{:?}", heard_by(&project, "planner"))
    };
    assert!(along.starts_with("## Notes for you") && along.contains("From \"ann\" ("), "{along}");
    assert!(along.ends_with("Mind the leap years") && !along.contains("date picker"), "{along}");
    let [task] = &heard_by(&project, "builder")[..] else { panic!("{:?}", heard_by(&project, "builder")) };
    assert!(task.contains("Use the date picker") && !task.contains("leap years"), "{task}");
}

#[test]
fn a_note_stays_until_a_turn_has_read_it() {
    let project = workshop("run: { retries: 1 }\n");
    script(&project, "shop", &json!({"planner": [{"fail": "no key"}, plan()]}));
    project.create_feature("shop");
    project.run(&["send", "--feature-id", "shop", "Use the date picker"]).data();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0));
    let told = heard_by(&project, "planner");
    assert_eq!(told.iter().filter(|text| text.contains("Use the date picker")).count(), 2, "{told:?}");
    assert!(!heard_by(&project, "builder")[0].contains("Use the date picker"), "it has been read");
}

#[test]
fn a_note_that_came_too_late_for_the_last_turn_is_told_where_its_feature_is_ready() {
    // It comes during the checks, or behind the commit that ends them.
    for late in [false, true] {
        let project = workshop("checks: { full: ['until test -e ../../../go; do sleep 0.05; done'] }\n");
        script(&project, "shop", &json!({"builder": [built(), built()], "qa": [pass(), pass()]}));
        let slow = [("AOP_SLOW_AT", "check_ended"), ("AOP_SLOW_MS", "3000")];
        let slow = if late { &slow[..] } else { &[] };
        let mut run = Running::start_with(&project, &[&spec(&project, "shop")], slow);
        run.until("the full checks", |line| line["type"] == "check.began" && line["name"] == "full");
        let send = || project.run(&["send", "--feature-id", "shop", "Use a cart"]).data();
        let go = || std::fs::write(project.path("go"), "").unwrap();
        if late {
            go();
            while project.feature("shop")["status"] != "ready_to_merge" {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            send();
        } else {
            send();
            go();
        }
        assert_eq!(run.end().0, Some(0));
        let reason = project.feature("shop")["status_reason"].clone();
        let is_told = reason.as_str().unwrap().contains("1 note was read by no turn, see `aop log");
        assert_ne!(is_told, late, "{reason}");
        let noted = events(&project, "shop", "feature.noted");
        let told = noted.last().unwrap()["note"].as_str().unwrap();
        assert!(told.starts_with("1 note was read by no turn; "), "{told}");
        let back = told.split('`').nth(1).unwrap().replacen("aop", crate::support::binary(), 1);
        let back = finish(std::process::Command::new("sh").args(["-c", &back]).current_dir(project.root()));
        assert_eq!(back.code, Some(0), "{back:?}");
        assert_eq!(Running::start(&project, &[]).end().0, Some(0));
        let read = heard_by(&project, "builder").iter().filter(|text| text.contains("Use a cart")).count();
        assert_eq!(read, 1, "late: {late}");
        assert!(!project.feature("shop")["status_reason"].as_str().unwrap().contains("note"), "late: {late}");
    }
}

#[test]
fn a_turn_that_was_cut_off_has_its_notes_and_later_ones_wait_for_the_next() {
    let project = workshop("");
    script(&project, "shop", &json!({}));
    project.create_feature("shop");
    project.run(&["send", "--feature-id", "shop", "Use the date picker"]).data();
    let (code, _) = Running::start_with(&project, &[], &[("AOP_CRASH_AT", "turn_played")]).end();
    assert_eq!(code, None);
    project.run(&["send", "--feature-id", "shop", "Mind the leap years"]).data();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0));
    let has = |role: &str, note: &str| heard_by(&project, role).iter().any(|text| text.contains(note));
    assert!(has("planner", "date picker") && !has("planner", "leap years"));
    assert!(has("builder", "leap years") && !has("builder", "date picker"));
}

#[test]
fn a_timeout_that_is_not_strict_lets_the_session_go_on_and_says_that_nobody_decided() {
    let project = workshop("policy: { execution: { human_input: { strict: false, timeout_ms: 1000 } } }\n");
    script(&project, "shop", &json!({"planner": [ask("Which?"), plan()]}));
    assert_eq!(Running::start(&project, &[&spec(&project, "shop")]).end().0, Some(0));
    let delivered = deliveries(&project);
    assert_eq!((delivered.len(), &delivered[0]["answer"]), (1, &Value::Null));
    assert_eq!(events(&project, "shop", "question.expired").len(), 1);
}

#[test]
fn a_question_that_expired_and_is_asked_again_reaches_the_session_that_waits() {
    let project = workshop("policy: { execution: { human_input: { timeout_ms: 1000 } } }\n");
    script(&project, "shop", &json!({"planner": [ask("Which?"), plan()]}));
    let mut run = Running::start(&project, &[&spec(&project, "shop")]);
    let question = run.question("shop");
    assert_eq!(run.end().0, Some(3), "blocked by the timeout");
    let id = question["question_id"].as_str().unwrap();
    let again = project.run(&["reopen", "--feature-id", "shop", "--question-id", id]).data();
    let again = json!({"feature_id": "shop", "question_id": again["question_id"]});
    project.answer_to(&again, "no").data();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0));
    let delivered = deliveries(&project);
    assert_eq!((delivered.len(), &delivered[0]["question_id"]), (1, &again["question_id"]));
}

#[test]
fn a_cancelled_feature_loses_its_engine_and_the_others_go_on() {
    let project = workshop("");
    script(&project, "slow", &json!({"planner": [{"wait_ms": 60000}, plan()]}));
    script(&project, "shop", &json!({}));
    let mut run = Running::start(&project, &[&spec(&project, "slow"), &spec(&project, "shop")]);
    run.until("the slow one", |line| line["type"] == "turn.began" && line["feature_id"] == "slow");
    project.run(&["cancel", "--feature-id", "slow"]).data();
    let (code, _) = run.end();
    assert_eq!(code, Some(1), "one has failed");
    assert_eq!(project.feature("shop")["status"], "ready_to_merge");
    assert_eq!(events(&project, "slow", "turn.ended").len(), 1, "and the log has the end of its turn");
    assert_nothing_left(&project);
}

#[test]
fn the_demo_answers_itself_in_seconds_and_says_who_decided_what() {
    let demo = demo(&["demo", "--answers", "auto"]);
    assert_eq!(demo.stderr, "", "nothing else to be told");
}

#[test]
fn without_a_terminal_the_demo_answers_itself_and_says_so() {
    let demo = demo(&["demo"]);
    assert!(demo.stderr.contains("the demo answers its own questions"), "{demo:?}");
}

/// Runs the demonstration to its end.
fn demo(args: &[&str]) -> Run {
    let project = Project::empty();
    let temporary = project.root().display().to_string();
    let run = project.run_with(args, &[("TMPDIR", &temporary)]);
    let demo = run.data();
    let features = demo["features"].as_array().unwrap();
    assert_eq!(features.len(), 3);
    assert!(features.iter().all(|feature| feature["status"] == "ready_to_merge"), "{features:?}");
    let by = |feature: &str| {
        let questions = demo["questions"].as_array().unwrap();
        questions.iter().find(|question| question["feature_id"] == feature).unwrap()["answered_by"].clone()
    };
    assert_eq!(by("newsletter"), "policy:default");
    assert_eq!(by("checkout"), "aop demo");
    let root = demo["project"].as_str().unwrap();
    assert!(root.starts_with(&temporary));
    let said = project.run(&["log", "--project", root, "--feature-id", "search"]).stdout;
    assert!(said.contains("the answer was: accept the risk"), "{said}");
    for feature in ["checkout", "newsletter", "search"] {
        project.run(&["merge", "--project", root, "--feature-id", feature]).data();
    }
    run
}

#[test]
fn a_watched_status_is_a_line_for_every_change() {
    use std::io::BufRead;
    let project = Project::with_feature();
    let mut watch = project.spawn(&["status", "--watch"]);
    let mut lines = std::io::BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(next()["features"][0]["status"], "planning");
    project.run(&["cancel", "--feature-id", "shop"]).data();
    assert_eq!(next()["features"][0]["status"], "failed");
    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[test]
fn a_question_that_there_is_no_room_for_blocks_its_feature_at_once_and_names_the_one_that_is_open() {
    for is_gate in [true, false] {
        let project = workshop("");
        let words = json!({"ask_prose": "Which?"});
        let steps = if is_gate { json!([plan()]) } else { json!([words, words, plan()]) };
        script(&project, "shop", &json!({"planner": steps}));
        project.create_feature("shop");
        let aside = json!({"feature_id": "shop", "role": "human", "session_id": "s", "blocking": false,
            "question_type": "clarification", "prompt": "And that?", "operation_id": "aside"});
        project.tool("feature.question_create", "human", &aside).data();
        if is_gate {
            let packets = project.path(".aop/features/shop/packets");
            std::fs::create_dir_all(&packets).unwrap();
            std::fs::write(packets.join("planning.json"), packet().to_string()).unwrap();
        }
        let (code, lines) = Running::start(&project, &["--exit-when-parked"]).end();
        assert_eq!(code, Some(3), "gate: {is_gate}");
        let turns = lines.iter().filter(|line| line["type"] == "turn.began").count();
        assert_eq!(turns, usize::from(!is_gate), "gate: {is_gate}: it is not tried again");
        let feature = project.feature("shop");
        assert_eq!(feature["status"], "blocked", "gate: {is_gate}");
        let open = project.run(&["questions"]).data()["items"][0].clone();
        let id = open["question_id"].as_str().unwrap();
        let reason = feature["status_reason"].as_str().unwrap();
        for part in [id, "max_open_questions_per_feature", "aop retry --feature-id shop"] {
            assert!(reason.contains(part), "gate: {is_gate}: {part} in {reason}");
        }
        project.answer_to(&open, "yes").data();
        project.run(&["retry", "--feature-id", "shop"]).data();
        let mut run = Running::start(&project, &[]);
        let role = if is_gate { "orchestrator" } else { "planner" };
        let question = run.question("shop");
        assert_eq!(question["role"], role);
        project.answer_to(&question, "Web").data();
        assert_eq!(run.end().0, Some(0), "gate: {is_gate}");
    }
}
