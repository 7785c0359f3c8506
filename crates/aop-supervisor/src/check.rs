//! Checks: the project's own commands, on exactly one commit of a feature's worktree. What they wrote is kept; a
//! failure goes back to the builder with it, a few times, and then to a person.

use crate::SURFACE;
use crate::git::Git;
use crate::note::count_unread;
use crate::process::{Ending, run_shell};
use crate::runner::{Context, Stop};
use crate::unawaited;
use aop_engine::process::agent_variables;
use aop_kernel::feature::Feature;
use aop_kernel::lifecycle::{AppendLog, BeginCheck, Command, EndCheck, back_to_building};
use aop_kernel::log::short;
use aop_kernel::own::OwnOperation;
use aop_kernel::status::Status;
use aop_kernel::tools::runner_request;
use aop_kernel::work::CheckName;
use aop_kernel::{ErrorCode, Refusal};
use aop_store::{Shelf, crash_point, open_file};
use aop_turn::Role;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// As much of a failing command's output as the builder is shown.
const SHOWN_BYTES: u64 = 8 << 10;

/// The note on a phase without checks.
const NO_COMMANDS: &str = "none are configured";

/// What came of the checks on one commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckReport {
    /// Which.
    pub name: CheckName,
    /// On which commit.
    pub commit: String,
    /// Whether all passed.
    pub passed: bool,
    /// In one line.
    pub note: String,
    /// The end of the output of the command that failed.
    pub output: String,
    /// Where all of it stands.
    pub log: Option<PathBuf>,
}

/// The key of the last report.
pub(crate) fn report_key(feature: &Feature) -> String {
    format!("{}/check", feature.id)
}

/// Runs the checks of a phase and moves the feature on, or back.
pub(crate) async fn run_checks(context: &Context, feature: &Feature, name: CheckName) -> Result<(), Stop> {
    unawaited::admit(context, feature, name).await?;
    let worktree = context.worktree(&feature.id).await?;
    let message =
        format!("aop: {} of {}", if name == CheckName::Fast { "building" } else { "qa" }, feature.id);
    let commit = context.git.commit_all(&feature.id, &message).await;
    let commit = commit.map_err(|error| Refusal::from(error.stopping(&feature.id)))?;
    let check = begin(context, feature, name, &commit).await?;
    let report = run_commands(context, feature, name, &worktree, &commit).await?;
    end(context, feature, check, report).await
}

/// The builder is done, and its work is not here: as good as checks that failed.
pub(crate) async fn fail_checks(context: &Context, feature: &Feature, why: &str) -> Result<(), Stop> {
    let (name, commit) = (CheckName::Fast, String::from("none"));
    let check = begin(context, feature, name, &commit).await?;
    let (note, output) = (why.to_owned(), String::new());
    end(context, feature, check, CheckReport { name, commit, passed: false, note, output, log: None }).await
}

/// A check that has begun.
struct Begun {
    epoch: u64,
    name: String,
}

async fn begin(context: &Context, feature: &Feature, name: CheckName, commit: &str) -> Result<Begun, Stop> {
    let epoch = context.fence(&feature.id)?.epoch;
    let (feature_id, commit) = (feature.id.clone(), commit.to_owned());
    let begin = Command::BeginCheck(BeginCheck { feature_id, name, epoch, commit });
    let name = format!("{}:{}:{epoch}", feature.id, feature.version);
    context.submit(runner_request(begin, OwnOperation::Check.id(&name)?, SURFACE)).await?;
    crash_point("check_began");
    Ok(Begun { epoch, name })
}

async fn end(context: &Context, feature: &Feature, begun: Begun, report: CheckReport) -> Result<(), Stop> {
    context.place(&feature.id, Shelf::Results, report_key(feature), Some(json!(report))).await?;
    let mut to = next_status(context, feature, &report);
    let is_ready = matches!(to, Some((Status::ReadyToMerge, _)));
    if let (Some((Status::ReadyToMerge, reason)), Some(unread)) = (&mut to, unread(context, feature).await?) {
        reason.push_str(&format!("; {unread}, see `aop log --feature-id {}`", feature.id));
    }
    let end = Command::EndCheck(EndCheck {
        feature_id: feature.id.clone(),
        name: report.name,
        epoch: begun.epoch,
        to,
        commit: report.commit,
        passed: report.passed,
        note: report.note,
    });
    let id = OwnOperation::Check.id(format_args!("{}:end", begun.name))?;
    context.submit(runner_request(end, id, SURFACE)).await?;
    crash_point("check_ended");
    if is_ready {
        tell_unread(context, feature, &begun).await?;
    }
    unawaited::forget(context, feature).await
}

/// That notes lie there which no turn has read.
async fn unread(context: &Context, feature: &Feature) -> Result<Option<String>, Stop> {
    let count = count_unread(context.store(), &feature.id).await?;
    Ok(match count {
        0 => None,
        1 => Some("1 note was read by no turn".to_owned()),
        count => Some(format!("{count} notes were read by no turn")),
    })
}

/// No turn comes by itself any more, so the log says of notes that came too late for the last one how they are read all
/// the same. It is looked again behind the commit: whoever leaves one after that is told by `aop send`.
async fn tell_unread(context: &Context, feature: &Feature, begun: &Begun) -> Result<(), Stop> {
    let Some(unread) = unread(context, feature).await? else { return Ok(()) };
    let (feature_id, name) = (feature.id.clone(), &begun.name);
    let back = back_to_building(&feature_id, feature.version, "unread");
    let note = format!("{unread}; to have them read, send the feature back to its builder: `{back}`");
    context.say(&feature_id, &note);
    let command = Command::AppendLog(AppendLog { feature_id, note });
    let id = OwnOperation::Check.id(format_args!("{name}:unread"))?;
    context.submit(runner_request(command, id, SURFACE)).await.map(drop)
}

/// Where the feature goes: on, back to the builder, or to a person when the builder had its rounds.
fn next_status(context: &Context, feature: &Feature, report: &CheckReport) -> Option<(Status, String)> {
    match (report.name, report.passed) {
        (CheckName::Fast, true) => Some((Status::Qa, String::new())),
        (CheckName::Full, true) => {
            let checked = match report.note.as_str() {
                NO_COMMANDS => "no full checks are configured".to_owned(),
                note => format!("full checks passed: {note}"),
            };
            let reason = format!("merge with `aop merge --feature-id {}` ({checked})", feature.id);
            Some((Status::ReadyToMerge, reason))
        }
        (name, false) if feature.work.returns >= context.settings.repair_rounds => Some((
            Status::Blocked,
            format!(
                "the {name} checks still fail after {} rounds: {} (look at {}, then `aop retry --feature-id {}`)",
                feature.work.returns,
                report.note,
                report.log.as_ref().map(|path| path.display().to_string()).unwrap_or_default(),
                feature.id
            ),
        )),
        (CheckName::Fast, false) => None,
        (CheckName::Full, false) => {
            Some((Status::Building, format!("the full checks failed: {}", report.note)))
        }
    }
}

async fn run_commands(
    context: &Context,
    feature: &Feature,
    name: CheckName,
    worktree: &Path,
    commit: &str,
) -> Result<CheckReport, Stop> {
    let checks = &context.settings.checks;
    let commands = match name {
        CheckName::Fast => &checks.fast,
        CheckName::Full => &checks.full,
    };
    let report = |passed, note: String, output: String, log| CheckReport {
        name,
        commit: commit.to_owned(),
        passed,
        note,
        output,
        log,
    };
    if commands.is_empty() {
        return Ok(report(true, NO_COMMANDS.to_owned(), String::new(), None));
    }
    let id = feature.id.as_str();
    let mut last = None;
    for command in commands {
        let folder = context.turn_dir(&feature.id, &format!("check-{name}"), 0)?;
        // Whatever a check starts is the builder's work, and acts as the builder.
        let agent = agent_variables(&context.settings.root, id, Role::Builder, &format!("check:{name}"));
        let own = [("AOP_FEATURE", id), ("AOP_COMMIT", commit)];
        let own = own.map(|(name, value)| (name.into(), value.into()));
        let variables = agent.into_iter().chain(own).collect();
        context.say(&feature.id, &format!("runs {command}"));
        let ending = run_shell(&context.settings, command, worktree, &folder, variables);
        let ending = context.until_stopped(&feature.id, ending).await?;
        let ending = ending.map_err(|error| Refusal::new(ErrorCode::EngineFailed, error.to_string()))?;
        unawaited::stop_if_left(context, feature, name, command, &ending).await?;
        let path = folder.join("transcript.jsonl");
        let note = match ending {
            Ending::Exited(0) if context.git.is_still_at(&feature.id, commit).await => {
                last = Some(path);
                continue;
            }
            // The commit that it passed is then not the one that would be merged.
            Ending::Exited(0) => format!(
                "`{command}` moved the branch {} away from {}, which it was run on: a check makes no commits",
                Git::branch(&feature.id),
                short(commit)
            ),
            Ending::Exited(code) => format!("`{command}` exited with {code}"),
            Ending::TimedOut => format!("`{command}` took longer than {} s", checks.timeout.as_secs()),
            Ending::TooMuch => format!("`{command}` wrote more than a check may"),
        };
        let output = tail(&path).unwrap_or_else(|error| format!("({}: {error})", path.display()));
        return Ok(report(false, note, output, Some(path)));
    }
    let count = commands.len();
    let note = format!("{count} command{} at {}", if count == 1 { "" } else { "s" }, short(commit));
    Ok(report(true, note, String::new(), last))
}

/// The end of what was written.
fn tail(path: &Path) -> std::io::Result<String> {
    let mut file = open_file(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(SHOWN_BYTES)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
