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

/// A CycloneDX list of all that is compiled into `aop` on this platform.
pub(crate) fn sbom(version: &str) -> Result<Value> {
    let metadata = metadata()?;
    let packages = list(&metadata, "packages");
    let nodes = list(&metadata["resolve"], "nodes");
    let root = packages.iter().find(|package| package["name"] == "aop").context("the package aop")?;
    let mut found: BTreeSet<&str> = BTreeSet::new();
    let mut next = vec![text(root, "id")];
    while let Some(id) = next.pop() {
        let Some(node) = nodes.iter().find(|node| node["id"] == id) else { continue };
        for dependency in list(node, "deps") {
            let compiled_in = list(dependency, "dep_kinds").iter().any(|kind| kind["kind"].is_null());
            let id = text(dependency, "pkg");
            if compiled_in && found.insert(id) {
                next.push(id);
            }
        }
    }
    let components: Vec<Value> = packages
        .iter()
        .filter(|package| found.contains(text(package, "id")))
        .map(|package| {
            let (name, version) = (text(package, "name"), text(package, "version"));
            let mut component = json!({"type": "library", "name": name, "version": version,
                "licenses": [{"expression": text(package, "license").replace('/', " OR ")}]});
            if package["source"] == CRATES_IO {
                component["purl"] = json!(format!("pkg:cargo/{name}@{version}"));
            }
            component
        })
        .collect();
    Ok(json!({"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"component": {"type": "application", "name": "aop", "version": version}},
        "components": components}))
}

#[cfg(test)]
mod tests {
    use super::permitted;

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
