//! The store's own service, with a waiter on the changes of the feature.

use super::{Cycle, Way, answer, question};
use crate::calls::{call, create};
use aop_kernel::ids::{FeatureId, QuestionId};
use aop_kernel::tools::Tool;
use aop_store::Service;

pub(super) const NAME: &str = "in process";

pub(super) struct InProcess {
    pub(super) service: Service,
}

impl Way for InProcess {
    fn name(&self) -> &'static str {
        NAME
    }

    fn caller(&self, id: &str) -> Cycle<'_> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (service, id) = (&self.service, id.to_owned());
        let feature = FeatureId::parse(&id).unwrap();
        runtime.block_on(create(service, &id));
        Box::new(move |number| {
            runtime.block_on(async {
                let asked = call(service, Tool::QuestionCreate, question(&id, number)).await;
                let mut changes = service.store.changes_of(&feature);
                let waiter = async {
                    let asked = QuestionId::parse(asked["question_id"].as_str().unwrap()).unwrap();
                    while service.store.question(asked.clone()).await.unwrap().unwrap().is_open() {
                        changes.changed().await.unwrap();
                    }
                };
                let answering =
                    call(service, Tool::QuestionAnswer, answer(&id, &asked["question_id"], number));
                tokio::join!(waiter, answering);
            });
        })
    }
}
