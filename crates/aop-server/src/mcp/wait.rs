//! The wait of a call: as any other, and over when the client takes the call back or its connection is lost.

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
        let wait = Wait { service: &self.service, closed: &self.closed, patience: self.patience };
        let mut gone = self.gone.clone();
        // A connection whose watch is gone is gone as well. What is waited for is dropped before the next await.
        let lost = async move { drop(gone.wait_for(|gone| *gone).await) };
        tokio::select! {
            closed = wait.until_closed(asked) => closed,
            () = lost => self.question(&asked.id).await,
            () = context.ct.cancelled() => self.question(&asked.id).await,
        }
    }

    /// One question that has to be there.
    pub(super) async fn question(&self, id: &QuestionId) -> Result<Question, Refusal> {
        wait::question(self.service.store.as_ref(), id).await
    }
}
