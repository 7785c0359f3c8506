//! What is measured, and how long. The program also starts itself again: a process to be measured, traced or killed.

use crate::place::Place;
use crate::{desk, killed, park, syncs};
use std::path::PathBuf;
use std::time::Duration;

/// What a run does.
pub(crate) struct Options {
    /// The optimised program.
    pub(crate) aop: PathBuf,
    /// On which disk.
    pub(crate) folder: PathBuf,
    stores: Vec<String>,
    only: Vec<String>,
    pub(crate) callers: Vec<u64>,
    /// Each way is measured in so many rounds, in turns with the others, because the machine changes under us …
    pub(crate) rounds: u32,
    /// … each so long.
    pub(crate) spell: Duration,
    /// So many cycles are traced to count their syncs.
    pub(crate) traced: u64,
    pub(crate) parked: Vec<u64>,
    pub(crate) killed: Vec<u64>,
}

impl Options {
    /// The full run, or the short one after `--quick`; then single settings.
    pub(crate) fn read(args: &[String]) -> Self {
        let words = |text: &str| -> Vec<String> { text.split(',').map(str::to_owned).collect() };
        let numbers = |text: &str| -> Vec<u64> { text.split(',').map(|n| n.parse().unwrap()).collect() };
        let quick = args.iter().any(|arg| arg == "--quick");
        let mut options = Options {
            aop: "aop".into(),
            folder: std::env::temp_dir(),
            stores: words("sqlite,postgres"),
            only: words("cycle,syncs,park,killed"),
            callers: vec![1, 8, 64],
            rounds: 3,
            spell: Duration::from_secs(2),
            traced: 100,
            parked: vec![1_000, 10_000, 100_000, 1_000_000],
            killed: vec![1_000, 100_000],
        };
        if quick {
            options.callers = vec![1, 4];
            options.rounds = 1;
            options.spell = Duration::from_millis(100);
            options.traced = 4;
            options.parked = vec![100, 200];
            options.killed = vec![100];
        }
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().unwrap_or_else(|| panic!("{arg} needs a value")).as_str();
            match arg.as_str() {
                "--aop" => options.aop = value().into(),
                "--folder" => options.folder = value().into(),
                "--stores" => options.stores = words(value()),
                "--only" => options.only = words(value()),
                "--callers" => options.callers = numbers(value()),
                "--rounds" => options.rounds = value().parse().unwrap(),
                "--spell-ms" => options.spell = Duration::from_millis(value().parse().unwrap()),
                "--parked" => options.parked = numbers(value()),
                "--killed" => options.killed = numbers(value()),
                // Cargo adds a flag of its own.
                "--quick" | "--bench" => {}
                other => panic!(
                    "there is no option {other}; there are --quick, --folder DIR, --stores sqlite,postgres, --only \
                     cycle,syncs,park,killed, --callers N,…, --rounds N, --spell-ms N, --parked N,…, --killed N,…"
                ),
            }
        }
        options
    }

    pub(crate) fn stores(&self, name: &str) -> bool {
        self.stores.iter().any(|store| store == name)
    }

    pub(crate) fn does(&self, part: &str) -> bool {
        self.only.iter().any(|only| only == part)
    }
}

/// A process of its own that does one thing.
pub(crate) enum Child {
    /// Runs so many cycles with each of so many callers, to be traced.
    Cycles(syncs::Traced),
    /// Raises questions and looks at them.
    Park { desk: desk::Which, count: u64 },
    /// Raises questions for ever, from this number on, and says which are acknowledged.
    Raise { desk: desk::Which, count: u64, from: u64 },
    /// Opens what a killed process left, and answers.
    Reopen(desk::Which),
}

impl Child {
    pub(crate) fn run(self) {
        match self {
            Child::Cycles(traced) => traced.run(),
            Child::Park { desk, count } => park::child(&desk, count),
            Child::Raise { desk, count, from } => killed::raise(&desk, count, from),
            Child::Reopen(desk) => killed::reopen(&desk),
        }
    }
}

/// Whether these are the arguments of a child; then it is run.
pub(crate) fn child(args: &[String], run: impl FnOnce(Child)) -> bool {
    let mut words = args.iter().map(String::as_str);
    let mut next = || words.next().unwrap_or_default();
    let kind = next();
    if !["child-cycles", "child-park", "child-raise", "child-reopen"].contains(&kind) {
        return false;
    }
    let (place, folder) = (Place::parse(next()), PathBuf::from(next()));
    let child = match kind {
        "child-cycles" => Child::Cycles(syncs::Traced {
            place,
            folder,
            way: next().to_owned(),
            aop: next().into(),
            callers: next().parse().unwrap(),
            each: next().parse().unwrap(),
        }),
        _ => {
            let desk = desk::Which { place, folder, name: next().to_owned() };
            match kind {
                "child-park" => Child::Park { desk, count: next().parse().unwrap() },
                "child-raise" => {
                    let mut number = || next().parse().unwrap();
                    Child::Raise { desk, count: number(), from: number() }
                }
                _ => Child::Reopen(desk),
            }
        }
    };
    run(child);
    true
}
