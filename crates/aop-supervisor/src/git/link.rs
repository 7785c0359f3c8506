//! Whether a worktree is one of this repository. Two links say so: `.git` in the worktree, and `worktrees/NAME/gitdir` in
//! the repository. Both hold whole paths, so in a folder that was copied they lead to where it was copied from, and in one
//! that was moved to nowhere; and an agent can put anything in place of the first. So they are read as files and written
//! anew where they lead astray, before any git runs in the worktree: it would do what the settings at their end say.

use super::GitError;
use crate::shown;
use aop_engine::AOP_DIR;
use aop_store::worktree::{GITDIR, end_of, named_place, own_folder, stands_at};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where the links of a worktree lead.
pub(super) enum Link {
    /// To each other.
    Whole,
    /// Elsewhere; this is the worktree's folder in the repository.
    Astray(PathBuf),
}

/// Looks at the links of a worktree. `common` is the repository's own folder, without symlinks.
pub(super) fn look(common: &Path, worktree: &Path) -> Result<Link, GitError> {
    let place = worktree.canonicalize().map_err(|error| failed(worktree, &error))?;
    let link = place.join(".git");
    match link.symlink_metadata() {
        Ok(found) if !found.is_file() => return Err(own_repository(worktree)),
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(&link, &error)),
        _ => {}
    }
    if own_folder(common, &place).is_some() {
        return Ok(Link::Whole);
    }
    let of_repository = common.join("worktrees");
    let entries = std::fs::read_dir(&of_repository).into_iter().flatten().flatten();
    if let Some(own) = entries.map(|entry| entry.path()).find(|own| stands_at(own).as_ref() == Some(&place)) {
        return Ok(Link::Astray(own));
    }
    let leads_to = end_of(&link);
    let name = place.file_name().unwrap_or_default();
    let ours = Path::new(AOP_DIR).join("worktrees").join(name);
    for own in [leads_to.as_ref().and_then(|own| own.file_name()), Some(name)].into_iter().flatten() {
        let own = of_repository.join(own);
        let Some(there) = named_place(&own).filter(|there| there.ends_with(&ours)) else { continue };
        let back = end_of(&there.join(".git")).and_then(|back| back.canonicalize().ok());
        if back.is_some_and(|back| back == own) {
            return Err(of_another_folder(worktree, &there));
        }
        return Ok(Link::Astray(own));
    }
    Err(unknown(worktree))
}

/// Makes the links of a worktree lead to each other.
pub(super) fn mend(common: &Path, worktree: &Path) -> Result<(), GitError> {
    let Link::Astray(own) = look(common, worktree)? else { return Ok(()) };
    let write = |path: &Path, fresh: &Path, before: &[u8], named: &Path| {
        std::fs::write(fresh, [before, named.as_os_str().as_bytes(), b"\n"].concat())
            .and_then(|()| std::fs::rename(fresh, path))
            .map_err(|error| failed(path, &error))
    };
    let link = worktree.canonicalize().map_err(|error| failed(worktree, &error))?.join(".git");
    // Two may do this at once, each with files of its own. Not written in the worktree: what is left there by a kill would
    // be committed.
    let fresh = ulid::Ulid::generate();
    write(&link, &worktree.with_extension(format!("link-{fresh}")), GITDIR, &own)?;
    write(&own.join("gitdir"), &own.join(format!("gitdir-{fresh}")), b"", &link)
}

fn failed(path: &Path, error: &std::io::Error) -> GitError {
    GitError::disk(path, "read or written", error)
}

fn id_of(worktree: &Path) -> String {
    worktree.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn own_repository(worktree: &Path) -> GitError {
    let (shown, id) = (shown::name(worktree), id_of(worktree));
    let inner = shown::word(worktree.join(".git"));
    GitError::Unusable {
        message: format!("{shown}/.git is a repository of its own in place of the link to the project's"),
        hint: format!(
            "`rm -rf -- {inner}` takes it away and leaves the files; then `aop retry --feature-id {id}`"
        ),
    }
}

fn of_another_folder(worktree: &Path, there: &Path) -> GitError {
    let id = id_of(worktree);
    GitError::Unusable {
        message: format!(
            "the branch aop/{id} is worked on in {}; {} is a copy of that in the same repository",
            shown::name(there),
            shown::name(worktree)
        ),
        hint: "go on there, or copy the whole repository: two folders cannot have one branch".to_owned(),
    }
}

fn unknown(worktree: &Path) -> GitError {
    let (shown, there, id) = (shown::name(worktree), shown::word(worktree), id_of(worktree));
    GitError::Unusable {
        message: format!("the repository of this project does not know the worktree {shown}"),
        hint: format!(
            "move it away, as in `mv -- {there} ../{id}.old`, then `aop retry --feature-id {id}`: it is made again from the branch aop/{id}, and what was not committed is still in the old one"
        ),
    }
}

#[cfg(test)]
mod tests {
    use crate::git::Git;
    use crate::git::tests::{git, obey, project, told};
    use std::path::Path;

    /// A repository whose settings leave a trace when git obeys them.
    fn trap(folder: &Path, bare: bool) -> std::path::PathBuf {
        git(folder, if bare { &["init", "--quiet", "--bare"] } else { &["init", "--quiet"] });
        let trace = folder.join("../trace");
        let leave = format!("touch {}; cat", trace.display());
        git(folder, &["config", "filter.x.clean", &leave]);
        git(folder, &["config", "core.fsmonitor", &leave]);
        // Git works with it wherever a link leads there.
        git(folder, &["config", "core.bare", "false"]);
        trace
    }

    #[tokio::test]
    async fn no_git_runs_in_a_worktree_whose_link_leads_elsewhere() {
        let (dir, project, id) = project();
        let worktree = project.ensure_worktree(&id).await.unwrap();
        std::fs::write(worktree.join(".gitattributes"), "* filter=x\n").unwrap();
        let bare = dir.path().join("bare");
        std::fs::create_dir(&bare).unwrap();
        let trace = trap(&bare, true);
        std::fs::write(worktree.join(".git"), format!("gitdir: {}\n", bare.display())).unwrap();
        let commit = project.commit_all(&id, "second").await.unwrap();
        assert_eq!(git(dir.path(), &["rev-parse", "aop/checkout"]), commit, "it leads where it should again");
        std::fs::remove_file(worktree.join(".git")).unwrap();
        let trace_within = trap(&worktree, false);
        std::fs::write(worktree.join("new"), "text").unwrap();
        for error in [
            project.commit_all(&id, "third").await.unwrap_err(),
            project.ensure_worktree(&id).await.unwrap_err(),
            project.remove_worktree(&id).await.unwrap_err(),
            project.worktrees_in_doubt().await.unwrap().remove(0),
        ] {
            assert!(told(&error).0.contains("repository of its own"), "{error}");
        }
        assert!(!trace.exists() && !trace_within.exists(), "what an agent set up was obeyed");
        // What the hint says keeps the files.
        std::fs::remove_dir_all(worktree.join(".git")).unwrap();
        project.ensure_worktree(&id).await.unwrap();
        project.commit_all(&id, "third").await.unwrap();
        assert_eq!(git(dir.path(), &["show", "aop/checkout:new"]), "text");
    }

    #[tokio::test]
    async fn a_copy_within_one_repository_never_takes_the_branch_of_the_original() {
        let (dir, _, id) = project();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        std::fs::create_dir(&one).unwrap();
        let original = Git::new(&one).ensure_worktree(&id).await.unwrap();
        let copied = std::process::Command::new("cp").arg("-a").args([&one, &two]).status().unwrap();
        assert!(copied.success());
        let error = Git::new(&two).ensure_worktree(&id).await.unwrap_err();
        assert!(told(&error).0.contains(original.to_str().unwrap()), "{error}");
        assert_eq!(Git::new(&one).ensure_worktree(&id).await.unwrap(), original);
        // Where the original is gone it was a move.
        std::fs::remove_dir_all(&one).unwrap();
        Git::new(&two).ensure_worktree(&id).await.unwrap();
        assert!(git(dir.path(), &["worktree", "list"]).contains("two/.aop/worktrees/checkout"));
    }

    #[tokio::test]
    async fn a_worktree_that_the_repository_has_forgotten_is_left_as_it_is() {
        let (dir, project, id) = project();
        let worktree = project.ensure_worktree(&id).await.unwrap();
        std::fs::write(worktree.join("new"), "text").unwrap();
        std::fs::remove_dir_all(dir.path().join(".git/worktrees")).unwrap();
        let error = project.ensure_worktree(&id).await.unwrap_err();
        assert!(told(&error).1.contains("aop retry --feature-id checkout"), "{error}");
        assert!(worktree.join("new").exists());
        std::fs::rename(&worktree, dir.path().join("old")).unwrap();
        project.ensure_worktree(&id).await.unwrap();
    }
    #[tokio::test]
    async fn what_a_hint_says_about_a_link_holds_in_a_folder_with_a_space_in_its_name() {
        let (dir, _, id) = project();
        let root = dir.path().join("my proj");
        std::fs::create_dir_all(root.join("work")).unwrap();
        // What the first word of the path would be without quotes.
        std::fs::write(dir.path().join("my"), "mine").unwrap();
        let project = Git::new(&root);
        let worktree = project.ensure_worktree(&id).await.unwrap();
        std::fs::write(worktree.join("new"), "text").unwrap();
        let link = std::fs::read(worktree.join(".git")).unwrap();
        std::fs::remove_file(worktree.join(".git")).unwrap();
        git(&worktree, &["init", "--quiet"]);
        obey(told(&project.ensure_worktree(&id).await.unwrap_err()).1, &root);
        assert!(!worktree.join(".git").exists() && dir.path().join("my").exists());
        std::fs::write(worktree.join(".git"), link).unwrap();
        std::fs::remove_dir_all(dir.path().join(".git/worktrees")).unwrap();
        obey(told(&project.ensure_worktree(&id).await.unwrap_err()).1, &root);
        assert_eq!(std::fs::read_to_string(dir.path().join("checkout.old/new")).unwrap(), "text");
        assert_eq!(project.ensure_worktree(&id).await.unwrap(), worktree);
    }
}
