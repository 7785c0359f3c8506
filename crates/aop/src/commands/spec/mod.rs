//! `aop spec …`: check question specs and answers, and see what a tool would be asked. Needs no project.

mod document;
mod preview;

use crate::input::read_once;
use crate::output::style::{bold, clean, cyan, dim, escaped, green, yellow};
use crate::output::{CommandResult, Reply};
use aop_ask::{
    AnswerSpec, Dialogue, OnEscape, Options, Protocol, QuestionSpec, Target, import, json as reader,
};
use aop_kernel::question::redacted;
use aop_kernel::{Envelope, ErrorCode, Refusal};
use aop_store::{Clock, SystemClock};
use clap::{Subcommand, ValueEnum};
pub(crate) use document::{invalid, load};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Check question specs and answers, and see what each tool would be asked
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aop spec check init.json
  aop spec preview init.json
  aop spec compile init.json --to codex
  aop spec decode init.json --from codex --replies replies.json")]
pub(crate) struct SpecArgs {
    #[command(subcommand)]
    command: SpecCommand,
}

#[derive(Debug, Subcommand)]
enum SpecCommand {
    /// List every violation of a question spec
    #[command(after_help = "Example:\n  aop spec check init.json")]
    Check {
        /// The question spec (JSON; - for standard input)
        file: PathBuf,
    },
    /// List every violation of an answer record, held against its spec
    #[command(after_help = "Example:\n  aop spec check-answer init.json answer.json")]
    CheckAnswer {
        /// The question spec
        spec: PathBuf,
        /// The answer record
        answer: PathBuf,
    },
    /// Print the first native request for a spec
    #[command(after_help = "Example:\n  aop spec compile init.json --to codex")]
    Compile {
        /// The question spec
        spec: PathBuf,
        /// The tool that asks
        #[arg(long, value_name = "TARGET")]
        to: Tool,
        /// The tool is not offered (Codex outside Plan mode, say): use what replaces it
        #[arg(long)]
        unavailable: bool,
        #[command(flatten)]
        settings: Settings,
    },
    /// Print where a dialogue stands after a list of native replies
    #[command(after_help = "Example:\n  aop spec decode init.json --from claude-code --replies replies.json")]
    Decode {
        /// The question spec
        spec: PathBuf,
        /// The tool that asked
        #[arg(long, value_name = "TARGET")]
        from: Tool,
        /// A JSON array of native replies; {"escaped": true} stands for Esc
        #[arg(long, value_name = "FILE")]
        replies: PathBuf,
        #[command(flatten)]
        settings: Settings,
        #[command(flatten)]
        stamp: Stamp,
    },
    /// Turn a native tool call into a question spec
    #[command(after_help = "Example:\n  aop spec import --from claude-code call.json")]
    Import {
        /// The tool that was called
        #[arg(long, value_name = "TOOL")]
        from: Source,
        /// The call's arguments (JSON)
        call: PathBuf,
        /// The spec's topic (default: the first header)
        #[arg(long)]
        topic: Option<String>,
    },
    /// Show how a spec looks in each tool
    #[command(after_help = "Example:\n  aop spec preview init.json")]
    Preview {
        /// The question spec
        file: PathBuf,
    },
}

/// How a dialogue behaves.
#[derive(Debug, clap::Args)]
struct Settings {
    /// What Esc does
    #[arg(long, value_enum, default_value_t = Escape::Terminate)]
    on_escape: Escape,
    /// The MCP version an elicitation speaks
    #[arg(long, value_enum, default_value_t = Mcp::V2025_11_25)]
    protocol: Mcp,
}

/// What the record says at the end of a dialogue.
#[derive(Debug, clap::Args)]
struct Stamp {
    /// Who answers
    #[arg(long, default_value = "human")]
    answered_by: String,
    /// When (default: now)
    #[arg(long)]
    answered_at: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Tool {
    ClaudeCode,
    Codex,
    StrictText,
    Elicitation,
    Terminal,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Source {
    ClaudeCode,
    Codex,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Escape {
    Terminate,
    ReturnPrevious,
    Defer,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Mcp {
    #[value(name = "2025-06-18")]
    V2025_06_18,
    #[value(name = "2025-11-25")]
    V2025_11_25,
}

/// Runs one of the subcommands.
pub(crate) fn run(args: &SpecArgs) -> CommandResult {
    match &args.command {
        SpecCommand::Check { file } => check(file),
        SpecCommand::CheckAnswer { spec, answer } => check_answer(spec, answer),
        SpecCommand::Compile { spec, to, unavailable, settings } => {
            let target = Target::from(*to);
            // Before the first reply there is no record that could say anything.
            let stamp = Stamp { answered_by: String::new(), answered_at: None };
            dialogue(spec, if *unavailable { target.fallback() } else { target }, &[], settings, &stamp)
        }
        SpecCommand::Decode { spec, from, replies, settings, stamp } => {
            read_once([spec, replies])?;
            let list = load(replies, "a list of replies", reader::read)?;
            let Value::Array(list) = list else {
                return Err(Refusal::new(
                    ErrorCode::InvalidDocument,
                    format!("'{}' is not a JSON array of native replies", replies.display()),
                )
                .hint("write [reply, reply, …], oldest first"));
            };
            dialogue(spec, Target::from(*from), &list, settings, stamp)
                .map_err(|refusal| document::named(refusal, replies))
        }
        SpecCommand::Import { from, call, topic } => import(*from, call, topic.as_deref()),
        SpecCommand::Preview { file } => {
            let spec: QuestionSpec = load(file, "a question spec", QuestionSpec::parse)?;
            Ok(preview::reply(&spec))
        }
    }
}

fn check(file: &Path) -> CommandResult {
    let spec = load(file, "a question spec", QuestionSpec::parse)?;
    let ids: Vec<&str> = spec.questions().iter().map(aop_ask::Question::id).collect();
    let text = format!(
        "{} {} {}",
        green("valid:"),
        bold(&clean(spec.topic())),
        dim(&format!("(version {}, {} questions: {})", spec.version(), ids.len(), ids.join(", ")))
    );
    let data = json!({"valid": true, "version": spec.version(), "topic": spec.topic(), "questions": ids});
    Ok(Reply::ok(Envelope::success(&data), text))
}

fn check_answer(spec: &PathBuf, answer: &PathBuf) -> CommandResult {
    read_once([spec, answer])?;
    let spec = load(spec, "a question spec", QuestionSpec::parse)?;
    let record = load(answer, "an answer to this spec", |bytes| AnswerSpec::parse(&spec, bytes))?;
    let text = format!(
        "{} {} answered {}",
        green("valid:"),
        clean(record.answered_by()),
        dim(&format!("{} at {}", clean(record.topic()), clean(record.answered_at())))
    );
    let mut answers = record.answers().to_json();
    for question in spec.questions().iter().filter(|question| question.secret()) {
        if let Some(answer) = answers.get_mut(question.id()) {
            *answer = redacted();
        }
    }
    Ok(Reply::ok(Envelope::success(&json!({"valid": true, "answers": answers})), text))
}

fn dialogue(
    spec: &Path,
    target: Target,
    replies: &[Value],
    settings: &Settings,
    stamp: &Stamp,
) -> CommandResult {
    let spec_value = load(spec, "a question spec", QuestionSpec::parse)?;
    let options = Options { on_escape: settings.on_escape.into(), protocol: settings.protocol.into() };
    let mut dialogue = Dialogue::start(spec_value, target, options).map_err(|found| {
        Refusal::new(ErrorCode::InvalidDocument, format!("{} cannot ask this spec", target.as_str()))
            .hint(found.hint.clone())
            .fact("violations", vec![found])
    })?;
    for (index, reply) in replies.iter().enumerate() {
        dialogue.reply(reply).map_err(|mut found| {
            found.path = format!("/{index}{}", found.path);
            Refusal::new(
                ErrorCode::InvalidDocument,
                format!("reply {} of {} cannot be taken", index + 1, replies.len()),
            )
            .hint(found.hint.clone())
            .fact("violations", vec![found])
        })?;
    }
    let now = SystemClock.now().to_string();
    let answered_at = stamp.answered_at.as_deref().unwrap_or(&now);
    let report = dialogue.report(answered_at, &stamp.answered_by).map_err(|found| {
        Refusal::invalid_argument("--answered-at or --answered-by cannot stand in a record")
            .fact("violations", found)
    })?;
    let text = told(&dialogue, &report);
    Ok(Reply::document(Envelope::success(&report), text))
}

fn told(dialogue: &Dialogue, report: &Value) -> String {
    let pretty = |value: &Value| escaped(&serde_json::to_string_pretty(value).unwrap_or_default());
    if let Some(next) = report.get("next") {
        let tool = next["tool"].as_str().unwrap_or_default();
        let open = dim(&format!("unanswered: {}", dialogue.unanswered().join(", ")));
        return format!("{} {tool}\n{}\n{open}", cyan("next:"), pretty(&next["input"]));
    }
    match report.get("answer") {
        Some(answer) => format!("{}\n{}", green("done:"), pretty(answer)),
        None => format!("{}\n{}", yellow("escaped:"), pretty(report)),
    }
}

fn import(from: Source, call: &Path, topic: Option<&str>) -> CommandResult {
    let what = "a call of this tool";
    let spec = load(call, what, |bytes| {
        let value = reader::read(bytes)?;
        match from {
            Source::ClaudeCode => import::claude_code(&value, topic),
            Source::Codex => import::codex(&value, topic),
        }
    })?;
    let text = escaped(&serde_json::to_string_pretty(&spec).unwrap_or_default());
    Ok(Reply::document(Envelope::success(&json!({"spec": spec})), text))
}

impl From<Tool> for Target {
    fn from(tool: Tool) -> Self {
        match tool {
            Tool::ClaudeCode => Target::ClaudeCode,
            Tool::Codex => Target::Codex,
            Tool::StrictText => Target::StrictText,
            Tool::Elicitation => Target::Elicitation,
            Tool::Terminal => Target::Terminal,
        }
    }
}

impl From<Escape> for OnEscape {
    fn from(escape: Escape) -> Self {
        match escape {
            Escape::Terminate => OnEscape::Terminate,
            Escape::ReturnPrevious => OnEscape::ReturnPrevious,
            Escape::Defer => OnEscape::Defer,
        }
    }
}

impl From<Mcp> for Protocol {
    fn from(mcp: Mcp) -> Self {
        match mcp {
            Mcp::V2025_06_18 => Protocol::V2025_06_18,
            Mcp::V2025_11_25 => Protocol::V2025_11_25,
        }
    }
}
