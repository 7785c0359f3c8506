//! Which version of the program it is, without running it: it would load all of itself first, for seconds.

use serde_json::Value;
use std::path::Path;

const PACKAGE: &str = "@google/gemini-cli";

/// What the npm package says that the program belongs to.
pub(crate) fn packaged_version(path: &Path) -> Option<String> {
    let real = std::fs::canonicalize(path).ok()?;
    let package = real.ancestors().skip(1).take(3).find_map(|folder| {
        let text = std::fs::read_to_string(folder.join("package.json")).ok()?;
        serde_json::from_str::<Value>(&text).ok().filter(|package| package["name"] == PACKAGE)
    })?;
    Some(package["version"].as_str()?.to_owned())
}
