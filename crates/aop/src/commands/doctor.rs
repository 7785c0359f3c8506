//! `aop doctor`: is everything as it should be? `--repair` rebuilds the files from the store.

use crate::cli::Global;
use crate::config::Switch;
use crate::output::style::{green, red, yellow};
use crate::output::{CommandResult, Reply};
use crate::project::{Project, Session};
use aop_kernel::{Envelope, Refusal};
use aop_store::Projector;
use serde::Serialize;
use serde_json::json;

/// Check the project: settings, store, log, files
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
    message: String,
}

impl Check {
    fn good(name: &'static str, message: impl Into<String>) -> Self {
        Check { name, ok: true, message: message.into() }
    }

    fn bad(name: &'static str, message: impl Into<String>) -> Self {
        Check { name, ok: false, message: message.into() }
    }
}

/// Looks at everything; exit code 1 when something is wrong.
pub(crate) fn run(global: &Global, args: &DoctorArgs) -> CommandResult {
    let project = Project::find(global)?;
    let mut checks = vec![
        Check::good("project", format!("{}", project.root.display())),
        Check::good("settings", "aop.yaml is valid"),
    ];
    match project.open() {
        Ok(session) => {
            checks.push(Check::good("store", format!("{} opens", session.place.shown())));
            checks.push(log(&session)?);
            checks.push(files(&session, args.repair)?);
        }
        Err(refusal) => checks.push(Check::bad("store", format!("{} ({})", refusal.message, refusal.hint))),
    }
    let healthy = checks.iter().all(|check| check.ok);
    let lines: Vec<String> = checks
        .iter()
        .map(|check| {
            let mark = if check.ok { green("ok  ") } else { red("BAD ") };
            format!("{mark} {:<9} {}", check.name, check.message)
        })
        .collect();
    let closing = if healthy { green("All is well.") } else { yellow("Something needs you, see above.") };
    let text = format!("{}\n\n{closing}", lines.join("\n"));
    let envelope = Envelope::success(&json!({"healthy": healthy, "checks": checks}));
    Ok(Reply::ok(envelope, text).exit(u8::from(!healthy)))
}

/// The tables against a replay of the log.
fn log(session: &Session) -> Result<Check, Refusal> {
    let findings = session.wait(session.store().verify())?;
    if findings.is_empty() {
        return Ok(Check::good("log", "the tables are what a replay of the log gives"));
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
        Ok(stale) if stale.is_empty() => Check::good(NAME, "every file shows what the store holds"),
        Ok(stale) => {
            let first = stale.first().map(|path| path.display().to_string()).unwrap_or_default();
            let behind = match stale.len() {
                1 => "1 file is behind,".to_owned(),
                count => format!("{count} files are behind, first"),
            };
            Check::bad(NAME, format!("{behind} {first}: run `aop doctor --repair`"))
        }
        Err(error) => Check::bad(NAME, error.to_string()),
    })
}
