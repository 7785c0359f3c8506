//! Forms under the stateless protocol (2026-07-28), where a server sends no requests: the call returns at once with
//! the form, and the client makes the same call again with the reply. In between nothing is kept here but the
//! question itself, so that any server may take the second call. The state that the client echoes is the question's
//! id and is trusted no further than that: it only ties a reply to the question that was shown.

use super::elicit::{elicitation, is_stateless};
use super::{Handler, elicit::Offer};
use aop_kernel::question::Question;
use aop_kernel::{Envelope, Refusal};
use rmcp::RoleServer;
use rmcp::model::{CallToolRequestParams, InputRequest, InputRequests, InputRequiredResult};
use rmcp::service::RequestContext;
use serde_json::Value;

/// The name of the one thing that is asked for.
const FORM: &str = "form";

/// What becomes of a call.
pub(super) enum Told {
    /// It is over.
    Envelope(Envelope),
    /// The client shows this and calls again.
    Form(InputRequiredResult),
}

/// What a second call brings along.
#[derive(Default)]
pub(super) struct Reply {
    state: Option<String>,
    form: Option<Value>,
}

impl Reply {
    /// Takes it out of a call.
    pub(super) fn take(request: &mut CallToolRequestParams) -> Self {
        let form = request.input_responses.take().and_then(|mut replies| replies.remove(FORM));
        Reply { state: request.request_state.take(), form }
    }
}

impl Handler {
    /// Waits for the end of a question and tells it, or hands out the form.
    pub(super) async fn settle(
        &self,
        question: &Question,
        reply: Reply,
        context: &RequestContext<RoleServer>,
    ) -> Result<Told, Refusal> {
        if is_stateless(context) {
            if reply.state.as_deref() == Some(question.id.as_str()) {
                // A reply that is no answer closes the form; the question stays on every other surface.
                if let Some(form) = self.dialogue(question, context) {
                    self.heard(question, form, reply.form).await;
                }
            } else if let Some(form) = self.hand_out(question, context) {
                return Ok(Told::Form(form));
            }
        }
        let closed = self.until_closed_anywhere(question, context).await?;
        self.tell(&closed, context).await.map(Told::Envelope)
    }

    fn hand_out(
        &self,
        question: &Question,
        context: &RequestContext<RoleServer>,
    ) -> Option<InputRequiredResult> {
        let Offer(form) = self.offer(question, context)?;
        let request = elicitation(question, &form)?;
        let requests = InputRequests::from([(FORM.to_owned(), InputRequest::Elicitation(request))]);
        Some(InputRequiredResult::new(Some(requests), Some(question.id.to_string())))
    }
}
