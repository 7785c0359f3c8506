//! `aop guard`: the process that stands between `aop` and an engine. Started by `aop` alone; it speaks frames.

use crate::output::{CommandResult, Reply};
use aop_engine::process::{GuardArgs, guard};
use std::ffi::OsString;
use std::path::PathBuf;

/// Guard an engine (started by aop itself, for each turn)
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub(crate) struct Args {
    /// The record of the turn's process
    #[arg(long)]
    record: PathBuf,
    /// Where the engine's output goes
    #[arg(long)]
    transcript: PathBuf,
    /// Where the engine's standard error goes
    #[arg(long)]
    errors: PathBuf,
    /// How much output is let through
    #[arg(long)]
    output_bytes: u64,
    /// The engine reads what aop writes
    #[arg(long)]
    piped_input: bool,
    /// The engine's program and arguments
    #[arg(last = true, required = true)]
    argv: Vec<OsString>,
}

/// Guards until nothing is left.
pub(crate) fn run(args: Args) -> CommandResult {
    let Args { record, transcript, errors, output_bytes, piped_input, argv } = args;
    let code = guard(&GuardArgs { record, transcript, errors, output_bytes, piped_input, argv });
    Ok(Reply::printed().exit(code))
}
