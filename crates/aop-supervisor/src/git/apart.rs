//! What no branch may hold: anything at the place of a project's own `.aop` folder. Git ignores that folder in the
//! checkout, and takes what it ignores for nobody's: a merge would write a branch's files into it, over the store, the
//! packets and the worktrees of other features, or put a file or a link in place of all of it. In a feature's worktree
//! there is no such folder, so that whatever is put there looks like work.

use super::checkout::Change;
use super::{Git, GitError};
use crate::shown;
use aop_engine::AOP_DIR;
use aop_kernel::ids::FeatureId;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What a folder of that name holds when it is one.
const MARKS: [&str; 2] = ["aop.db", "project"];

/// Where the projects of a repository have their own folders.
struct Reserved {
    /// The top of the project's checkout.
    top: PathBuf,
    /// The project's own folder, from the top.
    own: Vec<String>,
}

/// What work reaches of a project's own folder.
pub(crate) struct Reach {
    /// What has to go: the folder itself, or what stands in place of one above it.
    places: BTreeSet<String>,
    /// The files.
    pub(crate) files: Vec<String>,
}

impl Reach {
    /// What is wrong, for people.
    pub(crate) fn told(&self, who: &str) -> String {
        format!(
            "{who} reaches into the project's own folder, where no branch has anything: {}",
            shown::names(&self.files)
        )
    }

    /// The command that makes the places what they are in this commit.
    pub(crate) fn take_away(&self, source: &str) -> String {
        let places = self.places.iter().map(shown::word).collect::<Vec<_>>().join(" ");
        let source = shown::word(source);
        format!("rm -rf -- {places} && git restore --source={source} --staged --worktree -- {places}")
    }
}

impl Git {
    /// Refuses to commit what would reach into a project's own folder, also when an agent has committed it by itself.
    pub(super) async fn check_apart(&self, feature: &FeatureId, worktree: &Path) -> Result<(), GitError> {
        let head = self.head(&self.root).await?;
        // What the branch has from the project's own history is not its doing.
        let base = self.git(worktree, &["merge-base", "HEAD", &head]).await;
        let base = base.map_or(head, |base| base.trim().to_owned());
        let changes = self.raw(worktree, &["diff-index", "--cached", &base]).await?;
        let Some(reach) = self.reserved().await?.among(&changes) else { return Ok(()) };
        let (shown, there) = (shown::name(worktree), shown::word(worktree));
        Err(GitError::Unusable {
            message: reach.told(&format!("the work in {shown}")),
            hint: format!(
                "`cd {there} && {}` takes it away; then `aop retry --feature-id {feature}`",
                reach.take_away(&base)
            ),
        })
    }

    /// What would change of a project's own folder with a move of the head to this commit.
    pub(crate) async fn reaching(&self, commit: &str) -> Result<Option<Reach>, GitError> {
        let changes = self.changes("HEAD", commit).await?;
        Ok(self.reserved().await?.among(&changes))
    }

    async fn reserved(&self) -> Result<Reserved, GitError> {
        let top = self.git(&self.root, &["rev-parse", "--show-toplevel"]).await?;
        let prefix = self.git(&self.root, &["rev-parse", "--show-prefix"]).await?;
        let folders = prefix.trim_end_matches('\n').split('/').filter(|name| !name.is_empty());
        let own = folders.chain([AOP_DIR]).map(str::to_owned).collect();
        Ok(Reserved { top: PathBuf::from(top.trim_end_matches('\n')), own })
    }
}

impl Reserved {
    /// What these changes reach.
    fn among(&self, changes: &[Change]) -> Option<Reach> {
        let (mut places, mut files) = (BTreeSet::new(), Vec::new());
        for change in changes {
            let file = change.path.to_string_lossy();
            if let Some(place) = self.place_of(&file, change.how == 'D') {
                places.insert(place);
                files.push(file.into_owned());
            }
        }
        (!files.is_empty()).then_some(Reach { places, files })
    }

    /// The place that a file has to be taken away from, if it has to. File systems differ in whether case does.
    fn place_of(&self, file: &str, is_gone: bool) -> Option<String> {
        let names: Vec<&str> = file.split('/').collect();
        let is_same = |(one, other): (&&str, &String)| one.eq_ignore_ascii_case(other);
        let is_on_the_way = names.iter().zip(&self.own).all(is_same);
        if is_on_the_way && names.len() >= self.own.len() {
            return Some(names[..self.own.len()].join("/"));
        }
        // A file or a link in place of a folder above takes all of it away.
        if is_on_the_way && !is_gone {
            return Some(file.to_owned());
        }
        // Of another project in the same repository.
        let of_others = names.iter().enumerate().filter(|(_, name)| name.eq_ignore_ascii_case(AOP_DIR));
        let mut of_others = of_others.map(|(at, _)| names[..=at].join("/"));
        of_others.find(|place| MARKS.iter().any(|mark| self.top.join(place).join(mark).exists()))
    }
}

#[cfg(test)]
mod tests {
    use crate::git::Git;
    use crate::git::tests::{git, obey, project, told};
    use std::os::unix::fs::symlink;
    use std::path::Path;

    fn write(path: &Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "text").unwrap();
    }

    #[tokio::test]
    async fn nothing_at_the_place_of_a_projects_own_folder_is_committed_whatever_it_is_and_whoever_commits_it()
     {
        let put: [fn(&Path); 4] = [
            |worktree| write(&worktree.join(".aop/features/other/packets/planning.json")),
            |worktree| write(&worktree.join(".AOP/aop.db")),
            |worktree| write(&worktree.join(".aop")),
            |worktree| symlink("elsewhere", worktree.join(".aop")).unwrap(),
        ];
        for (number, put) in put.into_iter().enumerate() {
            for is_committed in [false, true] {
                let (dir, project, id) = project();
                let worktree = project.ensure_worktree(&id).await.unwrap();
                write(&worktree.join("work"));
                put(&worktree);
                if is_committed {
                    git(&worktree, &["add", "-A"]);
                    git(&worktree, &["commit", "--quiet", "-m", "by the agent"]);
                }
                let before = project.head(&worktree).await.unwrap();
                let error = project.commit_all(&id, "second").await.unwrap_err();
                let (message, hint) = told(&error);
                assert!(message.to_lowercase().contains(": .aop"), "{number}: {message}");
                assert!(hint.ends_with("`aop retry --feature-id checkout`"), "{hint}");
                assert_eq!(project.head(&worktree).await.unwrap(), before);
                obey(hint, dir.path());
                project.commit_all(&id, "third").await.unwrap();
                assert_eq!(git(dir.path(), &["ls-tree", "-r", "--name-only", "aop/checkout"]), "work");
            }
        }
    }

    #[tokio::test]
    async fn a_submodule_at_the_place_of_a_projects_own_folder_is_found_also_when_the_work_says_to_ignore_it()
    {
        let hidden = "[submodule \"x\"]\n\tpath = .aop\n\turl = ../x\n\tignore = all\n";
        let (dir, project, id) = project();
        let worktree = project.ensure_worktree(&id).await.unwrap();
        let before = project.head(&worktree).await.unwrap();
        git(&worktree, &["init", "--quiet", ".aop"]);
        git(&worktree.join(".aop"), &["commit", "--quiet", "--allow-empty", "-m", "inner"]);
        std::fs::write(worktree.join(".gitmodules"), hidden).unwrap();
        let error = project.commit_all(&id, "second").await.unwrap_err();
        assert!(told(&error).0.ends_with(": .aop"), "{error}");
        assert_eq!(project.head(&worktree).await.unwrap(), before);
        // As an agent may commit it, where the project's own checkout hides it as well.
        git(&worktree, &["commit", "--quiet", "-m", "by the agent"]);
        std::fs::write(dir.path().join(".gitmodules"), hidden).unwrap();
        assert_eq!(project.reaching("aop/checkout").await.unwrap().unwrap().files, [".aop"]);
        obey(told(&project.commit_all(&id, "third").await.unwrap_err()).1, dir.path());
        std::fs::remove_file(worktree.join(".gitmodules")).unwrap();
        project.commit_all(&id, "third").await.unwrap();
        assert_eq!(git(dir.path(), &["ls-tree", "-r", "--name-only", "aop/checkout"]), "");
    }

    #[tokio::test]
    async fn the_folder_of_a_project_in_a_subfolder_is_reserved_and_so_is_what_it_stands_in() {
        let (dir, _, id) = project();
        let web = dir.path().join("web app");
        write(&web.join("page"));
        git(dir.path(), &["add", "-A"]);
        git(dir.path(), &["commit", "--quiet", "-m", "second"]);
        let project = Git::new(&web);
        let worktree = project.ensure_worktree(&id).await.unwrap();
        write(&worktree.join("web app/.aop/projected"));
        obey(told(&project.commit_all(&id, "third").await.unwrap_err()).1, dir.path());
        std::fs::remove_dir_all(worktree.join("web app")).unwrap();
        symlink("elsewhere", worktree.join("web app")).unwrap();
        let error = project.commit_all(&id, "third").await.unwrap_err();
        assert!(told(&error).0.ends_with(": web app"), "{error}");
        obey(told(&error).1, dir.path());
        write(&worktree.join("web app/new"));
        // Here is no project, so this is nobody's.
        write(&worktree.join(".aop/fixture"));
        project.commit_all(&id, "third").await.unwrap();
        let all = git(dir.path(), &["ls-tree", "-r", "--name-only", "aop/checkout"]);
        assert_eq!(all, ".aop/fixture\nweb app/new\nweb app/page");
        // Of another project in the repository it is somebody's.
        write(&dir.path().join(".aop/aop.db"));
        write(&worktree.join(".aop/new"));
        assert!(project.commit_all(&id, "fourth").await.unwrap_err().to_string().contains(".aop/new"));
    }

    #[tokio::test]
    async fn what_the_project_itself_has_committed_there_is_nobodys_doing() {
        let (dir, project, id) = project();
        write(&dir.path().join(".aop/notes"));
        git(dir.path(), &["add", "--force", ".aop/notes"]);
        git(dir.path(), &["commit", "--quiet", "-m", "second"]);
        let worktree = project.ensure_worktree(&id).await.unwrap();
        write(&worktree.join("work"));
        git(dir.path(), &["commit", "--quiet", "--allow-empty", "-m", "third"]);
        project.commit_all(&id, "fourth").await.unwrap();
        std::fs::remove_file(worktree.join(".aop/notes")).unwrap();
        let error = project.commit_all(&id, "fifth").await.unwrap_err();
        obey(told(&error).1, dir.path());
        assert!(worktree.join(".aop/notes").exists());
        project.commit_all(&id, "fifth").await.unwrap();
    }
}
