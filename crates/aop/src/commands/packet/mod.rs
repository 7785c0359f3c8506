//! `aop packet …`: gates of instruction packets.

mod ask;

use super::spec::load;
use crate::cli::Global;
use crate::output::style::{bold, clean, green, yellow};
use crate::output::{CommandResult, Reply};
use crate::project::Project;
use aop_ask::gate::{Gate, GateState, Packet};
use aop_ask::violation::render;
use aop_kernel::ids::{OperationId, QuestionId};
use aop_kernel::{Envelope, Refusal};
use aop_supervisor::Place;
use clap::Subcommand;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Check or answer an instruction packet's gate
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aop packet check step.json
  aop packet ask step.json        ask a human, write the answer to answer_path

Exit code 0: the gate is open, or there is none. 3: blocked until a valid answer stands at answer_path. 2: the packet is invalid.")]
pub(crate) struct PacketArgs {
    #[command(subcommand)]
    command: PacketCommand,
}

#[derive(Debug, Subcommand)]
enum PacketCommand {
    /// Judge the gate of a packet
    #[command(after_help = "Example:\n  aop packet check step.json")]
    Check {
        /// The instruction packet (JSON; - for standard input)
        file: PathBuf,
    },
    /// Ask what a packet asks, wait, and write the answer record
    #[command(after_help = "Example:\n  aop packet ask step.json --timeout 10m")]
    Ask(ask::AskArgs),
}

/// Runs one of the subcommands.
pub(crate) fn run(global: &Global, args: &PacketArgs) -> CommandResult {
    match &args.command {
        PacketCommand::Check { file } => check(global, file),
        PacketCommand::Ask(args) => ask::run(global, args),
    }
}

fn check(global: &Global, file: &Path) -> CommandResult {
    let project = Project::find(global)?;
    let packet = load(file, "an instruction packet", Packet::parse)?;
    let (state, gate) = match packet.gate() {
        None => (GateState::None, None),
        Some(gate) => {
            let place = locate(&project, file, gate)?;
            (packet.judge(place.read()?.as_deref()), Some(gate))
        }
    };
    Ok(told(&state, gate, Asked::default()))
}

/// Where a gate's record has to stand.
fn locate(project: &Project, file: &Path, gate: &Gate) -> Result<Place, Refusal> {
    Place::resolve(&project.root, &gate.answer_path)
        .map_err(|violation| super::spec::invalid(file, "an instruction packet", vec![violation]))
}

/// What became of asking.
#[derive(Default)]
struct Asked<'a> {
    /// Under which operation somebody was asked.
    operation: Option<&'a OperationId>,
    /// The question.
    question: Option<&'a QuestionId>,
    /// How to go on when the wait was interrupted.
    hint: Option<String>,
    /// Whose answer is not the record, because another stood there first.
    unwritten: Option<&'a QuestionId>,
}

/// The state of a gate, for programs and for people.
fn told(state: &GateState, gate: Option<&Gate>, asked: Asked<'_>) -> Reply {
    let answer_path = gate.map(|gate| gate.answer_path.as_str());
    let path = bold(&clean(answer_path.unwrap_or_default()));
    let (mut data, text, exit) = match state {
        GateState::None => {
            (json!({"gate": "none"}), format!("{} the packet asks nothing", green("no gate:")), 0)
        }
        GateState::Open(_) => (
            json!({"gate": "open", "answer_path": answer_path}),
            format!("{} {path} holds a valid answer", green("open:")),
            0,
        ),
        GateState::Missing => (
            json!({"gate": "blocked", "reason": "missing", "answer_path": answer_path}),
            format!("{} nobody has answered yet; {path} is missing", yellow("blocked:")),
            3,
        ),
        GateState::Invalid(violations) => (
            json!({"gate": "blocked", "reason": "invalid", "answer_path": answer_path, "violations": violations}),
            format!(
                "{} {path} is there but no valid answer; it was left alone\n{}",
                yellow("blocked:"),
                clean(&render(violations))
            ),
            3,
        ),
    };
    if let Some(operation) = asked.operation {
        data["operation_id"] = json!(operation);
    }
    if let Some(question) = asked.question {
        data["question_id"] = json!(question);
    }
    if let Some(hint) = asked.hint {
        data["hint"] = json!(hint);
    }
    if let Some(question) = asked.unwritten {
        data["unwritten"] = json!(question);
    }
    Reply::ok(Envelope::success(&data), text).exit(exit)
}
