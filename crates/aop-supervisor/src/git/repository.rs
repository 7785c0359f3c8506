//! Whether features can be worked on in a folder at all.

use super::{Git, GitError};
use crate::settings::Worktrees;
use crate::shown;
use std::path::Path;

impl Git {
    /// Refuses a folder in which no feature can be worked on, with the next step.
    pub async fn check_repository(&self) -> Result<(), GitError> {
        let root = shown::name(&self.root);
        // It stands in records, which are text, and another folder would be made by what is left of its name there.
        if self.root.to_str().is_none() {
            return Err(GitError::Unusable {
                message: format!("the path of the project, {root}, is not UTF-8"),
                hint: format!(
                    "give it a path that is, as in `mv {} NEW`, then `aop run` there; nothing was changed",
                    shown::word(&self.root)
                ),
            });
        }
        if self.worktrees == Worktrees::Plain {
            return Ok(());
        }
        self.check_age().await?;
        match self.git(&self.root, &["rev-parse", "--git-dir"]).await {
            Ok(_) => {}
            Err(GitError::Failed { said, .. }) if !said.contains(NONE) => {
                return Err(unusable(&self.root, &said));
            }
            Err(GitError::Failed { .. }) => {
                return Err(GitError::Unusable {
                    message: format!("{root} is not a git repository"),
                    hint: "run `git init` and commit what is there (`git add -A && git commit -m \"First commit\"`), because every feature is built in a git worktree of its own".to_owned(),
                });
            }
            Err(error) => return Err(error),
        }
        let inside = self.git(&self.root, &["rev-parse", "--is-inside-work-tree"]).await?;
        if inside.trim() != "true" {
            return Err(GitError::Unusable {
                message: format!("nothing is checked out in {root}: it belongs to a bare repository, and no feature could be merged there"),
                hint: "make the project in a folder where a branch is checked out (`git worktree list` names them, `git worktree add main` makes one): `aop init` there".to_owned(),
            });
        }
        if self.head(&self.root).await.is_err() {
            return Err(GitError::Unusable {
                message: format!("the git repository in {root} has no commit yet"),
                hint: "features branch off a commit: `git add -A && git commit -m \"First commit\"`, then `aop run`".to_owned(),
            });
        }
        Ok(())
    }

    /// Refuses a git that could not merge in the end what agents have built.
    async fn check_age(&self) -> Result<(), GitError> {
        let said = self.git(&self.root, &["version"]).await?;
        match version(&said) {
            // One that tells its age in other words is taken for a new one.
            Some(found) if found < OLDEST => Err(GitError::Unusable {
                message: format!(
                    "{} is too old: aop needs git {}.{} or newer",
                    said.trim(),
                    OLDEST.0,
                    OLDEST.1
                ),
                hint: "install a newer git, and put it before this one in PATH".to_owned(),
            }),
            Some(_) | None => Ok(()),
        }
    }
}

/// The oldest git that merges without a checkout, which is how a merge is tried before it is made.
const OLDEST: (u32, u32) = (2, 38);

/// The version in what `git version` says: "git version 2.39.5 (and who built it)".
fn version(said: &str) -> Option<(u32, u32)> {
    let mut numbers =
        said.strip_prefix("git version ")?.split(|sign: char| !sign.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// What git says where there is no repository, and only there: of one whose link leads nowhere it names the place.
const NONE: &str = "not a git repository (or any";

/// There is a repository, and git does not take it: it belongs to another user, or is broken.
fn unusable(root: &Path, said: &str) -> GitError {
    let (there, root) = (shown::word(root), shown::name(root));
    // Git names the command itself, with the folder that it means.
    let own = said.lines().map(str::trim).find(|line| line.starts_with("git config"));
    let first = said.lines().next().unwrap_or_default();
    GitError::Unusable {
        message: format!("git does not work with the repository in {root}: {first}"),
        hint: match own {
            Some(command) => format!("when you trust what is in it: `{command}`, then `aop run`"),
            None => format!("`cd {there} && git status` says the same; put it in order, then `aop run`"),
        },
    }
}

#[cfg(test)]
mod tests {
    use crate::git::Git;
    use crate::git::tests::{git, project, told};
    use crate::settings::Worktrees;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[tokio::test]
    async fn a_repository_that_git_does_not_take_is_told_in_its_words_and_not_as_missing() {
        let (dir, project, _) = project();
        project.check_repository().await.unwrap();
        std::fs::remove_dir_all(dir.path().join(".git")).unwrap();
        std::fs::write(dir.path().join(".git"), "gitdir: elsewhere\n").unwrap();
        let error = project.check_repository().await.unwrap_err();
        let (message, hint) = told(&error);
        assert!(message.contains("not a git repository: ") && message.contains("elsewhere"), "{message}");
        assert!(hint.contains("git status") && !hint.contains("git init"), "{hint}");
        std::fs::remove_file(dir.path().join(".git")).unwrap();
        assert!(told(&project.check_repository().await.unwrap_err()).1.contains("git init"));
    }

    #[tokio::test]
    async fn a_folder_of_a_bare_repository_is_refused_and_a_worktree_of_it_is_not() {
        let (dir, _, _) = project();
        let top = dir.path().join("layout");
        git(dir.path(), &["clone", "--quiet", "--bare", ".", "layout/.bare"]);
        std::fs::write(top.join(".git"), "gitdir: ./.bare\n").unwrap();
        git(&top, &["worktree", "add", "--quiet", "main"]);
        for folder in [top.clone(), top.join(".bare")] {
            let error = Git::new(&folder).check_repository().await.unwrap_err();
            let (message, hint) = told(&error);
            assert!(message.contains("bare repository") && hint.contains("aop init"), "{message}: {hint}");
        }
        Git::new(&top.join("main")).check_repository().await.unwrap();
    }

    #[tokio::test]
    async fn a_folder_whose_path_is_not_utf_8_is_refused_also_without_git() {
        let (dir, _, _) = project();
        let root = dir.path().join(OsStr::from_bytes(b"shop\xff"));
        git(dir.path(), &["clone", "--quiet", ".", "shop"]);
        std::fs::rename(dir.path().join("shop"), &root).unwrap();
        for worktrees in [Worktrees::Git, Worktrees::Plain] {
            let error = Git::with(&root, worktrees).check_repository().await.unwrap_err();
            let (message, hint) = told(&error);
            assert!(message.contains("shop\u{fffd}, is not UTF-8"), "{message}");
            assert!(hint.contains("/shop\\377')\" NEW`"), "{hint}");
        }
    }

    #[test]
    fn a_git_that_cannot_merge_without_a_checkout_is_known_by_its_version() {
        for (said, is_old) in [
            ("git version 2.34.1\n", true),
            ("git version 2.37.7 (Apple Git-117)\n", true),
            ("git version 1.9\n", true),
            ("git version 2.38.0\n", false),
            ("git version 2.53.0.windows.1\n", false),
            ("git version 3.0.0-rc1\n", false),
            ("something else\n", false),
        ] {
            assert_eq!(super::version(said).is_some_and(|found| found < super::OLDEST), is_old, "{said}");
        }
    }

    #[test]
    fn a_repository_of_another_user_is_told_with_gits_own_way_out() {
        let said = "fatal: detected dubious ownership in repository at '/srv/shop'\nTo add an exception for this directory, call:\n\n\tgit config --global --add safe.directory /srv/shop";
        let error = super::unusable(std::path::Path::new("/srv/shop/web"), said);
        let (message, hint) = told(&error);
        assert!(message.contains("dubious ownership in repository at '/srv/shop'"), "{message}");
        assert!(hint.contains("`git config --global --add safe.directory /srv/shop`"), "{hint}");
    }
}
