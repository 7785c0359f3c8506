//! What hook and driver tell each other, by files in the turn's folder: which questions the hook has recorded, and
//! whether it may answer one live. The store is the truth about questions; this is only about who waits for what.

use crate::plain::read_text_file;
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A question that the hook has put aside, or waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noted {
    /// The question.
    pub question_id: String,
    /// The call.
    pub call_id: String,
    /// How long the hook waits for the end of it.
    pub waits: Waits,
}

/// How long a hook waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waits {
    /// Not at all: the call is put aside.
    No,
    /// As long as the turn's warm window.
    Warm,
    /// Until the end: the call cannot be put aside.
    ToTheEnd,
}

impl Noted {
    /// Adds it to the turn's list.
    pub fn note(&self, run_dir: &Path) -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(list(run_dir))?;
        file.write_all(format!("{}\n", serde_json::to_string(self)?).as_bytes())
    }

    /// All that were noted.
    pub(super) fn all(run_dir: &Path) -> Vec<Noted> {
        let text = read_text_file(&list(run_dir)).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The driver tells a hook that waits: answer by the record, or put the call aside.
    pub(super) fn release(&self, run_dir: &Path, word: Word) -> io::Result<()> {
        let path = release(run_dir, &self.question_id);
        let fresh = path.with_extension("new");
        std::fs::write(
            &fresh,
            match word {
                Word::Deliver => "deliver",
                Word::PutAside => "aside",
            },
        )?;
        std::fs::rename(fresh, path)
    }
}

/// What a hook that waits is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// The question has ended, and this turn delivers it.
    Deliver,
    /// It has not, or somebody else does.
    PutAside,
}

/// What the driver has said about a question; nothing yet, perhaps.
pub fn word(run_dir: &Path, question_id: &str) -> Option<Word> {
    match read_text_file(&release(run_dir, question_id)).ok()?.as_str() {
        "deliver" => Some(Word::Deliver),
        _ => Some(Word::PutAside),
    }
}

/// Takes away what an earlier process of the same turn left.
pub(super) fn forget(run_dir: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(run_dir)?.flatten() {
        let is_release = entry.file_name().to_str().is_some_and(|name| name.starts_with("release-"));
        if is_release || entry.path() == list(run_dir) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn list(run_dir: &Path) -> PathBuf {
    run_dir.join("asked.jsonl")
}

fn release(run_dir: &Path, question_id: &str) -> PathBuf {
    run_dir.join(format!("release-{question_id}"))
}
