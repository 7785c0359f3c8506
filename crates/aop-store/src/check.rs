//! The check-up that every database gets: its tables against a replay of its log.

use crate::error::StoreError;
use crate::rows::{
    FeatureColumns, FeatureRow, QuestionColumns, QuestionRow, feature_columns, open_ids, parse_feature,
    parse_question, question_columns,
};
use aop_kernel::event::{Event, Recorded};
use aop_kernel::ids::FeatureId;
use aop_kernel::question::Question;
use aop_kernel::replay::Replay;
use std::collections::{BTreeMap, BTreeSet};

/// What the log says, taken in event by event, and what was found amiss so far, in words.
#[derive(Default)]
pub(crate) struct Told {
    replay: Replay,
    specs: BTreeMap<FeatureId, String>,
    last: u64,
    findings: Vec<String>,
}

impl Told {
    /// The next event of the log.
    pub(crate) fn hear(&mut self, recorded: &Recorded) {
        if recorded.seq != self.last + 1 {
            self.findings.push(format!("event {} is missing from the log", self.last + 1));
        }
        self.last = recorded.seq;
        if let Event::FeatureCreated { spec: Some(spec), .. } = &recorded.stamped.event {
            self.specs.insert(recorded.stamped.feature_id.clone(), spec.clone());
        }
        self.replay.apply(recorded);
    }

    /// Compares lists of open questions, by feature, with what was heard; for a store that keeps such lists.
    pub(crate) fn check_open(&mut self, lists: &BTreeMap<String, String>) {
        for (id, snapshot) in &self.replay.features {
            if lists.get(id.as_str()).is_some_and(|list| *list != open_ids(snapshot.open_questions())) {
                let finding = format!("the open questions of feature '{id}' differ from what its log says");
                self.findings.push(finding);
            }
        }
    }

    /// Compares the counter and the tables with what was heard.
    pub(crate) fn compare(
        mut self,
        last_seq: u64,
        features: Vec<FeatureRow>,
        specs: &BTreeMap<String, String>,
        questions: Vec<QuestionRow>,
    ) -> Result<Vec<String>, StoreError> {
        if last_seq > self.last {
            self.findings.push(format!("event {} is missing from the end of the log", self.last + 1));
        }
        self.features_against(features, specs)?;
        self.questions_against(questions)?;
        Ok(self.findings)
    }

    fn features_against(
        &mut self,
        rows: Vec<FeatureRow>,
        specs: &BTreeMap<String, String>,
    ) -> Result<(), StoreError> {
        let mut stored = BTreeMap::new();
        for row in rows {
            let feature = parse_feature(&row.record)?;
            let expected: FeatureColumns = feature_columns(&feature);
            if row.columns != expected {
                self.findings.push(format!("the row of feature '{}' differs from its record", feature.id));
            }
            stored.insert(feature.id.clone(), feature);
        }
        for (id, snapshot) in &self.replay.features {
            let mut found = stored.remove(id);
            if let (Some(found), Some(told)) = (&mut found, &snapshot.feature) {
                // An earlier version wrote it, and did not say these yet.
                found.status_since = found.status_since.or(told.status_since);
                if let (Some(found), Some(told)) = (&mut found.waiting, &told.waiting)
                    && found.stood_because.is_none()
                {
                    found.stood_because = told.stood_because.clone();
                }
            }
            if found.as_ref() != snapshot.feature.as_deref() {
                self.findings.push(format!("feature '{id}' differs from what its log says"));
            }
            if specs.get(id.as_str()) != self.specs.get(id) {
                let finding = format!("the specification of feature '{id}' differs from what its log says");
                self.findings.push(finding);
            }
        }
        self.findings.extend(stored.keys().map(|id| format!("feature '{id}' is not in the log")));
        Ok(())
    }

    fn questions_against(&mut self, rows: Vec<QuestionRow>) -> Result<(), StoreError> {
        let snapshots = self.replay.features.values();
        let questions: BTreeMap<&str, &Question> = snapshots
            .flat_map(|snapshot| &snapshot.questions)
            .map(|told| (told.id.as_str(), &**told))
            .collect();
        let mut missing: BTreeSet<&str> = questions.keys().copied().collect();
        for row in rows {
            let question = parse_question(&row.record)?;
            let id = question.id.as_str();
            let expected: QuestionColumns = question_columns(&question);
            missing.remove(id);
            match questions.get(id) {
                None => self.findings.push(format!("question {id} is not in the log")),
                Some(told) if **told != question => {
                    self.findings.push(format!("question {id} differs from what the log says"));
                }
                Some(_) if row.columns != expected => {
                    self.findings.push(format!("the row of question {id} differs from its record"));
                }
                Some(_) => {}
            }
        }
        self.findings.extend(
            missing.into_iter().map(|id| format!("question {id} is in the log and not in its table")),
        );
        Ok(())
    }
}
