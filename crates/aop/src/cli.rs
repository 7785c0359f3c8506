//! The command line: global options, the list of commands, and the way from arguments to an exit code.

use crate::commands;
use crate::output::{Screen, report};
use aop_kernel::Refusal;
use clap::{Parser, Subcommand, error::ErrorKind};
use std::process::ExitCode;

/// Run coding agents unattended; let them ask a human; resume each exactly once with the answer.
#[derive(Debug, Parser)]
#[command(name = "aop", version, propagate_version = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    command: Command,
}

/// Options that every command takes.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Global {
    /// Print one JSON envelope instead of text (the default when stdout is not a terminal)
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    Engine(commands::engine::EngineArgs),
    Explain(commands::explain::ExplainArgs),
    Turn(commands::turn::TurnArgs),
}

/// Parses, runs, reports. The only place that turns a result into an exit code.
pub(crate) fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage_error(&error),
    };
    let screen = Screen::detect(cli.global.json);
    let result = match cli.command {
        Command::Engine(args) => commands::engine::run(&args),
        Command::Explain(args) => commands::explain::run(&args),
        Command::Turn(args) => commands::turn::run(&args),
    };
    report(&screen, result)
}

/// Help and version go to stdout as text. A mistake becomes an envelope where a program is listening.
fn usage_error(error: &clap::Error) -> ExitCode {
    let asked_for_json = std::env::args_os().any(|arg| arg == "--json");
    let screen = Screen::detect(asked_for_json);
    if screen.is_text() || matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // A closed pipe is the only way this fails, and then nobody is left to tell.
        let _ = error.print();
        return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
    }
    let text = error.render().to_string();
    let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    report(&screen, Err(Refusal::invalid_argument(message).hint("see `aop --help`")))
}
