//! `aop turn judge`: what a recorded turn came to, and on request why.

use super::engine::EngineAndMode;
use crate::output::{CommandResult, Reply};
use aop_kernel::{Envelope, ErrorCode, Refusal};
use aop_turn::ask::question_arguments;
use aop_turn::{Outcome, OutputSchema, Process, Rules, Turn, TurnReader, Verdict, judge};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Transcripts are read in portions of this size; none of them is ever held whole.
const PORTION_BYTES: usize = 256 << 10;
/// A schema file beyond this is refused unread; the schema check has a lower limit of its own.
const MAX_SCHEMA_FILE_BYTES: u64 = 1 << 20;

/// Judge a recorded turn
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  aop turn judge --engine claude-code --mode interactive --attempt 1 turn.jsonl\n  codex exec --json 'go on' | aop turn judge --engine codex --mode auto --schema result.json --explain -"
)]
pub(crate) struct TurnArgs {
    #[command(subcommand)]
    command: TurnCommand,
}

#[derive(Debug, clap::Subcommand)]
enum TurnCommand {
    /// Print the outcome of a transcript: final, ask_user or error
    Judge(JudgeArgs),
}

#[derive(Debug, clap::Args)]
struct JudgeArgs {
    #[command(flatten)]
    target: EngineAndMode,
    /// Which attempt of its role this turn is
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    attempt: u32,
    /// From which attempt on a turn without completion evidence ends the run
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    max_attempt: u32,
    /// A JSON Schema that the result has to fit
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// What the process exited with, if that is known
    #[arg(long, value_name = "CODE", allow_negative_numbers = true)]
    exit_code: Option<i32>,
    /// The process was stopped because it took too long
    #[arg(long)]
    timed_out: bool,
    /// Also list each piece of evidence, where it stands and whether it counted
    #[arg(long)]
    explain: bool,
    /// What the engine printed; `-` is standard input
    transcript: PathBuf,
}

/// Reads, judges, prints. Whatever the outcome, judging it succeeded.
pub(crate) fn run(args: &TurnArgs) -> CommandResult {
    let TurnCommand::Judge(args) = &args.command;
    let schema = args.schema.as_deref().map(read_schema).transpose()?;
    let turn = read_turn(args)?;
    let rules = Rules {
        mode: args.target.mode,
        attempt: args.attempt,
        max_attempt: args.max_attempt,
        schema: schema.as_ref().map(|schema| OutputSchema { schema, check: &aop_schema::check_instance }),
        process: Process { exit_code: args.exit_code, timed_out: args.timed_out },
    };
    let verdict = judge(&turn, &rules);
    let mut data = verdict.outcome.to_json(&verdict.warnings);
    if args.explain {
        explain(&mut data, &turn, &verdict);
    }
    Ok(Reply::ok(Envelope::success(&data), text(&verdict, args.explain)))
}

fn read_turn(args: &JudgeArgs) -> Result<Turn, Refusal> {
    let path = &args.transcript;
    let unreadable = |error: std::io::Error| {
        Refusal::invalid_argument(format!("cannot read the transcript {}: {error}", path.display()))
            .hint("name a file, or `-` for standard input")
    };
    let mut source: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(File::open(path).map_err(unreadable)?)
    };
    let mut reader = TurnReader::new(args.target.engine);
    let mut portion = vec![0; PORTION_BYTES];
    loop {
        match source.read(&mut portion) {
            Ok(0) => return Ok(reader.finish()),
            Ok(length) => reader.feed(&portion[..length]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(unreadable(error)),
        }
    }
}

fn read_schema(path: &Path) -> Result<Value, Refusal> {
    let name = path.display();
    let read = || {
        let mut text = String::new();
        File::open(path)?.take(MAX_SCHEMA_FILE_BYTES).read_to_string(&mut text)?;
        Ok(text)
    };
    let text: String = read().map_err(|error: std::io::Error| {
        Refusal::invalid_argument(format!("cannot read the schema {name}: {error}"))
            .hint("name a readable file with a JSON Schema")
    })?;
    let invalid = |reasons: Vec<String>| {
        let hint = "correct the schema; JSON Schema 2020-12 is expected";
        Refusal::new(
            ErrorCode::InvalidDocument,
            format!("the schema {name} cannot be used: {}", reasons.join("; ")),
        )
        .hint(hint)
        .fact("reasons", reasons)
    };
    let schema: Value = serde_json::from_str(&text).map_err(|error| invalid(vec![error.to_string()]))?;
    aop_schema::check_schema(&schema).map_err(invalid)?;
    Ok(schema)
}

fn explain(data: &mut Map<String, Value>, turn: &Turn, verdict: &Verdict) {
    data.insert("evidence".into(), json!(verdict.evidence));
    data.insert("session".into(), json!(turn.session));
    let usage = turn.usage.as_ref().map(|usage| {
        json!({
            "input_tokens": usage.input_tokens,
            "cached_input_tokens": usage.cached_input_tokens,
            "output_tokens": usage.output_tokens,
            "cost_usd": usage.cost_usd,
        })
    });
    data.insert("usage".into(), json!(usage));
    if let Outcome::AskUser(ask) = &verdict.outcome {
        data.insert("question".into(), Value::Object(question_arguments(ask)));
    }
}

fn text(verdict: &Verdict, explain: bool) -> String {
    let mut text = match &verdict.outcome {
        Outcome::Final { data } => {
            format!("final\n{}\n", serde_json::to_string_pretty(data).unwrap_or_default())
        }
        Outcome::AskUser(ask) => {
            let mut text = format!("ask_user ({})\n{}\n", ask.interaction.kind, ask.interaction.prompt);
            for choice in &ask.interaction.options {
                let _ = writeln!(text, "  - {}", choice.label);
            }
            text
        }
        Outcome::Error { code, message } => format!("error {code}\n{message}\n"),
    };
    for warning in &verdict.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    if explain {
        text.push_str("\nevidence:\n");
        for piece in &verdict.evidence {
            let mark = if piece.counted { "*" } else { " " };
            let (start, end) = (piece.range.start, piece.range.end);
            let _ =
                writeln!(text, "{mark} {:>15} {:<16} {}", format!("{start}..{end}"), piece.kind, piece.why);
        }
    }
    text
}
