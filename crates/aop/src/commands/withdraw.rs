//! `aop withdraw`: takes an open question back.

use super::which::WhichQuestion;
use crate::cli::Global;
use crate::output::style::bold;
use crate::output::{CommandResult, Reply};
use aop_kernel::tools::Tool;

/// Take an open question back; its feature goes on from where it was
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  aop withdraw q_01… --note \"settled\"\n  aop withdraw --feature-id checkout --question-id q_01… --note \"settled\""
)]
pub(crate) struct WithdrawArgs {
    #[command(flatten)]
    which: WhichQuestion,
}

/// Withdraws.
pub(crate) fn run(global: &Global, args: &WithdrawArgs) -> CommandResult {
    let (envelope, feature_id) = args.which.call(global, Tool::QuestionWithdraw)?;
    let status = envelope.data()["feature_status"].as_str().unwrap_or_default().to_owned();
    let text = format!("{} is withdrawn; {} is {status}.", args.which.question_id(), bold(&feature_id));
    Ok(Reply::ok(envelope, text))
}
