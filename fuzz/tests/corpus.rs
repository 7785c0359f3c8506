//! Every input in the corpus, through its target: hand-made seeds and what fuzzing has found.

use aop_fuzz::TARGETS;
use std::fs;
use std::path::{Path, PathBuf};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn every_input_that_was_ever_found_is_taken() {
    for (target, run) in TARGETS {
        for name in names(&corpus().join(target)) {
            let input = fs::read(corpus().join(target).join(&name)).unwrap();
            let outcome = std::panic::catch_unwind(|| run(&input));
            assert!(outcome.is_ok(), "fuzz/corpus/{target}/{name} breaks a law, see above");
        }
    }
}

#[test]
fn every_target_has_inputs_to_start_from_and_every_folder_a_target() {
    for (target, _) in TARGETS {
        assert!(names(&corpus().join(target)).len() >= 2, "fuzz/corpus/{target} holds less than two inputs");
    }
    for folder in names(&corpus()) {
        assert!(aop_fuzz::target(&folder).is_some(), "fuzz/corpus/{folder} belongs to no target");
    }
}
