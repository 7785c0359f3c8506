//! What we want of the figures, as ratios within one run. Told, never asserted.

use super::lines::Lines;
use serde_json::{Value, json};

/// One thing that is wanted.
pub(super) struct Target {
    pub(super) what: String,
    pub(super) wanted: String,
    /// What was seen; `None` when the run did not measure it.
    pub(super) seen: Option<String>,
    pub(super) held: bool,
}

impl Target {
    /// `held`, `not held` or `not measured`.
    pub(super) fn verdict(&self) -> &'static str {
        match (&self.seen, self.held) {
            (None, _) => "not measured",
            (Some(_), true) => "held",
            (Some(_), false) => "not held",
        }
    }

    pub(super) fn in_words(&self) -> String {
        let seen = self.seen.as_deref().unwrap_or("–");
        format!("target: {}: {seen}, wanted {}: {}", self.what, self.wanted, self.verdict())
    }
}

/// Ours at most so many times as much as the floor (`Most`), or at least (`Least`).
enum Bound {
    Most(f64),
    Least(f64),
}

pub(super) fn all(lines: &Lines) -> Vec<Target> {
    let way = |way: &str, callers: u64| {
        lines.find("cycle", "sqlite", &[("way", &json!(way)), ("callers", &json!(callers))])
    };
    let parked = |of: &str, count: u64| {
        lines.find("park", "sqlite", &[("of", &json!(of)), ("questions", &json!(count))])
    };
    let killed = |of: &str, count: u64| {
        lines.find("killed", "sqlite", &[("of", &json!(of)), ("parked", &json!(count))])
    };
    let mut targets = vec![
        beside(
            "one caller, p50 of a cycle",
            way("in process", 1),
            way("floor", 1),
            "p50_us",
            "µs",
            Bound::Most(1.3),
        ),
        beside(
            "64 callers, cycles per second",
            way("in process", 64),
            way("floor", 64),
            "cycles_per_second",
            "/s",
            Bound::Least(3.0),
        ),
    ];
    for (what, key, unit) in [
        ("raising all", "seconds", "s"),
        ("resident memory", "resident_mib", "MiB"),
        ("a page of 50", "page_p50_us", "µs"),
        ("answering one", "answer_p50_us", "µs"),
    ] {
        let what = format!("10 000 parked, {what}");
        targets.push(beside(
            &what,
            parked("aop", 10_000),
            parked("floor", 10_000),
            key,
            unit,
            Bound::Most(1.0),
        ));
    }
    let most = parked("aop", 1_000_000);
    targets.push(below(
        "1 000 000 parked, resident memory",
        most,
        "resident_mib",
        "MiB",
        95.3,
        "100 MB (95.3 MiB)",
    ));
    targets.push(below(
        "1 000 000 parked, `aop serve`, resident",
        most,
        "served_resident_mib",
        "MiB",
        95.3,
        "100 MB (95.3 MiB)",
    ));
    targets.push(below(
        "1 000 000 parked, a page of 50 in the store",
        most,
        "page_p50_us",
        "µs",
        1_000.0,
        "1 ms",
    ));
    targets.push(below(
        "1 000 000 parked, the inbox of 50 with its count",
        most,
        "inbox_p50_us",
        "µs",
        1_000.0,
        "1 ms",
    ));
    for (count, words) in [(1_000, "1 000"), (100_000, "100 000")] {
        let what = format!("kill -9 with {words} parked, opening and first answer");
        let (ours, floor) = (killed("aop", count), killed("floor", count));
        targets.push(beside(&what, ours, floor, "first_answer_p50_us", "µs", Bound::Most(1.0)));
    }
    targets
}

fn beside(
    what: &str,
    ours: Option<&Value>,
    floor: Option<&Value>,
    key: &str,
    unit: &str,
    bound: Bound,
) -> Target {
    let number = |line: Option<&Value>| line.and_then(|line| line[key].as_f64());
    let both = number(ours).zip(number(floor)).filter(|(_, floor)| *floor > 0.0);
    let ratio = both.map(|(ours, floor)| ours / floor);
    let (wanted, held) = match bound {
        Bound::Most(most) => (format!("≤ {most} × the floor"), ratio.is_some_and(|ratio| ratio <= most)),
        Bound::Least(least) => (format!("≥ {least} × the floor"), ratio.is_some_and(|ratio| ratio >= least)),
    };
    let seen =
        both.map(|(ours, floor)| format!("{:.2} × ({ours} {unit} against {floor} {unit})", ours / floor));
    Target { what: what.to_owned(), wanted, seen, held }
}

fn below(what: &str, ours: Option<&Value>, key: &str, unit: &str, most: f64, wanted: &str) -> Target {
    let number = ours.and_then(|line| line[key].as_f64());
    let held = number.is_some_and(|number| number < most);
    Target {
        what: what.to_owned(),
        wanted: format!("< {wanted}"),
        seen: number.map(|n| format!("{n} {unit}")),
        held,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(lines: &[&str]) -> Vec<(String, &'static str)> {
        let mut all_lines = Lines::default();
        lines.iter().for_each(|line| all_lines.take(line));
        all(&all_lines).iter().map(|target| (target.what.clone(), target.verdict())).collect()
    }

    #[test]
    fn a_target_is_held_by_its_ratio_to_the_floor_of_the_same_run() {
        let cycle = |way: &str, p50: u32| {
            json!({"bench": "cycle", "store": "sqlite", "way": way, "callers": 1, "p50_us": p50}).to_string()
        };
        for (ours, verdict) in [(130, "held"), (131, "not held")] {
            let lines = [cycle("floor", 100), cycle("in process", ours)];
            let said = verdicts(&[&lines[0], &lines[1]]);
            assert_eq!(said[0], ("one caller, p50 of a cycle".to_owned(), verdict));
        }
    }

    #[test]
    fn what_was_not_measured_is_neither_held_nor_not() {
        assert!(verdicts(&[]).iter().all(|(_, verdict)| *verdict == "not measured"));
    }
}
