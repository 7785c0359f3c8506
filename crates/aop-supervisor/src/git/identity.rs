//! Whose commits they are, the user's or ours where git does not know any user, and under which words.

use super::{Git, GitError};
use std::path::Path;

impl Git {
    /// The settings that give commits a name where the user has none.
    pub(super) async fn identity(&self, folder: &Path) -> Result<Vec<String>, GitError> {
        if self.git(folder, &["config", "user.email"]).await.is_err() {
            return Ok(["-c", "user.name=aop", "-c", "user.email=aop@localhost"].map(str::to_owned).to_vec());
        }
        match self.git(folder, &["var", "GIT_COMMITTER_IDENT"]).await {
            Err(GitError::Failed { said, .. }) => Err(GitError::Unusable {
                message: format!(
                    "git knows your address and not your name: {}",
                    said.lines().last().unwrap_or_default()
                ),
                hint: "`git config user.name \"Your Name\"` in the project tells it; then go on".to_owned(),
            }),
            known => known.map(|_| Vec::new()),
        }
    }
}

/// The message of a commit. A title may hold the one sign that no argument can.
pub(super) fn message(text: &str) -> String {
    text.replace('\0', " ")
}

#[cfg(test)]
mod tests {
    use crate::git::tests::{git, project, told};

    #[tokio::test]
    async fn an_address_without_a_name_is_told_with_the_command_that_gives_one() {
        let (dir, project, id) = project();
        let worktree = project.ensure_worktree(&id).await.unwrap();
        std::fs::write(worktree.join("new"), "text").unwrap();
        git(dir.path(), &["config", "user.useConfigOnly", "true"]);
        git(dir.path(), &["config", "user.email", "ada@localhost"]);
        // An empty name is none, whatever the settings of whoever runs this test say.
        git(dir.path(), &["config", "user.name", ""]);
        let error = project.commit_all(&id, "built").await.unwrap_err();
        assert!(told(&error).1.contains("git config user.name"), "{error}");
        git(dir.path(), &["config", "user.name", "Ada"]);
        project.commit_all(&id, "built").await.unwrap();
        assert_eq!(git(&worktree, &["log", "-1", "--format=%an <%ae>"]), "Ada <ada@localhost>");
    }
}
