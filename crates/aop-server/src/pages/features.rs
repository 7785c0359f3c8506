//! The board: every feature under its status, with what it waits for.

use super::shell::{Here, Shell, Waiting};
use super::words::{self, Piece, When};
use super::{Page, markdown, page};
use crate::http::Shared;
use crate::http::auth::Visitor;
use aop_kernel::Refusal;
use aop_kernel::feature::Feature;
use aop_kernel::ids::QuestionId;
use aop_kernel::log::one_line;
use aop_kernel::question::Question;
use aop_kernel::status::Status;
use aop_kernel::time::Timestamp;
use aop_store::{FeaturePage, Store};
use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use std::collections::HashMap;

/// So many cards in a column; the rest is counted.
const SHOWN: usize = 60;

/// So many signs of a question stand on the card of its feature.
const PROMPT: usize = 140;
/// So many open questions are read at once; those of the other cards one by one.
const READ: usize = 100;

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
    /// Whether features stand still because no run is active.
    idle: bool,
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
    pub(super) reason: Option<Vec<Piece>>,
    pub(super) open: usize,
    pub(super) open_words: String,
    pub(super) question: Option<String>,
    /// What it asks, in short.
    pub(super) prompt: Option<String>,
    pub(super) since: Option<When>,
    pub(super) by: Option<&'static str>,
    /// What it does afterwards.
    pub(super) then: Option<String>,
    pub(super) at_it: Option<String>,
    pub(super) updated: When,
    /// Whether it stands still because no run is active.
    pub(super) idle: bool,
}

impl Card {
    /// A feature as it stands; `at_work`: whether anybody runs the features of this project.
    pub(super) fn of(feature: &Feature, at_work: bool, now: Timestamp) -> Self {
        let waits = feature.human_input();
        let idle = !at_work && is_in_work(feature);
        // Who worked last is at work no more.
        let at_it = match (feature.role.filter(|_| !idle), feature.engine.as_ref().filter(|_| !idle)) {
            (Some(role), Some(engine)) => Some(format!("{role} on {engine}")),
            (Some(role), None) => Some(role.to_string()),
            (None, engine) => engine.cloned(),
        };
        Card {
            id: feature.id.to_string(),
            title: one_line(&feature.title),
            status: feature.status.as_str(),
            status_name: words::status(feature.status),
            reason: words::reason(feature.status, feature.status_reason.as_deref()),
            open: feature.open_question_count as usize,
            open_words: words::count(feature.open_question_count as usize, "open question", "open questions"),
            question: waits.open_question_id.map(|id| id.to_string()),
            prompt: None,
            since: waits.awaiting_since.map(|since| When::past(since, now)),
            by: waits.requested_by_role.map(|role| role.as_str()),
            // Nothing comes behind a question outside any feature.
            then: waits
                .resume_status
                .filter(|_| !feature.adhoc)
                .map(|status| words::goes_on(status.as_str())),
            at_it,
            updated: When::past(feature.updated_at, now),
            idle,
        }
    }
}

/// Whether a run has something to do for it, or will have once somebody has answered.
pub(super) fn is_in_work(feature: &Feature) -> bool {
    let waits_for =
        feature.waiting.as_ref().and_then(|waiting| Status::parse(waiting.resume_status.as_str()));
    !feature.adhoc && waits_for.unwrap_or(feature.status).worker().is_some()
}

/// Puts what is asked on the cards of features that wait.
async fn name_questions(
    store: &dyn Store,
    open: Vec<Question>,
    columns: &mut [Column],
) -> Result<(), Refusal> {
    let open: HashMap<String, Question> =
        open.into_iter().map(|question| (question.id.to_string(), question)).collect();
    for card in columns.iter_mut().flat_map(|column| &mut column.cards) {
        let Some(id) = &card.question else { continue };
        let read = match open.get(id) {
            Some(question) => Some(question.clone()),
            None => store.question(QuestionId::parse(id)?).await?,
        };
        card.prompt = read.map(|question| {
            let asked = &question.asked;
            words::cut(&markdown::asked_in_short(asked.question_type, &asked.prompt), PROMPT)
        });
    }
    Ok(())
}

async fn show(State(app): State<Shared>, visitor: Visitor) -> Page {
    let mut shell = Shell::new(&app, &visitor, Here::Features, "/features".to_owned()).await?;
    let store = &app.service.store;
    let features = store.features(FeaturePage::default()).await?;
    let now = shell.now;
    let inbox = store.inbox(0, READ).await?;
    shell.open = Waiting::of(&inbox);
    let at_work = app.service.is_at_work().await;
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
            cards: here.iter().take(SHOWN).map(|feature| Card::of(feature, at_work, now)).collect(),
        }
    });
    let mut columns: Vec<Column> = columns.filter(|column| column.total > 0).collect();
    name_questions(store.as_ref(), inbox.items, &mut columns).await?;
    let idle = columns.iter().flat_map(|column| &column.cards).any(|card| card.idle);
    page(StatusCode::OK, &BoardPage { shell, columns, idle })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::fixture::World;
    use aop_kernel::ids::FeatureId;
    use serde_json::json;

    #[tokio::test]
    async fn a_card_has_its_question_whether_that_was_read_with_the_others_or_not() {
        let world = World::new().await;
        world.feature("shop", "Shop").await;
        world.ask("shop", json!({"prompt": format!("Which **one**? {}", "x".repeat(400))})).await;
        let store = world.service.store.as_ref();
        let feature = store.feature(FeatureId::parse("shop").unwrap()).await.unwrap().unwrap();
        let now = store.now().await.unwrap();
        for open in [store.inbox(0, READ).await.unwrap().items, Vec::new()] {
            let cards = vec![Card::of(&feature, true, now)];
            let mut columns = [Column { name: "", status: "", total: 1, cards }];
            name_questions(store, open, &mut columns).await.unwrap();
            let prompt = columns[0].cards[0].prompt.clone().unwrap();
            assert!(prompt.starts_with("Which one? x") && prompt.ends_with("x…"), "{prompt}");
            assert_eq!(prompt.chars().count(), PROMPT + 1);
        }
    }

    #[tokio::test]
    async fn a_feature_stands_still_where_a_run_would_work_on_it_and_none_is_active() {
        let world = World::new().await;
        world.feature("shop", "Shop").await;
        let store = world.service.store.as_ref();
        let now = store.now().await.unwrap();
        let feature = store.feature(FeatureId::parse("shop").unwrap()).await.unwrap().unwrap();
        assert!(Card::of(&feature, false, now).idle && !Card::of(&feature, true, now).idle);
        world.ask("shop", json!({})).await;
        let waiting = store.feature(FeatureId::parse("shop").unwrap()).await.unwrap().unwrap();
        assert!(Card::of(&waiting, false, now).idle, "nobody goes on with it after an answer");
        let lone = Feature { adhoc: true, ..feature };
        let card = Card::of(&lone, false, now);
        assert!(!card.idle && card.then.is_none());
        let lone = Feature { adhoc: true, ..waiting };
        let card = Card::of(&lone, false, now);
        assert!(!card.idle && card.then.is_none(), "nothing comes behind it");
    }
}
