//! Files in places where agents write too. A pipe there would hold up the whole run until somebody writes, and a device may
//! have no end; so nothing is waited for, and only a file is one. (`aop-store` has the same for the project's own files.)

use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::File;
use std::io::{Error, Read, Result};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a file for reading.
pub(crate) fn open_file(path: &Path) -> Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    if found.is_dir() {
        return Err(Errno::ISDIR.into());
    }
    if found.is_file() { Ok(file) } else { Err(Error::other("it is not a file, but a pipe or a device")) }
}

/// What is in a file.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_file(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The text in a file.
pub(crate) fn read_text_file(path: &Path) -> Result<String> {
    String::from_utf8(read_file(path)?).map_err(Error::other)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_pipe_or_a_device_that_an_agent_left_is_told_and_not_waited_for() {
        let dir = tempfile::TempDir::new().unwrap();
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [&*pipe, std::path::Path::new("/dev/zero")] {
            assert!(super::read_file(path).unwrap_err().to_string().contains("not a file"));
        }
    }
}
