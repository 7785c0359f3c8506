//! What `aop merge` does in the user's own checkout, whatever stands there and however git is set up.

use crate::run_git::head;
use crate::run_rules::spec;
use crate::run_support::{Running, built, script, workshop};
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
