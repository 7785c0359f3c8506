//! Every page, block by block.

use super::reader::Reader;
use super::{Block, How, blocks, pages, root};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// More blocks than this that are not run would be documentation that nobody checks.
const MOST_NOT_RUN: usize = 5;

/// Every page is a test of its own, so that they run side by side and a failure names its page.
macro_rules! pages_are_true {
    ($($test:ident $page:literal),* $(,)?) => {
        $(#[test] fn $test() { read_page($page); })*

        #[test]
        fn no_page_is_left_out() {
            let known: BTreeSet<PathBuf> = [$(root().join($page)),*].into();
            let found: BTreeSet<PathBuf> = pages().into_iter().filter(|page| !blocks(page).is_empty()).collect();
            assert_eq!(found, known, "add the page to `pages_are_true!`");
        }
    };
}

fn read_page(page: &str) {
    let mut reader = Reader::new();
    let blocks = blocks(&root().join(page)).into_iter();
    // Those with a stage of their own are run there.
    for block in blocks.filter(|block| ![How::WithClaudeCode, How::WithPostgres].contains(&block.how)) {
        reader.read(block);
    }
    reader.close();
}

pages_are_true! {
    the_readme_is_true "README.md",
    the_page_about_engines_is_true "docs/engines.md",
    the_page_about_running_is_true "docs/running.md",
    the_page_about_the_web_is_true "docs/web.md",
    the_page_about_teams_is_true "docs/team.md",
    the_page_about_http_is_true "docs/http.md",
    the_page_about_mcp_is_true "docs/mcp.md",
    the_page_about_turns_is_true "docs/turns.md",
    the_page_about_the_scripted_engine_is_true "docs/scripted.md",
    the_tutorial_is_true "docs/tutorial.md",
    the_concepts_are_true "docs/concepts.md",
    what_it_does_not_do_is_true "docs/limits.md",
    how_to_answer_from_the_phone_is_true "docs/howto/answer-from-the-phone.md",
    how_to_set_up_a_team_is_true "docs/howto/team.md",
    how_to_write_a_question_spec_is_true "docs/howto/question-spec.md",
    how_to_use_it_in_ci_is_true "docs/howto/ci.md",
    how_to_use_it_from_a_script_is_true "docs/howto/script.md",
    how_to_move_a_project_is_true "docs/howto/move.md",
    how_to_add_an_engine_is_true "docs/howto/add-an-engine.md",
    how_to_put_load_on_it_is_true "docs/howto/load.md",
}

#[test]
fn few_blocks_are_not_run() {
    let all: Vec<Block> = pages().iter().flat_map(|page| blocks(page)).collect();
    let not_run: Vec<&str> =
        all.iter().filter(|block| block.how == How::NotRun).map(|block| block.place.as_str()).collect();
    assert!(not_run.len() <= MOST_NOT_RUN, "{} blocks are not run: {not_run:#?}", not_run.len());
    assert!(all.len() > 2 * not_run.len(), "{} of {} blocks are not run", not_run.len(), all.len());
}
