//! `aop prompts …`: check and compile Canonical Prompt Specs, and map task tools. Needs no project.

use super::spec::load;
use crate::input::read_once;
use crate::output::style::{bold, clean, dim, escaped, green, yellow};
use crate::output::{CommandResult, Reply};
use aop_ask::prompts::tasks::{self, PlanTool, TaskMapper};
use aop_ask::prompts::{self, Findings, Plan};
use aop_ask::{OnEscape, Violation, json as reader};
use aop_kernel::{Envelope, ErrorCode, Refusal};
use clap::Subcommand;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Check and compile prompt specs: a protocol's questions as small executable steps
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aop prompts check examples/prompts/*.json
  aop prompts compile review.json --task-sync
  aop prompts tasks calls.json")]
pub(crate) struct PromptsArgs {
    #[command(subcommand)]
    command: PromptsCommand,
}

#[derive(Debug, Subcommand)]
enum PromptsCommand {
    /// List errors (exit 2) and warnings (exit 0) of prompt specs
    #[command(after_help = "Example:\n  aop prompts check examples/prompts/*.json")]
    Check {
        /// Prompt specs (JSON; - for standard input)
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Make a prompt spec from question specs and AskUserQuestion calls
    #[command(
        after_help = "Example:\n  aop prompts compile review.json --task-sync\n\nWith --json also the call of request_user_input for each step (calls)."
    )]
    Compile {
        /// Question specs, native calls, or lists of them (JSON), in the order they are asked
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// The protocol's name: lower-case letters, digits and hyphens (default: from the first file's name)
        #[arg(long)]
        protocol: Option<String>,
        /// The Markdown file that the protocol is written in (default: the protocol's name with .md)
        #[arg(long, value_name = "FILE.md")]
        source: Option<String>,
        /// The document's version
        #[arg(long, default_value = "1.0.0")]
        spec_version: String,
        /// What Esc does in every step
        #[arg(long, value_enum, default_value_t = super::spec::Escape::Terminate)]
        on_escape: super::spec::Escape,
        /// Also map task tools to update_plan
        #[arg(long)]
        task_sync: bool,
    },
    /// Turn recorded calls of TaskCreate and TaskUpdate into those of update_plan
    #[command(
        after_help = "Example:\n  aop prompts tasks calls.json\n\nSuch a file: [{\"name\": \"TaskCreate\", \"input\": {\"subject\": \"Plan\"}}]"
    )]
    Tasks {
        /// A list of calls with name and input, in their order (JSON; - for standard input)
        file: PathBuf,
        /// As where update_plan is missing: only the state at the end
        #[arg(long)]
        no_update_plan: bool,
    },
}

/// Runs one of the subcommands.
pub(crate) fn run(args: &PromptsArgs) -> CommandResult {
    match &args.command {
        PromptsCommand::Check { files } => check(files),
        PromptsCommand::Compile { files, protocol, source, spec_version, on_escape, task_sync } => {
            let protocol = protocol.clone().unwrap_or_else(|| protocol_of(files));
            let plan = Plan {
                version: spec_version.clone(),
                source: source.clone().unwrap_or_else(|| format!("{protocol}.md")),
                protocol,
                on_escape: OnEscape::from(*on_escape),
                task_sync: *task_sync,
            };
            compile(files, &plan)
        }
        PromptsCommand::Tasks { file, no_update_plan } => {
            map_tasks(file, if *no_update_plan { PlanTool::Missing } else { PlanTool::Available })
        }
    }
}

fn check(files: &[PathBuf]) -> CommandResult {
    read_once(files)?;
    let mut items = Vec::new();
    let mut text = String::new();
    let mut violations = Vec::new();
    for file in files {
        // Not every file's name is text.
        let name = file.display().to_string();
        let loaded = load(file, "a prompt spec", |bytes| Ok(prompts::check(bytes)));
        let Findings { errors, warnings } = match loaded {
            Err(refusal) if files.len() > 1 => {
                // What cannot be read hides nothing of the others.
                violations.push(json!({"code": refusal.code, "path": "", "message": refusal.message,
                    "hint": refusal.hint, "file": name}));
                items.push(json!({"file": name, "valid": false, "warnings": []}));
                continue;
            }
            loaded => loaded?,
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{} {}", green("valid:"), bold(&clean(&name)));
        for warning in &warnings {
            let _ = writeln!(text, "  {} {}", yellow("warning:"), clean(&warning.to_string()));
        }
        violations.extend(errors.iter().map(|violation| in_file(&name, violation)));
        items.push(json!({"file": name, "valid": errors.is_empty(), "warnings": warnings}));
    }
    if violations.is_empty() {
        return Ok(Reply::ok(Envelope::success(&json!({"items": items})), text));
    }
    let broken = items.iter().filter(|item| item["valid"] == false).count();
    let count = violations.len();
    Err(Refusal::new(
        ErrorCode::InvalidDocument,
        format!("{broken} of {} prompt specs cannot be used: {count} errors", files.len()),
    )
    .hint("correct each error and check again")
    .fact("violations", violations)
    .fact("items", items))
}

/// A protocol name made of the first file's: lower-case words with hyphens between them.
fn protocol_of(files: &[PathBuf]) -> String {
    let stem =
        files.first().and_then(|file| file.file_stem()).map(|stem| stem.to_string_lossy().to_lowercase());
    let stem = stem.unwrap_or_default();
    let words: Vec<&str> =
        stem.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let name = words.join("-");
    if name.starts_with(|c: char| c.is_ascii_lowercase()) {
        name
    } else {
        format!("protocol-{name}").trim_end_matches('-').to_owned()
    }
}

/// A violation that also names its file.
fn in_file(file: &str, violation: &Violation) -> Value {
    let mut value = json!(violation);
    value["file"] = json!(file);
    value
}

fn compile(files: &[PathBuf], plan: &Plan) -> CommandResult {
    read_once(files)?;
    let mut specs = Vec::new();
    for file in files {
        let what = "a question spec or a call of AskUserQuestion";
        specs.extend(load(file, what, |bytes| prompts::inputs(&reader::read(bytes)?))?);
    }
    let compiled = prompts::compile(&specs, plan).map_err(|found| {
        Refusal::new(ErrorCode::InvalidDocument, "no valid prompt spec comes out of this")
            .hint("see the violations; --protocol, --source and --spec-version stand in the document")
            .fact("violations", found)
    })?;
    let mut text = escaped(&serde_json::to_string_pretty(&compiled.spec).unwrap_or_default());
    for warning in &compiled.warnings {
        let _ = write!(text, "\n{}", dim(&clean(&format!("warning: {}", warning.message))));
    }
    let data = json!({"document": compiled.spec, "calls": compiled.calls, "warnings": compiled.warnings});
    Ok(Reply::document(Envelope::success(&data), text))
}

fn map_tasks(file: &Path, tool: PlanTool) -> CommandResult {
    let calls = load(file, "a list of tool calls", tasks::calls)?;
    let mut mapper = TaskMapper::new(tool);
    let told: Vec<Value> = calls.into_iter().filter_map(|call| mapper.apply(call)).collect();
    let calls: Vec<Value> =
        told.into_iter().map(|plan| json!({"tool": "update_plan", "arguments": plan})).collect();
    let data = json!({"calls": calls, "state": mapper.plan()});
    let text = escaped(&serde_json::to_string_pretty(&data).unwrap_or_default());
    Ok(Reply::document(Envelope::success(&data), text))
}

#[cfg(test)]
mod tests {
    use super::{check, protocol_of};

    /// Where the system lets a file have such a name.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_whose_name_is_no_text_is_judged_and_named_like_any_other() {
        use std::os::unix::ffi::OsStrExt;
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &[u8]| folder.path().join(std::ffi::OsStr::from_bytes(name));
        let (good, bad, gone) = (path(b"a\xff.json"), path(b"b\xff.json"), path(b"c\xff.json"));
        let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/prompts/gap-review.json");
        std::fs::copy(example, &good).unwrap();
        std::fs::write(&bad, "{}").unwrap();
        assert!(check(std::slice::from_ref(&good)).is_ok());
        let refusal = check(&[good, bad, gone]).err().unwrap();
        let files: Vec<_> =
            refusal.facts["items"].as_array().unwrap().iter().map(|item| &item["file"]).collect();
        for (file, name) in files.into_iter().zip(["a\u{fffd}.json", "b\u{fffd}.json", "c\u{fffd}.json"]) {
            assert!(file.as_str().unwrap().ends_with(name), "{file}");
        }
    }

    #[test]
    fn a_protocol_is_named_after_its_first_file() {
        for (file, name) in [
            ("a/Gap_Review v2.json", "gap-review-v2"),
            ("-", "protocol"),
            ("7.json", "protocol-7"),
            ("ü.json", "protocol"),
        ] {
            assert_eq!(protocol_of(&[file.into()]), name);
        }
    }
}
