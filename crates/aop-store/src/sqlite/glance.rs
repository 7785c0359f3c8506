//! Reading little, as long as the clock has done nothing that is not written yet.

use super::connect::{self, PROJECT, explain};
use super::read::Reader;
use super::recent::{Kept, Recent};
use super::tail::Shared;
use crate::error::StoreError;
use crate::port::{Inbox, QuestionPage};
use crate::record::Record;
use crate::rows::{parse_feature, parse_question};
use aop_kernel::event::Snapshot;
use aop_kernel::ids::QuestionId;
use aop_kernel::question::{Question, QuestionStatus};
use aop_kernel::time::Timestamp;
use aop_kernel::tools::QuestionFilter;
use rusqlite::Connection;
use rusqlite::types::ToSql;
use std::path::Path;
use std::sync::Arc;

/// To reach further than this takes long: whoever wants to write would have to wait.
const SHORT: usize = 1_000;

/// One look at the file. Where it gives nothing, a snapshot has to be read instead.
pub(super) struct Glance<'a> {
    pub(super) connection: &'a Connection,
    pub(super) path: &'a Path,
    pub(super) clock: Timestamp,
    /// What the writer remembers, if this is its connection.
    pub(super) recent: Option<&'a mut Recent>,
}

/// Whether anything is due at `?2`, or at the latest time ever used.
macro_rules! something_is_due {
    () => {
        "EXISTS (SELECT 1 FROM questions d WHERE d.project = ?1 AND d.status = 'open' AND d.expires_at <= max(?2,
           (SELECT p.used_at FROM projects p WHERE p.project = ?1),
           ifnull((SELECT e.at FROM events e WHERE e.seq = (SELECT max(seq) FROM events)), 0)))"
    };
}

/// Everything open, if the tables hold all that the log has and nothing is due. That is asked of the one row of the
/// project, which is looked at first: asked of the questions, it would be asked of each.
macro_rules! open_if_all_is_there {
    () => {
        concat!(
            "SELECT q.record FROM projects p CROSS JOIN questions q
             WHERE p.project = ?1 AND p.settled = ifnull((SELECT max(seq) FROM events), 0) AND NOT ",
            something_is_due!(),
            " AND q.project = p.project AND q.status = 'open'"
        )
    };
}

/// What one statement tells of a question.
struct Seen {
    last: u64,
    settled: u64,
    record: Option<String>,
    something_is_due: bool,
}

impl Glance<'_> {
    /// A question, unless it might be due, or somebody else wrote what the tables do not hold yet. Whoever looks at an open
    /// one may answer it next, so the writer remembers it.
    pub(super) fn question(
        self,
        id: &QuestionId,
        tail: &Shared,
    ) -> Result<Option<Option<Question>>, StoreError> {
        // Looked at first: what leaves it afterwards is in the tables by then.
        let (seq, is_empty, written) = {
            let tail = tail.look();
            let written = tail.questions.get(id).cloned();
            let written = written.map(|question| (tail.deadline(&question.feature_id), question));
            (tail.seq, tail.is_empty(), written)
        };
        if let Some((deadline, question)) = written {
            let (last, used) =
                connect::counters(self.connection).map_err(|error| explain(self.path, &error))?;
            let is_due = question.is_open() && deadline.is_some_and(|at| at <= used.max(self.clock));
            return Ok((last == seq && !is_due).then(|| Some((*question).clone())));
        }
        let seen = self.seen(id)?;
        if seen.last != seq && seen.last != seen.settled {
            return Ok(None);
        }
        let Some(record) = seen.record else { return Ok(Some(None)) };
        let question = parse_question(&record)?;
        let in_doubt = || {
            let tail = tail.look();
            (tail.seq, tail.is_empty()) != (seq, is_empty) || tail.deadline(&question.feature_id).is_some()
        };
        if !question.is_open() {
            return Ok(Some(Some(question)));
        }
        if seen.something_is_due || in_doubt() {
            return Ok(None);
        }
        if !tail.look().features.contains_key(&question.feature_id) {
            self.remember(&question, record.len());
        }
        Ok(Some(Some(question)))
    }

    /// Has the writer remember the feature of an open question as the tables have both, if no other question of it is open.
    fn remember(mut self, question: &Question, length: usize) {
        let id = &question.feature_id;
        let Some(recent) = self.recent.take().filter(|recent| !recent.holds(id)) else { return };
        let sql = "SELECT record, last FROM features WHERE project = ?1 AND feature_id = ?2 AND open = ?3";
        let run = || {
            self.prepare(sql)?.query_row((PROJECT, id.as_str(), question.id.as_str()), |row| {
                let record = row.get_ref(0)?.as_str()?;
                Ok((parse_feature(record), row.get(1)?, length + record.len()))
            })
        };
        // What cannot be read is found out by whoever needs it.
        if let Ok((Ok(feature), last, bytes)) = run() {
            let state =
                Snapshot { feature: Some(Arc::new(feature)), questions: vec![Arc::new(question.clone())] };
            recent.keep(id.clone(), Kept { state, last, bytes });
        }
    }

    fn seen(&self, id: &QuestionId) -> Result<Seen, StoreError> {
        let sql = concat!(
            "SELECT ifnull((SELECT max(seq) FROM events), 0), p.settled, q.record,
               CASE WHEN ifnull(q.status, 'open') = 'open' THEN ",
            something_is_due!(),
            " ELSE 0 END
             FROM projects p LEFT JOIN questions q ON q.project = p.project AND q.question_id = ?3
             WHERE p.project = ?1"
        );
        let run = || {
            self.prepare(sql)?.query_row((PROJECT, self.clock.as_millis(), id.as_str()), |row| {
                Ok(Seen {
                    last: row.get::<_, i64>(0)?.unsigned_abs(),
                    settled: row.get::<_, i64>(1)?.unsigned_abs(),
                    record: row.get(2)?,
                    something_is_due: row.get(3)?,
                })
            })
        };
        run().map_err(|error| explain(self.path, &error))
    }

    /// The records of a short page of everything open; nothing when something is due, the tables lack something, or
    /// there is none.
    pub(super) fn records(&self, page: &QuestionPage) -> Result<Option<Vec<Record>>, StoreError> {
        let open = QuestionFilter::Only(QuestionStatus::Open);
        if page.feature.is_some() || page.filter != open || page.limit > SHORT {
            return Ok(None);
        }
        let limit = i64::try_from(page.limit).unwrap_or(i64::MAX);
        let clock = self.clock.as_millis();
        match &page.after {
            None => self.page(
                concat!(open_if_all_is_there!(), " ORDER BY q.created_at, q.question_id LIMIT ?3"),
                &[&PROJECT, &clock, &limit],
            ),
            Some((at, id)) => self.page(
                concat!(
                    open_if_all_is_there!(),
                    " AND (q.created_at, q.question_id) > (?4, ?5) ORDER BY q.created_at, q.question_id LIMIT ?3"
                ),
                &[&PROJECT, &clock, &limit, &at.as_millis(), &id.as_str()],
            ),
        }
    }

    /// What is most urgent; nothing when something is due, the tables lack something, or the page is far down.
    pub(super) fn inbox(&self, skip: usize, limit: usize) -> Result<Option<Inbox>, StoreError> {
        if skip.saturating_add(limit) > SHORT {
            return Ok(None);
        }
        let reader = Reader::begin(self.connection, self.path, self.clock)?;
        if reader.is_behind()? || reader.something_is_due()? {
            return Ok(None);
        }
        reader.urgent(skip, limit).map(Some)
    }

    fn page(&self, sql: &str, params: &[&dyn ToSql]) -> Result<Option<Vec<Record>>, StoreError> {
        let run = || {
            let mut statement = self.prepare(sql)?;
            let records = statement.query_map(params, |row| Ok(Record::stored(row.get(0)?)))?;
            records.collect::<rusqlite::Result<Vec<_>>>()
        };
        let records = run().map_err(|error| explain(self.path, &error))?;
        Ok(Some(records).filter(|records| !records.is_empty()))
    }

    fn prepare(&self, sql: &str) -> rusqlite::Result<rusqlite::CachedStatement<'_>> {
        #[cfg(test)]
        super::plan::note(self.connection, sql);
        self.connection.prepare_cached(sql)
    }
}

#[cfg(test)]
mod tests {
    use super::super::SqliteStore;
    use crate::{Service, Store, SystemClock};
    use aop_kernel::Refusal;
    use aop_kernel::ids::{FeatureId, QuestionId};
    use aop_kernel::policy::{HumanInput, Rules};
    use aop_kernel::role::{Caller, Role};
    use aop_kernel::tools::Tool;
    use serde_json::{Value, json};
    use std::path::Path;
    use std::sync::Arc;

    fn open(dir: &Path) -> (Arc<SqliteStore>, Service) {
        let store = Arc::new(SqliteStore::open(dir, Arc::new(SystemClock)).unwrap());
        // Nothing is ever due.
        let human_input =
            HumanInput { timeout_ms: 0, max_open_questions_per_feature: 2, ..HumanInput::default() };
        let rules = Rules { human_input, check_schema: |_| Ok(()), check_instance: |_, _| Ok(()) };
        (Arc::clone(&store), Service::new(store, Arc::new(rules)))
    }

    fn run(work: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work);
    }

    async fn call(service: &Service, tool: &str, mut input: Value) -> Result<Value, Refusal> {
        input["operation_id"] = json!(ulid::Ulid::generate().to_string());
        let told = service.call(Tool::find(tool).unwrap(), &Caller::new(Role::Human), &input, "test").await;
        told.map(|envelope| envelope.data())
    }

    async fn create(service: &Service, feature: &str) {
        call(service, "feature.create", json!({"feature_id": feature, "title": "t"})).await.unwrap();
    }

    async fn ask(service: &Service, feature: &str, prompt: &str, blocking: bool) -> String {
        let input = json!({"feature_id": feature, "role": "builder", "session_id": "s", "prompt": prompt,
            "question_type": "clarification", "blocking": blocking});
        let data = call(service, "feature.question_create", input).await.unwrap();
        data["question_id"].as_str().unwrap().to_owned()
    }

    async fn answer(service: &Service, feature: &str, question: &str, by: &str) -> Result<Value, Refusal> {
        let input = json!({"feature_id": feature, "question_id": question, "answer": "x", "answered_by": by});
        call(service, "feature.question_answer", input).await
    }

    fn remembers(store: &SqliteStore, feature: &str) -> bool {
        let id = FeatureId::parse(feature).unwrap();
        store.writer.read_here(|lent| Ok(lent.recent.unwrap().holds(&id))).ok().unwrap().unwrap()
    }

    async fn look(store: &SqliteStore, question: &str) {
        assert!(store.question(QuestionId::parse(question).unwrap()).await.unwrap().unwrap().is_open());
    }

    #[test]
    fn a_question_that_was_looked_at_is_answered_from_memory_until_somebody_else_writes() {
        let dir = tempfile::TempDir::new().unwrap();
        let ((ours, we), (theirs, they)) = (open(dir.path()), open(dir.path()));
        run(async {
            let mut asked = Vec::new();
            for feature in ["a", "b"] {
                create(&they, feature).await;
                asked.push(ask(&they, feature, "p", true).await);
            }
            // The tables hold all of it, and our writer knows of nobody who has written since.
            theirs.next_deadline().await.unwrap();
            create(&we, "ours").await;
            for (feature, question) in ["a", "b"].into_iter().zip(&asked) {
                assert!(!remembers(&ours, feature), "{feature}");
                look(&ours, question).await;
                assert!(remembers(&ours, feature), "{feature}");
            }
            let told = answer(&we, "a", &asked[0], "ann").await.unwrap();
            assert_eq!((&told["resumed"], &told["feature_status"]), (&json!(true), &json!("planning")));
            answer(&they, "b", &asked[1], "bob").await.unwrap();
            let late = answer(&we, "b", &asked[1], "ann").await.unwrap_err();
            assert_eq!(late.code.as_str(), "question_already_answered");
            assert_eq!(late.facts["answered_by"], "bob");
            assert_eq!(ours.verify().await.unwrap(), Vec::<String>::new());
        });
    }

    #[test]
    fn a_feature_is_not_remembered_by_a_part_of_it() {
        let dir = tempfile::TempDir::new().unwrap();
        let (store, service) = open(dir.path());
        run(async {
            for feature in ["changed", "several", "long", "longer"] {
                create(&service, feature).await;
            }
            let changed = ask(&service, "changed", "p", true).await;
            let several = ask(&service, "several", "p", true).await;
            ask(&service, "several", "p", false).await;
            store.next_deadline().await.unwrap();
            // In the log alone, and then forgotten for the sake of others.
            call(&service, "feature.log_append", json!({"feature_id": "changed", "note": "n"}))
                .await
                .unwrap();
            for feature in ["long", "longer"] {
                ask(&service, feature, &"p".repeat(65_536), true).await;
            }
            for (feature, question) in [("changed", &changed), ("several", &several)] {
                assert!(!remembers(&store, feature), "{feature}");
                look(&store, question).await;
                assert!(!remembers(&store, feature), "{feature}");
                answer(&service, feature, question, "ann").await.unwrap();
            }
            assert_eq!(store.verify().await.unwrap(), Vec::<String>::new());
        });
    }
}
