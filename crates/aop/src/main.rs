//! The `aop` binary: parse, run one command, render what came back, exit.

mod access;
mod agent;
mod asking;
mod cli;
mod commands;
mod config;
#[cfg(test)]
mod examples;
mod input;
mod near;
mod number;
mod open_files;
mod output;
mod partial;
mod place;
mod project;
mod prompt;
mod settings;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
