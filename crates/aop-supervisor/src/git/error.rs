//! Why git did not do what was asked, and what a person does about it.

use super::Git;
use crate::shown;
use aop_kernel::ids::FeatureId;
use aop_kernel::{ErrorCode, Refusal};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Output;

/// Why git did not do what was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum GitError {
    /// There is no such program.
    #[error("git cannot be started: {0}")]
    NotInstalled(String),
    /// The folder is no repository, or what stands there has to be put in order by a person.
    #[error("{message}")]
    Unusable {
        /// What is wrong.
        message: String,
        /// What to do.
        hint: String,
    },
    /// Two changes of these files do not go together.
    #[error("the branch does not merge: {}", shown::names(.0))]
    Conflict(Vec<String>),
    /// Files of the user, unknown to git or ignored by it, stand where a commit has its own.
    #[error("it has files of its own where these are, which git does not know or ignores: {}", shown::names(.0))]
    InTheWay(Vec<String>),
    /// Git refused.
    #[error("`git {command}` in {} failed: {said}", shown::name(.folder))]
    Failed {
        /// What was tried.
        command: String,
        /// Where.
        folder: PathBuf,
        /// What git said.
        said: String,
        /// How to go on when that is mended.
        next: String,
    },
    /// A file or a folder beside git's own could not be used.
    #[error("{} cannot be {what}: {said}", shown::name(.place))]
    Disk {
        /// Which.
        place: PathBuf,
        /// What was tried.
        what: &'static str,
        /// What the system said.
        said: String,
        /// How to go on when that is mended.
        next: String,
    },
}

/// How to go on where nobody knows for which feature it was.
const AGAIN: &str = "run again";

impl GitError {
    pub(super) fn disk(place: &Path, what: &'static str, error: &std::io::Error) -> Self {
        GitError::Disk { place: place.to_owned(), what, said: error.to_string(), next: AGAIN.to_owned() }
    }

    /// The same, where it stops a feature: whatever folder git was in, that one goes on.
    pub(crate) fn stopping(mut self, feature: &FeatureId) -> Self {
        if let GitError::Failed { next, .. } | GitError::Disk { next, .. } = &mut self {
            *next = retry(feature);
        }
        self
    }
}

fn retry(feature: &FeatureId) -> String {
    format!("`aop retry --feature-id {feature}`")
}

impl From<GitError> for Refusal {
    fn from(error: GitError) -> Self {
        let message = error.to_string();
        match error {
            GitError::NotInstalled(_) => Refusal::new(ErrorCode::UnsupportedOperation, message)
                .hint("install git: every feature is worked on in a worktree of its own"),
            GitError::Unusable { hint, .. } => {
                Refusal::new(ErrorCode::UnsupportedOperation, message).hint(hint)
            }
            GitError::Conflict(_) => Refusal::new(ErrorCode::VersionConflict, message).hint(
                "nothing was changed; merge the current branch into the feature's branch and resolve there",
            ),
            GitError::InTheWay(files) => Refusal::new(ErrorCode::VersionConflict, message)
                .hint("move them away, then try again; nothing was changed")
                .fact("files", files),
            // Not to be run by hand: what refused may let it pass then, and it would be the person's own commit.
            GitError::Failed { folder, next, .. } => Refusal::new(ErrorCode::Internal, message).hint(format!(
                "see how it stands there with `cd {} && git status`, and fix what refused it; then {next}",
                shown::word(folder)
            )),
            GitError::Disk { next, .. } => Refusal::new(ErrorCode::Internal, message)
                .hint(format!("check the permissions there and the space on the disk; then {next}")),
        }
    }
}

impl Git {
    /// There is no git, or the system is out of something that another process needs.
    pub(super) fn not_started(&self, error: &std::io::Error, folder: &Path) -> GitError {
        if error.kind() == ErrorKind::NotFound {
            return GitError::NotInstalled(error.to_string());
        }
        GitError::Unusable {
            message: format!("git cannot be started: {error}"),
            hint: format!(
                "free what is short (open files, `ulimit -n`; memory; processes), or work on fewer features at once with `aop run --max-parallel 2`; then {}",
                self.again(folder)
            ),
        }
    }

    /// How whoever waited for a git in this folder goes on.
    pub(super) fn again(&self, folder: &Path) -> String {
        match (self.feature_at(folder), &self.behalf) {
            (Some(feature), _) => retry(&feature),
            (None, Some(feature)) if self.limit.is_some() => retry(feature),
            // Only a run has a limit.
            (None, Some(feature)) => format!("`aop merge --feature-id {feature}`"),
            (None, None) => AGAIN.to_owned(),
        }
    }

    /// Git refused, in its own words.
    pub(super) fn failed<Arg: AsRef<OsStr>>(&self, folder: &Path, args: &[Arg], output: &Output) -> GitError {
        let said = [&output.stderr[..], &output.stdout[..]]
            .map(|bytes| String::from_utf8_lossy(bytes).trim().to_owned());
        let said = said.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ");
        let said = match (said.is_empty(), output.status.code()) {
            (false, _) => said,
            (true, Some(code)) => {
                format!("it exited with {code} and said nothing, as when a hook refuses without a word")
            }
            (true, None) => format!("it was ended ({}) and said nothing", output.status),
        };
        GitError::Failed { command: command(args), folder: folder.to_owned(), said, next: self.again(folder) }
    }
}

/// A command line, without what git is told of the user.
pub(super) fn command<Arg: AsRef<OsStr>>(args: &[Arg]) -> String {
    let mut words = Vec::new();
    let mut args = args.iter().map(AsRef::as_ref).peekable();
    while let Some(arg) = args.next() {
        let is_user = |next: &&OsStr| next.to_string_lossy().starts_with("user.");
        if arg != "-c" || args.next_if(is_user).is_none() {
            words.push(shown::word(arg));
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use crate::git::tests::{obey, project};
    use aop_kernel::Refusal;
    use std::os::unix::fs::PermissionsExt;

    #[tokio::test]
    async fn a_hook_that_refuses_without_a_word_is_told_with_its_folder_and_a_next_step_that_commits_nothing()
    {
        let (dir, project, id) = project();
        let worktree = project.ensure_worktree(&id).await.unwrap();
        std::fs::write(worktree.join("new"), "text").unwrap();
        let hook = dir.path().join(".git/hooks/prepare-commit-msg");
        std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
        std::fs::write(&hook, "#!/bin/sh\nexit 1\n").unwrap();
        std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
        let error = project.commit_all(&id, "checkout: it's built").await.unwrap_err();
        let Refusal { message, hint, .. } = Refusal::from(error);
        let place = worktree.display();
        assert!(
            message.starts_with("`git -c commit.gpgsign=false commit ")
                && message.ends_with(&format!(
                    r"-m 'checkout: it'\''s built'` in {place} failed: it exited with 1 and said nothing, as when a hook refuses without a word"
                )),
            "{message}"
        );
        assert!(hint.starts_with("see how it stands there with `cd "), "{hint}");
        assert!(hint.ends_with("then `aop retry --feature-id checkout`"), "{hint}");
        std::fs::remove_file(hook).unwrap();
        let before = project.head(dir.path()).await.unwrap();
        obey(&hint, dir.path());
        assert_eq!(project.head(dir.path()).await.unwrap(), before);
        project.commit_all(&id, "checkout: built").await.unwrap();
    }

    #[tokio::test]
    async fn what_fails_in_the_project_says_how_the_feature_that_it_stops_goes_on_or_its_merge() {
        let (dir, project, id) = project();
        let hint = |error: crate::GitError| Refusal::from(error).hint;
        let nowhere = ["rev-parse", "--verify", "nowhere"];
        let error = project.git(dir.path(), &nowhere).await.unwrap_err();
        assert!(hint(error.clone()).ends_with("then run again"), "{error}");
        assert!(hint(error.stopping(&id)).ends_with("then `aop retry --feature-id checkout`"));
        let error = project.on_behalf_of(&id).git(dir.path(), &nowhere).await.unwrap_err();
        assert!(hint(error).ends_with("then `aop merge --feature-id checkout`"));
    }
}
