//! What reaches the store from outside: tool calls, histories, and schemas that agents bring along.

use aop_kernel::policy::{HumanInput, Rules};
use aop_kernel::replay::Replay;
use aop_kernel::role::{Caller, Role};
use aop_kernel::time::Timestamp;
use aop_kernel::tools::Tool;
use aop_store::{Entry, ManualClock, MemoryStore, Service, Store, StoreError};
use serde_json::Value;
use std::sync::Arc;

/// A new project in memory, whose store checks itself after every operation.
fn project() -> (Service, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(Timestamp::from_millis(1_772_661_600_000)));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(clock.clone()));
    let rules = Rules {
        human_input: HumanInput { max_open_questions_per_feature: 3, ..HumanInput::default() },
        check_schema: aop_schema::check_schema,
        check_instance: aop_schema::check_instance,
    };
    (Service::new(store, Arc::new(rules)), clock)
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

/// Two JSON values: a schema and a value. Neither takes long, whatever they are.
pub(crate) fn schema(data: &[u8]) {
    let Ok(Value::Array(parts)) = serde_json::from_slice(data) else { return };
    let [schema, value] = parts.as_slice() else { return };
    if aop_schema::check_schema(schema).is_ok() {
        let _ = aop_schema::check_instance(schema, value);
    }
}

/// A list of calls `[role, tool, arguments]`; a number lets so many milliseconds pass. `QUESTION` stands for the id of
/// the question asked last. Whatever was called, the store is what its log says.
pub(crate) fn tool_calls(data: &[u8]) {
    let Ok(Value::Array(calls)) = serde_json::from_slice::<Value>(data) else { return };
    let (service, clock) = project();
    wait(async {
        let mut question = String::from("none");
        for call in calls.iter().take(32) {
            if let Some(millis) = call.as_u64() {
                clock.advance(i64::try_from(millis % 100_000_000).unwrap_or_default());
                continue;
            }
            let text = |at: usize| call.get(at).and_then(Value::as_str).unwrap_or_default();
            let (Some(role), Ok(tool)) = (Role::parse(text(0)), Tool::find(text(1))) else { continue };
            let mut input = call.get(2).cloned().unwrap_or_default();
            if input["question_id"] == "QUESTION" {
                input["question_id"] = question.clone().into();
            }
            if let Ok(envelope) = service.call(tool, &Caller::new(role), &input, "fuzz").await
                && let Some(id) = envelope.data()["question_id"].as_str()
            {
                question = id.to_owned();
            }
        }
        let findings = service.store.verify().await.expect("it can be read");
        assert!(findings.is_empty(), "{findings:?}");
    });
}

/// The lines of an export: refused as a whole, or restored to what a replay of the lines gives.
pub(crate) fn history(data: &[u8]) {
    let lines = data.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let Ok(entries) = lines.map(serde_json::from_slice::<Entry>).collect::<Result<Vec<_>, _>>() else {
        return;
    };
    let mut replay = Replay::default();
    for entry in &entries {
        let line = serde_json::to_vec(entry).expect("an entry is JSON");
        assert_eq!(
            serde_json::from_slice::<Entry>(&line).as_ref().ok(),
            Some(entry),
            "an entry does not come back"
        );
        if let Entry::Event(recorded) = entry {
            replay.apply(recorded);
        }
    }
    let (service, _) = project();
    wait(async {
        let count = entries.len();
        let given: Vec<Result<Entry, StoreError>> = entries.into_iter().map(Ok).collect();
        let restored = service.store.restore(Box::new(given.into_iter())).await;
        let findings = service.store.verify().await.expect("it can be read");
        assert!(findings.is_empty(), "after {count} entries ({restored:?}): {findings:?}");
    });
}
