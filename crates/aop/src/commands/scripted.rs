//! `aop scripted`: the process of the scripted engine. Started by its driver; it speaks JSON lines.

use crate::agent;
use crate::cli::Global;
use crate::output::{CommandResult, Reply, talk};
use crate::project::Project;
use aop_engine::scripted::{PlayArgs, play};
use aop_kernel::{ErrorCode, Refusal};
use aop_turn::command::is_session_handle;

/// Play a scenario as an engine would (started by aop itself)
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub(crate) struct Args {
    /// Begin a conversation of this name
    #[arg(long, required_unless_present = "resume")]
    session_id: Option<String>,
    /// Go on with this conversation
    #[arg(long, conflicts_with = "session_id")]
    resume: Option<String>,
}

/// Plays one turn.
pub(crate) fn run(global: &Global, args: Args) -> CommandResult {
    let project = Project::find(global)?;
    let agent = agent::credential()?;
    let session = args.resume.or(args.session_id).unwrap_or_default();
    if !is_session_handle(&session) {
        return Err(Refusal::invalid_argument(format!("'{session}' names no conversation"))
            .hint("the driver of the scripted engine chooses the name"));
    }
    let args = PlayArgs {
        project: project.root,
        feature_id: agent.feature_id.to_string(),
        role: agent.role.to_string(),
        claim: agent.claim,
        session,
    };
    match play(&args) {
        Ok(code) => Ok(Reply::printed().exit(code)),
        Err(error) => {
            talk(&format!("aop scripted: {error}"));
            Ok(Reply::printed().exit(ErrorCode::EngineFailed.exit_code() as u8))
        }
    }
}
