//! No promise without a proof: where a page says what always holds, it names tests, and they exist.

use super::{pages, root};
use std::path::{Path, PathBuf};

/// Words of a promise.
const PROMISING: &[&str] = &[
    "never",
    "always",
    "exactly",
    "byte for byte",
    "loses nothing",
    "no gaps",
    "without gaps",
    "for ever",
    "forever",
];

/// Pages whose proofs are what they consist of: measurements, and the table of guarantees.
const OTHERWISE_PROVED: &[&str] = &["docs/bench/README.md", "docs/performance.md", "docs/guarantees.md"];

/// All code that may hold a proof.
fn sources() -> String {
    let files = ["crates", "fuzz"].iter().flat_map(|folder| rust_below(&root().join(folder)));
    files.map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

fn rust_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let found = entries.flat_map(|path| if path.is_dir() { rust_below(&path) } else { vec![path] });
    found.filter(|path| path.extension().is_some_and(|ending| ending == "rs")).collect()
}

/// The last column of the tables in docs/guarantees.md names tests and checks.
#[test]
fn every_proof_that_the_guarantees_name_exists() {
    let sources = sources();
    let page = std::fs::read_to_string(root().join("docs/guarantees.md")).unwrap();
    let rows: Vec<&str> = page
        .lines()
        .filter(|line| {
            line.starts_with("| ") && !line.starts_with("| promise") && !line.starts_with("| fault")
        })
        .collect();
    assert!(rows.len() > 10, "the tables were found");
    for row in rows {
        let proof = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        let names: Vec<&str> = proof.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "a promise without a proof: {row}");
        for name in names {
            let is_test = sources.contains(&format!("fn {name}("));
            assert!(is_test, "no test or check is called {name}: {row}");
        }
    }
}

#[test]
fn every_section_that_promises_something_names_its_proof_and_every_proof_exists() {
    let sources = sources();
    let mut wrong = Vec::new();
    let mut proofs = 0;
    let promising =
        pages().into_iter().filter(|page| !OTHERWISE_PROVED.iter().any(|other| page.ends_with(other)));
    for page in promising {
        let text = std::fs::read_to_string(&page).unwrap();
        // Without its code, where `#` is a comment.
        let text = text.split("\n```").step_by(2).collect::<Vec<_>>().join("\n\n");
        for section in text.split("\n#") {
            let title = format!("{}: {}", page.display(), section.lines().next().unwrap_or_default());
            let named: Vec<&str> =
                section.split("Proof: ").skip(1).filter_map(|rest| rest.split(".\n").next()).collect();
            let words = section.to_lowercase().replace('\n', " ");
            let said = PROMISING.iter().find(|word| words.contains(&format!(" {word}")));
            if let (Some(word), true) = (said, named.is_empty()) {
                wrong.push(format!("{title}: says '{word}' and names no proof"));
            }
            for name in named.iter().flat_map(|proof| proof.split('`').skip(1).step_by(2)) {
                proofs += 1;
                if !sources.contains(&format!("fn {name}(")) {
                    wrong.push(format!("{title}: no test is called {name}"));
                }
            }
        }
    }
    assert!(proofs > 100, "only {proofs} proofs were found");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
