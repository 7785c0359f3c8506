//! How long a git of a run may take. It reads what agents leave in their worktrees, a pipe in place of `.gitignore` as well,
//! and starts hooks and filters that may never end; so it is ended after a time, with all that it has started.

use super::{Git, GitError};
use crate::shown;
use rustix::process::{Pid, Signal, kill_process_group};
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::process::Command;

static RUNNING: Mutex<Running> = Mutex::new(Running { groups: Vec::new(), leaving: false });

/// What runs in this process.
struct Running {
    /// The groups of all gits that run.
    groups: Vec<Pid>,
    /// The process leaves: no git begins, and what became of those that ran is nobody's business.
    leaving: bool,
}

fn running() -> MutexGuard<'static, Running> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends every git that a run has started, with all that it has started: for a process that leaves without waiting for
/// its tasks. None begins any more, and nobody is told that his was ended: he would write down that it failed.
pub fn end_running_gits() {
    let mut running = running();
    running.leaving = true;
    for group in running.groups.drain(..) {
        end(group);
    }
}

fn end(group: Pid) {
    // It may have ended by itself in this moment.
    let _ = kill_process_group(group, Signal::KILL);
}

/// The process group of a git that runs: ended when nobody waits for it any more.
struct Group(Option<Pid>);

impl Group {
    /// It has ended, and its number may be another's.
    fn forget(&mut self) {
        if let Some(group) = self.0.take() {
            running().groups.retain(|known| *known != group);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            end(group);
        }
        self.forget();
    }
}

/// Never ends when the process leaves.
async fn unless_leaving() {
    if running().leaving {
        std::future::pending().await
    }
}

impl Git {
    /// The same, with a limit for every git.
    pub(crate) fn within(self, limit: Duration) -> Self {
        Git { limit: Some(limit), ..self }
    }

    /// Waits for a git, as long as it may take.
    pub(super) async fn wait(
        &self,
        mut command: Command,
        folder: &Path,
        shown: &str,
    ) -> Result<Output, GitError> {
        unless_leaving().await;
        // In the project's own folder nothing of an agent's holds it up, and to be ended there would read as a no.
        let theirs = self.behalf.is_some() || self.feature_at(folder).is_some();
        let Some(limit) = self.limit.filter(|_| theirs) else {
            return command.output().await.map_err(|error| self.not_started(&error, folder));
        };
        command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
        let begun = {
            // Whoever ends them all finds this one too.
            let mut running = running();
            if running.leaving {
                None
            } else {
                let child = command.spawn().map_err(|error| self.not_started(&error, folder))?;
                let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
                running.groups.extend(pid);
                Some((child, pid))
            }
        };
        let Some((child, pid)) = begun else { return std::future::pending().await };
        let mut waiting = std::pin::pin!(child.wait_with_output());
        // Dropped before the process itself is, while its number is still its own.
        let mut group = Group(pid);
        match tokio::time::timeout(limit, &mut waiting).await {
            Ok(output) => {
                group.forget();
                unless_leaving().await;
                output.map_err(|error| self.not_started(&error, folder))
            }
            Err(_) => Err(self.too_long(limit, folder, shown)),
        }
    }

    fn too_long(&self, limit: Duration, folder: &Path, shown: &str) -> GitError {
        let (retry, place, there) = (self.again(folder), shown::name(folder), shown::word(folder));
        GitError::Unusable {
            message: format!(
                "`git {shown}` in {place} took longer than {} s and was ended",
                limit.as_secs_f32()
            ),
            hint: format!(
                "see there what holds it up (`cd {there} && git status`): a hook, a filter, or a pipe in place of a file; `run.git_timeout_s` in aop.yaml gives it longer; then {retry}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::end_running_gits;
    use crate::git::Git;
    use crate::git::tests::{git, project, told};
    use aop_kernel::ids::FeatureId;
    use std::os::unix::fs::PermissionsExt;
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::sync::Arc;
    use std::time::Duration;

    /// A project whose commits hang in a hook, and the pipe that the hook has open for as long as it lives.
    async fn with_hanging_hook(limit: Duration) -> (tempfile::TempDir, Git, FeatureId, PathBuf, PathBuf) {
        let (dir, project, id) = project();
        let project = project.within(limit);
        let worktree = project.ensure_worktree(&id).await.unwrap();
        std::fs::write(worktree.join("work"), "text").unwrap();
        let [pipe, hook] = ["pipe", ".git/hooks/post-commit"].map(|name| dir.path().join(name));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
        std::fs::write(&hook, format!("#!/bin/sh\nexec sleep 600 3<> {}\n", pipe.display())).unwrap();
        std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
        (dir, project, id, pipe, hook)
    }

    fn is_held(pipe: &Path) -> bool {
        let all = std::fs::read_dir("/proc").unwrap().flatten().map(|process| process.path().join("fd/3"));
        all.filter_map(|open| std::fs::read_link(open).ok()).any(|open| open == pipe)
    }

    #[tokio::test]
    async fn a_git_that_takes_too_long_is_ended_with_the_hook_it_started() {
        let (dir, project, id, pipe, hook) = with_hanging_hook(Duration::from_secs(2)).await;
        let error = project.commit_all(&id, "second").await.unwrap_err();
        let (message, hint) = told(&error);
        assert!(message.contains("longer than 2 s") && message.contains("commit"), "{message}");
        assert!(hint.ends_with("`aop retry --feature-id checkout`"), "{hint}");
        // A killed process has its files a moment longer.
        while is_held(&pipe) {
            tokio::task::yield_now().await;
        }
        std::fs::remove_file(hook).unwrap();
        project.commit_all(&id, "third").await.unwrap();
        assert_eq!(git(dir.path(), &["show", "aop/checkout:work"]), "text");
    }

    #[tokio::test]
    async fn whoever_leaves_at_once_leaves_no_git_behind_and_nobody_who_takes_that_for_a_failure() {
        if std::env::var_os("NEXTEST").is_none() {
            // It ends every git of its process, for ever: the other tests must not be there.
            return;
        }
        let (_dir, project, id, pipe, _hook) = with_hanging_hook(Duration::from_secs(600)).await;
        let (project, id) = (Arc::new(project), Arc::new(id));
        let (ours, of) = (Arc::clone(&project), Arc::clone(&id));
        let mut committing = tokio::spawn(async move { ours.commit_all(&of, "second").await });
        while !is_held(&pipe) {
            tokio::task::yield_now().await;
        }
        end_running_gits();
        // It would wait for ten minutes otherwise.
        while is_held(&pipe) {
            tokio::task::yield_now().await;
        }
        let soon = Duration::from_secs(1);
        assert!(tokio::time::timeout(soon, &mut committing).await.is_err(), "it has nothing to tell");
        assert!(tokio::time::timeout(soon, project.commit_all(&id, "third")).await.is_err(), "none begins");
    }
}
