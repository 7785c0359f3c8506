//! `aop runners`: who works on a shared project, and giving up one that will not come back.

use super::status::{coloured, has_worker};
use crate::cli::Global;
use crate::output::style::{bold, clean, dim, green, yellow};
use crate::output::table::fitting;
use crate::output::when::relative;
use crate::output::{CommandResult, Reply};
use crate::project::{Project, Session};
use aop_kernel::time::Timestamp;
use aop_kernel::{Envelope, Refusal};
use aop_supervisor::{AtWork, RunnerRecord, at_work, forget_runner};
use serde_json::{Value, json};

/// Show the runners of a shared project: folders in which `aop run` works on it
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  aop runners\n  aop runners forget n_01J9ZQ4V7K3M2N1P0R5S6T7V8W\n\nOnly a project on PostgreSQL has runners; see docs/team.md."
)]
pub(crate) struct RunnersArgs {
    #[command(subcommand)]
    command: Option<RunnersCommand>,
}

#[derive(Debug, clap::Subcommand)]
enum RunnersCommand {
    /// Give up a runner that will not come back: others take its features at once
    #[command(after_help = "Example:\n  aop runners forget n_01J9ZQ4V7K3M2N1P0R5S6T7V8W")]
    Forget {
        /// The runner's id, as `aop runners` shows it
        runner_id: String,
    },
}

/// Lists, or forgets.
pub(crate) fn run(global: &Global, args: &RunnersArgs) -> CommandResult {
    let session = Project::find(global)?.open()?;
    match &args.command {
        None => list(&session),
        Some(RunnersCommand::Forget { runner_id }) => {
            let record = session.wait(forget_runner(session.store(), runner_id))?;
            let text =
                format!("{} is given up; others take what waited for it.", bold(&clean(&record.name())));
            Ok(Reply::ok(Envelope::success(&json!({"runner_id": record.runner_id})), text))
        }
    }
}

fn list(session: &Session) -> CommandResult {
    let work = look(session)?;
    let now = work.now;
    let rows: Vec<Vec<String>> = work
        .runners
        .iter()
        .map(|record| {
            vec![
                bold(&record.runner_id),
                clean(&record.name()),
                state(record, now),
                dim(&clean(&record.engines.join(", "))),
            ]
        })
        .collect();
    let text = if rows.is_empty() {
        let run = if work.anybody { "A run is active here." } else { "No run is active." };
        format!("{run} Only projects on PostgreSQL have several runners; each folder with `aop run` is one.")
    } else {
        fitting(&["RUNNER", "WHERE", "STATE", "ENGINES"], &rows, None)
    };
    Ok(Reply::ok(Envelope::success(&json!({"runners": shown(&work)})), text))
}

/// Who works on the project, here or elsewhere.
pub(super) fn look(session: &Session) -> Result<AtWork, Refusal> {
    session.wait(at_work(session.store(), &session.project.root))
}

/// Where a feature stands after a command, read from what the command gave, and who goes on with it.
pub(super) fn way_of(session: &Session, data: &Value, status: &str) -> String {
    let field = |key: &str| clean(data[key].as_str().unwrap_or_default());
    let (id, status) = (bold(&field("feature_id")), field(status));
    if !has_worker(&status) {
        return format!("{id} is {}.", coloured(&status));
    }
    // What the command did stands, also when the store cannot be asked any more.
    if look(session).is_ok_and(|work| !work.anybody) {
        let run = bold("`aop run`");
        return format!("{id} is back in {status}; start {run} to continue.");
    }
    format!("{id} goes on in {status}.")
}

/// Runners for programs.
pub(super) fn shown(work: &AtWork) -> Vec<Value> {
    let one = |record: &RunnerRecord| {
        let gone = record.gone_since(work.now);
        json!({"runner_id": record.runner_id, "host": record.run.info.host, "folder": record.folder,
            "engines": record.engines, "run_id": record.run.info.run_id, "pid": record.run.info.pid,
            "since": record.run.info.since, "seen": record.seen, "alive": gone.is_none(), "gone_since": gone})
    };
    work.runners.iter().map(one).collect()
}

/// Runners in one line; nothing where there are none.
pub(super) fn line(work: &AtWork) -> Option<String> {
    if work.runners.is_empty() {
        return None;
    }
    let one = |record: &RunnerRecord| format!("{} {}", clean(&record.name()), state(record, work.now));
    let each: Vec<String> = work.runners.iter().map(one).collect();
    Some(format!("Runners: {}", each.join(" · ")))
}

fn state(record: &RunnerRecord, now: Timestamp) -> String {
    match record.gone_since(now) {
        None => green("at work"),
        Some(since) => yellow(&format!("gone {}", relative(since))),
    }
}
