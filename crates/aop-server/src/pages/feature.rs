//! One feature: where it stands, its questions, and everything that happened to it, newest first.

use super::features::Card;
use super::inbox;
use super::outcome::Outcome;
use super::shell::{Here, Shell, Waiting};
use super::words::{self, Piece, When};
use super::{Named, Page, markdown, page};
use crate::http::Shared;
use crate::http::auth::Visitor;
use aop_kernel::ids::{FeatureId, QuestionId};
use aop_kernel::time::Timestamp;
use aop_kernel::{ErrorCode, Refusal, event::Stamped};
use askama::Template;
use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::get;
use serde::Deserialize;

/// So many events on a page.
const PAGE: usize = 50;
/// So many answers beside them.
const ANSWERS: usize = 10;

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/features/{id}", get(show))
}

#[derive(Debug, Default, Deserialize)]
struct Which {
    before: Option<String>,
}

#[derive(Template)]
#[template(path = "feature.html")]
struct FeaturePage {
    shell: Shell,
    tab: &'static str,
    card: Card,
    spec: Option<String>,
    open: Vec<inbox::Card>,
    answers: Vec<Answered>,
    entries: Vec<Entry>,
    /// Where the next page begins.
    older: Option<u64>,
    latest: bool,
}

struct Answered {
    id: String,
    prompt: String,
    outcome: Outcome,
}

/// One line of a timeline, with a link to the question it is about.
pub(super) struct Entry {
    kind: &'static str,
    pub(super) when: When,
    pub(super) before: Vec<Piece>,
    pub(super) question: Option<String>,
    pub(super) after: Vec<Piece>,
}

impl Entry {
    pub(super) fn of(stamped: &Stamped, now: Timestamp) -> Self {
        let mut before = words::told(stamped);
        let found = before.iter().enumerate().find_map(|(index, piece)| Some((index, named(&piece.text)?)));
        let (question, after) = match found {
            Some((index, (place, id))) => {
                let mut after = before.split_off(index);
                if let Some(first) = after.first_mut() {
                    let rest = first.text.split_off(place);
                    let text = std::mem::replace(
                        &mut first.text,
                        rest.get(id.len()..).unwrap_or_default().to_owned(),
                    );
                    // The link names it a question itself.
                    let text = text.strip_suffix("question ").unwrap_or(&text).to_owned();
                    before.push(Piece { code: first.code, text });
                }
                before.retain(|piece| !piece.text.is_empty());
                after.retain(|piece| !piece.text.is_empty());
                (Some(id), after)
            }
            None => (None, Vec::new()),
        };
        let name = stamped.event.name();
        let kind = name.split(['.', '_']).next_back().unwrap_or(name);
        Entry { kind, when: When::past(stamped.at, now), before, question, after }
    }

    /// The end of the question's id: enough to tell two of them apart.
    pub(super) fn short(&self) -> &str {
        self.question.as_deref().and_then(|id| id.get(id.len().saturating_sub(6)..)).unwrap_or_default()
    }
}

async fn show(
    State(app): State<Shared>,
    visitor: Visitor,
    Named(id): Named<String>,
    which: Result<Query<Which>, QueryRejection>,
) -> Page {
    let id = FeatureId::parse(&id)?;
    let before = which.ok().and_then(|Query(which)| which.before?.parse::<u64>().ok());
    let url = match before {
        Some(before) => format!("/features/{id}?before={before}"),
        None => format!("/features/{id}"),
    };
    let mut shell = Shell::new(&app, &visitor, Here::Features, url).await?;
    let store = &app.service.store;
    let view = store.view(id.clone(), ANSWERS).await?.ok_or_else(|| missing(&id))?;
    let mut events = store.last_events(id, before, PAGE + 1).await?;
    let now = shell.now;
    shell.open = Waiting::of(&store.inbox(0, 0).await?);
    let more = events.len() > PAGE;
    events.truncate(PAGE);
    let answers = view.answers.iter().filter_map(|question| {
        let outcome = Outcome::of(question, now)?;
        Some(Answered {
            id: question.id.to_string(),
            prompt: markdown::asked_in_short(question.asked.question_type, &question.asked.prompt),
            outcome,
        })
    });
    let feature = FeaturePage {
        shell,
        tab: "timeline",
        card: Card::of(&view.feature, app.service.is_at_work().await, now),
        spec: view.spec.as_deref().map(markdown::render),
        open: view.open.iter().map(|question| inbox::Card::of(question, "", now)).collect(),
        answers: answers.collect(),
        entries: events.iter().map(|event| Entry::of(&event.stamped, now)).collect(),
        older: events.last().filter(|_| more).map(|event| event.seq),
        latest: before.is_none(),
    };
    page(StatusCode::OK, &feature)
}

/// The first question that a sentence names, and where.
fn named(words: &str) -> Option<(usize, String)> {
    const LENGTH: usize = 28;
    words.match_indices("q_").find_map(|(place, _)| {
        let id = words.get(place..place + LENGTH)?;
        QuestionId::parse(id).ok().map(|id| (place, id.to_string()))
    })
}

/// The refusal for a feature that is not there.
pub(super) fn missing(id: &FeatureId) -> Refusal {
    Refusal::new(ErrorCode::FeatureNotFound, format!("no feature '{id}'"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use aop_kernel::event::{Actor, Event};
    use aop_kernel::status::Status;

    #[test]
    fn a_line_names_a_question_once() {
        let id = "q_01J9ZQ4V7K3M2N1P0R5S6T7V8W";
        for (reason, before, after) in [
            (format!("question {id} expired"), "awaiting_input → blocked: ", " expired"),
            (format!("see {id}"), "awaiting_input → blocked: see ", ""),
        ] {
            let (from, to) = (Status::AwaitingInput, Status::Blocked);
            let at = Timestamp::from_millis(0);
            let stamped = Stamped {
                feature_id: FeatureId::parse("shop").unwrap(),
                at,
                actor: Actor::Policy,
                operation_id: None,
                event: Event::StatusChanged { from, to, reason: Some(reason), turn_stays: false },
            };
            let entry = Entry::of(&stamped, at);
            let text = |pieces: &[Piece]| pieces.iter().map(|piece| piece.text.as_str()).collect::<String>();
            assert_eq!((text(&entry.before).as_str(), text(&entry.after).as_str()), (before, after));
            assert_eq!(entry.question.as_deref(), Some(id));
        }
    }
}
