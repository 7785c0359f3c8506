//! Tests only: a project in memory, a visitor, and questions to show.
use crate::Door;
use crate::http::Shared;
use aop_kernel::ids::OperationId;
use aop_kernel::policy::{HumanInput, Rules};
use aop_kernel::question::Asked;
use aop_kernel::role::{Caller, Role};
use aop_kernel::time::Timestamp;
use aop_kernel::tools::{Tool, lone_feature, question_request};
use aop_kernel::{Refusal, lifecycle::Command};
use aop_store::{ManualClock, MemoryStore, Service, Store, fresh_operation};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// A project in memory.
pub(crate) struct World {
    pub(crate) service: Service,
    pub(crate) clock: Arc<ManualClock>,
}

fn rules() -> Rules {
    let human_input = HumanInput { max_open_questions_per_feature: 9, ..HumanInput::default() };
    Rules { human_input, check_schema: |_| Ok(()), check_instance: |_, _| Ok(()) }
}

impl World {
    pub(crate) async fn new() -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_millis(1_772_661_600_000)));
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(clock.clone()));
        World { service: Service::new(store, Arc::new(rules())), clock }
    }

    /// A door for a client that shows no forms and waits for nobody.
    pub(crate) fn door(&self, caller: Caller) -> Door {
        Door {
            service: self.service.clone(),
            caller,
            files: None,
            patience: Duration::ZERO,
            elicits: false,
            engine: None,
            signs: None,
            token: None,
            warn: |_| (),
        }
    }

    /// A server of it, whose own token is `token`; it stops when it is told so.
    pub(crate) async fn app(&self) -> (Shared, watch::Sender<bool>) {
        let (switch, stopping) = watch::channel(false);
        (crate::fuzz::app(&self.service, stopping).await, switch)
    }

    pub(crate) async fn try_call(&self, tool: Tool, mut input: Value) -> Result<Value, Refusal> {
        input["operation_id"] = json!(ulid::Ulid::generate().to_string());
        Ok(self.service.call(tool, &Caller::new(Role::Human), &input, "test").await?.data())
    }

    pub(crate) async fn feature(&self, id: &str, title: &str) {
        let input = json!({"feature_id": id, "title": title});
        self.try_call(Tool::FeatureCreate, input).await.unwrap();
    }

    /// Asks; the question's id.
    pub(crate) async fn ask(&self, feature: &str, changes: Value) -> String {
        let mut input = question(changes);
        input["feature_id"] = json!(feature);
        let data = self.try_call(Tool::QuestionCreate, input).await.unwrap();
        data["question_id"].as_str().unwrap().to_owned()
    }

    /// Asks outside any feature; the question's id.
    pub(crate) async fn ask_outside(&self, prompt: &str) -> String {
        let operation = OperationId::parse(&fresh_operation()).unwrap();
        let feature = lone_feature(&operation);
        let input = question(json!({"feature_id": feature, "prompt": prompt, "operation_id": operation}));
        let request = question_request(&Caller::new(Role::Human), &input, "test", &rules()).unwrap();
        let data =
            self.service.submit(request.bringing_feature(prompt.into())).await.unwrap().envelope.data();
        data["question_id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn answer(&self, feature: &str, id: &str, answer: Value) {
        let input = json!({"feature_id": feature, "question_id": id, "answer": answer, "answered_by": "ada"});
        self.try_call(Tool::QuestionAnswer, input).await.unwrap();
    }
}

fn question(changes: Value) -> Value {
    let mut input = json!({"feature_id": "shop", "role": "builder", "session_id": "s-1",
        "question_type": "clarification", "prompt": "Which?", "operation_id": "op-1"});
    for (key, value) in changes.as_object().unwrap() {
        input[key] = value.clone();
    }
    input
}

/// What a question with these arguments asks.
pub(crate) fn asked(changes: Value) -> Arc<Asked> {
    let request = question_request(&Caller::new(Role::Human), &question(changes), "test", &rules()).unwrap();
    let Command::CreateQuestion(create) = request.command else { panic!("asking creates a question") };
    create.asked
}
