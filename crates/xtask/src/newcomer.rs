//! `cargo xtask newcomer`: what somebody meets who has Rust and a fresh clone, and nothing else: an empty home, an
//! empty environment, no build of ours. The README's first command, then a question and its answer.

use crate::process;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What to try.
#[derive(Debug, clap::Args)]
pub(crate) struct NewcomerArgs {
    /// Also run the README's second command, the whole test suite, in the clean clone
    #[arg(long)]
    tests: bool,
}

/// A clone of the last commit and an empty home, gone when this ends.
struct Fresh {
    folder: PathBuf,
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // What stays behind is in the temporary folder of the system.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Clones, installs, asks, answers.
pub(crate) fn run(args: &NewcomerArgs) -> Result<()> {
    let fresh = Fresh { folder: std::env::temp_dir().join(format!("aop-newcomer-{}", std::process::id())) };
    let (home, clone, shop) =
        (fresh.folder.join("home"), fresh.folder.join("clone"), fresh.folder.join("shop"));
    std::fs::create_dir_all(&home)?;
    std::fs::create_dir_all(&shop)?;
    let root = process::root().display().to_string();
    said(Command::new("git").args(["clone", "--quiet", "--no-hardlinks", &root]).arg(&clone))?;
    let commands = commands(&clone)?;
    let [install, .., test] = commands.as_slice() else {
        anyhow::bail!("the README begins with a command and ends with another");
    };
    println!("newcomer: {install}");
    said(&mut shell(&home, &clone, install)?)?;
    for step in
        ["aop --version", "aop init", "aop features create --feature-id checkout --title 'Checkout page'"]
    {
        said(&mut shell(&home, &shop, step)?)?;
    }
    let ask = "aop ask 'Which database?' --choice PostgreSQL --choice SQLite --feature-id checkout --plain";
    let waiting = shell(&home, &shop, ask)?.stdout(Stdio::piped()).spawn()?;
    let question = wait_for_question(&home, &shop)?;
    let answer = format!("aop answer --feature-id checkout --question-id {question} --answer SQLite");
    said(&mut shell(&home, &shop, &answer)?)?;
    let told = waiting.wait_with_output()?;
    ensure!(told.stdout == b"SQLite\n", "the question was answered, and the asker was told {told:?}");
    println!("newcomer: from a clean clone and an empty home to an answered question");
    if args.tests {
        println!("newcomer: {test}");
        said(&mut shell(&home, &clone, test)?)?;
    }
    Ok(())
}

/// The command blocks of the README.
fn commands(clone: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(clone.join("README.md")).context("README.md")?;
    let blocks = text.split("```sh\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    Ok(blocks.map(str::to_owned).collect())
}

/// A shell with nothing but a search path, the toolchain and an empty home.
fn shell(home: &Path, folder: &Path, script: &str) -> Result<Command> {
    let path = std::env::var("PATH").context("PATH")?;
    let rust = std::env::var_os("RUSTUP_HOME").map(PathBuf::from);
    let rust = rust.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".rustup")));
    let mut command = Command::new("sh");
    command.args(["-eu", "-c", script]).current_dir(folder).env_clear().stdin(Stdio::null());
    command.env("PATH", format!("{}/.cargo/bin:{path}", home.display())).env("HOME", home);
    command.envs(rust.map(|rust| ("RUSTUP_HOME", rust)));
    Ok(command)
}

fn said(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{command:?}"))?;
    ensure!(status.success(), "{command:?} failed");
    Ok(())
}

fn wait_for_question(home: &Path, shop: &Path) -> Result<String> {
    let started = Instant::now();
    loop {
        let output = shell(home, shop, "aop questions")?.output()?;
        let listed: Value = serde_json::from_slice(&output.stdout)?;
        if let Some(id) = listed["data"]["items"][0]["question_id"].as_str() {
            return Ok(id.to_owned());
        }
        ensure!(started.elapsed() < Duration::from_secs(60), "no question appears");
    }
}
