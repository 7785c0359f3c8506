//! Tests only: how SQLite goes about each statement the store really runs, so that none of them can come to
//! read a whole table without a test noticing.

use rusqlite::Connection;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The plan of every statement run so far in this process.
static PLANS: Mutex<BTreeMap<String, Vec<String>>> = Mutex::new(BTreeMap::new());

/// Keeps the plan of a statement.
pub(super) fn note(connection: &Connection, sql: &str) {
    let mut plans = PLANS.lock().unwrap_or_else(PoisonError::into_inner);
    if plans.contains_key(sql) || sql == "ROLLBACK" {
        return;
    }
    let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let mut rows = explain.raw_query();
    let mut plan = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        plan.push(row.get(3).unwrap());
    }
    plans.insert(sql.split_whitespace().collect::<Vec<_>>().join(" "), plan);
}

mod tests {
    use super::*;
    use crate::{EventPage, FeaturePage, ManualClock, QuestionPage, Service, SqliteStore, Store};
    use aop_kernel::policy::{HumanInput, Rules};
    use aop_kernel::question::QuestionStatus;
    use aop_kernel::role::{Caller, Role};
    use aop_kernel::time::Timestamp;
    use aop_kernel::tools::{QuestionFilter, Tool};
    use serde_json::{Value, json};
    use std::sync::Arc;

    /// Does everything once that a project does all day.
    async fn a_day(service: &Service, clock: &ManualClock) {
        let call = async |tool: &str, mut input: Value| {
            let tool = Tool::find(tool).unwrap();
            if tool.is_mutating() {
                input["operation_id"] = json!(ulid::Ulid::generate().to_string());
            }
            service.call(tool, &Caller::new(Role::Human), &input, "test").await.unwrap().data()
        };
        call("feature.create", json!({"feature_id": "a", "title": "t", "spec": "s"})).await;
        let ask = json!({"feature_id": "a", "role": "builder", "session_id": "s", "prompt": "p",
            "question_type": "clarification"});
        let id = call("feature.question_create", ask.clone()).await["question_id"].clone();
        let answer = json!({"feature_id": "a", "question_id": id, "answer": "x", "answered_by": "ann"});
        call("feature.question_answer", answer).await;
        call("feature.question_create", ask).await;
        let store = &service.store;
        for feature in [None, Some(aop_kernel::ids::FeatureId::parse("a").unwrap())] {
            for filter in [
                QuestionFilter::All,
                QuestionFilter::Only(QuestionStatus::Open),
                QuestionFilter::Only(QuestionStatus::Answered),
            ] {
                let mut page = QuestionPage { feature: feature.clone(), filter, after: None, limit: 50 };
                store.records(page.clone()).await.unwrap();
                if let Some(last) = store.questions(page.clone()).await.unwrap().pop() {
                    page.after = Some((last.created_at, last.id));
                }
                store.records(page.clone()).await.unwrap();
                store.questions(page.clone()).await.unwrap();
                store.records(QuestionPage { limit: usize::MAX, ..page }).await.unwrap();
            }
            store.events(EventPage { after: 1, feature: feature.clone(), limit: 9 }).await.unwrap();
            store.features(FeaturePage { only: feature, ..FeaturePage::default() }).await.unwrap();
        }
        call("feature.get_context", json!({"feature_id": "a"})).await;
        store.next_deadline().await.unwrap();
        store.inbox(0, 9).await.unwrap();
        let a = aop_kernel::ids::FeatureId::parse("a").unwrap();
        store.last_events(a, Some(9), 9).await.unwrap();
        clock.advance(10_000_000);
        store.expire().await.unwrap();
        let (changed, _) = store.changed_since(2).await.unwrap();
        store.feature_files(changed[0].0.clone(), 2).await.unwrap();
    }

    #[test]
    fn no_statement_reads_a_whole_table() {
        let dir = tempfile::TempDir::new().unwrap();
        let clock = Arc::new(ManualClock::at(Timestamp::from_millis(1_000_000)));
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(dir.path(), clock.clone()).unwrap());
        let rules = Rules {
            human_input: HumanInput::default(),
            check_schema: |_| Ok(()),
            check_instance: |_, _| Ok(()),
        };
        let service = Service::new(store, Arc::new(rules));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(a_day(&service, &clock));
        let plans = PLANS.lock().unwrap_or_else(PoisonError::into_inner).clone();
        assert!(plans.len() > 25, "the day was a full one");
        for (sql, plan) in plans {
            let plan = plan.join("; ");
            assert!(!plan.contains("SCAN"), "{sql}\n{plan}");
            let about = |words: &[&str]| words.iter().all(|word| sql.contains(word));
            let index = if about(&["SELECT q.record FROM projects", "EXISTS", "LIMIT"]) {
                assert!(plan.starts_with("SEARCH p ") && !plan.contains("TEMP B-TREE"), "{sql}\n{plan}");
                "SEARCH q USING INDEX questions_inbox"
            } else if about(&["FROM questions", "UNION ALL"]) {
                assert!(plan.contains("MERGE") && !plan.contains("TEMP B-TREE"), "{sql}\n{plan}");
                "questions_inbox"
            } else if about(&["FROM questions", "expires_at <="])
                || about(&["FROM questions", "AND expires_at > "])
            {
                "questions_due"
            } else if about(&["FROM questions", "status = "])
                && !about(&["feature_id = "])
                && !about(&["question_id = "])
                && !about(&["min("])
            {
                "questions_inbox"
            } else {
                continue;
            };
            assert!(plan.contains(index), "{sql}\n{plan}");
        }
    }
}
