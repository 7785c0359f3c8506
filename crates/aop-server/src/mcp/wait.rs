//! The wait of a call: as any other, and over when the client takes the call back.

use super::Handler;
use crate::wait::{self, Wait};
use aop_kernel::Refusal;
use aop_kernel::ids::QuestionId;
use aop_kernel::question::Question;
use rmcp::RoleServer;
use rmcp::service::RequestContext;

impl Handler {
    /// The question when it is closed, or as it stands when patience is over or nobody listens any more.
    pub(super) async fn until_closed(
        &self,
        asked: &Question,
        context: &RequestContext<RoleServer>,
    ) -> Result<Question, Refusal> {
        let wait = Wait {
            service: &self.service,
            files: &self.files,
            wakes: &self.wakes,
            closed: &self.closed,
            patience: self.patience,
        };
        tokio::select! {
            closed = wait.until_closed(asked) => closed,
            () = context.ct.cancelled() => self.question(&asked.id).await,
        }
    }

    /// One question that has to be there.
    pub(super) async fn question(&self, id: &QuestionId) -> Result<Question, Refusal> {
        wait::question(self.service.store.as_ref(), id).await
    }
}
