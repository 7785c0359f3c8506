//! The real program in one project folder: run to its end, run and killed, or started and left alone.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Nothing that the campaign starts takes this long; what does hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program and the project it works on.
#[derive(Debug, Clone)]
pub(super) struct Binary {
    pub(super) program: PathBuf,
    pub(super) folder: PathBuf,
    /// The address of its store, when that is not the embedded one.
    pub(super) store: Option<String>,
}

/// What a run left behind.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    /// None when a signal ended it.
    pub(super) code: Option<i32>,
    pub(super) stdout: String,
    #[expect(dead_code, reason = "a failure prints it with the rest")]
    pub(super) stderr: String,
}

impl Reply {
    /// The whole envelope, when there is one: a line that ends is a line that was acknowledged.
    pub(super) fn envelope(&self) -> Option<Value> {
        self.stdout.strip_suffix('\n').and_then(|line| serde_json::from_str(line).ok())
    }

    /// The data of a success.
    pub(super) fn data(&self) -> Result<Value> {
        match self.envelope() {
            Some(mut envelope) if envelope["ok"] == true => Ok(envelope["data"].take()),
            _ => bail!("expected a success: {self:?}"),
        }
    }

    /// The code of a refusal.
    pub(super) fn refusal(&self) -> Option<(String, Value)> {
        let mut envelope = self.envelope().filter(|envelope| envelope["ok"] == false)?;
        Some((envelope["error"]["code"].as_str()?.to_owned(), envelope["error"]["details"].take()))
    }
}

impl Binary {
    fn command(&self, args: &[String], variables: &[(&str, String)]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).current_dir(&self.folder).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", &self.folder);
        command.envs(self.store.iter().map(|address| ("AOP_STORE", address)));
        command.envs(variables.iter().map(|(name, value)| (*name, value.as_str())));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts it and does not wait.
    pub(super) fn start(&self, args: &[String], variables: &[(&str, String)]) -> Result<Child> {
        let program = || self.program.display().to_string();
        self.command(args, variables).spawn().with_context(program)
    }

    /// Runs it to its end.
    pub(super) fn run(&self, args: &[String], variables: &[(&str, String)]) -> Result<Reply> {
        finish(self.start(args, variables)?, args)
    }

    /// The same for arguments that are known.
    pub(super) fn ask(&self, args: &[&str]) -> Result<Reply> {
        self.run(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>(), &[])
    }

    /// Runs it and kills it (SIGKILL) after so long, if it is still there.
    pub(super) fn kill_after(&self, args: &[String], after: Duration) -> Result<Reply> {
        let mut child = self.start(args, &[])?;
        std::thread::sleep(after);
        // It may have ended already; then there is nothing to kill.
        let _ = child.kill();
        finish(child, args)
    }

    /// The same program on a project of its own, in a folder below this one.
    pub(super) fn below(&self, name: &str) -> Binary {
        let store = self.store.as_ref().map(|address| format!("{address}-{name}"));
        Binary { program: self.program.clone(), folder: self.path(name), store }
    }

    /// A path below the project.
    pub(super) fn path(&self, below: &str) -> PathBuf {
        self.folder.join(below)
    }
}

/// Waits for the end, but not for ever.
pub(super) fn finish(child: Child, args: &[String]) -> Result<Reply> {
    let id = child.id();
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || send.send(child.wait_with_output()));
    let started = Instant::now();
    let Ok(output) = receive.recv_timeout(PATIENCE) else {
        let _ = Command::new("kill").args(["-9", &id.to_string()]).status();
        bail!("aop {} hangs: no end after {:?}", args.join(" "), started.elapsed());
    };
    let Output { status, stdout, stderr } = output?;
    Ok(Reply {
        code: status.code(),
        stdout: String::from_utf8_lossy(&stdout).into_owned(),
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    })
}

/// Every file below a folder.
pub(super) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect();
    files.sort();
    files
}
