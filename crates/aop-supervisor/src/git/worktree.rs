//! The worktree of a feature: made, found, brought back to its repository, and taken away.

use super::pen::Pen;
use super::{Base, Git, GitError, changed_files, link};
use crate::settings::Worktrees;
use aop_engine::AOP_DIR;
use aop_kernel::ids::FeatureId;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Said each time: the user's settings may hide files.
const ALL: &str = "status.showUntrackedFiles=normal";

impl Git {
    /// Where all worktrees are.
    pub(super) fn worktrees_folder(&self) -> PathBuf {
        self.root.join(AOP_DIR).join("worktrees")
    }

    /// Where a feature is worked on.
    pub(crate) fn worktree(&self, feature: &FeatureId) -> PathBuf {
        self.worktrees_folder().join(feature.as_str())
    }

    /// The worktree of a feature, made when it is missing, on its own branch off this base, or off the head.
    pub(crate) async fn worktree_from(
        &self,
        feature: &FeatureId,
        base: Option<&Base>,
    ) -> Result<PathBuf, GitError> {
        let path = self.worktree(feature);
        let branch = Git::branch(feature);
        let _one_at_a_time = self.making.lock().await;
        if self.worktrees == Worktrees::Plain {
            let made = tokio::fs::create_dir_all(&path).await;
            return made.map(|()| path.clone()).map_err(|error| GitError::disk(&path, "made", &error));
        }
        // Written last: without it the worktree may be half made.
        let whole = path.with_extension("whole");
        if whole.exists() && path.exists() {
            self.mend(&path).await?;
            drop(Pen::take(&path).await?);
            return Ok(path);
        }
        // Of a worktree that a person took away: it would vouch for the next one from its first file on.
        forget(&whole).map_err(|error| GitError::disk(&whole, "taken away", &error))?;
        // A git that outlived its aop may still be making this one, and takes it away again when it fails.
        let pen = Pen::take(&path).await?;
        if path.exists() {
            // Left behind half made: it holds nothing that was committed, and git would refuse the place.
            let _ = tokio::fs::remove_dir_all(&path).await;
        }
        let place = path.display().to_string();
        // One that git was killed over is still locked, and would not be pruned. Mostly there is none.
        let _ = self.git(&self.root, &["worktree", "unlock", &place]).await;
        self.prune().await?;
        let git = self.on_behalf_of(feature);
        if self.commit_of(&branch).await.is_some() {
            git.run(&self.root, &["worktree", "add", "--quiet", &place, &branch], pen.hand()).await?;
        } else {
            let start = self.start_from(base).await;
            let args = ["worktree", "add", "--quiet", "-b", &branch, &place, &start];
            git.run(&self.root, &args, pen.hand()).await?;
        }
        tokio::fs::write(&whole, b"").await.map_err(|error| GitError::disk(&whole, "written", &error))?;
        Ok(path)
    }

    /// Brings every worktree that stands here back to this repository: where the project's folder was moved or copied,
    /// they still are of the one that it came from. Those that need a person are found when they are needed.
    pub(crate) async fn mend_worktrees(&self) {
        for worktree in self.standing() {
            let _ = self.mend(&worktree).await;
        }
    }

    /// What a person has to do about worktrees.
    pub async fn worktrees_in_doubt(&self) -> Result<Vec<GitError>, GitError> {
        let common = self.common().await?;
        let worktrees = self.standing().into_iter();
        Ok(worktrees.filter_map(|worktree| link::look(common, &worktree).err()).collect())
    }

    /// The worktrees that were made and are there.
    fn standing(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.worktrees_folder());
        let paths = entries.into_iter().flatten().flatten().map(|entry| entry.path());
        let made = paths.filter(|path| path.extension().is_some_and(|extension| extension == "whole"));
        made.map(|path| path.with_extension("")).filter(|path| path.is_dir()).collect()
    }

    /// Makes sure that a worktree is of this repository, before any git runs there.
    pub(super) async fn mend(&self, worktree: &Path) -> Result<(), GitError> {
        if self.worktrees == Worktrees::Plain {
            return Ok(());
        }
        link::mend(self.common().await?, worktree)
    }

    pub(super) async fn common(&self) -> Result<&Path, GitError> {
        let find = async || {
            let said = self.git(&self.root, &["rev-parse", "--git-common-dir"]).await?;
            let path = self.root.join(said.trim_end_matches('\n'));
            path.canonicalize().map_err(|error| GitError::disk(&path, "found", &error))
        };
        self.common.get_or_try_init(find).await.map(PathBuf::as_path)
    }

    /// Has git forget the worktrees that are gone. It would take those for gone that have another place now.
    pub(super) async fn prune(&self) -> Result<(), GitError> {
        self.mend_worktrees().await;
        self.git(&self.root, &["worktree", "prune"]).await.map(drop)
    }

    /// Takes a feature's worktree away, with what git ignores there; its branch stays. What is there and nowhere else
    /// keeps it: files that are not committed, a commit that is not on the branch, or one in a submodule.
    pub(crate) async fn remove_worktree(&self, feature: &FeatureId) -> Result<Vec<String>, GitError> {
        let path = self.worktree(feature);
        let place = path.display().to_string();
        if path.exists() {
            self.mend(&path).await?;
            let files = self.uncommitted(&path).await?;
            if !files.is_empty() {
                return Ok(files);
            }
            let head = self.head(&path).await?;
            if !self.branch_contains(&Git::branch(feature), &head).await {
                return Ok(vec![format!("commit {head}")]);
            }
            let files = self.files_for_submodules(&path).await?;
            if !files.is_empty() {
                return Ok(files);
            }
            let ahead = self.submodules_ahead(&path).await?;
            if !ahead.is_empty() {
                let of = ahead.join(", ");
                return Ok(vec![format!("commits of the submodule {of} that are on no remote")]);
            }
            // Git looks once more by itself, unless there are submodules: those it removes only by force.
            let mut args = vec!["-c", ALL, "worktree", "remove", &place];
            args.extend(path.join(".gitmodules").exists().then_some("--force"));
            self.git(&self.root, &args).await?;
        } else {
            self.prune().await?;
        }
        // Gone is what was wanted.
        let _ = tokio::fs::remove_file(path.with_extension("whole")).await;
        let _ = tokio::fs::remove_file(path.with_extension("lock")).await;
        Ok(Vec::new())
    }

    /// What is not committed in a checkout.
    pub(super) async fn uncommitted(&self, checkout: &Path) -> Result<Vec<String>, GitError> {
        let args = ["-c", ALL, "status", "--porcelain", "--ignore-submodules=none"];
        Ok(changed_files(&self.git(checkout, &args).await?))
    }
}

/// Takes the mark of a whole worktree away, for good before anything else happens in its folder: after a crash of the
/// machine it would stand beside the half that was made without it. Makes that folder where there is none.
fn forget(mark: &Path) -> std::io::Result<()> {
    let folder = mark.parent().unwrap_or(mark);
    std::fs::create_dir_all(folder)?;
    match std::fs::remove_file(mark) {
        Ok(()) => File::open(folder)?.sync_all(),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use crate::git::Git;
    use crate::git::pen::Pen;
    use crate::git::tests::{git, project};
    use aop_kernel::ids::FeatureId;
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::time::Duration;

    const FILES: [&str; 3] = ["a.dat", "b.dat", "c.dat"];

    /// A project with files that go through a filter on their way into a worktree, and the worktree.
    async fn filtered() -> (tempfile::TempDir, Git, FeatureId, PathBuf) {
        let (dir, project, id) = project();
        for file in FILES {
            std::fs::write(dir.path().join(file), "text").unwrap();
        }
        git(dir.path(), &["add", "--", "*.dat"]);
        git(dir.path(), &["commit", "--quiet", "-m", "second"]);
        let worktree = project.ensure_worktree(&id).await.unwrap();
        std::fs::create_dir_all(dir.path().join(".git/info")).unwrap();
        std::fs::write(dir.path().join(".git/info/attributes"), "*.dat filter=slow\n").unwrap();
        (dir, project, id, worktree)
    }

    /// A checkout that never ends, after its first file.
    fn hang(dir: &Path) {
        git(dir, &["config", "filter.slow.smudge", "test -e first && exec sleep 600; touch first; cat"]);
    }

    #[tokio::test]
    async fn the_mark_of_a_worktree_that_was_taken_away_does_not_vouch_for_the_next_one() {
        let takes_away: [fn(&Path, &Path); 3] = [
            |_, worktree| std::fs::remove_dir_all(worktree).unwrap(),
            |root, worktree| std::fs::rename(worktree, root.join("old")).unwrap(),
            |root, worktree| drop(git(root, &["worktree", "remove", worktree.to_str().unwrap()])),
        ];
        for take_away in takes_away {
            let (dir, project, id, worktree) = filtered().await;
            take_away(dir.path(), &worktree);
            hang(dir.path());
            let hurried = Git::new(dir.path()).within(Duration::from_secs(1));
            let error = hurried.ensure_worktree(&id).await.unwrap_err().to_string();
            assert!(error.contains("took longer than 1 s"), "{error}");
            git(dir.path(), &["config", "filter.slow.smudge", "cat"]);
            project.ensure_worktree(&id).await.unwrap();
            project.commit_all(&id, "third").await.unwrap();
            let kept = git(dir.path(), &["ls-tree", "--name-only", "aop/checkout"]);
            assert_eq!(kept, FILES.join("\n"), "what was not checked out yet was taken for deleted");
        }
    }

    #[tokio::test]
    async fn a_worktree_that_the_git_of_a_killed_aop_still_makes_is_waited_for() {
        let (dir, project, id, worktree) = filtered().await;
        std::fs::remove_dir_all(&worktree).unwrap();
        // Stands for that git, and has what such a git is given.
        let pen = Pen::take(&worktree).await.unwrap();
        let mut outlives =
            Command::new("sh").args(["-c", "kill -STOP $$"]).stdin(pen.hand()).spawn().unwrap();
        drop(pen);
        let mut making = std::pin::pin!(project.ensure_worktree(&id));
        let soon = tokio::time::timeout(Duration::from_millis(300), &mut making);
        assert!(soon.await.is_err(), "it was not waited for");
        assert!(!worktree.exists());
        outlives.kill().unwrap();
        outlives.wait().unwrap();
        making.await.unwrap();
        assert_eq!(git(dir.path(), &["-C", worktree.to_str().unwrap(), "status", "--porcelain"]), "");
    }

    #[tokio::test]
    async fn a_git_that_makes_a_worktree_has_the_pen_for_it() {
        let (dir, project, id, worktree) = filtered().await;
        std::fs::remove_dir_all(&worktree).unwrap();
        hang(dir.path());
        // With a limit it is ended together with the filter when nobody waits any more.
        let project = project.within(Duration::from_secs(600));
        let mut making = Box::pin(project.ensure_worktree(&id));
        // The lock is another's for each file that was opened by itself.
        let lock = std::fs::File::open(worktree.with_extension("lock")).unwrap();
        while !FILES.iter().any(|file| worktree.join(file).exists()) {
            assert!(tokio::time::timeout(Duration::from_millis(20), &mut making).await.is_err());
        }
        assert!(lock.try_lock().is_err());
        drop(making);
    }
}
