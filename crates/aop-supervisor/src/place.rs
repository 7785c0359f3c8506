//! Where an answer record stands: an `answer_path` resolved on the real file system, symlinks included, and
//! refused when it leads out of the project, or to what the project itself lives on.

use aop_ask::{Violation, gate::answer_path, json as reader};
use aop_engine::AOP_DIR;
use aop_kernel::{ErrorCode, Refusal};
use aop_store::open_file;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

/// A resolved path that is safe to read and write.
#[derive(Debug)]
pub struct Place(PathBuf);

impl Place {
    /// Follows `path` from the project's root, one component at a time, so that `..` means what the file
    /// system would make of it.
    pub fn resolve(root: &Path, path: &str) -> Result<Self, Violation> {
        answer_path(path).map_err(|reason| unsafe_path(path, reason))?;
        let root =
            root.canonicalize().map_err(|_| unsafe_path(path, "the project's root cannot be resolved"))?;
        let mut place = root.clone();
        for component in Path::new(path).components() {
            match component {
                Component::CurDir => {}
                Component::ParentDir => {
                    place.pop();
                }
                Component::Normal(name) => {
                    place.push(name);
                    if place.is_symlink() {
                        place = place
                            .canonicalize()
                            .map_err(|_| unsafe_path(path, "it goes through a symlink that leads nowhere"))?;
                    }
                }
                Component::RootDir | Component::Prefix(_) => return Err(unsafe_path(path, "it is absolute")),
            }
            if !place.starts_with(&root) {
                return Err(unsafe_path(path, "it leads out of the project"));
            }
        }
        if place.ancestors().skip(1).any(Path::is_file) {
            return Err(unsafe_path(path, "it goes through a file as if that were a folder"));
        }
        let kept = root.join(AOP_DIR);
        let kept_real = kept.canonicalize().unwrap_or_else(|_| kept.clone());
        if place.starts_with(&kept) || place.starts_with(&kept_real) {
            return Err(unsafe_path(path, "it leads into .aop/"));
        }
        let settings = root.join("aop.yaml");
        if place == settings || settings.canonicalize().is_ok_and(|settings| place == settings) {
            return Err(unsafe_path(path, "it names the settings of the project"));
        }
        let below = place.strip_prefix(&root).unwrap_or(&place);
        if below.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git")) {
            return Err(unsafe_path(path, "it leads into .git, which is for git alone"));
        }
        if place == root || place.is_dir() {
            return Err(unsafe_path(path, "it names a folder"));
        }
        Ok(Place(place))
    }

    /// Tries whether something can be written there, in the folder or in what there is of it yet: whoever asks for a
    /// record looks first, so that nobody answers in vain.
    pub fn try_folder(&self) -> Result<(), Refusal> {
        let folder = self.0.ancestors().skip(1).find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
        let temporary = temporary(folder);
        let tried = create(&temporary).and_then(|_| std::fs::remove_file(&temporary));
        tried.map_err(|error| self.failed("written", &error))
    }

    /// Writes a record where nothing stands: as a whole or not at all, synced, and never over something else.
    /// False when something stood there first.
    pub fn write_new(&self, content: &[u8]) -> Result<bool, Refusal> {
        let write = || -> std::io::Result<bool> {
            let parent = self.0.parent().unwrap_or(Path::new("."));
            std::fs::create_dir_all(parent)?;
            let temporary = temporary(parent);
            let mut file = create(&temporary)?;
            let linked = file.write_all(content).and_then(|()| file.sync_all()).and_then(|()| {
                // A link, unlike a rename, never replaces what stands there.
                std::fs::hard_link(&temporary, &self.0)
            });
            std::fs::remove_file(&temporary)?;
            match linked {
                Ok(()) => File::open(parent)?.sync_all().map(|()| true),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
                Err(error) => Err(error),
            }
        };
        write().map_err(|error| self.failed("written", &error))
    }

    /// Moves what stands there out of the way, under a name that is free; that name.
    pub fn move_aside(&self) -> Result<PathBuf, Refusal> {
        let mut number = 1;
        loop {
            let mut aside = self.0.clone().into_os_string();
            aside.push(format!(".invalid-{number}"));
            let aside = PathBuf::from(aside);
            match std::fs::hard_link(&self.0, &aside) {
                Ok(()) => {
                    std::fs::remove_file(&self.0).map_err(|error| self.failed("moved aside", &error))?;
                    return Ok(aside);
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists && number < 1_000 => number += 1,
                Err(error) => return Err(self.failed("moved aside", &error)),
            }
        }
    }

    fn failed(&self, what: &str, error: &std::io::Error) -> Refusal {
        let message = format!("'{}' cannot be {what}: {error}", self.0.display());
        Refusal::new(ErrorCode::StoreUnavailable, message)
            .hint("check the permissions of that file and its folder")
    }

    /// What stands there, if anything does. More than a record could be is cut off, which makes it invalid.
    pub fn read(&self) -> Result<Option<Vec<u8>>, Refusal> {
        let file = match open_file(&self.0) {
            Ok(file) => file,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) => return Err(self.failed("read", &error)),
        };
        let mut bytes = Vec::new();
        file.take(reader::MAX_BYTES as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| self.failed("read", &error))?;
        Ok(Some(bytes))
    }
}

/// Whoever was killed over it has left it there: the name is nobody's but ours.
fn temporary(folder: &Path) -> PathBuf {
    folder.join(format!(".aop-{}.tmp", ulid::Ulid::generate()))
}

fn create(path: &Path) -> std::io::Result<File> {
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

fn unsafe_path(path: &str, reason: &str) -> Violation {
    Violation {
        code: "unsafe_path",
        path: "/answer_path".to_owned(),
        message: format!("answer_path is {path:?}: {reason}"),
        hint: "name a file below the project's root that is neither aop.yaml nor in .aop/ or .git/, without symlinks that lead elsewhere"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A project folder with a file outside of it, gone after the test.
    struct Yard(PathBuf);

    impl Yard {
        fn new(name: &str) -> Self {
            let base = std::env::temp_dir().join(format!("aop-place-{name}-{}", std::process::id()));
            std::fs::create_dir_all(base.join("project/.aop")).unwrap();
            std::fs::create_dir_all(base.join("project/answers")).unwrap();
            std::fs::write(base.join("outside.json"), "{}").unwrap();
            Yard(base)
        }

        fn root(&self) -> PathBuf {
            self.0.join("project")
        }

        fn refused(&self, path: &str) -> String {
            Place::resolve(&self.root(), path).unwrap_err().message
        }
    }

    impl Drop for Yard {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_plain_path_is_read_and_a_missing_one_is_nothing() {
        let yard = Yard::new("plain");
        std::fs::write(yard.root().join("answers/a.json"), "x").unwrap();
        let read = |path: &str| Place::resolve(&yard.root(), path).unwrap().read().unwrap();
        assert_eq!(read("answers/../answers/a.json"), Some(b"x".to_vec()));
        assert_eq!(read("answers/b.json"), None);
        assert_eq!(read("new/folder/b.json"), None);
        assert!(yard.refused("answers/a.json/below").contains("goes through a file"));
        assert!(yard.refused(&format!("answers/{}.json", "a".repeat(300))).contains("longer than 240 bytes"));
    }

    #[test]
    fn a_record_is_written_whole_once_and_leaves_nothing_beside_it_whatever_a_kill_has_left() {
        let yard = Yard::new("new");
        let answers = yard.root().join("answers");
        let left = format!(".a.json.{}.tmp", std::process::id());
        std::fs::write(answers.join(&left), "left by a process of the same number").unwrap();
        let place = Place::resolve(&yard.root(), "answers/a.json").unwrap();
        assert!(place.write_new(b"x").unwrap());
        assert!(!place.write_new(b"y").unwrap(), "something stands there");
        assert_eq!(place.read().unwrap(), Some(b"x".to_vec()));
        let names = std::fs::read_dir(answers).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, [left.as_str(), "a.json"]);
    }

    #[test]
    fn no_symlink_leads_out_of_the_project() {
        let yard = Yard::new("out");
        let root = yard.root();
        symlink("../outside.json", root.join("file.json")).unwrap();
        symlink("..", root.join("folder")).unwrap();
        symlink("gone/away", root.join("dangling.json")).unwrap();
        symlink("loop.json", root.join("loop.json")).unwrap();
        assert!(yard.refused("file.json").contains("out of the project"));
        assert!(yard.refused("folder/outside.json").contains("out of the project"));
        assert!(yard.refused("folder/new.json").contains("out of the project"));
        assert!(yard.refused("dangling.json").contains("leads nowhere"));
        assert!(yard.refused("loop.json").contains("leads nowhere"));
    }

    #[test]
    fn dots_after_a_symlink_mean_what_the_file_system_makes_of_them() {
        let yard = Yard::new("dots");
        std::fs::create_dir_all(yard.root().join("deep/er")).unwrap();
        symlink("deep/er", yard.root().join("short")).unwrap();
        let place = Place::resolve(&yard.root(), "short/../a.json").unwrap();
        assert!(place.0.ends_with("project/deep/a.json"));
    }

    #[test]
    fn nothing_leads_into_aop_and_no_folder_is_a_record() {
        let yard = Yard::new("aop");
        symlink(".aop", yard.root().join("state")).unwrap();
        assert!(yard.refused(".aop/x.json").contains(".aop/"));
        assert!(yard.refused("state/x.json").contains("into .aop/"));
        assert!(yard.refused("answers").contains("folder"));
        assert!(yard.refused("../outside.json").contains("leaves the project"));
    }

    #[test]
    fn no_record_becomes_the_settings_of_the_project_or_something_of_gits() {
        let yard = Yard::new("own");
        std::fs::create_dir_all(yard.root().join("sub/.git")).unwrap();
        symlink("sub/.git", yard.root().join("short")).unwrap();
        assert!(yard.refused("aop.yaml").contains("the settings"));
        std::fs::write(yard.root().join("conf.yaml"), "").unwrap();
        symlink("conf.yaml", yard.root().join("aop.yaml")).unwrap();
        for path in ["aop.yaml", "conf.yaml", "sub/../aop.yaml"] {
            assert!(yard.refused(path).contains("the settings"), "{path}");
        }
        for path in [".git/config", ".git", "sub/.git/hooks/new", "short/config", ".GIT/config"] {
            assert!(yard.refused(path).contains("into .git"), "{path}");
        }
        for path in ["sub/aop.yaml", "git/a.json", ".github/a.json"] {
            Place::resolve(&yard.root(), path).unwrap();
        }
    }

    #[test]
    fn a_folder_where_nothing_can_be_written_is_found_before_anything_is_and_is_left_as_it_was() {
        let yard = Yard::new("tried");
        Place::resolve(&yard.root(), "new/folder/a.json").unwrap().try_folder().unwrap();
        Place::resolve(&yard.root(), "answers/a.json").unwrap().try_folder().unwrap();
        assert!(!yard.root().join("new").exists());
        assert_eq!(std::fs::read_dir(yard.root().join("answers")).unwrap().count(), 0);
        // Not even root makes a file there.
        let refusal = Place("/proc/self/a.json".into()).try_folder().unwrap_err();
        assert_eq!(refusal.code, ErrorCode::StoreUnavailable);
        assert!(refusal.message.contains("'/proc/self/a.json' cannot be written"), "{}", refusal.message);
    }
}
