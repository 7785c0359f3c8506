//! The guard's own side. It is a program without a runtime: a thread for each pipe, and the first thread waits.

use super::Started;
use super::family::{adopt_orphans, end_family, kill_descendants, kill_group, process};
use super::frame::{Kind, receive, send};
use super::record::Record;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// What a guard is told on its command line. Folder and environment are those of the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardArgs {
    /// The turn's record, with its mark.
    pub record: PathBuf,
    /// Where standard output goes.
    pub transcript: PathBuf,
    /// Where standard error goes.
    pub errors: PathBuf,
    /// Bytes of standard output that are let through.
    pub output_bytes: u64,
    /// Whether the engine gets an input at all.
    pub piped_input: bool,
    /// The engine's program and arguments.
    pub argv: Vec<OsString>,
}

/// The way back to `aop`. When it fails, nobody is there any more.
type Back = Arc<Mutex<io::Stdout>>;

/// Runs an engine to its end under guard: standard input and output speak frames with `aop`. Returns the exit code.
pub fn guard(args: &GuardArgs) -> u8 {
    // A session of its own: what is typed at a terminal reaches `aop` alone, and `aop` decides.
    let _ = rustix::process::setsid();
    adopt_orphans();
    let back: Back = Arc::new(Mutex::new(io::stdout()));
    match run(args, &back) {
        Ok(()) => 0,
        Err(error) => {
            kill_descendants();
            let _ = std::fs::remove_file(&args.record);
            let _ = send(&mut *locked(&back), Kind::NotStarted, error.to_string().as_bytes());
            1
        }
    }
}

fn run(args: &GuardArgs, back: &Back) -> io::Result<()> {
    let mut record: Record = serde_json::from_slice(&std::fs::read(&args.record)?)?;
    let transcript = File::create(&args.transcript)?;
    let errors = File::create(&args.errors)?;
    let mut child = spawn(args)?;
    let pgid = i32::try_from(child.id()).unwrap_or(0);
    let started = Started { pgid, start_time: process(pgid).map_or(0, |process| process.start_time) };
    record.engine = Some(started);
    record.write(&args.record)?;
    // `aop` may be gone already; the thread that listens to it will notice.
    let _ = send(&mut *locked(back), Kind::Started, &serde_json::to_vec(&started)?);

    let pumps = [
        child.stdout.take().map(|pipe| {
            let pump = Pump { from: pipe, to: transcript, kind: Kind::Output, left: args.output_bytes };
            pump.start(Arc::clone(back), pgid)
        }),
        child.stderr.take().map(|pipe| {
            let pump = Pump { from: pipe, to: errors, kind: Kind::Errors, left: args.output_bytes };
            pump.start(Arc::clone(back), pgid)
        }),
    ];
    listen(child.stdin.take(), pgid);

    let status = child.wait()?;
    // The engine is gone; what it started and left behind goes now, and with it the last writers of the pipes.
    if cfg!(not(target_os = "linux")) {
        kill_group(pgid);
    }
    end_family();
    for pump in pumps.into_iter().flatten() {
        let _ = pump.join();
    }
    let _ = std::fs::remove_file(&args.record);
    let _ = send(&mut *locked(back), Kind::Ended, exit_code(status).to_string().as_bytes());
    Ok(())
}

fn spawn(args: &GuardArgs) -> io::Result<Child> {
    let (program, rest) = args.argv.split_first().ok_or_else(|| io::Error::other("no program was given"))?;
    let input = if args.piped_input { Stdio::piped() } else { Stdio::null() };
    Command::new(program)
        .args(rest)
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", program.display())))
}

fn exit_code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}

/// Does what `aop` says until `aop` is gone. The engine's input is written by a thread of its own, because an engine
/// that does not read must not keep this one from noticing.
fn listen(input: Option<ChildStdin>, pgid: i32) {
    let (to_engine, for_engine) = channel();
    thread::spawn(move || feed(input, &for_engine));
    thread::spawn(move || {
        obey(&to_engine);
        // In this order: the engine's input may close only once there is no engine.
        kill_group(pgid);
        kill_descendants();
        drop(to_engine);
    });
}

/// Returns when everything has to end.
fn obey(to_engine: &Sender<Option<Vec<u8>>>) {
    let mut from = io::stdin().lock();
    while let Ok(frame) = receive(&mut from) {
        let message = match frame.kind {
            Kind::Input => Some(frame.bytes),
            Kind::CloseInput => None,
            Kind::Kill
            | Kind::Started
            | Kind::NotStarted
            | Kind::Output
            | Kind::Errors
            | Kind::TooMuch
            | Kind::Ended => return,
        };
        let _ = to_engine.send(message);
    }
}

fn feed(mut input: Option<ChildStdin>, messages: &Receiver<Option<Vec<u8>>>) {
    while let Ok(message) = messages.recv() {
        match (message, &mut input) {
            (Some(bytes), Some(pipe)) => {
                // An engine that has closed its input does not want more; that is no reason to end it.
                let _ = pipe.write_all(&bytes);
            }
            (None, _) => input = None,
            (Some(_), None) => {}
        }
    }
}

/// Carries one of the engine's outputs to its file and to `aop`.
struct Pump<R> {
    from: R,
    to: File,
    kind: Kind,
    left: u64,
}

impl<R: Read + Send + 'static> Pump<R> {
    fn start(mut self, back: Back, pgid: i32) -> thread::JoinHandle<()> {
        thread::spawn(move || {
            // Either nobody reads any more, or the engine never stops: both end it, while its pipe still stands.
            if self.run(&back).is_err() {
                kill_group(pgid);
                kill_descendants();
            }
        })
    }

    fn run(&mut self, back: &Back) -> io::Result<()> {
        let mut buffer = vec![0; 64 << 10];
        loop {
            let read = match self.from.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let bytes = &buffer[..read];
            let Some(left) = self.left.checked_sub(read as u64) else {
                send(&mut *locked(back), Kind::TooMuch, &[])?;
                return Err(io::Error::other("the engine wrote too much"));
            };
            self.left = left;
            // A full disk costs the copy, not the turn.
            let _ = self.to.write_all(bytes);
            send(&mut *locked(back), self.kind, bytes)?;
        }
    }
}

fn locked(back: &Mutex<io::Stdout>) -> MutexGuard<'_, io::Stdout> {
    back.lock().unwrap_or_else(PoisonError::into_inner)
}
