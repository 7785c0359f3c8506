//! Developer commands: `cargo xtask test|tidy|bench`. What the README and CI call.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a developer's tool talks on the terminal")]

mod run;
mod test;
mod tidy;

use anyhow::Result;
use clap::{Parser, Subcommand};

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
        /// The inner loop: only what changed code can break quickly
        #[arg(long)]
        quick: bool,
    },
    /// The written invariants of the code base
    Tidy,
    /// Measure, never assert: JSON lines with ratios to what the disk can do
    Bench {
        /// What to measure: store
        what: String,
        /// Passed on to the benchmark
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
}

fn main() -> Result<()> {
    match Xtask::parse().command {
        Command::Test { quick } => test::run(quick),
        Command::Tidy => tidy::run(),
        Command::Bench { what, rest } => {
            anyhow::ensure!(what == "store", "there is no benchmark '{what}'; there is: store");
            run::cargo(&["build", "--release", "--quiet", "-p", "aop"])?;
            let binary = run::target().join("release/aop").display().to_string();
            let mut args =
                vec!["bench", "--quiet", "-p", "aop-store", "--bench", "store", "--", "--aop", &binary];
            args.extend(rest.iter().map(String::as_str));
            run::cargo(&args)
        }
    }
}
