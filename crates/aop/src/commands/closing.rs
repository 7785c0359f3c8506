//! `aop withdraw` and `aop reopen`: taking a question back, and asking it again.

use crate::cli::Global;
use crate::output::style::bold;
use crate::output::{CommandResult, Reply};
use crate::project::{Project, operation_id};
use aop_kernel::tools::Tool;
use serde_json::json;

/// Which question, why, and under which operation.
#[derive(Debug, clap::Args)]
struct Which {
    /// The feature's id
    #[arg(long)]
    feature_id: String,
    /// The question's id
    #[arg(long)]
    question_id: String,
    /// A remark for the record
    #[arg(long)]
    note: Option<String>,
    /// Makes a retry of this command safe
    #[arg(long)]
    operation_id: Option<String>,
}

/// Take an open question back; its feature goes on from where it was
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  aop withdraw --feature-id checkout --question-id q_01… --note \"settled in chat\""
)]
pub(crate) struct WithdrawArgs {
    #[command(flatten)]
    which: Which,
}

/// Ask an expired or withdrawn question again
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  aop reopen --feature-id checkout --question-id q_01…")]
pub(crate) struct ReopenArgs {
    #[command(flatten)]
    which: Which,
}

/// Withdraws.
pub(crate) fn withdraw(global: &Global, args: &WithdrawArgs) -> CommandResult {
    let reply = call(global, Tool::QuestionWithdraw, &args.which)?;
    let status = reply.data()["feature_status"].as_str().unwrap_or_default().to_owned();
    let text =
        format!("{} is withdrawn; {} is {status}.", args.which.question_id, bold(&args.which.feature_id));
    Ok(Reply::ok(reply, text))
}

/// Reopens.
pub(crate) fn reopen(global: &Global, args: &ReopenArgs) -> CommandResult {
    let reply = call(global, Tool::QuestionReopen, &args.which)?;
    let new = reply.data()["question_id"].as_str().unwrap_or_default().to_owned();
    let text = format!(
        "Asked again as {}. Answer with\n  {}",
        bold(&new),
        bold(&format!("aop answer --feature-id {} --question-id {new} --answer …", args.which.feature_id))
    );
    Ok(Reply::ok(reply, text))
}

fn call(global: &Global, tool: Tool, which: &Which) -> Result<aop_kernel::Envelope, aop_kernel::Refusal> {
    let operation = operation_id(which.operation_id.as_deref())?;
    let session = Project::find(global)?.open()?;
    let input = json!({"feature_id": which.feature_id, "question_id": which.question_id, "note": which.note,
        "operation_id": operation});
    session.call(tool, &input)
}
