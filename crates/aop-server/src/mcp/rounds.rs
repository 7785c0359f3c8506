//! Forms under the stateless protocol (2026-07-28), where a server sends no requests: the call returns at once with
//! the form, and the client makes the same call again with the reply. In between nothing is kept here but the
//! question itself, so that any server may take the second call, and a form that was lost comes back with the same call.
//! Only that one was declined is remembered, by this server. The state that the client echoes is the question's
//! id, behind it whatever was accepted before where one round was not enough. It is trusted no further than a reply: it
//! ties one to the question that was shown, and says nothing that the client could not have said in its replies.

use super::Handler;
use super::elicit::{Form, elicitation, is_stateless};
use aop_kernel::ids::QuestionId;
use aop_kernel::question::Question;
use aop_kernel::{Envelope, Refusal};
use rmcp::RoleServer;
use rmcp::model::{CallToolRequestParams, InputRequest, InputRequests, InputRequiredResult};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

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
            let form = match reply.earlier(&question.id) {
                Some(earlier) => self.next_round(question, earlier, reply.form, context).await?,
                None if self.memory.forms.is_closed(&question.id) => None,
                None => self.form(question, context),
            };
            if let Some(form) = form.and_then(|form| hand_out(question, &form)) {
                return Ok(Told::Form(form));
            }
        }
        let closed = self.until_closed_anywhere(question, context).await?;
        self.tell(&closed, context).await.map(Told::Envelope)
    }

    /// Takes a reply. The form of what is left to ask, or asked again, if anything is.
    async fn next_round(
        &self,
        question: &Question,
        earlier: Vec<Value>,
        reply: Option<Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<Form>, Refusal> {
        let Some(mut form) = self.form(question, context) else { return Ok(None) };
        if earlier.into_iter().any(|earlier| form.reply(earlier).is_none()) {
            return Ok(None);
        }
        self.heard(question, form, reply).await
    }
}

/// The form as it stands after its replies.
fn hand_out(question: &Question, form: &Form) -> Option<InputRequiredResult> {
    let request = elicitation(question, form)?;
    let requests = InputRequests::from([(FORM.to_owned(), InputRequest::Elicitation(request))]);
    let earlier = if form.replies.is_empty() { String::new() } else { json!(form.replies).to_string() };
    Some(InputRequiredResult::new(Some(requests), Some(format!("{}{earlier}", question.id))))
}
