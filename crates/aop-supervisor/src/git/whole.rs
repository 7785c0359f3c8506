//! What may be committed of a worktree: all of it, so that nothing only seems to be kept. A file in the middle of a merge
//! would be taken for resolved, and of a repository inside the worktree only the name of a commit would be kept.

use super::checkout::{AT_ONCE, GITLINK, names, under_way};
use super::{Git, GitError};
use crate::shown;
use aop_kernel::ids::FeatureId;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

impl Git {
    /// Refuses files in which a merge has left its marks.
    pub(super) async fn check_resolved(&self, feature: &FeatureId, worktree: &Path) -> Result<(), GitError> {
        let said = self.bytes(worktree, &["ls-files", "--unmerged", "-z"]).await?;
        // `100644 1234 2`, a tab, then the name.
        let paths = names(&said).filter_map(|entry| entry.as_bytes().splitn(2, |byte| *byte == b'\t').nth(1));
        let mut paths: Vec<&OsStr> = paths.map(OsStr::from_bytes).collect();
        paths.dedup();
        let mut left = Vec::new();
        for paths in paths.chunks(AT_ONCE) {
            let mut args = ["check-attr", "-z", "conflict-marker-size", "--"].map(OsStr::new).to_vec();
            args.extend(paths);
            let said = self.bytes(worktree, &args).await?;
            // The name, the attribute, its value.
            for (path, size) in paths.iter().zip(names(&said).skip(2).step_by(3)) {
                let size = size.to_str().and_then(|size| size.parse().ok()).filter(|size| *size > 0);
                if has_marks(&worktree.join(path), size.unwrap_or(MARK).min(MARK)) {
                    left.push(shown::name(path));
                }
            }
        }
        if left.is_empty() {
            return Ok(());
        }
        let (shown, there) = (shown::name(worktree), shown::word(worktree));
        let under_way = under_way(worktree);
        let way = match under_way {
            // Of a merge that leaves no trace, such as that of a stash.
            None => format!("resolve them there, or leave it with `cd {there} && git reset --merge`"),
            // Steps may come after this one, and the branch moves at the end.
            Some((_, command @ ("rebase" | "am"))) => goes_on(&there, command),
            Some((_, command)) => {
                format!("resolve them there, or leave it with `cd {there} && git {command} --abort`")
            }
        };
        let what = under_way.map_or("a merge", |(what, _)| what);
        Err(GitError::Unusable {
            message: format!("{shown} is in the middle of {what}, with conflicts in {}", left.join(", ")),
            hint: format!("{way}; then `aop retry --feature-id {feature}`"),
        })
    }

    /// Refuses a repository that nobody added. One without a commit git does not add, nor anything beside it.
    pub(super) async fn check_addable(&self, feature: &FeatureId, worktree: &Path) -> Result<(), GitError> {
        let said = self.bytes(worktree, &["ls-files", "--others", "--exclude-standard", "-z"]).await?;
        // All that is not added is a file, except for these.
        let inside = names(&said).filter_map(|name| name.as_bytes().strip_suffix(b"/"));
        let inside: Vec<&OsStr> = inside.map(OsStr::from_bytes).collect();
        match self.no_submodule(worktree, &inside).await {
            Some(name) => Err(own_repository(feature, worktree, name)),
            None => Ok(()),
        }
    }

    /// Refuses a repository that is new among what was added and is no submodule.
    pub(super) async fn check_whole(&self, feature: &FeatureId, worktree: &Path) -> Result<(), GitError> {
        let changes = self.raw(worktree, &["diff", "--cached"]).await?;
        let added = changes.iter().filter(|change| change.mode == GITLINK && change.mode_before != GITLINK);
        let added: Vec<&OsStr> = added.map(|change| change.path.as_os_str()).collect();
        let Some(name) = self.no_submodule(worktree, &added).await else { return Ok(()) };
        let mut args = ["--literal-pathspecs", "reset", "--quiet", "--"].map(OsStr::new).to_vec();
        args.push(name);
        self.bytes(worktree, &args).await?;
        Err(own_repository(feature, worktree, name))
    }

    /// The first of these repositories that is none of the project's submodules.
    async fn no_submodule<'a>(&self, worktree: &Path, names: &[&'a OsStr]) -> Option<&'a OsStr> {
        if names.is_empty() {
            return None;
        }
        let known = ["config", "--file", ".gitmodules", "-z", "--get-regexp", r"^submodule\..*\.path$"];
        // Without that file there are none.
        let known = self.bytes(worktree, &known).await.unwrap_or_default();
        // The key, a line break, then the path.
        let known = known.split(|byte| *byte == 0);
        let known = known.filter_map(|entry| entry.splitn(2, |byte| *byte == b'\n').nth(1));
        let known: Vec<&OsStr> = known.map(OsStr::from_bytes).collect();
        names.iter().copied().find(|name| !known.contains(name))
    }
}

/// How a person ends what has several steps.
pub(super) fn goes_on(there: &str, command: &str) -> String {
    format!(
        "resolve what is open there and go on with `cd {there} && git add -A && git {command} --continue`, or leave it with `cd {there} && git {command} --abort`"
    )
}

fn own_repository(feature: &FeatureId, worktree: &Path, name: &OsStr) -> GitError {
    let place = worktree.join(name);
    let (shown, inner) = (shown::name(&place), shown::word(place.join(".git")));
    GitError::Unusable {
        message: format!(
            "{shown} is a repository of its own: its files would not come along with the feature"
        ),
        hint: format!(
            "`rm -rf -- {inner}` makes its files part of the feature; then `aop retry --feature-id {feature}`"
        ),
    }
}

/// How long a mark is, unless an attribute says otherwise.
const MARK: usize = 7;

/// Whether a merge's marks, of this length or longer, stand in a file, as far as anybody can tell.
fn has_marks(path: &Path, least: usize) -> bool {
    // In a folder or a link there are none, and what is gone was resolved by that.
    if !path.symlink_metadata().is_ok_and(|found| found.is_file()) {
        return false;
    }
    let is_mark = |line: &[u8]| {
        let length = line.iter().take_while(|byte| **byte == b'<').count();
        length >= least && line.get(length).is_none_or(u8::is_ascii_whitespace)
    };
    aop_store::read_file(path).map_or(true, |text| text.split(|byte| *byte == b'\n').any(is_mark))
}

#[cfg(test)]
mod tests {
    use crate::git::Git;
    use crate::git::tests::{git, obey, project, told};
    use aop_kernel::ids::FeatureId;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::path::PathBuf;

    /// A worktree in the middle of a merge that conflicts in this file.
    async fn in_conflict(file: &OsStr) -> (tempfile::TempDir, Git, FeatureId, PathBuf) {
        let (folder, projects_git, id) = project();
        let sizes = "long conflict-marker-size=32\nshort conflict-marker-size=5\n";
        std::fs::write(folder.path().join(".gitattributes"), sizes).unwrap();
        git(folder.path(), &["add", "--all"]);
        git(folder.path(), &["commit", "-qm", "attributes"]);
        let worktree = projects_git.ensure_worktree(&id).await.unwrap();
        std::fs::write(worktree.join(file), "theirs").unwrap();
        projects_git.commit_all(&id, "theirs").await.unwrap();
        std::fs::write(folder.path().join(file), "ours").unwrap();
        git(folder.path(), &["add", "--all", "--", ":!.aop"]);
        git(folder.path(), &["commit", "-qm", "ours"]);
        collide(&worktree, &["merge", "-q", "main"]);
        (folder, projects_git, id, worktree)
    }

    /// A git that stops at a conflict.
    fn collide(worktree: &std::path::Path, command: &[&str]) {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(command).current_dir(worktree);
        let stopped = git.output().unwrap();
        assert!(!stopped.status.success(), "there is a conflict: {stopped:?}");
    }

    #[tokio::test]
    async fn conflicts_are_not_committed_unless_somebody_resolved_them() {
        // One whose marks are longer, one whose are shorter, and one whose name is no text.
        for file in [&b"a"[..], b"long", b"short", b"caf\xe9.txt"] {
            let file = OsStr::from_bytes(file);
            let (_folder, projects_git, id, worktree) = in_conflict(file).await;
            let before = projects_git.head(&worktree).await.unwrap();
            let refused = projects_git.commit_all(&id, "built").await.unwrap_err().to_string();
            assert!(refused.contains(&format!("with conflicts in {}", file.display())), "{refused}");
            assert_eq!(projects_git.head(&worktree).await.unwrap(), before);
            std::fs::write(worktree.join(file), "both\n<<<<<<<<no mark\n").unwrap();
            assert_ne!(projects_git.commit_all(&id, "built").await.unwrap(), before);
        }
    }

    /// The commands of a hint, word for word.
    fn commands(hint: &str) -> Vec<String> {
        let commands = hint.split('`').skip(1).step_by(2).map(|command| format!("`{command}`"));
        commands.filter(|command| !command.contains("aop retry")).collect()
    }

    /// A worktree that was left while this was under way, with a conflict.
    async fn stopped_in(command: &[&str]) -> (tempfile::TempDir, Git, FeatureId, PathBuf) {
        let (folder, projects_git, id, worktree) = in_conflict(OsStr::new("a")).await;
        git(&worktree, &["merge", "--abort"]);
        collide(&worktree, command);
        (folder, projects_git, id, worktree)
    }

    #[tokio::test]
    async fn whatever_a_worktree_is_in_the_middle_of_is_called_by_its_name_and_can_be_left_as_the_hint_says()
    {
        for (command, what) in [
            (&["merge", "main"][..], "a merge"),
            (&["rebase", "main"], "a rebase"),
            (&["rebase", "--apply", "main"], "a rebase"),
            (&["cherry-pick", "main"], "a cherry-pick"),
            (&["revert", "main"], "a revert"),
        ] {
            let (folder, projects_git, id, worktree) = stopped_in(command).await;
            if what == "a revert" {
                // Git leaves one side of this as it is, without marks.
                std::fs::write(worktree.join("a"), "<<<<<<< HEAD\n").unwrap();
            }
            let error = projects_git.commit_all(&id, "built").await.unwrap_err();
            let (message, hint) = told(&error);
            assert!(message.contains(&format!("in the middle of {what}, with conflicts in a")), "{message}");
            obey(commands(hint).last().unwrap(), folder.path());
            assert_eq!(git(&worktree, &["status", "--porcelain"]), "", "{hint}");
            assert_eq!(git(&worktree, &["branch", "--show-current"]), "aop/checkout");
            projects_git.commit_all(&id, "built").await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_rebase_that_was_resolved_and_not_ended_is_ended_as_the_hint_says() {
        for is_resolved_first in [false, true] {
            let (folder, projects_git, id, worktree) = stopped_in(&["rebase", "main"]).await;
            if is_resolved_first {
                std::fs::write(worktree.join("a"), "both").unwrap();
            }
            let error = projects_git.commit_all(&id, "built").await.unwrap_err();
            let (message, hint) = told(&error);
            assert!(message.contains("in the middle of a rebase"), "{message}");
            std::fs::write(worktree.join("a"), "both").unwrap();
            obey(&commands(hint)[0], folder.path());
            let commit = projects_git.commit_all(&id, "built").await.unwrap();
            assert_eq!(git(folder.path(), &["rev-parse", "aop/checkout"]), commit);
            assert_eq!(git(folder.path(), &["show", "aop/checkout:a"]), "both");
            assert_eq!(
                git(folder.path(), &["merge-base", "main", &commit]),
                git(folder.path(), &["rev-parse", "main"])
            );
        }
    }

    #[tokio::test]
    async fn a_conflict_is_resolved_also_by_taking_the_file_away() {
        let (_folder, projects_git, id, worktree) = in_conflict(OsStr::new("a")).await;
        std::fs::remove_file(worktree.join("a")).unwrap();
        projects_git.commit_all(&id, "built").await.unwrap();
        assert_eq!(git(&worktree, &["ls-tree", "--name-only", "HEAD"]), ".gitattributes");
    }

    #[tokio::test]
    async fn a_repository_inside_the_worktree_is_found_whatever_git_is_set_to() {
        let (folder, projects_git, id) = project();
        git(folder.path(), &["config", "diff.ignoreSubmodules", "all"]);
        let inner = projects_git.ensure_worktree(&id).await.unwrap().join("lib");
        git(folder.path(), &["init", "-q", inner.to_str().unwrap()]);
        git(&inner, &["commit", "-qm", "inner", "--allow-empty"]);
        let refused = projects_git.commit_all(&id, "built").await.unwrap_err().to_string();
        assert!(refused.contains("lib is a repository of its own"), "{refused}");
    }

    #[tokio::test]
    async fn what_a_hint_says_about_a_repository_takes_away_that_one_and_does_nothing_else_whatever_its_name()
    {
        for name in ["my lib", "lib; touch owned; echo ", "lib`touch owned`", "lib\ntouch owned\n", "*"] {
            for has_commit in [false, true] {
                let (folder, projects_git, id) = project();
                let worktree = projects_git.ensure_worktree(&id).await.unwrap();
                let inner = worktree.join(name);
                std::fs::create_dir(&inner).unwrap();
                std::fs::write(inner.join("file"), "text").unwrap();
                git(&inner, &["init", "-q"]);
                if has_commit {
                    git(&inner, &["add", "file"]);
                    git(&inner, &["commit", "-qm", "inner"]);
                }
                let error = projects_git.commit_all(&id, "built").await.unwrap_err();
                let (message, hint) = told(&error);
                assert_eq!(message.lines().count(), 1, "{message}");
                assert_eq!(hint.lines().count(), 1, "{hint}");
                obey(hint, folder.path());
                assert!(!folder.path().join("owned").exists(), "{hint}");
                projects_git.commit_all(&id, "built").await.unwrap();
                assert_eq!(std::fs::read_to_string(inner.join("file")).unwrap(), "text");
            }
        }
    }

    #[tokio::test]
    async fn a_repository_inside_the_worktree_is_not_committed_by_its_name_alone() {
        let (_folder, projects_git, id) = project();
        let worktree = projects_git.ensure_worktree(&id).await.unwrap();
        let inner = worktree.join("lib");
        std::fs::create_dir(&inner).unwrap();
        std::fs::write(inner.join("file"), "text").unwrap();
        git(&inner, &["init", "-q"]);
        let before = projects_git.head(&worktree).await.unwrap();
        for has_commit in [false, false, true, true] {
            if has_commit {
                git(&inner, &["add", "file"]);
                git(&inner, &["commit", "-qm", "inner", "--allow-empty"]);
            }
            let refused = projects_git.commit_all(&id, "built").await.unwrap_err().to_string();
            assert!(refused.contains("lib is a repository of its own"), "{refused}");
            assert_eq!(projects_git.head(&worktree).await.unwrap(), before);
        }
        std::fs::remove_dir_all(inner.join(".git")).unwrap();
        projects_git.commit_all(&id, "built").await.unwrap();
        assert_eq!(git(&worktree, &["ls-tree", "--name-only", "HEAD", "lib/"]), "lib/file");
    }
}
