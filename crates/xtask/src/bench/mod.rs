//! `cargo xtask bench`: builds, measures, and for the gate cycle writes the figures down: JSON lines, a page with
//! tables and charts. Nothing is asserted; what counts are the ratios within one run.

mod chart;
mod driver;
mod lines;
mod page;
mod targets;

use crate::{dist, packages, process};
use anyhow::{Context, Result, bail, ensure};
use lines::Lines;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Runs a benchmark by its name.
pub(crate) fn run(what: &str, rest: &[String]) -> Result<()> {
    match what {
        "gate" => gate(rest),
        "page" => write_down(&Lines::read(&shelf())?, &shelf()),
        "serve-driver" => driver::run(rest),
        "store" if rest.iter().any(|arg| arg == "--postgres") => {
            packages::require(&[packages::POSTGRES])?;
            measure("aop-store", "postgres", &[], rest)
        }
        "store" | "serve" => {
            let binary = dist::binary()?.display().to_string();
            let package = if what == "store" { "aop-store" } else { "aop-server" };
            measure(package, what, &["--aop", &binary], rest)
        }
        _ => bail!("there is no benchmark '{what}'; there are: gate, page, serve-driver, store, serve"),
    }
}

fn measure(package: &str, bench: &str, own: &[&str], rest: &[String]) -> Result<()> {
    let mut args = [&OPTIMISED[..], &["-p", package, "--bench", bench, "--"]].concat();
    args.extend(own);
    args.extend(rest.iter().map(String::as_str));
    process::cargo(&args)
}

/// Built as it is handed out.
const OPTIMISED: [&str; 4] = ["bench", "--quiet", "--profile", "dist"];

/// Where the figures of a whole run stand.
fn shelf() -> PathBuf {
    process::root().join("docs/bench")
}

/// The whole run writes `docs/bench/`; with any option only a part was measured, and it goes to `target/bench/`.
fn gate(rest: &[String]) -> Result<()> {
    let folder = if rest.is_empty() { shelf() } else { process::target().join("bench") };
    let binary = dist::binary()?;
    gate_with(&OPTIMISED, &binary, rest, &folder)
}

/// The short run that belongs to `cargo xtask test`, with what the tests have built: it has to come to its end and to
/// leave a page with every chart. What the figures are is not looked at.
pub(crate) fn short() -> Result<()> {
    process::cargo(&["build", "--quiet", "-p", "aop"])?;
    let (binary, folder) = (process::target().join("debug/aop"), process::target().join("bench"));
    let _ = fs::remove_dir_all(&folder);
    gate_with(&["bench", "--quiet", "--profile", "dev"], &binary, &["--quick".to_owned()], &folder)?;
    let page = fs::read_to_string(folder.join("README.md"))?;
    for chart in chart::NAMES {
        let drawn = fs::read_to_string(folder.join(chart)).with_context(|| format!("there is no {chart}"))?;
        ensure!(drawn.ends_with("</svg>\n"), "{chart} is not a picture");
        ensure!(page.contains(&format!("({chart})")), "the page does not show {chart}");
    }
    let lines = Lines::read(&folder)?;
    lines.complete()
}

fn gate_with(cargo: &[&str], binary: &Path, rest: &[String], folder: &Path) -> Result<()> {
    packages::require(&[packages::POSTGRES, packages::BENCH])?;
    let mut child = process::plain_cargo()
        .args(cargo)
        .args(["-p", "aop-store", "--bench", "gate", "--", "--aop"])
        .arg(binary)
        .args(rest)
        .stdout(Stdio::piped())
        .spawn()
        .context("cargo does not start")?;
    let mut lines = Lines::default();
    for line in BufReader::new(child.stdout.take().context("its output")?).lines() {
        let line = line?;
        println!("{line}");
        lines.take(&line);
    }
    ensure!(child.wait()?.success(), "the benchmark failed");
    write_down(&lines, folder)
}

fn write_down(lines: &Lines, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join(lines::FILE), lines.text())?;
    for (name, drawing) in chart::NAMES.iter().zip(chart::all(lines)) {
        fs::write(folder.join(name), drawing)?;
    }
    fs::write(folder.join("README.md"), page::page(lines))?;
    for target in targets::all(lines) {
        println!("{}", target.in_words());
    }
    println!("bench: written to {}", folder.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_page_and_charts_are_what_the_committed_figures_say() {
        let folder = shelf();
        let lines = Lines::read(&folder).unwrap();
        lines.complete().unwrap();
        let written = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        let help = "`cargo xtask bench page` renews docs/bench/";
        assert!(written("README.md") == page::page(&lines), "{help}");
        for (name, drawing) in chart::NAMES.iter().zip(chart::all(&lines)) {
            assert!(written(name) == drawing, "{name}: {help}");
        }
    }
}
