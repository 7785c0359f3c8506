//! Files in places where others write too. A pipe there would hold up whoever opens it until somebody writes, and a device
//! may have no end; so nothing is waited for, and only a file is one. (`aop-engine` has the same for what engines leave.)

use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a file for reading.
pub fn open_file(path: &Path) -> Result<File> {
    open(path, File::options().read(true))
}

/// What is in a file.
pub fn read_file(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_file(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The text in a file.
pub fn read_text_file(path: &Path) -> Result<String> {
    String::from_utf8(read_file(path)?).map_err(Error::other)
}

/// Opens a file to be locked, made when it is missing.
pub fn open_lock_file(path: &Path) -> Result<File> {
    open(path, File::options().create(true).truncate(false).write(true))
}

fn open(path: &Path, options: &mut OpenOptions) -> Result<File> {
    let no_file = || Error::other("it is not a file, but a pipe, a socket or a device");
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = match options.custom_flags(flags).open(path) {
        // A pipe that nobody reads, or a socket.
        Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => return Err(no_file()),
        // Somebody put it there, so it is not the same as nothing: whoever takes a missing file for an empty one must not
        // do so here.
        Err(error) if error.kind() == ErrorKind::NotFound && path.is_symlink() => {
            return Err(Error::other("it is a link to something that is not there"));
        }
        opened => opened?,
    };
    let found = file.metadata()?;
    if found.is_dir() {
        return Err(Errno::ISDIR.into());
    }
    if found.is_file() { Ok(file) } else { Err(no_file()) }
}

#[cfg(test)]
mod tests {
    use super::{open_lock_file, read_file, read_text_file};
    use std::io::ErrorKind;
    use std::process::Command;

    #[test]
    fn a_pipe_or_a_device_in_place_of_a_file_is_told_and_not_waited_for() {
        let dir = tempfile::TempDir::new().unwrap();
        let [pipe, link, gone] = ["pipe", "link", "gone"].map(|name| dir.path().join(name));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        for path in [&pipe, &link] {
            assert!(read_file(path).unwrap_err().to_string().contains("not a file"));
            assert!(open_lock_file(path).unwrap_err().to_string().contains("not a file"));
        }
        assert_eq!(read_file(dir.path()).unwrap_err().kind(), ErrorKind::IsADirectory);
        assert_eq!(read_file(&gone).unwrap_err().kind(), ErrorKind::NotFound);
        open_lock_file(&gone).unwrap();
        std::fs::write(&gone, "text").unwrap();
        assert_eq!(read_text_file(&gone).unwrap(), "text");
    }

    #[test]
    fn a_link_to_nothing_is_not_taken_for_a_missing_file() {
        let dir = tempfile::TempDir::new().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path().join("gone"), &link).unwrap();
        let error = read_file(&link).unwrap_err();
        assert_ne!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains("a link to something that is not there"), "{error}");
    }
}
