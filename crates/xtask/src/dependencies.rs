//! The crates that end up in the binary: what they may be (`deny.toml`, the part that needs no network and no further
//! program), and the list of them for a package.

use crate::process;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use toml_edit::{DocumentMut, Item};

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

fn metadata() -> Result<Value> {
    let output = process::cargo_output(&["metadata", "--format-version", "1", "--locked"])?;
    Ok(serde_json::from_slice(&output)?)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Findings in words: a licence, a source or a crate that `deny.toml` does not admit.
pub(crate) fn check() -> Result<Vec<String>> {
    let rules: DocumentMut =
        std::fs::read_to_string(process::root().join("deny.toml"))?.parse().context("deny.toml")?;
    let names = |item: &Item| -> Vec<String> {
        item.as_array().into_iter().flatten().filter_map(|name| Some(name.as_str()?.to_owned())).collect()
    };
    let allowed = names(&rules["licenses"]["allow"]);
    let mut exceptions: Vec<(String, Vec<String>)> = Vec::new();
    for table in rules["licenses"]["exceptions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.as_inline_table())
    {
        let more = table.get("allow").and_then(|list| list.as_array()).into_iter().flatten();
        let more = more.filter_map(|name| Some(name.as_str()?.to_owned())).collect();
        exceptions
            .push((table.get("crate").and_then(|name| name.as_str()).unwrap_or_default().to_owned(), more));
    }
    let banned: Vec<String> = rules["bans"]["deny"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.as_inline_table())
        .filter(|table| !table.contains_key("wrappers"))
        .filter_map(|table| Some(table.get("crate")?.as_str()?.to_owned()))
        .collect();
    let mut findings = Vec::new();
    for package in list(&metadata()?, "packages") {
        let (name, license) = (text(package, "name"), text(package, "license"));
        let more = exceptions.iter().find(|(known, _)| known == name).map(|(_, more)| more.as_slice());
        let admits = |one: &str| allowed.iter().chain(more.unwrap_or_default()).any(|known| known == one);
        if !permitted(license, &admits) {
            findings.push(format!("{name} has the licence '{license}', which deny.toml does not admit"));
        }
        if package["source"].as_str().is_some_and(|source| source != CRATES_IO) {
            findings.push(format!("{name} comes from {}, not from crates.io", package["source"]));
        }
        if banned.iter().any(|known| known == name) {
            findings.push(format!("{name} is banned in deny.toml"));
        }
    }
    Ok(findings)
}

/// Whether a licence expression can be met: one side of an OR, both of an AND.
fn permitted(expression: &str, admits: &impl Fn(&str) -> bool) -> bool {
    let expression = expression.replace('/', " OR ");
    let words = expression.replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = words.split_whitespace().collect();
    let mut at = 0;
    let met = either(&words, &mut at, admits);
    met && at == words.len() && at > 0
}

fn either(words: &[&str], at: &mut usize, admits: &impl Fn(&str) -> bool) -> bool {
    let mut met = both(words, at, admits);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        let other = both(words, at, admits);
        met |= other;
    }
    met
}

fn both(words: &[&str], at: &mut usize, admits: &impl Fn(&str) -> bool) -> bool {
    let mut met = one(words, at, admits);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        let other = one(words, at, admits);
        met &= other;
    }
    met
}

fn one(words: &[&str], at: &mut usize, admits: &impl Fn(&str) -> bool) -> bool {
    let Some(word) = words.get(*at) else { return false };
    *at += 1;
    if *word == "(" {
        let met = either(words, at, admits);
        *at += 1;
        return met;
    }
    let mut name = (*word).to_owned();
    if words.get(*at) == Some(&"WITH") {
        name = format!("{name} WITH {}", words.get(*at + 1).unwrap_or(&""));
        *at += 2;
    }
    admits(&name)
}

/// A CycloneDX list of all that is compiled into `aop` on this platform, by the features it is built with.
pub(crate) fn sbom(version: &str) -> Result<Value> {
    let tree = process::cargo_output(&[
        "tree",
        "--locked",
        "--package=aop",
        "--edges=normal,no-proc-macro",
        "--prefix=none",
        "--no-dedupe",
        "--format={p}\t{l}",
    ])?;
    let tree = String::from_utf8(tree)?;
    // The first line is the program itself.
    let lines: BTreeSet<&str> = tree.lines().skip(1).collect();
    let components = lines.into_iter().map(component).collect::<Option<Vec<Value>>>();
    let components = components.context("a line of `cargo tree`")?;
    Ok(json!({"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"component": {"type": "application", "name": "aop", "version": version}},
        "components": components}))
}

/// A line `NAME vVERSION [(FOLDER)]`, tab, licence. Crates of our own have a folder; all others are from crates.io.
fn component(line: &str) -> Option<Value> {
    let (package, license) = line.split_once('\t')?;
    let (name, rest) = package.split_once(" v")?;
    let (version, ours) = rest.split_once(' ').map_or((rest, false), |(version, _)| (version, true));
    let mut component = json!({"type": "library", "name": name, "version": version,
        "licenses": [{"expression": license.replace('/', " OR ")}]});
    if !ours {
        component["purl"] = json!(format!("pkg:cargo/{name}@{version}"));
    }
    Some(component)
}

#[cfg(test)]
mod tests {
    use super::{permitted, sbom};

    #[test]
    fn the_list_names_what_is_compiled_in_and_not_what_compiles_tests_or_is_for_other_systems() {
        let list = sbom("1.2.3").unwrap();
        let names: Vec<&str> = list["components"]
            .as_array()
            .unwrap()
            .iter()
            .map(|component| component["name"].as_str().unwrap())
            .collect();
        for there in ["aop-kernel", "libsqlite3-sys", "ring", "tokio"] {
            assert!(names.contains(&there), "{there} is missing: {names:?}");
        }
        for absent in ["aop", "cc", "serde_derive", "syn", "proptest", "tempfile", "windows-sys"] {
            assert!(!names.contains(&absent), "{absent} is not in the program");
        }
        let sqlite = &list["components"][names.iter().position(|name| *name == "libsqlite3-sys").unwrap()];
        let version = sqlite["version"].as_str().unwrap();
        assert_eq!(sqlite["purl"], format!("pkg:cargo/libsqlite3-sys@{version}"));
    }

    #[test]
    fn a_licence_is_met_by_one_side_of_an_or_and_both_of_an_and() {
        let admits = |name: &str| ["MIT", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"].contains(&name);
        for good in [
            "MIT",
            "GPL-3.0 OR MIT",
            "MIT/Apache-2.0",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR Zlib",
        ] {
            assert!(permitted(good, &admits), "{good}");
        }
        for bad in ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT OR Zlib) AND Zlib", "Apache-2.0", "MIT MIT"] {
            assert!(!permitted(bad, &admits), "{bad}");
        }
    }
}
