//! What the guard promises: whatever ends, nothing is left, and the engine never sees its input close early.

use super::{around, is_alive, until};
use aop_engine::process::{Cause, End, Guarded, Launch, Stdin, start_time};
use aop_engine::{EngineError, Limits, reap_leftovers};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

fn launch(dir: &Path, script: &str) -> Launch {
    let around = around(dir);
    Launch {
        aop: around.aop.clone(),
        argv: ["sh", "-c", script].map(Into::into).into(),
        env: around.inherited(),
        cwd: dir.to_owned(),
        stdin: Stdin::Null,
        run_dir: dir.to_owned(),
        limits: Limits::default(),
    }
}

async fn number(process: &mut Guarded) -> i32 {
    let line = process.next_line().await.unwrap();
    String::from_utf8(line).unwrap().trim().parse().unwrap()
}

#[tokio::test]
async fn output_exit_code_and_errors_arrive_and_the_record_is_taken_away() {
    let dir = TempDir::new().unwrap();
    let mut process =
        Guarded::spawn(launch(dir.path(), "echo one; printf two; echo bad >&2; exit 7")).await.unwrap();
    assert!(process.started().pgid > 1 && process.started().start_time > 0);
    assert_eq!(process.next_line().await.unwrap(), b"one\n");
    assert_eq!(process.next_line().await.unwrap(), b"two");
    assert_eq!(process.next_line().await, None);
    let end = process.wait().await;
    assert_eq!(end, End { cause: Cause::Exited, code: Some(7), errors: "bad".into() });
    assert_eq!(std::fs::read_to_string(dir.path().join("transcript.jsonl")).unwrap(), "one\ntwo");
    assert_eq!(std::fs::read_to_string(dir.path().join("stderr.log")).unwrap(), "bad\n");
    assert!(!dir.path().join("process.json").exists());
}

#[tokio::test]
async fn given_input_ends_and_kept_input_stays_open() {
    let dir = TempDir::new().unwrap();
    let given = Stdin::Given(vec![b'x'; 3_000_000]);
    let process = Guarded::spawn(Launch { stdin: given, ..launch(dir.path(), "wc -c") }).await.unwrap();
    assert_eq!(process.wait().await.code, Some(0));
    assert_eq!(std::fs::read_to_string(dir.path().join("transcript.jsonl")).unwrap().trim(), "3000000");

    let script = "while read line; do echo \"got $line\"; done; echo end";
    let kept = Launch { stdin: Stdin::Kept, ..launch(dir.path(), script) };
    let mut process = Guarded::spawn(kept).await.unwrap();
    for word in ["a", "b"] {
        process.write(format!("{word}\n").as_bytes());
        assert_eq!(process.next_line().await.unwrap(), format!("got {word}\n").as_bytes());
    }
    assert_eq!(process.kill().await.cause, Cause::Killed, "it would read on");
}

#[tokio::test]
async fn what_an_engine_leaves_behind_goes_with_it() {
    let dir = TempDir::new().unwrap();
    // In a session of its own, without a parent, holding the output open.
    let script = "(setsid sh -c 'echo $$; exec sleep 1000' &) ; sleep 0.2";
    let mut process = Guarded::spawn(launch(dir.path(), script)).await.unwrap();
    let orphan = number(&mut process).await;
    assert!(is_alive(orphan));
    assert_eq!(process.wait().await.cause, Cause::Exited);
    assert!(!is_alive(orphan), "wait returns when nothing is left");
}

#[tokio::test]
async fn killing_and_dropping_end_everything() {
    let dir = TempDir::new().unwrap();
    let script = "(setsid sleep 1000 &) ; echo $$; exec sleep 1000";
    let mut process = Guarded::spawn(launch(dir.path(), script)).await.unwrap();
    let pid = number(&mut process).await;
    let end = process.kill().await;
    assert_eq!((end.cause, end.code), (Cause::Killed, Some(137)));
    assert!(!is_alive(pid));

    let mut process = Guarded::spawn(launch(dir.path(), script)).await.unwrap();
    let pid = number(&mut process).await;
    drop(process);
    tokio::task::spawn_blocking(move || until("the engine is gone", || !is_alive(pid))).await.unwrap();
}

#[test]
fn when_aop_is_gone_the_engine_dies_before_it_sees_its_input_close() {
    let dir = TempDir::new().unwrap();
    // `aop` stands for a program that starts an engine and is killed: the kernel closes its pipes.
    let script = "echo $$ > pid; cat; echo closed > closed; sleep 1000";
    for round in 0..10 {
        let _ = std::fs::remove_file(dir.path().join("pid"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let process = runtime.block_on(async {
            let kept = Launch { stdin: Stdin::Kept, ..launch(dir.path(), script) };
            Guarded::spawn(kept).await.unwrap()
        });
        let pid = process.started().pgid;
        until("the engine runs", || {
            std::fs::read_to_string(dir.path().join("pid")).is_ok_and(|text| text.ends_with('\n'))
        });
        // Every task, every pipe, all at once, without a word to the guard.
        drop(runtime);
        until("the engine is gone", || !is_alive(pid));
        until("the record is gone", || !dir.path().join("process.json").exists());
        assert!(!dir.path().join("closed").exists(), "round {round}: it saw its input close");
        drop(process);
    }
}

#[tokio::test]
async fn what_is_left_when_the_guard_was_killed_too_is_found_by_its_record() {
    let dir = TempDir::new().unwrap();
    let script = "(setsid sh -c 'echo $$; exec sleep 1000' &) ; sleep 1000";
    let mut process = Guarded::spawn(launch(dir.path(), script)).await.unwrap();
    let orphan = number(&mut process).await;
    let engine = process.started().pgid;
    let guard = parent(engine);
    assert_eq!(
        std::process::Command::new("kill").args(["-9", &guard.to_string()]).status().unwrap().code(),
        Some(0)
    );
    let end = process.wait().await;
    assert_eq!((end.cause, end.code), (Cause::GuardLost, None));
    assert!(!is_alive(engine) && !is_alive(orphan), "what the guard can no longer end has been ended");
    assert!(!dir.path().join("process.json").exists());
    assert_eq!(reap_leftovers(dir.path()).unwrap(), 0, "a second time finds nothing");
}

fn parent(pid: i32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Has a turn's leftovers reaped by a record that says what is wanted.
fn reap_by(dir: &Path, pgid: i32, start_time: u64) {
    let record = serde_json::json!({"mark": "t_nobody", "engine": {"pgid": pgid, "start_time": start_time}});
    std::fs::write(dir.join("process.json"), record.to_string()).unwrap();
    assert_eq!(reap_leftovers(dir).unwrap(), 0);
}

#[test]
fn a_process_without_the_mark_is_left_alone_whatever_a_record_says() {
    let dir = TempDir::new().unwrap();
    let mut other = std::process::Command::new("sleep").arg("1000").process_group(0).spawn().unwrap();
    let pid = other.id();
    reap_by(dir.path(), i32::try_from(pid).unwrap(), start_time(pid).unwrap());
    assert!(other.try_wait().unwrap().is_none(), "it was ended");
    other.kill().unwrap();
    other.wait().unwrap();
}

#[tokio::test]
async fn a_copy_of_a_turns_folder_ends_nothing_of_the_original() {
    let dir = TempDir::new().unwrap();
    let (one, two) = (dir.path().join("one"), dir.path().join("two"));
    for folder in [&one, &two] {
        std::fs::create_dir(folder).unwrap();
    }
    let process = Guarded::spawn(launch(&one, "sleep 1000")).await.unwrap();
    let pid = process.started().pgid;
    std::fs::copy(one.join("process.json"), two.join("process.json")).unwrap();
    assert_eq!(reap_leftovers(&two).unwrap(), 0);
    assert!(is_alive(pid) && one.join("process.json").exists() && !two.join("process.json").exists());
    // A folder that was moved is still the one of its turn.
    std::fs::remove_dir(&two).unwrap();
    std::fs::rename(&one, &two).unwrap();
    reap_leftovers(&two).unwrap();
    until("the engine is gone", || !is_alive(pid));
}

#[tokio::test]
async fn time_and_output_are_limited_and_the_reason_is_told() {
    let dir = TempDir::new().unwrap();
    let limits = |hard, idle, output_bytes| Limits {
        hard: Duration::from_millis(hard),
        idle: Duration::from_millis(idle),
        output_bytes,
        ..Limits::default()
    };
    for (script, limits, cause) in [
        ("while true; do echo x; sleep 0.02; done", limits(400, 10_000, 1 << 20), Cause::HardTimeout),
        ("echo x; sleep 1000", limits(60_000, 200, 1 << 20), Cause::IdleTimeout),
        ("yes", limits(60_000, 10_000, 200_000), Cause::OutputLimit),
    ] {
        let process = Guarded::spawn(Launch { limits, ..launch(dir.path(), script) }).await.unwrap();
        let pid = process.started().pgid;
        let end = process.wait().await;
        assert_eq!((end.cause, end.code), (cause, Some(137)), "{script}");
        assert_eq!(end.process().timed_out, cause != Cause::OutputLimit);
        assert!(!is_alive(pid));
        assert!(std::fs::metadata(dir.path().join("transcript.jsonl")).unwrap().len() <= 200_000);
    }
}

#[tokio::test]
async fn a_process_that_does_not_go_after_its_last_word_is_ended_as_if_it_had_gone() {
    let dir = TempDir::new().unwrap();
    let limits = Limits { linger: Duration::from_millis(50), ..Limits::default() };
    let script = "echo done; while true; do echo more; sleep 0.01; done";
    let mut process = Guarded::spawn(Launch { limits, ..launch(dir.path(), script) }).await.unwrap();
    let pid = process.started().pgid;
    assert_eq!(process.next_line().await.as_deref(), Some(&b"done\n"[..]));
    process.finished(true);
    let end = process.wait().await;
    assert_eq!((end.cause, end.process()), (Cause::Lingered, aop_turn::Process::default()));
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let dir = TempDir::new().unwrap();
    let missing = Launch { argv: vec!["no-such-engine".into()], ..launch(dir.path(), "") };
    match Guarded::spawn(missing).await {
        Err(EngineError::System { cause, .. }) => assert!(cause.contains("no-such-engine"), "{cause}"),
        other => panic!("{other:?}"),
    }
    assert!(!dir.path().join("process.json").exists());
}
