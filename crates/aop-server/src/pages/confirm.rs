//! Taking a question back, or asking it again: each on a page that says what will happen, because neither can be
//! undone by pressing a key once more.

use super::form::NOTE;
use super::question::Later;
use super::shell::{Here, Shell, Waiting};
use super::{Named, Page, page};
use crate::http::auth::{SignedForm, Visitor};
use crate::http::{App, SURFACE, Shared};
use crate::wait::question as find;
use aop_ask::is_blank;
use aop_kernel::Refusal;
use aop_kernel::ids::QuestionId;
use aop_kernel::question::{Question, QuestionState};
use aop_kernel::role::{Caller, Role};
use aop_kernel::tools::Tool;
use aop_store::fresh_operation;
use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect};
use axum::routing::get;
use serde_json::{Value, json};

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route(
            "/questions/{id}/withdraw",
            get(|app, visitor, id| ask(app, visitor, id, Step::Withdraw))
                .post(|app, id, form| take(app, id, form, Step::Withdraw)),
        )
        .route(
            "/questions/{id}/reopen",
            get(|app, visitor, id| ask(app, visitor, id, Step::Reopen))
                .post(|app, id, form| take(app, id, form, Step::Reopen)),
        )
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Withdraw,
    Reopen,
}

impl Step {
    fn tool(self) -> Tool {
        match self {
            Step::Withdraw => Tool::QuestionWithdraw,
            Step::Reopen => Tool::QuestionReopen,
        }
    }

    fn button(self) -> &'static str {
        match self {
            Step::Withdraw => "Withdraw the question",
            Step::Reopen => "Ask again",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Step::Withdraw => "withdraw",
            Step::Reopen => "reopen",
        }
    }
}

#[derive(Template)]
#[template(path = "confirm.html")]
struct ConfirmPage {
    shell: Shell,
    id: String,
    prompt: String,
    title: &'static str,
    word: &'static str,
    /// The open question by which it was asked again already.
    again: Option<String>,
    /// `None` when it cannot be done any more.
    button: Option<&'static str>,
    consequence: String,
    note: String,
    operation: String,
    error: Option<String>,
}

async fn ask(State(app): State<Shared>, visitor: Visitor, Named(id): Named<String>, step: Step) -> Page {
    let question = find(app.service.store.as_ref(), &QuestionId::parse(&id)?).await?;
    let confirm = view(&app, &visitor, &question, step, None, String::new()).await?;
    page(StatusCode::OK, &confirm)
}

async fn take(State(app): State<Shared>, Named(id): Named<String>, form: SignedForm, step: Step) -> Page {
    let question = find(app.service.store.as_ref(), &QuestionId::parse(&id)?).await?;
    let operation = form.field("operation_id").map_or_else(fresh_operation, str::to_owned);
    let note = form.field(NOTE).map(|note| note.replace("\r\n", "\n")).unwrap_or_default();
    let mut input = json!({"feature_id": question.feature_id, "question_id": question.id,
        "operation_id": operation});
    if !is_blank(&note) {
        input["note"] = json!(note);
    }
    match app.service.call(step.tool(), &Caller::new(Role::Human), &input, SURFACE).await {
        Ok(envelope) => {
            let data = envelope.data();
            let id = data.get("question_id").and_then(Value::as_str).unwrap_or(question.id.as_str());
            Ok(Redirect::to(&format!("/questions/{id}")).into_response())
        }
        Err(refusal) => {
            let status = StatusCode::from_u16(refusal.code.http_status()).unwrap_or(StatusCode::CONFLICT);
            // Whatever stood in the way: where the question stands now is what somebody has to know.
            let question = find(app.service.store.as_ref(), &question.id).await?;
            let confirm = view(&app, &form.visitor, &question, step, Some(&refusal), note).await?;
            page(status, &confirm)
        }
    }
}

async fn view(
    app: &App,
    visitor: &Visitor,
    question: &Question,
    step: Step,
    refused: Option<&Refusal>,
    note: String,
) -> Result<ConfirmPage, super::Trouble> {
    let id = question.id.to_string();
    let mut shell = Shell::new(app, visitor, Here::Inbox, format!("/questions/{id}/{}", step.word())).await?;
    shell.open = Waiting::of(&app.service.store.inbox(0, 0).await?);
    let title = match step {
        Step::Withdraw => "Withdraw this question?",
        Step::Reopen => "Ask this question again?",
    };
    let again = match step {
        Step::Withdraw => None,
        Step::Reopen => Later::of(app, question).await?.filter(|later| later.is_open),
    };
    let (button, consequence) = match too_late(question, step, again.is_some()) {
        Some(why) => (None, why.to_owned()),
        None => {
            let feature = app.service.store.feature(question.feature_id.clone()).await?;
            (Some(step.button()), consequence(question, step, feature.is_some_and(|feature| feature.adhoc)))
        }
    };
    Ok(ConfirmPage {
        shell,
        prompt: super::markdown::asked_in_short(question.asked.question_type, &question.asked.prompt),
        id,
        again: again.map(|later| later.id),
        title,
        word: step.word(),
        button,
        consequence,
        note,
        operation: fresh_operation(),
        error: refused.map(|refusal| format!("{}. {}", refusal.message, refusal.hint)),
    })
}

/// Why a question can be neither withdrawn nor asked again, as it stands now.
fn too_late(question: &Question, step: Step, is_asked_again: bool) -> Option<&'static str> {
    match (&question.state, step) {
        (QuestionState::Expired { .. } | QuestionState::Withdrawn { .. }, Step::Reopen) if is_asked_again => {
            Some("It was asked again already, and that question is still open.")
        }
        (QuestionState::Open, Step::Withdraw)
        | (QuestionState::Expired { .. } | QuestionState::Withdrawn { .. }, Step::Reopen) => None,
        (QuestionState::Open, Step::Reopen) => Some("It is still open, and waits for an answer."),
        (QuestionState::Answered { .. }, _) => Some("It is answered already, and the first answer stands."),
        (QuestionState::Expired { .. }, Step::Withdraw) => {
            Some("Its time was up already, without an answer.")
        }
        (QuestionState::Withdrawn { .. }, Step::Withdraw) => Some("It has been withdrawn already."),
    }
}

/// What will happen.
fn consequence(question: &Question, step: Step, is_lone: bool) -> String {
    let feature = &question.feature_id;
    let back = question.resume_status.as_ref().map(|status| super::words::resume(status.as_str()));
    match (step, back) {
        (Step::Withdraw, _) if is_lone => {
            "Nobody will answer it any more, and whoever asked is told that it got no answer.".to_owned()
        }
        (Step::Withdraw, Some(back)) => format!(
            "Nobody will answer it any more. {feature} goes on in {back}, and the agent is told that it got no answer."
        ),
        (Step::Withdraw, None) => {
            format!("Nobody will answer it any more. {feature} goes on as it does now.")
        }
        (Step::Reopen, _) if is_lone => {
            "It becomes a new open question with the same text and the same time to answer.".to_owned()
        }
        (Step::Reopen, _) => {
            format!(
                "It becomes a new open question of {feature} with the same text and the same time to answer."
            )
        }
    }
}
