//! What a feature has changed so far: the difference between its worktree and the commit it branched off, and the files
//! there that git does not know yet. Git is asked, for a moment and for so much text; nothing it is configured to run is
//! run, and no `GIT_…` variable of the server leads it to another project.

use super::features::Card;
use super::shell::{Here, Shell, Waiting};
use super::{Named, Page, page};
use crate::http::Shared;
use crate::http::auth::Visitor;
use aop_kernel::ids::FeatureId;
use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path as Folder;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

/// At most so much of a difference is shown, new files included …
const MOST: usize = 256 << 10;
/// … and at most so many of those.
const MOST_NEW: usize = 200;
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
    /// Whether git does not know it yet.
    new: bool,
    added: usize,
    removed: usize,
    lines: Vec<Line>,
}

struct Line {
    kind: &'static str,
    text: String,
}

async fn show(State(app): State<Shared>, visitor: Visitor, Named(id): Named<String>) -> Page {
    let id = FeatureId::parse(&id)?;
    let mut shell = Shell::new(&app, &visitor, Here::Features, format!("/features/{id}/changes")).await?;
    let store = &app.service.store;
    let feature = store.feature(id.clone()).await?.ok_or_else(|| super::feature::missing(&id))?;
    let now = shell.now;
    shell.open = Waiting::of(&store.inbox(0, 0).await?);
    let worktree = app.pages.folder.as_ref().map(|folder| folder.join("worktrees").join(id.as_str()));
    let (none, files, cut) = match worktree.filter(|worktree| worktree.join(".git").exists()) {
        None => (
            Some("There is no worktree yet: nobody has begun to build this feature.".to_owned()),
            Vec::new(),
            false,
        ),
        Some(worktree) => match changed(&worktree).await {
            Ok((files, _)) if files.is_empty() => {
                (Some("Nothing has been changed so far.".to_owned()), files, false)
            }
            Ok((files, cut)) => (None, files, cut),
            Err(why) => (Some(why), Vec::new(), false),
        },
    };
    let changes = ChangesPage {
        shell,
        tab: "changes",
        card: Card::of(&feature, app.service.is_at_work().await, now),
        none,
        files,
        cut,
    };
    page(StatusCode::OK, &changes)
}

/// What is different since the branch began, then what is new, and whether anything was cut.
async fn changed(worktree: &Folder) -> Result<(Vec<File>, bool), String> {
    // The project's own checkout is three folders up: `.aop/worktrees/ID`.
    let root = worktree.ancestors().nth(3).unwrap_or(worktree);
    let variables = super::worktree::variables(root, worktree).await?;
    let (difference, mut cut) = difference(root, worktree, &variables).await?;
    let mut files = files(&String::from_utf8_lossy(&difference));
    let new = ["ls-files", "--others", "--exclude-standard", "-z"];
    let (names, some) = git(worktree, &variables, &new).await?;
    let (worktree, room) = (worktree.to_owned(), MOST - difference.len());
    let read = tokio::task::spawn_blocking(move || new_files(&worktree, &names, room)).await;
    let (new, more) = read.map_err(|error| format!("New files cannot be read: {error}"))?;
    files.extend(new);
    cut |= some || more;
    Ok((files, cut))
}

/// The difference since the branch began, and whether it was cut.
pub(super) async fn difference(
    root: &Folder,
    worktree: &Folder,
    variables: &Variables,
) -> Result<(Vec<u8>, bool), String> {
    let (main, _) = told(root, &Vec::new(), &["rev-parse", "HEAD"]).await?;
    let (base, _) = told(worktree, variables, &["merge-base", "HEAD", main.trim()]).await?;
    // A repository inside the worktree would be asked with its own settings.
    let quiet = ["--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty", "--submodule=short"];
    let diff = [&["diff", "--no-color", "--find-renames"], &quiet[..], &[base.trim(), "--"]].concat();
    git(worktree, variables, &diff).await
}

/// The files of these names, each ended by a zero byte, with so many bytes of their texts.
fn new_files(worktree: &Folder, names: &[u8], mut room: usize) -> (Vec<File>, bool) {
    // A name without its end was cut.
    let mut names = names.split_inclusive(|byte| *byte == 0).filter_map(|name| name.strip_suffix(&[0]));
    let mut files = Vec::new();
    let mut cut = false;
    for name in names.by_ref().take(MOST_NEW) {
        let mut content = Vec::new();
        let path = worktree.join(OsStr::from_bytes(name));
        // A link could lead anywhere, and nobody writes into a pipe.
        if path.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
            let file = aop_store::open_file(&path);
            // One that has gone meanwhile, or may not be read, is named.
            let _ = file.and_then(|file| file.take(room as u64 + 1).read_to_end(&mut content));
        }
        cut |= content.len() > room;
        content.truncate(room);
        room -= content.len();
        let line = |text: &str| Line { kind: "added", text: super::words::cut(&format!("+{text}"), 2_000) };
        let lines: Vec<Line> = if content.contains(&0) {
            Vec::new()
        } else {
            String::from_utf8_lossy(&content).lines().map(line).collect()
        };
        let name = String::from_utf8_lossy(name).into_owned();
        files.push(File { name, new: true, added: lines.len(), removed: 0, lines });
    }
    (files, cut || names.next().is_some())
}

/// What git is told beside its arguments.
pub(super) type Variables = Vec<(String, OsString)>;

/// What git says in a folder as text, and whether it was cut.
pub(super) async fn told(
    folder: &Folder,
    variables: &Variables,
    args: &[&str],
) -> Result<(String, bool), String> {
    let (bytes, cut) = git(folder, variables, args).await?;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), cut))
}

/// What git says in a folder, under these variables, and whether it was cut.
async fn git(folder: &Folder, variables: &Variables, args: &[&str]) -> Result<(Vec<u8>, bool), String> {
    let mut command = Command::new("git");
    // Programs that the worktree's own settings name are not started from here.
    command.args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--no-optional-locks"]);
    command.args(args).current_dir(folder).env_clear();
    for name in ["PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR"] {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    // Nor is one for fetching what is missing. The second is for versions of git without the first.
    command.env("GIT_NO_LAZY_FETCH", "1").env("GIT_ALLOW_PROTOCOL", "");
    command.env("LC_ALL", "C").env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_TERMINAL_PROMPT", "0");
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
        Ok((bytes, cut))
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
            files.push(File { name, new: false, added: 0, removed: 0, lines: Vec::new() });
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

    #[test]
    fn new_files_are_named_and_shown_as_far_as_there_is_room_and_no_link_is_followed() {
        let worktree = tempfile::TempDir::new().unwrap();
        std::fs::write(worktree.path().join("a b.txt"), "one\ntwo\n").unwrap();
        std::fs::write(worktree.path().join("bytes"), [7, 0, 7]).unwrap();
        std::fs::write(worktree.path().join("long"), "0123456789").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", worktree.path().join("link")).unwrap();
        let names = b"a b.txt\0bytes\0gone\0link\0long\0cut-in-its-na";
        let (files, cut) = new_files(worktree.path(), names, 16);
        let shown: Vec<(&str, Vec<&str>)> = files
            .iter()
            .map(|file| (file.name.as_str(), file.lines.iter().map(|line| line.text.as_str()).collect()))
            .collect();
        let expected: [(&str, Vec<&str>); 5] = [
            ("a b.txt", vec!["+one", "+two"]),
            ("bytes", vec![]),
            ("gone", vec![]),
            ("link", vec![]),
            ("long", vec!["+01234"]),
        ];
        assert_eq!((shown.as_slice(), cut), (expected.as_slice(), true));
        assert!(files.iter().all(|file| file.new));
        let many: Vec<u8> = (0..=MOST_NEW).flat_map(|number| format!("{number}\0").into_bytes()).collect();
        let (files, cut) = new_files(worktree.path(), &many, 0);
        assert_eq!((files.len(), cut), (MOST_NEW, true));
    }
}
