//! `cargo xtask fuzz`: every parser that eats foreign bytes, for a while each, with libFuzzer. Any toolchain will do. The
//! committed corpus is where it starts; what reaches something new on the way stays in `target/`.

use crate::process;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What to fuzz.
#[derive(Debug, clap::Args)]
pub(crate) struct FuzzArgs {
    /// For how long, all targets together
    #[arg(long, value_name = "N", default_value_t = 5.0)]
    minutes: f64,
    /// Only this target
    #[arg(long)]
    target: Option<String>,
}

/// What libFuzzer wants to see of the program: every edge and every comparison.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions";

/// The flags are for the targets and not for what runs while they are built, so cargo has to be told a platform.
const PLATFORM: &str =
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-gnu" } else { "x86_64-unknown-linux-gnu" };

/// Builds the program once and runs one target after the other.
pub(crate) fn run(args: &FuzzArgs) -> Result<()> {
    let folder = process::target().join("fuzz");
    let program = build(&folder)?;
    let targets = targets()?;
    let chosen: Vec<&String> =
        targets.iter().filter(|target| args.target.as_ref().is_none_or(|only| only == *target)).collect();
    ensure!(!chosen.is_empty(), "there is no such target; there are {}", targets.join(", "));
    let seconds = (args.minutes * 60.0 / chosen.len() as f64).ceil().max(1.0);
    for target in chosen {
        let (found, seeds) = (folder.join("corpus").join(target), seeds(target));
        fs::create_dir_all(&found)?;
        let mut fuzz = libfuzzer(&program, target, &folder);
        fuzz.arg(format!("-max_total_time={seconds:.0}")).arg(&found).arg(&seeds);
        let output = fuzz.output().with_context(|| target.clone())?;
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            eprintln!("{said}");
            bail!(
                "{target} found something; the input is in {}. Mend it, and put the input into {}",
                folder.display(),
                seeds.display()
            );
        }
        let runs = said.lines().rev().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
        let count = fs::read_dir(&found)?.count();
        println!(
            "fuzz: {target}: {seconds:.0} s, {} runs, {count} inputs that each reach something new, nothing found",
            runs.unwrap_or("?").trim()
        );
    }
    Ok(())
}

fn build(folder: &Path) -> Result<PathBuf> {
    let mut build = process::plain_cargo();
    build
        .args(["build", "--release", "--quiet", "-p", "aop-fuzz", "--target", PLATFORM, "--target-dir"])
        .arg(folder);
    let built = build.env("RUSTFLAGS", FLAGS).status().context("cargo does not start")?;
    ensure!(
        built.success(),
        "the fuzz targets do not build; libFuzzer itself needs a C++ compiler (Debian: g++)"
    );
    Ok(folder.join(PLATFORM).join("release/aop-fuzz"))
}

fn libfuzzer(program: &Path, target: &str, folder: &Path) -> Command {
    let mut fuzz = Command::new(program);
    fuzz.args([
        "-timeout=10",
        "-rss_limit_mb=2048",
        "-max_len=16384",
        "-verbosity=0",
        "-print_final_stats=1",
    ]);
    fuzz.arg(format!("-artifact_prefix={}/{target}-", folder.display()));
    fuzz.env("AOP_FUZZ_TARGET", target).current_dir(process::root());
    fuzz
}

fn seeds(target: &str) -> PathBuf {
    process::root().join("fuzz/corpus").join(target)
}

/// Every folder of the corpus is one; a test sees to that.
fn targets() -> Result<Vec<String>> {
    let folder = process::root().join("fuzz/corpus");
    let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}
