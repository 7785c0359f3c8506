//! The store's own service, with a waiter on the changes of the feature.

use super::{Cycle, Way, answer, question};
use crate::calls::{call, create, question_id};
use crate::wait::wait;
use aop_kernel::ids::FeatureId;
use aop_kernel::tools::Tool;
use aop_store::{Service, fresh_operation};
use serde_json::Value;

pub(super) const NAME: &str = "in process";

pub(super) struct InProcess {
    pub(super) service: Service,
}

impl Way for InProcess {
    fn name(&self) -> &'static str {
        NAME
    }

    fn caller(&self, id: &str) -> Cycle<'_> {
        let (service, id) = (&self.service, id.to_owned());
        let feature = FeatureId::parse(&id).unwrap();
        wait(create(service, &id));
        // One call is like the other but for its operation and its question.
        let mut asks = question(&id);
        let mut answers = answer(&id, &Value::Null);
        Box::new(move || {
            asks["operation_id"] = fresh_operation().into();
            answers["operation_id"] = fresh_operation().into();
            wait(async {
                let asked = question_id(&call(service, Tool::QuestionCreate, &asks).await);
                answers["question_id"] = asked.as_str().into();
                let mut changes = service.store.changes_of(&feature);
                let waiter = async {
                    while service.store.question(asked.clone()).await.unwrap().unwrap().is_open() {
                        changes.changed().await.unwrap();
                    }
                };
                let answering = call(service, Tool::QuestionAnswer, &answers);
                tokio::join!(waiter, answering);
            });
        })
    }
}
