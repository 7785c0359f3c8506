//! Several folders, as on several machines, on one project of one database.

use crate::support::{Project, finish, new_postgres_project, question, wait};
use serde_json::json;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A command in another folder, on the project at this address.
pub(super) fn elsewhere(folder: &Project, address: &str, args: &[&str]) -> Command {
    let mut command = folder.command(args);
    command.env("AOP_STORE", address);
    command
}

#[test]
fn two_folders_on_one_project_share_its_questions() {
    let address = new_postgres_project();
    let (here, there) = (Project::empty(), Project::empty());
    for folder in [&here, &there] {
        finish(&mut elsewhere(folder, &address, &["init"])).data();
    }
    let run = |folder: &Project, args: &[&str]| finish(&mut elsewhere(folder, &address, args));
    run(&here, &["features", "create", "--feature-id", "shop", "--title", "A shop"]).data();
    let waiting = elsewhere(
        &here,
        &address,
        &["ask", "May I?", "--choice", "yes", "--choice", "no", "--feature-id", "shop"],
    )
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    let open = loop {
        let items = run(&there, &["questions"]).data()["items"].clone();
        if items[0].is_object() {
            break items[0].clone();
        }
        assert!(Instant::now() < deadline, "the question never came");
    };
    let id = open["question_id"].as_str().unwrap();
    run(&there, &["answer", "--feature-id", "shop", "--question-id", id, "--answer", "yes"]).data();
    let told = wait(waiting);
    assert_eq!(told.data()["answer"], "yes", "{told:?}");
    let status = run(&here, &["store", "status"]).data();
    assert_eq!((&status["kind"], &status["features"]), (&json!("postgres"), &json!(1)));
    assert!(status["place"].as_str().unwrap().ends_with(status["project"].as_str().unwrap()));
    for folder in [&here, &there] {
        let healthy = run(folder, &["doctor", "--repair"]).data()["healthy"].clone();
        assert_eq!(healthy, true);
    }
}

/// With `.aop/` there, the next command without AOP_STORE would take the folder for a project with a store of its own.
#[test]
fn an_init_that_fails_leaves_nothing_behind_and_names_the_password_that_is_missing() {
    let project = Project::empty();
    let nowhere = "postgres://ann@127.0.0.1:9/team?project=shop";
    finish(&mut elsewhere(&project, nowhere, &["init"])).refused("store_unavailable", 1);
    let server = aop_testkit::postgres::Server::own("-c fsync=off");
    server.sql("postgres", "CREATE ROLE ann LOGIN PASSWORD 'hunter2'");
    server.sql("postgres", "CREATE DATABASE team OWNER ann");
    server.demand_passwords("ann");
    let address = format!("{}?project=shop", server.address("team").replace("aop@", "ann@"));
    let refused = finish(&mut elsewhere(&project, &address, &["init"])).refused("store_unavailable", 1);
    assert!(refused["details"]["hint"].as_str().unwrap().contains("PGPASSWORD"), "{refused}");
    let with_none = finish(elsewhere(&project, &address, &["init"]).env("PGPASSWORD", ""));
    assert_eq!(with_none.refused("store_unavailable", 1), refused, "an empty password is none");
    let left: Vec<_> = std::fs::read_dir(project.root()).unwrap().flatten().map(|file| file.path()).collect();
    assert!(left.is_empty(), "{left:?}");
    let with_password = |command: &mut Command| finish(command.env("PGPASSWORD", "hunter2"));
    with_password(&mut elsewhere(&project, &address, &["init"])).data();
}

#[test]
fn a_password_is_never_printed() {
    let project = Project::empty();
    let address = "postgres://ann:hunter2@127.0.0.1:9/team?project=shop";
    for args in
        [&["init"][..], &["status"], &["store", "status"], &["doctor"], &["store", "copy", "--to", address]]
    {
        let run = finish(&mut elsewhere(&project, address, args));
        assert!(!format!("{run:?}").contains("hunter2"), "{run:?}");
        assert_ne!(run.code, Some(0), "{args:?}");
    }
    std::fs::write(project.path("aop.yaml"), "store: postgres://ann:hunter2@db/team?project=a b\n").unwrap();
    let run = finish(project.command(&["init"]).env_remove("AOP_STORE"));
    assert!(run.stdout.contains("invalid_policy") && !format!("{run:?}").contains("hunter2"), "{run:?}");
}

#[test]
fn a_folder_is_never_moved_silently_from_one_store_to_another() {
    let address = new_postgres_project();
    let project = Project::empty();
    let embedded = |args: &[&str]| finish(project.command(args).env_remove("AOP_STORE"));
    let shared = |args: &[&str]| finish(&mut elsewhere(&project, &address, args));
    embedded(&["init"]).data();
    embedded(&["features", "create", "--feature-id", "shop", "--title", "A shop"]).data();
    let refused = shared(&["status"]).refused("store_unavailable", 1);
    assert!(refused["details"]["hint"].as_str().unwrap().contains("aop init"), "{refused}");
    // The whole way: copy, go over, work there, copy back.
    let id = embedded(&[
        "tool",
        "call",
        "feature.question_create",
        "--role",
        "builder",
        "--input",
        &question("shop", "op-1").to_string(),
    ])
    .data()["question_id"]
        .clone();
    let copied = embedded(&["store", "copy", "--to", &address]).data();
    assert_eq!(copied["last_event"], 3, "{copied}");
    embedded(&["store", "copy", "--to", &address]).refused("project_not_empty", 1);
    shared(&["init"]).data();
    let open = shared(&["questions"]).data()["items"].clone();
    assert_eq!(open[0]["question_id"], id);
    shared(&["answer", "--feature-id", "shop", "--question-id", id.as_str().unwrap(), "--answer", "yes"])
        .data();
    assert_eq!(shared(&["doctor"]).data()["healthy"], true);
    embedded(&["status"]).refused("store_unavailable", 1);
    shared(&["store", "copy", "--to", "sqlite"]).refused("project_not_empty", 1);
    std::fs::remove_file(project.path(".aop/aop.db")).unwrap();
    for rest in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(project.path(&format!(".aop/aop.db{rest}")));
    }
    let back = shared(&["store", "copy", "--to", "sqlite"]).data();
    assert_eq!(back["last_event"], 5, "{back}");
    embedded(&["init"]).data();
    assert_eq!(embedded(&["questions", "--status", "answered"]).data()["items"][0]["question_id"], id);
    assert_eq!(embedded(&["doctor"]).data()["healthy"], true);
    assert_eq!(embedded(&["store", "migrate"]).data()["applied"], json!([]));
}
