//! `cargo xtask test-engines`: the tests that run the real agent programs, each against a fake model on loopback.
//!
//! The programs come from the npm registry at pinned versions, into a cache outside the clone. Tests of real
//! programs stand in modules called `real_…`; without the programs they fail, they are never skipped.

use crate::{packages, process, python};
use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The same list that the test kit reads.
const PINS: &str = include_str!("../../aop-testkit/engines.json");

/// The variable in which the tests look for the folder.
const VARIABLE: &str = "AOP_TEST_ENGINES";

/// What Gemini CLI needs, and what it gets where the machine has less.
const OLDEST_NODE: u32 = 20;
const NODE: &str = "22.23.3";

/// The tests of real programs, as nextest says it.
pub(crate) const REAL: &str = "test(/(^|::)real_/)";

/// What to run.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct EngineTests {
    /// Do not ask the registry: use what an earlier run has installed, and fail when there is nothing
    #[arg(long)]
    offline: bool,
    /// Only this program: claude, codex or gemini; python for the MCP SDK and schemathesis
    #[arg(long, value_parser = ["claude", "codex", "gemini", "python"])]
    only: Option<String>,
    /// Only install, and print the folder
    #[arg(long)]
    install: bool,
    /// Only tests whose name contains this
    filter: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Pin {
    program: String,
    package: String,
    version: String,
}

impl Pin {
    /// Where npm installs it: by version, so that a new pin never meets old files.
    fn folder(&self, cache: &Path) -> PathBuf {
        let name = self.package.rsplit('/').next().unwrap_or_default();
        cache.join(format!("{name}-{}", self.version))
    }
}

/// Installs what is missing and runs the tests.
pub(crate) fn run(tests: &EngineTests) -> Result<()> {
    let cache = cache()?;
    let pins: Vec<Pin> = serde_json::from_str(PINS)?;
    let wanted = |pin: &&Pin| tests.only.as_ref().is_none_or(|only| *only == pin.program);
    for pin in pins.iter().filter(wanted) {
        provide(pin, &cache, tests.offline)?;
    }
    match found_node() {
        Some(node) => link(&node, &cache.join("bin/node"))?,
        None => provide(&node(), &cache, tests.offline)?,
    }
    let clients = match tests.only.as_deref() {
        None | Some("python") => python::provide(cache.parent().unwrap_or(&cache), tests.offline)?,
        Some(_) => PathBuf::new(),
    };
    if tests.install {
        println!("{}", cache.display());
        return Ok(());
    }
    let (folder, clients) = (cache.display().to_string(), clients.display().to_string());
    let variables = [(VARIABLE, folder.as_str()), (python::VARIABLE, clients.as_str())];
    if process::has_nextest() {
        let mut expression = REAL.to_owned();
        for part in tests.only.iter().chain(&tests.filter) {
            expression.push_str(&format!(" & test({part})"));
        }
        let args = ["nextest", "run", "--workspace", "--no-fail-fast", "-E", &expression];
        return process::with_variables(&variables, &args);
    }
    let narrow = tests.filter.as_deref().or(tests.only.as_deref()).unwrap_or("real_");
    process::with_variables(&variables, &["test", "--workspace", "--no-fail-fast", "--", narrow])
}

/// `$AOP_CACHE/engines`, or `aop/engines` in the user's cache.
fn cache() -> Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let root = set("AOP_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|cache| cache.join("aop")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/aop")));
    let root = root.context("no place for the programs: set AOP_CACHE to a folder outside the clone")?;
    let engines = root.join("engines");
    std::fs::create_dir_all(engines.join("bin")).with_context(|| engines.display().to_string())?;
    Ok(engines)
}

/// Makes sure that a program is there, at its version.
fn provide(pin: &Pin, cache: &Path, offline: bool) -> Result<()> {
    let folder = pin.folder(cache);
    if binary(pin, &folder).is_none() {
        let spec = format!("{}@{}", pin.package, pin.version);
        if offline {
            bail!(
                "nothing was tested: {spec} is not in {} and --offline forbids to fetch it; run `cargo xtask \
                 test-engines` once with a network",
                cache.display()
            );
        }
        packages::require(&[packages::ENGINES])?;
        if let Err(first) = install(&spec, &folder) {
            eprintln!("xtask: {first:#}; trying once more");
            install(&spec, &folder).with_context(|| {
                format!("nothing was tested: {spec} cannot be installed (--offline uses what an earlier run installed)")
            })?;
        }
    }
    let binary = binary(pin, &folder).with_context(|| {
        format!("{} holds no program for this machine; delete it and try again", folder.display())
    })?;
    link(&binary, &cache.join("bin").join(&pin.program))
}

/// Into a folder of its own first: whoever looks meanwhile sees all of it or nothing.
fn install(spec: &str, folder: &Path) -> Result<()> {
    let fresh = folder.with_extension(format!("{}.new", std::process::id()));
    let _ = std::fs::remove_dir_all(&fresh);
    std::fs::create_dir_all(&fresh)?;
    eprintln!("+ npm install {spec}");
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel", "error", "--prefix"]);
    npm.arg(&fresh).arg(spec).current_dir(&fresh);
    let status = npm.status().context("npm does not start")?;
    if !status.success() {
        let _ = std::fs::remove_dir_all(&fresh);
        bail!("npm install {spec} failed: is the registry within reach?");
    }
    let _ = std::fs::remove_dir_all(folder);
    if std::fs::rename(&fresh, folder).is_err() {
        // Somebody else was faster; the version is the same.
        ensure!(folder.is_dir(), "{} cannot be moved into place", fresh.display());
        let _ = std::fs::remove_dir_all(&fresh);
    }
    Ok(())
}

/// The program itself. Claude Code and Codex are native; their packages for this machine hold them, and the scripts
/// round them would want a newer Node than the programs do.
fn binary(pin: &Pin, folder: &Path) -> Option<PathBuf> {
    let modules = folder.join("node_modules");
    if pin.program == "node" {
        return executable(&modules.join(&pin.package), "node", 2);
    }
    if pin.program == "gemini" {
        return Some(modules.join(".bin/gemini")).filter(|script| script.exists());
    }
    let scope = modules.join(pin.package.split('/').next().unwrap_or_default());
    let platforms = std::fs::read_dir(scope).ok()?.flatten().map(|entry| entry.path());
    platforms.filter_map(|package| executable(&package, &pin.program, 5)).next()
}

/// A file with this name that may be run, at most so many folders down.
fn executable(folder: &Path, name: &str, depth: u8) -> Option<PathBuf> {
    let mut below = Vec::new();
    for entry in std::fs::read_dir(folder).ok()?.flatten() {
        let path = entry.path();
        if path.is_dir() {
            below.push(path);
        } else if entry.file_name() == name && may_run(&path) {
            return Some(path);
        }
    }
    let depth = depth.checked_sub(1)?;
    below.iter().find_map(|folder| executable(folder, name, depth))
}

#[cfg(unix)]
fn may_run(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|file| file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn may_run(_path: &Path) -> bool {
    true
}

/// The machine's own node, if it is new enough for Gemini CLI.
fn found_node() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let node = std::env::split_paths(&path).map(|folder| folder.join("node")).find(|node| node.is_file())?;
    let said = Command::new(&node).arg("--version").output().ok()?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let major: u32 = said.trim().strip_prefix('v')?.split('.').next()?.parse().ok()?;
    (major >= OLDEST_NODE).then(|| std::fs::canonicalize(node).ok()).flatten()
}

/// One from npm instead: Debian 12 has 18.
fn node() -> Pin {
    let platform = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    Pin { program: "node".into(), package: format!("node-linux-{platform}"), version: NODE.into() }
}

/// Points the link at the target, in one step.
#[cfg(unix)]
fn link(target: &Path, link: &Path) -> Result<()> {
    let fresh = link.with_extension(format!("{}.new", std::process::id()));
    let _ = std::fs::remove_file(&fresh);
    std::os::unix::fs::symlink(target, &fresh).with_context(|| fresh.display().to_string())?;
    std::fs::rename(&fresh, link).with_context(|| link.display().to_string())
}

#[cfg(not(unix))]
fn link(_target: &Path, _link: &Path) -> Result<()> {
    bail!("the tests of real programs run on Unix only")
}
