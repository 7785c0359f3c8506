//! `aop export` and `aop import`: a history leaves a project and comes back whole, or not at all.

use crate::support::{Project, question, tree, wait};
use aop_kernel::hex::hexadecimal;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::Stdio;

/// A project with an answered question, an open one and a secret; its export.
fn exported() -> (Project, PathBuf) {
    let project = Project::with_feature();
    let answered = project.ask("op-1");
    project.answer(&answered, "yes").data();
    let spec = json!({"version": 1, "topic": "key", "questions": [{"id": "key", "header": "Key",
        "question": "Which key?", "kind": "free_text", "required": true, "secret": true}]});
    let mut input = question("shop", "op-2");
    input["spec"] = spec;
    input["expected_answer"] = Value::Null;
    let secret = project.tool("feature.question_create", "builder", &input).data();
    let id = secret["question_id"].as_str().unwrap();
    project.answer(id, r#"{"key": "hunter2"}"#).data();
    project.ask("op-3");
    let file = project.path("out.jsonl");
    let told = project.run(&["export", "--output", "out.jsonl"]).data();
    assert_eq!(told["last_seq"], project.run(&["replay"]).data()["seq"]);
    (project, file)
}

fn text(file: &PathBuf) -> String {
    std::fs::read_to_string(file).unwrap()
}

#[test]
fn an_import_gives_the_same_state_and_the_same_answers_to_retries() {
    let (source, file) = exported();
    let copy = Project::new();
    let imported = copy.run(&["import", file.to_str().unwrap()]).data();
    let (was, is) = (source.run(&["replay"]).data(), copy.run(&["replay"]).data());
    assert_eq!(is, was);
    assert_eq!(imported["state_digest"], is["digest"]);
    assert_eq!(is["matches_store"], true);
    copy.assert_healthy();
    let retry = question("shop", "op-1");
    let first = source.tool("feature.question_create", "builder", &retry).stdout;
    assert_eq!(copy.tool("feature.question_create", "builder", &retry).stdout, first, "byte for byte");
    let open = copy.run(&["questions"]).data()["items"][0]["question_id"].as_str().unwrap().to_owned();
    copy.answer(&open, "no").data();
    let second = copy.path("second.jsonl");
    let other = Project::new();
    other.run(&["import", file.to_str().unwrap()]).data();
    other.run(&["export", "--output", second.to_str().unwrap()]).data();
    let lines = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines(&text(&second)), lines(&text(&file)), "an export of an import is the same export");
}

#[test]
fn an_export_shows_no_secret_and_only_its_owner_can_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let (source, file) = exported();
    assert!(!text(&file).contains("hunter2"));
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let printed = source.run(&["export"]).stdout;
    assert_eq!(printed, text(&file), "stdout gets the same bytes");
    let left: Vec<_> = tree(source.root())
        .into_iter()
        .filter(|(path, _)| path.to_string_lossy().contains("partial"))
        .collect();
    assert!(left.is_empty(), "nothing half-written stays: {left:?}");
}

#[test]
fn an_export_to_stdout_has_no_file_that_others_could_touch_or_a_kill_could_leave() {
    let project = Project::new();
    for id in ["a", "b", "c", "d"] {
        project.create_feature(id);
        let mut long = question(id, id);
        long["prompt"] = json!("Which one? ".repeat(5_000));
        project.tool("feature.question_create", "builder", &long).data();
    }
    let temporary = project.path("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let is_there = || {
        let files = tree(project.root()).into_iter();
        files.filter(|(path, _)| path.to_string_lossy().contains("partial")).count()
    };
    for folder in [temporary.as_path(), &project.path("missing")] {
        let mut export = project.command(&["export"]);
        let mut export = export.env("TMPDIR", folder).stdout(Stdio::piped()).spawn().unwrap();
        // It has begun to print, and cannot end: nobody reads the rest.
        export.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        assert_eq!(is_there(), 0);
        export.kill().unwrap();
        export.wait().unwrap();
        assert_eq!(is_there(), 0);
    }
}

#[test]
fn an_export_clears_away_what_a_killed_one_has_left() {
    let (project, file) = exported();
    let left = [".aop/.aop-export-17.partial", ".aop-export-18.partial"].map(|name| project.path(name));
    left.iter().for_each(|path| std::fs::write(path, "half").unwrap());
    project.run(&["export", "--output", file.to_str().unwrap()]).data();
    assert!(!left.iter().any(|path| path.exists()));
}

#[test]
fn a_dash_stands_for_stdout_and_stdin() {
    let (project, file) = exported();
    assert_eq!(project.run(&["export", "--output", "-"]).stdout, text(&file));
    assert!(!project.path("-").exists());
    for from in ["-", "/dev/stdin"] {
        let copy = Project::new();
        let mut import = copy.command(&["import", from]);
        let mut import = import.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        import.stdin.take().unwrap().write_all(text(&file).as_bytes()).unwrap();
        wait(import).data();
        assert_eq!(copy.run(&["replay"]).data(), project.run(&["replay"]).data());
    }
}

#[test]
fn an_export_replaces_files_and_nothing_else() {
    let (project, file) = exported();
    project.run(&["export", "--output", file.to_str().unwrap()]).data();
    let socket = project.path("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    std::os::unix::fs::symlink(&socket, project.path("link")).unwrap();
    std::os::unix::fs::symlink(&file, project.path("to-file")).unwrap();
    std::fs::write(&file, "older").unwrap();
    project.run(&["export", "--output", "to-file"]).data();
    assert!(project.path("to-file").is_symlink() && text(&file).contains("aop_export"), "through the link");
    for name in ["socket", "link", ".aop"] {
        let error = project.run(&["export", "--output", name]).refused("invalid_argument", 2);
        assert_eq!(error["message"], format!("{name} exists and is not a regular file").as_str());
    }
    assert!(!socket.symlink_metadata().unwrap().is_file(), "it is still what it was");
}

#[test]
fn an_export_takes_the_place_of_no_file_that_a_project_lives_on() {
    let (project, _file) = exported();
    let other = Project::new();
    std::fs::write(project.path("settings"), "").unwrap();
    std::fs::remove_file(project.path("aop.yaml")).unwrap();
    for (to, link) in
        [("settings", "aop.yaml"), (".aop/write.lock", "lock"), (".aop", "folder"), ("gone", "out")]
    {
        std::os::unix::fs::symlink(project.path(to), project.path(link)).unwrap();
    }
    let kept = |project: &Project| {
        project.assert_healthy();
        let settings = std::fs::read(project.path("aop.yaml")).unwrap();
        (project.run(&["replay"]).data(), project.run(&["features", "list"]).data(), settings)
    };
    let before = (kept(&project), kept(&other));
    let own = [".aop/aop.db", ".aop/aop.db-wal", ".aop/write.lock", ".aop/features/shop/questions.json"];
    let by_link = ["aop.yaml", "settings", "lock", "folder/aop.db", "folder/new.jsonl", ".aop/../aop.yaml"];
    let theirs = [".aop/aop.db", "aop.yaml"].map(|name| other.path(name).display().to_string());
    let new = [".aop/new.jsonl".to_owned(), project.path(".aop/features/new").display().to_string()];
    for output in own.iter().chain(&by_link).copied().chain(theirs.iter().chain(&new).map(String::as_str)) {
        let error = project.run(&["export", "--output", output]).refused("invalid_argument", 2);
        assert_eq!(error["details"]["argument"], "output", "{output}: {error}");
        assert!(error["message"].as_str().unwrap().contains("a project"), "{error}");
    }
    assert_eq!((kept(&project), kept(&other)), before);
    std::fs::remove_file(other.path("aop.yaml")).unwrap();
    other.run(&["export", "--output", "aop.yaml"]).refused("invalid_argument", 2);
    assert!(!other.path("aop.yaml").exists(), "nor does it become one");
    project.run(&["export", "--output", "out"]).data();
}

#[test]
fn an_export_takes_the_place_of_no_file_of_a_project_whose_folder_is_a_link() {
    let (project, _file) = exported();
    let other = Project::with_feature();
    let stores = Project::empty();
    for (project, name) in [(&project, "own"), (&other, "theirs")] {
        std::fs::rename(project.path(".aop"), stores.path(name)).unwrap();
        std::os::unix::fs::symlink(stores.path(name), project.path(".aop")).unwrap();
    }
    let place = |path: PathBuf| path.display().to_string();
    let refused = [
        ".aop/aop.db".to_owned(),
        place(stores.path("own/aop.db")),
        place(stores.path("own/features/new")),
        place(other.path(".aop/aop.db")),
    ];
    for output in refused {
        let error = project.run(&["export", "--output", &output]).refused("invalid_argument", 2);
        assert!(error["message"].as_str().unwrap().contains("a project lives on"), "{error}");
    }
    project.assert_healthy();
    other.assert_healthy();
    project.run(&["export", "--output", ".aop/../out.jsonl"]).data();
    assert!(stores.path("out.jsonl").exists(), "beside a store is not in it");
}

#[test]
fn a_project_that_holds_something_is_left_as_it_is() {
    let (_source, file) = exported();
    let other = Project::with_feature();
    let before = other.run(&["replay"]).data();
    let error = other.run(&["import", file.to_str().unwrap()]).refused("project_not_empty", 1);
    assert!(error["message"].as_str().unwrap().contains("1 events"), "{error}");
    assert_eq!(other.run(&["replay"]).data(), before);
}

#[test]
fn a_broken_or_cut_off_file_is_refused_with_its_line_and_nothing_changes() {
    let (_source, file) = exported();
    let whole = text(&file);
    let lines: Vec<&str> = whole.lines().collect();
    let last = lines.len();
    let mut torn = lines.clone();
    torn[4] = &torn[4][..20];
    let mut without = lines.clone();
    without.remove(2);
    let swapped = whole.replace(r#""answer":"yes""#, r#""answer":"no""#);
    let broken = [
        (torn.join("\n") + "\n", 5),
        (lines[..last - 1].join("\n") + "\n", last - 1),
        (whole[..whole.len() - 1].to_owned(), last),
        (whole[..whole.len() - 30].to_owned(), last),
        (without.join("\n") + "\n", 3),
        (swapped, last),
        (lines[1..].join("\n") + "\n", 1),
        (String::new(), 1),
        ("\u{0}\u{1}binary".to_owned(), 1),
        (whole.clone() + "{\"event\":{}}\n", last + 1),
        (whole.replacen("\"aop_export\":1", "\"aop_export\":2", 1), 1),
    ];
    let copy = Project::new();
    for (content, line) in broken {
        std::fs::write(copy.path("broken.jsonl"), &content).unwrap();
        let error = copy.run(&["import", "broken.jsonl"]).refused("invalid_document", 2);
        assert_eq!(error["details"]["line"], line, "{error}");
        assert_eq!(copy.run(&["log"]).data()["items"], json!([]));
    }
    copy.run(&["import", "absent.jsonl"]).refused("invalid_argument", 2);
    copy.run(&["import", file.to_str().unwrap()]).data();
    copy.assert_healthy();
}

/// The digest is of records as a version writes them; what happened is in the lines, which have a sum of their own.
#[test]
fn a_history_with_a_gap_or_a_row_twice_is_a_broken_file_and_no_fault_of_the_store() {
    let (_source, file) = exported();
    let whole = text(&file);
    let lines: Vec<&str> = whole.lines().skip(1).collect();
    let place = |part: &str| lines.iter().position(|line| line.starts_with(part)).unwrap();
    let (event, operation) = (place(r#"{"event":{"seq":2,"#), place(r#"{"operation":"#));
    let mut gap = lines.clone();
    gap.remove(event);
    let mut twice = lines.clone();
    twice.insert(operation, lines[operation]);
    let copy = Project::new();
    // The header of a file that somebody has put in order by hand: it promises what is there.
    for (lines, line, part) in
        [(gap, event + 2, "has to: a history has no gaps"), (twice, operation + 3, "a second time")]
    {
        let body = lines.join("\n") + "\n";
        let mut header: Value = serde_json::from_str(whole.lines().next().unwrap()).unwrap();
        header["entries"] = json!(lines.len());
        header["body_sha256"] = json!(hexadecimal(Sha256::digest(body.as_bytes())));
        std::fs::write(copy.path("broken.jsonl"), format!("{header}\n{body}")).unwrap();
        let error = copy.run(&["import", "broken.jsonl"]).refused("invalid_document", 2);
        assert_eq!(error["details"]["line"], line, "{error}");
        assert!(error["message"].as_str().unwrap().contains(part), "{error}");
        assert_eq!(copy.run(&["log"]).data()["items"], json!([]));
    }
}

#[test]
fn an_export_of_a_version_that_told_another_state_from_the_same_lines_is_taken_with_a_warning() {
    let (source, file) = exported();
    let digest = source.run(&["replay"]).data()["digest"].as_str().unwrap().to_owned();
    let older = digest.chars().rev().collect::<String>();
    let copy = Project::new();
    std::fs::write(copy.path("older.jsonl"), text(&file).replacen(&digest, &older, 1)).unwrap();
    let imported = copy.run(&["import", "older.jsonl"]);
    assert!(imported.stderr.contains(&digest) && imported.stderr.contains(&older), "{}", imported.stderr);
    assert_eq!(imported.data()["state_digest"], digest.as_str(), "what is there now");
    assert_eq!(copy.run(&["replay"]).data()["digest"], digest.as_str());
    copy.assert_healthy();
}

#[test]
fn a_killed_import_leaves_an_empty_project_or_a_whole_one() {
    let (source, file) = exported();
    for (point, restored) in [("before_commit", false), ("after_commit", true)] {
        let copy = Project::new();
        let run = copy.run_with(&["import", file.to_str().unwrap()], &[("AOP_CRASH_AT", point)]);
        assert_eq!(run.code, None, "it must die at {point}: {run:?}");
        let items = copy.run(&["log"]).data()["items"].as_array().unwrap().len();
        assert_eq!(items > 0, restored, "{point}");
        if restored {
            copy.run(&["doctor", "--repair"]).data();
            assert_eq!(copy.run(&["replay"]).data(), source.run(&["replay"]).data());
        } else {
            copy.run(&["import", file.to_str().unwrap()]).data();
        }
        copy.assert_healthy();
    }
}

#[test]
fn an_agent_carries_no_history_off_and_brings_none_in() {
    let (source, file) = exported();
    let agent = [("AOP_AGENT", r#"{"feature_id": "shop", "role": "builder", "claim": "c"}"#)];
    source.run_with(&["export"], &agent).refused("forbidden_for_role", 1);
    let copy = Project::new();
    copy.run_with(&["import", file.to_str().unwrap()], &agent).refused("forbidden_for_role", 1);
}
