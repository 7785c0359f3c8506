//! `cargo xtask dist`: what a package holds, as a folder and an archive of it: the optimised binary that knows its
//! commit, man pages, completions, licences, and a list of all that was compiled in.

use crate::{dependencies, process};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The shells that completions are made for.
const SHELLS: &[(&str, &str)] = &[("bash", "aop.bash"), ("zsh", "_aop"), ("fish", "aop.fish")];

/// Builds into `target/package/`.
pub(crate) fn run() -> Result<()> {
    process::cargo(&["build", "--profile", "dist", "--locked", "-p", "aop"])?;
    let name = format!("aop-{}-{}-linux", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    let above = process::target().join("package");
    let package = above.join(&name);
    let _ = fs::remove_dir_all(&package);
    for folder in ["man", "completions"] {
        fs::create_dir_all(package.join(folder))?;
    }
    let binary = package.join("aop");
    fs::copy(process::target().join("dist/aop"), &binary).context("target/dist/aop")?;
    aop(&binary, &["manual", "man", "--output", &package.join("man").display().to_string()])?;
    for (shell, file) in SHELLS {
        fs::write(package.join("completions").join(file), aop(&binary, &["completions", shell])?)?;
    }
    for file in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        fs::copy(process::root().join(file), package.join(file)).context(file)?;
    }
    let version = String::from_utf8(aop(&binary, &["--version"])?)?;
    let list = dependencies::sbom(version.trim().trim_start_matches("aop "))?;
    fs::write(package.join("sbom.cdx.json"), format!("{list:#}\n"))?;
    let archive = above.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.arg("-czf").arg(&archive).arg("-C").arg(&above).arg(&name);
    ensure!(tar.status().context("tar does not start")?.success(), "tar failed");
    let size = |path: &Path| fs::metadata(path).map(|file| file.len() / 1024);
    println!(
        "dist: {}; {} KiB, {} crates compiled in, {} KiB as {}",
        version.trim(),
        size(&binary)?,
        list["components"].as_array().map_or(0, Vec::len),
        size(&archive)?,
        archive.display()
    );
    Ok(())
}

fn aop(binary: &Path, args: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new(binary).args(args).env_clear().output()?;
    ensure!(output.status.success(), "aop {} failed", args.join(" "));
    Ok(output.stdout)
}
