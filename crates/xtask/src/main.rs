//! Developer commands: `cargo xtask test|test-engines|test-browser|chaos|fuzz|docs|dist|newcomer|tidy|bench`. What the
//! README and CI call.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a developer's tool talks on the terminal")]

mod bench;
mod browser;
mod chaos;
mod dependencies;
mod dist;
mod docs;
mod engines;
mod fuzz;
mod newcomer;
mod packages;
mod postgres;
mod process;
mod python;
mod test;
mod tidy;

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Developer commands of aop
#[derive(Debug, Parser)]
struct Xtask {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Everything that must hold: format, invariants, lints, tests
    Test {
        /// The inner loop: without the lints, chaos, PostgreSQL, slow tests, the real agent programs and the browser
        #[arg(long, conflicts_with = "nightly")]
        quick: bool,
        /// The long run: optimised, up to ten thousand cases for a property, `cargo deny`, long chaos
        #[arg(long)]
        nightly: bool,
    },
    /// The real agent programs against fake models: installs them at pinned versions, then runs the tests
    TestEngines(engines::EngineTests),
    /// The dashboard in a real browser: installs chromium where it may, then runs the tests
    TestBrowser(browser::BrowserTests),
    /// A seeded campaign of faults against the real binary; every round ends with a list of invariants
    Chaos(chaos::ChaosArgs),
    /// Every parser that eats foreign bytes, fuzzed for a while
    Fuzz(fuzz::FuzzArgs),
    /// Renew docs/reference/ from the program
    Docs,
    /// A package in target/package/: the optimised binary with its commit, man pages, completions, a list of what is in it
    Dist,
    /// A clean clone and an empty home: the README's first command, a question and its answer
    Newcomer(newcomer::NewcomerArgs),
    /// The written invariants of the code base
    Tidy,
    /// Measure, never assert: JSON lines with ratios to what the disk can do
    Bench {
        /// What to measure: gate (writes docs/bench/), store or serve; `page` rewrites docs/bench/ from its figures,
        /// `serve-driver` serves a project of its own for a load driver from outside
        what: String,
        /// Passed on to the benchmark; `gate --quick` is a short run, `store --postgres` measures beside pgbench
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
}

fn main() -> ExitCode {
    match run(Xtask::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Test { nightly: true, .. } => test::nightly(),
        Command::Test { quick, .. } => test::run(quick),
        Command::TestEngines(tests) => engines::run(&tests),
        Command::TestBrowser(tests) => browser::run(&tests),
        Command::Chaos(args) => chaos::run(&args),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Docs => docs::run(),
        Command::Dist => dist::run(),
        Command::Newcomer(args) => newcomer::run(&args),
        Command::Tidy => tidy::run(),
        Command::Bench { what, rest } => bench::run(&what, &rest),
    }
}
