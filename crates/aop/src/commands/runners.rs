//! `aop runners`: who works on a shared project, and giving up one that will not come back.

use super::serve::refuse_agents;
use super::status::{coloured, has_worker};
use crate::cli::Global;
use crate::output::style::{bold, clean, dim, green, yellow};
use crate::output::table::fitting;
use crate::output::when::relative;
use crate::output::{CommandResult, Reply};
use crate::project::{Project, Session};
use aop_kernel::time::Timestamp;
use aop_kernel::{Envelope, Refusal};
use aop_supervisor::{RunnerRecord, forget_runner, is_at_work, runners};
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
            refuse_agents("runners")?;
            let record = session.wait(forget_runner(session.store(), runner_id))?;
            let text =
                format!("{} is given up; others take what waited for it.", bold(&clean(&record.name())));
            Ok(Reply::ok(Envelope::success(&json!({"runner_id": record.runner_id})), text))
        }
    }
}

fn list(session: &Session) -> CommandResult {
    let (found, now) = all(session)?;
    let rows: Vec<Vec<String>> = found
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
        let run = if at_work(session)? { "A run is at work here." } else { "No run is at work." };
        format!(
            "{run} Only on PostgreSQL can several share a project: there every folder with `aop run` is a runner."
        )
    } else {
        fitting(&["RUNNER", "WHERE", "STATE", "ENGINES"], &rows, None)
    };
    Ok(Reply::ok(Envelope::success(&json!({"runners": shown(&found, now)})), text))
}

/// Every runner, and the time.
pub(super) fn all(session: &Session) -> Result<(Vec<RunnerRecord>, Timestamp), Refusal> {
    let found = session.wait(runners(session.store()))?;
    Ok((found, session.wait(session.store().now())?))
}

/// Whether anybody works on the project, here or elsewhere.
pub(super) fn at_work(session: &Session) -> Result<bool, Refusal> {
    session.wait(is_at_work(session.store(), &session.project.root))
}

/// Where a feature stands after a command, read from what the command gave, and who goes on with it.
pub(super) fn way_of(session: &Session, data: &Value, status: &str) -> String {
    let field = |key: &str| clean(data[key].as_str().unwrap_or_default());
    let (id, status) = (bold(&field("feature_id")), field(status));
    if !has_worker(&status) {
        return format!("{id} is {}.", coloured(&status));
    }
    // What the command did stands, also when the store cannot be asked any more.
    if at_work(session).unwrap_or(true) {
        return format!("{id} goes on in {status}.");
    }
    format!("{id} is back in {status}; no run is at work, {} goes on with it.", bold("`aop run`"))
}

/// Runners for programs.
pub(super) fn shown(found: &[RunnerRecord], now: Timestamp) -> Vec<Value> {
    let one = |record: &RunnerRecord| {
        let gone = record.gone_since(now);
        json!({"runner_id": record.runner_id, "host": record.run.info.host, "folder": record.folder,
            "engines": record.engines, "run_id": record.run.info.run_id, "pid": record.run.info.pid,
            "since": record.run.info.since, "seen": record.seen, "alive": gone.is_none(), "gone_since": gone})
    };
    found.iter().map(one).collect()
}

/// Runners in one line; nothing where there are none.
pub(super) fn line(found: &[RunnerRecord], now: Timestamp) -> Option<String> {
    if found.is_empty() {
        return None;
    }
    let each: Vec<String> =
        found.iter().map(|record| format!("{} {}", clean(&record.name()), state(record, now))).collect();
    Some(format!("Runners: {}", each.join(" · ")))
}

fn state(record: &RunnerRecord, now: Timestamp) -> String {
    match record.gone_since(now) {
        None => green("at work"),
        Some(since) => yellow(&format!("gone {}", relative(since))),
    }
}
