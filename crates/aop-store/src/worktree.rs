//! The two links between a worktree and its repository: `.git` in the worktree, and `worktrees/NAME/gitdir` in the
//! repository. Whoever works in the worktree can put anything in place of the first, so they are read as files, by no git.

use crate::plain::open_file;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// As long as a path may be, with what stands before it.
const LONGEST: u64 = 8 << 10;
/// What stands before the path in `.git`.
pub const GITDIR: &[u8] = b"gitdir: ";

/// The folder that a repository has for a worktree, when the two lead to each other. `common` is the repository's own.
pub fn own_folder(common: &Path, worktree: &Path) -> Option<PathBuf> {
    let place = worktree.canonicalize().ok()?;
    let own = end_of(&place.join(".git"))?.canonicalize().ok()?;
    let is_of_it = own.parent() == Some(&common.join("worktrees").canonicalize().ok()?);
    (is_of_it && stands_at(&own)? == place).then_some(own)
}

/// The folder that `.git` names.
pub fn end_of(link: &Path) -> Option<PathBuf> {
    let path = line(link)?.strip_prefix(GITDIR).map(<[u8]>::to_vec)?;
    // A relative one begins where it stands.
    Some(link.parent()?.join(OsString::from_vec(path)))
}

/// The worktree that a repository has in this folder of its own, as it is written there.
pub fn named_place(own: &Path) -> Option<PathBuf> {
    let path = own.join(OsString::from_vec(line(&own.join("gitdir"))?));
    path.ends_with(".git").then(|| path.parent().map(Path::to_owned))?
}

/// The same, where it really is.
pub fn stands_at(own: &Path) -> Option<PathBuf> {
    named_place(own)?.canonicalize().ok()
}

/// The one line of a file that is really there.
fn line(path: &Path) -> Option<Vec<u8>> {
    if !path.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    open_file(path).ok()?.take(LONGEST).read_to_end(&mut bytes).ok()?;
    Some(bytes.trim_ascii_end().to_vec())
}
