//! The project: found upward from the working directory, its settings, and an open session on its store.

use crate::agent;
use crate::cli::{Global, NO_FOLDER};
use crate::config::{Config, Switch};
use crate::output::voice::Voice;
use crate::output::warn;
use crate::place::{Place, Stay};
use aop_engine::AOP_DIR;
use aop_kernel::ids::{FeatureId, OperationId};
use aop_kernel::lifecycle::Request;
use aop_kernel::role::{Caller, Role};
use aop_kernel::tools::Tool;
use aop_kernel::{Envelope, ErrorCode, Refusal};
use aop_store::{AtWork, Projector, Receipt, Service, Store, fresh_operation};
use aop_supervisor::at_work;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;

/// What this program calls itself in the resolution of a question.
pub(crate) const SURFACE: &str = "cli";

/// A project on disk.
pub(crate) struct Project {
    pub(crate) root: PathBuf,
    pub(crate) config: Config,
}

impl Project {
    /// Finds the project and reads its settings. Writes nothing.
    pub(crate) fn find(global: &Global) -> Result<Self, Refusal> {
        Project::at(Project::find_root(global)?)
    }

    /// The project with this root, and its settings.
    pub(crate) fn at(root: PathBuf) -> Result<Self, Refusal> {
        let config = Config::load(&root.join("aop.yaml"))?;
        Ok(Project { root, config })
    }

    /// Where the project is.
    pub(crate) fn find_root(global: &Global) -> Result<PathBuf, Refusal> {
        Ok(match &global.project {
            // Only `aop mcp install` takes it without a folder.
            Some(root) if root.as_os_str() == NO_FOLDER => return Err(no_folder()),
            Some(root) if root.join(AOP_DIR).is_dir() => root.clone(),
            Some(root) => return Err(no_project(&format!("{} has no {AOP_DIR}/ folder", root.display()))),
            None => {
                let here = std::env::current_dir()
                    .map_err(|error| no_project(&format!("the working directory cannot be read: {error}")))?;
                Project::above(&here).ok_or_else(|| {
                    no_project(&format!(
                        "neither {} nor a folder above it has an {AOP_DIR}/ folder",
                        here.display()
                    ))
                })?
            }
        })
    }

    /// The root of the project that this folder is in.
    pub(crate) fn above(here: &Path) -> Option<PathBuf> {
        here.ancestors().find(|folder| folder.join(AOP_DIR).is_dir()).map(Path::to_path_buf)
    }

    /// How the project is named where whoever opens another terminal in this folder would not find it.
    pub(crate) fn elsewhere(&self) -> Option<String> {
        let found = std::env::current_dir().ok().and_then(|here| Project::above(&here));
        let is_found = found.is_some_and(|found| found.canonicalize().ok() == self.root.canonicalize().ok());
        (!is_found).then(|| aop_supervisor::shown::word(&self.root))
    }

    /// The `.aop` folder.
    pub(crate) fn dir(&self) -> PathBuf {
        self.root.join(AOP_DIR)
    }

    /// Opens the store in the name of a human, or of the agent that the environment names.
    pub(crate) fn open(self) -> Result<Session, Refusal> {
        let caller = agent::caller(Role::Human, None)?;
        self.open_as(caller)
    }

    /// The same for a run or a server, which waits longer for another process that writes.
    pub(crate) fn open_to_stay(self) -> Result<Session, Refusal> {
        let caller = agent::caller(Role::Human, None)?;
        self.open_for(caller, Stay::Long)
    }

    /// Opens the store for this caller.
    pub(crate) fn open_as(self, caller: Caller) -> Result<Session, Refusal> {
        self.open_for(caller, Stay::Short)
    }

    fn open_for(self, caller: Caller, stay: Stay) -> Result<Session, Refusal> {
        let place = Place::of(&self.dir(), &self.config.store)?;
        let store = place.open(&self.dir(), stay)?;
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
                Refusal::new(ErrorCode::Internal, format!("the runtime did not start: {error}"))
            })?;
        let rules = Arc::new(self.config.rules());
        let service = Service::new(Arc::clone(&store), rules).noticing(at_work_in(&self.root, store));
        Ok(Session { project: self, place, service, caller, runtime })
    }
}

/// Looks whether anybody works on the project in this folder. Where that cannot be found out, the log has the word.
fn at_work_in(root: &Path, store: Arc<dyn Store>) -> AtWork {
    let root = root.to_path_buf();
    Arc::new(move || {
        let (store, root) = (Arc::clone(&store), root.clone());
        Box::pin(async move { at_work(store.as_ref(), &root).await.map_or(true, |work| work.anybody) })
    })
}

/// `--project` without its folder.
pub(crate) fn no_folder() -> Refusal {
    Refusal::invalid_argument("--project names no folder")
        .hint("write `--project DIR`, or leave it out")
        .fact("argument", "project")
}

fn no_project(message: &str) -> Refusal {
    Refusal::new(ErrorCode::NoProject, message)
}

/// An open store, the caller, and something to wait with.
pub(crate) struct Session {
    pub(crate) project: Project,
    pub(crate) place: Place,
    pub(crate) service: Service,
    pub(crate) caller: Caller,
    runtime: Runtime,
}

/// What asks a command that waits to end.
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    /// One has come.
    noticed: bool,
}

impl Interrupts {
    /// Waits for the first.
    async fn come(&mut self) {
        if !self.noticed {
            tokio::select! {
                _ = self.interrupt.recv() => {}
                _ = self.terminate.recv() => {}
            }
            self.noticed = true;
        }
    }
}

/// How long a request that was sent is waited for after an interrupt: nearly always it is committed by then, and whoever
/// interrupted learns what became of it. So long also for a line that is half out.
const FAREWELL: Duration = Duration::from_secs(1);

impl Session {
    /// Waits for a call.
    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// From now on Ctrl-C and SIGTERM are noticed by [`Session::wait_patiently`] instead of ending the process.
    pub(crate) fn notice_interrupts(&self) -> Result<Interrupts, Refusal> {
        let _inside = self.runtime.enter();
        let noticed = |kind| {
            signal(kind).map_err(|error| {
                Refusal::new(ErrorCode::Internal, format!("cannot install signal handlers: {error}"))
            })
        };
        Ok(Interrupts {
            interrupt: noticed(SignalKind::interrupt())?,
            terminate: noticed(SignalKind::terminate())?,
            noticed: false,
        })
    }

    /// Waits for something that may take as long as a human does. `None` when it was interrupted.
    pub(crate) fn wait_patiently<T>(
        &self,
        interrupts: &mut Interrupts,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        self.wait(async {
            tokio::select! {
                result = future => Some(result),
                () = interrupts.come() => None,
            }
        })
    }

    /// Says the last words. Whether they are out: whoever does not read is not waited for much longer.
    pub(crate) fn say_last(&self, voice: &Voice, words: impl FnOnce() + Send + 'static) -> bool {
        self.wait(async { timeout(FAREWELL, voice.say(words)).await.is_ok() })
    }

    /// The store.
    pub(crate) fn store(&self) -> &dyn Store {
        self.service.store.as_ref()
    }

    /// Runs a tool and brings the files up to date when it changed something.
    pub(crate) fn call(&self, tool: Tool, input: &Value) -> Result<Envelope, Refusal> {
        let result = self.wait(self.service.call(tool, &self.caller, input, SURFACE));
        if tool.is_mutating() {
            self.project_after(result.as_ref().err());
        }
        result
    }

    /// Commits a request and brings the files up to date.
    pub(crate) fn submit(&self, request: Request) -> Result<Envelope, Refusal> {
        self.submitted(self.wait(self.service.submit(request)))
    }

    /// The same, where the store may be busy for long. `None` when it was interrupted and still is: the operation id tells
    /// later whether the request was committed, and the session is not to be dropped, which would wait for that.
    pub(crate) fn submit_patiently(
        &self,
        interrupts: &mut Interrupts,
        request: Request,
    ) -> Option<Result<Envelope, Refusal>> {
        let mut sent = Box::pin(self.service.submit(request));
        let result = self.wait_patiently(interrupts, &mut sent);
        let result = result.or_else(|| self.wait(async { timeout(FAREWELL, sent).await.ok() }));
        result.map(|result| self.submitted(result))
    }

    fn submitted(&self, result: Result<Receipt, Refusal>) -> Result<Envelope, Refusal> {
        self.project_after(result.as_ref().err());
        Ok(result?.envelope)
    }

    /// Brings the files up to date after a mutation. One that was refused for the state of its feature may have
    /// committed an expiry first, and the log that people read has to show it.
    fn project_after(&self, refused: Option<&Refusal>) {
        match refused {
            None => self.project_files(),
            Some(refusal) if by_state(refusal.code) => self.project("nothing was changed, and the files"),
            Some(_) => {}
        }
    }

    /// Writes the files of what changed. A failure is a warning: the operation stands.
    pub(crate) fn project_files(&self) {
        self.project("the change is stored, but its files");
    }

    fn project(&self, what: &str) {
        if self.project.config.projections == Switch::Off {
            return;
        }
        if let Err(error) = self.wait(Projector::new(&self.project.dir()).catch_up(self.store())) {
            warn(&format!("{what} are behind: {error} (`aop doctor --repair` rebuilds them)"));
        }
    }

    /// The feature a bound worker is confined to.
    pub(crate) fn own_feature(&self) -> Option<FeatureId> {
        self.caller.feature.clone().filter(|_| self.caller.role.is_worker())
    }
}

/// Whether a refusal came from the state of a feature, and not from the call or the store.
fn by_state(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::QuestionNotFound
            | ErrorCode::QuestionAlreadyAnswered
            | ErrorCode::QuestionClosed
            | ErrorCode::QuestionInvalidAnswer
            | ErrorCode::QuestionConflictOpen
            | ErrorCode::QuestionAnswerNotAllowedInTerminalState
            | ErrorCode::QuestionOpenBlocksAction
            | ErrorCode::UnsupportedOperation
            | ErrorCode::InvalidStatusTransition
    )
}

/// The given operation id, or a fresh one.
pub(crate) fn operation_id(given: Option<&str>) -> Result<OperationId, Refusal> {
    match given {
        Some(text) => OperationId::parse(text),
        None => OperationId::parse(&fresh_operation()),
    }
}
