//! A merge that is prepared: a commit that is on no branch yet, and what keeps it until it is.

use super::checkout::names;
use super::{Git, GitError, identity};
use aop_kernel::ids::FeatureId;
use std::process::Stdio;

/// What points at merges that are prepared and on no branch yet.
const PREPARED: &str = "refs/aop/merge/";

fn prepared(feature: &FeatureId) -> String {
    format!("{PREPARED}{feature}")
}

impl Git {
    /// Makes the merge of `commit` into the head as an object that nothing points at yet.
    pub(crate) async fn prepare_merge(&self, commit: &str, message: &str) -> Result<String, GitError> {
        let head = self.head(&self.root).await?;
        let args = ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", &head, commit];
        // What it warns of stands elsewhere than what it found.
        let output = self.output(&self.root, &args, Stdio::null()).await?;
        let tree = match (output.status.code(), merged_tree(&output.stdout)) {
            (Some(0), Some((tree, _))) => tree,
            (Some(1), Some((_, files))) => return Err(GitError::Conflict(files)),
            _ => return Err(self.failed(&self.root, &args, &output)),
        };
        let identity = self.identity(&self.root).await?;
        let mut args: Vec<&str> = identity.iter().map(String::as_str).collect();
        let message = &identity::message(message);
        args.extend(["commit-tree", &tree, "-p", &head, "-p", commit, "-m", message]);
        Ok(self.git(&self.root, &args).await?.trim().to_owned())
    }

    /// The features with a merge that is prepared and, as far as this is known, on no branch yet.
    pub(crate) async fn prepared_merges(&self) -> Result<Vec<FeatureId>, GitError> {
        let said = self.git(&self.root, &["for-each-ref", "--format=%(refname)", PREPARED]).await?;
        let names = said.lines().filter_map(|name| name.strip_prefix(PREPARED));
        Ok(names.filter_map(|id| FeatureId::parse(id).ok()).collect())
    }

    /// Keeps git from collecting a prepared merge before it is on the branch.
    pub(crate) async fn keep_prepared(&self, feature: &FeatureId, commit: &str) -> Result<(), GitError> {
        self.git(&self.root, &["update-ref", &prepared(feature), commit]).await.map(drop)
    }

    /// It is on the branch, or was refused.
    pub(crate) async fn forget_prepared(&self, feature: &FeatureId) {
        // Mostly there is none; one that stays only keeps a commit.
        let _ = self.git(&self.root, &["update-ref", "-d", &prepared(feature)]).await;
    }
}

/// What `merge-tree -z` wrote: the tree, then the files that conflict, if it names any. A merge driver may have spoken before.
fn merged_tree(said: &[u8]) -> Option<(String, Vec<String>)> {
    let mut names = names(said).map(|name| name.to_string_lossy().into_owned());
    let tree = names.next()?.lines().last()?.to_owned();
    let is_tree = tree.len() >= 40 && tree.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_tree.then(|| (tree, names.collect()))
}

#[cfg(test)]
mod tests {
    use super::GitError;
    use crate::git::tests::{git, project};

    #[tokio::test]
    async fn a_conflict_is_one_whatever_git_and_a_merge_driver_say_meanwhile() {
        for (attributes, driver) in [
            ("!foo text\n", "false"),
            ("* merge=x\n", "echo no >&2; false"),
            ("* merge=x\n", "echo no; false"),
        ] {
            let (dir, project, _) = project();
            let root = dir.path();
            std::fs::write(root.join(".gitattributes"), attributes).unwrap();
            git(root, &["config", "merge.x.driver", driver]);
            let commit = |text: &str| {
                std::fs::write(root.join("caf\u{e9}"), text).unwrap();
                git(root, &["add", "--all"]);
                git(root, &["commit", "--quiet", "-m", text]);
            };
            commit("first");
            git(root, &["branch", "other"]);
            commit("ours");
            git(root, &["switch", "--quiet", "other"]);
            commit("theirs");
            match project.prepare_merge("main", "merge").await {
                Err(GitError::Conflict(files)) => assert_eq!(files, ["caf\u{e9}"]),
                other => panic!("{driver}: {other:?}"),
            }
        }
    }

    #[tokio::test]
    async fn a_merge_whose_driver_speaks_is_the_tree_that_git_wrote() {
        let (dir, project, _) = project();
        let root = dir.path();
        std::fs::write(root.join(".gitattributes"), "* merge=x\n").unwrap();
        git(root, &["config", "merge.x.driver", "echo merging"]);
        for (branch, text) in [("main", "first"), ("other", "theirs"), ("main", "ours")] {
            git(
                root,
                &[
                    "switch",
                    "--quiet",
                    "--force-create",
                    branch,
                    if text == "ours" { "main" } else { "HEAD" },
                ],
            );
            std::fs::write(root.join("file"), text).unwrap();
            git(root, &["add", "--all"]);
            git(root, &["commit", "--quiet", "-m", text]);
        }
        let merge = project.prepare_merge("other", "merge").await.unwrap();
        assert_eq!(git(root, &["show", &format!("{merge}:file")]), "ours");
    }
}
