//! `cargo xtask bench`: builds once, measures, and for the gate cycle writes the figures down: JSON lines, a table and
//! a chart in `docs/bench/`. Nothing is asserted; what counts are the ratios within one run.

use crate::{packages, process};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Runs a benchmark by its name.
pub(crate) fn run(what: &str, rest: &[String]) -> Result<()> {
    let package = match what {
        "store" | "gate" => "aop-store",
        "serve" => "aop-server",
        _ => bail!("there is no benchmark '{what}'; there are: store, serve, gate"),
    };
    if what == "store" && rest.iter().any(|arg| arg == "--postgres") {
        packages::require(&[packages::POSTGRES])?;
        let mut args = vec!["bench", "--quiet", "-p", package, "--bench", "postgres", "--"];
        args.extend(rest.iter().map(String::as_str));
        return process::cargo(&args);
    }
    process::cargo(&["build", "--release", "--quiet", "-p", "aop"])?;
    let binary = process::target().join("release/aop").display().to_string();
    let mut args = vec!["bench", "--quiet", "-p", package, "--bench", what, "--", "--aop", &binary];
    args.extend(rest.iter().map(String::as_str));
    if what != "gate" {
        return process::cargo(&args);
    }
    let mut child = Command::new(env!("CARGO"))
        .args(&args)
        .current_dir(process::root())
        .stdout(Stdio::piped())
        .spawn()
        .context("cargo does not start")?;
    let mut lines = Vec::new();
    for line in BufReader::new(child.stdout.take().context("its output")?).lines() {
        let line = line?;
        println!("{line}");
        lines.extend(serde_json::from_str::<Value>(&line));
    }
    if !child.wait()?.success() {
        bail!("the benchmark failed");
    }
    write_down(&lines)
}

fn write_down(lines: &[Value]) -> Result<()> {
    let folder = process::root().join("docs/bench");
    fs::create_dir_all(&folder)?;
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(folder.join("gate.jsonl"), text)?;
    fs::write(folder.join("gate.svg"), chart(lines))?;
    fs::write(folder.join("README.md"), page(lines, &today()))?;
    println!("bench: written to {}", folder.display());
    Ok(())
}

fn today() -> String {
    let date = Command::new("date").args(["-u", "+%Y-%m-%d"]).output();
    date.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    format!("{cores} cores, {}", model.trim_start_matches([' ', '\t', ':']))
}

fn of<'a>(lines: &'a [Value], bench: &'a str) -> impl Iterator<Item = &'a Value> {
    lines.iter().filter(move |line| line["bench"] == bench)
}

/// The floor with as many callers.
fn floor<'a>(lines: &'a [Value], callers: &Value) -> Option<&'a Value> {
    of(lines, "gate").find(|line| line["way"] == "floor" && line["callers"] == *callers)
}

fn ratio(a: &Value, b: &Value) -> String {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) if b > 0.0 => format!("{:.2}", a / b),
        _ => "–".to_owned(),
    }
}

/// The page: what was measured, where and when, with ratios beside every figure.
fn page(lines: &[Value], date: &str) -> String {
    let mut page = format!(
        "# The gate cycle\n\nAsk durably, somebody waits, answer durably, the waiter has it. Two commits, each synced \
         before it is acknowledged. `cargo xtask bench gate` repeats this page.\n\nMeasured on {date}, {}, with \
         whatever else the machine was doing. Read the ratios: the *floor* does the same two durable commits with bare \
         SQLite, in the same run on the same disk, and nothing else.\n\n![cycles per second](gate.svg)\n\n",
        machine()
    );
    page.push_str("| way | callers | cycles/s | × floor | p50 | × floor | p95 | p99 | raw syncs/s |\n|---|---|---|---|---|---|---|---|---|\n");
    for line in of(lines, "gate") {
        let base = floor(lines, &line["callers"]).cloned().unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} µs | {} | {} µs | {} µs | {} |",
            line["way"].as_str().unwrap_or_default(),
            line["callers"],
            line["cycles_per_second"],
            ratio(&line["cycles_per_second"], &base["cycles_per_second"]),
            line["p50_us"],
            ratio(&line["p50_us"], &base["p50_us"]),
            line["p95_us"],
            line["p99_us"],
            line["raw_fdatasync_per_second"]
        );
    }
    page.push_str("\n## Parked questions\n\nEach with a feature of its own, raised by 64 callers.\n\n");
    page.push_str("| questions | raised in | resident | disk each | page of 50 | find and answer one |\n|---|---|---|---|---|---|\n");
    for line in of(lines, "park") {
        let _ = writeln!(
            page,
            "| {} | {} s | {} MiB | {} B | {} µs | {} µs |",
            line["questions"],
            line["seconds"],
            line["resident_mib"],
            line["disk_bytes_each"],
            line["page_of_50_p50_us"],
            line["find_and_answer_p50_us"]
        );
    }
    page.push_str("\n## kill -9 with questions parked\n\n| parked | acknowledged | lost | open to first answer |\n|---|---|---|---|\n");
    for line in of(lines, "killed") {
        let after = &line["first_answer_after_us"];
        let _ = writeln!(
            page,
            "| {} | {} | {} | {after} µs |",
            line["parked"], line["acknowledged"], line["lost"]
        );
    }
    page
}

/// Bars: cycles per second, by way and callers.
fn chart(lines: &[Value]) -> String {
    let bars: Vec<(String, f64)> = of(lines, "gate")
        .map(|line| {
            let name = format!("{}, {}", line["way"].as_str().unwrap_or_default(), line["callers"]);
            (name, line["cycles_per_second"].as_f64().unwrap_or_default())
        })
        .collect();
    let most = bars.iter().map(|(_, rate)| *rate).fold(1.0, f64::max);
    let height = bars.len() * 26 + 40;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"720\" height=\"{height}\" fill=\"#fff\"/>\n<text x=\"10\" y=\"20\" font-weight=\"bold\">gate cycles per second (way, callers)</text>\n"
    );
    for (index, (name, rate)) in bars.iter().enumerate() {
        let y = index * 26 + 34;
        let width = rate / most * 430.0;
        let fill = if name.starts_with("floor") { "#9aa5b1" } else { "#2b6cb0" };
        let _ = writeln!(
            svg,
            "<text x=\"10\" y=\"{0}\">{name}</text><rect x=\"170\" y=\"{y}\" width=\"{width:.1}\" height=\"18\" fill=\"{fill}\"/><text x=\"{1:.1}\" y=\"{0}\">{rate}</text>",
            y + 14,
            width + 176.0
        );
    }
    svg.push_str("</svg>\n");
    svg
}
