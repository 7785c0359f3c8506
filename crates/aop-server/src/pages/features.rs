//! The board: every feature under its status, with what it waits for.

use super::shell::{Here, Shell, Waiting};
use super::words::{self, When};
use super::{Page, page};
use crate::http::Shared;
use crate::http::auth::Visitor;
use aop_kernel::feature::Feature;
use aop_kernel::log::one_line;
use aop_kernel::status::Status;
use aop_kernel::time::Timestamp;
use aop_store::FeaturePage;
use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;

/// So many cards in a column; the rest is counted.
const SHOWN: usize = 60;

/// The order of the columns: what needs somebody first, what is over last.
const COLUMNS: [Status; 8] = [
    Status::AwaitingInput,
    Status::Blocked,
    Status::ReadyToMerge,
    Status::Planning,
    Status::Building,
    Status::Qa,
    Status::Merged,
    Status::Failed,
];

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/features", get(show))
}

#[derive(Template)]
#[template(path = "features.html")]
struct BoardPage {
    shell: Shell,
    columns: Vec<Column>,
}

struct Column {
    name: &'static str,
    status: &'static str,
    total: usize,
    cards: Vec<Card>,
}

/// A feature on the board.
pub(super) struct Card {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) status: &'static str,
    pub(super) status_name: &'static str,
    pub(super) reason: Option<String>,
    pub(super) open: usize,
    pub(super) open_words: String,
    pub(super) question: Option<String>,
    pub(super) since: Option<When>,
    pub(super) by: Option<&'static str>,
    pub(super) resume: Option<String>,
    pub(super) at_it: Option<String>,
    pub(super) updated: When,
}

impl Card {
    pub(super) fn of(feature: &Feature, now: Timestamp) -> Self {
        let waits = feature.human_input();
        let at_it = match (feature.role, &feature.engine) {
            (Some(role), Some(engine)) => Some(format!("{role} on {engine}")),
            (Some(role), None) => Some(role.to_string()),
            (None, engine) => engine.clone(),
        };
        Card {
            id: feature.id.to_string(),
            title: one_line(&feature.title),
            status: feature.status.as_str(),
            status_name: words::status(feature.status),
            // While it waits, the question itself says why.
            reason: feature.status_reason.as_deref().filter(|_| feature.waiting.is_none()).map(one_line),
            open: feature.open_question_count as usize,
            open_words: words::count(feature.open_question_count as usize, "open question", "open questions"),
            question: waits.open_question_id.map(|id| id.to_string()),
            since: waits.awaiting_since.map(|since| When::past(since, now)),
            by: waits.requested_by_role.map(|role| role.as_str()),
            resume: waits.resume_status.map(|status| words::resume(status.as_str())),
            at_it,
            updated: When::past(feature.updated_at, now),
        }
    }
}

async fn show(State(app): State<Shared>, visitor: Visitor) -> Page {
    let mut shell = Shell::new(&app, &visitor, Here::Features, "/features".to_owned()).await?;
    let store = &app.service.store;
    let features = store.features(FeaturePage::default()).await?;
    let now = shell.now;
    shell.open = Waiting::of(&store.inbox(0, 0).await?);
    let columns = COLUMNS.iter().map(|status| {
        let mut here: Vec<&Feature> = features.iter().filter(|feature| feature.status == *status).collect();
        here.sort_by_key(|feature| {
            let since = feature.waiting.as_ref().map_or(feature.updated_at, |waiting| waiting.since);
            // Who waits longest comes first; elsewhere what changed last.
            let key = since.as_millis();
            if *status == Status::AwaitingInput { key } else { -key }
        });
        Column {
            name: words::status(*status),
            status: status.as_str(),
            total: here.len(),
            cards: here.iter().take(SHOWN).map(|feature| Card::of(feature, now)).collect(),
        }
    });
    let columns = columns.filter(|column| column.total > 0).collect();
    page(StatusCode::OK, &BoardPage { shell, columns })
}
