//! Tells an optimised build which commit it is made of. A debug build is not told, so that it need not be linked again
//! after every commit; a build without git, from a tarball for instance, says so.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=AOP_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    let commit = std::env::var("AOP_COMMIT").ok().filter(|commit| !commit.is_empty());
    let build = match (commit, std::env::var("PROFILE").as_deref()) {
        (Some(commit), _) => commit,
        (None, Ok("release")) => {
            commit_here().unwrap_or_else(|| "built without git, commit unknown".to_owned())
        }
        (None, _) => "debug build".to_owned(),
    };
    println!("cargo::rustc-env=AOP_BUILD={build}");
}

/// The last commit and its date, marked when the files differ from it.
fn commit_here() -> Option<String> {
    // A tarball that was unpacked inside some other repository is no part of that one.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    for name in ["HEAD", "logs/HEAD", "index"] {
        println!(
            "cargo::rerun-if-changed={}",
            git(&["rev-parse", "--path-format=absolute", "--git-path", name])?
        );
    }
    let commit = git(&["log", "-1", "--format=%h %cs"])?;
    let changed = !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    Some(if changed { format!("{commit}, changed") } else { commit })
}

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
