//! The inbox: everything that waits for a person, the most urgent first.

use super::lapsed::Gone;
use super::shell::{Here, Shell, Waiting};
use super::words::{self, When};
use super::{Page, page};
use crate::http::Shared;
use crate::http::auth::Visitor;
use aop_kernel::log::one_line;
use aop_kernel::question::Question;
use aop_kernel::time::Timestamp;
use askama::Template;
use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Redirect;
use axum::routing::get;
use serde::Deserialize;

/// So many on a page: what somebody looks through before going to the next.
const PAGE: usize = 25;
/// So many options are named on a card.
const NAMED: usize = 4;

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/", get(show)).route("/questions", get(|| async { Redirect::to("/") }))
}

#[derive(Debug, Default, Deserialize)]
struct Which {
    page: Option<String>,
}

#[derive(Template)]
#[template(path = "inbox.html")]
struct InboxPage {
    shell: Shell,
    cards: Vec<Card>,
    number: usize,
    pages: usize,
    /// Whether there are more pages than were counted.
    more: bool,
    first: usize,
    /// What ended without an answer and is in no list else.
    gone: Vec<Gone>,
}

/// A question in a list.
pub(super) struct Card {
    pub(super) id: String,
    pub(super) feature_id: String,
    /// How the feature is called; one that only carries a question has no name worth reading.
    pub(super) feature: String,
    pub(super) title: String,
    pub(super) about: &'static str,
    pub(super) tone: &'static str,
    pub(super) blocking: bool,
    pub(super) prompt: String,
    pub(super) role: &'static str,
    pub(super) asked: When,
    pub(super) deadline: Option<When>,
    pub(super) urgency: &'static str,
    pub(super) options: Vec<String>,
    pub(super) more_options: usize,
}

impl Card {
    pub(super) fn of(question: &Question, title: &str, now: Timestamp) -> Self {
        let asked = &question.asked;
        let (about, tone) = words::about(asked.question_type);
        let labels: Vec<&str> = match (&asked.spec, &asked.expected_answer) {
            (Some(spec), _) if spec.questions().len() == 1 => spec
                .questions()
                .iter()
                .flat_map(|field| field.options())
                .map(|option| option.label())
                .collect(),
            (Some(spec), _) => spec.questions().iter().map(|field| field.header()).collect(),
            (None, Some(expected)) => expected.choices.iter().flatten().map(String::as_str).collect(),
            (None, None) => Vec::new(),
        };
        Card {
            id: question.id.to_string(),
            feature_id: question.feature_id.to_string(),
            feature: if title.is_empty() { words::LONE.to_owned() } else { question.feature_id.to_string() },
            title: one_line(title),
            about,
            tone,
            blocking: asked.blocking,
            prompt: super::markdown::asked_in_short(asked.question_type, &asked.prompt),
            role: asked.role.as_str(),
            asked: When::past(question.created_at, now),
            deadline: question.expires_at.map(|until| When::left(until, now)),
            urgency: words::urgency(question.expires_at, now),
            options: labels.iter().take(NAMED).map(|label| words::cut(label, 40)).collect(),
            more_options: labels.len().saturating_sub(NAMED),
        }
    }
}

async fn show(
    State(app): State<Shared>,
    visitor: Visitor,
    which: Result<Query<Which>, QueryRejection>,
) -> Page {
    let wanted = which
        .ok()
        .and_then(|Query(which)| which.page?.parse::<usize>().ok())
        .unwrap_or(1)
        .clamp(1, 1_000_000);
    let url = if wanted == 1 { "/".to_owned() } else { format!("/?page={wanted}") };
    let mut shell = Shell::new(&app, &visitor, Here::Inbox, url).await?;
    let store = &app.service.store;
    let mut number = wanted;
    let mut inbox = store.inbox((number - 1) * PAGE, PAGE).await?;
    let pages = inbox.total.div_ceil(PAGE).max(1);
    if number > pages {
        // Answered away while somebody was on the last page.
        number = pages;
        inbox = store.inbox((number - 1) * PAGE, PAGE).await?;
    }
    let now = shell.now;
    let mut cards = Vec::with_capacity(inbox.items.len());
    for question in &inbox.items {
        let feature = store.feature(question.feature_id.clone()).await?;
        let title = feature.map(|feature| if feature.adhoc { String::new() } else { feature.title });
        cards.push(Card::of(question, &title.unwrap_or_default(), now));
    }
    let mut gone = Vec::new();
    if number == 1 {
        let mut lapsed = app.pages.lapsed.lock().await;
        lapsed.catch_up(store.as_ref(), shell.seq).await?;
        let latest = lapsed.latest(now);
        drop(lapsed);
        for ended in latest {
            gone.extend(Gone::of(store.as_ref(), ended, now).await?);
        }
    }
    shell.open = Waiting::of(&inbox);
    page(
        StatusCode::OK,
        &InboxPage { shell, cards, number, pages, more: inbox.more, first: (number - 1) * PAGE, gone },
    )
}
