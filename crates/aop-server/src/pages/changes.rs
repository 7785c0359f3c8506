//! What a feature has changed so far: the difference between its worktree and the commit it branched off. Git is
//! asked, for a moment and for so much text; nothing it is configured to run is run.

use super::features::Card;
use super::shell::{Here, Shell, Waiting};
use super::{Page, page};
use crate::http::Shared;
use crate::http::auth::Visitor;
use aop_kernel::ids::FeatureId;
use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use std::ffi::OsString;
use std::path::Path as Folder;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

/// At most so much of a difference is shown.
const MOST: usize = 256 << 10;
/// Git has this long.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/features/{id}/changes", get(show))
}

#[derive(Template)]
#[template(path = "changes.html")]
struct ChangesPage {
    shell: Shell,
    tab: &'static str,
    card: Card,
    /// Why there is nothing to see.
    none: Option<String>,
    files: Vec<File>,
    cut: bool,
}

/// One file of a difference.
struct File {
    name: String,
    added: usize,
    removed: usize,
    lines: Vec<Line>,
}

struct Line {
    kind: &'static str,
    text: String,
}

async fn show(State(app): State<Shared>, visitor: Visitor, Path(id): Path<String>) -> Page {
    let id = FeatureId::parse(&id)?;
    let mut shell = Shell::new(&app, &visitor, Here::Features, format!("/features/{id}/changes"));
    let store = &app.service.store;
    let feature = store.feature(id.clone()).await?.ok_or_else(|| super::feature::missing(&id))?;
    let now = store.now().await?;
    shell.open = Waiting::of(&store.inbox(0, 0).await?);
    let worktree = app.pages.folder.as_ref().map(|folder| folder.join("worktrees").join(id.as_str()));
    let (none, text, cut) = match worktree.filter(|worktree| worktree.join(".git").exists()) {
        None => (
            Some("There is no worktree yet: nobody has begun to build this feature.".to_owned()),
            String::new(),
            false,
        ),
        Some(worktree) => match difference(&worktree).await {
            Ok((text, _)) if text.is_empty() => {
                (Some("Nothing has been changed so far.".to_owned()), String::new(), false)
            }
            Ok((text, cut)) => (None, text, cut),
            Err(why) => (Some(why), String::new(), false),
        },
    };
    let changes =
        ChangesPage { shell, tab: "changes", card: Card::of(&feature, now), none, files: files(&text), cut };
    page(StatusCode::OK, &changes)
}

/// The difference since the branch began, and whether it was cut.
pub(super) async fn difference(worktree: &Folder) -> Result<(String, bool), String> {
    // The project's own checkout is three folders up: `.aop/worktrees/ID`.
    let root = worktree.ancestors().nth(3).unwrap_or(worktree);
    let (main, _) = git(root, &[], &["rev-parse", "HEAD"]).await?;
    let variables = super::worktree::variables(root, worktree).await?;
    let (base, _) = git(worktree, &variables, &["merge-base", "HEAD", main.trim()]).await?;
    // A repository inside the worktree would be asked with its own settings.
    let quiet = ["--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty", "--submodule=short"];
    let diff = [&["diff", "--no-color", "--find-renames"], &quiet[..], &[base.trim(), "--"]].concat();
    git(worktree, &variables, &diff).await
}

/// What git says in a folder, under these variables, and whether it was cut.
pub(super) async fn git(
    folder: &Folder,
    variables: &[(String, OsString)],
    args: &[&str],
) -> Result<(String, bool), String> {
    let mut command = Command::new("git");
    // Programs that the worktree's own settings name are not started from here.
    command.args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--no-optional-locks"]);
    command.args(args).current_dir(folder).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_TERMINAL_PROMPT", "0");
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| format!("git does not start: {error}"))?;
    let read = async {
        let mut bytes = Vec::new();
        if let Some(output) = child.stdout.take() {
            let mut limited = output.take(MOST as u64 + 1);
            limited.read_to_end(&mut bytes).await.map_err(|error| format!("git cannot be read: {error}"))?;
        }
        let cut = bytes.len() > MOST;
        bytes.truncate(MOST);
        if !cut {
            let status = child.wait().await.map_err(|error| format!("git: {error}"))?;
            if !status.success() {
                return Err("Git cannot compare the worktree with the project.".to_owned());
            }
        }
        Ok((String::from_utf8_lossy(&bytes).into_owned(), cut))
    };
    let late = || Err(format!("Git took longer than {} seconds.", PATIENCE.as_secs()));
    tokio::time::timeout(PATIENCE, read).await.unwrap_or_else(|_| late())
}

/// A difference, file by file.
fn files(text: &str) -> Vec<File> {
    let mut files: Vec<File> = Vec::new();
    let mut in_head = true;
    for line in text.lines() {
        if let Some(names) = line.strip_prefix("diff --git ") {
            let name = names.rsplit_once(" b/").map_or(names, |(_, name)| name).to_owned();
            files.push(File { name, added: 0, removed: 0, lines: Vec::new() });
            in_head = true;
            continue;
        }
        let Some(file) = files.last_mut() else { continue };
        let kind = match line.as_bytes().first() {
            Some(b'@') => {
                in_head = false;
                "place"
            }
            _ if in_head => "head",
            Some(b'+') => {
                file.added += 1;
                "added"
            }
            Some(b'-') => {
                file.removed += 1;
                "removed"
            }
            _ => "same",
        };
        file.lines.push(Line { kind, text: super::words::cut(line, 2_000) });
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_told_file_by_file() {
        let text = "diff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-old\n+new\n+more\n same\n\
                    diff --git a/y z b/y z\nnew file mode 100644\n";
        let files = files(text);
        assert_eq!(files.len(), 2);
        assert_eq!((files[0].name.as_str(), files[0].added, files[0].removed), ("x", 2, 1));
        assert_eq!(files[1].name, "y z");
        let kinds: Vec<&str> = files[0].lines.iter().map(|line| line.kind).collect();
        assert_eq!(kinds, ["head", "head", "head", "place", "removed", "added", "added", "same"]);
    }
}
