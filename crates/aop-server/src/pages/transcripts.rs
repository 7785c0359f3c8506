//! What the engines of a feature said, turn by turn: `.aop/runs/RUN/FEATURE/TURN/`. Names of an address are only
//! compared with what a listing finds; none of them ever becomes a path. Whose turn it was is in the log.

use super::features::Card;
use super::shell::{Here, Shell, Waiting};
use super::words::{When, count};
use super::{Named, Page, Trouble, page};
use crate::http::auth::Visitor;
use crate::http::{App, Shared};
use aop_kernel::Refusal;
use aop_kernel::event::Event;
use aop_kernel::ids::FeatureId;
use aop_kernel::role::Role;
use aop_kernel::time::Timestamp;
use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use std::io::Read;
use std::path::{Path as Folder, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// At most so much of a file is shown.
const MOST: u64 = 512 << 10;
/// So many turns are listed, the latest first.
const LISTED: usize = 200;
/// So many events are looked through for whose turns those were; older ones are listed by their names alone.
const LOOKED_THROUGH: usize = 1_000;
/// The files of a turn that are worth reading.
const FILES: [&str; 2] = ["transcript.jsonl", "stderr.log"];

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/features/{id}/transcripts", get(list))
        .route("/features/{id}/transcripts/{run}/{turn}/{file}", get(show))
}

/// A file of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    run: String,
    turn: String,
    file: &'static str,
    path: PathBuf,
    bytes: u64,
    written: Option<SystemTime>,
}

impl Found {
    fn size(&self) -> String {
        match self.bytes {
            0..1_024 => count(usize::try_from(self.bytes).unwrap_or_default(), "byte", "bytes"),
            bytes => format!("{} KiB", bytes / 1_024),
        }
    }
}

/// A file with what is known about its turn.
struct Row {
    file: Found,
    role: Option<&'static str>,
    written: Option<When>,
}

/// The turns of a feature by the beginning of their folders' names.
struct Turns(Vec<(String, Role)>);

impl Turns {
    async fn of(app: &App, id: FeatureId) -> Result<Self, Refusal> {
        let events = app.service.store.last_events(id, None, LOOKED_THROUGH).await?;
        let turns = events.into_iter().filter_map(|recorded| match recorded.stamped.event {
            Event::TurnBegan { claim, role, .. } => Some((claim.replace([':', '/'], "-"), role)),
            _ => None,
        });
        Ok(Turns(turns.collect()))
    }

    /// A turn that was begun anew, or whose result was asked for again, has more folders: their names go on.
    fn role(&self, folder: &str) -> Option<Role> {
        let is_of = |name: &String| {
            let rest = folder.strip_prefix(name.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("-repair-") || rest.starts_with('.'))
        };
        self.0.iter().find(|(name, _)| is_of(name)).map(|(_, role)| *role)
    }

    fn row(&self, file: Found, now: Timestamp) -> Row {
        let role = self.role(&file.turn).map(Role::as_str);
        let since = file.written.and_then(|written| written.duration_since(UNIX_EPOCH).ok());
        let written =
            since.and_then(|since| i64::try_from(since.as_millis()).ok()).map(Timestamp::from_millis);
        Row { role, written: written.map(|written| When::past(written, now)), file }
    }
}

#[derive(Template)]
#[template(path = "transcripts.html")]
struct ListPage {
    shell: Shell,
    tab: &'static str,
    card: Card,
    found: Vec<Row>,
}

#[derive(Template)]
#[template(path = "transcript.html")]
struct TranscriptPage {
    shell: Shell,
    tab: &'static str,
    card: Card,
    found: Row,
    text: String,
    cut: bool,
}

async fn list(State(app): State<Shared>, visitor: Visitor, Named(id): Named<String>) -> Page {
    let (shell, card, id) = about(&app, &visitor, &id).await?;
    let turns = Turns::of(&app, id.clone()).await?;
    let found = find(&app, id).await?.into_iter().map(|file| turns.row(file, shell.now)).collect();
    page(StatusCode::OK, &ListPage { shell, tab: "transcripts", card, found })
}

async fn show(
    State(app): State<Shared>,
    visitor: Visitor,
    Named((id, run, turn, file)): Named<(String, String, String, String)>,
) -> Page {
    let (mut shell, card, id) = about(&app, &visitor, &id).await?;
    shell.url = format!("{}/{run}/{turn}/{file}", shell.url);
    let turns = Turns::of(&app, id.clone()).await?;
    let all = find(&app, id).await?;
    let wanted = all.into_iter().find(|found| found.run == run && found.turn == turn && found.file == file);
    let found = wanted.ok_or_else(|| Trouble::not_found("there is no such transcript"))?;
    let path = found.path.clone();
    let read = tokio::task::spawn_blocking(move || read(&path)).await;
    let (text, cut) = read
        .map_err(|error| Trouble::internal(&error.to_string()))?
        .map_err(|error| Trouble::internal(&format!("the transcript cannot be read: {error}")))?;
    let found = turns.row(found, shell.now);
    page(StatusCode::OK, &TranscriptPage { shell, tab: "transcripts", card, found, text, cut })
}

async fn about(app: &App, visitor: &Visitor, id: &str) -> Result<(Shell, Card, FeatureId), Trouble> {
    let id = FeatureId::parse(id)?;
    let mut shell = Shell::new(app, visitor, Here::Features, format!("/features/{id}/transcripts")).await?;
    let store = &app.service.store;
    let feature = store.feature(id.clone()).await?.ok_or_else(|| super::feature::missing(&id))?;
    let now = shell.now;
    shell.open = Waiting::of(&store.inbox(0, 0).await?);
    Ok((shell, Card::of(&feature, app.service.is_at_work().await, now), id))
}

async fn find(app: &App, id: FeatureId) -> Result<Vec<Found>, Trouble> {
    let Some(folder) = app.pages.folder.as_ref().map(|folder| folder.join("runs")) else {
        return Ok(Vec::new());
    };
    let listed = tokio::task::spawn_blocking(move || listing(&folder, &id)).await;
    listed.map_err(|error| Trouble::internal(&error.to_string()))
}

/// Everything there is of a feature, the latest run first.
fn listing(runs: &Folder, id: &FeatureId) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    for run in folders(runs) {
        for turn in folders(&run.1.join(id.as_str())) {
            for file in FILES {
                let path = turn.1.join(file);
                // A link could lead anywhere.
                let Ok(meta) = path.symlink_metadata() else { continue };
                if meta.is_file() && meta.len() > 0 {
                    let (run, turn, written) = (run.0.clone(), turn.0.clone(), meta.modified().ok());
                    found.push(Found { run, turn, file, path, bytes: meta.len(), written });
                }
            }
        }
    }
    found.sort_by(|a, b| (b.written, &b.run, &b.turn).cmp(&(a.written, &a.run, &a.turn)));
    found.truncate(LISTED);
    found
}

/// The real folders in a folder, with their names.
fn folders(path: &Folder) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let real = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let named = real.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())));
    named.filter(|(name, _)| is_plain(name)).collect()
}

/// The names that a run gives to its folders; others cannot stand in an address as they are.
fn is_plain(name: &str) -> bool {
    let plain = |sign: u8| sign.is_ascii_alphanumeric() || matches!(sign, b'_' | b'-' | b'.');
    !name.starts_with('.') && name.bytes().all(plain)
}

fn read(path: &Folder) -> std::io::Result<(String, bool)> {
    let mut bytes = Vec::new();
    aop_store::open_file(path)?.take(MOST + 1).read_to_end(&mut bytes)?;
    let cut = bytes.len() as u64 > MOST;
    bytes.truncate(usize::try_from(MOST).unwrap_or(usize::MAX));
    Ok((String::from_utf8_lossy(&bytes).into_owned(), cut))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_names_the_role_of_its_turn_and_no_other_turns() {
        let turns = [("turn-shop-1", Role::Planner), ("turn-shop-12", Role::Builder)];
        let turns = Turns(turns.map(|(name, role)| (name.to_owned(), role)).into());
        for (folder, role) in [
            ("turn-shop-1", Some(Role::Planner)),
            ("turn-shop-1-repair-2", Some(Role::Planner)),
            ("turn-shop-1.2", Some(Role::Planner)),
            ("turn-shop-12", Some(Role::Builder)),
            ("turn-shop-123", None),
            ("check-shop-1", None),
        ] {
            assert_eq!(turns.role(folder), role, "{folder}");
        }
    }

    #[test]
    fn only_real_files_below_the_features_own_folder_are_found() {
        let runs = tempfile::TempDir::new().unwrap();
        let turn = runs.path().join("r_1/shop/builder-1");
        std::fs::create_dir_all(&turn).unwrap();
        std::fs::create_dir_all(runs.path().join("r_1/other/builder-1")).unwrap();
        std::fs::write(runs.path().join("r_1/other/builder-1/transcript.jsonl"), "other").unwrap();
        std::fs::write(turn.join("transcript.jsonl"), "{}").unwrap();
        std::fs::write(turn.join("process.json"), "{}").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", turn.join("stderr.log")).unwrap();
        std::os::unix::fs::symlink("/etc", runs.path().join("r_1/shop/evil")).unwrap();
        let found = listing(runs.path(), &FeatureId::parse("shop").unwrap());
        let names: Vec<_> = found.iter().map(|found| (found.turn.as_str(), found.file)).collect();
        assert_eq!(names, [("builder-1", "transcript.jsonl")]);
    }
}
