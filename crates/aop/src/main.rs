//! The `aop` binary: parse, run one command, render what came back, exit.

mod cli;
mod commands;
mod output;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
