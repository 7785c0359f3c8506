//! What a run does with the repository: in a copy of a project, after a move, and with what agents and people do there.

use crate::run_support::{Running, ask, git, plan, script, workshop};
use crate::support::{Project, finish};
use serde_json::{Value, json};

fn spec(project: &Project, name: &str) -> String {
    let path = project.path(&format!("{name}.md"));
    std::fs::write(&path, format!("# The {name}\n")).unwrap();
    path.display().to_string()
}

/// A project whose feature `shop` waits for an answer to its planner; the question.
fn parked() -> (Project, Value) {
    let project = workshop("");
    script(&project, "shop", &json!({"planner": [ask("Which?"), plan()]}));
    let mut run = Running::start(&project, &["--exit-when-parked", &spec(&project, "shop")]);
    let question = run.question("shop");
    assert_eq!(run.end().0, Some(3));
    (project, question)
}

/// `cp -a`, as a person would.
fn copied(project: &Project) -> Project {
    let copy = project.beside();
    let mut command = std::process::Command::new("cp");
    let ran = finish(command.arg("-a").arg(project.path(".")).arg(copy.root()));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    copy
}

/// The same project in another place.
fn moved(project: &Project) -> Project {
    let place = project.beside();
    for entry in std::fs::read_dir(project.root()).unwrap().flatten() {
        std::fs::rename(entry.path(), place.root().join(entry.file_name())).unwrap();
    }
    place
}

fn head(project: &Project, branch: &str) -> String {
    git(project, &["rev-parse", branch])
}

#[test]
fn a_copied_project_works_in_its_own_repository_and_leaves_the_original_alone() {
    let (project, question) = parked();
    let (link, before) = (project.path(".aop/worktrees/shop/.git"), head(&project, "aop/shop"));
    let was = std::fs::read_to_string(&link).unwrap();
    let copy = copied(&project);
    copy.answer_to(&question, "yes").data();
    assert_eq!(Running::start(&copy, &[]).end().0, Some(0));
    assert_ne!(head(&copy, "aop/shop"), before, "the copy has built it");
    assert_eq!(head(&project, "aop/shop"), before);
    assert_eq!(std::fs::read_to_string(&link).unwrap(), was);
    assert!(!project.path(".aop/worktrees/shop/work.txt").exists());
    project.answer_to(&question, "yes").data();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0));
    for project in [project, copy] {
        assert_eq!(project.run(&["merge", "--feature-id", "shop"]).data()["status"], "merged");
        assert!(project.path("work.txt").exists() && !project.path(".aop/worktrees/shop").exists());
    }
}

#[test]
fn a_moved_project_goes_on_and_a_new_feature_costs_the_others_nothing() {
    let (project, question) = parked();
    std::fs::write(project.path(".aop/worktrees/shop/begun.txt"), "not committed\n").unwrap();
    let place = moved(&project);
    place.assert_healthy();
    // A worktree that is made has git forget those that it takes for gone.
    script(&place, "other", &json!({}));
    assert_eq!(Running::start(&place, &["--exit-when-parked", &spec(&place, "other")]).end().0, Some(3));
    place.answer_to(&question, "yes").data();
    assert_eq!(Running::start(&place, &[]).end().0, Some(0));
    for (id, file) in [("shop", "begun.txt"), ("other", "work.txt")] {
        assert_eq!(git(&place, &["cat-file", "-t", &format!("aop/{id}:{file}")]), "blob");
    }
    assert_eq!(place.run(&["merge", "--feature-id", "shop"]).data()["status"], "merged");
}

#[test]
fn doctor_names_a_worktree_that_needs_a_person() {
    let (project, _) = parked();
    std::fs::remove_file(project.path(".aop/worktrees/shop/.git")).unwrap();
    git(&project, &["worktree", "prune"]);
    let doctor = project.run(&["doctor"]).data();
    let found = doctor["checks"].as_array().unwrap().iter().find(|check| check["name"] == "git").unwrap();
    assert_eq!(found["warning"], true, "{found}");
    let told = found["message"].as_str().unwrap();
    assert!(told.contains(".aop/worktrees/shop") && told.contains("aop retry --feature-id shop"), "{told}");
}

#[test]
fn a_run_in_a_copy_leaves_the_run_of_the_original_alone() {
    let project = workshop("");
    script(&project, "shop", &json!({"planner": [ask("Which?"), plan()]}));
    let mut run = Running::start(&project, &[&spec(&project, "shop")]);
    let question = run.question("shop");
    let tell = |signal: &str| {
        let told =
            std::process::Command::new("kill").args([signal, &run.pid().to_string()]).status().unwrap();
        assert!(told.success());
    };
    // Nothing is written while it is copied.
    tell("-STOP");
    let (copy, taken) = (copied(&project), copied(&project));
    tell("-CONT");
    assert_eq!(Running::start(&copy, &["--exit-when-parked"]).end().0, Some(3));
    assert_eq!(Running::start(&taken, &["--exit-when-parked", "--takeover"]).end().0, Some(3));
    project.answer_to(&question, "yes").data();
    assert_eq!(run.end().0, Some(0), "the original's run was stopped");
}
