//! The store's own check-up: the file as SQLite sees it, and the tables against a replay of the log.

use super::read::{Reader, parse_feature, parse_question};
use crate::error::StoreError;
use aop_kernel::replay::Replay;
use std::collections::BTreeMap;

impl Reader<'_> {
    /// Findings in words; empty when all is well.
    pub(super) fn verify(&self) -> Result<Vec<String>, StoreError> {
        let integrity = self.integrity()?;
        if integrity != "ok" {
            return Ok(vec![format!("the database file is damaged: {integrity}")]);
        }
        let mut replay = Replay::default();
        let mut findings = Vec::new();
        let mut expected = 1;
        self.each_event(|recorded| {
            if recorded.seq != expected {
                findings.push(format!("event {expected} is missing from the log"));
                expected = recorded.seq;
            }
            expected += 1;
            replay.apply(&recorded);
        })?;
        findings.extend(self.against(&replay)?);
        Ok(findings)
    }

    fn against(&self, replay: &Replay) -> Result<Vec<String>, StoreError> {
        let mut findings = Vec::new();
        let mut stored = BTreeMap::new();
        for record in self.texts("SELECT record FROM features WHERE project = ?1", &[])? {
            let feature = parse_feature(&record)?;
            stored.insert(feature.id.clone(), feature);
        }
        for (id, snapshot) in &replay.features {
            if stored.remove(id) != snapshot.feature {
                findings.push(format!("feature '{id}' differs from what its log says"));
            }
            for question in &snapshot.questions {
                let found = self.texts(
                    "SELECT record FROM questions WHERE project = ?1 AND question_id = ?2",
                    &[&question.id.as_str()],
                )?;
                let same = match found.first() {
                    Some(record) => parse_question(record)? == *question,
                    None => false,
                };
                if !same {
                    findings.push(format!("question {} differs from what the log says", question.id));
                }
            }
        }
        findings.extend(stored.keys().map(|id| format!("feature '{id}' is not in the log")));
        Ok(findings)
    }
}
