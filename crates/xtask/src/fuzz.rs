//! `cargo xtask fuzz`: every parser that eats foreign bytes, for a while each. Needs a nightly toolchain (libFuzzer
//! does) and no further program. The committed corpus is where it starts; what it finds on the way stays in `target/`.

use crate::process;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::PathBuf;
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
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions -Ccodegen-units=1";

const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Builds the targets once and runs one after the other.
pub(crate) fn run(args: &FuzzArgs) -> Result<()> {
    let targets = targets()?;
    let chosen: Vec<&String> =
        targets.iter().filter(|target| args.target.as_ref().is_none_or(|only| only == *target)).collect();
    ensure!(!chosen.is_empty(), "there is no such target; there are {}", targets.join(", "));
    let folder = process::target().join("fuzz");
    let mut build = Command::new("rustup");
    build.args(["run", "nightly", "cargo", "build", "--release", "--quiet", "--target", PLATFORM]);
    build.args(["--manifest-path", "fuzz/Cargo.toml", "--target-dir"]).arg(&folder);
    // The cargo that runs this is another one; its variables would mislead the nightly one.
    build
        .env_remove("CARGO")
        .env_remove("RUSTUP_TOOLCHAIN")
        .env("RUSTFLAGS", FLAGS)
        .current_dir(process::root());
    let built = build
        .status()
        .context("rustup does not start; nightly comes with `rustup toolchain install nightly`")?;
    ensure!(
        built.success(),
        "the fuzz targets do not build; nightly comes with `rustup toolchain install nightly`"
    );
    let seconds = (args.minutes * 60.0 / chosen.len() as f64).ceil().max(1.0);
    for target in chosen {
        let kept = folder.join("corpus").join(target);
        fs::create_dir_all(&kept)?;
        let mut fuzz = Command::new(folder.join(PLATFORM).join("release").join(target));
        fuzz.arg(format!("-max_total_time={seconds:.0}")).args([
            "-timeout=10",
            "-rss_limit_mb=2048",
            "-verbosity=0",
        ]);
        fuzz.arg("-print_final_stats=0").arg(format!("-artifact_prefix={}/", folder.display()));
        fuzz.arg(&kept)
            .args(Some(process::root().join("fuzz/corpus").join(target)).filter(|seeds| seeds.is_dir()));
        let output = fuzz.current_dir(process::root()).output().with_context(|| target.clone())?;
        let count = fs::read_dir(&kept)?.count();
        if !output.status.success() {
            eprintln!("{}", String::from_utf8_lossy(&output.stderr));
            bail!("{target} found something; the input is in {}", folder.display());
        }
        println!(
            "fuzz: {target}: {seconds:.0} s, {count} inputs that each reach something new, nothing found"
        );
    }
    Ok(())
}

/// Every file in fuzz_targets/ is one.
fn targets() -> Result<Vec<String>> {
    let folder = process::root().join("fuzz/fuzz_targets");
    let files = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let paths =
        files.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "rs"));
    let name = |path: PathBuf| Some(path.file_stem()?.to_str()?.to_owned());
    let mut names: Vec<String> = paths.filter_map(name).collect();
    names.sort();
    Ok(names)
}
