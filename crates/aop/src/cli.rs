//! The command line: global options, the list of commands, and the way from arguments to an exit code.

use crate::near::with_feature;
use crate::output::live::known_size;
use crate::output::style::COLOUR;
use crate::output::wrap::wrapped;
use crate::output::{CommandResult, Screen, ended, print, report, talk};
use crate::{access, commands};
use aop_kernel::Refusal;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::error::Error;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Run coding agents unattended; let them ask a human; resume each exactly once with the answer.
#[derive(Debug, Parser)]
#[command(name = "aop", version = VERSION, propagate_version = true, max_term_width = WIDEST, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    command: Command,
}

/// Help is not read across a wide terminal.
const WIDEST: usize = 100;

/// The version, with the commit that an optimised build is made of (`build.rs`).
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("AOP_BUILD"), ")");

const EXAMPLES: &str = "Examples:
  aop demo                                     see it work, in its own folder
  aop init                                     make this folder a project
  aop run checkout.md                          agents build it, and ask you
  aop ask \"Ship it?\" --choice yes --choice no  ask a human, wait for the answer
  aop questions                                what is waiting for an answer
  aop answer                                   answer here, one after the other
  aop explain question_conflict_open           what an error code means";

/// What `--project` stands for without a folder; only `aop mcp install` takes it so.
pub(crate) const NO_FOLDER: &str = "--";

/// What `--project` or AOP_PROJECT says. A variable that is set to nothing is not set; an option without a folder is a
/// mistake.
fn folder(said: OsString) -> PathBuf {
    if said.is_empty() && is_project_typed() { NO_FOLDER.into() } else { said.into() }
}

/// Whether `--project` stands on the command line, with a folder or without. The variable that selects a project says
/// less: where settings belong it does not count.
pub(crate) fn is_project_typed() -> bool {
    std::env::args_os()
        .take_while(|arg| arg != "--")
        .any(|arg| arg == "--project" || arg.as_encoded_bytes().starts_with(b"--project="))
}

/// Options that every command takes.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Global {
    /// The project's root folder (default: found upward from here)
    #[arg(long, global = true, display_order = 900, value_name = "DIR", env = "AOP_PROJECT", num_args = 0..=1, default_missing_value = NO_FOLDER,
        value_parser = OsStringValueParser::new().map(folder))]
    pub(crate) project: Option<PathBuf>,
    /// Print JSON instead of text (the default when stdout is not a terminal)
    #[arg(long, global = true, display_order = 901)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    Init(commands::init::InitArgs),
    Demo(commands::demo::DemoArgs),
    Run(commands::run::RunArgs),
    Resume(commands::run::ResumeArgs),
    Merge(commands::merge::MergeArgs),
    Send(commands::send::SendArgs),
    Attach(commands::attach::AttachArgs),
    Status(commands::status::StatusArgs),
    Runners(commands::runners::RunnersArgs),
    Features(commands::features::FeaturesArgs),
    Questions(commands::questions::QuestionsArgs),
    Answer(commands::answer::AnswerArgs),
    Ask(commands::ask::AskArgs),
    Reopen(commands::reopen::ReopenArgs),
    Withdraw(commands::withdraw::WithdrawArgs),
    Retry(commands::retry::RetryArgs),
    Cancel(commands::cancel::CancelArgs),
    Log(commands::log::LogArgs),
    Replay(commands::replay::ReplayArgs),
    Export(commands::export::ExportArgs),
    Import(commands::import::ImportArgs),
    Turn(commands::turn::TurnArgs),
    Engine(commands::engine::EngineArgs),
    Spec(commands::spec::SpecArgs),
    Packet(commands::packet::PacketArgs),
    Prompts(commands::prompts::PromptsArgs),
    Tool(commands::tool::ToolArgs),
    Mcp(commands::mcp::McpArgs),
    Serve(commands::serve::ServeArgs),
    Token(commands::token::TokenArgs),
    Store(commands::store::StoreArgs),
    Doctor(commands::doctor::DoctorArgs),
    Explain(commands::explain::ExplainArgs),
    Completions(commands::completions::CompletionsArgs),
    Manual(commands::manual::ManualArgs),
    Guard(commands::guard::Args),
    Hook(commands::hook::Args),
    Scripted(commands::scripted::Args),
}

/// Parses, runs, reports. The only place that turns a result into an exit code.
pub(crate) fn main() -> ExitCode {
    let mut command = Cli::command();
    let typed = command.try_get_matches_from_mut(std::env::args_os());
    let read = typed.and_then(|typed| Ok((Cli::from_arg_matches(&typed)?, typed)));
    let (mut cli, typed) = match read.map_err(|error| advised(error.format(&mut command))) {
        Ok(read) => read,
        Err(error) => return usage_error(&error),
    };
    cli.global.project = cli.global.project.filter(|folder| !folder.as_os_str().is_empty());
    let screen = Screen::detect(cli.global.json);
    let global = cli.global.clone();
    // A tool says the same through every door.
    let is_tool = matches!(cli.command, Command::Tool(_));
    let result = access::check(&typed).and_then(|()| run(cli, &screen));
    report(&screen, result.map_err(|refusal| if is_tool { refusal } else { with_feature(&global, refusal) }))
}

fn run(cli: Cli, screen: &Screen) -> CommandResult {
    let global = &cli.global;
    match cli.command {
        Command::Init(args) => commands::init::run(global, &args),
        Command::Demo(args) => commands::demo::run(global, screen, &args),
        Command::Attach(args) => commands::attach::run(global, screen, &args),
        Command::Run(args) => commands::run::run(global, screen, args),
        Command::Resume(args) => commands::run::resume(global, screen, args),
        Command::Merge(args) => commands::merge::run(global, &args),
        Command::Send(args) => commands::send::run(global, &args),
        Command::Status(args) => commands::status::run(global, screen, &args),
        Command::Runners(args) => commands::runners::run(global, &args),
        Command::Features(args) => commands::features::run(global, screen, args),
        Command::Questions(args) => commands::questions::run(global, &args),
        Command::Answer(args) => commands::answer::run(global, screen, &args),
        Command::Ask(args) => commands::ask::run(global, screen, &args),
        Command::Reopen(args) => commands::reopen::run(global, &args),
        Command::Withdraw(args) => commands::withdraw::run(global, &args),
        Command::Retry(args) => commands::retry::run(global, &args),
        Command::Cancel(args) => commands::cancel::run(global, &args),
        Command::Log(args) => commands::log::run(global, screen, &args),
        Command::Replay(args) => commands::replay::run(global, screen, &args),
        Command::Export(args) => commands::export::run(global, &args),
        Command::Import(args) => commands::import::run(global, &args),
        Command::Turn(args) => commands::turn::run(&args),
        Command::Engine(args) => commands::engine::run(&args),
        Command::Spec(args) => commands::spec::run(&args),
        Command::Packet(args) => commands::packet::run(global, &args),
        Command::Prompts(args) => commands::prompts::run(&args),
        Command::Tool(args) => commands::tool::run(global, args),
        Command::Mcp(args) => commands::mcp::run(global, &args),
        Command::Serve(args) => commands::serve::run(global, screen, &args),
        Command::Token(args) => commands::token::run(global, args),
        Command::Store(args) => commands::store::run(global, &args),
        Command::Doctor(args) => commands::doctor::run(global, &args),
        Command::Explain(args) => commands::explain::run(&args),
        Command::Completions(args) => commands::completions::run(&args, &mut Cli::command()),
        Command::Manual(args) => commands::manual::run(&args, &Cli::command()),
        Command::Guard(args) => commands::guard::run(args),
        Command::Hook(args) => commands::hook::run(global, &args),
        Command::Scripted(args) => commands::scripted::run(global, args),
    }
}

/// A value with a dash at its beginning is taken for an option. What the parser advises then (`-- -1`) makes it one of
/// those without an option.
fn advised(mut error: clap::Error) -> clap::Error {
    if error.kind() == ErrorKind::MissingSubcommand {
        return without_hidden(error);
    }
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else { return error };
    let typed: Vec<String> = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let command = Cli::command();
    let meant = typed.windows(2).find(|pair| {
        let option = pair[0].strip_prefix("--");
        pair[1].starts_with(unknown.as_str()) && option.is_some_and(|option| takes_value(&command, option))
    });
    if let (ErrorKind::UnknownArgument, Some([option, value])) = (error.kind(), meant) {
        let tip = format!("write '{option}={value}' to give {option} a value that begins with a dash");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Where the command is missing: those that people type, and which of them --project has taken for its folder.
fn without_hidden(mut error: clap::Error) -> clap::Error {
    let command = Cli::command();
    let is_shown = |name: &String| !command.find_subcommand(name).is_some_and(clap::Command::is_hide_set);
    if let Some(ContextValue::Strings(names)) = error.get(ContextKind::ValidSubcommand) {
        let shown = names.iter().filter(|name| is_shown(name)).cloned().collect();
        error.insert(ContextKind::ValidSubcommand, ContextValue::Strings(shown));
    }
    let typed: Vec<String> = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let taken =
        typed.windows(2).find(|pair| pair[0] == "--project" && command.find_subcommand(&pair[1]).is_some());
    if let Some([_, word]) = taken {
        let tip = format!(
            "--project took '{word}' as its folder: write 'aop --project DIR {word}', or leave --project out"
        );
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

fn takes_value(command: &clap::Command, option: &str) -> bool {
    let mut arguments = command.get_arguments();
    arguments.any(|arg| arg.get_long() == Some(option) && arg.get_action().takes_values())
        || command.get_subcommands().any(|command| takes_value(command, option))
}

/// Help and version go to stdout as text. A mistake becomes an envelope where a program is listening.
fn usage_error(error: &clap::Error) -> ExitCode {
    let asked_for_json = std::env::args_os().any(|arg| arg == "--json");
    let screen = Screen::detect(asked_for_json);
    let is_help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if screen.is_text() {
        on_screen(error);
        return ended(u8::try_from(error.exit_code()).unwrap_or(2));
    }
    if is_help {
        print(error.render().to_string().trim_end());
        return ended(u8::try_from(error.exit_code()).unwrap_or(2));
    }
    let text = error.render().to_string();
    let (mut message, hint) = told(&text);
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        "a command is missing".clone_into(&mut message);
    }
    let refusal = match (error.kind(), error.source()) {
        // What to write stands behind the colon.
        (ErrorKind::ValueValidation, Some(right)) => {
            let right = right.to_string();
            let named = message.strip_suffix(&right).map(|named| named.trim_end_matches(": ").to_owned());
            Refusal::invalid_argument(named.unwrap_or(message)).hint(format!("{right}; {hint}"))
        }
        _ => Refusal::invalid_argument(message).hint(hint),
    };
    report(&screen, Err(refusal))
}

/// Help or a mistake for a person. The parser would break examples anywhere, so it gets what stands below the options
/// with spaces that it does not know, and that is broken here, like all other text.
fn on_screen(error: &clap::Error) {
    let again = unbroken(Cli::command()).try_get_matches().err().map(advised);
    let said = again.as_ref().unwrap_or(error).render();
    let text = if *COLOUR { said.ansi().to_string() } else { said.to_string() };
    let room = known_size().map_or(WIDEST, |(columns, _)| columns.min(WIDEST));
    let text = wrapped(text.replace(NO_BREAK, " ").trim_end(), room);
    if error.use_stderr() { talk(&text) } else { print(&text) }
}

const NO_BREAK: char = '\u{a0}';

fn unbroken(command: clap::Command) -> clap::Command {
    let below = command.get_after_help().map(|text| text.to_string().replace(' ', &NO_BREAK.to_string()));
    command.after_help(below.unwrap_or_default()).mut_subcommands(unbroken)
}

/// The command that was meant, as far as it can be told from its words.
fn meant() -> String {
    let mut command = Cli::command();
    let mut words = command.get_name().to_owned();
    for word in std::env::args_os().skip(1) {
        let Some(found) = command.find_subcommand(word).cloned() else { continue };
        words = format!("{words} {}", found.get_name());
        command = found;
    }
    words
}

/// What the parser says, as a message that names what is wrong and a hint that says what would be right. The
/// first line ends with a colon where what it speaks of stands below it.
fn told(text: &str) -> (String, String) {
    let usage = text.lines().find_map(|line| line.strip_prefix("Usage: "));
    let mut said = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage: ") && !line.starts_with("For more information"))
        .filter(|line| !line.is_empty());
    let mut message = said.next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    let mut rest: Vec<&str> = said.map(|line| line.trim_start_matches('[').trim_end_matches(']')).collect();
    if message.ends_with(':') {
        message = format!("{message} {}", std::mem::take(&mut rest).join(", "));
    }
    let usage = usage.map_or_else(|| format!("see `{} --help`", meant()), |usage| format!("usage: {usage}"));
    let hint = rest.into_iter().chain([usage.as_str()]).collect::<Vec<_>>().join("; ");
    (message, hint)
}
