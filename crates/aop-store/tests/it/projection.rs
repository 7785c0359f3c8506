//! The files below `.aop/features/`: what they say is what the store says, and whatever goes wrong with them
//! is mended from it.

use crate::support::{Backend, QUARTER, World, at, feature_id, wait};
use aop_kernel::role::Role;
use aop_kernel::status::Status;
use aop_store::{Files, Projector};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

fn world() -> World {
    World::new(Backend::Sqlite)
}

fn project(w: &World) {
    wait(Projector::new(w.dir()).catch_up(w.store.as_ref())).unwrap();
}

fn stale(w: &World) -> Vec<PathBuf> {
    wait(Projector::new(w.dir()).stale(w.store.as_ref())).unwrap()
}

fn read(w: &World, name: &str) -> String {
    fs::read_to_string(w.dir().join("features").join(name)).unwrap()
}

fn json_of(w: &World, name: &str) -> Value {
    serde_json::from_str(&read(w, name)).unwrap()
}

fn form() -> Value {
    json!({"version": 3, "topic": "t", "questions": [
        {"id": "way", "header": "Way", "question": "Which?", "kind": "single_choice", "required": true,
         "options": [{"label": "L", "description": "left"}]},
        {"id": "key", "header": "Key", "question": "Key?", "kind": "free_text", "required": false, "secret": true}]})
}

/// A feature with an answered form and an open question, projected.
fn projected() -> (World, String, String) {
    let w = world();
    let input = json!({"feature_id": "a", "title": "The: \"title\"\n---", "spec": "# Spec\n"});
    wait(w.call(Role::Human, "feature.create", input)).unwrap();
    wait(w.transition("a", Status::Building)).unwrap();
    let answered =
        wait(w.ask_with("a", json!({"spec": form()}))).unwrap()["question_id"].as_str().unwrap().to_owned();
    w.later(1_000);
    wait(w.answer("a", &answered, json!({"way": "L", "key": "hush"}))).unwrap();
    let open = wait(w.ask("a"));
    project(&w);
    (w, answered, open)
}

#[test]
fn questions_json_holds_every_record_in_list_order() {
    let (w, answered, open) = projected();
    let file = json_of(&w, "a/questions.json");
    assert_eq!((&file["version"], &file["feature_id"]), (&json!(1), &json!("a")));
    assert_eq!(file["items"], json!([wait(w.record(&answered)), wait(w.record(&open))]));
}

#[test]
fn state_md_has_the_status_and_human_input_as_front_matter() {
    let (w, _, open) = projected();
    let text = read(&w, "a/state.md");
    let (front, _) = text.strip_prefix("---\n").unwrap().split_once("\n---\n").unwrap();
    let version = wait(w.show("a")).version;
    for line in [
        "feature_id: a",
        "status: awaiting_input",
        "activity_state: waiting_input",
        r#"title: "The: \"title\"\n---""#,
        &format!("version: {version}"),
        "human_input:",
        &format!("  open_question_id: {open}"),
        "  open_question_count: 1",
        &format!("  awaiting_since: \"{}\"", at(1_000)),
        "  requested_by_role: builder",
        "  resume_status: building",
    ] {
        assert!(front.lines().any(|found| found == line), "{line}\n{front}");
    }
    wait(w.answer("a", &open, json!("x"))).unwrap();
    project(&w);
    let text = read(&w, "a/state.md");
    for key in ["open_question_id", "awaiting_since", "requested_by_role", "resume_status"] {
        assert!(text.contains(&format!("\n  {key}: null\n")), "{text}");
    }
}

#[test]
fn the_front_matter_is_yaml_whatever_characters_a_text_has() {
    let w = world();
    let title =
        "del \u{7f} next \u{85} c1 \u{9b}31m lines \u{2028}\u{2029} bom \u{feff} none \u{fffe}\u{ffff} 🦀 é";
    wait(w.call(Role::Human, "feature.create", json!({"feature_id": "a", "title": title}))).unwrap();
    project(&w);
    let text = read(&w, "a/state.md");
    let (front, _) = text.strip_prefix("---\n").unwrap().split_once("\n---\n").unwrap();
    // What YAML 1.2 calls printable, without what YAML 1.1 takes for the end of a line.
    let is_printable = |c: char| {
        matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..)
            && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
    };
    assert!(front.chars().all(is_printable), "{front:?}");
    let told = front.lines().find_map(|line| line.strip_prefix("title: ")).unwrap();
    assert_eq!(serde_json::from_str::<String>(told).unwrap(), title);
}

#[test]
fn decisions_spec_and_index_say_what_the_store_says() {
    let (w, answered, open) = projected();
    let decisions = read(&w, "a/decisions.md");
    for line in wait(w.log("a")) {
        assert!(decisions.contains(&line), "{line}\n{decisions}");
    }
    assert!(decisions.contains(&answered) && decisions.contains(&open));
    assert_eq!(read(&w, "a/spec.md"), "# Spec\n");
    let listed = wait(w.call(Role::Human, "feature.list", json!({}))).unwrap();
    assert_eq!(json_of(&w, "index.json")["features"], listed["items"]);
}

#[test]
fn answers_are_written_for_forms_with_secrets_redacted() {
    let (w, answered, open) = projected();
    assert_eq!(
        json_of(&w, &format!("a/answers/{answered}.json")),
        json!({"version": 3, "topic": "t", "answers": {"way": "L", "key": {"redacted": true}},
            "answered_at": at(1_000), "answered_by": "ann"})
    );
    assert!(!w.dir().join(format!("features/a/answers/{open}.json")).exists());
}

#[test]
fn no_temporary_file_is_left_behind() {
    let (w, ..) = projected();
    let names: Vec<_> =
        fs::read_dir(w.dir().join("features/a")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().ends_with(".tmp")), "{names:?}");
}

/// As after a crash between the files: some are new, one is torn, one is missing, the mark was not moved.
#[test]
fn what_a_crash_left_is_mended_by_the_next_catch_up() {
    let (w, answered, open) = projected();
    let mark = fs::read_to_string(w.dir().join("projected")).unwrap();
    wait(w.answer("a", &open, json!("x"))).unwrap();
    project(&w);
    let files = w.dir().join("features/a");
    fs::write(files.join("questions.json"), "{\"version\":1,\"feat").unwrap();
    fs::remove_file(files.join("decisions.md")).unwrap();
    fs::write(files.join(".state.md.tmp"), "half").unwrap();
    fs::write(w.dir().join("projected"), mark).unwrap();
    assert_eq!(stale(&w).len(), 2);
    project(&w);
    assert_eq!(stale(&w), Vec::<PathBuf>::new());
    assert!(files.join(format!("answers/{answered}.json")).exists());
}

#[test]
fn a_missing_or_senseless_mark_means_everything_is_written_again() {
    let (w, answered, _) = projected();
    for mark in [None, Some(""), Some("soon"), Some("-1"), Some("0")] {
        fs::remove_dir_all(w.dir().join("features")).unwrap();
        match mark {
            None => fs::remove_file(w.dir().join("projected")).unwrap(),
            Some(text) => fs::write(w.dir().join("projected"), text).unwrap(),
        }
        project(&w);
        assert_eq!(stale(&w), Vec::<PathBuf>::new(), "{mark:?}");
        assert!(w.dir().join(format!("features/a/answers/{answered}.json")).exists());
    }
}

/// The database was moved away and made anew, or came from a backup: the mark is of another history.
#[test]
fn a_mark_ahead_of_the_store_means_everything_is_written_again() {
    let (w, ..) = projected();
    fs::remove_dir_all(w.dir().join("features/a")).unwrap();
    fs::write(w.dir().join("projected"), "5000").unwrap();
    project(&w);
    assert_eq!(stale(&w), Vec::<PathBuf>::new());
    let last = wait(w.events()).len();
    assert_eq!(fs::read_to_string(w.dir().join("projected")).unwrap(), last.to_string());
}

#[test]
fn stale_names_every_file_that_differs_and_rebuild_mends_it() {
    let (w, answered, _) = projected();
    let files = w.dir().join("features");
    let damaged: Vec<PathBuf> = [
        "a/questions.json",
        "a/decisions.md",
        "a/spec.md",
        "a/state.md",
        &format!("a/answers/{answered}.json"),
        "index.json",
    ]
    .iter()
    .map(|name| files.join(name))
    .collect();
    for path in &damaged {
        fs::write(path, "nonsense").unwrap();
    }
    let mut found = stale(&w);
    found.sort();
    let mut expected = damaged;
    expected.sort();
    assert_eq!(found, expected);
    wait(Projector::new(w.dir()).rebuild(w.store.as_ref())).unwrap();
    assert_eq!(stale(&w), Vec::<PathBuf>::new());
}

/// Whoever reads it there would take it for a person's word.
#[test]
fn an_answer_that_nobody_gave_is_stale_and_rebuild_removes_it() {
    let (w, answered, open) = projected();
    let answers = w.dir().join("features/a/answers");
    let forged = [open.as_str(), "q_01ARZ3NDEKTSV4RRFFQ69G5FAV"].map(|id| answers.join(format!("{id}.json")));
    for path in &forged {
        fs::write(path, "{}").unwrap();
    }
    // What has another name is somebody's own.
    fs::write(answers.join("notes.txt"), "mine").unwrap();
    let mut expected = forged.to_vec();
    expected.sort();
    assert_eq!(stale(&w), expected);
    wait(Projector::new(w.dir()).rebuild(w.store.as_ref())).unwrap();
    assert_eq!(stale(&w), Vec::<PathBuf>::new());
    assert!(answers.join(format!("{answered}.json")).exists() && answers.join("notes.txt").exists());
}

/// How many files this process has open by that name.
fn open_as(path: &Path) -> usize {
    let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
    open.filter(|file| fs::read_link(file.path()).is_ok_and(|target| target == path)).count()
}

/// As beside `aop run`: a pass is under way when the repair begins, and writes the mark back when it is done.
#[test]
fn a_rebuild_beside_a_pass_of_another_process_writes_every_file_all_the_same() {
    let (w, ..) = projected();
    let path = w.dir().canonicalize().unwrap().join("projections.lock");
    let pass = File::open(&path).unwrap();
    pass.lock().unwrap();
    let mark = fs::read(w.dir().join("projected")).unwrap();
    fs::write(w.dir().join("features/a/state.md"), "nonsense").unwrap();
    fs::write(w.dir().join("features/index.json"), "nonsense").unwrap();
    std::thread::scope(|scope| {
        let rebuild = scope.spawn(|| wait(Projector::new(w.dir()).rebuild(w.store.as_ref())));
        let start = Instant::now();
        while open_as(&path) < 2 {
            assert!(start.elapsed() < Duration::from_secs(60), "the rebuild does not come to the lock");
            std::thread::yield_now();
        }
        fs::write(w.dir().join("projected"), mark).unwrap();
        drop(pass);
        assert_eq!(rebuild.join().unwrap().unwrap(), 1);
    });
    assert_eq!(stale(&w), Vec::<PathBuf>::new());
}

/// A folder that cannot be written keeps nobody else from being up to date, and is tried again.
#[test]
fn one_feature_that_cannot_be_written_does_not_hold_up_the_others() {
    let w = world();
    fs::create_dir_all(w.dir().join("features")).unwrap();
    fs::write(w.dir().join("features/a"), "a file where a folder should be").unwrap();
    for id in ["a", "b"] {
        wait(w.feature(id));
    }
    let error = wait(Projector::new(w.dir()).catch_up(w.store.as_ref())).unwrap_err();
    assert!(error.to_string().contains("features/a"), "{error}");
    assert!(read(&w, "b/state.md").contains("feature_id: b"));
    fs::remove_file(w.dir().join("features/a")).unwrap();
    project(&w);
    assert_eq!(stale(&w), Vec::<PathBuf>::new());
}

#[test]
fn one_file_that_cannot_be_written_does_not_hold_up_its_neighbours() {
    let w = world();
    wait(w.feature("a"));
    let folder = w.dir().join("features/a");
    fs::create_dir_all(folder.join("questions.json/mine")).unwrap();
    let error = wait(Projector::new(w.dir()).catch_up(w.store.as_ref())).unwrap_err();
    assert!(error.to_string().contains("questions.json"), "{error}");
    assert!(read(&w, "a/state.md").contains("feature_id: a"));
    assert!(folder.join("decisions.md").is_file());
    assert!(!folder.join(".questions.json.tmp").exists());
    fs::remove_dir_all(folder.join("questions.json")).unwrap();
    project(&w);
    assert_eq!(stale(&w), Vec::<PathBuf>::new());
}

#[test]
fn no_link_leads_the_files_out_of_the_project() {
    let elsewhere = tempfile::tempdir().unwrap();
    let link = std::os::unix::fs::symlink::<&Path, PathBuf>;
    let left = || fs::read_dir(elsewhere.path()).unwrap().count();
    for name in ["features", "features/a", "features/a/answers"] {
        let (w, ..) = projected();
        let place = w.dir().join(name);
        fs::remove_dir_all(&place).unwrap();
        link(elsewhere.path(), place.clone()).unwrap();
        let error = wait(Projector::new(w.dir()).rebuild(w.store.as_ref())).unwrap_err();
        assert!(error.to_string().ends_with("it is a symbolic link; put a folder in its place"), "{error}");
        assert!(error.to_string().starts_with(place.to_str().unwrap()), "{error}");
        assert_eq!(left(), 0, "{name}");
        fs::remove_file(&place).unwrap();
        wait(Projector::new(w.dir()).rebuild(w.store.as_ref())).unwrap();
        assert_eq!(stale(&w), Vec::<PathBuf>::new());
    }
    let (w, ..) = projected();
    let other = elsewhere.path().join("other");
    fs::write(&other, "of somebody else").unwrap();
    for name in ["state.md", ".state.md.tmp"] {
        let place = w.dir().join("features/a").join(name);
        let _ = fs::remove_file(&place);
        link(&other, place).unwrap();
    }
    wait(Projector::new(w.dir()).rebuild(w.store.as_ref())).unwrap();
    assert_eq!(fs::read_to_string(&other).unwrap(), "of somebody else");
    assert!(fs::symlink_metadata(w.dir().join("features/a/state.md")).unwrap().is_file());
}

/// When a long index was written, and a second later.
fn just_now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_772_661_600)
}

fn a_second_later() -> SystemTime {
    just_now() + Duration::from_secs(1)
}

/// An index too long to be written with every commit, which was written at this time.
fn long_index(w: &World, at: SystemTime) {
    let path = w.dir().join("features/index.json");
    fs::write(&path, "x".repeat(600 << 10)).unwrap();
    File::options().write(true).open(path).unwrap().set_modified(at).unwrap();
}

/// A change whose index is left to whoever writes next.
fn owed() -> World {
    let (w, ..) = projected();
    wait(w.call(Role::Human, "feature.log_append", json!({"feature_id": "a", "note": "n"}))).unwrap();
    long_index(&w, just_now());
    let early = Projector::new(w.dir()).with_clock(just_now);
    assert_eq!(wait(early.catch_up(w.store.as_ref())).unwrap(), Some(Duration::from_secs(1)));
    assert_eq!(read(&w, "index.json"), "x".repeat(600 << 10), "once a second at most");
    assert!(read(&w, "a/state.md").contains(&format!("version: {}\n", wait(w.show("a")).version)));
    assert_eq!(stale(&w), Vec::<PathBuf>::new(), "what is owed is not damaged");
    w
}

fn index_is_whole(w: &World) {
    assert_eq!(stale(w), Vec::<PathBuf>::new());
    assert_eq!(json_of(w, "index.json")["features"][0]["feature_id"], "a");
    assert!(!w.dir().join("index.owed").exists());
}

#[test]
fn a_long_index_that_was_left_is_written_a_second_later_though_nothing_changed() {
    let w = owed();
    let late = Projector::new(w.dir()).with_clock(a_second_later);
    assert_eq!(wait(late.catch_up(w.store.as_ref())).unwrap(), None);
    index_is_whole(&w);
    // And then no more: nobody owes it.
    long_index(&w, just_now());
    assert_eq!(wait(late.catch_up(w.store.as_ref())).unwrap(), None);
    assert_eq!(stale(&w), [w.dir().join("features/index.json")]);
}

#[test]
fn whoever_stayed_leaves_no_index_behind_and_a_repair_does_not_either() {
    let w = owed();
    wait(Projector::new(w.dir()).with_clock(just_now).finish(w.store.as_ref())).unwrap();
    index_is_whole(&w);
    let w = owed();
    wait(Projector::new(w.dir()).with_clock(just_now).rebuild(w.store.as_ref())).unwrap();
    index_is_whole(&w);
}

#[test]
fn an_index_that_is_gone_is_missed_though_it_is_owed_and_is_written_at_once() {
    let w = owed();
    fs::remove_file(w.dir().join("features/index.json")).unwrap();
    assert_eq!(stale(&w), [w.dir().join("features/index.json")]);
    wait(Projector::new(w.dir()).with_clock(just_now).catch_up(w.store.as_ref())).unwrap();
    index_is_whole(&w);
}

#[test]
fn a_short_index_and_one_that_is_a_second_old_are_written_with_every_change() {
    let (w, ..) = projected();
    for (index, clock) in [("short", just_now as fn() -> SystemTime), ("old", a_second_later)] {
        wait(w.call(Role::Human, "feature.log_append", json!({"feature_id": "a", "note": index}))).unwrap();
        if index == "old" {
            long_index(&w, just_now());
        }
        let projector = Projector::new(w.dir()).with_clock(clock);
        assert_eq!(wait(projector.catch_up(w.store.as_ref())).unwrap(), None, "{index}");
        index_is_whole(&w);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_in_the_background_are_whole_when_it_falls_quiet_and_when_it_ends() {
    let (w, ..) = tokio::task::spawn_blocking(projected).await.unwrap();
    let note = json!({"feature_id": "a", "note": "n"});
    for quiet in [true, false] {
        w.call(Role::Human, "feature.log_append", note.clone()).await.unwrap();
        long_index(&w, SystemTime::now());
        let files = Files::start(w.dir().to_owned(), w.store.clone(), |why| panic!("{why}"));
        let start = Instant::now();
        while quiet && fs::metadata(w.dir().join("features/index.json")).unwrap().len() > 1 << 10 {
            assert!(start.elapsed() < Duration::from_secs(60), "the index is still behind");
            tokio::task::yield_now().await;
        }
        files.finish().await;
        assert_eq!(Projector::new(w.dir()).stale(w.store.as_ref()).await.unwrap(), Vec::<PathBuf>::new());
    }
}

/// Every projector takes its turn and a fresh look, so whoever comes last writes the newest.
#[test]
fn an_older_projector_never_overwrites_a_newer_projection() {
    let w = world();
    wait(w.feature("a"));
    std::thread::scope(|scope| {
        for number in 0..4 {
            let w = &w;
            scope.spawn(move || {
                for step in 0..10 {
                    let note = json!({"feature_id": "a", "note": format!("note {number} {step}")});
                    wait(w.call(Role::Human, "feature.log_append", note)).unwrap();
                    project(w);
                    assert!(written_version(w.dir()) > step, "at least what this one committed");
                }
            });
        }
    });
    assert_eq!(written_version(w.dir()), wait(w.show("a")).version);
    assert_eq!(stale(&w), Vec::<PathBuf>::new());
}

fn written_version(dir: &Path) -> u64 {
    let text = fs::read_to_string(dir.join("features/a/state.md")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("version: ")).unwrap();
    line.parse().unwrap()
}

#[test]
fn an_expiry_reaches_the_files_with_its_commit() {
    let (w, _, open) = projected();
    w.later(QUARTER);
    project(&w);
    assert!(read(&w, "a/state.md").contains("status: awaiting_input"), "reading wrote nothing");
    wait(w.store.expire()).unwrap();
    project(&w);
    assert!(read(&w, "a/state.md").contains("status: blocked"));
    assert_eq!(json_of(&w, "a/questions.json")["items"][1]["question_id"], open);
    assert_eq!(json_of(&w, "a/questions.json")["items"][1]["status"], "expired");
}

/// Ten thousand closed questions, put straight into the tables because asking them would take its time.
#[test]
fn a_feature_with_ten_thousand_closed_questions_projects_them_all() {
    let w = world();
    wait(w.feature("a"));
    let id = wait(w.ask("a"));
    wait(w.answer("a", &id, json!("x"))).unwrap();
    wait(w.show("a"));
    let copies = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
        INSERT INTO questions SELECT project, 'q_' || printf('%026d', i), feature_id, status, created_at + i, expires_at,
            answered_at, json_set(record, '$.question_id', 'q_' || printf('%026d', i)) FROM questions, n";
    rusqlite::Connection::open(w.dir().join("aop.db")).unwrap().execute_batch(copies).unwrap();
    project(&w);
    let file = json_of(&w, "a/questions.json");
    let items = file["items"].as_array().unwrap();
    assert_eq!(items.len(), 10_000);
    assert_eq!(items[0]["question_id"], id);
    let files = wait(w.store.feature_files(feature_id("a"), 0)).unwrap().unwrap();
    assert_eq!(files.questions.lines().count(), 10_000);
}
