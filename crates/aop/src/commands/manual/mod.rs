//! `aop manual` (hidden): the reference pages and the man pages, rendered from the program itself. A test compares
//! `docs/reference/` with what this prints; packagers call it for the man pages.

mod http;
mod schemas;
mod settings;

use crate::output::{CommandResult, Reply, print};
use aop_kernel::own::OwnOperation;
use aop_kernel::role::Role;
use aop_kernel::tools::{Access, Tool};
use aop_kernel::{Envelope, ErrorCode, Refusal};
use clap::Command;
use serde_json::json;
use std::fmt::Write;
use std::path::PathBuf;

/// Print a reference page, or write the man pages
#[derive(Debug, clap::Args)]
#[command(
    hide = true,
    after_help = "Examples:\n  aop manual cli\n  aop manual man --output ~/.local/share/man/man1"
)]
pub(crate) struct ManualArgs {
    /// The page: cli, errors, http, schemas, settings or tools; man writes one man page for each command
    #[arg(value_parser = ["cli", "errors", "http", "schemas", "settings", "tools", "man"])]
    page: String,
    /// The folder for the man pages
    #[arg(long, value_name = "DIR", default_value = ".")]
    output: PathBuf,
}

/// Prints the page as it is.
pub(crate) fn run(args: &ManualArgs, command: &Command) -> CommandResult {
    let page = match args.page.as_str() {
        "cli" => cli(command),
        "errors" => errors(),
        "http" => http::page(),
        "schemas" => schemas::page(),
        "settings" => settings::page(),
        "tools" => tools(),
        _ => return man(args, command),
    };
    print(page.trim_end());
    Ok(Reply::printed())
}

/// One line at the top of every page.
const GENERATED: &str = "<!-- Written by `aop manual`; `cargo xtask docs` renews it. -->";

fn cli(command: &Command) -> String {
    let mut page = format!("{GENERATED}\n\n# Commands\n\nWhat `aop help` says, on one page.\n");
    let mut command = command.clone().term_width(100).disable_help_subcommand(true);
    command.build();
    describe(&command, &mut page);
    page
}

fn describe(command: &Command, page: &mut String) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let help = command.clone().render_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    // Writing to a String cannot fail.
    let _ = write!(page, "\n## `{name}`\n\n```text\n{}\n```\n", help.join("\n").trim_end());
    for below in command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
    {
        describe(below, page);
    }
}

fn errors() -> String {
    let mut page = format!(
        "{GENERATED}\n\n# Error codes\n\nEvery refusal on every surface carries one of these. `aop explain CODE` prints \
         the same.\n"
    );
    for code in ErrorCode::ALL {
        let about = code.page();
        let yes = |is: bool| if is { "yes" } else { "no" };
        let _ = write!(
            page,
            "\n## `{code}`\n\n{}\n\n{}\n\nExit code {}, HTTP {}; may succeed later by itself: {}; needs a person: {}.\n",
            about.meaning,
            about.remedy,
            code.exit_code() as u8,
            code.http_status(),
            yes(code.retryable()),
            yes(code.requires_human())
        );
    }
    page
}

/// How the ids of aop's own operations begin, as a list in a sentence.
fn own_beginnings() -> String {
    let beginnings = OwnOperation::ALL.iter().map(|own| match own {
        OwnOperation::AskUser => format!("`{}` with a digest behind it", own.prefix()),
        _ => format!("`{}`", own.prefix()),
    });
    beginnings.collect::<Vec<_>>().join(", ")
}

fn tools() -> String {
    let mut page = format!(
        "{GENERATED}\n\n# Tools\n\nWhat `aop tool call NAME`, MCP and `POST /api/v1/tools/NAME` take, and who may call \
         it: `own` is the caller's own feature, `any` every feature.\n\n## Operation ids\n\nA tool that changes something \
         takes an `operation_id`; the same id with the same arguments again returns the first envelope. `aop` derives the \
         ids of its own operations from what is done. Ids that begin like those ({}) are refused to agents with \
         `invalid_argument`: an agent that used one first would keep that operation from being done.\n",
        own_beginnings()
    );
    for tool in Tool::ALL {
        let access = |role: Role| match tool.access(role) {
            Access::Never => "no",
            Access::Own => "own",
            Access::Any => "any",
        };
        let schema = serde_json::to_string_pretty(&tool.input_schema()).unwrap_or_default();
        let _ = write!(
            page,
            "\n## `{}`\n\n{}\n\nWorkers: {}. Orchestrator: {}. Human: {}. Changes something: {}.\n\n```json\n{schema}\n```\n",
            tool.name(),
            tool.summary(),
            access(Role::Builder),
            access(Role::Orchestrator),
            access(Role::Human),
            if tool.is_mutating() { "yes, so it carries an `operation_id`" } else { "no" }
        );
    }
    page
}

fn man(args: &ManualArgs, command: &Command) -> CommandResult {
    let mut command = command.clone().disable_help_subcommand(true);
    command.build();
    clap_mangen::generate_to(command, &args.output).map_err(|error| {
        Refusal::invalid_argument(format!("{}: {error}", args.output.display()))
            .hint("name a folder that is there and writable with --output")
    })?;
    let text = format!("Wrote the man pages to {}.", args.output.display());
    Ok(Reply::ok(Envelope::success(&json!({"folder": args.output})), text))
}
