//! Small pictures, written by hand: bars and lines that can be read on light and on dark pages.

use super::lines::Lines;
use serde_json::Value;
use std::fmt::Write;

/// The files, in the order of `all`.
pub(super) const NAMES: [&str; 4] = ["one-caller.svg", "throughput.svg", "parked.svg", "memory.svg"];

const WIDTH: f64 = 760.0;

/// The colours: of the page, of words, of lines, and of figures, each for light and dark. A figure is also told apart
/// by its words or its mark, so that nobody depends on colours.
const STYLE: &str = "<style>\
    .page{fill:#fff}.word{fill:#1f2933}.faint{fill:#52606d}.grid{stroke:#cbd2d9}\
    .floor{fill:#9aa5b1;stroke:#9aa5b1}.a{fill:#1d6fb8;stroke:#1d6fb8}.b{fill:#b45309;stroke:#b45309}\
    .line{fill:none;stroke-width:2}.floor-line{stroke-dasharray:5 4}\
    @media (prefers-color-scheme:dark){.page{fill:#161b22}.word{fill:#e6edf3}.faint{fill:#9aa5b1}.grid{stroke:#39424e}\
    .floor{fill:#6b7785;stroke:#6b7785}.a{fill:#58a6ff;stroke:#58a6ff}.b{fill:#e3a35a;stroke:#e3a35a}}\
    </style>";

pub(super) fn all(lines: &Lines) -> [String; 4] {
    [one_caller(lines), throughput(lines), parked(lines), memory(lines)]
}

/// A picture of a height, with its heading.
struct Picture {
    body: String,
    height: f64,
}

impl Picture {
    fn new(height: f64, heading: &str) -> Self {
        let mut picture = Picture { body: String::new(), height };
        picture.put(&format!(
            "<title>{heading}</title><rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\" rx=\"6\"/>"
        ));
        picture.text(16.0, 26.0, "word\" font-weight=\"bold", heading);
        picture
    }

    fn put(&mut self, element: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.body, "{element}");
    }

    fn text(&mut self, x: f64, y: f64, class: &str, words: &str) {
        self.put(&format!("<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{words}</text>"));
    }

    fn finish(self) -> String {
        let Picture { body, height } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
             font-family=\"system-ui, sans-serif\" font-size=\"13\">\n{STYLE}\n{body}</svg>\n"
        )
    }
}

struct Bar {
    name: String,
    value: f64,
    label: String,
    class: &'static str,
}

/// Bars below each other, in groups with a name.
fn bars(heading: &str, groups: &[(String, Vec<Bar>)]) -> String {
    const ROW: f64 = 22.0;
    let rows: usize = groups.iter().map(|(_, bars)| bars.len()).sum();
    let mut picture = Picture::new(44.0 + rows as f64 * ROW + groups.len() as f64 * 28.0, heading);
    let most = groups.iter().flat_map(|(_, bars)| bars).map(|bar| bar.value).fold(1.0, f64::max);
    let mut y = 40.0;
    for (name, bars) in groups {
        y += 18.0;
        picture.text(16.0, y, "faint", name);
        y += 10.0;
        for bar in bars {
            let width = (bar.value / most * (WIDTH - 390.0)).max(1.0);
            picture.text(28.0, y + 13.0, "word", &bar.name);
            let class = bar.class;
            picture.put(&format!(
                "<rect x=\"200\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"16\" rx=\"2\" class=\"{class}\"/>"
            ));
            picture.text(208.0 + width, y + 13.0, "word", &bar.label);
            y += ROW;
        }
    }
    picture.finish()
}

fn class(line: &Value) -> &'static str {
    match (line["way"] == "floor" || line["of"] == "floor", line["store"] == "sqlite") {
        (true, _) => "floor",
        (false, true) => "a",
        (false, false) => "b",
    }
}

fn number(line: &Value, key: &str) -> f64 {
    line[key].as_f64().unwrap_or_default()
}

fn way(line: &Value) -> String {
    line["way"].as_str().unwrap_or_default().to_owned()
}

fn store(name: &str) -> &'static str {
    if name == "sqlite" { "SQLite" } else { "PostgreSQL" }
}

fn micros(value: f64) -> String {
    match value {
        value if value < 1_000.0 => format!("{value:.0} µs"),
        value if value < 10_000.0 => format!("{:.1} ms", value / 1_000.0),
        value => format!("{:.0} ms", value / 1_000.0),
    }
}

fn one_caller(lines: &Lines) -> String {
    let group = |name: &str| {
        let bars = lines.of("cycle", name).filter(|line| line["callers"] == 1).map(|line| {
            let p50 = number(line, "p50_us");
            let label = format!("{} (p99 {})", micros(p50), micros(number(line, "p99_us")));
            Bar { name: way(line), value: p50, label, class: class(line) }
        });
        (store(name).to_owned(), bars.collect())
    };
    bars("One caller: half of all cycles take less than", &[group("sqlite"), group("postgres")])
}

fn throughput(lines: &Lines) -> String {
    let mut groups = Vec::new();
    for name in ["sqlite", "postgres"] {
        let mut counts: Vec<&Value> = lines.of("cycle", name).map(|line| &line["callers"]).collect();
        counts.dedup();
        for callers in counts {
            let bars = lines.of("cycle", name).filter(|line| line["callers"] == *callers).map(|line| {
                let rate = number(line, "cycles_per_second");
                Bar { name: way(line), value: rate, label: format!("{rate:.0}"), class: class(line) }
            });
            groups.push((format!("{}, callers: {callers}", store(name)), bars.collect()));
        }
    }
    bars("Cycles per second", &groups)
}

fn memory(lines: &Lines) -> String {
    let mut groups = Vec::new();
    for name in ["sqlite", "postgres"] {
        let mut bars = Vec::new();
        for line in lines.of("park", name) {
            let parked = thousands(number(line, "questions"));
            let mut bar = |what: &str, key: &str| {
                if let Some(value) = line[key].as_f64() {
                    let (name, label) = (format!("{parked}, {what}"), format!("{value:.0} MiB"));
                    bars.push(Bar { name, value, label, class: class(line) });
                }
            };
            bar(if line["of"] == "floor" { "floor" } else { "in process" }, "resident_mib");
            bar("aop serve", "served_resident_mib");
        }
        groups.push((format!("{}, questions parked", store(name)), bars));
    }
    bars("Resident memory", &groups)
}

pub(super) fn thousands(count: f64) -> String {
    let digits = format!("{count:.0}");
    let lead = digits.len() % 3;
    let mut text = digits[..lead].to_owned();
    for start in (lead..digits.len()).step_by(3) {
        text.push_str(if text.is_empty() { "" } else { " " });
        text.push_str(&digits[start..start + 3]);
    }
    text
}

/// Lines on two logarithmic axes: time over the number parked.
fn parked(lines: &Lines) -> String {
    const LEFT: f64 = 84.0;
    const RIGHT: f64 = 560.0;
    const TOP: f64 = 48.0;
    const BOTTOM: f64 = 320.0;
    let mut picture = Picture::new(372.0, "A page of 50 and an answer, by the number parked (SQLite, p50)");
    let counts: Vec<f64> = lines.of("park", "sqlite").map(|line| number(line, "questions")).collect();
    let (least, most) =
        (counts.iter().copied().fold(f64::INFINITY, f64::min), counts.iter().copied().fold(1.0, f64::max));
    let x = |count: f64| LEFT + (RIGHT - LEFT) * ((count / least).log10() / (most / least).log10().max(0.1));
    // From 10 µs to 100 ms.
    let y = |micros: f64| BOTTOM - (BOTTOM - TOP) * ((micros.max(10.0) / 10.0).log10() / 4.0).min(1.0);
    for exponent in 1..=5 {
        let micros_here = 10_f64.powi(exponent);
        let line = y(micros_here);
        picture.put(&format!(
            "<line x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{line:.1}\" y2=\"{line:.1}\" class=\"grid\"/>"
        ));
        picture.text(16.0, line + 4.0, "faint", &micros(micros_here));
    }
    let mut marks = counts.clone();
    marks.dedup();
    for count in marks {
        let words = thousands(count);
        picture.text(x(count) - words.len() as f64 * 3.4, BOTTOM + 22.0, "faint", &words);
    }
    picture.text(LEFT, BOTTOM + 42.0, "faint", "questions parked");
    let mut ends: Vec<(f64, String)> = Vec::new();
    for (of, key, words, class) in [
        ("floor", "answer_p50_us", "floor: answer", "floor floor-line"),
        ("floor", "page_p50_us", "floor: page", "floor floor-line"),
        ("aop", "answer_p50_us", "answer", "a"),
        ("aop", "inbox_p50_us", "inbox page, counted", "b"),
        ("aop", "page_p50_us", "page", "b"),
    ] {
        let ours = lines.of("park", "sqlite").filter(|line| line["of"] == of);
        let points: Vec<(f64, f64)> =
            ours.map(|line| (x(number(line, "questions")), y(number(line, key)))).collect();
        let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        picture.put(&format!(
            "<polyline class=\"{class} line\" style=\"fill:none\" points=\"{}\"/>",
            path.join(" ")
        ));
        for (x, y) in &points {
            picture.put(&format!("<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"/>"));
        }
        ends.extend(points.last().map(|(_, y)| (*y, words.to_owned())));
    }
    // Words beside the ends of the lines, apart from each other.
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut last = 0.0;
    for (y, words) in ends {
        last = f64::max(y + 4.0, last + 16.0);
        picture.text(RIGHT + 14.0, last, "word", &words);
    }
    picture.finish()
}
