//! `aop completions SHELL`: completion scripts, printed as they are.

use crate::output::{CommandResult, Reply, write};
use clap_complete::Shell;

/// Print a completion script for your shell
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  mkdir -p ~/.local/share/bash-completion/completions\n  aop completions bash > ~/.local/share/bash-completion/completions/aop"
)]
pub(crate) struct CompletionsArgs {
    /// Which shell
    shell: Shell,
}

/// Prints the script; it is the one command whose output is neither envelope nor talk.
pub(crate) fn run(args: &CompletionsArgs, command: &mut clap::Command) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, command, "aop", &mut script);
    write(&script);
    Ok(Reply::printed())
}
