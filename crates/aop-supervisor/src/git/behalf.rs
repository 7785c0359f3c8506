//! On whose behalf git runs. What its hooks and filters start may be the work of an agent: in a worktree always, and in the
//! project's own checkout with what a branch has just brought there. So they carry the credential of an agent for that
//! feature, and call `aop` as one, never as the person who started the run or the merge.

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

    /// Gives a git in this folder the credential.
    pub(super) fn bind(&self, command: &mut Command, folder: &Path) {
        if let Some(feature) = self.behalf.clone().or_else(|| self.feature_at(folder)) {
            // A merge may have been told the project by a path from here.
            let root = std::path::absolute(&self.root).unwrap_or_else(|_| self.root.clone());
            command.envs(agent_variables(&root, feature.as_str(), Role::Builder, CLAIM));
        }
    }

    /// The feature whose worktree this is.
    pub(super) fn feature_at(&self, folder: &Path) -> Option<FeatureId> {
        let below = folder.strip_prefix(self.worktrees_folder()).ok()?;
        FeatureId::parse(below.components().next()?.as_os_str().to_str()?).ok()
    }
}
