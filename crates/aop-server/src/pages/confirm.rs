//! Taking a question back, or asking it again: each on a page that says what will happen, because neither can be
//! undone by pressing a key once more.

use super::form::NOTE;
use super::question::Later;
use super::shell::{Here, Shell, Waiting};
use super::words::{goes_on, span};
use super::{Named, Page, page};
use crate::http::auth::{SignedForm, Visitor};
use crate::http::{App, SURFACE, Shared};
use crate::wait::question as find;
use aop_ask::is_blank;
use aop_kernel::Refusal;
use aop_kernel::feature::Feature;
use aop_kernel::ids::QuestionId;
use aop_kernel::policy::HumanInput;
use aop_kernel::question::{Question, QuestionState};
use aop_kernel::role::{Caller, Role};
use aop_kernel::status::Status;
use aop_kernel::time::Timestamp;
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
            let rules = &app.service.rules.human_input;
            (Some(step.button()), consequence(question, step, rules, shell.now, feature.as_ref()))
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

/// What will happen to a question, and to its feature unless that only carries it.
fn consequence(
    question: &Question,
    step: Step,
    rules: &HumanInput,
    now: Timestamp,
    feature: Option<&Feature>,
) -> String {
    let id = &question.feature_id;
    let feature = feature.filter(|feature| !feature.adhoc);
    let then = question.resume_status.as_ref().filter(|_| feature.is_some());
    match step {
        Step::Withdraw => match then {
            Some(then) => format!(
                "Nobody will answer it any more. {id} {}, and whoever asked is told that it got no answer.",
                goes_on(then.as_str())
            ),
            None if feature.is_some() => {
                format!("Nobody will answer it any more. {id} goes on as it does now.")
            }
            None => {
                "Nobody will answer it any more, and whoever asked is told that it got no answer.".to_owned()
            }
        },
        Step::Reopen => {
            // The settings of now decide, as they will when it is asked again.
            let time = match rules.deadline(now, question.asked.timeout_ms) {
                Some(until) => format!(
                    "It expires when nobody answers within {}.",
                    span(until.as_millis() - now.as_millis())
                ),
                None => "It never expires.".to_owned(),
            };
            let new = format!("It becomes a new open question with the same text. {time}");
            let Some(then) = then else { return new };
            let stands = feature.is_some_and(|feature| feature.status == Status::Blocked);
            let then = match Status::parse(then.as_str()) {
                Some(Status::Blocked) if !stands => "is blocked again".to_owned(),
                _ => goes_on(then.as_str()),
            };
            format!(
                "{new} Until it is answered, {id} waits and nothing else is done for it; afterwards it {then}."
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::fixture::World;
    use aop_kernel::question::ResumeStatus;
    use std::sync::Arc;

    #[tokio::test]
    async fn asking_again_says_how_long_it_can_be_answered_and_what_its_feature_does_meanwhile_and_then() {
        let world = World::new().await;
        world.feature("shop", "Shop").await;
        let store = world.service.store.as_ref();
        let (now, id) = (store.now().await.unwrap(), world.ask("shop", json!({"timeout_ms": 120_000})).await);
        let mut question = find(store, &QuestionId::parse(&id).unwrap()).await.unwrap();
        let mut feature = store.feature(question.feature_id.clone()).await.unwrap().unwrap();
        let told = |question: &Question, feature: &Feature, rules: &HumanInput| {
            consequence(question, Step::Reopen, rules, now, Some(feature))
        };
        let rules = HumanInput::default();
        assert_eq!(
            told(&question, &feature, &rules),
            "It becomes a new open question with the same text. It expires when nobody answers within 2 min. Until it is \
             answered, shop waits and nothing else is done for it; afterwards it goes on in planning."
        );
        Arc::make_mut(&mut question.asked).timeout_ms = None;
        assert!(told(&question, &feature, &rules).contains("within 15 min."));
        let patient = HumanInput { timeout_ms: 0, ..rules };
        assert!(told(&question, &feature, &patient).contains("It never expires."));
        question.resume_status = Some(ResumeStatus::Known(Status::Blocked));
        assert!(told(&question, &feature, &rules).ends_with("afterwards it is blocked again."));
        feature.status = Status::Blocked;
        assert!(told(&question, &feature, &rules).ends_with("afterwards it stays blocked."));
        feature.adhoc = true;
        assert!(!told(&question, &feature, &rules).contains("shop"), "nothing comes behind it");
        feature.adhoc = false;
        question.resume_status = None;
        assert!(!told(&question, &feature, &rules).contains("shop"), "it stops nothing");
    }
}
