//! `aop merge`: a feature that passed its checks, into the branch that the project is on.

use crate::cli::Global;
use crate::output::style::{bold, clean};
use crate::output::{CommandResult, Reply, warn};
use crate::project::{Project, operation_id};
use aop_kernel::ids::FeatureId;
use aop_supervisor::Merged;

/// Merge a feature that is ready into the branch the project is on
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  aop merge --feature-id checkout

Only from ready_to_merge, and only the commit that passed the checks. A dirty working tree or a conflict refuses the \
merge and changes nothing. What is not committed in the feature's own folder is not merged, and stays there; what git ignores goes with the folder.")]
pub(crate) struct MergeArgs {
    /// The feature's id
    #[arg(long)]
    feature_id: String,
    /// Makes a retry of this command safe
    #[arg(long)]
    operation_id: Option<String>,
}

/// Merges.
pub(crate) fn run(global: &Global, args: &MergeArgs) -> CommandResult {
    let id = FeatureId::parse(&args.feature_id)?;
    let operation = operation_id(args.operation_id.as_deref())?;
    let session = Project::find(global)?.open()?;
    let merged = aop_supervisor::merge(&session.service, &session.project.root, &id, operation);
    let merged = session.wait(merged);
    session.project_files();
    let Merged { envelope, left } = merged?;
    let data = envelope.data();
    let field = |key: &str| data[key].as_str().unwrap_or_default().to_owned();
    let text = format!(
        "{} is merged into {} as {}.",
        bold(id.as_str()),
        bold(&field("into")),
        &field("merge_commit")
    );
    if !left.is_empty() {
        let left = clean(&left.join(", "));
        warn(&format!(
            "its folder .aop/worktrees/{id} stays, because this is there and nowhere else: {left}"
        ));
    }
    Ok(Reply::ok(envelope, text))
}
