//! Where a project's questions and answers are kept, and which project of a shared database this folder shows.
//!
//! `AOP_STORE` wins over `store:` in `aop.yaml`. The file `.aop/project` holds the name of the project on
//! PostgreSQL; without it the folder has the embedded store. A folder is never silently moved from one to the
//! other: `aop init` does that.

use crate::config::StoreChoice;
use aop_kernel::{ErrorCode, Refusal};
use aop_store::{PostgresOptions, PostgresStore, SqliteStore, Store, SystemClock, TimeSource, variable};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The file below `.aop/` that names the project on PostgreSQL.
const NAME_FILE: &str = "project";

/// The variable that says where, instead of `aop.yaml`.
const VARIABLE: &str = "AOP_STORE";

/// How long a write waits for another process that holds the embedded store, in one that stays: as long as on PostgreSQL
/// for the server. Others wait less, because somebody waits for them.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long whoever opens a store has it open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stay {
    /// For one command.
    Short,
    /// As long as it runs, with work under way that an error would cut.
    Long,
}

/// A place that holds a project.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// `.aop/aop.db` below this `.aop` folder.
    Sqlite(PathBuf),
    /// A project on PostgreSQL; without a name as long as nobody gave it one.
    Postgres(Box<PostgresOptions>),
}

impl Place {
    /// The place that the settings name.
    pub(crate) fn of(dir: &Path, choice: &StoreChoice) -> Result<Self, Refusal> {
        match variable(VARIABLE) {
            Some(text) => {
                let choice = StoreChoice::parse(&text)
                    .map_err(|cause| Refusal::invalid_argument(format!("{VARIABLE}: {cause}")))?;
                Place::chosen(dir, &choice)
            }
            None => Place::chosen(dir, choice),
        }
    }

    /// Whether the place is known although the settings cannot be read.
    pub(crate) fn is_known_without_settings(dir: &Path) -> bool {
        variable(VARIABLE).is_some() || recorded(dir).is_none()
    }

    /// The place of this choice, for a project folder.
    pub(crate) fn chosen(dir: &Path, choice: &StoreChoice) -> Result<Self, Refusal> {
        let StoreChoice::Postgres(address) = choice else { return Ok(Place::Sqlite(dir.to_owned())) };
        let mut options = PostgresOptions::parse(address.as_str()).map_err(Refusal::from)?;
        if let Some(password) = variable("PGPASSWORD") {
            options = options.or_password(&password);
        }
        if options.project_id().is_none()
            && let Some(name) = recorded(dir)
        {
            options = options.project(&name);
        }
        Ok(Place::Postgres(Box::new(options)))
    }

    /// Opens it, if it is the one that this folder shows.
    pub(crate) fn open(&self, dir: &Path, stay: Stay) -> Result<Arc<dyn Store>, Refusal> {
        let (wanted, recorded) = (self.name(), recorded(dir));
        let is_new = matches!(self, Place::Postgres(_)) && wanted.is_none();
        if is_new || wanted != recorded.as_deref() {
            let said = |name: Option<&str>| match name {
                Some(name) => format!("project '{name}' on PostgreSQL"),
                None => format!("the embedded store in {}", dir.display()),
            };
            let message = format!(
                "this folder shows {}, but the settings name {}",
                said(recorded.as_deref()),
                if is_new { "a new project on PostgreSQL".into() } else { said(wanted) }
            );
            return Err(Refusal::new(ErrorCode::StoreUnavailable, message)
                .hint("run `aop init` to go over to it, `aop store copy` to take everything along, or set `store` and AOP_STORE back"));
        }
        match self {
            Place::Sqlite(dir) if stay == Stay::Long => {
                not_lost(dir)?;
                Ok(Arc::new(SqliteStore::open_patiently(dir, Arc::new(SystemClock), PATIENCE)?))
            }
            _ => self.open_anyway(),
        }
    }

    /// Opens it, whatever the folder shows.
    pub(crate) fn open_anyway(&self) -> Result<Arc<dyn Store>, Refusal> {
        Ok(match self {
            Place::Sqlite(dir) => {
                not_lost(dir)?;
                Arc::new(SqliteStore::open(dir, Arc::new(SystemClock))?)
            }
            Place::Postgres(options) => {
                Arc::new(PostgresStore::open((**options).clone(), TimeSource::Database)?)
            }
        })
    }

    /// Makes what is missing there; the place with its name.
    pub(crate) fn create(self) -> Result<Self, Refusal> {
        match self {
            Place::Sqlite(dir) => {
                if recorded(&dir).is_none() {
                    not_lost(&dir)?;
                }
                SqliteStore::open(&dir, Arc::new(SystemClock))?;
                Ok(Place::Sqlite(dir))
            }
            Place::Postgres(options) => {
                let options = match options.project_id() {
                    Some(_) => *options,
                    None => options.project(&format!("p_{}", ulid::Ulid::generate())),
                };
                PostgresStore::create(&options)?;
                Ok(Place::Postgres(Box::new(options)))
            }
        }
    }

    /// From now on the folder shows this place. Its files are then written anew.
    pub(crate) fn adopt(&self, dir: &Path) -> Result<(), Refusal> {
        if self.name() == recorded(dir).as_deref() {
            return Ok(());
        }
        let path = dir.join(NAME_FILE);
        let written = match self.name() {
            Some(name) => std::fs::write(&path, format!("{name}\n")),
            None => std::fs::remove_file(&path),
        };
        let cannot = |path: &Path, error: &std::io::Error| {
            Refusal::new(ErrorCode::StoreUnavailable, format!("{}: {error}", path.display()))
                .hint("check that .aop/ is writable, then run `aop init` again")
        };
        written.map_err(|error| cannot(&path, &error))?;
        // The mark of what the files show counts the events of one store.
        let mark = dir.join("projected");
        match std::fs::remove_file(&mark) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(cannot(&mark, &error)),
            _ => Ok(()),
        }
    }

    /// The name of the project on PostgreSQL.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Place::Sqlite(_) => None,
            Place::Postgres(options) => options.project_id(),
        }
    }

    /// The place as it may be shown.
    pub(crate) fn shown(&self) -> String {
        match self {
            Place::Sqlite(_) => format!("{}/aop.db", aop_engine::AOP_DIR),
            Place::Postgres(options) => match options.project_id() {
                Some(name) => format!("{}?project={name}", options.place()),
                None => options.place(),
            },
        }
    }
}

/// Refuses a folder whose database is gone, or empty behind a log that is not: SQLite would take that log for one of
/// another file and remove it. A new database would be empty, and whatever stands in the old one's log be lost.
fn not_lost(dir: &Path) -> Result<(), Refusal> {
    let length = |name: &str| dir.join(name).metadata().ok().map(|found| found.len());
    let is_there = |name: &str| length(name).is_some();
    let (gone, is_behind) = match length("aop.db") {
        // A first start that was cut off leaves an empty file, too, but nothing beside it.
        Some(0) => ("empty", length("aop.db-wal").is_some_and(|length| length > 0)),
        Some(_) => return Ok(()),
        None => ("gone", is_there("aop.db-wal")),
    };
    if !is_behind && !["projected", "worktrees"].into_iter().any(is_there) {
        return Ok(());
    }
    let message = format!(
        "{} is {gone}, and with it all features, questions and answers",
        dir.join("aop.db").display()
    );
    Err(Refusal::new(ErrorCode::StoreUnavailable, message).hint(format!(
        "put it back, together with its aop.db-wal; to start over, move {} away and run `aop init`",
        dir.display()
    )))
}

/// The project that this folder shows on PostgreSQL, if it does.
fn recorded(dir: &Path) -> Option<String> {
    let text = aop_store::read_text_file(&dir.join(NAME_FILE)).ok()?;
    Some(text.trim().to_owned()).filter(|name| !name.is_empty())
}
