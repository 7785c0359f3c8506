//! The worktree of a feature as git may look at it from here. Whoever works there can write what they like into it,
//! also a `.git` of their own and attributes that name programs; none of that is run by looking at the changes.

use super::changes::{Variables, told};
use aop_store::worktree::own_folder;
use std::path::{Path, PathBuf};

/// The variables under which git reads the worktree with the project's own settings and starts none of their filters;
/// or why git is not asked.
pub(super) async fn variables(root: &Path, worktree: &Path) -> Result<Variables, String> {
    let (common, _) =
        told(root, &Vec::new(), &["rev-parse", "--path-format=absolute", "--git-common-dir"]).await?;
    let common = PathBuf::from(common.trim_end_matches('\n'));
    let own = own_folder(&common, worktree).ok_or_else(|| {
        format!(
            "The .git in {} is not the one that was made there, so git is not asked: it could run what that names. \
             Look at the folder yourself.",
            worktree.display()
        )
    })?;
    // Said here, because the folder names its repository in a file that can be changed as well.
    let mut variables: Variables = vec![
        ("GIT_DIR".to_owned(), own.into()),
        ("GIT_COMMON_DIR".to_owned(), common.into()),
        ("GIT_WORK_TREE".to_owned(), worktree.into()),
    ];
    let (settings, cut) = told(worktree, &variables, &["config", "--null", "--name-only", "--list"]).await?;
    if cut || settings.contains(char::REPLACEMENT_CHARACTER) {
        return Err("The settings of git here are too long or no text, so git is not asked.".to_owned());
    }
    let filters = settings.split('\0').filter_map(|name| Some((name, blank(name)?)));
    let mut count = 0;
    for (name, value) in filters {
        variables.push((format!("GIT_CONFIG_KEY_{count}"), name.into()));
        variables.push((format!("GIT_CONFIG_VALUE_{count}"), value.into()));
        count += 1;
    }
    variables.push(("GIT_CONFIG_COUNT".to_owned(), count.to_string().into()));
    Ok(variables)
}

/// The value under which a setting of a filter starts nothing.
fn blank(name: &str) -> Option<&'static str> {
    match name.strip_prefix("filter.")?.rsplit_once('.')?.1 {
        "clean" | "smudge" | "process" => Some(""),
        "required" => Some("false"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::variables;
    use crate::pages::changes::difference;
    use std::process::Command;
    use tempfile::TempDir;

    /// A project with a worktree whose file was changed. A filter of the project's own leaves a mark when it runs.
    struct Place(TempDir);

    impl Place {
        fn new() -> Self {
            let place = Place(TempDir::new().unwrap());
            place.run(
                "git init -q -b main && echo 1 > a && git add a && git commit -qm one
                 git config filter.x.clean \"touch $PWD/ran; cat\" && git config filter.x.required true
                 git worktree add -q -b aop/f .aop/worktrees/f",
            );
            place.work("echo '* filter=x' > .gitattributes && echo 2 > a");
            place
        }

        fn run(&self, script: &str) {
            let mut shell = Command::new("sh");
            shell.args(["-euc", script]).current_dir(self.0.path()).env("HOME", self.0.path());
            for role in ["AUTHOR", "COMMITTER"] {
                shell.env(format!("GIT_{role}_NAME"), "a").env(format!("GIT_{role}_EMAIL"), "a@b");
            }
            assert!(shell.status().unwrap().success(), "{script}");
        }

        fn work(&self, script: &str) {
            self.run(&format!("root=$PWD; cd .aop/worktrees/f; {script}"));
        }

        async fn changes(&self) -> Result<String, String> {
            let (root, worktree) = (self.0.path(), self.0.path().join(".aop/worktrees/f"));
            let told = match variables(root, &worktree).await {
                Ok(variables) => difference(root, &worktree, &variables).await,
                Err(why) => Err(why),
            };
            assert!(!root.join("ran").exists(), "a program ran");
            told.map(|(text, _)| String::from_utf8(text).unwrap())
        }
    }

    #[tokio::test]
    async fn a_filter_that_attributes_name_is_not_run() {
        let text = Place::new().changes().await.unwrap();
        assert!(text.contains("-1\n+2"), "{text}");
    }

    #[tokio::test]
    async fn what_is_missing_is_fetched_by_no_program_that_a_setting_names() {
        let place = Place::new();
        place.work(
            "git config core.repositoryFormatVersion 1; git config extensions.partialClone evil
             git config remote.evil.promisor true; git config remote.evil.url \"ext::sh -c touch% $root/ran\"
             git config protocol.ext.allow always; rm -f $root/ran
             blob=$(git rev-parse HEAD:a); rm -f $root/.git/objects/$(echo $blob | sed 's,^..,&/,')",
        );
        let why = place.changes().await.unwrap_err();
        assert!(why.contains("cannot compare"), "{why}");
    }

    #[tokio::test]
    async fn a_worktree_with_a_git_of_its_own_is_not_asked() {
        for replaced in [
            "rm .git; git init -q; git config filter.x.clean \"touch $root/ran; cat\"; git add a; git commit -qm x",
            "git init -q $root/other; rm .git; echo \"gitdir: $root/other/.git\" > .git",
            "mv .git $root/link; ln -s $root/link .git",
            "git init -q $root/.git/worktrees/f/deep; rm .git; echo \"gitdir: $root/.git/worktrees/f/deep/.git\" > .git",
        ] {
            let place = Place::new();
            place.work(&format!("rm -f $root/ran; {replaced}; rm -f $root/ran"));
            let why = place.changes().await.unwrap_err();
            assert!(why.contains("is not the one that was made there"), "{replaced}: {why}");
        }
    }

    #[tokio::test]
    async fn a_worktree_that_names_the_folder_of_another_feature_is_not_asked() {
        let place = Place::new();
        place.work(
            "git -C $root worktree add -q -b aop/g .aop/worktrees/g
             echo \"gitdir: $root/.git/worktrees/g\" > .git",
        );
        let why = place.changes().await.unwrap_err();
        assert!(why.contains("is not the one that was made there"), "{why}");
    }

    #[tokio::test]
    async fn settings_of_another_repository_are_not_read() {
        let place = Place::new();
        place.work(
            "git clone -q --bare $root $root/other
             git -C $root/other config filter.y.clean \"touch $root/ran; cat\"
             echo $root/other > $root/.git/worktrees/f/commondir; echo '* filter=y' > .gitattributes",
        );
        assert!(place.changes().await.unwrap().contains("-1\n+2"));
    }

    #[tokio::test]
    async fn a_repository_inside_the_worktree_is_not_asked_what_changed_there() {
        let place = Place::new();
        place.work(
            "git init -q sub; cd sub; echo 1 > s; git add s; git commit -qm s; cd ..
             git -c filter.x.clean= -c filter.x.required=false add sub; git commit -qm sub; cd sub
             echo '* filter=z' > .gitattributes; git config filter.z.clean \"touch $root/ran; cat\"
             touch -d '1 hour ago' s; rm -f $root/ran",
        );
        assert!(place.changes().await.unwrap().contains("Subproject commit"));
    }
}
