//! `aop run` and `aop resume`: features from specification to ready-to-merge, around the questions of their agents.

pub(crate) mod enrol;
mod frame;
mod keys;
mod lines;
pub(crate) mod live;

use super::engine::list::{Found, installed};
use crate::cli::Global;
use crate::config::{ExecutionMode, Permissions, Switch};
use crate::number::at_least;
use crate::open_files;
use crate::output::live::give_back;
use crate::output::style::clean;
use crate::output::{CommandResult, INTERRUPTED, Reply, Screen, talk, warn};
use crate::place::Place;
use crate::project::{Project, Session};
use aop_engine::{Limits, Surroundings};
use aop_kernel::status::Status;
use aop_kernel::{ErrorCode, Refusal};
use aop_store::Files;
use aop_supervisor::{
    Checks, Drivers, EngineChoice, Git, Identity, Notice, Reason, RunEnd, RunInfo, RunLease, Runner,
    Settings, Takeover, Worktrees, end_running_gits, runner_id,
};
use aop_turn::{Engine, Mode};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

/// Work on features: plan, build, judge; ask people on the way
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aop run checkout.md search.md      two more features, and all that is not done
  aop run --max-parallel 8           go on with what there is
  aop run --mode auto                nobody is there: agents decide
  aop run --exit-when-parked         leave with 3 when all that is left waits

Ctrl-C stops the engines and gives the project back; the next `aop run` goes on where this one stopped. \
A second Ctrl-C leaves at once.")]
pub(crate) struct RunArgs {
    /// Specification files; each becomes a feature named after the file (lower case, other characters as -)
    #[arg(value_name = "SPEC.md")]
    specs: Vec<PathBuf>,
    #[command(flatten)]
    how: How,
}

/// Continue after a stop; same as `aop run` without files
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  aop resume")]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    how: How,
}

#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct How {
    /// Whether people may be asked: interactive or auto (default: run.execution_mode of aop.yaml)
    #[arg(long, value_parser = ["interactive", "auto"])]
    mode: Option<String>,
    /// How many features are worked on at once (default: run.max_parallel)
    #[arg(long, value_name = "N", value_parser = at_least::<u32>(1))]
    max_parallel: Option<u32>,
    /// Leave with exit code 3 when all that is left waits for a person, and no engine is kept running for that
    #[arg(long)]
    exit_when_parked: bool,
    /// Take the project (on PostgreSQL: this folder) over from a run that still holds it
    #[arg(long)]
    takeover: bool,
    /// The engine for every role (default: engines of aop.yaml)
    #[arg(long, value_name = "ENGINE")]
    engine: Option<String>,
    /// No bell when a question opens
    #[arg(long)]
    no_bell: bool,
}

/// Enrols and runs.
pub(crate) fn run(global: &Global, screen: &Screen, args: RunArgs) -> CommandResult {
    let specs = enrol::read(&args.specs)?;
    start(global, screen, &args.how, specs)
}

/// Runs.
pub(crate) fn resume(global: &Global, screen: &Screen, args: ResumeArgs) -> CommandResult {
    start(global, screen, &args.how, Vec::new())
}

fn start(global: &Global, screen: &Screen, how: &How, specs: Vec<enrol::Spec>) -> CommandResult {
    open_files::raise();
    let session = Project::find(global)?.open_to_stay()?;
    let settings = settings(&session, how)?;
    let takeover = if how.takeover { Takeover::Force } else { Takeover::IfDead };
    let bell = session.project.config.notify.bell && !how.no_bell;
    let show = if screen.is_text() { Show::Table { bell, answers: Answers::Person } } else { Show::Lines };
    let end = session.wait(conduct(&session, show, takeover, settings, specs));
    if is_away(&end) {
        // Whatever still waits for the store on its threads is not waited for: it ends with the process.
        std::mem::forget(session);
        return Ok(Reply::printed().exit(exit_code(&end?)));
    }
    let end = end?;
    session.project_files();
    Ok(Reply::printed().exit(exit_code(&end)))
}

/// Whether the run ended without its store.
fn is_away(end: &Result<RunEnd, Refusal>) -> bool {
    match end {
        Ok(end) => !end.given_back,
        Err(refusal) => refusal.code == ErrorCode::StoreUnavailable,
    }
}

/// Who answers the questions of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    /// A person, at this terminal or elsewhere.
    Person,
    /// The program that shows the run.
    Itself,
}

/// What is shown of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Show {
    /// A table that lives, for people.
    Table {
        /// Whether a question rings.
        bell: bool,
        /// Who answers them.
        answers: Answers,
    },
    /// JSON lines, for programs.
    Lines,
    /// Nothing.
    Nothing,
}

/// Says for what it waits when that is not there at once.
async fn take(lease: impl Future<Output = Result<RunLease, Refusal>>) -> Result<RunLease, Refusal> {
    tokio::pin!(lease);
    tokio::select! {
        taken = &mut lease => taken,
        () = tokio::time::sleep(Duration::from_secs(1)) => {
            talk("Still waiting for this project: another run may have it; one that is gone is waited for 15 seconds …");
            lease.await
        }
    }
}

/// Takes the project, enrols, runs, gives the project back.
pub(crate) async fn conduct(
    session: &Session,
    show: Show,
    takeover: Takeover,
    settings: Settings,
    specs: Vec<enrol::Spec>,
) -> Result<RunEnd, Refusal> {
    let service = session.service.clone();
    if settings.worktrees == Worktrees::Git {
        // Before anything is written down: a specification can still be changed then.
        Git::new(&settings.root).check_repository().await?;
    }
    // Before anybody is waited for, or taken over from: another run is not ended for one that does not begin.
    enrol::look(session, &specs).await?;
    let (runner, place) = match &session.place {
        Place::Sqlite(_) => (None, "project"),
        Place::Postgres(_) => (Some(identity(session, &settings).await?), "folder"),
    };
    let lease = RunLease::acquire(Arc::clone(&service.store), &settings.root, takeover, runner);
    let lease = take(lease).await?;
    let after = service.store.last().await?;
    if let Err(refusal) = enrol::enrol(session, &specs).await {
        lease.release().await?;
        return Err(refusal);
    }
    let (stop, stopped) = stop_on_signals()?;
    let (notices, shown) = mpsc::unbounded_channel::<Notice>();
    let files = match session.project.config.projections {
        Switch::On => {
            let notices = notices.clone();
            // Through the view, where there is one: it knows what stands on the terminal.
            let tell = move |why: &str| {
                if notices.send(Notice::Warning(why.to_owned())).is_err() {
                    warn(why);
                }
            };
            Some(Files::start(session.project.dir(), Arc::clone(&service.store), tell))
        }
        Switch::Off => None,
    };
    let view = match show {
        Show::Table { bell, answers } => {
            let (info, project) = (&lease.info, &session.project);
            let watched = live::Watched { service: &service, info, project, after, bell, answers, stop };
            View::Live(live::Live::start(watched, shown))
        }
        Show::Lines => View::Lines(lines::Lines::start(&service, &lease.info, after, shown)),
        Show::Nothing => View::None,
    };
    let drivers = drivers(&settings);
    let named = specs.iter().map(|spec| spec.id().clone());
    let end = Runner::new(service, settings, drivers, lease, notices).naming(named).run(stopped).await;
    // Without the store there is nothing more to write or to show.
    let rest = if is_away(&end) { Rest::Dropped } else { Rest::Shown };
    if let Some(files) = files
        && rest == Rest::Shown
    {
        files.finish().await;
    }
    match view {
        View::Live(live) => live.finish(end.as_ref().ok(), rest).await,
        View::Lines(lines) => lines.finish(end.as_ref().ok(), rest).await,
        View::None => {}
    }
    if let Ok(RunEnd { reason: Reason::TakenOver, taken_over_by, .. }) = &end {
        warn(&taken_over(taken_over_by.as_ref(), place));
    } else if end.as_ref().is_ok_and(|end| !end.given_back) {
        warn(
            "the store could not be reached, so the project was not given back; another machine can go on after 15 seconds",
        );
    }
    end
}

/// Who is in the place of a run that was taken over.
fn taken_over(by: Option<&RunInfo>, place: &str) -> String {
    let who = by.map_or("another run".to_owned(), |RunInfo { run_id, pid, host, .. }| {
        format!("run {run_id} (process {pid} on {})", clean(host))
    });
    format!(
        "{who} took this {place} over; this run has stopped, and its engines with it. `aop status` shows where everything stands"
    )
}

/// This folder as one of the runners that share a project.
async fn identity(session: &Session, settings: &Settings) -> Result<Identity, Refusal> {
    let found = installed(&settings.around).await;
    let engines = found.into_iter().filter(Found::is_usable).map(|found| found.engine).collect();
    Ok(Identity { id: runner_id(&session.project.dir())?, folder: settings.root.clone(), engines })
}

/// What becomes of that which is committed and not shown yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    Shown,
    Dropped,
}

enum View {
    Live(live::Live),
    Lines(lines::Lines),
    None,
}

/// 0 when all is done; 1 when something failed or another run is in this one's place; 3 when something waits or is blocked.
fn exit_code(end: &RunEnd) -> u8 {
    match end.reason {
        Reason::Stopped => return INTERRUPTED,
        Reason::TakenOver => return 1,
        Reason::Finished | Reason::Parked => {}
    }
    let any = |wanted: &[Status]| end.features.iter().any(|feature| wanted.contains(&feature.status));
    // A feature that waits for another runner is still in its phase.
    let unfinished = [Status::Blocked, Status::AwaitingInput, Status::Planning, Status::Building, Status::Qa];
    if any(&unfinished) {
        3
    } else if any(&[Status::Failed]) {
        1
    } else {
        0
    }
}

/// Signals have a thread of their own: whatever the others wait for, the second one is heard.
fn stop_on_signals() -> Result<(watch::Sender<bool>, watch::Receiver<bool>), Refusal> {
    let (sender, receiver) = watch::channel(false);
    let (told, (ready, listening)) = (sender.clone(), channel());
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        let failed = runtime.and_then(|runtime| runtime.block_on(obey_signals(&told, &ready)));
        let _ = ready.send(failed);
    });
    match listening.recv() {
        Ok(Err(error)) => {
            Err(Refusal::new(ErrorCode::Internal, format!("cannot install signal handlers: {error}")))
        }
        Ok(Ok(())) | Err(_) => Ok((sender, receiver)),
    }
}

/// The first stops the run, the second ends the program. Comes back only when it cannot listen.
async fn obey_signals(
    told: &watch::Sender<bool>,
    ready: &Sender<std::io::Result<()>>,
) -> std::io::Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let _ = ready.send(Ok(()));
    loop {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        if told.send_replace(true) {
            leave();
        }
    }
}

/// Ends the program at once: somebody has said twice that they do not want to wait. The guards end what engines left;
/// git has none.
#[expect(clippy::exit, reason = "whatever waits on any thread must not be waited for")]
fn leave() -> ! {
    end_running_gits();
    give_back();
    std::process::exit(INTERRUPTED.into())
}

pub(crate) fn settings(session: &Session, how: &How) -> Result<Settings, Refusal> {
    let config = &session.project.config;
    let root = session.project.root.canonicalize().map_err(|error| {
        Refusal::new(ErrorCode::Internal, format!("{}: {error}", session.project.root.display()))
    })?;
    let mode = match (how.mode.as_deref(), config.run.execution_mode) {
        (Some("auto"), _) | (None, ExecutionMode::Auto) => Mode::Auto,
        (Some(_), _) | (None, ExecutionMode::Interactive) => Mode::Interactive,
    };
    let engines = match how.engine.as_deref() {
        None => config.engines.choice(),
        Some(name) => EngineChoice::all(Engine::parse(name).ok_or_else(|| {
            let names: Vec<&str> = Engine::ALL.iter().map(|engine| engine.as_str()).collect();
            Refusal::invalid_argument(format!("engine '{name}' is not known"))
                .hint(format!("the engines are {}", names.join(", ")))
        })?),
    };
    let around = Surroundings::of_this_process().map_err(|error| {
        Refusal::new(ErrorCode::Internal, format!("cannot determine the path of the aop binary: {error}"))
    })?;
    Ok(Settings {
        root,
        mode,
        max_parallel: how.max_parallel.unwrap_or(config.run.max_parallel.0) as usize,
        max_attempt: config.run.max_attempt.0,
        repair_rounds: config.run.repair_rounds,
        retries: config.run.retries,
        retry_wait: Duration::from_secs(config.run.retry_wait_s.into()),
        warm: Duration::from_millis(config.run.warm_ms),
        engines,
        permissions: match config.engines.permissions {
            Permissions::Auto => aop_turn::command::Permissions::Auto,
            Permissions::Ask => aop_turn::command::Permissions::Ask,
        },
        limits: Limits::default(),
        checks: Checks {
            fast: config.checks.fast.clone(),
            full: config.checks.full.clone(),
            timeout: Duration::from_secs(config.checks.timeout_s.0.into()),
        },
        around,
        git_timeout: Duration::from_secs(config.run.git_timeout_s.0.into()),
        away: Duration::from_millis(config.runners.away_ms),
        exit_when_parked: how.exit_when_parked,
        worktrees: Worktrees::Git,
    })
}

fn drivers(settings: &Settings) -> Drivers {
    let (around, permissions) = (settings.around.clone(), settings.permissions);
    Arc::new(move |engine| {
        aop_engine::check_permissions(engine, permissions)?;
        Ok(Arc::from(aop_engine::driver(engine, &around)))
    })
}
