//! What `aop merge` does in the user's own checkout, whatever stands there and however git is set up.

use crate::run_git::head;
use crate::run_rules::spec;
use crate::run_support::{Running, built, git, pass, script, workshop};
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

/// A merge that was killed when the store had it and the branch did not.
fn interrupted() -> Project {
    let project = ready_with("work.txt", "one\ntwo\n");
    assert_eq!(project.run_with(&MERGE, &[("AOP_CRASH_AT", "merge_committed")]).code, None);
    project
}

#[test]
fn a_merge_that_was_torn_in_its_checkout_is_finished_by_the_same_command() {
    let project = interrupted();
    std::fs::write(project.path("work.txt"), "one\ntw").unwrap();
    // Git was killed over it, and nobody can know that it was this one.
    let lock = project.path(".git/index.lock");
    std::fs::write(&lock, "").unwrap();
    let refused = project.run(&MERGE).refused("unsupported_operation", 1);
    let hint = refused["details"]["hint"].as_str().unwrap();
    assert!(hint.contains(&format!("`rm {}`", lock.display())), "{hint}");
    assert!(lock.exists() && project.path("work.txt").exists());
    std::fs::remove_file(lock).unwrap();
    let merged = project.run(&MERGE).data();
    assert_eq!(merged["merge_commit"], head(&project, "main"));
    assert_eq!(std::fs::read_to_string(project.path("work.txt")).unwrap(), "one\ntwo\n");
    assert_eq!(git(&project, &["status", "--porcelain", "--untracked-files=no"]), "");
}

#[test]
fn a_merge_that_is_finished_takes_no_work_of_a_person_and_says_how_to_go_on() {
    let project = interrupted();
    let before = head(&project, "main");
    std::fs::write(project.path(".git/info/exclude"), "*.txt\n").unwrap();
    std::fs::write(project.path("work.txt"), "mine\n").unwrap();
    let refused = project.run(&MERGE).refused("version_conflict", 1);
    assert_eq!(refused["details"]["files"], json!(["work.txt"]));
    assert_eq!(std::fs::read_to_string(project.path("work.txt")).unwrap(), "mine\n");
    assert_eq!(head(&project, "main"), before);
    // What the hint says, word for word.
    let hint = refused["details"]["hint"].as_str().unwrap().to_owned();
    let commands: Vec<&str> = hint.split('`').skip(1).step_by(2).collect();
    let shell = |line: &str| {
        let line = line.replacen("aop ", &format!("{} ", crate::support::binary()), 1);
        let mut command = std::process::Command::new("sh");
        let ran = crate::support::finish(command.args(["-c", &line]).current_dir(project.root()));
        assert_eq!(ran.code, Some(0), "{line}: {ran:?}");
        ran.stdout
    };
    let said: Vec<String> = commands.into_iter().map(shell).collect();
    assert_ne!(head(&project, "main"), before);
    assert!(said[2].contains("+mine"), "{said:?}");
    assert_eq!(std::fs::read_to_string(project.path("work.txt")).unwrap(), "one\ntwo\n");
}

#[test]
fn a_feature_whose_branch_is_gone_is_built_and_merged_as_the_hint_says() {
    let project = ready_with("work.txt", "one\n");
    git(&project, &["worktree", "remove", "--force", ".aop/worktrees/shop"]);
    git(&project, &["branch", "--quiet", "-D", "aop/shop"]);
    let refused = project.run(&MERGE).refused("unsupported_operation", 1);
    let hint = refused["details"]["hint"].as_str().unwrap();
    let [back, run, merge] = hint.split('`').skip(1).step_by(2).collect::<Vec<_>>()[..] else {
        panic!("{hint}")
    };
    let back = back.replacen("aop ", &format!("{} ", crate::support::binary()), 1);
    let mut command = std::process::Command::new("sh");
    let ran = crate::support::finish(command.args(["-c", &back]).current_dir(project.root()));
    assert_eq!(ran.code, Some(0), "{back}: {ran:?}");
    assert_eq!((run, merge), ("aop run", "aop merge --feature-id shop"));
    let write = json!({"write": {"path": "work.txt", "text": "two\n"}});
    // Their sessions go on behind what they have done.
    let steps = json!({"builder": [built(), built(), write, built()], "qa": [pass(), pass()]});
    script(&project, "shop", &steps);
    let (code, lines) = Running::start(&project, &[]).end();
    assert_eq!(code, Some(0), "{lines:?}");
    assert_eq!(project.run(&MERGE).data()["merge_commit"], head(&project, "main"));
    assert_eq!(std::fs::read_to_string(project.path("work.txt")).unwrap(), "two\n");
}

#[test]
fn a_tracked_file_that_a_person_cut_or_emptied_is_not_taken_for_a_torn_one() {
    for mine in ["one\n", ""] {
        let project = workshop("");
        std::fs::write(project.path("work.txt"), "one\ntwo\n").unwrap();
        git(&project, &["add", "work.txt"]);
        git(&project, &["commit", "--quiet", "-m", "Work"]);
        let write = json!({"write": {"path": "work.txt", "text": "one\ntwo\nthree\n"}});
        script(&project, "shop", &json!({"builder": [write, built()]}));
        assert_eq!(Running::start(&project, &[&spec(&project, "shop")]).end().0, Some(0));
        assert_eq!(project.run_with(&MERGE, &[("AOP_CRASH_AT", "merge_committed")]).code, None);
        std::fs::write(project.path("work.txt"), mine).unwrap();
        let refused = project.run(&MERGE).refused("version_conflict", 1);
        assert_eq!(refused["details"]["files"], json!(["work.txt"]));
        assert_eq!(std::fs::read_to_string(project.path("work.txt")).unwrap(), mine);
        let hint = refused["details"]["hint"].as_str().unwrap();
        let stash = hint.split('`').nth(1).unwrap();
        let mut command = std::process::Command::new("sh");
        let ran = crate::support::finish(command.args(["-c", stash]).current_dir(project.root()));
        assert_eq!(ran.code, Some(0), "{stash}: {ran:?}");
        assert_eq!(project.run(&MERGE).data()["merge_commit"], head(&project, "main"));
        assert_eq!(git(&project, &["show", "stash@{0}:work.txt"]).trim(), mine.trim());
    }
}

#[test]
fn a_merge_that_begins_takes_nothing_for_torn() {
    let project = ready_with("work.txt", "one\ntwo\n");
    // A file that comes when the merge has looked and its commit is kept: nobody wrote it before for this merge.
    let hook = project.path(".git/hooks/reference-transaction");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, "#!/bin/sh\nprintf 'one\\n' > work.txt\n").unwrap();
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let refused = project.run(&MERGE).refused("version_conflict", 1);
    assert_eq!(refused["details"]["files"], json!(["work.txt"]));
    assert_eq!(std::fs::read_to_string(project.path("work.txt")).unwrap(), "one\n");
}
