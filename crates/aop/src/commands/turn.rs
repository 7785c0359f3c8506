//! `aop turn judge`: what a recorded turn came to, and on request why.

use super::engine::EngineAndMode;
use crate::number::at_least;
use crate::output::style::clean;
use crate::output::{CommandResult, Reply};
use aop_ask::json::read_plainly;
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
    after_help = "Examples:\n  aop turn judge --engine claude-code --mode interactive --attempt 1 turn.jsonl\n  codex exec --json 'go on' |\n    aop turn judge --engine codex --mode auto --schema result.json --explain -"
)]
pub(crate) struct TurnArgs {
    #[command(subcommand)]
    command: TurnCommand,
}

#[derive(Debug, clap::Subcommand)]
enum TurnCommand {
    /// Print the outcome of a transcript: final, ask_user or error
    #[command(after_help = "Example:\n  aop turn judge --engine codex --mode auto --explain turn.jsonl")]
    Judge(JudgeArgs),
}

#[derive(Debug, clap::Args)]
struct JudgeArgs {
    #[command(flatten)]
    target: EngineAndMode,
    /// Which attempt of its role this turn is
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least::<u32>(1))]
    attempt: u32,
    /// From which attempt on a turn without completion evidence ends the run
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = at_least::<u32>(1))]
    max_attempt: u32,
    /// A JSON Schema that the result has to fit
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// What the process exited with, if that is known
    #[arg(long, value_name = "CODE", allow_negative_numbers = true, value_parser = at_least::<i32>(i128::MIN))]
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
    let (data, text) = judged(args)?;
    Ok(Reply::document(Envelope::success(&data), text))
}

/// The outcome for programs and in words.
fn judged(args: &JudgeArgs) -> Result<(Map<String, Value>, String), Refusal> {
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
    // Most of the words are an agent's.
    Ok((data, clean(&text(&verdict, args.explain))))
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
        let mut bytes = Vec::new();
        File::open(path)?.take(MAX_SCHEMA_FILE_BYTES + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes: Vec<u8> = read().map_err(|error: std::io::Error| {
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
    if bytes.len() as u64 > MAX_SCHEMA_FILE_BYTES {
        return Err(invalid(vec![format!(
            "it has more than the {MAX_SCHEMA_FILE_BYTES} bytes that are read"
        )]));
    }
    let schema = read_plainly(&bytes).map_err(|reason| invalid(vec![reason]))?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::io::Write;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: TurnArgs,
    }

    /// A folder with a transcript and a schema, judged with these words.
    fn judge_with(
        transcript: &[u8],
        schema: Option<&str>,
        words: &[&str],
    ) -> Result<(Value, String), Refusal> {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            File::create(&path).unwrap().write_all(bytes).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let mut line: Vec<String> =
            ["aop", "judge"].iter().chain(words).map(|&word| word.to_owned()).collect();
        if let Some(schema) = schema {
            line.extend(["--schema".to_owned(), write("schema.json", schema.as_bytes())]);
        }
        line.push(write("transcript", transcript));
        let TurnCommand::Judge(args) = Line::try_parse_from(line).unwrap().args.command;
        judged(&args).map(|(data, text)| (Value::Object(data), text))
    }

    fn data(transcript: &[u8], words: &[&str]) -> Value {
        judge_with(transcript, None, words).unwrap().0
    }

    const PROSE: &[u8] = b"{\"type\":\"turn.started\"}\n{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"Which?\"}}\n{\"type\":\"turn.completed\"}\n";

    #[test]
    fn every_turn_has_an_outcome() {
        let codex = ["--engine", "codex"];
        assert_eq!(data(PROSE, &codex)["outcome"], "ask_user");
        assert_eq!(data(b"", &codex)["error"]["code"], "ENGINE_STREAM_TRUNCATED");
        let auto = ["--engine", "codex", "--mode", "auto"];
        assert_eq!(data(PROSE, &auto)["error"]["code"], "AUTO_COMPLETION_EVIDENCE_MISSING");
        let limit = ["--engine", "codex", "--attempt", "2", "--max-attempt", "2"];
        assert_eq!(data(PROSE, &limit)["error"]["code"], "INTERACTIVE_MAX_ATTEMPT_EXCEEDED");
        let killed = ["--engine", "codex", "--exit-code", "-9"];
        assert_eq!(data(PROSE, &killed)["error"]["code"], "ENGINE_FAILED");
        let late = ["--engine", "codex", "--timed-out"];
        assert_eq!(data(PROSE, &late)["error"]["code"], "ENGINE_TIMEOUT");
    }

    #[test]
    fn data_is_the_protocol_object_and_explain_adds_to_it() {
        let plain = data(PROSE, &["--engine", "codex"]);
        let fields: Vec<&String> = plain.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["outcome", "interaction", "warnings"]);
        let explained = data(PROSE, &["--engine", "codex", "--explain"]);
        let counted: Vec<&Value> = explained["evidence"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|piece| piece["counted"] == true)
            .collect();
        assert_eq!(counted.len(), 1);
        assert_eq!(counted[0]["kind"], "message");
        let range = |index: usize| counted[0]["range"][index].as_u64().unwrap() as usize;
        assert!(std::str::from_utf8(&PROSE[range(0)..range(1)]).unwrap().contains("Which?"));
        assert_eq!(explained["question"]["prompt"], "Which?");
    }

    #[test]
    fn a_schema_that_cannot_be_used_is_an_invalid_document() {
        for schema in ["{", "{\"type\": \"objekt\"}", "[]", "{\"$ref\": \"http://127.0.0.1/s\"}"] {
            let refusal = judge_with(PROSE, Some(schema), &["--engine", "codex"]).unwrap_err();
            assert_eq!(refusal.code, ErrorCode::InvalidDocument, "{schema}");
        }
    }

    #[test]
    fn a_schema_is_taken_as_it_was_written_or_not_at_all() {
        let spaces = " ".repeat(1 << 20);
        for (schema, told) in [
            (r#"{"required": ["a"], "required": ["b"]}"#, "the key \"required\" stands twice"),
            (r#"{"maximum": 18446744073709551616}"#, "cannot be kept exactly"),
            ("\u{feff}{}", "without a byte order mark"),
            (&format!("{{}}{spaces}"), "more than the 1048576 bytes"),
        ] {
            let refusal = judge_with(PROSE, Some(schema), &["--engine", "codex"]).unwrap_err();
            assert_eq!(refusal.code, ErrorCode::InvalidDocument);
            assert!(refusal.message.contains(told), "{}", refusal.message);
        }
        assert!(judge_with(PROSE, Some(&format!("{{}}{}", &spaces[2..])), &["--engine", "codex"]).is_ok());
    }

    #[test]
    fn a_transcript_that_is_not_there_is_an_invalid_argument() {
        let args =
            Line::try_parse_from(["aop", "judge", "--engine", "codex", "/nowhere/at/all"]).unwrap().args;
        assert_eq!(run(&args).err().unwrap().code, ErrorCode::InvalidArgument);
    }

    #[test]
    fn people_see_the_evidence_too() {
        let (_, text) = judge_with(PROSE, None, &["--engine", "codex", "--explain"]).unwrap();
        assert!(text.starts_with("ask_user (open_text)\nWhich?\n"), "{}", text);
        assert!(text.contains("it is taken as a question in prose"), "{}", text);
    }
}
