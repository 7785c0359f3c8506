//! What cannot be written to stdout was not said: commands tell, and those that go on end.

use crate::support::Project;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

#[test]
fn a_command_whose_output_cannot_be_written_fails_and_says_so() {
    let project = Project::with_feature();
    for args in [
        &["status"][..],
        &["log"],
        &["log", "--follow"],
        &["status", "--watch"],
        &["questions"],
        &["doctor"],
        &["explain", "internal"],
        &["completions", "bash"],
        &["export"],
        &["help"],
        &["features", "create", "--help"],
    ] {
        let output = project.command(args).stdout(full()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        let expected = "error: standard output cannot be written: No space left on device (os error 28)\n";
        assert_eq!(said, expected, "{args:?}");
    }
    let refused = project.command(&["questions", "--status", "foo"]).stdout(full()).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "a refusal keeps its exit code");
}

#[test]
fn a_hook_that_cannot_answer_blocks_the_tool() {
    let project = Project::with_feature();
    let mut hook = project.command(&["hook", "gemini"]);
    let output = hook.stdout(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn what_goes_on_ends_when_its_reader_is_gone() {
    let project = Project::with_feature();
    project.ask("op-1");
    for args in [&["log", "--follow"], &["status", "--watch"]] {
        let mut command = project.spawn(args);
        let mut first = String::new();
        BufReader::new(command.stdout.take().unwrap()).read_line(&mut first).unwrap();
        assert!(first.starts_with('{'), "{first}");
        // Nothing happens any more that could be written.
        let status = ended(&mut command);
        assert_eq!(status.code(), Some(0), "{args:?}: a closed pipe is no failure");
    }
}

fn ended(command: &mut Child) -> ExitStatus {
    let patience = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(status) = command.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > patience {
            command.kill().unwrap();
            panic!("it goes on without a reader");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
