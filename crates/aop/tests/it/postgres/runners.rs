//! Several runners on one project: clones of one repository, each with `aop run`, as on several machines.

use crate::run_support::{
    Running, ask, assert_nothing_left, built, deliveries, events, git, left_over, plan, script, workshop,
};
use crate::support::Project;
use aop_store::{PostgresOptions, PostgresStore, Store, TimeSource};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Another clone of a project's repository, on the same project of the same database.
pub(super) fn clone_of(project: &Project) -> Project {
    let clone = project.beside();
    git(&clone, &["clone", "--quiet", &project.root().display().to_string(), "."]);
    clone.run(&["init"]).data();
    std::fs::create_dir_all(clone.path(".aop/scripted")).unwrap();
    clone
}

/// The same scenario in every folder.
pub(super) fn script_in(folders: &[&Project], feature: &str, roles: &Value) {
    folders.iter().for_each(|folder| script(folder, feature, roles));
}

/// `aop run` in a folder, once it says that it runs.
pub(super) fn at_work(folder: &Project) -> Running {
    let mut run = Running::start(folder, &[]);
    run.until("the start", |line| line["type"] == "run.started");
    run
}

/// The turns that a run started an engine for.
fn turns(lines: &[Value]) -> BTreeSet<String> {
    let started = lines.iter().filter(|line| line["type"] == "engine.started");
    started.map(|line| line["claim"].as_str().unwrap().to_owned()).collect()
}

/// The folder as a runner calls it.
pub(super) fn folder(project: &Project) -> String {
    project.root().canonicalize().unwrap().display().to_string()
}

/// Waits until something holds.
pub(super) fn eventually(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + crate::run_support::PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn two_runners_share_the_features_and_every_turn_is_one_runners() {
    let here = workshop("run: { max_parallel: 2 }\n");
    let there = clone_of(&here);
    git(&there, &["switch", "--quiet", "-c", "release"]);
    let whose = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"];
    git(&there, &[&whose[..], &["commit", "--quiet", "--allow-empty", "-m", "only there"]].concat());
    script_in(&[&here, &there], "first", &json!({"planner": [ask("Begin?"), plan()]}));
    let slowly = json!({"planner": [{"wait_ms": 150}, plan()], "builder": [{"wait_ms": 150}, built()]});
    script_in(&[&here, &there], "default", &slowly);
    // Both wait for the end of a question, so that both are there when the others come.
    here.create_feature("first");
    let mut one = at_work(&here);
    let question = one.question("first");
    let two = at_work(&there);
    for number in 0..10 {
        there.create_feature(&format!("f{number}"));
    }
    for _ in 0..10 {
        one.until("the end of another", |line| {
            line["type"] == "feature.status_changed" && line["to"] == "ready_to_merge"
        });
    }
    here.answer_to(&question, "yes").data();
    let ((one_code, one), (two_code, two)) = (one.end(), two.end());
    assert_eq!((one_code, two_code), (Some(0), Some(0)));
    let (one, two) = (turns(&one), turns(&two));
    assert!(!one.is_empty() && !two.is_empty(), "both worked: {one:?} {two:?}");
    assert_eq!(one.intersection(&two).count(), 0, "{one:?} {two:?}");
    let mut began: Vec<String> = Vec::new();
    for feature in (0..10).map(|number| format!("f{number}")).chain(["first".to_owned()]) {
        let claims = events(&here, &feature, "turn.began").into_iter();
        began.extend(claims.map(|event| event["claim"].as_str().unwrap().to_owned()));
        assert_eq!(events(&here, &feature, "turn.continued"), Vec::<Value>::new(), "{feature}");
    }
    assert_eq!(began.iter().cloned().collect::<BTreeSet<_>>(), one.union(&two).cloned().collect());
    assert_eq!(began.len(), one.len() + two.len(), "no turn began twice");
    for folder in [&here, &there] {
        assert_nothing_left(folder);
        assert_eq!(folder.run(&["doctor", "--repair"]).data()["healthy"], true);
    }
    let worked = git(&there, &["for-each-ref", "--format=%(refname:short)", "refs/heads/aop"]);
    assert!(!worked.is_empty());
    for branch in worked.lines() {
        assert_eq!(
            git(&there, &["merge-base", "release", branch]),
            git(&there, &["rev-parse", "release"]),
            "{branch}"
        );
    }
}

#[test]
fn a_second_run_in_the_same_folder_is_refused_and_names_the_holder() {
    let here = workshop("");
    let there = clone_of(&here);
    script_in(&[&here, &there], "shop", &json!({"planner": [ask("Which?"), plan()]}));
    here.create_feature("shop");
    let mut run = at_work(&here);
    run.question("shop");
    let refused = here.run(&["run"]).refused("run_already_active", 1);
    assert_eq!(refused["details"]["pid"], run.pid());
    assert!(refused["message"].as_str().unwrap().contains("this folder"), "{refused}");
    let _beside = at_work(&there);
    let listed = there.run(&["runners"]).data()["runners"].as_array().unwrap().clone();
    assert_eq!(listed.len(), 2, "{listed:#?}");
    assert!(listed.iter().all(|runner| runner["alive"] == true), "{listed:#?}");
    let engines = listed[0]["engines"].as_array().unwrap();
    assert!(engines.contains(&json!("scripted")), "{listed:#?}");
    let shown = there.run(&["status"]).data()["runners"].as_array().unwrap().clone();
    let ids =
        |runners: &[Value]| runners.iter().map(|runner| runner["runner_id"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&shown), ids(&listed));
    let mine = listed.iter().find(|runner| runner["pid"] == run.pid()).unwrap();
    let id = mine["runner_id"].as_str().unwrap();
    there.run(&["runners", "forget", id]).refused("run_already_active", 1);
    drop(run);
    let listed = there.run(&["runners"]).data()["runners"].as_array().unwrap().clone();
    let mine = listed.iter().find(|runner| runner["runner_id"] == id).unwrap();
    assert_eq!((&mine["alive"], &mine["gone_since"]), (&json!(false), &mine["seen"]), "{mine}");
}

#[test]
fn the_answer_to_a_parked_feature_wakes_its_own_runner_and_no_other() {
    let here = workshop("");
    let there = clone_of(&here);
    script_in(&[&here, &there], "shop", &json!({"builder": [ask("Which?"), built()]}));
    here.create_feature("shop");
    let mut own = at_work(&here);
    let question = own.question("shop");
    let other = at_work(&there);
    there.answer_to(&question, "yes").data();
    assert_eq!(own.end().0, Some(0));
    let (code, lines) = other.end();
    assert_eq!(code, Some(0));
    assert_eq!(turns(&lines), BTreeSet::new());
    assert_eq!((deliveries(&here).len(), deliveries(&there).len()), (1, 0));
}

/// A folder whose search path has a stand-in for iFlow, which builds at once.
fn with_iflow(folder: &Project) -> String {
    use std::os::unix::fs::PermissionsExt;
    let (bin, replies) = (folder.path(".aop/bin"), folder.path("iflow-stand-in/replies"));
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::create_dir_all(&replies).unwrap();
    let result = json!({"summary": "built", "files_changed": [], "__SKILL_DONE__": true});
    std::fs::write(replies.join("1"), result.to_string()).unwrap();
    let text = include_str!("../engine/iflow_stand_in.sh");
    let text = text.replacen(
        "resume=\n",
        "[ \"$1\" = --version ] && { echo 0.5.0; exit 0; }\necho built > built.txt\nresume=\n",
        1,
    );
    std::fs::write(bin.join("iflow"), text).unwrap();
    std::fs::set_permissions(bin.join("iflow"), std::fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())
}

#[test]
fn a_feature_goes_to_the_runner_that_has_the_engine_of_its_next_role() {
    let here = workshop("");
    std::fs::write(here.path("aop.yaml"), "engines: { default: scripted, roles: { builder: iflow } }\n")
        .unwrap();
    git(&here, &["commit", "--quiet", "-am", "Another engine"]);
    let there = clone_of(&here);
    script_in(&[&here, &there], "shop", &json!({}));
    here.create_feature("shop");
    let mut without = at_work(&here);
    let waits = without.until("the word that it waits", |line| line["type"] == "feature.waits");
    assert!(waits["text"].as_str().unwrap().contains("a runner that has iflow"), "{waits}");
    assert_eq!(here.feature("shop")["status"], "building", "it waits and is not blocked");
    assert_eq!(here.run(&["run", "--exit-when-parked", "--takeover"]).code, Some(3));
    let without = at_work(&here);
    let path = with_iflow(&there);
    let (code, lines) = Running::start_with(&there, &[], &[("PATH", &path)]).end();
    assert_eq!(code, Some(0), "{lines:#?}");
    assert_eq!(without.end().0, Some(0));
    let roles: Vec<Value> =
        events(&here, "shop", "turn.began").iter().map(|event| event["engine"].clone()).collect();
    assert_eq!(roles, [json!("scripted"), json!("iflow"), json!("scripted")]);
    assert_eq!(turns(&lines).len(), 2, "the planner worked here, the others there: {lines:#?}");
    // The branch is there, and so the merge.
    let refused = here.run(&["merge", "--feature-id", "shop"]).refused("unsupported_operation", 1);
    assert!(refused["message"].as_str().unwrap().contains(&folder(&there)), "{refused}");
    there.run(&["merge", "--feature-id", "shop"]).data();
    assert_eq!(here.feature("shop")["status"], "merged");
    assert!(there.path("built.txt").exists());
}

#[test]
fn a_feature_that_another_runner_took_over_stops_and_the_others_go_on() {
    let here = workshop("");
    for feature in ["lost", "kept"] {
        script(&here, feature, &json!({"planner": [{"wait_ms": 600_000}, plan()]}));
        here.create_feature(feature);
    }
    let mut run = at_work(&here);
    for _ in 0..2 {
        run.until("an engine", |line| line["type"] == "engine.started");
    }
    let engines = |feature: &str| {
        let folder = format!(".aop/worktrees/{feature}");
        left_over(&here)
            .into_iter()
            .filter(|line| line.contains(" scripted ") && in_folder(line, &folder))
            .count()
    };
    eventually("both are at work", || engines("lost") > 0 && engines("kept") > 0);
    let epoch = events(&here, "lost", "turn.began")[0]["epoch"].as_u64().unwrap();
    let store =
        PostgresStore::open(PostgresOptions::parse(here.address()).unwrap(), TimeSource::Database).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let taken = runtime.block_on(async {
        store.release_lease("run/lost".into(), epoch).await.unwrap();
        store.acquire_lease("run/lost".into(), "somebody else".into(), 600_000).await.unwrap().unwrap()
    });
    assert!(taken.epoch > epoch);
    eventually("the engine of what was lost is gone", || engines("lost") == 0);
    assert!(engines("kept") > 0, "the other goes on");
    runtime.block_on(store.release_lease("run/lost".into(), taken.epoch)).unwrap();
    let continued = run.until("the turn going on", |line| line["type"] == "turn.continued");
    assert_eq!(continued["feature_id"], "lost");
    assert!(continued["epoch"].as_u64().unwrap() > taken.epoch);
    run.interrupt();
    assert_eq!(run.end().0, Some(130));
    assert_nothing_left(&here);
}

#[test]
fn what_an_engine_starts_finds_the_store_of_its_run() {
    let here = workshop("");
    script(&here, "shop", &json!({"planner": [{"wait_ms": 600_000}, plan()]}));
    here.create_feature("shop");
    let _run = at_work(&here);
    let store = format!("AOP_STORE={}\0", here.address());
    let environment =
        |line: &String| std::fs::read(format!("/proc/{}/environ", line.split(' ').next().unwrap()));
    eventually("the engine has it in its environment", || {
        let engines = left_over(&here).into_iter().filter(|line| !line.contains(" guard "));
        let found = engines.filter_map(|line| String::from_utf8(environment(&line).ok()?).ok());
        found.into_iter().any(|text| text.contains(&store) && text.contains("AOP_AGENT="))
    });
}

/// Whether the process of such a line works below this folder.
fn in_folder(line: &str, folder: &str) -> bool {
    let pid = line.split(' ').next().unwrap();
    let cwd = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
    cwd.display().to_string().ends_with(folder)
}
