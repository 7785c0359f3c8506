//! The worktree of a feature: made, found, brought back to its repository, and taken away.

use super::pen::Pen;
use super::{Base, Git, GitError, changed_files, link};
use crate::settings::Worktrees;
use aop_engine::AOP_DIR;
use aop_kernel::ids::FeatureId;
use std::path::{Path, PathBuf};

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
            return made.map(|()| path.clone()).map_err(|error| GitError::Failed {
                command: format!("mkdir {}", path.display()),
                said: error.to_string(),
            });
        }
        // Written last: without it the worktree may be half made.
        let whole = path.with_extension("whole");
        if whole.exists() && path.exists() {
            self.mend(&path).await?;
            drop(Pen::take(&path).await?);
            return Ok(path);
        }
        if path.exists() {
            // Left behind half made: it holds nothing that was committed, and git would refuse the place.
            let _ = tokio::fs::remove_dir_all(&path).await;
        }
        let place = path.display().to_string();
        // One that git was killed over is still locked, and would not be pruned. Mostly there is none.
        let _ = self.git(&self.root, &["worktree", "unlock", &place]).await;
        self.prune().await?;
        let has_branch = self
            .git(&self.root, &["rev-parse", "--verify", "--quiet", &format!("refs/heads/{branch}")])
            .await
            .is_ok();
        let git = self.on_behalf_of(feature);
        if has_branch {
            git.git(&self.root, &["worktree", "add", "--quiet", &place, &branch]).await?;
        } else {
            let start = self.start_from(base).await;
            git.git(&self.root, &["worktree", "add", "--quiet", "-b", &branch, &place, &start]).await?;
        }
        tokio::fs::write(&whole, b"").await.map_err(|error| GitError::Failed {
            command: format!("worktree add {place}"),
            said: error.to_string(),
        })?;
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
            path.canonicalize().map_err(|error| GitError::Failed {
                command: format!("rev-parse --git-common-dir in {}", path.display()),
                said: error.to_string(),
            })
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
        // Said each time: the user's settings may hide files.
        const ALL: &str = "status.showUntrackedFiles=normal";
        let path = self.worktree(feature);
        let place = path.display().to_string();
        if path.exists() {
            self.mend(&path).await?;
            let args = ["-c", ALL, "status", "--porcelain", "--ignore-submodules=none"];
            let said = self.git(&path, &args).await?;
            if !said.trim().is_empty() {
                return Ok(changed_files(&said));
            }
            let head = self.head(&path).await?;
            if !self.branch_contains(&Git::branch(feature), &head).await {
                return Ok(vec![format!("commit {head}")]);
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
}
