//! The store's own check-up: the file as SQLite sees it, and the tables against a replay of the log.

use super::read::{Reader, parse_feature, parse_question};
use crate::error::StoreError;
use aop_kernel::event::Event;
use aop_kernel::feature::Feature;
use aop_kernel::ids::FeatureId;
use aop_kernel::question::{Question, QuestionState};
use aop_kernel::replay::Replay;
use aop_kernel::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// What the log says.
#[derive(Default)]
struct Told {
    replay: Replay,
    specs: BTreeMap<FeatureId, String>,
}

impl Reader<'_> {
    /// Findings in words; empty when all is well.
    pub(super) fn verify(&self) -> Result<Vec<String>, StoreError> {
        let integrity = self.integrity()?;
        if integrity != "ok" {
            return Ok(vec![format!("the database file is damaged: {integrity}")]);
        }
        let mut told = Told::default();
        let mut findings = Vec::new();
        let mut expected = 1;
        self.each_event(|recorded| {
            if recorded.seq != expected {
                findings.push(format!("event {expected} is missing from the log"));
                expected = recorded.seq;
            }
            expected += 1;
            if let Event::FeatureCreated { spec: Some(spec), .. } = &recorded.stamped.event {
                told.specs.insert(recorded.stamped.feature_id.clone(), spec.clone());
            }
            told.replay.apply(&recorded);
        })?;
        if self.last_seq()? >= expected {
            findings.push(format!("event {expected} is missing from the end of the log"));
        }
        self.features_against(&told, &mut findings)?;
        self.questions_against(&told, &mut findings)?;
        Ok(findings)
    }

    fn features_against(&self, told: &Told, findings: &mut Vec<String>) -> Result<(), StoreError> {
        let mut stored = BTreeMap::new();
        let rows = self.rows(
            "SELECT record, feature_id, status, adhoc, version FROM features WHERE project = ?1",
            &[],
            |row| {
                let columns: (String, String, bool, i64) =
                    (row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?);
                Ok((row.get::<_, String>(0)?, columns))
            },
        )?;
        for (record, columns) in rows {
            let feature = parse_feature(&record)?;
            if columns != feature_columns(&feature) {
                findings.push(format!("the row of feature '{}' differs from its record", feature.id));
            }
            stored.insert(feature.id.clone(), feature);
        }
        for (id, snapshot) in &told.replay.features {
            if stored.remove(id) != snapshot.feature {
                findings.push(format!("feature '{id}' differs from what its log says"));
            }
            if self.spec(id)?.as_ref() != told.specs.get(id) {
                findings.push(format!("the specification of feature '{id}' differs from what its log says"));
            }
        }
        findings.extend(stored.keys().map(|id| format!("feature '{id}' is not in the log")));
        Ok(())
    }

    fn questions_against(&self, told: &Told, findings: &mut Vec<String>) -> Result<(), StoreError> {
        let snapshots = told.replay.features.values();
        let questions: BTreeMap<&str, &Question> =
            snapshots.flat_map(|snapshot| &snapshot.questions).map(|told| (told.id.as_str(), told)).collect();
        let mut missing: BTreeSet<&str> = questions.keys().copied().collect();
        let rows = self.rows(
            "SELECT record, question_id, feature_id, status, created_at, expires_at, answered_at
             FROM questions WHERE project = ?1",
            &[],
            |row| {
                let columns: Columns =
                    (row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?);
                Ok((row.get::<_, String>(0)?, columns))
            },
        )?;
        for (record, columns) in rows {
            let question = parse_question(&record)?;
            let id = question.id.as_str();
            missing.remove(id);
            match questions.get(id) {
                None => findings.push(format!("question {id} is not in the log")),
                Some(told) if **told != question => {
                    findings.push(format!("question {id} differs from what the log says"));
                }
                Some(_) if columns != question_columns(&question) => {
                    findings.push(format!("the row of question {id} differs from its record"));
                }
                Some(_) => {}
            }
        }
        findings.extend(
            missing.into_iter().map(|id| format!("question {id} is in the log and not in its table")),
        );
        Ok(())
    }
}

fn feature_columns(feature: &Feature) -> (String, String, bool, i64) {
    (feature.id.to_string(), feature.status.to_string(), feature.adhoc, feature.version.cast_signed())
}

/// Id, feature, status, created, expires, answered.
type Columns = (String, String, String, i64, Option<i64>, Option<i64>);

fn question_columns(question: &Question) -> Columns {
    let answered_at = match &question.state {
        QuestionState::Answered { at, .. } => Some(at.as_millis()),
        QuestionState::Open | QuestionState::Expired { .. } | QuestionState::Withdrawn { .. } => None,
    };
    (
        question.id.to_string(),
        question.feature_id.to_string(),
        question.state.status().as_str().to_owned(),
        question.created_at.as_millis(),
        question.expires_at.map(Timestamp::as_millis),
        answered_at,
    )
}
