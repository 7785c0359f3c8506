//! What `aop merge` does in the user's own checkout, whatever stands there and however git is set up.

use crate::run_git::head;
use crate::run_rules::spec;
use crate::run_support::{Running, built, git, script, workshop};
use crate::support::Project;
use serde_json::json;

const MERGE: [&str; 3] = ["merge", "--feature-id", "shop"];

/// A project whose feature `shop` can be merged and has this file.
fn ready_with(name: &str, text: &str) -> Project {
    let project = workshop("");
    let write = json!({"write": {"path": name, "text": text}});
    script(&project, "shop", &json!({"builder": [write, built()]}));
    assert_eq!(Running::start(&project, &[&spec(&project, "shop")]).end().0, Some(0));
    project
}

#[test]
fn what_git_ignores_refuses_the_merge_where_the_feature_has_its_own() {
    let project = ready_with(".env", "theirs\n");
    std::fs::write(project.path(".git/info/exclude"), ".env\n").unwrap();
    std::fs::write(project.path(".env"), "mine\n").unwrap();
    let before = head(&project, "main");
    let refused = project.run(&MERGE).refused("version_conflict", 1);
    assert_eq!(refused["details"]["files"], json!([".env"]));
    assert_eq!(project.feature("shop")["status"], "ready_to_merge");
    assert_eq!(head(&project, "main"), before);
    assert_eq!(std::fs::read_to_string(project.path(".env")).unwrap(), "mine\n");
    std::fs::rename(project.path(".env"), project.path(".env.mine")).unwrap();
    assert_eq!(project.run(&MERGE).data()["status"], "merged");
    assert_eq!(std::fs::read_to_string(project.path(".env")).unwrap(), "theirs\n");
}

#[test]
fn a_merge_is_on_its_branch_or_refused_whatever_git_is_set_to_and_in_the_middle_of() {
    let project = ready_with("work.txt", "work\n");
    git(&project, &["config", "merge.verifySignatures", "true"]);
    git(&project, &["config", "branch.main.mergeOptions", "--squash"]);
    git(&project, &["branch", "other"]);
    git(&project, &["commit", "--quiet", "--allow-empty", "-m", "My own"]);
    let mine = head(&project, "main");
    git(&project, &["switch", "--quiet", "other"]);
    git(&project, &["commit", "--quiet", "--allow-empty", "-m", "Another"]);
    git(&project, &["switch", "--quiet", "main"]);
    git(&project, &["-c", "merge.verifySignatures=false", "merge", "--no-squash", "--no-commit", "other"]);
    let refused = project.run(&MERGE).refused("unsupported_operation", 1);
    assert!(refused["message"].as_str().unwrap().starts_with("a merge has begun"), "{refused}");
    assert_eq!(project.feature("shop")["status"], "ready_to_merge");
    assert_eq!(head(&project, "main"), mine);
    git(&project, &["merge", "--abort"]);
    let merged = project.run(&MERGE).data();
    assert_eq!(merged["merge_commit"], head(&project, "main"));
    assert!(project.path("work.txt").exists());
}

#[test]
fn doctor_names_a_merge_that_its_branch_does_not_have() {
    let project = ready_with("work.txt", "work\n");
    let git_check = || {
        let checks = project.run(&["doctor"]).envelope()["data"]["checks"].clone();
        checks.as_array().unwrap().iter().find(|check| check["name"] == "git").unwrap().clone()
    };
    assert_eq!(project.run_with(&MERGE, &[("AOP_CRASH_AT", "merge_committed")]).code, None);
    let found = git_check();
    assert_eq!(found["ok"], false);
    assert!(found["message"].as_str().unwrap().contains("`aop merge --feature-id shop`"), "{found}");
    project.run(&MERGE).data();
    assert_eq!(git_check()["ok"], true);
}
