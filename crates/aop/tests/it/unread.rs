//! Whoever reads what goes on may pause, or never come back: nothing else waits for them.

use crate::run_support::{PATIENCE, ask, plan, script, workshop};
use crate::support::{Project, binary};
use crate::terminal::on_terminal;
use aop_kernel::policy::{HumanInput, Rules};
use aop_kernel::role::{Caller, Role};
use aop_kernel::tools::Tool;
use aop_store::{Service, SqliteStore, SystemClock};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write, pipe};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A pipe without room. It is full of empty lines.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = pipe().unwrap();
    let waits = fcntl_getfl(&writer).unwrap();
    fcntl_setfl(&writer, waits | OFlags::NONBLOCK).unwrap();
    while writer.write(b"\n").is_ok() {}
    fcntl_setfl(&writer, waits).unwrap();
    (reader, writer)
}

/// Waits for what has to come.
fn until(what: &str, mut came: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !came() {
        assert!(Instant::now() < deadline, "{what} did not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn send(signal: &str, pid: u32) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

/// What is started, and ended when the test is over.
struct Unread(Child);

impl Unread {
    /// Starts a command of which nothing is read.
    fn start(project: &Project, args: &[&str], out: PipeWriter) -> Self {
        Unread(project.command(args).stdout(out).spawn().unwrap())
    }

    /// The exit code, once there is one.
    fn end(mut self) -> Option<i32> {
        let mut status = None;
        until("the end", || {
            status = self.0.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap().code()
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A project with a specification, and the arguments that run it.
fn shop(planner: &Value) -> (Project, [&'static str; 2]) {
    let project = workshop("");
    std::fs::write(project.path("shop.md"), "# A shop\n").unwrap();
    script(&project, "shop", &json!({"planner": planner}));
    (project, ["run", "shop.md"])
}

/// Where the shop stands, once it is there.
fn is_shop(project: &Project, status: &str) -> bool {
    project.run(&["status"]).data()["features"][0]["status"] == status
}

#[test]
fn a_run_goes_on_while_its_reader_pauses_and_all_of_it_is_read_later() {
    let (project, args) = shop(&json!([plan()]));
    let (reader, out) = full_pipe();
    let run = Unread::start(&project, &args, out);
    until("its end", || is_shop(&project, "ready_to_merge"));
    let lines = BufReader::new(reader).lines().map(Result::unwrap).filter(|line| !line.is_empty());
    let lines: Vec<Value> = lines.map(|line| serde_json::from_str(&line).unwrap()).collect();
    assert_eq!(run.end(), Some(0));
    assert_eq!(lines.first().unwrap()["type"], "run.started");
    assert_eq!(lines.last().unwrap()["type"], "run.ended");
    let told: Vec<u64> = lines.iter().filter_map(|line| line["seq"].as_u64()).collect();
    let log = project.run(&["log"]).data()["items"].as_array().unwrap().len() as u64;
    assert_eq!(told, (1..=log).collect::<Vec<_>>());
}

#[test]
fn a_run_that_nobody_reads_gives_the_project_back_and_leaves_at_the_second_signal() {
    let (project, args) = shop(&json!([ask("Which?"), plan()]));
    let (_reader, out) = full_pipe();
    let mut run = Unread::start(&project, &args, out);
    until("a question", || is_shop(&project, "awaiting_input"));
    send("-TERM", run.0.id());
    until("the project", || project.run(&["status"]).data()["at_work"] == false);
    assert_eq!(run.0.try_wait().unwrap(), None, "its last lines may still be read");
    send("-INT", run.0.id());
    assert_eq!(run.end(), Some(130));
}

/// Fills the terminal, whose other end has nowhere to put it: when nothing more fits for a while, it is full.
const FILL: &str = "full=0; while [ $full -lt 50 ]; do full=$((full + 1)); \
    printf '%01000d' 0 | dd of=/dev/tty oflag=nonblock bs=1000 2>/dev/null && full=0; done";

/// A command on a terminal that nobody reads, with its number and what would have to be read.
fn on_full_terminal(project: &Project, args: &str) -> (Unread, u32, PipeReader) {
    let (reader, out) = full_pipe();
    let line = format!("{FILL}; echo $$ > begins; exec {} {args}", binary());
    let mut terminal = on_terminal(project, &line);
    let terminal = Unread(terminal.stdin(Stdio::piped()).stdout(out).spawn().unwrap());
    let mut pid = None;
    until("its start", || {
        let number = std::fs::read_to_string(project.path("begins")).unwrap_or_default();
        pid = number.strip_suffix('\n').and_then(|number| number.parse().ok());
        pid.is_some()
    });
    (terminal, pid.unwrap(), reader)
}

/// Whether a process is over, waited for or not.
fn is_over(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_none_or(|rest| rest.starts_with('Z') || rest.is_empty())
}

/// Reads what nobody has read; then the terminal goes, with the exit code of its command.
fn code_of(terminal: Unread, mut reader: PipeReader) -> Option<i32> {
    std::io::copy(&mut reader, &mut std::io::sink()).unwrap();
    terminal.end()
}

#[test]
fn a_run_goes_on_on_a_terminal_that_nobody_reads_and_a_signal_ends_it() {
    let (project, args) = shop(&json!([ask("Which?"), plan()]));
    let (terminal, pid, reader) = on_full_terminal(&project, &args.join(" "));
    until("a question", || is_shop(&project, "awaiting_input"));
    send("-TERM", pid);
    until("its end", || is_over(pid));
    assert_eq!(project.run(&["status"]).data()["at_work"], false);
    assert_eq!(code_of(terminal, reader), Some(130));
}

#[test]
fn a_second_signal_ends_a_run_at_once_also_on_a_terminal_that_nobody_reads() {
    let (project, args) = shop(&json!([ask("Which?"), plan()]));
    let (terminal, pid, reader) = on_full_terminal(&project, &args.join(" "));
    until("a question", || is_shop(&project, "awaiting_input"));
    // Nothing can be given back in good order.
    let lock = std::fs::File::options().read(true).write(true).open(project.path(".aop/write.lock")).unwrap();
    lock.lock().unwrap();
    // The first is heard when it is; until the run has ended, every further one is the second.
    let start = Instant::now();
    while !is_over(pid) {
        send("-INT", pid);
        assert!(start.elapsed() < PATIENCE, "it did not leave");
    }
    assert_eq!(code_of(terminal, reader), Some(130));
}

/// Waits until a process notices the signals that would have ended it.
fn until_it_notices(pid: u32) {
    let noticed = 1 << (2 - 1) | 1 << (15 - 1);
    until("its attention", || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t")).unwrap();
        u64::from_str_radix(caught, 16).unwrap() & noticed == noticed
    });
}

#[test]
fn what_goes_on_ends_at_a_signal_also_when_nobody_reads_it() {
    let project = Project::with_feature();
    for command in ["log --follow", "status --watch"] {
        for signal in ["-TERM", "-INT"] {
            let (_reader, out) = full_pipe();
            let unread = Unread::start(&project, &command.split(' ').collect::<Vec<_>>(), out);
            until_it_notices(unread.0.id());
            send(signal, unread.0.id());
            assert_eq!(unread.end(), Some(130), "{command} {signal}");
        }
        let (terminal, pid, reader) = on_full_terminal(&project, command);
        until_it_notices(pid);
        send("-INT", pid);
        until("its end", || is_over(pid));
        assert_eq!(code_of(terminal, reader), Some(130), "{command} on a terminal");
        std::fs::remove_file(project.path("begins")).unwrap();
    }
}

/// Leaves so many notes, without a process for each.
fn note_often(project: &Project, times: u64) {
    let store = SqliteStore::open(&project.path(".aop"), Arc::new(SystemClock)).unwrap();
    let rules =
        Rules { human_input: HumanInput::default(), check_schema: |_| Ok(()), check_instance: |_, _| Ok(()) };
    let service = Service::new(Arc::new(store), Arc::new(rules));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for number in 0..times {
        let note = json!({"feature_id": "shop", "note": "n", "operation_id": format!("n-{number}")});
        let caller = Caller::new(Role::Human);
        runtime.block_on(service.call(Tool::FeatureLogAppend, &caller, &note, "test")).unwrap();
    }
}

#[test]
fn a_log_of_several_pages_is_followed_without_a_gap() {
    const EVENTS: u64 = 1_100;
    let project = Project::with_feature();
    note_often(&project, EVENTS - 1);
    let mut follow = project.spawn(&["log", "--follow"]);
    let lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    let events = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let told: Vec<u64> = events.map(|event| event["seq"].as_u64().unwrap()).take(EVENTS as usize).collect();
    assert_eq!(told, (1..=EVENTS).collect::<Vec<_>>());
    assert_eq!(Unread(follow).end(), Some(0), "its reader is gone");
}
