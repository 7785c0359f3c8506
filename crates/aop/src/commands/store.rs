//! `aop store`: where the project is kept, its tables, and copies from one place to another.

use crate::cli::Global;
use crate::config::StoreChoice;
use crate::output::style::{bold, dim};
use crate::output::{CommandResult, Reply};
use crate::place::Place;
use crate::project::Project;
use aop_kernel::{Envelope, ErrorCode, Refusal};
use aop_store::{PostgresStore, copy};
use serde_json::json;

/// Show, migrate or copy the project's store
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  aop store status\n  aop store migrate\n  aop store copy --to 'postgres://aop@db/team?project=shop'\n  aop store copy --to sqlite"
)]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Debug, clap::Subcommand)]
enum StoreCommand {
    /// Where the project is kept and what it looks like there
    #[command(after_help = "Example:\n  aop store status --json")]
    Status,
    /// Bring the tables up to date (PostgreSQL; the embedded store does that by itself)
    #[command(after_help = "Example:\n  AOP_STORE=postgres://owner@db/team aop store migrate")]
    Migrate,
    /// Copy the whole project into an empty place, and compare
    #[command(
        after_help = "Examples:\n  aop store copy --to 'postgres://aop@db/team?project=shop'\n  aop store copy --to sqlite\n\nThe project stays where it is. Afterwards set `store:` in aop.yaml (or AOP_STORE) and run `aop init`."
    )]
    Copy {
        /// `sqlite` or a postgres:// address
        #[arg(long, value_name = "PLACE")]
        to: String,
    },
}

pub(crate) fn run(global: &Global, args: &StoreArgs) -> CommandResult {
    let project = Project::find(global)?;
    let place = Place::of(&project.dir(), &project.config.store)?;
    match &args.command {
        StoreCommand::Status => status(project, &place),
        StoreCommand::Migrate => migrate(&place),
        StoreCommand::Copy { to } => copy_to(project, to),
    }
}

fn status(project: Project, place: &Place) -> CommandResult {
    let (kind, schema) = match place {
        Place::Sqlite(_) => ("sqlite", None),
        Place::Postgres(options) => ("postgres", Some(PostgresStore::schema(options)?)),
    };
    let session = project.open()?;
    let (features, seq) = session.wait(session.store().changed_since(0))?;
    let now = session.wait(session.store().now())?;
    let data = json!({"kind": kind, "place": place.shown(), "project": place.name(), "last_event": seq,
        "features": features.len(), "now": now,
        "migrations": schema.as_ref().map(|schema| json!({"applied": schema.applied, "pending": schema.pending}))});
    let join = place.name().map(|name| format!("\nOthers join with {}", bold(&format!("?project={name}"))));
    let text = format!(
        "{}\n{}, {}, {}{}",
        bold(&place.shown()),
        counted(seq, "event"),
        counted(features.len() as u64, "feature"),
        match &schema {
            Some(schema) => format!("tables at {}", schema.applied.last().map_or("none", String::as_str)),
            None => "the embedded store of this folder".to_owned(),
        },
        join.unwrap_or_default()
    );
    Ok(Reply::ok(Envelope::success(&data), text))
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn migrate(place: &Place) -> CommandResult {
    let applied = match place {
        Place::Sqlite(_) => {
            place.open_anyway()?;
            Vec::new()
        }
        Place::Postgres(options) => PostgresStore::migrate(options)?,
    };
    let text = if applied.is_empty() {
        format!("{} is up to date.", place.shown())
    } else {
        format!("{} is up to date now {}", place.shown(), dim(&format!("({})", applied.join(", "))))
    };
    Ok(Reply::ok(Envelope::success(&json!({"place": place.shown(), "applied": applied})), text))
}

fn copy_to(project: Project, to: &str) -> CommandResult {
    let choice = StoreChoice::parse(to).map_err(Refusal::invalid_argument)?;
    let dir = project.dir();
    let target = Place::chosen(&dir, &choice)?;
    let session = project.open()?;
    let source = session.place.shown();
    if target.shown() == source {
        let message = format!("{source} is where the project is already");
        return Err(Refusal::invalid_argument(message).hint("name another place with --to"));
    }
    let target = target.create()?;
    let store = target.open_anyway()?;
    let copied =
        session.wait(copy(session.store(), store.as_ref())).map_err(Refusal::from).map_err(|refusal| {
            if refusal.code == ErrorCode::ProjectNotEmpty {
                refusal.hint(
                    "a copy goes into an empty place only: name another project or move the old one away",
                )
            } else {
                refusal
            }
        })?;
    let data = json!({"from": source, "to": target.shown(), "project": target.name(), "last_event": copied.seq,
        "entries": copied.entries, "tokens": copied.tokens, "secrets": copied.secrets, "digest": copied.digest});
    let setting = match (&target, to.contains("project=")) {
        (Place::Sqlite(_), _) => "sqlite".to_owned(),
        (Place::Postgres(_), _) => target.shown(),
    };
    let text = format!(
        "Copied {} events and {} other entries to {}, and compared {}\n\nNext: set {} in aop.yaml and run {}",
        copied.seq,
        copied.entries - copied.seq,
        bold(&target.shown()),
        dim(&format!("(sha256 {})", &copied.digest[..16])),
        bold(&format!("store: {setting}")),
        bold("`aop init`")
    );
    Ok(Reply::ok(Envelope::success(&data), text))
}
