//! Pipes where files should be: whoever can write into the project can make one, and nobody writes into it.

use crate::run_rules::packet;
use crate::run_support::{Running, assert_nothing_left, script, workshop};
use crate::support::{Project, finish};
use serde_json::json;
use std::process::Command;

fn pipe(project: &Project, at: &str) {
    let path = project.path(at);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = std::fs::remove_file(&path);
    assert_eq!(finish(Command::new("mkfifo").arg(&path)).code, Some(0));
}

fn spec(project: &Project, id: &str) -> String {
    script(project, id, &json!({}));
    let path = project.path(&format!("{id}.md"));
    std::fs::write(&path, "# A shop\n").unwrap();
    path.display().to_string()
}

#[test]
fn a_pipe_at_an_answer_path_or_in_place_of_a_packet_blocks_its_feature_and_holds_up_no_other() {
    let project = workshop("");
    let packets = project.path(".aop/features/gate/packets");
    std::fs::create_dir_all(&packets).unwrap();
    std::fs::write(packets.join("planning.json"), packet().to_string()).unwrap();
    pipe(&project, "answers/platform.json");
    pipe(&project, ".aop/features/packet/packets/planning.json");
    let specs = ["gate", "packet", "shop"].map(|id| spec(&project, id));
    let specs: Vec<&str> = specs.iter().map(String::as_str).collect();
    assert_eq!(Running::start(&project, &specs).end().0, Some(3));
    for id in ["gate", "packet"] {
        let feature = project.feature(id);
        assert_eq!(feature["status"], "blocked", "{feature}");
        assert!(feature["status_reason"].as_str().unwrap().contains("a pipe"), "{feature}");
    }
    assert_eq!(project.feature("shop")["status"], "ready_to_merge");
}

#[test]
fn a_git_that_waits_for_what_never_comes_is_ended_and_its_feature_blocked() {
    let pipe = "rm -f .gitignore && mkfifo .gitignore";
    let project = workshop(&format!("run: {{ git_timeout_s: 1 }}\nchecks: {{ fast: ['{pipe}'] }}\n"));
    assert_eq!(Running::start(&project, &[&spec(&project, "shop")]).end().0, Some(3));
    let feature = project.feature("shop");
    let reason = feature["status_reason"].as_str().unwrap();
    assert!(reason.contains("took longer than 1 s and was ended"), "{feature}");
    assert!(
        reason.contains("run.git_timeout_s") && reason.contains("aop retry --feature-id shop"),
        "{reason}"
    );
    assert_nothing_left(&project);
    std::fs::remove_file(project.path(".aop/worktrees/shop/.gitignore")).unwrap();
    project.run(&["retry", "--feature-id", "shop"]).data();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0));
}

#[test]
fn a_pipe_in_place_of_a_file_of_the_projects_own_is_told_or_replaced_and_not_waited_for() {
    let project = workshop("");
    project.create_feature("shop");
    pipe(&project, ".aop/features/shop/state.md");
    assert_eq!(project.run(&["doctor"]).code, Some(1), "it is not what it was");
    pipe(&project, ".aop/projected");
    project.run(&["doctor", "--repair"]).data();
    project.assert_healthy();
    pipe(&project, ".aop/projections.lock");
    let created = project.run(&["features", "create", "--feature-id", "two", "--title", "Two"]);
    created.data();
    assert!(created.stderr.contains("a pipe"), "{created:?}");
    std::fs::remove_file(project.path(".aop/projections.lock")).unwrap();
    pipe(&project, "aop.yaml");
    let refused = project.run(&["status"]).refused("invalid_policy", 2);
    assert!(refused["message"].as_str().unwrap().contains("a pipe"), "{refused}");
}

#[test]
fn a_folder_in_place_of_a_file_and_a_file_in_place_of_a_folder_are_repaired_or_told_with_what_to_do() {
    let project = Project::with_feature();
    let files = |args: &[&str]| {
        let checks = project.run(args).envelope()["data"]["checks"].clone();
        let all = checks.as_array().unwrap().clone();
        let files = all.into_iter().find(|check| check["name"] == "files").unwrap();
        (files["ok"] == true, files["message"].as_str().unwrap().to_owned())
    };
    let repair = ["doctor", "--repair"];
    for path in ["features/shop/state.md", "features/index.json", "projected"] {
        let path = project.path(&format!(".aop/{path}"));
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(files(&repair).0, "an empty one holds nothing: {path:?}");
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir_all(path.join("mine")).unwrap();
        let (repaired, told) = files(&repair);
        assert!(!repaired && path.join("mine").exists(), "{told}");
        assert!(told.contains(&format!("{}: ", path.display())), "{told}");
        assert!(told.ends_with("move it away, then `aop doctor --repair`"), "{told}");
        std::fs::rename(&path, project.path("away")).unwrap();
        std::fs::remove_dir_all(project.path("away")).unwrap();
        assert!(files(&repair).0);
    }
    let folder = project.path(".aop/features/shop");
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::write(&folder, "mine").unwrap();
    let (repaired, told) = files(&repair);
    assert!(
        !repaired && told.starts_with(&format!("{}: a folder belongs there", folder.display())),
        "{told}"
    );
    std::fs::remove_file(&folder).unwrap();
    assert!(files(&repair).0);
    project.assert_healthy();
}

#[test]
fn what_is_in_place_of_the_record_of_a_turn_is_told_once_or_with_what_to_do() {
    let project = workshop("");
    let turn = project.path(".aop/runs/r_1/shop/turn-shop-1");
    std::fs::create_dir_all(&turn).unwrap();
    let warned = || {
        let run = project.run(&["run"]);
        assert_eq!(run.code, Some(0), "{run:?}");
        let lines = run.stdout.lines().chain(run.stderr.lines());
        lines.filter(|line| line.contains("left-over")).map(str::to_owned).collect::<Vec<_>>()
    };
    pipe(&project, ".aop/runs/r_1/shop/turn-shop-1/process.json");
    let told = warned();
    assert!(told.len() == 1 && told[0].contains("a pipe or a device"), "{told:?}");
    assert_eq!(warned(), Vec::<String>::new(), "it was taken away");
    std::fs::create_dir(turn.join("process.json")).unwrap();
    let told = warned();
    let command = told[0].split('`').nth(1).unwrap();
    assert_eq!(warned(), told, "a folder may be somebody's");
    let ran = finish(Command::new("sh").args(["-c", command]).current_dir(project.root()));
    assert_eq!((ran.code, warned()), (Some(0), Vec::new()), "{ran:?}");
}
