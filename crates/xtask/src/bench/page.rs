//! The page in words and tables: what was measured, where and when, with ratios beside the figures.

use super::lines::Lines;
use super::{chart, targets};
use serde_json::{Value, json};

/// The whole page.
pub(super) fn page(lines: &Lines) -> String {
    let machine = lines.machine();
    let text = |key: &str| machine[key].as_str().unwrap_or("?").to_owned();
    let [one, many, parked, memory] = chart::NAMES;
    let mut parts = vec![
        "# The gate cycle, measured".to_owned(),
        "Ask durably, somebody waits, answer durably, the waiter has it. `cargo xtask bench gate` repeats all of this page \
         and rewrites it; `cargo xtask bench gate --quick` is a short run for a look (into `target/bench/`). The \
         figures as they were printed are in [gate.jsonl](gate.jsonl)."
            .to_owned(),
        format!(
            "Taken on {} at commit {}, {} cores ({}), {} GiB of memory, Linux {}, {}; SQLite {}, PostgreSQL {} on the same \
             machine. The disk synced {} appended records a second, as seen between the measurements. Other work may have \
             been going on: read the ratios. The *floor* does the same two durable commits with the bare database and \
             nothing else, in turns with the rest, on the same disk: a question's record of 600 bytes, then its answer, \
             each with an event and with its operation in a list without doubles. Names of questions and operations are made as \
             the commands make them.",
            text("date"),
            text("commit"),
            machine["cores"],
            text("processor"),
            machine["memory_gib"],
            text("kernel"),
            text("file_system"),
            text("sqlite"),
            text("postgres"),
            raw(lines)
        ),
        "## What is wanted, and what is".to_owned(),
        wanted(lines),
        "## Cycles".to_owned(),
        format!("![Half of all cycles of one caller are faster than this]({one})\n\n![Cycles per second]({many})"),
    ];
    for store in ["sqlite", "postgres"] {
        parts.push(format!("### {}", title(store)));
        parts.push(cycles(lines, store));
    }
    parts.push(
        "*Syncs* are those of one cycle, counted in a run of their own: by strace around all processes that take part, or by \
         PostgreSQL itself (the middle of three counts); a checkpoint now and then is among them. *In process* calls the store as the program does. *HTTP* \
         and *MCP* go to `aop serve` as everybody starts it, with two connections for each caller, one of which waits; the \
         load comes from the same machine. *Command line* is `aop ask`, `aop questions` and `aop answer`, a process each."
            .to_owned(),
    );
    parts.push("## Parked questions".to_owned());
    parts.push(format!(
        "![A page of 50 and an answer, by the number parked]({parked})\n\n![Resident memory, by the number parked]({memory})"
    ));
    parts.push(
        "Raised by 64 callers at once, each with a feature of its own and each durable before the call returns. *Page* is the \
         list of the 50 oldest, *inbox* the 50 most urgent with their count, both read in the store; *resident* is the \
         process that raised, listed and answered. *Served* is `aop serve` started on them: its memory, a page of 50 and an \
         answer over HTTP (with `projections: off`)."
            .to_owned(),
    );
    parts.push(parking(lines));
    parts.push("## kill -9".to_owned());
    parts.push(
        "A process raises questions until so many are acknowledged and is killed amid the next; then the store is opened and \
         one is answered (*amid raising*); and once more, after a kill that found all of them parked. This fifteen times over, \
         with some hundred questions more each time, because what a kill leaves to do depends on when it comes; medians are \
         shown. PostgreSQL is crashed and started as well, once. In the end all are listed, every acknowledged one has to \
         be there, and up to a thousand, spread over all, are answered. \
         *Served* is from the start of `aop serve` to the first answer over HTTP."
            .to_owned(),
    );
    parts.push(killed(lines));
    parts.join("\n\n") + "\n"
}

fn title(store: &str) -> &'static str {
    if store == "sqlite" { "SQLite" } else { "PostgreSQL" }
}

/// The disk's own rate, from the slowest to the fastest look at it.
fn raw(lines: &Lines) -> String {
    let stores = ["sqlite", "postgres"];
    let cycles = stores.iter().flat_map(|store| lines.of("cycle", store));
    let rates: Vec<f64> = cycles.filter_map(|line| line["raw_fdatasync_per_second"].as_f64()).collect();
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let most = rates.iter().copied().fold(0.0, f64::max);
    format!("{least:.0} to {most:.0}")
}

fn table(head: &str, rows: impl Iterator<Item = Vec<String>>) -> String {
    let columns = head.split('|').count() - 2;
    let mut text = format!("{head}\n|{}", "---|".repeat(columns));
    for row in rows {
        text.push_str(&format!("\n| {} |", row.join(" | ")));
    }
    text
}

fn wanted(lines: &Lines) -> String {
    let row = |target: targets::Target| {
        let verdict = target.verdict().to_owned();
        vec![target.what, target.wanted, target.seen.unwrap_or("–".to_owned()), verdict]
    };
    table("| what (SQLite) | wanted | seen | |", targets::all(lines).into_iter().map(row))
}

/// A time that people can read.
fn time(micros: &Value) -> String {
    match micros.as_f64() {
        None => "–".to_owned(),
        Some(micros) if micros < 1_000.0 => format!("{micros:.0} µs"),
        Some(micros) if micros < 10_000.0 => format!("{:.2} ms", micros / 1_000.0),
        Some(micros) if micros < 1_000_000.0 => format!("{:.0} ms", micros / 1_000.0),
        Some(micros) => format!("{:.1} s", micros / 1_000_000.0),
    }
}

fn plain(value: &Value, unit: &str) -> String {
    match value {
        Value::Null => "–".to_owned(),
        Value::String(text) => text.clone(),
        value => match value.as_f64() {
            Some(whole) if whole >= 10_000.0 && whole.fract() == 0.0 => {
                format!("{}{unit}", chart::thousands(whole))
            }
            Some(number) => format!("{number}{unit}"),
            None => format!("{value}{unit}"),
        },
    }
}

fn ratio(a: &Value, b: &Value) -> String {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) if b > 0.0 => format!("{:.2}", a / b),
        _ => "–".to_owned(),
    }
}

fn cycles(lines: &Lines, store: &str) -> String {
    let row = |line: &Value| {
        let same = [("way", &json!("floor")), ("callers", &line["callers"])];
        let floor = lines.find("cycle", store, &same).cloned().unwrap_or_default();
        let same = [("way", &line["way"]), ("callers", &line["callers"])];
        let syncs = lines.find("syncs", store, &same).cloned().unwrap_or_default();
        vec![
            plain(&line["way"], ""),
            plain(&line["callers"], ""),
            plain(&line["cycles_per_second"], ""),
            ratio(&line["cycles_per_second"], &floor["cycles_per_second"]),
            time(&line["p50_us"]),
            ratio(&line["p50_us"], &floor["p50_us"]),
            time(&line["p95_us"]),
            time(&line["p99_us"]),
            plain(&syncs["syncs_per_cycle"], ""),
            plain(&line["raw_fdatasync_per_second"], ""),
        ]
    };
    let head = "| way | callers | cycles/s | × floor | p50 | × floor | p95 | p99 | syncs | raw syncs/s |";
    table(head, lines.of("cycle", store).map(row))
}

fn parking(lines: &Lines) -> String {
    let row = |line: &Value| {
        vec![
            title(line["store"].as_str().unwrap_or_default()).to_owned(),
            plain(&line["questions"], ""),
            plain(&line["of"], ""),
            plain(&line["seconds"], " s"),
            plain(&line["resident_mib"], " MiB"),
            plain(&line["disk_bytes_each"], " B"),
            time(&line["page_p50_us"]),
            time(&line["inbox_p50_us"]),
            time(&line["answer_p50_us"]),
            plain(&line["served_resident_mib"], " MiB"),
            time(&line["served_page_p50_us"]),
            time(&line["served_answer_p50_us"]),
            plain(&line["raw_fdatasync_per_second"], ""),
        ]
    };
    let head = "| store | parked | of | raised in | resident | disk each | page p50 | inbox p50 | answer p50 | served: \
                resident | page p50 | answer p50 | raw syncs/s |";
    table(head, lines.of("park", "sqlite").chain(lines.of("park", "postgres")).map(row))
}

fn killed(lines: &Lines) -> String {
    let row = |line: &Value| {
        vec![
            title(line["store"].as_str().unwrap_or_default()).to_owned(),
            plain(&line["parked"], ""),
            plain(&line["of"], ""),
            plain(&line["acknowledged"], ""),
            plain(&line["lost"], ""),
            time(&line["first_answer_p50_us"]),
            time(&line["amid_raising_p50_us"]),
            plain(&line["server_back_ms"], " ms"),
            plain(&line["served_first_answer_ms"], " ms"),
            plain(&line["all_listed_ms"], " ms"),
            plain(&line["answered_one_by_one"], ""),
        ]
    };
    let head = "| store | parked | of | acknowledged | lost | opened and first answered | amid raising | server back | served | all listed | \
                answered one by one |";
    table(head, lines.of("killed", "sqlite").chain(lines.of("killed", "postgres")).map(row))
}
