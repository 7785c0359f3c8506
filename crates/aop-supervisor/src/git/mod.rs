//! Git, as the program `git`: one worktree and branch per feature, commits, and a merge that is prepared before
//! anything changes. Git runs without the caller's `GIT_…` variables, so that it works on this project and no other.

mod apart;
mod base;
mod behalf;
mod checkout;
mod environment;
mod error;
mod identity;
mod limit;
mod link;
mod pen;
mod prepared;
mod repository;
mod submodule;
mod torn;
mod whole;
mod worktree;

use crate::settings::Worktrees;
use crate::shown;
use aop_kernel::ids::FeatureId;
pub(crate) use base::Base;
pub use error::GitError;
pub use limit::end_running_gits;
use pen::Pen;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::process::Command;
use tokio::sync::{Mutex, OnceCell};

/// The files of `git status --porcelain`.
fn changed_files(said: &str) -> Vec<String> {
    said.lines().map(|line| line.get(3..).unwrap_or(line).to_owned()).collect()
}

/// What stands for a commit where there is no git.
const NO_COMMIT: &str = "none";

/// Git in one project.
#[derive(Debug)]
pub struct Git {
    root: PathBuf,
    worktrees: Worktrees,
    /// Worktrees are made one after the other: git's own lock would refuse the second.
    making: Mutex<()>,
    /// The repository's own folder, without symlinks.
    common: OnceCell<PathBuf>,
    /// Whose branch all is done with, if it is with one.
    behalf: Option<FeatureId>,
    /// How long a git may take.
    limit: Option<Duration>,
}

impl Git {
    /// Of the project with this root.
    pub fn new(root: &Path) -> Self {
        Git::with(root, Worktrees::Git)
    }

    /// The same, or without git.
    pub(crate) fn with(root: &Path, worktrees: Worktrees) -> Self {
        let (making, common) = (Mutex::new(()), OnceCell::new());
        Git { root: root.to_owned(), worktrees, making, common, behalf: None, limit: None }
    }

    /// The branch of a feature.
    pub(crate) fn branch(feature: &FeatureId) -> String {
        format!("aop/{feature}")
    }

    /// Commits whatever changed in a feature's worktree. The commit that the worktree is at then.
    pub(crate) async fn commit_all(&self, feature: &FeatureId, message: &str) -> Result<String, GitError> {
        if self.worktrees == Worktrees::Plain {
            return Ok(NO_COMMIT.to_owned());
        }
        let worktree = &*self.worktree(feature);
        self.mend(worktree).await?;
        let pen = Pen::take(worktree).await?;
        self.check_resolved(feature, worktree).await?;
        // What is outside of a sparse checkout and not there is no deletion; what an agent put there is part of its work.
        if let Err(error) = self.run(worktree, &["add", "-A", "--sparse"], pen.hand()).await {
            if matches!(error, GitError::Failed { .. }) {
                self.check_addable(feature, worktree).await?;
            }
            return Err(error);
        }
        self.check_whole(feature, worktree).await?;
        self.check_apart(feature, worktree).await?;
        // What a submodule has not committed itself is nothing that could be committed here.
        let changed = !self.raw(worktree, &["diff-index", "--cached", "HEAD"]).await?.is_empty();
        if changed {
            let identity = self.identity(worktree).await?;
            let mut args: Vec<&str> = identity.iter().map(String::as_str).collect();
            let message = &identity::message(message);
            args.extend(["-c", "commit.gpgsign=false", "commit", "--quiet", "--no-verify"]);
            // Not empty, as was just seen; git 2.39 may hold it to be that by a setting of the user.
            args.extend(["--allow-empty", "-m", message]);
            self.run(worktree, &args, pen.hand()).await?;
        }
        self.back_on_branch(feature, worktree, &pen).await?;
        self.head(worktree).await
    }

    /// An agent may have left the feature's branch. What it did is brought there, unless something of the branch would be
    /// lost by that.
    async fn back_on_branch(&self, feature: &FeatureId, worktree: &Path, pen: &Pen) -> Result<(), GitError> {
        let branch = Git::branch(feature);
        let on = self.branch_in(worktree).await;
        let on = on.as_deref().unwrap_or("no branch (detached HEAD)");
        if on == branch {
            return Ok(());
        }
        let head = self.head(worktree).await?;
        let lost = match self.branch_head(feature).await {
            Some(known) => !self.contains(&head, &known).await,
            None => false,
        };
        let cause = if lost {
            "the branch has commits that are not there".to_owned()
        } else {
            // Git refuses what is in the middle of a rebase, and a branch that is checked out elsewhere.
            match self.run(worktree, &["switch", "--quiet", "--force-create", &branch], pen.hand()).await {
                Ok(_) => return Ok(()),
                Err(GitError::Failed { said, .. }) => said.replace('\n', " "),
                Err(error) => return Err(error),
            }
        };
        let (shown, there) = (shown::name(worktree), shown::word(worktree));
        if let Some((what, command)) = checkout::under_way(worktree) {
            return Err(GitError::Unusable {
                message: format!("{shown} is in the middle of {what}, at {head}, and not on {branch}"),
                hint: format!("{}; then `aop retry --feature-id {feature}`", whole::goes_on(&there, command)),
            });
        }
        Err(GitError::Unusable {
            message: format!(
                "{shown} is on {on} at {head}, not on {branch}, and cannot be put there: {cause}"
            ),
            hint: format!(
                "bring what should stay to the branch, as in `cd {there} && git switch {branch} && git merge {head}`, then `aop retry --feature-id {feature}`"
            ),
        })
    }

    /// Refuses the branch of a feature that nobody has worked on yet: it is somebody else's.
    pub(crate) async fn check_unused(&self, feature: &FeatureId) -> Result<(), GitError> {
        if self.worktrees == Worktrees::Plain {
            return Ok(());
        }
        if self.branch_head(feature).await.is_none() {
            return self.check_makeable(feature).await;
        }
        let branch = Git::branch(feature);
        let name = format!("refs/heads/{branch}");
        let place = self.git(&self.root, &["for-each-ref", "--format=%(worktreepath)", &name]).await?;
        let place = Some(place.trim_end_matches('\n')).filter(|place| Path::new(place).is_dir());
        let strange = format!("there is a branch {branch}, and nobody has worked on feature '{feature}' yet");
        Err(match place {
            Some(place) => GitError::Unusable {
                message: format!("{strange}: it is checked out in {place}"),
                hint: "when another project of this repository has it, give this feature another id"
                    .to_owned(),
            },
            None => GitError::Unusable {
                message: format!("{strange}: it is of another project, or of an earlier one"),
                hint: format!(
                    "`git log HEAD..{name}` shows what is on it and nowhere here; `git branch -m {branch} {branch}-old` moves it out of the way; then `aop retry --feature-id {feature}`"
                ),
            },
        })
    }

    /// Refuses a branch that is in the way of those of all features: git has no `aop/checkout` beside an `aop`.
    async fn check_makeable(&self, feature: &FeatureId) -> Result<(), GitError> {
        if self.commit_of("aop").await.is_none() {
            return Ok(());
        }
        Err(GitError::Unusable {
            message: format!("there is a branch aop, and git makes no {} beside it", Git::branch(feature)),
            hint: format!(
                "`git branch -m aop aop-old` gives it another name; then `aop retry --feature-id {feature}`"
            ),
        })
    }

    /// The commit that a folder is at.
    pub(crate) async fn head(&self, folder: &Path) -> Result<String, GitError> {
        Ok(self.git(folder, &["rev-parse", "--verify", "HEAD"]).await?.trim().to_owned())
    }

    /// The commit of a feature's branch; none when there is no branch.
    pub(crate) async fn branch_head(&self, feature: &FeatureId) -> Option<String> {
        self.commit_of(&Git::branch(feature)).await
    }

    /// The commit of a branch; none when there is no such branch.
    async fn commit_of(&self, branch: &str) -> Option<String> {
        let name = format!("refs/heads/{branch}");
        let said = self.git(&self.root, &["rev-parse", "--verify", "--quiet", &name]).await.ok()?;
        Some(said.trim().to_owned())
    }

    /// Whether the branch of a feature is still at this commit.
    pub(crate) async fn is_still_at(&self, feature: &FeatureId, commit: &str) -> bool {
        self.worktrees == Worktrees::Plain || self.branch_head(feature).await.as_deref() == Some(commit)
    }

    /// The branch that the project is on; none when its head is detached.
    pub(crate) async fn current_branch(&self) -> Option<String> {
        self.branch_in(&self.root).await
    }

    /// The branch that a folder is on. Git's own short name is `heads/main` where a tag is called `main`, too.
    async fn branch_in(&self, folder: &Path) -> Option<String> {
        let said = self.git(folder, &["symbolic-ref", "--quiet", "HEAD"]).await.ok()?;
        said.trim().strip_prefix("refs/heads/").map(str::to_owned)
    }

    /// The branch that a stored name means: earlier versions wrote `heads/main` where a tag was called `main`, too.
    pub(crate) async fn branch_meant<'a>(&self, stored: &'a str) -> &'a str {
        let Some(name) = stored.strip_prefix("heads/") else { return stored };
        if self.commit_of(stored).await.is_some() { stored } else { name }
    }

    /// A branch for a command line that takes any commit. There its name alone would be a tag, where one is called the same.
    pub(crate) async fn unmistakable(&self, branch: &str) -> String {
        let full = format!("refs/heads/{branch}");
        let said = self.git(&self.root, &["rev-parse", "--symbolic-full-name", branch]).await;
        if said.is_ok_and(|said| said.trim() == full) { branch.to_owned() } else { full }
    }

    /// Whether the repository has this commit.
    pub(crate) async fn has(&self, commit: &str) -> bool {
        if self.worktrees == Worktrees::Plain {
            return true;
        }
        self.git(&self.root, &["cat-file", "-e", &format!("{commit}^{{commit}}")]).await.is_ok()
    }

    /// Whether the head, or another name of a commit, has this commit in its history.
    pub(crate) async fn contains(&self, name: &str, commit: &str) -> bool {
        self.git(&self.root, &["merge-base", "--is-ancestor", commit, name]).await.is_ok()
    }

    /// Whether a branch has this commit in its history.
    pub(crate) async fn branch_contains(&self, branch: &str, commit: &str) -> bool {
        self.worktrees == Worktrees::Plain || self.contains(&format!("refs/heads/{branch}"), commit).await
    }

    async fn git(&self, folder: &Path, args: &[&str]) -> Result<String, GitError> {
        self.run(folder, args, Stdio::null()).await
    }

    async fn run(&self, folder: &Path, args: &[&str], stdin: Stdio) -> Result<String, GitError> {
        let output = self.output(folder, args, stdin).await?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(self.failed(folder, args, &output))
    }

    /// What git said, in bytes: the name of a file need not be text.
    async fn bytes<Arg: AsRef<OsStr>>(&self, folder: &Path, args: &[Arg]) -> Result<Vec<u8>, GitError> {
        let output = self.output(folder, args, Stdio::null()).await?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(self.failed(folder, args, &output))
    }

    async fn output<Arg: AsRef<OsStr>>(
        &self,
        folder: &Path,
        args: &[Arg],
        stdin: Stdio,
    ) -> Result<Output, GitError> {
        let mut command = self.command(folder, args);
        command.stdin(stdin);
        self.wait(command, folder, &error::command(args)).await
    }

    fn command<Arg: AsRef<OsStr>>(&self, folder: &Path, args: &[Arg]) -> Command {
        let mut command = Command::new("git");
        command.args(args).current_dir(folder).kill_on_drop(true);
        command.env_clear().envs(environment::of(std::env::vars_os()));
        // A worktree that has lost its link is nobody's, and not the project's own checkout above it.
        command.env("GIT_CEILING_DIRECTORIES", self.worktrees_folder());
        self.bind(&mut command, folder);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::{Git, GitError};
    use aop_kernel::ids::FeatureId;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};

    pub(super) fn git(folder: &Path, args: &[&str]) -> String {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(args).current_dir(folder);
        let output = git.output().unwrap();
        assert!(output.status.success(), "git {args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub(super) fn project() -> (tempfile::TempDir, Git, FeatureId) {
        let dir = tempfile::TempDir::new().unwrap();
        git(dir.path(), &["init", "--quiet", "--initial-branch", "main"]);
        git(dir.path(), &["commit", "--quiet", "--allow-empty", "-m", "first"]);
        let project = Git::new(dir.path());
        (dir, project, FeatureId::parse("checkout").unwrap())
    }

    pub(super) fn told(error: &GitError) -> (&str, &str) {
        match error {
            GitError::Unusable { message, hint } => (message, hint),
            other => panic!("{other}"),
        }
    }

    /// What a hint says first, word for word, where a person reads it.
    pub(super) fn obey(hint: &str, folder: &Path) {
        let command = hint.split('`').nth(1).unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).env("EMAIL", "a@b").env("GIT_EDITOR", "true").current_dir(folder);
        assert!(shell.status().unwrap().success(), "{command}");
    }

    impl Git {
        pub(super) async fn ensure_worktree(&self, feature: &FeatureId) -> Result<PathBuf, GitError> {
            self.worktree_from(feature, None).await
        }
    }

    #[tokio::test]
    async fn what_an_agent_did_beside_its_branch_is_brought_to_it() {
        for leave in [&["switch", "--quiet", "-c", "other"][..], &["checkout", "--quiet", "--detach"]] {
            let (dir, project, id) = project();
            let worktree = project.ensure_worktree(&id).await.unwrap();
            git(&worktree, leave);
            std::fs::write(worktree.join("new"), "text").unwrap();
            let commit = project.commit_all(&id, "second").await.unwrap();
            assert_eq!(git(dir.path(), &["rev-parse", "aop/checkout"]), commit);
            assert_eq!(git(&worktree, &["branch", "--show-current"]), "aop/checkout");
            assert_eq!(git(dir.path(), &["show", "aop/checkout:new"]), "text");
        }
    }

    #[tokio::test]
    async fn a_file_outside_of_a_sparse_checkout_is_committed_and_those_that_are_not_there_stay() {
        let (dir, project, id) = project();
        for folder in ["inside", "outside"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
            std::fs::write(dir.path().join(folder).join("old"), "text").unwrap();
        }
        git(dir.path(), &["add", "-A"]);
        git(dir.path(), &["commit", "--quiet", "-m", "second"]);
        git(dir.path(), &["sparse-checkout", "set", "inside"]);
        let worktree = project.ensure_worktree(&id).await.unwrap();
        assert!(!worktree.join("outside").exists(), "a worktree is as sparse as the project");
        std::fs::create_dir(worktree.join("outside")).unwrap();
        for file in ["inside/new", "outside/new"] {
            std::fs::write(worktree.join(file), "text").unwrap();
        }
        project.commit_all(&id, "third").await.unwrap();
        let all = git(dir.path(), &["ls-tree", "-r", "--name-only", "aop/checkout"]);
        assert_eq!(all, "inside/new\ninside/old\noutside/new\noutside/old");
        assert_eq!(project.remove_worktree(&id).await.unwrap(), Vec::<String>::new());
    }

    #[tokio::test]
    async fn a_file_that_is_called_like_the_head_is_committed_and_merged_like_any_other() {
        let (dir, project, id) = project();
        let worktree = project.ensure_worktree(&id).await.unwrap();
        for text in ["first", "second"] {
            std::fs::write(worktree.join("HEAD"), text).unwrap();
            let commit = project.commit_all(&id, text).await.unwrap();
            let merge = project.prepare_merge(&commit, "merge").await.unwrap();
            project.check_submodules(&id, &merge).await.unwrap();
            assert_eq!(project.clear_torn(&merge).await.unwrap(), Vec::<PathBuf>::new());
            project.can_move_to(&merge).await.unwrap();
            project.fast_forward("main", &merge, Stdio::null()).await.unwrap();
            assert_eq!(std::fs::read_to_string(dir.path().join("HEAD")).unwrap(), text);
        }
        assert_eq!(project.remove_worktree(&id).await.unwrap(), Vec::<String>::new());
    }

    #[tokio::test]
    async fn a_message_with_a_sign_that_no_argument_can_hold_is_committed_without_it() {
        let (_dir, project, id) = project();
        let worktree = project.ensure_worktree(&id).await.unwrap();
        std::fs::write(worktree.join("new"), "text").unwrap();
        project.commit_all(&id, "the\0shop").await.unwrap();
        assert_eq!(git(&worktree, &["log", "-1", "--format=%s"]), "the shop");
        let merge = project.prepare_merge("aop/checkout", "a\0title").await.unwrap();
        assert_eq!(git(&worktree, &["log", "-1", "--format=%s", &merge]), "a title");
    }

    #[tokio::test]
    async fn nothing_of_a_branch_is_given_up_for_what_an_agent_did_beside_it() {
        let (dir, project, id) = project();
        let worktree = project.ensure_worktree(&id).await.unwrap();
        std::fs::write(worktree.join("old"), "text").unwrap();
        let kept = project.commit_all(&id, "second").await.unwrap();
        git(&worktree, &["switch", "--quiet", "--detach", "main"]);
        std::fs::write(worktree.join("new"), "text").unwrap();
        let error = project.commit_all(&id, "third").await.unwrap_err();
        assert_eq!(git(dir.path(), &["rev-parse", "aop/checkout"]), kept);
        obey(told(&error).1, dir.path());
        project.commit_all(&id, "fourth").await.unwrap();
        for file in ["old", "new"] {
            assert_eq!(git(dir.path(), &["show", &format!("aop/checkout:{file}")]), "text");
        }
    }
}
