//! On whose behalf git runs. What its hooks and filters start may be the work of an agent: in a worktree always, and in the
//! project's own checkout with what a branch has just brought there. So they carry the credential of an agent for that
//! feature, and call `aop` as one, never as the person who started the run or the merge. A git that is on nobody's behalf
//! starts nothing: settings of the repository, which agents can write, may name a program for fetching what is missing.

use super::Git;
use aop_engine::process::agent_variables;
use aop_kernel::ids::FeatureId;
use aop_turn::Role;
use std::path::Path;
use tokio::process::Command;

/// What stands for a turn's claim in the credential.
const CLAIM: &str = "git";

impl Git {
    /// The same, for all that is done with the branch of one feature.
    pub(crate) fn on_behalf_of(&self, feature: &FeatureId) -> Self {
        Git { behalf: Some(feature.clone()), limit: self.limit, ..Git::with(&self.root, self.worktrees) }
    }

    /// Gives a git in this folder the credential, or keeps it from fetching.
    pub(super) fn bind(&self, command: &mut Command, folder: &Path) {
        if let Some(feature) = self.behalf.clone().or_else(|| self.feature_at(folder)) {
            // A merge may have been told the project by a path from here.
            let root = std::path::absolute(&self.root).unwrap_or_else(|_| self.root.clone());
            command.envs(agent_variables(&root, feature.as_str(), Role::Builder, CLAIM));
        } else {
            // These need commits alone, which a partial clone has too. The second is for versions without the first.
            command.env("GIT_NO_LAZY_FETCH", "1").env("GIT_ALLOW_PROTOCOL", "");
        }
    }

    /// The feature whose worktree this is.
    pub(super) fn feature_at(&self, folder: &Path) -> Option<FeatureId> {
        let below = folder.strip_prefix(self.worktrees_folder()).ok()?;
        FeatureId::parse(below.components().next()?.as_os_str().to_str()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use crate::git::Git;
    use crate::git::tests::{git, project};
    use aop_kernel::ids::FeatureId;

    #[tokio::test]
    async fn a_git_on_nobodys_behalf_fetches_nothing_by_a_program_that_a_setting_names() {
        const MISSING: &str = "1234567890123456789012345678901234567890";
        let (dir, project, id) = project();
        let evil = format!("ext::sh -c touch% {}/ran", dir.path().display());
        for (name, value) in [
            ("core.repositoryFormatVersion", "1"),
            ("extensions.partialClone", "evil"),
            ("remote.evil.promisor", "true"),
            ("remote.evil.url", evil.as_str()),
            ("protocol.ext.allow", "always"),
        ] {
            git(dir.path(), &["config", name, value]);
        }
        assert!(!project.has(MISSING).await && !project.contains("HEAD", MISSING).await);
        assert!(!dir.path().join("ran").exists(), "a program ran as the person");
        // On behalf of a feature it does, as an agent.
        assert!(!project.on_behalf_of(&id).has(MISSING).await);
        assert!(dir.path().join("ran").exists());
    }

    #[tokio::test]
    async fn a_partial_clone_is_worked_on_as_every_other() {
        let (dir, _, _) = project();
        let (root, clone) = (dir.path(), dir.path().join("clone"));
        for text in ["old", "new"] {
            std::fs::write(root.join("file"), text).unwrap();
            git(root, &["add", "file"]);
            git(root, &["commit", "--quiet", "-m", text]);
        }
        git(root, &["config", "uploadpack.allowFilter", "true"]);
        let url = format!("file://{}", root.display());
        git(root, &["clone", "--quiet", "--no-checkout", "--filter=blob:none", &url, "clone"]);
        let (project, id) = (Git::new(&clone), FeatureId::parse("checkout").unwrap());
        project.check_repository().await.unwrap();
        let worktree = project.ensure_worktree(&id).await.unwrap();
        assert_eq!(std::fs::read_to_string(worktree.join("file")).unwrap(), "new");
        std::fs::write(worktree.join("file"), "newer").unwrap();
        let commit = project.commit_all(&id, "work").await.unwrap();
        assert!(project.has(&commit).await && project.contains(&commit, "HEAD").await);
    }
}
