//! `aop cancel`: ends a feature for good.

use super::which::WhichFeature;
use crate::cli::Global;
use crate::output::CommandResult;
use aop_kernel::tools::OperatorCommand;

/// End a feature for good; its open questions are withdrawn, its history stays
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  aop cancel --feature-id checkout")]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    which: WhichFeature,
}

/// Cancels.
pub(crate) fn run(global: &Global, args: &CancelArgs) -> CommandResult {
    args.which.submit(global, OperatorCommand::Cancel)
}
