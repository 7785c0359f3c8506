//! The project's own checkout, which is the user's: whether a merge can come there, and how it does. Nothing that is not
//! committed there is ever taken away, also not what git ignores and would give up by itself.

use super::{Git, GitError, changed_files};
use crate::shown;
use aop_store::worktree::end_of;
use std::collections::{BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The mode of a commit in a tree.
pub(super) const GITLINK: &str = "160000";

/// What a person, or a git, may be in the middle of, by what is there meanwhile.
const UNDER_WAY: [(&str, &str, &str); 6] = [
    // These come first: each has what the others have while it is at one commit.
    ("rebase-apply/applying", "a series of patches", "am"),
    ("rebase-merge", "a rebase", "rebase"),
    ("rebase-apply", "a rebase", "rebase"),
    ("MERGE_HEAD", "a merge", "merge"),
    ("CHERRY_PICK_HEAD", "a cherry-pick", "cherry-pick"),
    ("REVERT_HEAD", "a revert", "revert"),
];

/// What has begun in a worktree and not ended, and the command of git for it.
pub(super) fn under_way(worktree: &Path) -> Option<(&'static str, &'static str)> {
    let own = end_of(&worktree.join(".git"))?;
    let found = UNDER_WAY.into_iter().find(|(name, ..)| own.join(name).exists());
    found.map(|(_, what, command)| (what, command))
}

/// How many names one git is given.
pub(super) const AT_ONCE: usize = 500;

/// A file that differs between two states, such as commits.
pub(super) struct Change {
    /// Its mode in the first; zeros where it is new.
    pub(super) mode_before: String,
    /// Its mode in the second; zeros where it is gone.
    pub(super) mode: String,
    /// `A`, `D`, `M` or `T`.
    pub(super) how: char,
    /// The content, or the commit, that it has in the second.
    pub(super) object: String,
    /// From the top of the repository.
    pub(super) path: PathBuf,
}

impl Git {
    /// Tracked files that differ from the head.
    pub(crate) async fn dirty_files(&self) -> Result<Vec<String>, GitError> {
        Ok(changed_files(&self.git(&self.root, &["status", "--porcelain", "--untracked-files=no"]).await?))
    }

    /// Whether the files of the project would let the head move to this commit. Changes nothing.
    pub(crate) async fn can_move_to(&self, commit: &str) -> Result<(), GitError> {
        let changes = self.changes("HEAD", commit).await?;
        let added = changes.iter().filter(|change| change.how == 'A');
        self.check_free(added, &HashSet::new()).await?;
        self.git(&self.root, &["read-tree", "-m", "-u", "-n", "HEAD", commit]).await.map(drop)
    }

    /// Refuses a checkout in which something else is under way: git would not move the branch, or mix the two.
    pub(crate) async fn check_idle(&self) -> Result<(), GitError> {
        let lock = self.git_path("index.lock").await?;
        if lock.exists() {
            let (shown, file) = (shown::name(&lock), shown::word(&lock));
            return Err(GitError::Unusable {
                message: format!("a git is running in the project, or was killed there: {shown} exists"),
                hint: format!(
                    "when no git runs there any more, `rm {file}` takes away what a killed one has left; then merge again; no branch was moved"
                ),
            });
        }
        for (name, what, _) in UNDER_WAY {
            let path = self.git_path(name).await?;
            if path.exists() {
                let shown = path.display();
                return Err(GitError::Unusable {
                    message: format!("{what} has begun in the project and not ended: there is {shown}"),
                    hint: "end it, or leave it: `git status` says how; then merge again; no branch was moved"
                        .to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Moves the branch that the project is on forward to a prepared merge, whatever the user's settings say of merges.
    /// Git has `stdin` for as long as it lives.
    pub(crate) async fn fast_forward(
        &self,
        branch: &str,
        commit: &str,
        stdin: Stdio,
    ) -> Result<(), GitError> {
        let args = [
            "merge",
            "--ff-only",
            "--quiet",
            "--no-overwrite-ignore",
            "--no-verify-signatures",
            "--no-squash",
            "--no-autostash",
            commit,
        ];
        let mut command = self.command(&self.root, &args);
        // It may hold any option, also some that cannot be taken back by another.
        command.env("GIT_CONFIG_COUNT", "1");
        command
            .env("GIT_CONFIG_KEY_0", format!("branch.{branch}.mergeOptions"))
            .env("GIT_CONFIG_VALUE_0", "");
        let output = command.stdin(stdin).output().await;
        let output = output.map_err(|error| self.not_started(&error, &self.root))?;
        // What it says of itself is not enough.
        if self.contains("HEAD", commit).await {
            Ok(())
        } else {
            Err(self.failed(&self.root, &args, &output))
        }
    }

    /// Refuses what is here, unknown to git or ignored by it, where these files come, except for what is `ours`: of a
    /// folder it says the name, with a slash.
    pub(super) async fn check_free(
        &self,
        coming: impl Iterator<Item = &Change>,
        ours: &HashSet<&Path>,
    ) -> Result<(), GitError> {
        let top = self.top().await?;
        let places: BTreeSet<PathBuf> = coming.filter_map(|change| stands_at(&top, change)).collect();
        let places: Vec<&Path> = places.iter().map(PathBuf::as_path).collect();
        let mut found = Vec::new();
        for places in places.chunks(AT_ONCE) {
            let mut args = ["--literal-pathspecs", "ls-files", "-z", "--"].map(OsStr::new).to_vec();
            args.extend(places.iter().map(|place| place.as_os_str()));
            let known = self.bytes(&top, &args).await?;
            let known: HashSet<&Path> = names(&known).map(Path::new).chain(ours.iter().copied()).collect();
            for place in places.iter().filter(|place| has_stranger(&top, place, &known)) {
                let slash = if is_folder(&top.join(place)) { "/" } else { "" };
                found.push(format!("{}{slash}", place.display()));
            }
        }
        if found.is_empty() { Ok(()) } else { Err(GitError::InTheWay(found)) }
    }

    /// The files that differ between two commits.
    pub(super) async fn changes(&self, from: &str, to: &str) -> Result<Vec<Change>, GitError> {
        self.raw(&self.root, &["diff-tree", "-r", from, to]).await
    }

    /// What a git that compares says. Repositories are named each time: settings of the user may hide them, and so may a
    /// file of the work itself.
    pub(super) async fn raw(&self, folder: &Path, ask: &[&str]) -> Result<Vec<Change>, GitError> {
        const ALL: &[&str] = &["-z", "--raw", "--no-renames", "--ignore-submodules=none"];
        // No file is asked for: one that is called HEAD would make that word ambiguous.
        let said = self.bytes(folder, &[&ask[..1], ALL, &ask[1..], &["--"]].concat()).await?;
        let mut fields = names(&said);
        let mut changes = Vec::new();
        // `:100644 160000 1234 5678 T`, then the name.
        while let (Some(how), Some(path)) = (fields.next(), fields.next()) {
            let how = how.to_string_lossy();
            let [before, mode, _, object, how] = how.split(' ').collect::<Vec<_>>()[..] else { continue };
            changes.push(Change {
                mode_before: before.trim_start_matches(':').to_owned(),
                mode: mode.to_owned(),
                object: object.to_owned(),
                how: how.chars().next().unwrap_or_default(),
                path: path.into(),
            });
        }
        Ok(changes)
    }

    /// Where git has a file of its own for this checkout.
    async fn git_path(&self, name: &str) -> Result<PathBuf, GitError> {
        let said = self.bytes(&self.root, &["rev-parse", "--git-path", name]).await?;
        Ok(self.root.join(line(said)))
    }

    /// The top of the checkout that the project is in.
    pub(super) async fn top(&self) -> Result<PathBuf, GitError> {
        Ok(line(self.bytes(&self.root, &["rev-parse", "--show-toplevel"]).await?))
    }
}

/// The path that git said.
pub(super) fn line(mut said: Vec<u8>) -> PathBuf {
    said.pop_if(|last| *last == b'\n');
    OsString::from_vec(said).into()
}

/// The names in what a git with `-z` said.
pub(super) fn names(said: &[u8]) -> impl Iterator<Item = &OsStr> {
    let whole = said.strip_suffix(b"\0");
    whole.into_iter().flat_map(|said| said.split(|byte| *byte == 0)).map(OsStr::from_bytes)
}

/// What stands where a file will be written, or in place of a folder above it.
fn stands_at(top: &Path, coming: &Change) -> Option<PathBuf> {
    let mut place = PathBuf::new();
    for name in &coming.path {
        place.push(name);
        let found = top.join(&place).symlink_metadata().ok()?;
        if !found.is_dir() {
            return Some(place);
        }
    }
    // A submodule comes into a folder that is there, or leaves it, and the files in it alone.
    (coming.mode != GITLINK && coming.mode_before != GITLINK).then_some(place)
}

/// Whether a folder is here, and no link to one.
pub(super) fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}

/// Whether this is a file that is not known, or a folder with one.
fn has_stranger(top: &Path, place: &Path, known: &HashSet<&Path>) -> bool {
    if !is_folder(&top.join(place)) {
        return !known.contains(place);
    }
    match std::fs::read_dir(top.join(place)) {
        Ok(entries) => {
            entries.flatten().any(|entry| has_stranger(top, &place.join(entry.file_name()), known))
        }
        Err(_) => true,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::GitError;
    use crate::git::Git;
    use crate::git::tests::{git, project, told};
    use std::path::Path;
    use std::process::Stdio;

    pub(in crate::git) fn write(folder: &Path, name: &str, text: &str) {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// A branch `next` that is one commit before `main`.
    pub(in crate::git) fn ahead(folder: &Path, change: impl FnOnce()) {
        git(folder, &["switch", "--quiet", "-c", "next"]);
        change();
        git(folder, &["add", "--all", "--force"]);
        git(folder, &["commit", "--quiet", "-m", "next"]);
        git(folder, &["switch", "--quiet", "main"]);
    }

    async fn in_the_way(project: &Git) -> Vec<String> {
        match project.can_move_to("next").await {
            Ok(()) => Vec::new(),
            Err(GitError::InTheWay(files)) => files,
            Err(other) => panic!("{other}"),
        }
    }

    #[tokio::test]
    async fn what_is_ignored_is_in_the_way_like_everything_that_is_not_committed() {
        let (dir, project, _) = project();
        let root = dir.path();
        write(root, ".gitignore", ".env\nbuild\nout\nlink\n");
        git(root, &["add", "--all"]);
        git(root, &["commit", "--quiet", "-m", "ignore"]);
        ahead(root, || {
            for name in [".env", "build", "out/a/b", "link/below", "unknown"] {
                write(root, name, "theirs");
            }
        });
        assert_eq!(in_the_way(&project).await, [""; 0]);
        write(root, ".env", "mine");
        write(root, "build/deep/file", "mine");
        write(root, "out", "mine");
        write(root, "unknown", "mine");
        std::fs::create_dir(root.join("elsewhere")).unwrap();
        std::os::unix::fs::symlink("elsewhere", root.join("link")).unwrap();
        assert_eq!(in_the_way(&project).await, [".env", "build/", "link", "out", "unknown"]);
        // Nor does it go when nobody looked before.
        std::fs::remove_file(root.join("unknown")).unwrap();
        project.fast_forward("main", "next", Stdio::null()).await.unwrap_err();
        for name in [".env", "build/deep/file", "out"] {
            assert_eq!(std::fs::read_to_string(root.join(name)).unwrap(), "mine", "{name}");
        }
        assert!(root.join("link").is_symlink());
    }

    #[tokio::test]
    async fn what_is_committed_and_empty_folders_are_in_nobodys_way() {
        let (dir, project, _) = project();
        let root = dir.path();
        write(root, "file", "text");
        write(root, "folder/file", "text");
        git(root, &["add", "--all"]);
        git(root, &["commit", "--quiet", "-m", "both"]);
        ahead(root, || {
            std::fs::remove_file(root.join("file")).unwrap();
            write(root, "file/below", "theirs");
            std::fs::remove_dir_all(root.join("folder")).unwrap();
            write(root, "folder", "theirs");
            write(root, "empty", "theirs");
        });
        std::fs::create_dir(root.join("empty")).unwrap();
        assert_eq!(in_the_way(&project).await, [""; 0]);
        project.fast_forward("main", "next", Stdio::null()).await.unwrap();
        assert_eq!(std::fs::read_to_string(root.join("folder")).unwrap(), "theirs");
        write(root, "file/mine", "mine");
        git(root, &["branch", "--force", "next", "HEAD~"]);
        assert_eq!(in_the_way(&project).await, ["file/"]);
    }

    #[tokio::test]
    async fn no_setting_of_the_user_keeps_the_branch_where_it_is() {
        for (name, value) in [
            ("merge.verifySignatures", "true"),
            ("merge.ff", "false"),
            ("branch.main.mergeOptions", "--squash"),
            ("branch.main.mergeOptions", "--strategy=ours"),
            ("branch.main.mergeOptions", "--no-ff --no-commit --verify-signatures"),
        ] {
            let (dir, project, _) = project();
            ahead(dir.path(), || write(dir.path(), "file", "theirs"));
            git(dir.path(), &["config", name, value]);
            project.fast_forward("main", "next", Stdio::null()).await.unwrap();
            let at = git(dir.path(), &["rev-parse", "main", "next"]);
            let (main, next) = at.split_once('\n').unwrap();
            assert_eq!(main, next, "{name}={value}");
            assert_eq!(git(dir.path(), &["status", "--porcelain"]), "");
        }
    }

    #[tokio::test]
    async fn what_did_not_come_to_the_branch_is_told_also_when_git_is_content() {
        let (dir, project, _) = project();
        ahead(dir.path(), || write(dir.path(), "file", "theirs"));
        let hook = dir.path().join(".git/hooks/post-merge");
        // Stands for whatever may come: git ends well, and the branch is where it was.
        write(dir.path(), ".git/hooks/post-merge", "#!/bin/sh\ngit reset --quiet --hard HEAD~\n");
        std::fs::set_permissions(hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        project.fast_forward("main", "next", Stdio::null()).await.unwrap_err();
    }

    #[tokio::test]
    async fn what_a_person_is_in_the_middle_of_refuses_a_merge() {
        let (dir, project, _) = project();
        ahead(dir.path(), || write(dir.path(), "file", "theirs"));
        project.check_idle().await.unwrap();
        git(dir.path(), &["merge", "--quiet", "--no-ff", "--no-commit", "--strategy=ours", "next"]);
        assert_eq!(git(dir.path(), &["status", "--porcelain"]), "", "nothing else shows it");
        let error = project.check_idle().await.unwrap_err();
        assert!(told(&error).0.starts_with("a merge has begun"), "{error}");
        git(dir.path(), &["merge", "--abort"]);
        for name in ["CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge/done"] {
            project.check_idle().await.unwrap();
            let path = format!(".git/{name}");
            write(dir.path(), &path, "");
            project.check_idle().await.unwrap_err();
            let _ = std::fs::remove_file(dir.path().join(path));
            let _ = std::fs::remove_dir(dir.path().join(".git/rebase-merge"));
        }
    }
}
