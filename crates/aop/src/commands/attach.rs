//! `aop attach`: the engine's own interface, on the session that a worker of a feature has.

use crate::cli::Global;
use crate::output::style::dim;
use crate::output::{CommandResult, Reply, Screen, talk};
use crate::project::Project;
use aop_kernel::ids::FeatureId;
use aop_kernel::role::Role as KernelRole;
use aop_kernel::{Envelope, ErrorCode, Refusal};
use aop_supervisor::session_of;
use aop_turn::{Engine, Role};
use serde_json::json;
use std::os::unix::process::CommandExt;

/// Open the engine's own interface on a worker's session
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aop attach --feature-id checkout
  aop attach --feature-id checkout --role planner --print

What you do there is between you and the engine: it answers no question of aop's.")]
pub(crate) struct AttachArgs {
    /// The feature's id
    #[arg(long)]
    feature_id: String,
    /// Whose session: planner, builder or qa (default: whoever had the last turn)
    #[arg(long)]
    role: Option<String>,
    /// Only print the command
    #[arg(long)]
    print: bool,
}

/// Opens it.
pub(crate) fn run(global: &Global, screen: &Screen, args: &AttachArgs) -> CommandResult {
    let id = FeatureId::parse(&args.feature_id)?;
    let session = Project::find(global)?.open()?;
    let feature = session.wait(session.service.feature(&id))?;
    let name = args.role.clone().or_else(|| feature.role.map(|role| role.as_str().to_owned()));
    let role = name.as_deref().and_then(Role::parse).ok_or_else(|| {
        Refusal::invalid_argument(format!("feature '{id}' has had no turn of a worker yet"))
            .hint("name one with --role planner, builder or qa once `aop run` has worked on it")
    })?;
    let found = session.wait(session_of(session.store(), &id, role))?.ok_or_else(|| {
        Refusal::invalid_argument(format!("the {role} of feature '{id}' has no session yet"))
            .hint("it gets one with its first turn")
    })?;
    let working = feature.activity_state == aop_kernel::status::ActivityState::Working;
    // One that was cut off with its run is over, though nobody wrote it down.
    let working = working && super::runners::look(&session)?.anybody;
    if working && feature.role.map(KernelRole::as_str) == Some(role.as_str()) && !args.print {
        return Err(Refusal::new(
            ErrorCode::VersionConflict,
            format!("the {role} of feature '{id}' is in the middle of a turn"),
        )
        .hint("wait for the turn's end, or stop the run first: two writers spoil a session"));
    }
    let argv: Vec<&str> = match found.engine {
        Engine::ClaudeCode => vec!["claude", "--resume", &found.session],
        Engine::Codex => vec!["codex", "resume", &found.session],
        Engine::Gemini => vec!["gemini", "--resume", &found.session],
        Engine::Iflow => vec!["iflow", "--resume", &found.session],
        Engine::Scripted => {
            return Err(Refusal::new(
                ErrorCode::UnsupportedOperation,
                "the scripted engine has no interface of its own",
            )
            .hint(format!("its session is .aop/scripted/sessions/{}.json", found.session)));
        }
    };
    if args.print || !screen.is_text() {
        let text = format!("cd {} && {}", found.cwd.display(), argv.join(" "));
        let data = json!({"argv": argv, "cwd": found.cwd, "engine": found.engine, "session": found.session, "role": role});
        return Ok(Reply::document(Envelope::success(&data), text));
    }
    if !found.cwd.is_dir() {
        return Err(Refusal::new(
            ErrorCode::UnsupportedOperation,
            format!(
                "the session of the {role} of feature '{id}' is in {}, which is not here",
                found.cwd.display()
            ),
        )
        .hint("attach on the machine that has it; `aop runners` lists them"));
    }
    talk(&dim(&format!("{} in {}", argv.join(" "), found.cwd.display())));
    // Returns only when it could not be started.
    let error = std::process::Command::new(argv[0]).args(&argv[1..]).current_dir(&found.cwd).exec();
    Err(Refusal::new(ErrorCode::EngineUnavailable, format!("`{}` cannot be started: {error}", argv[0])))
}
