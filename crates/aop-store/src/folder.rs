//! Folders below `.aop/` that hold what was asked, answered and said.

use std::fs::DirBuilder;
use std::io::Result;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Makes one, with those above it, for its owner and whichever group `.aop/` is opened to: where others may only pass
/// through `.aop/` they see nothing of it.
pub fn make_folder(path: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o750).create(path)
}
