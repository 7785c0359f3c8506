//! The store's own check-up: the file as SQLite sees it, and the tables against a replay of the log.

use super::read::Reader;
use crate::check::Told;
use crate::error::StoreError;
use crate::rows::{FeatureRow, QuestionRow};
use aop_kernel::ids::QuestionId;

impl Reader<'_> {
    /// Findings in words; empty when all is well.
    pub(super) fn verify(&self) -> Result<Vec<String>, StoreError> {
        let integrity = self.integrity()?;
        if integrity != "ok" {
            return Ok(vec![format!("the database file is damaged: {integrity}")]);
        }
        let mut told = Told::default();
        let mut findings = Vec::new();
        // What was committed a moment ago is in the log alone.
        let (settled, mut last) = (self.settled()?, 0);
        self.each_event(|recorded, at, question_id| {
            let stamped = &recorded.stamped;
            let about = stamped.event.question_id().map(QuestionId::as_str);
            if (stamped.at.as_millis(), about) != (at, question_id.as_deref()) {
                findings.push(format!("the row of event {} differs from its record", recorded.seq));
            }
            if recorded.seq <= settled {
                told.hear(&recorded);
            } else if recorded.seq != last + 1 {
                findings.push(format!("event {} is missing from the log", last + 1));
            }
            last = recorded.seq;
        })?;
        let features = self.rows(
            "SELECT record, feature_id, status, adhoc, version FROM features WHERE project = ?1",
            &[],
            |row| {
                let columns = (row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?);
                Ok(FeatureRow { columns, record: row.get(0)? })
            },
        )?;
        let open = self.rows("SELECT feature_id, open FROM features WHERE project = ?1", &[], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
        })?;
        let specs = self.rows("SELECT feature_id, spec FROM specs WHERE project = ?1", &[], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
        let questions = self.rows(
            "SELECT record, question_id, feature_id, status, created_at, expires_at, answered_at
             FROM questions WHERE project = ?1",
            &[],
            |row| {
                let columns = (row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?);
                Ok(QuestionRow { columns, record: row.get(0)? })
            },
        )?;
        told.check_open(&open.into_iter().collect());
        let ends = self.rows("SELECT ifnull(max(last), 0) FROM features WHERE project = ?1", &[], |row| {
            Ok(row.get::<_, i64>(0)?.unsigned_abs())
        })?;
        let last = ends.into_iter().max().unwrap_or_default();
        findings.extend(told.compare(last, features, &specs.into_iter().collect(), questions)?);
        findings.extend(self.broken_chains()?);
        findings.extend(self.lost_operations()?);
        Ok(findings)
    }

    /// The operations that a retry would not find.
    fn lost_operations(&self) -> Result<Vec<String>, StoreError> {
        let lost = self.texts(
            "SELECT e.operation_id FROM events e
             LEFT JOIN ledger l ON l.project = e.project AND l.operation_id = e.operation_id
             WHERE e.project = ?1 AND e.operation_id IS NOT NULL AND l.seq IS NOT e.seq
               AND e.seq <= (SELECT settled FROM projects WHERE project = ?1)",
            &[],
        )?;
        Ok(lost.iter().map(|id| format!("operation '{id}' is in the log and not in the ledger")).collect())
    }

    /// The features whose events do not name each other in their order.
    fn broken_chains(&self) -> Result<Vec<String>, StoreError> {
        let broken = self.texts(
            "SELECT feature_id FROM (
               SELECT feature_id, previous, lag(seq) OVER (PARTITION BY feature_id ORDER BY seq) AS before
               FROM events WHERE project = ?1) WHERE previous IS NOT before
             UNION
             SELECT f.feature_id FROM features f
             LEFT JOIN (SELECT feature_id, max(seq) AS last FROM events
                WHERE seq <= (SELECT settled FROM projects WHERE project = ?1) GROUP BY feature_id) e USING (feature_id)
             WHERE f.project = ?1 AND f.last IS NOT e.last",
            &[],
        )?;
        Ok(broken.iter().map(|id| format!("the events of feature '{id}' are not in a row")).collect())
    }
}
