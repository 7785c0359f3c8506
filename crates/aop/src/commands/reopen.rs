//! `aop reopen`: asks an expired or withdrawn question again.

use super::which::WhichQuestion;
use crate::cli::Global;
use crate::output::question::to_answer;
use crate::output::style::bold;
use crate::output::{CommandResult, Reply};
use aop_kernel::tools::Tool;

/// Ask an expired or withdrawn question again
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  aop reopen q_01…\n  aop reopen --feature-id checkout --question-id q_01…"
)]
pub(crate) struct ReopenArgs {
    #[command(flatten)]
    which: WhichQuestion,
}

/// Reopens.
pub(crate) fn run(global: &Global, args: &ReopenArgs) -> CommandResult {
    let (envelope, _) = args.which.call(global, Tool::QuestionReopen)?;
    let new = envelope.data()["question_id"].as_str().unwrap_or_default().to_owned();
    let answer = to_answer(&new);
    let text = format!("Asked again as {}. Answer with\n  {}", bold(&new), bold(&answer));
    Ok(Reply::ok(envelope, text))
}
