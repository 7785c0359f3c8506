//! `aop attach`: the engine's own interface, on the session that a worker of a feature has.

use crate::cli::Global;
use crate::output::style::dim;
use crate::output::{CommandResult, Reply, Screen, talk};
use crate::project::Project;
use aop_engine::{Attach, Surroundings, attach};
use aop_kernel::ids::FeatureId;
use aop_kernel::role::Role as KernelRole;
use aop_kernel::{Envelope, ErrorCode, Refusal};
use aop_supervisor::session_of;
use aop_turn::Role;
use aop_turn::command::shell_quoted;
use serde_json::json;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::Path;

/// Open the engine's own interface on a worker's session
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aop attach --feature-id checkout
  aop attach --feature-id checkout --role planner --print

What you do there is between you and the engine: it answers no question of aop's. The interface has the credential of \
that agent (AOP_AGENT), so every `aop` that is called from it is the agent's and refuses to answer: use another shell \
for that.")]
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
    if working && feature.role.map(KernelRole::as_str) == Some(role.as_str()) && !args.print {
        return Err(Refusal::new(
            ErrorCode::VersionConflict,
            format!("the {role} of feature '{id}' is in the middle of a turn"),
        )
        .hint("wait for the turn's end, or stop the run first: two writers spoil a session"));
    }
    let around = Surroundings::of_this_process().map_err(|error| {
        Refusal::new(ErrorCode::Internal, format!("cannot determine the path of the aop binary: {error}"))
    })?;
    // It is started in another folder than this one.
    let root = &session.project.root;
    let root = std::path::absolute(root).unwrap_or_else(|_| root.clone());
    let attach = session.wait(attach(&around, &root, id.as_str(), role, &found)).ok_or_else(|| {
        Refusal::new(ErrorCode::UnsupportedOperation, "the scripted engine has no interface of its own")
            .hint(format!("its session is .aop/scripted/sessions/{}.json", found.session))
    })?;
    if args.print || !screen.is_text() {
        let env: BTreeMap<_, _> = attach
            .own
            .iter()
            .map(|(name, value)| (name.to_string_lossy(), value.to_string_lossy()))
            .collect();
        let data = json!({"argv": attach.argv, "env": env, "cwd": found.cwd, "engine": found.engine,
            "session": found.session, "role": role});
        return Ok(Reply::document(Envelope::success(&data), line(&around, &attach, &found.cwd)));
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
    let program = &attach.argv[0];
    talk(&dim(&format!("{} in {}", attach.argv.join(" "), found.cwd.display())));
    // Returns only when it could not be started.
    let error = std::process::Command::new(program)
        .args(&attach.argv[1..])
        .env_clear()
        .envs(&attach.env)
        .current_dir(&found.cwd)
        .exec();
    Err(Refusal::new(ErrorCode::EngineUnavailable, format!("`{program}` cannot be started: {error}")))
}

/// The same for a shell: what the program may not have of this environment is taken away, what is its own is set. The
/// rest it has from the shell, as the address of a store with the password in it, which is not shown.
fn line(around: &Surroundings, attach: &Attach, cwd: &Path) -> String {
    let quoted = |text: &OsStr| aop_supervisor::shown::word(text);
    let mut words = vec!["cd".to_owned(), quoted(cwd.as_os_str()), "&&".to_owned(), "env".to_owned()];
    for name in around.env.keys().filter(|name| !attach.env.contains_key(*name)) {
        words.extend(["-u".to_owned(), quoted(name)]);
    }
    words.extend(attach.own.iter().map(|(name, value)| format!("{}={}", name.display(), quoted(value))));
    words.extend(attach.argv.iter().map(|word| shell_quoted(word)));
    words.join(" ")
}
