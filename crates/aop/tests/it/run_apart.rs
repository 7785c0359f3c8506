//! The project's own folder, and what agents put into its place in their worktrees.

use crate::run_support::{Running, built, git, script, workshop};
use crate::support::{Project, finish};
use serde_json::json;
use std::process::Command;

fn spec(project: &Project) -> String {
    let path = project.path("shop.md");
    std::fs::write(&path, "# The shop\n").unwrap();
    path.display().to_string()
}

/// Does what a hint says first.
fn by_hand(project: &Project, hint: &str) {
    let line = hint.split('`').nth(1).unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(project.root()).env("EMAIL", "a@b");
    let ran = finish(&mut command);
    assert_eq!(ran.code, Some(0), "{line}: {ran:?}");
}

#[test]
fn work_that_reaches_into_the_projects_own_folder_blocks_its_feature_and_goes_on_without_that() {
    let project = workshop("");
    let packet = ".aop/features/other/packets/planning.json";
    let builder = json!([
        {"write": {"path": packet, "text": "{}"}},
        {"write": {"path": "work.txt", "text": "work\n"}},
        built(), built()
    ]);
    script(&project, "shop", &json!({"builder": builder}));
    assert_eq!(Running::start(&project, &[&spec(&project)]).end().0, Some(3));
    let feature = project.feature("shop");
    let reason = feature["status_reason"].as_str().unwrap();
    assert_eq!(feature["status"], "blocked");
    assert!(reason.contains(packet), "{reason}");
    by_hand(&project, reason);
    project.run(&["retry", "--feature-id", "shop"]).data();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0));
    assert_eq!(project.run(&["merge", "--feature-id", "shop"]).data()["status"], "merged");
    assert!(project.path("work.txt").exists() && !project.path(packet).exists());
}

#[test]
fn a_branch_that_reaches_into_the_projects_own_folder_is_not_merged_and_nothing_is_recorded() {
    let project = workshop("");
    script(&project, "shop", &json!({}));
    assert_eq!(Running::start(&project, &[&spec(&project)]).end().0, Some(0));
    let worktree = project.path(".aop/worktrees/shop");
    let before = git(&project, &["rev-parse", "main"]);
    let put = [
        "mkdir .aop && echo x > .aop/aop.db",
        "mkdir -p .aop/worktrees/other && echo x > .aop/worktrees/other/x",
        "mkdir .Aop && echo x > .Aop/project",
        "echo x > .aop",
        "ln -s /tmp .aop",
    ];
    for put in put {
        let line = format!("{put} && git add -A && git commit --quiet -m more");
        let mut command = Command::new("sh");
        command.args(["-c", &line]).current_dir(&worktree).env("EMAIL", "a@b").env("HOME", project.root());
        assert_eq!(finish(&mut command).code, Some(0), "{line}");
        let refused = project.run(&["merge", "--feature-id", "shop"]).refused("unsupported_operation", 1);
        assert!(refused["message"].as_str().unwrap().contains("the project's own folder"), "{refused}");
        assert_eq!(project.feature("shop")["status"], "ready_to_merge", "{put}");
        assert_eq!(git(&project, &["rev-parse", "main"]), before);
        assert_eq!(git(&project, &["for-each-ref", "refs/aop"]), "");
        project.assert_healthy();
        let hint = refused["details"]["hint"].as_str().unwrap();
        by_hand(&project, hint);
        git(&project, &["-C", worktree.to_str().unwrap(), "commit", "--quiet", "-m", "As the hint says"]);
    }
    // What is left is work, and is checked before it is merged.
    project.run(&["merge", "--feature-id", "shop"]).refused("checks_failed", 1);
}
