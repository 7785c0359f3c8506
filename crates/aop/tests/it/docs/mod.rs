//! The documentation is true: every command block of README.md and docs/ is run, with the real binary, in a folder
//! of the page's own; the reference is what the program says; every link leads somewhere; every proof exists.
//!
//! Blocks are fenced with `sh`. All blocks of a page share their folder and go on where the last one stood. A comment
//! on the line above a block says how it is run when plainly is not enough:
//!
//! - `<!-- run: waits -->` it waits for a human: it is started, the page goes on, and at the end it must have succeeded
//! - `<!-- run: stays -->` it stays (a server): it is started, and stopped at the end of the page
//! - `<!-- run: somebody answers VALUE -->` meanwhile a scripted human gives this answer to whatever is asked
//! - `<!-- run: with Claude Code -->` on a terminal, with the real program and a fake model (`real_claude`)
//! - `<!-- run: with PostgreSQL -->` with a server of its own in the place of `db.example` (`postgres`)
//! - `<!-- not run: REASON -->` then only the program's own parser has to take its commands (`examples` in the binary)

mod pages;
mod postgres;
mod proofs;
mod reader;
mod real_claude;
mod reference;

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// README.md and every page below docs/, the generated ones aside.
fn pages() -> Vec<PathBuf> {
    fn below(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("reference") {
                below(&path, found);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                found.push(path);
            }
        }
    }
    let mut found = vec![root().join("README.md")];
    below(&root().join("docs"), &mut found);
    found.sort();
    found
}

#[derive(Debug, Clone, PartialEq)]
enum How {
    Plainly,
    Waits,
    Stays,
    Answered(String),
    WithClaudeCode,
    WithPostgres,
    NotRun,
}

#[derive(Debug, Clone)]
struct Block {
    /// Page and line.
    place: String,
    how: How,
    script: String,
}

fn blocks(page: &Path) -> Vec<Block> {
    let text = std::fs::read_to_string(page).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (index, _) in lines.iter().enumerate().filter(|(_, line)| **line == "```sh") {
        let place = format!("{}:{}", page.strip_prefix(root()).unwrap().display(), index + 1);
        let script: Vec<&str> =
            lines[index + 1..].iter().copied().take_while(|line| *line != "```").collect();
        let above = index.checked_sub(1).map(|above| lines[above]).unwrap_or_default();
        let marker = above.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
        let how = match marker {
            None => How::Plainly,
            Some("run: waits") => How::Waits,
            Some("run: stays") => How::Stays,
            Some("run: with Claude Code") => How::WithClaudeCode,
            Some("run: with PostgreSQL") => How::WithPostgres,
            Some(marker) => match marker.split_once(": ") {
                Some(("run", rest)) => {
                    let value = rest.strip_prefix("somebody answers ");
                    How::Answered(
                        value.unwrap_or_else(|| panic!("{place}: unknown marker '{marker}'")).to_owned(),
                    )
                }
                Some(("not run", reason)) if reason.len() > 10 => How::NotRun,
                _ => panic!("{place}: unknown marker '{marker}'"),
            },
        };
        found.push(Block { place, how, script: script.join("\n") });
    }
    found
}

/// The pages that have a block of this kind.
fn pages_with(how: &How) -> Vec<String> {
    let with = pages().into_iter().filter(|page| blocks(page).iter().any(|block| block.how == *how));
    with.map(|page| page.strip_prefix(root()).unwrap().display().to_string()).collect()
}
