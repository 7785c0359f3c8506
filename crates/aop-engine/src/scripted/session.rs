//! The scripted engine's conversation: a file that is replaced whole after every step, so that it survives a kill at
//! any moment, and the list of replies that reached any conversation.

use super::scenario::folder;
use crate::plain::{read_file, read_text_file};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// One conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Conversation {
    /// Always `scripted`: nobody is to take this for a model's.
    engine: String,
    /// Its name.
    pub(super) session: String,
    /// The next step.
    pub(super) next: usize,
    /// What it waits for an answer to.
    pub(super) waiting: Option<Waiting>,
    /// What the last turn ended with, for a turn whose end nobody heard.
    pub(super) ended_with: Option<String>,
    /// The messages it was told, oldest first.
    #[serde(default)]
    pub(super) heard: Vec<String>,
    /// The replies it holds, oldest first.
    pub(super) replies: Vec<Held>,
}

/// What a conversation waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Waiting {
    /// The result of this call.
    Call(String),
    /// The next message.
    Message,
}

/// A reply that the conversation holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Held {
    /// The question.
    pub(super) question_id: String,
    /// The call that asked, where there was one.
    pub(super) call_id: Option<String>,
    /// The answer, or null.
    pub(super) answer: Value,
    /// The claim that it was delivered under.
    pub(super) claim: String,
    /// The answer for people, or what was said instead of one.
    pub(super) words: String,
}

impl Conversation {
    pub(super) fn new(session: &str) -> Self {
        Conversation {
            engine: "scripted".to_owned(),
            session: session.to_owned(),
            next: 0,
            waiting: None,
            ended_with: None,
            heard: Vec::new(),
            replies: Vec::new(),
        }
    }

    /// The conversation of this name; none when there is none.
    pub(super) fn load(project: &Path, session: &str) -> io::Result<Option<Self>> {
        match read_file(&path(project, session)) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the file.
    pub(super) fn save(&self, project: &Path) -> io::Result<()> {
        let path = path(project, &self.session);
        if let Some(parent) = path.parent() {
            // It holds what was told, secrets among it.
            DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        let fresh = path.with_extension("json.new");
        fs::write(&fresh, serde_json::to_vec_pretty(self)?)?;
        fs::rename(&fresh, &path)
    }

    /// Whether anything was said in it. One whose process was killed before that knows nothing of its task.
    pub(super) fn has_begun(&self) -> bool {
        !self.heard.is_empty() || !self.replies.is_empty()
    }

    /// Whether this question's reply has reached it.
    pub(super) fn holds(&self, question_id: &str) -> bool {
        self.replies.iter().any(|held| held.question_id == question_id)
    }

    /// Writes down the deliveries that a kill kept from being written: the reply is in the conversation first, its
    /// line in the list comes second.
    pub(super) fn list_missing(&self, project: &Path) -> io::Result<()> {
        let listed = read_text_file(&deliveries(project)).unwrap_or_default();
        let is_listed = |held: &Held| {
            let mut lines = listed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            lines.any(|line| {
                line["question_id"] == held.question_id.as_str() && line["session"] == self.session.as_str()
            })
        };
        self.replies.iter().filter(|held| !is_listed(held)).try_for_each(|held| self.list(project, held))
    }

    /// Adds a line to the list of deliveries, in one write: lines of several processes do not mix.
    pub(super) fn list(&self, project: &Path, held: &Held) -> io::Result<()> {
        let line = json!({"claim": held.claim, "question_id": held.question_id, "answer": held.answer,
            "session": self.session});
        let mut file = OpenOptions::new().create(true).append(true).open(deliveries(project))?;
        file.write_all(format!("{line}\n").as_bytes())
    }
}

fn path(project: &Path, session: &str) -> PathBuf {
    folder(project).join("sessions").join(format!("{session}.json"))
}

fn deliveries(project: &Path) -> PathBuf {
    folder(project).join("deliveries.jsonl")
}
