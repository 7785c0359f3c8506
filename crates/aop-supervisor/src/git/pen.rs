//! Who may write in a worktree. A git that is killed leaves its lock files behind, and no other git will touch the place
//! again; one whose `aop` was killed goes on by itself. So every git of ours holds a lock of ours as long as it lives, and
//! whoever has that lock knows that what else is locked there is a left-over: of ours, or of an agent that is gone.

use super::GitError;
use crate::shown;
use aop_store::worktree::end_of;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// How long to wait for a git that outlived its `aop`.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long between two looks at it.
const LOOK: Duration = Duration::from_millis(20);

/// The right to write in one worktree, until it is dropped and every git that was given it has ended.
pub(super) struct Pen(File);

impl Pen {
    /// Waits for whoever still writes there, and clears away what the killed have left.
    pub(super) async fn take(worktree: &Path) -> Result<Self, GitError> {
        let lock = worktree.with_extension("lock");
        let failed = |error: &std::io::Error| GitError::disk(&lock, "locked", error);
        let file = File::options().create(true).truncate(false).write(true).read(true).open(&lock);
        let file = file.map_err(|error| failed(&error))?;
        let start = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if start.elapsed() < PATIENCE => tokio::time::sleep(LOOK).await,
                Err(TryLockError::WouldBlock) => {
                    return Err(GitError::Unusable {
                        message: format!(
                            "a git that an earlier aop started in {} does not end",
                            shown::name(worktree)
                        ),
                        hint: format!(
                            "`fuser -v {}` names it; end it, then `aop retry --feature-id {}`",
                            shown::word(&lock),
                            shown::name(worktree.file_name().unwrap_or_default())
                        ),
                    });
                }
                Err(TryLockError::Error(error)) => return Err(failed(&error)),
            }
        }
        for left in left_over(worktree) {
            // Mostly there is none.
            let _ = std::fs::remove_file(left);
        }
        Ok(Pen(file))
    }

    /// For a git: it holds on to the pen for as long as it lives. There is nothing in the file to be read.
    pub(super) fn hand(&self) -> Stdio {
        self.0.try_clone().map_or_else(|_| Stdio::null(), Stdio::from)
    }
}

/// The lock files that git makes when it writes in this worktree and on its branch.
fn left_over(worktree: &Path) -> Vec<PathBuf> {
    let Some(own) = end_of(&worktree.join(".git")) else { return Vec::new() };
    let name = worktree.file_name().unwrap_or_default().to_string_lossy();
    // A worktree's own folder is `.git/worktrees/NAME`.
    let branch = own.join("../../refs/heads/aop").join(format!("{name}.lock"));
    vec![own.join("index.lock"), own.join("HEAD.lock"), branch]
}

#[cfg(test)]
mod tests {
    use crate::git::tests::project;
    use std::process::Command;

    #[tokio::test]
    async fn a_git_that_was_killed_in_a_worktree_is_in_nobodys_way() {
        for link in [None, Some("gitdir: ../../../.git/worktrees/checkout\n")] {
            let (dir, project, id) = project();
            let worktree = project.ensure_worktree(&id).await.unwrap();
            if let Some(relative) = link {
                std::fs::write(worktree.join(".git"), relative).unwrap();
            }
            let of_git = dir.path().join(".git");
            for lock in [
                "worktrees/checkout/index.lock",
                "worktrees/checkout/HEAD.lock",
                "refs/heads/aop/checkout.lock",
            ] {
                std::fs::write(of_git.join(lock), "").unwrap();
            }
            std::fs::write(worktree.join("new"), "text").unwrap();
            let before = project.head(&worktree).await.unwrap();
            let after = project.commit_all(&id, "second").await.unwrap();
            assert_ne!(before, after);
            // Nor in that of the agent, whose own git comes first in its turn.
            let lock = of_git.join("worktrees/checkout/index.lock");
            std::fs::write(&lock, "").unwrap();
            project.ensure_worktree(&id).await.unwrap();
            assert!(!lock.exists());
        }
    }

    #[tokio::test]
    async fn the_locks_of_the_users_own_checkout_are_never_touched() {
        let (dir, project, id) = project();
        let lock = dir.path().join(".git/index.lock");
        std::fs::write(&lock, "").unwrap();
        let worktree = project.ensure_worktree(&id).await.unwrap();
        std::fs::write(worktree.join("new"), "text").unwrap();
        project.commit_all(&id, "second").await.unwrap();
        assert!(lock.exists());
    }

    #[tokio::test]
    async fn a_git_that_outlives_its_aop_is_waited_for() {
        let (_dir, project, id) = project();
        let worktree = project.ensure_worktree(&id).await.unwrap();
        let pen = super::Pen::take(&worktree).await.unwrap();
        // Stands for git: it has what a git is given, and ends when it is told to.
        let mut outlives =
            Command::new("sh").args(["-c", "kill -STOP $$"]).stdin(pen.hand()).spawn().unwrap();
        drop(pen);
        let mut taking = std::pin::pin!(super::Pen::take(&worktree));
        for _ in 0..3 {
            let soon = tokio::time::timeout(super::LOOK * 2, &mut taking);
            assert!(soon.await.is_err(), "it was not waited for");
        }
        outlives.kill().unwrap();
        outlives.wait().unwrap();
        taking.await.unwrap();
    }
}
