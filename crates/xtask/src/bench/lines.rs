//! The figures of a run as it printed them: JSON lines, kept beside the page.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::Path;

pub(super) const FILE: &str = "gate.jsonl";

/// All of them, in order.
#[derive(Default)]
pub(super) struct Lines(Vec<Value>);

impl Lines {
    /// Those that a run left in a folder.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut lines = Lines::default();
        text.lines().for_each(|line| lines.take(line));
        Ok(lines)
    }

    /// Takes a line when it is one of ours.
    pub(super) fn take(&mut self, line: &str) {
        self.0.extend(serde_json::from_str::<Value>(line).ok().filter(|line| line["bench"].is_string()));
    }

    pub(super) fn text(&self) -> String {
        self.0.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Those of one kind on one store.
    pub(super) fn of<'a>(&'a self, bench: &'a str, store: &'a str) -> impl Iterator<Item = &'a Value> {
        self.0.iter().filter(move |line| line["bench"] == bench && line["store"] == store)
    }

    /// The one in which all of these stand.
    pub(super) fn find(&self, bench: &str, store: &str, facts: &[(&str, &Value)]) -> Option<&Value> {
        self.0.iter().find(|line| {
            line["bench"] == bench
                && line["store"] == store
                && facts.iter().all(|(key, value)| line[*key] == **value)
        })
    }

    /// What the run was made on.
    pub(super) fn machine(&self) -> Value {
        self.0.iter().find(|line| line["bench"] == "machine").cloned().unwrap_or_default()
    }

    /// Whether every part was measured on both stores.
    pub(super) fn complete(&self) -> Result<()> {
        ensure!(self.machine()["date"].is_string(), "the figures do not say when they were taken");
        for store in ["sqlite", "postgres"] {
            for bench in ["cycle", "syncs", "park", "killed"] {
                ensure!(self.of(bench, store).next().is_some(), "there is no '{bench}' on {store}");
            }
            let lost = self.of("killed", store).find(|line| line["lost"] != 0);
            ensure!(lost.is_none(), "questions were lost: {lost:?}");
        }
        Ok(())
    }
}
