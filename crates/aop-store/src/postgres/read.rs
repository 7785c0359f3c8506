//! Reading: every call runs on one snapshot of the database and shows what is due as already expired.

use super::Inside;
use super::link::{Failure, Length};
use crate::check::Told;
use crate::error::StoreError;
use crate::overlay::Overlay;
use crate::port::{EventPage, FeatureFiles, FeaturePage, FeatureView, QuestionPage};
use crate::record::Record;
use crate::rows::{
    FeatureRow, QuestionRow, parse, parse_changed, parse_event, parse_feature, parse_question, snapshot,
};
use aop_kernel::event::{Recorded, Snapshot};
use aop_kernel::feature::Feature;
use aop_kernel::ids::{FeatureId, QuestionId};
use aop_kernel::lifecycle::expire_due;
use aop_kernel::question::{Question, QuestionStatus};
use aop_kernel::time::Timestamp;
use aop_kernel::tools::QuestionFilter;
use deadpool_postgres::Object;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;
use tokio::time::timeout;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

pub(super) type Param<'a> = &'a (dyn ToSql + Sync);

/// How long the end of a read may take.
const ENDS_WITHIN: Duration = Duration::from_secs(15);

const COUNTERS: &str = "
    SELECT last_seq, greatest(last_at, coalesce($2, floor(extract(epoch FROM now()) * 1000)::bigint))
    FROM projects WHERE project = $1";

/// A question, and whether the clock may have changed it: it is open, and something is due in its feature.
const QUESTION: &str = "
    SELECT q.record, q.status = 'open' AND EXISTS (
        SELECT FROM questions d
        WHERE d.project = $1 AND d.feature_id = q.feature_id AND d.status = 'open' AND d.expires_at
            <= greatest(p.last_at, coalesce($2, floor(extract(epoch FROM now()) * 1000)::bigint)))
    FROM projects p LEFT JOIN questions q ON q.project = $1 AND q.question_id = $3 WHERE p.project = $1";

/// A feature and its open questions.
const SNAPSHOT: &str = "
    SELECT 0::int2, record FROM features WHERE project = $1 AND feature_id = $2
    UNION ALL SELECT 1::int2, record FROM questions WHERE project = $1 AND feature_id = $2 AND status = 'open'";

/// The features in which something is due, with their open questions.
const OVERLAY: &str = "
    WITH due AS (
        SELECT DISTINCT feature_id FROM questions
        WHERE project = $1 AND status = 'open' AND expires_at <= $2 AND ($3::text IS NULL OR feature_id = $3))
    SELECT 0::int2, f.feature_id, f.record FROM due JOIN features f ON f.project = $1 AND f.feature_id = due.feature_id
    UNION ALL
    SELECT 1::int2, q.feature_id, q.record FROM due
    JOIN questions q ON q.project = $1 AND q.feature_id = due.feature_id AND q.status = 'open'";

/// One snapshot of the database, and the time it is looked at.
pub(super) struct Reader {
    connection: Object,
    project: i64,
    seq: u64,
    now: Timestamp,
}

impl Inside {
    /// The time as the store sees it.
    pub(super) async fn now(&self, connection: &Object) -> Result<Timestamp, Failure> {
        Ok(self.counters(connection).await?.1)
    }

    async fn counters(&self, connection: &Object) -> Result<(u64, Timestamp), Failure> {
        let statement = connection.prepare_cached(COUNTERS).await?;
        let row = connection.query_one(&statement, &[&self.project, &self.given()]).await?;
        Ok((row.get::<_, i64>(0).unsigned_abs(), Timestamp::from_millis(row.get(1))))
    }

    /// The time, by one statement.
    pub(super) async fn time(&self) -> Result<Timestamp, StoreError> {
        self.glance(async |connection| self.now(connection).await).await
    }

    /// A question: nearly always by one statement, which whoever waits for an answer sends again and again.
    pub(super) async fn question(&self, id: &QuestionId) -> Result<Option<Question>, StoreError> {
        let seen = self.glance(async |connection| {
            let statement = connection.prepare_cached(QUESTION).await?;
            let row = connection.query_one(&statement, &[&self.project, &self.given(), &id.as_str()]).await?;
            Ok((row.get::<_, Option<String>>(0), row.get::<_, Option<bool>>(1)))
        });
        match seen.await? {
            (None, _) => Ok(None),
            (Some(_), Some(true)) => self.read(async |reader| reader.question(id).await).await,
            (Some(record), _) => parse_question(&record).map(Some),
        }
    }

    /// Runs what one statement tells, and so needs no snapshot; again while the server is away.
    async fn glance<T>(&self, work: impl AsyncFn(&Object) -> Result<T, Failure>) -> Result<T, StoreError> {
        let looked = self.link.attempts(Length::Short, async |connection, _| work(&connection).await);
        looked.await.map_err(without_doubt)
    }

    /// Runs one read on a consistent snapshot; again while the server is away.
    pub(super) async fn read<T>(
        &self,
        work: impl AsyncFn(&Reader) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        self.read_for(Length::Short, work).await
    }

    /// The same, for as long as it takes.
    pub(super) async fn read_for<T>(
        &self,
        length: Length,
        work: impl AsyncFn(&Reader) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        self.link
            .attempts(length, async |connection, _| {
                let reader = self.begin(connection).await?;
                let result = work(&reader).await;
                reader.end();
                result
            })
            .await
            .map_err(without_doubt)
    }

    /// A snapshot to read on.
    async fn begin(&self, connection: Object) -> Result<Reader, Failure> {
        connection.prepare_cached(COUNTERS).await?;
        let (begun, counters) = tokio::join!(
            connection.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"),
            self.counters(&connection),
        );
        begun?;
        let (seq, now) = counters?;
        Ok(Reader { connection, project: self.project, seq, now })
    }
}

/// A read changes nothing, so there is nothing to be in doubt about.
fn without_doubt(error: StoreError) -> StoreError {
    match error {
        StoreError::Unavailable { place, cause, hint } if hint.contains("operation id") => {
            let hint = "check that the server runs and can be reached from here, then run the command again";
            StoreError::Unavailable { place, cause, hint: hint.into() }
        }
        other => other,
    }
}

impl Reader {
    /// Nobody waits for the end of a read; the connection goes back to the pool after it.
    fn end(self) {
        tokio::task::spawn_local(async move {
            if timeout(ENDS_WITHIN, self.connection.batch_execute("COMMIT")).await.is_err() {
                // It stands in a transaction still: nobody else is to have it.
                drop(Object::take(self.connection));
            }
        });
    }

    pub(super) fn now(&self) -> Timestamp {
        self.now
    }

    /// The last event there is.
    pub(super) fn last_seq(&self) -> u64 {
        self.seq
    }

    /// Every row of a query whose first parameter is the project.
    pub(super) async fn rows(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Failure> {
        let statement = self.connection.prepare_cached(sql).await?;
        let mut all: Vec<Param<'_>> = vec![&self.project];
        all.extend(params);
        Ok(self.connection.query(&statement, &all).await?)
    }

    /// The first column of every row.
    pub(super) async fn texts(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<String>, Failure> {
        Ok(self.rows(sql, params).await?.iter().map(|row| row.get(0)).collect())
    }

    /// The feature with its open questions, as the clock leaves them.
    pub(super) async fn state(&self, id: &FeatureId) -> Result<Snapshot, Failure> {
        let rows = self.rows(SNAPSHOT, &[&id.as_str()]).await?;
        let (mut feature, mut open) = (None, Vec::<String>::new());
        for row in &rows {
            match row.get::<_, i16>(0) {
                0 => feature = Some(row.get::<_, String>(1)),
                _ => open.push(row.get(1)),
            }
        }
        Ok(expire_due(&snapshot(feature.as_deref(), &open)?, self.now).state)
    }

    /// What is due and not written yet, of one feature or of all. Usually nothing.
    async fn overlay(&self, only: Option<&FeatureId>) -> Result<Overlay, Failure> {
        let only = only.map(FeatureId::as_str);
        let rows = self.rows(OVERLAY, &[&self.now.as_millis(), &only]).await?;
        let mut features: BTreeMap<String, (Option<String>, Vec<String>)> = BTreeMap::new();
        for row in &rows {
            let entry = features.entry(row.get(1)).or_default();
            match row.get::<_, i16>(0) {
                0 => entry.0 = Some(row.get(2)),
                _ => entry.1.push(row.get(2)),
            }
        }
        let mut overlay = Overlay::default();
        for (feature, open) in features.values() {
            overlay.add(&snapshot(feature.as_deref(), open)?, self.now);
        }
        Ok(overlay)
    }

    pub(super) async fn spec(&self, id: &FeatureId) -> Result<Option<String>, Failure> {
        let rows = self
            .rows("SELECT spec FROM specs WHERE project = $1 AND feature_id = $2", &[&id.as_str()])
            .await?;
        Ok(rows.first().map(spec_text).transpose()?)
    }

    pub(super) async fn features(&self, page: &FeaturePage) -> Result<Vec<Feature>, Failure> {
        let overlay = self.overlay(page.only.as_ref()).await?;
        let records = match &page.only {
            Some(id) => {
                let sql = "SELECT record FROM features WHERE project = $1 AND feature_id = $2";
                self.texts(sql, &[&id.as_str()]).await?
            }
            None => {
                let sql = "SELECT record FROM features WHERE project = $1 AND (NOT adhoc OR $2) ORDER BY feature_id";
                self.texts(sql, &[&page.adhoc]).await?
            }
        };
        let rows = records.iter().map(|record| parse_feature(record)).collect::<Result<Vec<_>, _>>()?;
        Ok(overlay.features(page, rows))
    }

    pub(super) async fn question(&self, id: &QuestionId) -> Result<Option<Question>, Failure> {
        let sql = "SELECT record FROM questions WHERE project = $1 AND question_id = $2";
        let found = self.texts(sql, &[&id.as_str()]).await?;
        let Some(question) = found.first().map(|record| parse_question(record)).transpose()? else {
            return Ok(None);
        };
        if !question.is_open() {
            return Ok(Some(question));
        }
        Ok(self.state(&question.feature_id).await?.question(id).cloned())
    }

    pub(super) async fn questions(&self, page: &QuestionPage) -> Result<Vec<Question>, Failure> {
        let overlay = self.overlay(page.feature.as_ref()).await?;
        let rows = self.question_rows(page, page.limit.saturating_add(overlay.len())).await?;
        let rows = rows.iter().map(|record| parse_question(record)).collect::<Result<Vec<_>, _>>()?;
        Ok(overlay.questions(page, rows))
    }

    pub(super) async fn records(&self, page: &QuestionPage) -> Result<Vec<Record>, Failure> {
        let (overlay, rows) =
            tokio::join!(self.overlay(page.feature.as_ref()), self.question_rows(page, page.limit));
        if overlay?.len() > 0 {
            let questions = self.questions(page).await?;
            return Ok(questions.iter().map(Record::of).collect::<Result<_, _>>()?);
        }
        Ok(rows?.into_iter().map(Record::stored).collect())
    }

    async fn question_rows(&self, page: &QuestionPage, limit: usize) -> Result<Vec<String>, Failure> {
        let mut sql = String::from("SELECT record FROM questions WHERE project = $1");
        let mut values: Vec<Box<dyn ToSql + Sync>> = Vec::new();
        let mut bind = |condition: &str, value: Box<dyn ToSql + Sync>, sql: &mut String| {
            values.push(value);
            sql.push_str(&condition.replace("{}", &format!("${}", values.len() + 1)));
        };
        match page.filter {
            QuestionFilter::All => {}
            QuestionFilter::Only(QuestionStatus::Open) => {
                let open = " AND status = 'open' AND (expires_at IS NULL OR expires_at > {})";
                bind(open, Box::new(self.now.as_millis()), &mut sql);
            }
            QuestionFilter::Only(status) => bind(" AND status = {}", Box::new(status.as_str()), &mut sql),
        }
        if let Some(feature) = &page.feature {
            bind(" AND feature_id = {}", Box::new(feature.to_string()), &mut sql);
        }
        if let Some((at, id)) = &page.after {
            bind(" AND (created_at, question_id) > ({}, ", Box::new(at.as_millis()), &mut sql);
            bind("{})", Box::new(id.to_string()), &mut sql);
        }
        bind(" ORDER BY created_at, question_id LIMIT {}", Box::new(rows_at_most(limit)), &mut sql);
        let params: Vec<Param<'_>> = values.iter().map(AsRef::as_ref).collect();
        self.texts(&sql, &params).await
    }

    async fn recent_answers(&self, id: &FeatureId, limit: usize) -> Result<Vec<Question>, Failure> {
        let sql =
            "SELECT record FROM questions WHERE project = $1 AND feature_id = $2 AND status = 'answered'
                   ORDER BY answered_at DESC, question_id DESC LIMIT $3";
        let limit_rows = rows_at_most(limit);
        let params: [Param<'_>; 2] = [&id.as_str(), &limit_rows];
        let (rows, overlay) = tokio::join!(self.texts(sql, &params), self.overlay(Some(id)));
        let answers = rows?.iter().map(|record| parse_question(record)).collect::<Result<Vec<_>, _>>()?;
        Ok(overlay?.answers(answers, limit))
    }

    pub(super) async fn view(&self, id: &FeatureId, answers: usize) -> Result<Option<FeatureView>, Failure> {
        let (state, spec, answers) =
            tokio::join!(self.state(id), self.spec(id), self.recent_answers(id, answers));
        let (state, spec, answers) = (state?, spec?, answers?);
        let open = state.open_questions().cloned().collect();
        let Some(feature) = state.feature else { return Ok(None) };
        Ok(Some(FeatureView { feature, spec, open, answers }))
    }

    pub(super) async fn next_deadline(&self) -> Result<Option<Timestamp>, Failure> {
        let sql = "SELECT min(expires_at) FROM questions
                   WHERE project = $1 AND status = 'open' AND expires_at IS NOT NULL";
        let rows = self.rows(sql, &[]).await?;
        Ok(rows.first().and_then(|row| row.get::<_, Option<i64>>(0)).map(Timestamp::from_millis))
    }

    pub(super) async fn events(&self, page: &EventPage) -> Result<Vec<Recorded>, Failure> {
        let limit = if page.limit == 0 { None } else { rows_at_most(page.limit) };
        let after = page.after.cast_signed();
        let rows = match &page.feature {
            Some(feature) => {
                let sql = "SELECT seq, event FROM events WHERE project = $1 AND feature_id = $2 AND seq > $3
                           ORDER BY seq LIMIT $4";
                self.rows(sql, &[&feature.as_str(), &after, &limit]).await?
            }
            None => {
                let sql =
                    "SELECT seq, event FROM events WHERE project = $1 AND seq > $2 ORDER BY seq LIMIT $3";
                self.rows(sql, &[&after, &limit]).await?
            }
        };
        let events = rows.iter().map(|row| parse_event(row.get::<_, i64>(0).unsigned_abs(), row.get(1)));
        Ok(events.collect::<Result<_, _>>()?)
    }

    pub(super) async fn changed_since(&self, seq: u64) -> Result<(Vec<(FeatureId, u64)>, u64), Failure> {
        let sql = "SELECT min(seq), feature_id FROM events WHERE project = $1 AND seq > $2
                   GROUP BY feature_id ORDER BY feature_id";
        let rows = self.rows(sql, &[&seq.cast_signed()]).await?;
        let rows = rows.iter().map(|row| (row.get::<_, i64>(0).unsigned_abs(), row.get(1))).collect();
        Ok((parse_changed(rows)?, self.seq))
    }

    pub(super) async fn feature_files(
        &self,
        id: &FeatureId,
        since: u64,
    ) -> Result<Option<FeatureFiles>, Failure> {
        let name: Param<'_> = &id.as_str();
        let since = since.cast_signed();
        let feature = "SELECT record FROM features WHERE project = $1 AND feature_id = $2";
        let questions = "SELECT record FROM questions WHERE project = $1 AND feature_id = $2
                         ORDER BY created_at, question_id";
        let log = "SELECT at, line FROM events WHERE project = $1 AND feature_id = $2 ORDER BY seq";
        let closed = "SELECT DISTINCT ON (q.question_id) q.record FROM events e
                      JOIN questions q ON q.project = e.project AND q.question_id = e.question_id
                      WHERE e.project = $1 AND e.feature_id = $2 AND e.seq >= $3 AND q.status = 'answered'
                      ORDER BY q.question_id";
        let one: [Param<'_>; 1] = [name];
        let two: [Param<'_>; 2] = [name, &since];
        let (feature, spec, questions, log, closed) = tokio::join!(
            self.texts(feature, &one),
            self.spec(id),
            self.texts(questions, &one),
            self.rows(log, &one),
            self.texts(closed, &two),
        );
        let feature = feature?.first().map(|record| parse_feature(record)).transpose()?;
        let Some(feature) = feature else { return Ok(None) };
        let mut lines = String::new();
        for row in &log? {
            let at = Timestamp::from_millis(row.get(0));
            // Writing to a String cannot fail.
            let _ = writeln!(lines, "- {at} {}", row.get::<_, &str>(1));
        }
        let forms = closed?
            .iter()
            .map(|record| parse_question(record))
            .filter(|question| question.as_ref().is_ok_and(|question| question.asked.spec.is_some()))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Some(FeatureFiles {
            feature: feature.into(),
            spec: spec?,
            questions: questions?.join(",\n"),
            log: lines,
            forms,
        }))
    }

    pub(super) async fn secret(&self, id: &QuestionId) -> Result<Option<Value>, Failure> {
        let sql = "SELECT answer FROM secrets WHERE project = $1 AND question_id = $2";
        let found = self.texts(sql, &[&id.as_str()]).await?;
        Ok(found.first().map(|text| parse(&format!("secret of {id}"), text)).transpose()?)
    }

    /// Findings in words; empty when all is well.
    pub(super) async fn verify(&self) -> Result<Vec<String>, Failure> {
        let mut told = Told::default();
        let mut after = 0;
        loop {
            let chunk = self.events(&EventPage { after, feature: None, limit: 1_000 }).await?;
            let Some(last) = chunk.last() else { break };
            after = last.seq;
            chunk.iter().for_each(|recorded| told.hear(recorded));
        }
        let features = "SELECT record, feature_id, status, adhoc, version FROM features WHERE project = $1";
        let questions = "SELECT record, question_id, feature_id, status, created_at, expires_at, answered_at
                         FROM questions WHERE project = $1";
        let specs = "SELECT spec, feature_id FROM specs WHERE project = $1";
        let (features, questions, specs) =
            tokio::join!(self.rows(features, &[]), self.rows(questions, &[]), self.rows(specs, &[]));
        let (features, questions) = (features?, questions?);
        let features = features.iter().map(|row| FeatureRow {
            columns: (row.get(1), row.get(2), row.get(3), row.get(4)),
            record: row.get(0),
        });
        let features = features.collect();
        let questions = questions.iter().map(|row| QuestionRow {
            columns: (row.get(1), row.get(2), row.get(3), row.get(4), row.get(5), row.get(6)),
            record: row.get(0),
        });
        let questions = questions.collect();
        let mut stored = BTreeMap::new();
        for row in &specs? {
            stored.insert(row.get(1), spec_text(row)?);
        }
        Ok(told.compare(self.seq, features, &stored, questions)?)
    }
}

fn spec_text(row: &Row) -> Result<String, StoreError> {
    String::from_utf8(row.get(0))
        .map_err(|error| StoreError::Damaged { place: "specification".into(), cause: error.to_string() })
}

/// What SQL calls a limit: none when it is more than it can count.
pub(super) fn rows_at_most(limit: usize) -> Option<i64> {
    i64::try_from(limit).ok()
}
