//! Submodules of a feature's worktree. Their repositories lie with the worktree and go with it, so what is in them and
//! nowhere else keeps it; and a merge that names such a commit would name one that nobody can get.

use super::checkout::{GITLINK, is_folder, line, names};
use super::{Git, GitError};
use crate::shown;
use aop_kernel::ids::FeatureId;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where a worktree has a submodule, or one of its submodules has.
struct Place {
    /// From the top of the worktree.
    name: PathBuf,
    /// Whether it is checked out.
    is_there: bool,
}

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
        for Place { name, .. } in self.submodule_places(worktree).await? {
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

    /// What a worktree has in the places of its submodules and git says nothing of. That is what stands where one is not
    /// checked out, as in every new worktree, and what a submodule's own settings hide of those within.
    pub(super) async fn files_for_submodules(&self, worktree: &Path) -> Result<Vec<String>, GitError> {
        let mut files = Vec::new();
        for Place { name, is_there } in self.submodule_places(worktree).await? {
            let folder = worktree.join(&name);
            let found: Vec<PathBuf> = if is_there {
                self.uncommitted(&folder).await?.into_iter().map(PathBuf::from).collect()
            } else {
                let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
                entries.map(|entry| entry.file_name().into()).collect()
            };
            files.extend(found.iter().map(|file| name.join(file).display().to_string()));
        }
        files.sort();
        Ok(files)
    }

    /// Where a worktree has submodules, and these have theirs, whether they are there or not.
    async fn submodule_places(&self, worktree: &Path) -> Result<Vec<Place>, GitError> {
        let mut places = Vec::new();
        let mut ahead = self.gitlinks(worktree).await?;
        // It comes to an end: one that is there is a folder of its own, and no link to one above.
        while let Some(name) = ahead.pop() {
            let folder = worktree.join(&name);
            let is_there = is_folder(&folder) && folder.join(".git").exists();
            if is_there {
                let within = self.gitlinks(&folder).await?;
                ahead.extend(within.iter().map(|inner| name.join(inner)));
            }
            places.push(Place { name, is_there });
        }
        Ok(places)
    }

    /// The submodules that the index of a checkout names. Its repository is named: where that is none, git
    /// would take the one above.
    async fn gitlinks(&self, checkout: &Path) -> Result<Vec<PathBuf>, GitError> {
        let listed = self.bytes(checkout, &["--git-dir", ".git", "ls-files", "--stage", "-z"]).await?;
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

    fn remote() -> tempfile::TempDir {
        let remote = tempfile::TempDir::new().unwrap();
        git(remote.path(), &["init", "--quiet"]);
        commit(remote.path(), "lib");
        remote
    }

    fn add_submodule(to: &Path, from: &Path, name: &str) {
        let from = from.to_str().unwrap();
        git(to, &[&FILES[..], &["submodule", "--quiet", "add", from, name]].concat());
        git(to, &["commit", "--quiet", "-m", name]);
    }

    /// A project with a submodule `sub`, and a feature's worktree that has it too.
    async fn with_submodule() -> (tempfile::TempDir, tempfile::TempDir, Git, FeatureId, PathBuf) {
        with_submodule_of(remote()).await
    }

    /// The same, and `sub` has a submodule `inner` that is not checked out; where that comes from.
    async fn with_submodule_in_submodule()
    -> (tempfile::TempDir, [tempfile::TempDir; 2], Git, FeatureId, PathBuf) {
        let (inner, outer) = (remote(), remote());
        add_submodule(outer.path(), inner.path(), "inner");
        let (outer, dir, project, id, worktree) = with_submodule_of(outer).await;
        (inner, [outer, dir], project, id, worktree)
    }

    async fn with_submodule_of(
        remote: tempfile::TempDir,
    ) -> (tempfile::TempDir, tempfile::TempDir, Git, FeatureId, PathBuf) {
        let (dir, project, id) = project();
        add_submodule(dir.path(), remote.path(), "sub");
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

    /// A file in this place keeps a worktree that has nothing else to keep.
    async fn keeps_for_a_file_at(place: &str, project: &Git, id: &FeatureId, worktree: &Path) {
        write(&worktree.join(place), "new", "text");
        let file = format!("{place}/new");
        assert_eq!(project.remove_worktree(id).await.unwrap(), [&*file], "git says nothing of it");
        std::fs::remove_file(worktree.join(&file)).unwrap();
        assert_eq!(project.remove_worktree(id).await.unwrap(), [""; 0]);
        assert!(!worktree.exists());
    }

    #[tokio::test]
    async fn what_stands_where_a_submodule_is_not_checked_out_keeps_its_worktree() {
        let (_remote, _dir, project, _, _) = with_submodule().await;
        let id = FeatureId::parse("search").unwrap();
        let worktree = project.ensure_worktree(&id).await.unwrap();
        keeps_for_a_file_at("sub", &project, &id, &worktree).await;
    }

    #[tokio::test]
    async fn what_stands_where_a_submodule_of_a_submodule_is_not_checked_out_keeps_its_worktree() {
        let (_inner, _dirs, project, id, worktree) = with_submodule_in_submodule().await;
        keeps_for_a_file_at("sub/inner", &project, &id, &worktree).await;
    }

    #[tokio::test]
    async fn what_a_submodule_of_a_submodule_alone_has_keeps_its_worktree() {
        let (from, _dirs, project, id, worktree) = with_submodule_in_submodule().await;
        let inner = worktree.join("sub/inner");
        git(&inner, &["clone", "--quiet", from.path().to_str().unwrap(), "."]);
        git(&inner, &["switch", "--quiet", "-c", "mine"]);
        commit(&inner, "new");
        git(&inner, &["switch", "--quiet", "--detach", "HEAD~"]);
        let kept = project.remove_worktree(&id).await.unwrap();
        assert_eq!(kept, ["commits of the submodule sub/inner that are on no remote"]);
        git(&inner, &["branch", "--quiet", "-D", "mine"]);
        write(&inner, "unknown", "text");
        // A setting of the submodule hides such files from whoever looks at it, also from git itself.
        git(&worktree.join("sub"), &["config", "submodule.inner.ignore", "all"]);
        assert_eq!(project.remove_worktree(&id).await.unwrap(), ["sub/inner", "sub/inner/unknown"]);
        std::fs::remove_file(inner.join("unknown")).unwrap();
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
