//! Forms under the stateless protocol (2026-07-28), where a server sends no requests: the call returns at once with
//! the form, and the client makes the same call again with the reply. In between nothing is kept here but the
//! question itself, so that any server may take the second call, and a form that was lost comes back with the same call.
//! Only that one was declined is remembered, by this server. The state that the client echoes is the question's
//! id, behind it whatever was accepted before where one round was not enough. It is trusted no further than a reply: it
//! ties one to the question that was shown, and says nothing that the client could not have said in its replies.

use super::Handler;
use super::elicit::{elicitation, is_stateless};
use aop_ask::Dialogue;
use aop_kernel::ids::QuestionId;
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

    /// What was accepted in the rounds before, if this is a reply to the form of that question.
    fn earlier(&self, id: &QuestionId) -> Option<Vec<Value>> {
        match self.state.as_deref()?.strip_prefix(id.as_str())? {
            "" => Some(Vec::new()),
            earlier => serde_json::from_str(earlier).ok(),
        }
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
            let forms = &self.memory.forms;
            let form = match reply.earlier(&question.id) {
                Some(earlier) => {
                    let next = self.next_round(question, earlier, reply.form, context).await;
                    if next.is_none() {
                        // A reply that is no answer closes the form; the question stays on every other surface.
                        forms.close(&question.id);
                    }
                    next
                }
                None if forms.is_closed(&question.id) => None,
                None => self.dialogue(question, context).and_then(|form| hand_out(question, &form, &[])),
            };
            if let Some(form) = form {
                return Ok(Told::Form(form));
            }
        }
        let closed = self.until_closed_anywhere(question, context).await?;
        self.tell(&closed, context).await.map(Told::Envelope)
    }

    /// Takes a reply. The form of what is left to ask, if anything is.
    async fn next_round(
        &self,
        question: &Question,
        mut replies: Vec<Value>,
        reply: Option<Value>,
        context: &RequestContext<RoleServer>,
    ) -> Option<InputRequiredResult> {
        let mut form = self.dialogue(question, context)?;
        for earlier in &replies {
            form.reply(earlier).ok()?;
        }
        replies.extend(reply.clone());
        let form = self.heard(question, form, reply).await?;
        hand_out(question, &form, &replies)
    }
}

/// The form as it stands after these replies.
fn hand_out(question: &Question, form: &Dialogue, replies: &[Value]) -> Option<InputRequiredResult> {
    let request = elicitation(question, form)?;
    let requests = InputRequests::from([(FORM.to_owned(), InputRequest::Elicitation(request))]);
    let earlier = if replies.is_empty() { String::new() } else { Value::from(replies).to_string() };
    Some(InputRequiredResult::new(Some(requests), Some(format!("{}{earlier}", question.id))))
}
