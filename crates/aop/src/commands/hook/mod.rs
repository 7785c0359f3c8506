//! `aop hook`: programs that an engine runs before or after it uses a tool. They speak the engine's own format. Before
//! a tool, whatever goes wrong blocks it and never lets it through.

mod claude;
mod gemini;

use crate::cli::Global;
use crate::output::{CommandResult, Reply, is_heard, print, talk};
use std::path::PathBuf;

/// Answer an engine's hook (run by the engine itself)
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    engine: EngineHook,
}

#[derive(Debug, clap::Subcommand)]
enum EngineHook {
    /// Claude Code's PreToolUse hook
    Claude {
        /// The file with the turn
        #[arg(long)]
        turn: PathBuf,
    },
    /// Gemini CLI's AfterTool hook
    Gemini,
}

/// The exit code that blocks a tool, in every engine that has hooks.
const BLOCKED: u8 = 2;

/// Answers one hook.
pub(crate) fn run(global: &Global, args: &Args) -> CommandResult {
    let answered = match &args.engine {
        EngineHook::Claude { turn } => claude::answer(global, turn),
        EngineHook::Gemini => Ok(Some(gemini::answer())),
    };
    Ok(match answered {
        Ok(Some(line)) => {
            print(&line.to_string());
            // An engine that reads nothing goes on as if nobody had been asked.
            Reply::printed().exit(if is_heard() { 0 } else { BLOCKED })
        }
        Ok(None) => Reply::printed(),
        Err(refusal) => {
            // The model reads this.
            talk(&format!(
                "aop could not ask anybody: {}. Try again; if it stays so, stop and say so.",
                refusal.message
            ));
            Reply::printed().exit(BLOCKED)
        }
    })
}
