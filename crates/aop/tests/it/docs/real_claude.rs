//! Blocks that need an agent program, typed on a terminal with the real Claude Code and a model on loopback that asks in
//! every phase. `cargo xtask test-engines` runs these.

use super::reader::Reader;
use super::{How, blocks, pages_with, root};
use crate::real_run::{card, script};
use aop_testkit::{CleanHome, Engines, FakeModel, Reply, Wire};
use serde_json::json;

/// Reads a page up to its last block that needs the program, in a repository with two specifications.
fn read_with_claude_code(page: &str) {
    let ask =
        |call: &str, text: &str| Reply::call("AskUserQuestion", call, json!({"questions": [card(text)]}));
    let model = FakeModel::start(Wire::Anthropic, script(ask)).unwrap();
    let home = tempfile::TempDir::with_prefix("aop-home-").unwrap();
    let home = CleanHome::new(home.path(), &Engines::required(), &model).unwrap();
    let mut reader = Reader::with(home.variables());
    reader.repository();
    let mut blocks = blocks(&root().join(page));
    while blocks.last().is_some_and(|block| block.how != How::WithClaudeCode) {
        blocks.pop();
    }
    for block in blocks {
        reader.read(block);
    }
    reader.close();
    assert_eq!(model.unscripted(), 0, "the model was asked for what its script says");
}

#[test]
fn the_readme_goes_as_written_with_claude_code() {
    read_with_claude_code("README.md");
}

#[test]
fn the_tutorial_goes_as_written_with_claude_code() {
    read_with_claude_code("docs/tutorial.md");
}

#[test]
fn the_page_about_running_goes_as_written_with_claude_code() {
    read_with_claude_code("docs/running.md");
}

#[test]
fn the_page_about_engines_goes_as_written_with_claude_code() {
    read_with_claude_code("docs/engines.md");
}

#[test]
fn no_page_that_needs_claude_code_is_left_out() {
    let known = ["README.md", "docs/engines.md", "docs/running.md", "docs/tutorial.md"];
    assert_eq!(pages_with(&How::WithClaudeCode), known);
}
