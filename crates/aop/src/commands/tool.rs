//! `aop tool call`: the tool contract on the command line, envelope for envelope what MCP and HTTP answer.

use crate::cli::Global;
use crate::input::read_bytes;
use crate::output::style::escaped;
use crate::output::{CommandResult, Reply};
use crate::project::Project;
use crate::{access, agent};
use aop_kernel::ids::{FeatureId, quoted};
use aop_kernel::role::Role;
use aop_kernel::tools::{MAX_REQUEST_BYTES, Tool};
use aop_kernel::{ErrorCode, Refusal};
use clap::Subcommand;
use serde_json::Value;
use std::path::Path;

/// Call a tool of the contract directly
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  aop tool call feature.list --role human --input '{}'")]
pub(crate) struct ToolArgs {
    #[command(subcommand)]
    command: ToolCommand,
}

#[derive(Debug, Subcommand)]
enum ToolCommand {
    /// Call one tool and print its envelope
    #[command(after_help = "Examples:
  aop tool call feature.list --role human --input '{}'
  aop tool call feature.question_create --role builder --input @question.json
  aop tool call feature.get --role human --input - < checkout.json")]
    Call {
        /// The tool's name, for instance feature.question_list
        name: String,
        /// planner, builder, qa, orchestrator or human
        #[arg(long)]
        role: Option<String>,
        /// The only feature a worker may touch
        #[arg(long)]
        feature_id: Option<String>,
        /// The arguments: JSON, @FILE, or - for standard input
        #[arg(long, default_value = "{}")]
        input: String,
    },
}

/// Calls it.
pub(crate) fn run(global: &Global, args: ToolArgs) -> CommandResult {
    let ToolCommand::Call { name, role, feature_id, input } = args.command;
    let tool = Tool::find(&name)?;
    if tool == Tool::QuestionCreate {
        access::may_ask()?;
    }
    let role = role.as_deref().map(parse_role).transpose()?;
    let Some(role) = role.or(agent::present().then_some(Role::Builder)) else {
        return Err(
            Refusal::invalid_argument("--role is missing").hint("say who calls, for instance --role human")
        );
    };
    let feature = feature_id.as_deref().map(FeatureId::parse).transpose()?;
    let caller = agent::caller(role, feature)?;
    let input = read_input(&input)?;
    let session = Project::find(global)?.open_as(caller)?;
    let envelope = session.call(tool, &input)?;
    let text = serde_json::from_str::<Value>(envelope.as_str())
        .map_or_else(|_| envelope.as_str().to_owned(), |value| format!("{value:#}"));
    Ok(Reply::document(envelope, escaped(&text)))
}

/// Reads a role; the refusal lists them.
pub(super) fn parse_role(name: &str) -> Result<Role, Refusal> {
    Role::parse(name).ok_or_else(|| {
        Refusal::invalid_argument(format!("role {} is not known", quoted(name)))
            .hint("role is one of planner, builder, qa, orchestrator, human")
            .fact("argument", "role")
    })
}

fn read_input(input: &str) -> Result<Value, Refusal> {
    let bytes = match input.strip_prefix('@') {
        Some(path) => read_bytes(Path::new(path))?,
        None if input == "-" => read_bytes(Path::new("-"))?,
        None => input.as_bytes().to_vec(),
    };
    if bytes.len() > MAX_REQUEST_BYTES {
        return Err(Refusal::new(
            ErrorCode::PayloadTooLarge,
            format!("the request has {} bytes; the limit is {MAX_REQUEST_BYTES}", bytes.len()),
        )
        .fact("size", bytes.len())
        .fact("limit", MAX_REQUEST_BYTES));
    }
    aop_ask::json::read_plainly(&bytes).map_err(|error| {
        Refusal::invalid_argument(format!("--input is not JSON: {error}"))
            .hint("give one JSON object, @FILE or - for standard input")
            .fact("argument", "input")
    })
}
