//! Golden files of the patches. `AOP_BLESS=1 cargo test -p aop-turn` writes them anew.

use aop_turn::patch::{PatchFor, patch};
use aop_turn::{Engine, Mode, Role};
use std::path::Path;

#[test]
fn every_patch_matches_its_golden_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/patch");
    for &engine in Engine::ALL {
        for &mode in Mode::ALL {
            for &role in Role::ALL {
                let text = patch(&PatchFor { engine, mode, role, artifacts: ".aop/runs/r_1/artifacts/" });
                let file = folder.join(format!("{engine}.{mode}.{role}.md"));
                if std::env::var_os("AOP_BLESS").is_some() {
                    std::fs::create_dir_all(&folder).unwrap();
                    std::fs::write(&file, &text).unwrap();
                }
                let golden = std::fs::read_to_string(&file).unwrap_or_default();
                assert_eq!(text, golden, "{}", file.display());
            }
        }
    }
}

/// The first sentence that stands in the way of a question, if any.
pub(crate) fn bans_on_asking(text: &str) -> Option<String> {
    let negations =
        ["not", "never", "no", "without", "avoid", "don't", "cannot", "nobody", "forbidden", "refrain"];
    let asking = ["ask", "asking", "asked", "question", "questions"];
    text.split(['.', '\n', ';'])
        .find(|sentence| {
            let words: Vec<String> =
                sentence.split(|c: char| !c.is_alphanumeric() && c != '\'').map(str::to_lowercase).collect();
            let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
            has(&negations) && has(&asking)
        })
        .map(str::to_owned)
}

#[test]
fn the_search_for_bans_finds_bans() {
    assert!(bans_on_asking("Work on. Do not ask the user.").is_some());
    assert!(bans_on_asking("Finish without questions").is_some());
    assert!(bans_on_asking("Ask whenever you like.").is_none());
}
