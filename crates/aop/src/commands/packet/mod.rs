//! `aop packet …`: gates of instruction packets.

pub(crate) mod place;

use super::spec::load;
use crate::cli::Global;
use crate::output::style::{bold, clean, green, yellow};
use crate::output::{CommandResult, Reply};
use crate::project::Project;
use aop_ask::gate::{GateState, Packet};
use aop_ask::violation::render;
use aop_kernel::Envelope;
use clap::Subcommand;
use place::Place;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Whether an instruction packet's step may start
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aop packet check step.json

Exit code 0: the gate is open, or there is none. 3: blocked until a valid answer stands at answer_path. 2: the packet is invalid.")]
pub(crate) struct PacketArgs {
    #[command(subcommand)]
    command: PacketCommand,
}

#[derive(Debug, Subcommand)]
enum PacketCommand {
    /// Judge the gate of a packet
    Check {
        /// The instruction packet (JSON; - for standard input)
        file: PathBuf,
    },
}

/// Runs one of the subcommands.
pub(crate) fn run(global: &Global, args: &PacketArgs) -> CommandResult {
    match &args.command {
        PacketCommand::Check { file } => check(global, file),
    }
}

fn check(global: &Global, file: &Path) -> CommandResult {
    let project = Project::find(global)?;
    let packet = load(file, "an instruction packet", Packet::parse)?;
    let Some(gate) = packet.gate() else {
        let text = format!("{} the packet asks nothing", green("no gate:"));
        return Ok(Reply::ok(Envelope::success(&json!({"gate": "none"})), text));
    };
    let place = Place::resolve(&project.root, &gate.answer_path)
        .map_err(|violation| super::spec::invalid(file, "an instruction packet", vec![violation]))?;
    let record = place.read()?;
    let path = clean(&gate.answer_path);
    Ok(match packet.judge(record.as_deref()) {
        GateState::None | GateState::Open(_) => {
            let data = json!({"gate": "open", "answer_path": gate.answer_path});
            Reply::ok(
                Envelope::success(&data),
                format!("{} {} holds a valid answer", green("open:"), bold(&path)),
            )
        }
        GateState::Missing => {
            let data = json!({"gate": "blocked", "reason": "missing", "answer_path": gate.answer_path});
            let text = format!("{} nobody has answered yet; {} is missing", yellow("blocked:"), bold(&path));
            Reply::ok(Envelope::success(&data), text).exit(3)
        }
        GateState::Invalid(violations) => {
            let text = format!(
                "{} {} is there but no valid answer; it was left alone\n{}",
                yellow("blocked:"),
                bold(&path),
                clean(&render(&violations))
            );
            let data = json!({"gate": "blocked", "reason": "invalid", "answer_path": gate.answer_path,
                              "violations": violations});
            Reply::ok(Envelope::success(&data), text).exit(3)
        }
    })
}
