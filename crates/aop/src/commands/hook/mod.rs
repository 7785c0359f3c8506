//! `aop hook ENGINE`: what the engines run at certain points of a turn. Started by engines that a driver has set up; it
//! reads what the engine says on standard input and answers on standard output.

mod gemini;

use crate::output::CommandResult;
use clap::Subcommand;

/// Answer an engine's hook (started by engines that aop runs)
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    engine: Engine,
}

#[derive(Debug, Subcommand)]
enum Engine {
    /// After a tool of Gemini CLI
    Gemini,
}

/// Answers once.
pub(crate) fn run(args: &Args) -> CommandResult {
    match args.engine {
        Engine::Gemini => gemini::run(),
    }
}
