//! `aop retry`: sends a blocked feature back to work.

use super::which::WhichFeature;
use crate::cli::Global;
use crate::output::CommandResult;
use aop_kernel::tools::OperatorCommand;

/// Send a blocked feature back to the phase it came from
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  aop retry --feature-id checkout")]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    which: WhichFeature,
}

/// Retries.
pub(crate) fn run(global: &Global, args: &RetryArgs) -> CommandResult {
    args.which.submit(global, OperatorCommand::Retry)
}
