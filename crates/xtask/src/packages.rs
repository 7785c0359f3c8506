//! Debian packages with the programs that the tests use. What is missing is installed where that is possible; where it
//! is not, the tier that needs it fails and names the packages.

use crate::postgres;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::{Command, Stdio};

/// A package, and whether what is wanted of it is there.
pub(crate) type Need = (&'static str, fn() -> bool);

/// For the tests that need nothing special.
pub(crate) const TESTS: &[Need] = &[
    ("bsdutils", || is_there("script")),
    ("curl", || is_there("curl")),
    ("git", || is_there("git")),
    ("jq", || is_there("jq")),
    ("mount", || is_there("mount")),
    ("openssl", || is_there("openssl")),
    ("procps", || is_there("kill")),
    ("util-linux", || is_there("unshare")),
];

/// For the benchmark of the gate cycle, which counts syncs.
pub(crate) const BENCH: &[Need] = &[("strace", || is_there("strace"))];

/// For those on PostgreSQL, which start throw-away servers.
pub(crate) const POSTGRES: &[Need] = &[("postgresql", postgres::is_there)];

/// For those in a browser. A bare machine has no letters to draw with either.
pub(crate) const BROWSER: &[Need] = &[
    ("chromium", || is_there("chromium")),
    ("chromium-driver", || is_there("chromedriver")),
    ("fonts-dejavu-core", || Path::new("/usr/share/fonts").is_dir()),
];

/// For the real agent programs, which come from npm.
pub(crate) const ENGINES: &[Need] = &[("npm", || is_there("npm"))];

/// For the clients in Python, each in an environment of its own.
pub(crate) const CLIENTS: &[Need] = &[("python3-venv", || runs("python3", &["-c", "import ensurepip"]))];

/// Makes sure that all of these are there.
pub(crate) fn require(needs: &[&[Need]]) -> Result<()> {
    let missing = || -> Vec<&str> {
        needs.iter().copied().flatten().filter(|(_, there)| !there()).map(|(package, _)| *package).collect()
    };
    let wanted = missing();
    if wanted.is_empty() {
        return Ok(());
    }
    let by_hand = || {
        let left = missing().join(" ");
        format!(
            "nothing was tested: Debian packages are missing: {left}; install them: `apt-get install {left}`"
        )
    };
    install(&wanted).with_context(by_hand)?;
    ensure!(missing().is_empty(), by_hand());
    Ok(())
}

fn install(packages: &[&str]) -> Result<()> {
    let apt = |args: &[&str]| {
        println!("+ apt-get {}", args.join(" "));
        Command::new("apt-get").args(args).env("DEBIAN_FRONTEND", "noninteractive").status()
    };
    // An old list may still do; the installation tells.
    let _ = apt(&["update"]);
    let status = apt(&[&["install", "-y", "--no-install-recommends"], packages].concat())
        .context("there is no apt-get here")?;
    ensure!(status.success(), "apt-get failed (is this root, with a network?)");
    Ok(())
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn runs(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
