//! `aop engine`: which engines there are, how each is started and what it is told, and whether it works.

mod doctor;
pub(crate) mod list;
mod self_test;

use crate::output::{CommandResult, Reply};
use aop_engine::check_permissions;
use aop_kernel::{Envelope, Refusal};
use aop_turn::command::{
    Conversation, Launch, Permissions, Version, command_line, is_session_handle, shell_quoted,
};
use aop_turn::patch::{PatchFor, patch};
use aop_turn::{Engine, Mode, Role};
use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser, TypedValueParser};
use serde_json::json;

/// Show which engines there are, how each is started and whether it works
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  aop engine list\n  aop engine doctor claude-code --self-test\n  aop engine command --engine codex --mode auto\n  aop engine command --engine gemini --mode interactive \\\n      --resume 11111111-2222-4333-8444-555555555555\n  aop engine patch --engine claude-code --mode interactive --role qa"
)]
pub(crate) struct EngineArgs {
    #[command(subcommand)]
    command: EngineCommand,
}

#[derive(Debug, clap::Subcommand)]
enum EngineCommand {
    /// Which engines are installed, which version, and what each can do
    #[command(after_help = "Example:\n  aop engine list")]
    List,
    /// Whether an engine can be used; exit code 1 when not
    #[command(after_help = "Example:\n  aop engine doctor claude-code --self-test")]
    Doctor(DoctorArgs),
    /// The command line of one turn (`data.argv`)
    #[command(after_help = "Example:\n  aop engine command --engine gemini --mode auto")]
    Command(CommandArgs),
    /// The text an engine is given beside its task (`data.text`)
    #[command(after_help = "Example:\n  aop engine patch --engine claude-code --mode interactive --role qa")]
    Patch(PatchArgs),
}

/// Which engine, in which mode. `aop turn` takes the same options.
#[derive(Debug, clap::Args)]
pub(super) struct EngineAndMode {
    /// The engine
    #[arg(long, value_parser = engine_parser())]
    pub(super) engine: Engine,
    /// Whether a human may be asked
    #[arg(long, value_parser = mode_parser(), default_value = "interactive")]
    pub(super) mode: Mode,
}

#[derive(Debug, clap::Args)]
struct DoctorArgs {
    /// The engine
    #[arg(value_parser = engine_parser())]
    engine: Engine,
    /// Let the installed program ask, park and resume, against a fake model on this machine
    #[arg(long)]
    self_test: bool,
}

#[derive(Debug, clap::Args)]
struct CommandArgs {
    #[command(flatten)]
    target: EngineAndMode,
    /// Continue this conversation, by the engine's own handle
    #[arg(long, value_name = "ID", value_parser = session_handle)]
    resume: Option<String>,
    /// Name the new conversation, where the engine lets us
    #[arg(long, value_name = "ID", conflicts_with = "resume", value_parser = session_handle)]
    session_id: Option<String>,
    /// The installed version, as `--version` of the engine prints it
    #[arg(long, value_name = "VERSION")]
    engine_version: Option<String>,
    /// Who decides about the engine's own permission prompts
    #[arg(long, value_parser = ["auto", "ask"], default_value = "auto")]
    permissions: String,
}

#[derive(Debug, clap::Args)]
struct PatchArgs {
    #[command(flatten)]
    target: EngineAndMode,
    /// What the worker is there for
    #[arg(long, value_parser = role_parser(), default_value = "builder")]
    role: Role,
    /// The run's folder for deliverables
    #[arg(long, value_name = "DIR", default_value = ".aop/runs/<run_id>/artifacts/", value_parser = NonEmptyStringValueParser::new())]
    artifacts: String,
}

/// Looks at engines, or prints a command line or a patch.
pub(crate) fn run(args: &EngineArgs) -> CommandResult {
    match &args.command {
        EngineCommand::List => list::run(),
        EngineCommand::Doctor(args) => doctor::run(args.engine, args.self_test),
        EngineCommand::Command(args) => show_command(args),
        EngineCommand::Patch(args) => Ok(show_patch(args)),
    }
}

fn show_command(args: &CommandArgs) -> CommandResult {
    let version = match &args.engine_version {
        None => None,
        Some(text) => Some(Version::parse(text).ok_or_else(|| {
            Refusal::invalid_argument(format!("'{text}' holds no version"))
                .hint("give it as the engine prints it, for instance --engine-version 0.166.0")
        })?),
    };
    let conversation = match &args.resume {
        Some(id) => Conversation::Resume(id),
        None => Conversation::Start(args.session_id.as_deref()),
    };
    let permissions = if args.permissions == "ask" { Permissions::Ask } else { Permissions::Auto };
    asks_for_permissions(args.target.engine, permissions)?;
    let line = command_line(&Launch {
        engine: args.target.engine,
        mode: args.target.mode,
        conversation,
        permissions,
        version,
        output_schema: None,
    });
    let data = json!({
        "engine": args.target.engine,
        "mode": args.target.mode,
        "argv": line.argv,
        "prompt": line.prompt.as_str(),
    });
    let words: Vec<String> = line.argv.iter().map(|word| shell_quoted(word)).collect();
    let text =
        format!("{}\n(the prompt goes to {})", words.join(" "), line.prompt.as_str().replace('_', " "));
    Ok(Reply::document(Envelope::success(&data), text))
}

/// No command line that runs every tool unasked is printed where people are to be asked. What is printed of Codex is
/// `codex exec`, which asks nobody.
fn asks_for_permissions(engine: Engine, permissions: Permissions) -> Result<(), Refusal> {
    let is_exec = engine == Engine::Codex && permissions == Permissions::Ask;
    if !is_exec && check_permissions(engine, permissions).is_ok() {
        return Ok(());
    }
    let program = if is_exec { "codex exec" } else { engine.as_str() };
    Err(Refusal::invalid_argument(format!("--permissions is ask, and {program} cannot ask for permissions"))
        .hint("leave --permissions out for the command line that runs its tools unasked, or give --engine claude-code; with engines.permissions: ask in aop.yaml `aop run` has Codex ask over its app-server")
        .fact("argument", "permissions"))
}

fn show_patch(args: &PatchArgs) -> Reply {
    let EngineAndMode { engine, mode } = args.target;
    let text = patch(&PatchFor { engine, mode, role: args.role, artifacts: &args.artifacts });
    let data = json!({"engine": engine, "mode": mode, "role": args.role, "text": text});
    Reply::document(Envelope::success(&data), text)
}

fn session_handle(id: &str) -> Result<String, String> {
    if is_session_handle(id) {
        return Ok(id.to_owned());
    }
    Err("an id has 1-128 letters, digits and -_.: and does not begin with a dash".to_owned())
}

fn engine_parser() -> impl TypedValueParser<Value = Engine> {
    PossibleValuesParser::new(Engine::ALL.iter().map(|engine| engine.as_str()))
        .try_map(|name| Engine::parse(&name).ok_or("unknown engine"))
}

fn mode_parser() -> impl TypedValueParser<Value = Mode> {
    PossibleValuesParser::new(Mode::ALL.iter().map(|mode| mode.as_str()))
        .try_map(|name| Mode::parse(&name).ok_or("unknown mode"))
}

fn role_parser() -> impl TypedValueParser<Value = Role> {
    PossibleValuesParser::new(Role::ALL.iter().map(|role| role.as_str()))
        .try_map(|name| Role::parse(&name).ok_or("unknown role"))
}
