//! A store that cannot be read or written: the message says which file and why, and nothing is half-written.
//! The disks are real ones: small tmpfs mounts in a mount namespace of the test's own.

use crate::support::{Project, Run, binary, finish};
use serde_json::Value;
use std::process::Command;

#[test]
fn a_store_that_is_not_a_database_is_named_and_left_alone() {
    let project = Project::new();
    for name in ["aop.db", "aop.db-wal", "aop.db-shm"] {
        let _ = std::fs::remove_file(project.path(&format!(".aop/{name}")));
    }
    std::fs::write(project.path(".aop/aop.db"), "these are not the bytes you are looking for\n".repeat(200))
        .unwrap();
    let before = std::fs::read(project.path(".aop/aop.db")).unwrap();
    for command in [&["status"][..], &["init"], &["features", "create", "--feature-id", "a", "--title", "A"]]
    {
        let error = project.run(command).refused("store_unavailable", 1);
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("aop.db") && message.contains("not a database"), "{message}");
    }
    assert_eq!(std::fs::read(project.path(".aop/aop.db")).unwrap(), before);
    let doctor = project.run(&["doctor"]);
    assert_eq!(doctor.code, Some(1));
    assert_eq!(doctor.envelope()["data"]["healthy"], false);
}

#[test]
fn a_folder_in_the_place_of_the_store_is_named() {
    let project = Project::new();
    for name in ["aop.db", "aop.db-wal", "aop.db-shm"] {
        let _ = std::fs::remove_file(project.path(&format!(".aop/{name}")));
    }
    std::fs::create_dir(project.path(".aop/aop.db")).unwrap();
    let error = project.run(&["status"]).refused("store_unavailable", 1);
    assert!(error["message"].as_str().unwrap().contains("aop.db"), "{error}");
}

/// Runs a shell script in a mount namespace of its own, in the project's folder, with `$AOP` as the binary.
fn in_own_mounts(project: &Project, script: &str) -> Run {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-eu", "-c", script]);
    command.current_dir(project.root()).env("AOP", binary());
    finish(&mut command)
}

/// The envelopes a script printed, a line each.
fn envelopes(run: &Run) -> Vec<Value> {
    assert!(!run.stdout.is_empty(), "the script did not get far: {run:?}");
    run.stdout.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{run:?}"))).collect()
}

#[test]
fn a_full_disk_refuses_the_operation_whole_and_lets_it_through_once_there_is_space() {
    let project = Project::empty();
    let run = in_own_mounts(
        &project,
        r#"
        mkdir disk && mount -t tmpfs -o size=600k tmpfs disk && cd disk
        $AOP init >/dev/null && $AOP features create --feature-id shop --title Shop >/dev/null
        dd if=/dev/zero of=ballast bs=4k 2>/dev/null || true
        n=0
        while $AOP tool call feature.log_append --role human --input "{\"feature_id\":\"shop\",\"note\":\"$n\",\"operation_id\":\"n-$n\"}" >last 2>/dev/null
        do n=$((n+1)); test $n -lt 500; done
        $AOP tool call feature.log_append --role human --input "{\"feature_id\":\"shop\",\"note\":\"x\",\"operation_id\":\"x\"}" || true
        $AOP log >before.json || $AOP log
        rm ballast
        $AOP tool call feature.log_append --role human --input "{\"feature_id\":\"shop\",\"note\":\"x\",\"operation_id\":\"x\"}"
        $AOP doctor --repair
        "#,
    );
    let seen = envelopes(&run);
    let refused = &seen[0]["error"];
    assert_eq!(refused["code"], "store_unavailable", "{run:?}");
    assert!(refused["details"]["hint"].as_str().unwrap().contains("disk is full"), "{run:?}");
    let last = &seen[seen.len() - 2..];
    assert_eq!(last[0]["ok"], true, "{run:?}");
    assert_eq!(last[1]["data"]["healthy"], true, "{run:?}");
}

#[test]
fn a_read_only_disk_is_named_and_nothing_is_written() {
    let project = Project::empty();
    let run = in_own_mounts(
        &project,
        r#"
        mkdir disk && mount -t tmpfs -o size=4m tmpfs disk && cd disk
        $AOP init >/dev/null && $AOP features create --feature-id shop --title Shop >/dev/null
        mount -o remount,ro .
        $AOP features create --feature-id other --title Other || true
        $AOP init --project . || true
        mount -o remount,rw .
        $AOP features list
        "#,
    );
    let seen = envelopes(&run);
    assert_eq!(seen[0]["error"]["code"], "store_unavailable", "{run:?}");
    let message = seen[0]["error"]["message"].as_str().unwrap().to_lowercase();
    assert!(message.contains(".aop/") && message.contains("read-only"), "{run:?}");
    assert_eq!(seen.last().unwrap()["data"]["items"].as_array().unwrap().len(), 1, "{run:?}");
}

#[test]
fn a_projection_that_cannot_be_written_is_a_warning_and_never_a_failed_operation() {
    let project = Project::with_feature();
    std::fs::remove_dir_all(project.path(".aop/features/shop")).unwrap();
    std::fs::write(project.path(".aop/features/shop"), "in the way").unwrap();
    let id = project.run(&[
        "tool",
        "call",
        "feature.question_create",
        "--role",
        "builder",
        "--input",
        &crate::support::question("shop", "op-1").to_string(),
    ]);
    id.data();
    assert!(id.stderr.contains("warning: the change is stored, but its files are behind"), "{id:?}");
    std::fs::remove_file(project.path(".aop/features/shop")).unwrap();
    project.create_feature("next");
    project.assert_healthy();
}

#[test]
fn a_project_whose_database_is_gone_or_empty_is_not_begun_anew() {
    for (left, gone) in [
        (&["aop.db-wal"][..], "is gone"),
        (&[], "is gone"),
        (&["aop.db", "aop.db-wal"], "is empty"),
        (&["aop.db"], "is empty"),
    ] {
        let project = Project::with_feature();
        for name in ["aop.db", "aop.db-wal", "aop.db-shm"].into_iter().filter(|name| !left.contains(name)) {
            let _ = std::fs::remove_file(project.path(".aop").join(name));
        }
        if left.contains(&"aop.db") {
            std::fs::write(project.path(".aop/aop.db"), "").unwrap();
        }
        let before = crate::support::tree(&project.path(".aop"));
        for command in [&["status"][..], &["ask", "Which?"], &["store", "migrate"], &["init"]] {
            let error = project.run(command).refused("store_unavailable", 1);
            let hint = error["details"]["hint"].as_str().unwrap();
            assert!(
                error["message"].as_str().unwrap().contains(&format!("aop.db {gone}"))
                    && hint.contains("move"),
                "{error}"
            );
        }
        let doctor = project.run(&["doctor", "--repair"]);
        assert!(doctor.code == Some(1) && doctor.stdout.contains(&format!("aop.db {gone}")), "{doctor:?}");
        assert_eq!(crate::support::tree(&project.path(".aop")), before);
        std::fs::rename(project.path(".aop"), project.path("away")).unwrap();
        project.run(&["init"]).data();
        project.assert_healthy();
    }
}
