//! `aop mcp`: the tools of the contract for an MCP client that starts this program and talks to it on standard
//! input and output. Standard output belongs to the protocol: whatever else there is to say goes to stderr.

mod install;

use super::tool::parse_role;
use crate::agent;
use crate::cli::Global;
use crate::config::Switch;
use crate::number::millis_or;
use crate::output::{CommandResult, Reply, talk, warn};
use crate::project::{Project, Session};
use aop_kernel::ids::FeatureId;
use aop_kernel::role::{Caller, Role};
use aop_kernel::{ErrorCode, Refusal};
use aop_server::tokens::{self, Bearer};
use aop_server::{Door, EngineTurn, refuse_stdio, serve_stdio};
use clap::Subcommand;
use std::io::IsTerminal;
use std::time::Duration;

/// The variable in which an operator's token is given to a client's server.
const TOKEN_VARIABLE: &str = "AOP_TOKEN";

/// Serve the tools to an MCP client on stdin and stdout
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  aop mcp install claude-code                    Claude Code can ask
  aop mcp install codex --project --dry-run      what would change here
  aop mcp --role qa --feature-id checkout        what a client starts

A client acts as a worker. `--role human` needs an operator's token in AOP_TOKEN (`aop token create --kind operator --name YOU`)."
)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    command: Option<McpCommand>,
    /// planner, builder or qa; human with an operator's token in AOP_TOKEN
    #[arg(long, default_value = "builder")]
    role: String,
    /// The only feature the client may touch
    #[arg(long)]
    feature_id: Option<String>,
    /// How long ask_user waits. Clients give up after a minute; tests and parked engines want less.
    #[arg(long, hide = true, default_value_t = 50_000, env = "AOP_MCP_WAIT_MS", value_parser = millis_or(50_000))]
    wait_ms: u64,
}

#[derive(Debug, Subcommand)]
enum McpCommand {
    /// Make a client ask through aop: writes the entry into its settings, with everything it needs
    #[command(after_help = "Examples:
  aop mcp install claude-code --dry-run
  aop mcp install codex --project

With --project the project's own settings are changed (.mcp.json and .claude/settings.json, .codex/config.toml, \
.gemini/settings.json), otherwise yours. Everything else in the files stays as it is.")]
    Install(install::ClientArgs),
    /// Take the entry out again
    #[command(after_help = "Example:\n  aop mcp uninstall gemini")]
    Uninstall(install::ClientArgs),
}

/// Serves until the client goes.
pub(crate) fn run(global: &Global, args: &McpArgs) -> CommandResult {
    match &args.command {
        Some(McpCommand::Install(client)) => return install::install(global, client),
        Some(McpCommand::Uninstall(client)) => return install::uninstall(global, client),
        None => {}
    }
    match serve(global, args) {
        Ok(()) => Ok(Reply::printed()),
        Err(refusal) => {
            talk(&format!("aop mcp: {} ({})", refusal.message, refusal.code));
            talk(&format!("hint: {}", refusal.hint));
            let exit = refusal.code.exit_code() as u8;
            if refusal.code == ErrorCode::NoProject && !std::io::stdin().is_terminal() {
                // A client may have this server for every folder. It shows no broken one here, and its model can tell
                // its user what is missing.
                let hint = format!("{} Then restart this client.", refusal.hint);
                refuse_stdio(refusal.hint(hint))?;
            }
            Ok(Reply::printed().exit(exit))
        }
    }
}

fn serve(global: &Global, args: &McpArgs) -> Result<(), Refusal> {
    let feature = args.feature_id.as_deref().map(FeatureId::parse).transpose()?;
    let caller = agent::caller(parse_role(&args.role)?, feature)?;
    let session = Project::find(global)?.open_as(caller)?;
    let token = std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty() && !agent::present());
    let (token, signs) = match (session.caller.role, token) {
        (Role::Human, Some(token)) => {
            let (id, name) = operator(&session, &token)?;
            (Some(id), name)
        }
        _ => {
            worker(session.caller.clone())?;
            (None, None)
        }
    };
    let files = (session.project.config.projections == Switch::On).then(|| session.project.dir());
    let elicits = !agent::present();
    let patience = Duration::from_millis(args.wait_ms);
    if std::io::stdin().is_terminal() {
        talk(
            "Waiting for an MCP client on standard input. An agent's program starts this itself, after `aop mcp install claude-code` for instance. Ctrl-C stops it.",
        );
    }
    serve_stdio(Door {
        service: session.service,
        caller: session.caller,
        files,
        patience,
        elicits,
        engine: engine()?,
        signs,
        token,
        warn,
    })
}

/// The turn that this server belongs to, when a driver started the client and parks it.
fn engine() -> Result<Option<EngineTurn>, Refusal> {
    let Some(agent::EngineVariable { engine, refuses, not_yet }) = agent::engine()? else { return Ok(None) };
    Ok(Some(EngineTurn { engine, claim: agent::credential()?.claim, refuses, not_yet }))
}

/// The id of an operator's token, and whose it is.
fn operator(session: &Session, token: &str) -> Result<(String, Option<String>), Refusal> {
    match session.wait(tokens::verify(session.store(), token))? {
        Some((id, Bearer::Operator { name })) => Ok((id, name)),
        Some((_, Bearer::Agent { .. })) | None => Err(Refusal::new(
            ErrorCode::Unauthenticated,
            format!("{TOKEN_VARIABLE} holds no valid token of an operator"),
        )),
    }
}

/// Whoever starts this program is an agent's client. Roles that may answer need proof of a person.
fn worker(caller: Caller) -> Result<Caller, Refusal> {
    match caller.role {
        Role::Planner | Role::Builder | Role::Qa => Ok(caller),
        Role::Orchestrator | Role::Human => Err(Refusal::new(
            ErrorCode::ForbiddenForRole,
            format!("an MCP client may not act as {}", caller.role),
        )
        .hint(format!(
            "use --role planner, builder or qa; for --role human put a token of `aop token create --kind operator \
             --name YOU` into {TOKEN_VARIABLE}"
        ))
        .fact("role", caller.role)),
    }
}
