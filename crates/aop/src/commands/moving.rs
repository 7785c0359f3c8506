//! `aop retry` and `aop cancel`: sending a blocked feature back to work, and ending one for good.

use crate::cli::Global;
use crate::output::style::bold;
use crate::output::{CommandResult, Reply};
use crate::project::{Project, SURFACE, Session, operation_id};
use aop_kernel::Refusal;
use aop_kernel::ids::{FeatureId, OperationId};
use aop_kernel::lifecycle::Request;
use aop_kernel::role::Caller;
use aop_kernel::tools;

/// Which feature, and under which operation.
#[derive(Debug, clap::Args)]
struct Which {
    /// The feature's id
    #[arg(long)]
    feature_id: String,
    /// Makes a retry of this command safe
    #[arg(long)]
    operation_id: Option<String>,
}

/// Send a blocked feature back to the phase it came from
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  aop retry --feature-id checkout")]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    which: Which,
}

/// End a feature for good; its open questions are withdrawn, its history stays
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  aop cancel --feature-id checkout")]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    which: Which,
}

/// Retries.
pub(crate) fn retry(global: &Global, args: &RetryArgs) -> CommandResult {
    submit(global, &args.which, tools::retry)
}

/// Cancels.
pub(crate) fn cancel(global: &Global, args: &CancelArgs) -> CommandResult {
    submit(global, &args.which, tools::cancel)
}

type MakeRequest = fn(&Caller, FeatureId, OperationId, &'static str) -> Result<Request, Refusal>;

fn submit(global: &Global, which: &Which, make: MakeRequest) -> CommandResult {
    let feature_id = FeatureId::parse(&which.feature_id)?;
    let operation = operation_id(which.operation_id.as_deref())?;
    let session: Session = Project::find(global)?.open()?;
    let envelope = session.submit(make(&session.caller, feature_id, operation, SURFACE)?)?;
    let status = envelope.data()["status"].as_str().unwrap_or_default().to_owned();
    let text = format!("{} is {}.", bold(&which.feature_id), super::status::coloured(&status));
    Ok(Reply::ok(envelope, text))
}
