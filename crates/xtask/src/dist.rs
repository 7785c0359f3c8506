//! `cargo xtask dist`: what a package holds, as a folder and an archive of it: the optimised binary that knows its
//! commit, man pages, completions, all that can be read about it, licences, and a list of all that was compiled in.

use crate::{dependencies, process};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The shells that completions are made for.
const SHELLS: &[(&str, &str)] = &[("bash", "aop.bash"), ("zsh", "_aop"), ("fish", "aop.fish")];

/// What can be read. The files link each other, so they stand to each other as they do here.
const PAPERS: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "docs",
    "examples",
    "schemas",
];

/// The program as it is handed out, built.
pub(crate) fn binary() -> Result<PathBuf> {
    process::cargo(&["build", "--profile", "dist", "--locked", "-p", "aop"])?;
    Ok(process::target().join("dist/aop"))
}

/// Builds into `target/package/`.
pub(crate) fn run() -> Result<()> {
    let built = binary()?;
    let name = format!("aop-{}-{}-linux", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    let above = process::target().join("package");
    let package = above.join(&name);
    let _ = fs::remove_dir_all(&package);
    for folder in ["man", "completions"] {
        fs::create_dir_all(package.join(folder))?;
    }
    let binary = package.join("aop");
    fs::copy(&built, &binary).with_context(|| built.display().to_string())?;
    aop(&binary, &["manual", "man", "--output", &package.join("man").display().to_string()])?;
    for (shell, file) in SHELLS {
        fs::write(package.join("completions").join(file), aop(&binary, &["completions", shell])?)?;
    }
    papers(&package)?;
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

fn papers(package: &Path) -> Result<()> {
    let mut copy = Command::new("cp");
    copy.arg("-R").args(PAPERS).arg(package).current_dir(process::root());
    ensure!(copy.status().context("cp does not start")?.success(), "cp failed");
    Ok(())
}

fn aop(binary: &Path, args: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new(binary).args(args).env_clear().output()?;
    ensure!(output.status.success(), "aop {} failed", args.join(" "));
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::papers;
    use std::fs;
    use std::path::{Path, PathBuf};

    /// The pages in a folder and below it.
    fn pages(folder: &Path) -> Vec<PathBuf> {
        let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        paths
            .flat_map(|path| if path.is_dir() { pages(&path) } else { vec![path] })
            .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
            .collect()
    }

    #[test]
    fn every_link_of_the_package_leads_to_a_file_in_it() {
        let package = tempfile::tempdir().unwrap();
        papers(package.path()).unwrap();
        let root = package.path().canonicalize().unwrap();
        let (mut broken, mut seen) = (Vec::new(), 0);
        for page in pages(&root) {
            let text = fs::read_to_string(&page).unwrap();
            // In code, brackets are no links.
            let outside = text.split("\n```").step_by(2).flat_map(|part| part.split('`').step_by(2));
            let outside = outside.collect::<Vec<_>>().join("code");
            for link in outside.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
                if link.is_empty() || link.contains("://") {
                    continue;
                }
                seen += 1;
                let target = page.parent().unwrap().join(link).canonicalize();
                if !target.is_ok_and(|target| target.starts_with(&root)) {
                    broken.push(format!("{}: {link}", page.display()));
                }
            }
        }
        assert!(seen > 80, "only {seen} links were found");
        assert!(broken.is_empty(), "{broken:#?}");
    }
}
