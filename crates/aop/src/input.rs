//! What comes in besides arguments: files and standard input, bounded, and with the name in the error.

use aop_kernel::{ErrorCode, Refusal};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Nothing that is read into memory whole is larger than this.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// Refuses to read standard input for several of these paths: only the first would find something there.
pub(crate) fn read_once<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<(), Refusal> {
    if paths.into_iter().filter(|path| path.as_os_str() == "-").count() < 2 {
        return Ok(());
    }
    Err(Refusal::invalid_argument("standard input is named twice, and can be read only once")
        .hint("write all but one of the documents into files, and name those"))
}

/// A file's text, or standard input's for `-`.
pub(crate) fn read_text(path: &Path) -> Result<String, Refusal> {
    let bytes = read_bytes(path)?;
    String::from_utf8(bytes)
        .map_err(|_| Refusal::invalid_argument(format!("{} is not UTF-8 text", name(path))))
}

/// A file's bytes, or standard input's for `-`.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, Refusal> {
    let failed = |error: std::io::Error| {
        Refusal::invalid_argument(format!("{} cannot be read: {error}", name(path)))
            .hint("give the path of a readable file, or - for standard input")
    };
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut bytes)
    } else {
        File::open(path).map_err(failed)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)
    };
    read.map_err(failed)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Refusal::new(
            ErrorCode::PayloadTooLarge,
            format!("{} has more than {MAX_BYTES} bytes", name(path)),
        ));
    }
    Ok(bytes)
}

fn name(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { format!("'{}'", path.display()) }
}
