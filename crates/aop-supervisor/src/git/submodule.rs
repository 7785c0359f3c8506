//! Submodules of a feature's worktree. Their repositories lie with the worktree and go with it, so what is in them and
//! nowhere else keeps it; and a merge that names such a commit would name one that nobody can get.

use super::checkout::{GITLINK, line, names};
use super::{Git, GitError};
use crate::shown;
use aop_kernel::ids::FeatureId;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The repository of a submodule.
struct Submodule {
    /// What it is called.
    name: PathBuf,
    /// Where it is.
    folder: PathBuf,
}

impl Git {
    /// Refuses a prepared merge that has a submodule at a commit which only the feature's worktree has.
    pub(crate) async fn check_submodules(&self, feature: &FeatureId, merge: &str) -> Result<(), GitError> {
        let (top, worktree) = (self.top().await?, self.worktree(feature));
        let changes = self.changes("HEAD", merge).await?;
        for change in changes.iter().filter(|change| change.mode == GITLINK) {
            let (here, there) = (top.join(&change.path), worktree.join(&change.path));
            let commit = &change.object;
            if worktree.exists() {
                self.mend(&worktree).await?;
            }
            if has(self, &here, commit).await || !has(self, &there, commit).await {
                continue;
            }
            let known = ["for-each-ref", "--count=1", "--contains", commit, "refs/remotes"];
            if !self.git(&there, &known).await?.is_empty()
                || self.is_released(["-C".as_ref(), there.as_os_str()], commit).await
            {
                continue;
            }
            let (path, shown, there) = (shown::name(&change.path), shown::name(&there), shown::word(&there));
            let fetch = match here.join(".git").exists() {
                true => {
                    let here = shown::word(&here);
                    format!(", or get it with `git -C {here} fetch --tags` where a remote has it")
                }
                false => String::new(),
            };
            return Err(GitError::Unusable {
                message: format!("the submodule {path} is at {commit}, which is in {shown} and on no remote"),
                hint: format!(
                    "push it, as in `git -C {there} push origin {commit}:refs/heads/{}`{fetch}, then merge again; nothing was changed",
                    Git::branch(feature)
                ),
            });
        }
        Ok(())
    }

    /// The submodules of a worktree that have commits which are on no remote, and not in the project's own either.
    pub(super) async fn submodules_ahead(&self, worktree: &Path) -> Result<Vec<String>, GitError> {
        let own = line(self.bytes(worktree, &["rev-parse", "--absolute-git-dir"]).await?).join("modules");
        let mut submodules = Vec::new();
        find(&own, PathBuf::new(), &mut submodules);
        // Those that were made in the worktree have their repository within.
        for name in self.submodule_places(worktree).await? {
            let folder = worktree.join(&name).join(".git");
            if folder.symlink_metadata().is_ok_and(|found| found.is_dir()) {
                submodules.push(Submodule { name, folder });
            }
        }
        let mut ahead = Vec::new();
        for submodule in submodules {
            if self.is_ahead(&submodule).await? {
                ahead.push(submodule.name.display().to_string());
            }
        }
        Ok(ahead)
    }

    /// What stands where a submodule is not checked out, as in every new worktree. Git commits none of it, and says nothing.
    pub(super) async fn files_for_submodules(&self, worktree: &Path) -> Result<Vec<String>, GitError> {
        let mut files = Vec::new();
        for name in self.submodule_places(worktree).await? {
            let folder = worktree.join(&name);
            if folder.join(".git").exists() {
                continue;
            }
            let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            files.extend(entries.map(|entry| name.join(entry.file_name()).display().to_string()));
        }
        files.sort();
        Ok(files)
    }

    /// Where a worktree has submodules, whether they are there or not.
    async fn submodule_places(&self, worktree: &Path) -> Result<Vec<PathBuf>, GitError> {
        let listed = self.bytes(worktree, &["ls-files", "--stage", "-z"]).await?;
        let listed =
            names(&listed).map(OsStr::as_bytes).filter(|entry| entry.starts_with(GITLINK.as_bytes()));
        let places = listed.filter_map(|entry| entry.splitn(2, |byte| *byte == b'\t').nth(1));
        Ok(places.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect())
    }

    async fn is_ahead(&self, submodule: &Submodule) -> Result<bool, GitError> {
        let within = |folder: &Path, args: &[&str]| {
            let mut all = vec!["--git-dir".into(), folder.as_os_str().to_owned()];
            all.extend(args.iter().map(Into::into));
            all
        };
        let is_released =
            self.is_released(["--git-dir".as_ref(), submodule.folder.as_os_str()], "HEAD").await;
        // Tags come from the remote too.
        let mut args = vec!["rev-list", "--exclude=refs/tags/*", "--glob=refs/*"];
        args.extend((!is_released).then_some("HEAD"));
        args.extend(["--not", "--remotes", "--"]);
        let Ok(commits) = self.bytes(&self.root, &within(&submodule.folder, &args)).await else {
            return Ok(true);
        };
        let projects = self.common().await?.join("modules").join(&submodule.name);
        for commit in String::from_utf8_lossy(&commits).lines() {
            let looked = self.bytes(&self.root, &within(&projects, &["cat-file", "-e", commit])).await;
            if looked.is_err() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a commit of a submodule came with a tag: one has it, and it was not made here.
    async fn is_released(&self, of: [&OsStr; 2], commit: &str) -> bool {
        let ask = async |args: &[&str]| {
            let args: Vec<&OsStr> = of.into_iter().chain(args.iter().map(OsStr::new)).collect();
            let said = self.bytes(&self.root, &args).await.ok()?;
            Some(String::from_utf8_lossy(&said).into_owned())
        };
        let tags = ask(&["for-each-ref", "--count=1", "--contains", commit, "refs/tags"]).await;
        let commit = ask(&["rev-parse", "--verify", commit]).await;
        // What the head was at, and how it came there.
        let moves = ask(&["log", "--walk-reflogs", "--format=%H %gs", "HEAD", "--"]).await;
        let (Some(tags), Some(commit), Some(moves)) = (tags, commit, moves) else { return false };
        let moves = moves.lines().filter_map(|line| line.split_once(' '));
        let mut to_it = moves.filter(|(to, _)| *to == commit.trim()).map(|(_, how)| how);
        !tags.is_empty() && to_it.all(is_going)
    }
}

/// Whether the head, by what git noted, went to a commit that was there already.
fn is_going(how: &str) -> bool {
    ["checkout:", "clone:", "reset:"].iter().any(|way| how.starts_with(way))
        || how.ends_with(": Fast-forward")
}

/// Whether a submodule is in this folder and has the commit.
async fn has(git: &Git, folder: &Path, commit: &str) -> bool {
    folder.join(".git").exists()
        && git.git(folder, &["cat-file", "-e", &format!("{commit}^{{commit}}")]).await.is_ok()
}

/// The repositories below a folder that is called `modules`.
fn find(folder: &Path, name: PathBuf, found: &mut Vec<Submodule>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        let (folder, name) = (entry.path(), name.join(entry.file_name()));
        if folder.join("HEAD").is_file() && folder.join("objects").is_dir() {
            find(&folder.join("modules"), name.join("modules"), found);
            found.push(Submodule { name, folder });
        } else {
            find(&folder, name, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::git::Git;
    use crate::git::checkout::tests::write;
    use crate::git::tests::{git, project, told};
    use aop_kernel::ids::FeatureId;
    use std::path::{Path, PathBuf};

    const FILES: [&str; 2] = ["-c", "protocol.file.allow=always"];

    fn commit(folder: &Path, name: &str) -> String {
        write(folder, name, "text");
        git(folder, &["add", name]);
        git(folder, &["commit", "--quiet", "-m", name]);
        git(folder, &["rev-parse", "HEAD"])
    }

    /// A project with a submodule `sub`, and a feature's worktree that has it too.
    async fn with_submodule() -> (tempfile::TempDir, tempfile::TempDir, Git, FeatureId, PathBuf) {
        let remote = tempfile::TempDir::new().unwrap();
        git(remote.path(), &["init", "--quiet"]);
        commit(remote.path(), "lib");
        let (dir, project, id) = project();
        let from = remote.path().to_str().unwrap();
        git(dir.path(), &[&FILES[..], &["submodule", "--quiet", "add", from, "sub"]].concat());
        git(dir.path(), &["commit", "--quiet", "-m", "sub"]);
        let worktree = project.ensure_worktree(&id).await.unwrap();
        git(&worktree, &[&FILES[..], &["submodule", "--quiet", "update", "--init"]].concat());
        (remote, dir, project, id, worktree)
    }

    #[tokio::test]
    async fn a_submodule_at_a_commit_that_nobody_can_get_refuses_the_merge() {
        let (_remote, dir, project, id, worktree) = with_submodule().await;
        let inner = commit(&worktree.join("sub"), "new");
        let work = project.commit_all(&id, "built").await.unwrap();
        let merge = project.prepare_merge(&work, "merge").await.unwrap();
        let error = project.check_submodules(&id, &merge).await.unwrap_err();
        let (message, hint) = told(&error);
        assert!(message.contains(&format!("submodule sub is at {inner}")), "{message}");
        assert_eq!(project.remove_worktree(&id).await.unwrap().len(), 1, "it would go with the worktree");
        // What the hint says, word for word.
        let command = hint.split('`').nth(1).unwrap();
        assert!(std::process::Command::new("sh").args(["-c", command]).status().unwrap().success());
        project.check_submodules(&id, &merge).await.unwrap();
        project.fast_forward("main", &merge, std::process::Stdio::null()).await.unwrap();
        assert_eq!(project.remove_worktree(&id).await.unwrap(), [""; 0]);
        assert!(!worktree.exists());
        git(dir.path(), &[&FILES[..], &["submodule", "--quiet", "update"]].concat());
        assert!(dir.path().join("sub/new").exists());
    }

    #[tokio::test]
    async fn a_submodules_commit_alone_is_work_whatever_git_is_set_to() {
        let (_remote, dir, project, id, worktree) = with_submodule().await;
        git(dir.path(), &["config", "diff.ignoreSubmodules", "all"]);
        let inner = commit(&worktree.join("sub"), "new");
        project.commit_all(&id, "built").await.unwrap();
        assert_eq!(git(dir.path(), &["rev-parse", "aop/checkout:sub"]), inner);
    }

    #[tokio::test]
    async fn what_a_submodule_has_not_committed_fails_no_commit() {
        let (_remote, _dir, project, id, worktree) = with_submodule().await;
        let before = project.head(&worktree).await.unwrap();
        for file in ["lib", "unknown"] {
            write(&worktree.join("sub"), file, "changed");
            assert_eq!(project.commit_all(&id, "built").await.unwrap(), before, "there is nothing to commit");
        }
        assert_eq!(project.remove_worktree(&id).await.unwrap(), ["sub"], "it is not lost");
    }

    #[tokio::test]
    async fn what_stands_where_a_submodule_is_not_checked_out_keeps_its_worktree() {
        let (_remote, _dir, project, _, _) = with_submodule().await;
        let id = FeatureId::parse("search").unwrap();
        let worktree = project.ensure_worktree(&id).await.unwrap();
        write(&worktree.join("sub"), "new", "text");
        assert_eq!(project.remove_worktree(&id).await.unwrap(), ["sub/new"], "git says nothing of it");
        std::fs::remove_file(worktree.join("sub/new")).unwrap();
        assert_eq!(project.remove_worktree(&id).await.unwrap(), [""; 0]);
        assert!(!worktree.exists());
    }

    #[tokio::test]
    async fn what_a_submodule_alone_has_keeps_its_worktree() {
        let (_remote, dir, project, id, worktree) = with_submodule().await;
        let sub = worktree.join("sub");
        git(&sub, &["switch", "--quiet", "-c", "mine"]);
        commit(&sub, "new");
        git(&sub, &["switch", "--quiet", "--detach", "HEAD~"]);
        let kept = project.remove_worktree(&id).await.unwrap();
        assert_eq!(kept, ["commits of the submodule sub that are on no remote"]);
        git(&sub, &["branch", "--quiet", "-D", "mine"]);
        write(&sub, "unknown", "text");
        // A setting that hides such files hides them from the person, not from us.
        git(dir.path(), &["config", "submodule.sub.ignore", "all"]);
        assert_eq!(project.remove_worktree(&id).await.unwrap(), ["sub"]);
        std::fs::remove_file(sub.join("unknown")).unwrap();
        assert_eq!(project.remove_worktree(&id).await.unwrap(), [""; 0]);
        assert!(!worktree.exists());
    }

    #[tokio::test]
    async fn a_submodule_at_a_tag_that_is_on_no_branch_is_on_its_remote() {
        let (remote, dir, project, id, worktree) = with_submodule().await;
        git(remote.path(), &["switch", "--quiet", "--detach"]);
        let released = commit(remote.path(), "release");
        git(remote.path(), &["tag", "v1"]);
        let sub = worktree.join("sub");
        git(&sub, &["fetch", "--quiet", "--tags"]);
        git(&sub, &["checkout", "--quiet", "v1"]);
        let work = project.commit_all(&id, "built").await.unwrap();
        let merge = project.prepare_merge(&work, "merge").await.unwrap();
        project.check_submodules(&id, &merge).await.unwrap();
        project.fast_forward("main", &merge, std::process::Stdio::null()).await.unwrap();
        assert_eq!(project.remove_worktree(&id).await.unwrap(), [""; 0]);
        assert!(!worktree.exists());
        git(dir.path(), &[&FILES[..], &["submodule", "--quiet", "update"]].concat());
        assert_eq!(git(&dir.path().join("sub"), &["rev-parse", "HEAD"]), released);
    }

    #[tokio::test]
    async fn a_tag_that_was_made_here_brings_no_commit_to_a_remote() {
        let (_remote, _dir, project, id, worktree) = with_submodule().await;
        let sub = worktree.join("sub");
        commit(&sub, "new");
        git(&sub, &["tag", "v1"]);
        let work = project.commit_all(&id, "built").await.unwrap();
        let merge = project.prepare_merge(&work, "merge").await.unwrap();
        let error = project.check_submodules(&id, &merge).await.unwrap_err();
        assert_eq!(project.remove_worktree(&id).await.unwrap().len(), 1);
        // Somebody brings it there by its tag; then the second way of the hint helps.
        git(&sub, &["push", "--quiet", "origin", "v1"]);
        let command = told(&error).1.split('`').nth(3).unwrap();
        assert!(std::process::Command::new("sh").args(["-c", command]).status().unwrap().success());
        project.check_submodules(&id, &merge).await.unwrap();
    }
}
