//! `cargo xtask newcomer`: what somebody meets who has Rust and a fresh clone, and nothing else: an empty home, an
//! empty environment, no build of ours; with `--debian` also a system without anything. The README's first command, a
//! question and its answer, then the README's second.

mod place;

use crate::process;
use anyhow::{Context, Result, ensure};
use place::{Fresh, Place, said};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What to try.
#[derive(Debug, clap::Args)]
pub(crate) struct NewcomerArgs {
    /// In a Debian that is installed for this into a folder (as root, with a network)
    #[arg(long)]
    debian: bool,
    /// Also run the README's second command, the whole test suite, in the clean clone
    #[arg(long)]
    tests: bool,
    /// Instead of all of the test suite, only its inner loop
    #[arg(long, requires = "tests")]
    quick: bool,
    /// Set when it runs with mounts of its own: the root of the new system
    #[arg(long, hide = true, value_name = "DIR")]
    inside: Option<PathBuf>,
}

/// Makes the place and tries it there.
pub(crate) fn run(args: &NewcomerArgs) -> Result<()> {
    if let Some(root) = &args.inside {
        place::furnish(root)?;
        return visit(args, &Place::Debian(root.clone()));
    }
    let fresh = Fresh::new()?;
    if !args.debian {
        let home = fresh.folder.join("home");
        std::fs::create_dir_all(&home)?;
        return visit(args, &Place::Home(home));
    }
    let root = fresh.folder.join("debian");
    place::debian(&root)?;
    let mut again = Command::new("unshare");
    // With processes of its own, so that none outlives it: a server that a package has started, for instance. The shell
    // does the work of the first process, which is to wait for orphans.
    again.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", "\"$@\"; exit $?", "sh"]);
    again.arg(std::env::current_exe()?).args(["newcomer", "--debian", "--inside"]).arg(&root);
    again.args(args.tests.then_some("--tests")).args(args.quick.then_some("--quick"));
    said(&mut again)
}

/// Clones, installs, asks, answers, tests.
fn visit(args: &NewcomerArgs, place: &Place) -> Result<()> {
    let clone = place.home("clone");
    let from = process::root().display().to_string();
    said(Command::new("git").args(["clone", "--quiet", "--no-hardlinks", &from]).arg(&clone))?;
    std::fs::create_dir_all(place.home("shop"))?;
    let readme = std::fs::read_to_string(clone.join("README.md")).context("README.md")?;
    let commands: Vec<&str> =
        readme.split("```sh\n").skip(1).filter_map(|rest| rest.split("\n```").next()).collect();
    let [install, .., test] = commands.as_slice() else {
        anyhow::bail!("the README begins with a command and ends with another");
    };
    if let Place::Debian(root) = place {
        needed(&readme, place, root)?;
    }
    let step = |below: &str, script: &str| {
        println!("newcomer: {script}");
        said(&mut place.shell(below, script)?)
    };
    let started = Instant::now();
    step("clone", install)?;
    step(
        "shop",
        "aop --version\naop init\naop features create --feature-id checkout --title 'Checkout page'",
    )?;
    let ask = "aop ask 'Which database?' --choice PostgreSQL --choice SQLite --feature-id checkout --plain";
    let waiting = place.shell("shop", ask)?.stdout(Stdio::piped()).spawn()?;
    let question = wait_for_question(place)?;
    step("shop", &format!("aop answer --feature-id checkout --question-id {question} --answer SQLite"))?;
    let told = waiting.wait_with_output()?;
    ensure!(told.stdout == b"SQLite\n", "the question was answered, and the asker was told {told:?}");
    println!("newcomer: from a clean clone to an answered question in {} s", started.elapsed().as_secs());
    if args.tests {
        let quick = if args.quick { " --quick" } else { "" };
        let started = Instant::now();
        step("clone", &format!("{test}{quick}"))?;
        println!("newcomer: and to green tests in {} s", started.elapsed().as_secs());
    }
    Ok(())
}

/// Installs what the README says is needed.
fn needed(readme: &str, place: &Place, root: &Path) -> Result<()> {
    let install = readme.split('`').find(|code| code.starts_with("apt-get install "));
    let install = install.context("the README does not say what is needed: `apt-get install …`")?;
    println!("newcomer: {install}");
    let quietly = install.replace("apt-get install", "apt-get install -qq --no-install-recommends -y");
    let script = format!("apt-get update -qq\nDEBIAN_FRONTEND=noninteractive {quietly} > /dev/null");
    said(&mut place.shell("", &script)?)?;
    place::trust(root);
    Ok(())
}

fn wait_for_question(place: &Place) -> Result<String> {
    let started = Instant::now();
    loop {
        let output = place.shell("shop", "aop questions")?.output()?;
        let listed: Value = serde_json::from_slice(&output.stdout)?;
        if let Some(id) = listed["data"]["items"][0]["question_id"].as_str() {
            return Ok(id.to_owned());
        }
        ensure!(started.elapsed() < Duration::from_secs(60), "no question appears");
    }
}
