//! What a feature branches off: the branch that the project was on when a run first saw the feature, as it is when the
//! work begins. What the user checks out meanwhile is nobody's base.

use super::Git;
use aop_kernel::ids::FeatureId;
use serde::{Deserialize, Serialize};

/// Where the project stood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Base {
    /// The branch; none when the head was detached.
    branch: Option<String>,
    /// The commit.
    commit: String,
}

impl Base {
    /// The key of a feature's base. Every runner of a shared project has a repository of its own, on a branch of its own.
    pub(crate) fn key(feature: &FeatureId, runner: Option<&str>) -> String {
        match runner {
            Some(runner) => format!("{feature}/base/{runner}"),
            None => format!("{feature}/base"),
        }
    }
}

impl Git {
    /// Where the project stands; none when git cannot say.
    pub(crate) async fn base(&self) -> Option<Base> {
        Some(Base { branch: self.current_branch().await, commit: self.head(&self.root).await.ok()? })
    }

    /// The commit that a new branch starts at: where that branch is by now, else where it was, else the head.
    pub(super) async fn start_from(&self, base: Option<&Base>) -> String {
        let Some(base) = base else { return "HEAD".to_owned() };
        if let Some(branch) = &base.branch
            && let Some(commit) = self.commit_of(self.branch_meant(branch).await).await
        {
            return commit;
        }
        if self.has(&base.commit).await { base.commit.clone() } else { "HEAD".to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use crate::git::tests::{git, project};

    #[tokio::test]
    async fn a_base_that_is_gone_is_where_it_was_and_one_that_was_never_here_is_the_head() {
        let (dir, project, _) = project();
        git(dir.path(), &["switch", "--quiet", "-c", "release"]);
        git(dir.path(), &["commit", "--quiet", "--allow-empty", "-m", "second"]);
        let mut base = project.base().await.unwrap();
        assert_eq!(base.branch.as_deref(), Some("release"));
        git(dir.path(), &["commit", "--quiet", "--allow-empty", "-m", "third"]);
        let third = git(dir.path(), &["rev-parse", "HEAD"]);
        git(dir.path(), &["switch", "--quiet", "main"]);
        assert_eq!(project.start_from(Some(&base)).await, third, "where the branch is by now");
        git(dir.path(), &["branch", "--quiet", "-D", "release"]);
        assert_eq!(project.start_from(Some(&base)).await, base.commit);
        base.commit = "0123456789012345678901234567890123456789".to_owned();
        assert_eq!(project.start_from(Some(&base)).await, "HEAD");
        git(dir.path(), &["switch", "--quiet", "--detach"]);
        assert_eq!(project.base().await.unwrap().branch, None);
    }

    #[tokio::test]
    async fn a_tag_with_the_name_of_a_branch_is_not_taken_for_it() {
        let (dir, project, id) = project();
        for name in ["main", "aop/checkout"] {
            git(dir.path(), &["tag", name]);
        }
        let mut base = project.base().await.unwrap();
        assert_eq!(base.branch.as_deref(), Some("main"));
        git(dir.path(), &["commit", "--quiet", "--allow-empty", "-m", "second"]);
        let second = git(dir.path(), &["rev-parse", "HEAD"]);
        assert_eq!(project.start_from(Some(&base)).await, second);
        let worktree = project.worktree_from(&id, Some(&base)).await.unwrap();
        assert_eq!(project.branch_in(&worktree).await.as_deref(), Some("aop/checkout"));
        // As an earlier version wrote it.
        base.branch = Some("heads/main".to_owned());
        assert_eq!(project.start_from(Some(&base)).await, second);
        git(dir.path(), &["branch", "--quiet", "heads/main", &base.commit]);
        assert_eq!(project.start_from(Some(&base)).await, base.commit, "a branch that is called so");
    }
}
