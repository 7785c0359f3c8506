//! What the program writes about itself is what stands there, and no link leads nowhere.

use super::{pages, root};
use crate::support::{binary, finish};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn the_reference_is_what_the_program_says() {
    for page in ["cli", "errors", "http", "schemas", "settings", "tools"] {
        let said = finish(Command::new(binary()).args(["manual", page]).env_clear());
        let path = root().join(format!("docs/reference/{page}.md"));
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == said.stdout,
            "{} is not what the program says; `cargo xtask docs` renews it",
            path.display()
        );
    }
}

/// The text without its code, in which brackets are no links and `#` is no heading.
fn prose(page: &Path) -> String {
    let text = std::fs::read_to_string(page).unwrap();
    let outside = text.split("\n```").step_by(2);
    outside
        .map(|part| part.split('`').step_by(2).collect::<Vec<_>>().join("`code`"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// What a heading is called in a link: as GitHub makes it.
fn anchors(page: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(page).unwrap();
    let outside: Vec<&str> = text.split("\n```").step_by(2).collect();
    let lines = outside.iter().flat_map(|part| part.lines());
    let headings = lines.filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let kept = |c: &char| c.is_alphanumeric() || ['-', '_', ' '].contains(c);
    headings
        .map(|heading| heading.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-"))
        .collect()
}

#[test]
fn every_link_leads_to_a_file_and_a_heading_that_are_there() {
    let reference = std::fs::read_dir(root().join("docs/reference")).unwrap();
    let mut all: Vec<PathBuf> =
        pages().into_iter().chain(reference.map(|entry| entry.unwrap().path())).collect();
    all.extend(["ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|page| root().join(page)));
    let (mut broken, mut seen) = (Vec::new(), 0);
    for page in all {
        let text = prose(&page);
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.contains("://")) {
            seen += 1;
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let leads = target.exists() && (heading.is_empty() || anchors(&target).contains(heading));
            if !leads {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(seen > 80, "only {seen} links were found");
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_schema_is_linked_from_the_reference() {
    let pages = std::fs::read_dir(root().join("docs/reference")).unwrap();
    let text: String = pages.map(|page| std::fs::read_to_string(page.unwrap().path()).unwrap()).collect();
    for schema in std::fs::read_dir(root().join("schemas")).unwrap() {
        let name = schema.unwrap().file_name().into_string().unwrap();
        assert!(text.contains(&format!("](../../schemas/{name})")), "no page of the reference links {name}");
    }
}

/// A page that nobody can find from the README helps nobody.
#[test]
fn every_page_is_linked_from_the_readme_or_from_a_page_that_is() {
    let mut found = BTreeSet::from([root().join("README.md")]);
    let mut next: Vec<PathBuf> = found.iter().cloned().collect();
    while let Some(page) = next.pop() {
        let text = prose(&page);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            let Ok(target) = page.parent().unwrap().join(link).canonicalize() else { continue };
            if target.extension().is_some_and(|ending| ending == "md") && found.insert(target.clone()) {
                next.push(target);
            }
        }
    }
    let lost: Vec<PathBuf> = pages().into_iter().filter(|page| !found.contains(page)).collect();
    assert!(lost.is_empty(), "{lost:#?}");
}
