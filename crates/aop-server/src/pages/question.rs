//! One question: what is asked, the form to answer it, what the agent was doing, and how it ended. The first answer
//! wins; whoever comes later is told who was first, and keeps what they typed.

use super::feature::Entry;
use super::features::is_in_work;
use super::form::{Form, Shape};
use super::outcome::Outcome;
use super::shell::{Here, Shell, Waiting};
use super::words::{self, When};
use super::{Named, Page, Trouble, markdown, page};
use crate::details::details;
use crate::http::auth::{SignedForm, Visitor};
use crate::http::{App, SURFACE, Shared};
use crate::wait::question as find;
use aop_kernel::event::{Event, Stamped};
use aop_kernel::ids::QuestionId;
use aop_kernel::log::sentence;
use aop_kernel::question::{Question, QuestionState, ResolutionMode};
use aop_kernel::role::{Caller, Role};
use aop_kernel::tools::Tool;
use aop_kernel::{ErrorCode, Refusal};
use aop_store::{Store, fresh_operation};
use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect};
use axum::routing::{get, post};
use serde_json::json;

/// So many lines of the log stand beside a question.
const LINES: usize = 6;
/// The log is read back in pages, the first of this size and each four times as long as the one before …
const FIRST_PAGE: usize = 3 * LINES;
/// … up to this one: some thousand events.
const LAST_PAGE: usize = FIRST_PAGE << 8;
/// Questions that were asked again are followed so far back.
const CHAIN: usize = 5;
/// The title for an answer that nobody's came before.
const TOO_LATE: &str = "Your answer came too late";

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/questions/{id}", get(show))
        .route("/questions/{id}/answer", post(answer).get(to_the_question))
}

/// A form that came back refused stands at the address it was sent to; whoever loads that again wants the question.
async fn to_the_question(Named(id): Named<String>) -> Page {
    Ok(Redirect::to(&format!("/questions/{}", QuestionId::parse(&id)?)).into_response())
}

#[derive(Template)]
#[template(path = "question.html")]
struct QuestionPage {
    shell: Shell,
    id: String,
    feature_id: String,
    /// How the feature is called.
    feature: String,
    /// `None` for a lone question: the feature it brought along is called like its prompt.
    feature_title: Option<String>,
    about: &'static str,
    tone: &'static str,
    caution: Option<&'static str>,
    blocking: bool,
    prompt: String,
    asked: When,
    deadline: Option<When>,
    /// The deadline as the beginning of what happens then.
    after: Option<When>,
    urgency: &'static str,
    timeout: String,
    /// The form, while it is open.
    form: Option<Form>,
    operation: String,
    outcome: Option<Outcome>,
    late: Option<Late>,
    /// What its feature does after an answer.
    then: Option<String>,
    /// Whether it does so only once somebody starts a run.
    idle: bool,
    role: &'static str,
    session: String,
    engine: Option<String>,
    cwd: Option<String>,
    /// Whether something is allowed by an answer: its details stand before the form, whatever the width of the page.
    grants: bool,
    details: Vec<(String, String)>,
    log: Vec<Entry>,
    /// Whether more happened since than is looked through.
    long_ago: bool,
    earlier: Vec<(String, &'static str)>,
    /// The question by which a person asked it again.
    later: Option<Later>,
    next: Option<String>,
}

/// The question by which a person asked another one again, last.
pub(super) struct Later {
    pub(super) id: String,
    status: &'static str,
    pub(super) is_open: bool,
}

impl Later {
    pub(super) async fn of(app: &App, question: &Question) -> Result<Option<Self>, Refusal> {
        let last = app.service.last_asked(question.clone()).await?;
        Ok((last.id != question.id).then(|| Later {
            id: last.id.to_string(),
            status: last.state.status().as_str(),
            is_open: last.is_open(),
        }))
    }
}

/// Somebody who was too late.
struct Late {
    title: &'static str,
    message: String,
    kept: Vec<(String, String)>,
}

async fn show(State(app): State<Shared>, visitor: Visitor, Named(id): Named<String>) -> Page {
    let question = find(app.service.store.as_ref(), &QuestionId::parse(&id)?).await?;
    let form = question.is_open().then(|| Form::of(&question.asked));
    page(StatusCode::OK, &view(&app, &visitor, &question, form, None).await?)
}

async fn answer(State(app): State<Shared>, Named(id): Named<String>, form: SignedForm) -> Page {
    let question = find(app.service.store.as_ref(), &QuestionId::parse(&id)?).await?;
    let mut filled = Form::of(&question.asked);
    filled.fill(&form.fields);
    let Some(value) = filled.answer() else {
        return again(&app, &form.visitor, &question, filled).await;
    };
    let operation = form.field("operation_id").map_or_else(fresh_operation, str::to_owned);
    let input = json!({"feature_id": question.feature_id, "question_id": question.id, "answer": value,
        "answered_by": form.visitor.name().unwrap_or("human"), "operation_id": operation});
    let told = app.service.call(Tool::QuestionAnswer, &Caller::new(Role::Human), &input, SURFACE).await;
    match told {
        Ok(_) => Ok(Redirect::to(&format!("/questions/{}", question.id)).into_response()),
        Err(refusal) if refusal.code == ErrorCode::QuestionInvalidAnswer => {
            filled.refuse(&refusal.reasons());
            again(&app, &form.visitor, &question, filled).await
        }
        Err(refusal) => {
            // Whatever stood in the way: when the question is closed, that is what somebody has to know.
            let question = find(app.service.store.as_ref(), &question.id).await?;
            if question.is_open() {
                filled.error = Some(format!("{}. {}", refusal.message, refusal.hint));
                return again(&app, &form.visitor, &question, filled).await;
            }
            let late = Late::of(&question, &filled);
            page(StatusCode::CONFLICT, &view(&app, &form.visitor, &question, None, Some(late)).await?)
        }
    }
}

/// The same page with what was typed and what is wrong with it.
async fn again(app: &App, visitor: &Visitor, question: &Question, mut form: Form) -> Page {
    if !question.is_open() {
        let late = Late::of(question, &form);
        return page(StatusCode::CONFLICT, &view(app, visitor, question, None, Some(late)).await?);
    }
    form.forget();
    page(StatusCode::UNPROCESSABLE_ENTITY, &view(app, visitor, question, Some(form), None).await?)
}

impl Late {
    /// What somebody is told whose answer was not used.
    fn of(question: &Question, form: &Form) -> Self {
        let (title, message) = match &question.state {
            QuestionState::Answered { by, answer, resolution, .. }
                if resolution.mode == ResolutionMode::UserReply =>
            {
                let answer = words::cut(&words::plain(answer), 200);
                let first = format!("{by} answered first, with “{answer}”. The first answer stands.");
                ("Somebody was faster", first)
            }
            QuestionState::Answered { .. } | QuestionState::Expired { .. } => {
                (TOO_LATE, "the time for this question was up before it arrived.".to_owned())
            }
            QuestionState::Withdrawn { .. } => {
                (TOO_LATE, "the question had been withdrawn before it arrived.".to_owned())
            }
            QuestionState::Open => (TOO_LATE, "send it again.".to_owned()),
        };
        Late { title, message: format!("Your answer was not used: {message}"), kept: form.kept() }
    }
}

async fn view(
    app: &App,
    visitor: &Visitor,
    question: &Question,
    form: Option<Form>,
    late: Option<Late>,
) -> Result<QuestionPage, Trouble> {
    let store = &app.service.store;
    let id = &question.id;
    let mut shell = Shell::new(app, visitor, Here::Inbox, format!("/questions/{id}")).await?;
    let feature = store.feature(question.feature_id.clone()).await?;
    let (log, long_ago) = happened_before(store.as_ref(), question).await?;
    let waiting = store.inbox(0, 2).await?;
    let now = shell.now;
    shell.open = Waiting::of(&waiting);
    let mut earlier = Vec::new();
    let mut before = question.reopened_from.clone();
    while let Some(old) = before.filter(|_| earlier.len() < CHAIN) {
        let Some(old) = store.question(old).await? else { break };
        earlier.push((old.id.to_string(), old.state.status().as_str()));
        before = old.reopened_from;
    }
    let asked = &question.asked;
    let (about, tone) = words::about(asked.question_type);
    let engine = asked.engine_ref.as_ref().map(|engine| match &engine.version {
        Some(version) => format!("{} {version}", engine.engine),
        None => engine.engine.clone(),
    });
    let is_lone = feature.as_ref().is_some_and(|feature| feature.adhoc);
    let then = question.resume_status.as_ref().filter(|_| !is_lone);
    let then = then.map(|status| words::goes_on(status.as_str()));
    let idle = feature.as_ref().is_some_and(is_in_work) && !app.service.is_at_work().await;
    Ok(QuestionPage {
        shell,
        id: id.to_string(),
        feature_id: question.feature_id.to_string(),
        feature: if is_lone { words::LONE.to_owned() } else { question.feature_id.to_string() },
        feature_title: feature.as_ref().filter(|_| !is_lone).map(|feature| feature.title.clone()),
        about,
        tone,
        caution: words::caution(asked),
        blocking: asked.blocking,
        prompt: markdown::asked(asked.question_type, &asked.prompt),
        asked: When::past(question.created_at, now),
        deadline: question.expires_at.filter(|_| question.is_open()).map(|until| When::left(until, now)),
        after: question.expires_at.map(|until| When::ahead(until, now)),
        urgency: words::urgency(question.expires_at, now),
        timeout: words::on_timeout(question, is_lone),
        form,
        operation: fresh_operation(),
        outcome: Outcome::of(question, now),
        late,
        then,
        idle,
        role: asked.role.as_str(),
        session: asked.session_id.clone(),
        engine: engine.or_else(|| feature.and_then(|feature| feature.engine)),
        cwd: asked.engine_ref.as_ref().map(|engine| engine.cwd.clone()).filter(|cwd| !cwd.is_empty()),
        grants: asked.question_type.grants(),
        details: details(asked),
        log: log.iter().map(|line| Entry::of(line, now)).collect(),
        long_ago,
        earlier,
        later: Later::of(app, question).await?,
        next: waiting.items.iter().find(|other| other.id != *id).map(|next| next.id.to_string()),
    })
}

/// The last that happened in the feature before a question was asked, newest first, and whether the search was given up.
async fn happened_before(store: &dyn Store, question: &Question) -> Result<(Vec<Stamped>, bool), Refusal> {
    let mut lines = Vec::new();
    let (mut before, mut size) = (None, FIRST_PAGE);
    loop {
        let events = store.last_events(question.feature_id.clone(), before, size).await?;
        let (count, last) = (events.len(), events.last().map(|event| event.seq));
        let stamped = events.into_iter().map(|event| event.stamped);
        let earlier = stamped.filter(|stamped| stamped.at <= question.created_at);
        // Without the asking itself, which the whole page is about, and the feature that it brought along.
        let earlier = earlier.filter(|stamped| {
            !matches!(stamped.event, Event::FeatureCreated { adhoc: true, .. })
                && !sentence(stamped).contains(question.id.as_str())
        });
        lines.extend(earlier.take(LINES));
        lines.truncate(LINES);
        if lines.len() == LINES || count < size {
            return Ok((lines, false));
        }
        if size >= LAST_PAGE {
            let given_up = lines.is_empty();
            return Ok((lines, given_up));
        }
        before = last;
        size *= 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::fixture::World;

    /// Something happens in the feature, so many times.
    async fn busy(world: &World, times: usize) {
        for number in 0..times {
            let note = json!({"feature_id": "shop", "note": format!("note {number}")});
            world.try_call(Tool::FeatureLogAppend, note).await.unwrap();
        }
    }

    #[tokio::test]
    async fn nothing_happened_before_a_question_outside_any_feature() {
        let world = World::new().await;
        let id = world.ask_outside("Which?").await;
        let store = world.service.store.as_ref();
        let question = find(store, &QuestionId::parse(&id).unwrap()).await.unwrap();
        assert_eq!(happened_before(store, &question).await.unwrap(), (Vec::new(), false));
    }

    #[tokio::test]
    async fn what_happened_before_a_question_is_found_however_much_happened_since() {
        let world = World::new().await;
        world.feature("shop", "Shop").await;
        let store = world.service.store.as_ref();
        busy(&world, LINES).await;
        world.clock.advance(1);
        let id = world.ask("shop", json!({"blocking": false})).await;
        let question = find(store, &QuestionId::parse(&id).unwrap()).await.unwrap();
        let (first, _) = happened_before(store, &question).await.unwrap();
        assert_eq!(first.len(), LINES);
        let says = |line: usize, words: &str| sentence(&first[line]).contains(words);
        assert!(says(0, "note 5") && says(5, "note 0"), "{first:?}");
        world.clock.advance(1);
        for since in [FIRST_PAGE, 5 * FIRST_PAGE] {
            busy(&world, since).await;
            assert_eq!(happened_before(store, &question).await.unwrap(), (first.clone(), false), "{since}");
        }
        // Nothing at all is not the same as nothing within reach.
        busy(&world, 2 * LAST_PAGE).await;
        assert_eq!(happened_before(store, &question).await.unwrap(), (Vec::new(), true));
    }
}
