//! `aop doctor`: is everything as it should be? `--repair` rebuilds the files from the store.

use crate::cli::Global;
use crate::config::{Config, Switch};
use crate::output::style::{green, red, yellow};
use crate::output::{CommandResult, Reply};
use crate::place::Place;
use crate::project::{Project, Session};
use aop_engine::Surroundings;
use aop_engine::program::known;
use aop_kernel::{Envelope, ErrorCode, Refusal};
use aop_store::Projector;
use aop_supervisor::{Git, unfinished_merges};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use serde::Serialize;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Check the project: settings, store, log, files, and what a run needs
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  aop doctor\n  aop doctor --repair     rebuild the files below .aop/features/ from the store"
)]
pub(crate) struct DoctorArgs {
    /// Rebuild the files below .aop/features/ from the store
    #[arg(long)]
    repair: bool,
}

/// One thing looked at.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    ok: bool,
    /// Nothing is broken, but `aop run` cannot work like that.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    warning: bool,
    message: String,
}

impl Check {
    fn good(name: &'static str, message: impl Into<String>) -> Self {
        Check { name, ok: true, warning: false, message: message.into() }
    }

    fn doubtful(name: &'static str, message: impl Into<String>) -> Self {
        Check { warning: true, ..Check::good(name, message) }
    }

    fn bad(name: &'static str, message: impl Into<String>) -> Self {
        Check { ok: false, ..Check::good(name, message) }
    }

    fn refused(name: &'static str, refusal: &Refusal) -> Self {
        Check::bad(name, format!("{} ({})", refusal.message, refusal.hint))
    }

    fn unseen(name: &'static str) -> Self {
        Check::doubtful(name, "not looked at: that depends on the settings")
    }
}

/// What `aop run` would miss in this project, in sentences.
pub(super) fn missing(session: &Session) -> Result<Vec<String>, Refusal> {
    let checks = [repository(session), engines(session)?];
    Ok(checks.into_iter().filter(|check| check.warning).map(|check| check.message).collect())
}

/// Looks at everything; exit code 1 when something is wrong.
pub(crate) fn run(global: &Global, args: &DoctorArgs) -> CommandResult {
    let root = Project::find_root(global)?;
    let mut checks = vec![Check::good("project", format!("{}", root.display()))];
    match Project::at(root.clone()) {
        Ok(project) => {
            checks.push(settings(&root));
            match project.open() {
                Ok(session) => {
                    checks.push(store(&session));
                    checks.push(log(&session)?);
                    checks.push(files(&session, args.repair)?);
                    checks.push(repository(&session));
                    checks.push(engines(&session)?);
                }
                Err(refusal) => checks.push(Check::refused("store", &refusal)),
            }
        }
        Err(refusal) => {
            checks.push(Check::refused("settings", &refusal));
            without_settings(root, &mut checks)?;
        }
    }
    let healthy = checks.iter().all(|check| check.ok);
    let lines: Vec<String> = checks
        .iter()
        .map(|check| {
            let mark = match (check.ok, check.warning) {
                (true, false) => green("ok  "),
                (true, true) => yellow("warn"),
                (false, _) => red("BAD "),
            };
            format!("{mark} {:<9} {}", check.name, check.message)
        })
        .collect();
    let closing = match (healthy, checks.iter().any(|check| check.warning)) {
        (true, false) => green("All is well."),
        (true, true) => yellow("The project is fine; `aop run` needs the warnings above fixed."),
        (false, _) => yellow("Something needs you, see above."),
    };
    let text = format!("{}\n\n{closing}", lines.join("\n"));
    let envelope = Envelope::success(&json!({"healthy": healthy, "checks": checks}));
    Ok(Reply::ok(envelope, text).exit(u8::from(!healthy)))
}

fn settings(root: &Path) -> Check {
    const NAME: &str = "settings";
    if root.join("aop.yaml").exists() {
        Check::good(NAME, "aop.yaml is valid")
    } else if root.join("aop.yml").exists() {
        Check::doubtful(NAME, "aop.yml is not read, so the defaults apply: `mv aop.yml aop.yaml`")
    } else {
        Check::good(NAME, "there is no aop.yaml, so the defaults apply")
    }
}

/// What can be looked at while nobody knows what the settings say: a line that is wrong in them must not hide what else is.
fn without_settings(root: PathBuf, checks: &mut Vec<Check>) -> Result<(), Refusal> {
    let project = Project { root: root.clone(), config: Config::default() };
    let is_known = Place::is_known_without_settings(&project.dir());
    match is_known.then(|| project.open()) {
        Some(Ok(session)) => {
            checks.extend([store(&session), log(&session)?, Check::unseen("files"), repository(&session)]);
        }
        Some(Err(refusal)) => checks.extend([Check::refused("store", &refusal), repository_alone(&root)?]),
        None => checks.extend([Check::unseen("store"), repository_alone(&root)?]),
    }
    checks.push(Check::unseen("engines"));
    Ok(())
}

/// Whether what opens for reading takes writes too.
fn store(session: &Session) -> Check {
    const NAME: &str = "store";
    let opens = format!("{} opens", session.place.shown());
    let Place::Sqlite(dir) = &session.place else { return Check::good(NAME, opens) };
    let files = ["aop.db", "aop.db-wal", "aop.db-shm", "write.lock"].map(|name| dir.join(name));
    let refuses =
        |path: &PathBuf| matches!(access(path, Access::WRITE_OK), Err(error) if error != Errno::NOENT);
    match std::iter::once(dir.clone()).chain(files).find(refuses) {
        None => Check::good(NAME, opens),
        Some(path) => {
            let message = format!(
                "{opens}, but {} cannot be written: make it writable for you, and its disk",
                path.display()
            );
            Check::bad(NAME, message)
        }
    }
}

/// The tables against a replay of the log.
fn log(session: &Session) -> Result<Check, Refusal> {
    let findings = session.wait(session.store().verify())?;
    if findings.is_empty() {
        return Ok(Check::good("log", "replaying the log gives the same state"));
    }
    Ok(Check::bad("log", findings.join("; ")))
}

/// The files against the store.
fn files(session: &Session, repair: bool) -> Result<Check, Refusal> {
    const NAME: &str = "files";
    if session.project.config.projections == Switch::Off {
        return Ok(Check::good(NAME, "turned off in aop.yaml"));
    }
    let projector = Projector::new(&session.project.dir());
    if repair {
        return Ok(match session.wait(projector.rebuild(session.store())) {
            Ok(count) => Check::good(NAME, format!("rebuilt for {count} features")),
            Err(error) => Check::bad(NAME, error.to_string()),
        });
    }
    Ok(match session.wait(projector.stale(session.store())) {
        Ok(stale) if stale.is_empty() => Check::good(NAME, "all files match the store"),
        Ok(stale) => {
            let first = stale.first().map(|path| path.display().to_string()).unwrap_or_default();
            let behind = match stale.len() {
                1 => "1 file does not match the store,".to_owned(),
                count => format!("{count} files do not match the store, first"),
            };
            Check::bad(NAME, format!("{behind} {first}: run `aop doctor --repair`"))
        }
        Err(error) => Check::bad(NAME, error.to_string()),
    })
}

/// Whether there is a commit that features can branch off, their worktrees can be worked in, and their merges are whole.
fn repository(session: &Session) -> Check {
    let mut told = session.wait(doubts_of_git(&session.project.root));
    let unfinished = unfinished_merges(&session.service, &session.project.root);
    let unfinished = session.wait(unfinished).unwrap_or_default();
    told.extend(unfinished.iter().map(|id| {
        format!(
            "feature '{id}' is merged, and its branch does not have it yet: `aop merge --feature-id {id}` finishes it"
        )
    }));
    if unfinished.is_empty() { in_git(&told) } else { Check::bad(GIT, told.join("; ")) }
}

/// The same as far as it can be told without the store.
fn repository_alone(root: &Path) -> Result<Check, Refusal> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime
        .map_err(|error| Refusal::new(ErrorCode::Internal, format!("the runtime did not start: {error}")))?;
    Ok(in_git(&runtime.block_on(doubts_of_git(root))))
}

const GIT: &str = "git";

fn in_git(told: &[String]) -> Check {
    match told {
        [] => Check::good(GIT, "features can branch off the last commit"),
        told => Check::doubtful(GIT, told.join("; ")),
    }
}

/// What a run could not do in the repository, in words.
async fn doubts_of_git(root: &Path) -> Vec<String> {
    let git = Git::new(root);
    let look = async {
        git.check_repository().await?;
        git.worktrees_in_doubt().await
    };
    let found = look.await.unwrap_or_else(|error| vec![error]);
    let told = found.into_iter().map(Refusal::from);
    told.map(|refusal| format!("{}; {}", refusal.message, refusal.hint)).collect()
}

/// Whether the agent programs of the settings are installed.
fn engines(session: &Session) -> Result<Check, Refusal> {
    const NAME: &str = "engines";
    let around = Surroundings::of_this_process().map_err(|error| {
        Refusal::new(ErrorCode::Internal, format!("cannot determine the path of the aop binary: {error}"))
    })?;
    let choice = session.project.config.engines.choice();
    let mut wanted = Vec::new();
    for engine in [choice.planner, choice.builder, choice.qa] {
        if !wanted.contains(&engine) {
            wanted.push(engine);
        }
    }
    let missing: Vec<String> = wanted
        .iter()
        .filter_map(|engine| known(*engine))
        .filter(|known| around.find(known.program).is_none())
        .map(|known| format!("{} is not installed: `{}`", known.program, known.install))
        .collect();
    if missing.is_empty() {
        let names: Vec<&str> = wanted.iter().map(|engine| engine.as_str()).collect();
        return Ok(Check::good(NAME, format!("here: {}", names.join(", "))));
    }
    Ok(Check::doubtful(NAME, format!("{}, or choose another engine in aop.yaml", missing.join("; "))))
}
