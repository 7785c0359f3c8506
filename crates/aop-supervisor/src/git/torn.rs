//! A checkout that was torn: git was killed, or the disk was full, while it wrote the files of a merge. What it has written
//! is undone, so that it can begin again; what may be a person's stays. A file that goes is a beginning of what the
//! merge has at its place, or all that it or the head has there: nothing in it is anybody's work. One of the head's that
//! only lacks its end was cut by a person, for all that anybody can tell.

use super::checkout::{AT_ONCE, Change};
use super::{Git, GitError};
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

impl Git {
    /// Clears away what git has written of this commit before it was cut off: what the head has is as there, the rest is
    /// gone. Where a file is neither as the head has it nor as the commit does, nothing is cleared; those files. Nor is
    /// anything where something else would keep the head from moving.
    pub(crate) async fn clear_torn(&self, commit: &str) -> Result<Vec<String>, GitError> {
        let top = self.top().await?;
        // Files that only look changed are none. It says that it found others by its exit code.
        let _ = self.git(&top, &["update-index", "-q", "--refresh"]).await;
        let changed = self.differing(&["diff-files"]).await?;
        let staged = self.differing(&["diff-index", "--cached", "HEAD"]).await?;
        let staged_other = self.differing(&["diff-index", "--cached", commit]).await?;
        let (mut touched, mut torn, mut in_doubt) = (Vec::new(), Vec::new(), Vec::new());
        let changes = self.changes("HEAD", commit).await?;
        for change in &changes {
            let path = &*change.path;
            if staged.contains(path) {
                // The index is written when all files are: with it this one is as the commit has it.
                in_doubt.extend(staged_other.contains(path).then(|| path.display().to_string()));
                continue;
            }
            if change.how != 'A' && !changed.contains(path) {
                continue;
            }
            touched.push(change);
            // What is gone is in the head; folders are no files that git was writing.
            if !is_file_of(&top, path) {
                continue;
            }
            let place = top.join(path);
            let is_torn = match self.likeness("HEAD", path, &place).await {
                Likeness::Same => true,
                Likeness::Beginning => false,
                Likeness::Other => self.likeness(commit, path, &place).await != Likeness::Other,
            };
            if is_torn {
                torn.push(change);
            } else {
                in_doubt.push(path.display().to_string());
            }
        }
        if in_doubt.is_empty() {
            let ours = torn.iter().map(|change| &*change.path).collect();
            self.check_free(touched.into_iter(), &ours).await?;
            // With files in the index that are not merged no head moves.
            self.git(&top, &["read-tree", "-m", "-n", "HEAD"]).await?;
            self.undo(&top, &torn).await?;
        }
        Ok(in_doubt)
    }

    /// Brings these files back to what the head has.
    async fn undo(&self, top: &Path, torn: &[&Change]) -> Result<(), GitError> {
        let (added, known): (Vec<&Change>, Vec<&Change>) = torn.iter().partition(|change| change.how == 'A');
        for change in added {
            let place = top.join(&change.path);
            std::fs::remove_file(&place).map_err(|error| GitError::disk(&place, "taken away", &error))?;
            // Empty folders go too: one may stand where the head has a file. What is in use stays, and ends it.
            let folders = change.path.ancestors().skip(1).filter(|folder| *folder != Path::new(""));
            let _ = folders.map(|folder| std::fs::remove_dir(top.join(folder))).find(Result::is_err);
        }
        for known in known.chunks(AT_ONCE) {
            let mut args = ["checkout-index", "--force", "--index", "--"].map(OsStr::new).to_vec();
            args.extend(known.iter().map(|change| change.path.as_os_str()));
            self.bytes(top, &args).await?;
        }
        Ok(())
    }

    async fn differing(&self, ask: &[&str]) -> Result<HashSet<PathBuf>, GitError> {
        Ok(self.raw(&self.root, ask).await?.into_iter().map(|change| change.path).collect())
    }

    /// How a file that is here is like the one of a commit, as git would write that here.
    async fn likeness(&self, commit: &str, path: &Path, place: &Path) -> Likeness {
        let mut name = OsString::from(format!("{commit}:"));
        name.push(path);
        let (how, here) = match std::fs::read_link(place) {
            Ok(leads_to) => ("blob", Ok(leads_to.into_os_string().into_vec())),
            Err(_) => ("--filters", aop_store::read_file(place)),
        };
        let whole = self.bytes(&self.root, &["cat-file".into(), how.into(), name]).await;
        match (here, whole) {
            (Ok(here), Ok(whole)) if here == whole => Likeness::Same,
            // A link is made in one piece.
            (Ok(here), Ok(whole)) if how != "blob" && whole.starts_with(&here) => Likeness::Beginning,
            _ => Likeness::Other,
        }
    }
}

/// How a file is like another.
#[derive(PartialEq)]
enum Likeness {
    /// In everything.
    Same,
    /// It lacks the end.
    Beginning,
    /// Not at all.
    Other,
}

/// Whether a file, or a link, is really there and not behind a link.
fn is_file_of(top: &Path, path: &Path) -> bool {
    let found = |path: &Path| top.join(path).symlink_metadata();
    let folders = path.ancestors().skip(1);
    found(path).is_ok_and(|found| found.is_file() || found.is_symlink())
        && folders.into_iter().all(|folder| found(folder).is_ok_and(|found| found.is_dir()))
}

#[cfg(test)]
mod tests {
    use crate::git::checkout::tests::{ahead, write};
    use crate::git::tests::{git, project};
    use crate::git::{Git, GitError};
    use std::path::Path;

    const NEW: &str = "one\ntwo\nthree\n";

    /// A project with a commit `next` that adds, changes and removes files.
    fn about_to_move() -> (tempfile::TempDir, Git) {
        let (dir, project, _) = project();
        let root = dir.path();
        write(root, ".gitattributes", "*.crlf text eol=crlf\n");
        for name in ["changed", "other", "removed"] {
            write(root, name, "old\n");
        }
        git(root, &["add", "--all"]);
        git(root, &["commit", "--quiet", "-m", "old"]);
        ahead(root, || {
            for name in ["changed", "other", "added", "deep/added", "lines.crlf"] {
                write(root, name, NEW);
            }
            std::os::unix::fs::symlink("added", root.join("link")).unwrap();
            std::fs::remove_file(root.join("removed")).unwrap();
        });
        (dir, project)
    }

    async fn moves(root: &Path, project: &Git) {
        assert_eq!(project.clear_torn("next").await.unwrap(), [""; 0]);
        project.can_move_to("next").await.unwrap();
        project.fast_forward("main", "next", std::process::Stdio::null()).await.unwrap();
        assert_eq!(git(root, &["rev-parse", "main"]), git(root, &["rev-parse", "next"]));
        assert_eq!(git(root, &["status", "--porcelain"]), "");
        assert_eq!(std::fs::read_to_string(root.join("deep/added")).unwrap(), NEW);
    }

    #[tokio::test]
    async fn what_a_torn_checkout_has_written_is_written_anew() {
        let (dir, project) = about_to_move();
        let root = dir.path();
        std::fs::remove_file(root.join("removed")).unwrap();
        std::fs::remove_file(root.join("other")).unwrap();
        for (name, text) in
            [("changed", "one\ntw"), ("added", NEW), ("deep/added", ""), ("lines.crlf", "one\r\ntwo\r")]
        {
            write(root, name, text);
        }
        std::os::unix::fs::symlink("added", root.join("link")).unwrap();
        project.can_move_to("next").await.unwrap_err();
        moves(root, &project).await;
    }

    #[tokio::test]
    async fn a_checkout_that_lacks_only_its_branch_is_left_as_it_is() {
        let (dir, project) = about_to_move();
        git(dir.path(), &["read-tree", "-m", "-u", "HEAD", "next"]);
        moves(dir.path(), &project).await;
    }

    #[tokio::test]
    async fn what_may_be_somebodys_work_keeps_all_that_is_there() {
        let (dir, project) = about_to_move();
        let root = dir.path();
        let mine =
            [("added", "mine\n"), ("changed", "old\nmine\n"), ("deep/added", "one\ntwo\nthree\nfour\n")];
        for (name, text) in mine {
            write(root, name, text);
        }
        write(root, "removed", "old and mine\n");
        write(root, "lines.crlf", "one\r\n");
        write(root, "other", "staged\n");
        git(root, &["add", "other"]);
        let kept = project.clear_torn("next").await.unwrap();
        assert_eq!(kept, ["added", "changed", "deep/added", "other", "removed"]);
        for (name, text) in mine {
            assert_eq!(std::fs::read_to_string(root.join(name)).unwrap(), text);
        }
        assert!(root.join("lines.crlf").exists(), "nothing goes while something is in doubt");
    }

    #[tokio::test]
    async fn a_file_of_the_head_that_lacks_its_end_is_somebodys_work() {
        let (dir, project, _) = project();
        let root = dir.path();
        let mine = [("cut", "one\n"), ("emptied", ""), ("removed", "on")];
        for (name, _) in mine {
            write(root, name, "one\ntwo\n");
        }
        git(root, &["add", "--all"]);
        git(root, &["commit", "--quiet", "-m", "old"]);
        ahead(root, || {
            write(root, "cut", NEW);
            write(root, "emptied", NEW);
            std::fs::remove_file(root.join("removed")).unwrap();
        });
        for (name, text) in mine {
            write(root, name, text);
        }
        assert_eq!(project.clear_torn("next").await.unwrap(), ["cut", "emptied", "removed"]);
        for (name, text) in mine {
            assert_eq!(std::fs::read_to_string(root.join(name)).unwrap(), text);
        }
    }

    #[tokio::test]
    async fn what_keeps_the_head_from_moving_keeps_all_that_is_there() {
        for name in ["other", "deep/added"] {
            let (dir, project) = about_to_move();
            let root = dir.path();
            write(root, ".git/info/exclude", "mine\n");
            let _ = std::fs::remove_file(root.join(name));
            write(root, &format!("{name}/mine"), "mine\n");
            // Both are torn, or look like it.
            write(root, "changed", NEW);
            write(root, "added", "one\n");
            write(root, "removed", "old\n");
            match project.clear_torn("next").await.unwrap_err() {
                GitError::InTheWay(files) => assert_eq!(files, [format!("{name}/")]),
                error => panic!("{error}"),
            }
            for (name, text) in [("changed", NEW), ("added", "one\n"), ("removed", "old\n")] {
                assert_eq!(std::fs::read_to_string(root.join(name)).unwrap(), text, "{name}");
            }
            std::fs::remove_dir_all(root.join(name)).unwrap();
            moves(root, &project).await;
        }
    }

    #[tokio::test]
    async fn a_torn_file_of_the_head_is_as_the_head_has_it() {
        let (dir, project) = about_to_move();
        let root = dir.path();
        write(root, "changed", "one\n");
        write(root, "added", "one\n");
        write(root, "removed", "old\n");
        assert_eq!(project.clear_torn("next").await.unwrap(), [""; 0]);
        assert_eq!(git(root, &["status", "--porcelain"]), "");
        assert_eq!(std::fs::read_to_string(root.join("changed")).unwrap(), "old\n");
    }

    #[tokio::test]
    async fn a_folder_that_a_torn_checkout_made_of_a_file_is_written_anew() {
        let (dir, project, _) = project();
        let root = dir.path();
        write(root, "file", "old\n");
        write(root, "folder/file", "old\n");
        git(root, &["add", "--all"]);
        git(root, &["commit", "--quiet", "-m", "old"]);
        ahead(root, || {
            std::fs::remove_file(root.join("file")).unwrap();
            std::fs::remove_dir_all(root.join("folder")).unwrap();
            write(root, "file/below", NEW);
            write(root, "folder", NEW);
            write(root, "deep/added", NEW);
        });
        std::fs::remove_file(root.join("file")).unwrap();
        std::fs::remove_dir_all(root.join("folder")).unwrap();
        write(root, "file/below", "one\n");
        write(root, "folder", "one\n");
        moves(root, &project).await;
    }

    #[tokio::test]
    async fn nothing_behind_a_link_is_cleared_away() {
        let (dir, project) = about_to_move();
        let elsewhere = tempfile::TempDir::new().unwrap();
        write(elsewhere.path(), "added", NEW);
        std::os::unix::fs::symlink(elsewhere.path(), dir.path().join("deep")).unwrap();
        project.clear_torn("next").await.unwrap_err();
        assert!(elsewhere.path().join("added").exists());
        project.can_move_to("next").await.unwrap_err();
    }
}
