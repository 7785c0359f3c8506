//! `aop mcp`: the tools of the contract for an MCP client that starts this program and talks to it on standard
//! input and output. Standard output belongs to the protocol: whatever else there is to say goes to stderr.

use super::tool::parse_role;
use crate::agent;
use crate::cli::Global;
use crate::config::Switch;
use crate::output::{CommandResult, Reply, talk, warn};
use crate::project::Project;
use aop_kernel::ids::FeatureId;
use aop_kernel::role::{Caller, Role};
use aop_kernel::{ErrorCode, Refusal};
use aop_server::{Door, serve_stdio};
use std::time::Duration;

/// Serve the tools to an MCP client on stdin and stdout
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  claude mcp add aop -- aop mcp                  every session of Claude Code can ask
  aop mcp --role qa --feature-id checkout        the tester of one feature")]
pub(crate) struct McpArgs {
    /// planner, builder or qa
    #[arg(long, default_value = "builder")]
    role: String,
    /// The only feature the client may touch
    #[arg(long)]
    feature_id: Option<String>,
    /// How long ask_user waits. Clients give up after a minute; tests and parked engines want less.
    #[arg(long, hide = true, default_value_t = 50_000, env = "AOP_MCP_WAIT_MS")]
    wait_ms: u64,
}

/// Serves until the client goes.
pub(crate) fn run(global: &Global, args: &McpArgs) -> CommandResult {
    match serve(global, args) {
        Ok(()) => Ok(Reply::printed()),
        Err(refusal) => {
            talk(&format!("aop mcp: {} ({})", refusal.message, refusal.code));
            talk(&format!("hint: {}", refusal.hint));
            Ok(Reply::printed().exit(refusal.code.exit_code() as u8))
        }
    }
}

fn serve(global: &Global, args: &McpArgs) -> Result<(), Refusal> {
    let feature = args.feature_id.as_deref().map(FeatureId::parse).transpose()?;
    let caller = worker(agent::caller(parse_role(&args.role)?, feature)?)?;
    let session = Project::find(global)?.open_as(caller)?;
    let files = (session.project.config.projections == Switch::On).then(|| session.project.dir());
    let elicits = !agent::present();
    let patience = Duration::from_millis(args.wait_ms);
    serve_stdio(Door {
        service: session.service,
        caller: session.caller,
        files,
        patience,
        elicits,
        signs: None,
        warn,
    })
}

/// Whoever starts this program is an agent's client. Roles that may answer need proof of a person.
fn worker(caller: Caller) -> Result<Caller, Refusal> {
    match caller.role {
        Role::Planner | Role::Builder | Role::Qa => Ok(caller),
        Role::Orchestrator | Role::Human => Err(Refusal::new(
            ErrorCode::ForbiddenForRole,
            format!("an MCP client may not act as {}: that needs an operator token", caller.role),
        )
        .hint("operator tokens do not exist yet; use --role planner, builder or qa, and answer with `aop answer`")
        .fact("role", caller.role)),
    }
}
