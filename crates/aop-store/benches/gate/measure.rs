//! Rates and percentiles: every way in turns, beside the disk's own rate.

use crate::options::Options;
use crate::place::Place;
use crate::ways::{self, Way};
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// What was seen of one way.
#[derive(Default)]
struct Seen {
    times: Vec<Duration>,
    took: Duration,
    raw: Vec<f64>,
}

/// Cycles of every way with one caller and with many.
pub(crate) fn cycles(options: &Options, folder: &Path, place: &Place) {
    let ways = ways::all(place, folder, &options.aop);
    for callers in &options.callers {
        let mut seen: Vec<Seen> = ways.iter().map(|_| Seen::default()).collect();
        for round in 0..options.rounds {
            for (way, seen) in ways.iter().zip(&mut seen) {
                seen.raw.push(raw_syncs(folder, options.spell / 5));
                let (times, took) =
                    run(way.as_ref(), &format!("{callers}-{round}"), *callers, Until::Over(options.spell));
                seen.times.extend(times);
                seen.took += took;
            }
        }
        for (way, mut seen) in ways.iter().zip(seen) {
            let rate = seen.times.len() as f64 / seen.took.as_secs_f64();
            let raw = seen.raw.iter().sum::<f64>() / seen.raw.len() as f64;
            println!(
                "{}",
                json!({"bench": "cycle", "store": place.name(), "way": way.name(), "callers": callers,
                    "cycles": seen.times.len(), "cycles_per_second": (rate * 10.0).round() / 10.0,
                    "p50_us": percentile(&mut seen.times, 0.5), "p95_us": percentile(&mut seen.times, 0.95),
                    "p99_us": percentile(&mut seen.times, 0.99), "raw_fdatasync_per_second": raw.round()})
            );
        }
    }
}

/// When a caller stops.
#[derive(Clone, Copy)]
pub(crate) enum Until {
    Over(Duration),
    Done(u64),
}

/// Runs cycles on so many threads at once; how long each took, and all together.
pub(crate) fn run(way: &dyn Way, name: &str, callers: u64, until: Until) -> (Vec<Duration>, Duration) {
    let cycles: Vec<_> = (0..callers).map(|number| way.caller(&format!("f-{name}-{number}"))).collect();
    let start = Instant::now();
    let times = std::thread::scope(|scope| {
        let threads: Vec<_> = cycles
            .into_iter()
            .map(|mut cycle| {
                scope.spawn(move || {
                    let mut times: Vec<Duration> = Vec::new();
                    let goes_on = |done: usize| match until {
                        Until::Over(spell) => start.elapsed() < spell,
                        Until::Done(count) => (done as u64) < count,
                    };
                    while goes_on(times.len()) {
                        let one = Instant::now();
                        cycle();
                        times.push(one.elapsed());
                    }
                    times
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    (times, start.elapsed())
}

/// How many times a second this disk syncs an appended record: the yardstick.
pub(crate) fn raw_syncs(folder: &Path, spell: Duration) -> f64 {
    let mut file = tempfile::tempfile_in(folder).unwrap();
    let start = Instant::now();
    let mut count = 0_u32;
    while start.elapsed() < spell {
        file.write_all(&[7_u8; 512]).unwrap();
        file.sync_data().unwrap();
        count += 1;
    }
    f64::from(count) / start.elapsed().as_secs_f64()
}

/// The time within which this share was done, in microseconds.
pub(crate) fn percentile(times: &mut [Duration], share: f64) -> u64 {
    times.sort_unstable();
    let index = (times.len().saturating_sub(1) as f64 * share) as usize;
    times.get(index).map_or(0, |time| u64::try_from(time.as_micros()).unwrap())
}
