//! What every benchmark of the store calls.

use aop_kernel::Envelope;
use aop_kernel::ids::QuestionId;
use aop_kernel::policy::{HumanInput, Rules};
use aop_kernel::role::{Caller, Role};
use aop_kernel::tools::Tool;
use aop_store::{Service, Store, fresh_operation};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// The store with rules under which nothing expires.
pub(crate) fn service(store: Arc<dyn Store>) -> Service {
    let human_input = HumanInput { timeout_ms: 0, ..HumanInput::default() };
    let rules = Arc::new(Rules { human_input, check_schema: |_| Ok(()), check_instance: |_, _| Ok(()) });
    Service::new(store, rules)
}

/// Calls a tool; what it tells.
pub(crate) async fn call(service: &Service, tool: Tool, input: &Value) -> Envelope {
    service.call(tool, &Caller::new(Role::Human), input, "bench").await.unwrap()
}

/// The question that a call told of.
pub(crate) fn question_id(told: &Envelope) -> QuestionId {
    #[derive(Deserialize)]
    struct Told {
        data: Data,
    }
    #[derive(Deserialize)]
    struct Data {
        question_id: QuestionId,
    }
    serde_json::from_str::<Told>(told.as_str()).unwrap().data.question_id
}

pub(crate) async fn create(service: &Service, feature: &str) {
    let input = json!({"feature_id": feature, "title": "bench", "operation_id": fresh_operation()});
    call(service, Tool::FeatureCreate, &input).await;
}
