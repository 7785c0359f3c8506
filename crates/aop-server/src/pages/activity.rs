//! How long work stood still because a person had to answer: by kind of question, by feature, by day. Counted from
//! the event log; what has been counted is kept, so a look costs what happened since the last one, and never more
//! than a bounded part of the log.

use super::shell::{Here, Shell, Waiting};
use super::words::{self, span};
use super::{Page, page};
use crate::http::Shared;
use crate::http::auth::Visitor;
use aop_kernel::Refusal;
use aop_kernel::event::{Event, Recorded};
use aop_kernel::ids::{FeatureId, QuestionId};
use aop_kernel::question::QuestionType;
use aop_kernel::time::Timestamp;
use aop_store::{EventPage, Store};
use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use std::collections::{BTreeMap, BTreeSet};

/// Events are read in pages of this …
const PAGE: usize = 1_000;
/// … and at most so many pages at a look.
const PAGES: usize = 20;
/// So many features are named.
const NAMED: usize = 12;
/// So many days are shown.
const DAYS: i64 = 14;
const DAY: i64 = 86_400_000;
/// The width of a chart's longest bar.
const WIDTH: i64 = 100;

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/activity", get(show))
}

/// What has been counted so far.
#[derive(Debug, Default)]
pub(super) struct Tally {
    seen: u64,
    open: BTreeMap<QuestionId, Wait>,
    kinds: BTreeMap<&'static str, Sum>,
    /// Without a name: the questions outside any feature, together.
    features: BTreeMap<Option<FeatureId>, Sum>,
    /// The features that only carry a question.
    lone: BTreeSet<FeatureId>,
    days: BTreeMap<i64, i64>,
}

#[derive(Debug, Clone)]
struct Wait {
    feature: Option<FeatureId>,
    kind: QuestionType,
    since: Timestamp,
}

/// Waits, added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sum {
    count: usize,
    total: i64,
    longest: i64,
}

impl Sum {
    fn add(&mut self, millis: i64) {
        self.count += 1;
        self.total += millis;
        self.longest = self.longest.max(millis);
    }
}

impl Tally {
    /// Counts on; whether everything has been counted.
    async fn catch_up(&mut self, store: &dyn Store) -> Result<bool, Refusal> {
        for _ in 0..PAGES {
            let events = store.events(EventPage { after: self.seen, feature: None, limit: PAGE }).await?;
            events.iter().for_each(|event| self.take(event));
            if events.len() < PAGE {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn take(&mut self, recorded: &Recorded) {
        self.seen = recorded.seq;
        let at = recorded.stamped.at;
        if let Event::FeatureCreated { adhoc: true, .. } = &recorded.stamped.event {
            self.lone.insert(recorded.stamped.feature_id.clone());
            return;
        }
        if let Event::QuestionOpened { question, .. } = &recorded.stamped.event {
            if question.asked.blocking {
                let wait = Wait {
                    feature: Some(question.feature_id.clone()).filter(|id| !self.lone.contains(id)),
                    kind: question.asked.question_type,
                    since: question.created_at,
                };
                self.open.insert(question.id.clone(), wait);
            }
            return;
        }
        // Every other event about a question closes it.
        let closed = recorded.stamped.event.question_id().and_then(|id| self.open.remove(id));
        if let Some(wait) = closed {
            self.add(&wait, at);
        }
    }

    fn add(&mut self, wait: &Wait, until: Timestamp) {
        let millis = (until.as_millis() - wait.since.as_millis()).max(0);
        self.kinds.entry(words::about(wait.kind).0).or_default().add(millis);
        self.features.entry(wait.feature.clone()).or_default().add(millis);
        // A wait of years is still a bounded number of days: older ones are not shown.
        let (mut from, end) =
            (wait.since.as_millis().max(until.as_millis() - (DAYS + 1) * DAY), until.as_millis());
        while from < end {
            let next = ((from / DAY + 1) * DAY).min(end);
            *self.days.entry(from / DAY).or_default() += next - from;
            from = next;
        }
        while self.days.len() > 60 {
            self.days.pop_first();
        }
    }

    /// The same with what still waits counted up to now.
    fn until(&self, now: Timestamp) -> Tally {
        let mut all = Tally {
            seen: self.seen,
            open: BTreeMap::new(),
            kinds: self.kinds.clone(),
            features: self.features.clone(),
            lone: BTreeSet::new(),
            days: self.days.clone(),
        };
        self.open.values().for_each(|wait| all.add(wait, now));
        all
    }
}

/// A row of a table and a bar of its chart.
struct Row {
    name: String,
    link: Option<String>,
    count: usize,
    total: String,
    mean: String,
    longest: String,
    bar: i64,
}

impl Row {
    fn new(name: String, link: Option<String>, sum: Sum, most: i64) -> Self {
        Row {
            name,
            link,
            count: sum.count,
            total: span(sum.total),
            mean: span(sum.total / i64::try_from(sum.count.max(1)).unwrap_or(1)),
            longest: span(sum.longest),
            bar: scaled(sum.total, most, WIDTH),
        }
    }
}

struct Day {
    name: String,
    total: String,
    x: i64,
    y: i64,
    height: i64,
}

#[derive(Template)]
#[template(path = "activity.html")]
struct ActivityPage {
    shell: Shell,
    whole: bool,
    seen: u64,
    waiting: usize,
    total: String,
    asked: usize,
    mean: String,
    kinds: Vec<Row>,
    features: Vec<Row>,
    unnamed: usize,
    days: Vec<Day>,
}

async fn show(State(app): State<Shared>, visitor: Visitor) -> Page {
    let mut shell = Shell::new(&app, &visitor, Here::Activity, "/activity".to_owned()).await?;
    let store = &app.service.store;
    shell.open = Waiting::of(&store.inbox(0, 0).await?);
    let now = shell.now;
    let mut tally = app.pages.tally.lock().await;
    let whole = tally.catch_up(store.as_ref()).await?;
    let (all, waiting) = (tally.until(now), tally.open.len());
    drop(tally);
    let mut sum = Sum::default();
    for kind in all.kinds.values() {
        sum = Sum {
            count: sum.count + kind.count,
            total: sum.total + kind.total,
            longest: sum.longest.max(kind.longest),
        };
    }
    let mut features: Vec<_> = all.features.iter().collect();
    features.sort_by_key(|(id, sum)| (-sum.total, (*id).clone()));
    let most = features.first().map_or(0, |(_, sum)| sum.total);
    let mut kinds: Vec<_> = all.kinds.iter().collect();
    kinds.sort_by_key(|(_, sum)| -sum.total);
    let most_of_kind = kinds.first().map_or(0, |(_, sum)| sum.total);
    let activity = ActivityPage {
        shell,
        whole,
        seen: all.seen,
        waiting,
        total: span(sum.total),
        asked: sum.count,
        mean: span(sum.total / i64::try_from(sum.count.max(1)).unwrap_or(1)),
        kinds: kinds
            .iter()
            .map(|(name, sum)| Row::new((**name).to_owned(), None, **sum, most_of_kind))
            .collect(),
        unnamed: features.len().saturating_sub(NAMED),
        features: features
            .iter()
            .take(NAMED)
            .map(|(id, sum)| {
                let name = id.as_ref().map_or(words::LONE.to_owned(), |id| words::cut(id.as_str(), 30));
                Row::new(name, id.as_ref().map(|id| format!("/features/{id}")), **sum, most)
            })
            .collect(),
        days: days(&all, now),
    };
    page(StatusCode::OK, &activity)
}

fn days(all: &Tally, now: Timestamp) -> Vec<Day> {
    let today = now.as_millis() / DAY;
    let of = |day: i64| all.days.get(&day).copied().unwrap_or_default();
    let most = (0..DAYS).map(|back| of(today - back)).max().unwrap_or_default();
    let days = (0..DAYS).rev().map(|back| {
        let day = today - back;
        let height = scaled(of(day), most, 60);
        let date = Timestamp::from_millis(day * DAY).to_string();
        Day {
            name: date.get(..10).unwrap_or_default().to_owned(),
            total: span(of(day)),
            x: (DAYS - 1 - back) * 20,
            y: 62 - height,
            height,
        }
    });
    days.collect()
}

/// A bar's length; anything at all is at least visible.
fn scaled(value: i64, most: i64, length: i64) -> i64 {
    if value <= 0 || most <= 0 { 0 } else { (value.saturating_mul(length) / most).clamp(1, length) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::fixture::World;
    use serde_json::json;

    #[tokio::test]
    async fn only_blocking_waits_count_from_asking_to_closing() {
        let world = World::new().await;
        world.feature("a", "A").await;
        let id = world.ask("a", json!({"question_type": "risk_ack"})).await;
        world.clock.advance(60_000);
        world.answer("a", &id, json!("yes")).await;
        world.ask("a", json!({"blocking": false})).await;
        world.clock.advance(5_000);
        let mut tally = Tally::default();
        assert!(tally.catch_up(world.service.store.as_ref()).await.unwrap());
        assert_eq!(tally.kinds["Risk"], Sum { count: 1, total: 60_000, longest: 60_000 });
        assert_eq!(tally.features.len(), 1);
        let seen = tally.seen;
        assert!(tally.catch_up(world.service.store.as_ref()).await.unwrap());
        assert_eq!((tally.seen, tally.kinds["Risk"].count), (seen, 1), "nothing is counted twice");
    }

    #[tokio::test]
    async fn questions_outside_any_feature_are_one_row() {
        let world = World::new().await;
        world.feature("a", "A").await;
        world.ask("a", json!({})).await;
        for number in 0..3 {
            world.ask_outside(&format!("Which {number}?")).await;
        }
        let mut tally = Tally::default();
        tally.catch_up(world.service.store.as_ref()).await.unwrap();
        world.clock.advance(1_000);
        let all = tally.until(world.service.store.now().await.unwrap());
        let counts: Vec<_> = all.features.iter().map(|(id, sum)| (id.is_some(), sum.count)).collect();
        assert_eq!(counts, [(false, 3), (true, 1)]);
    }

    #[tokio::test]
    async fn what_still_waits_counts_up_to_now_and_is_split_by_day() {
        let world = World::new().await;
        world.feature("a", "A").await;
        world.ask("a", json!({})).await;
        let mut tally = Tally::default();
        tally.catch_up(world.service.store.as_ref()).await.unwrap();
        let now = world.service.store.now().await.unwrap();
        let later = now.plus_millis(2 * DAY.unsigned_abs());
        let all = tally.until(later);
        assert_eq!(all.features.values().next().unwrap().total, 2 * DAY);
        assert_eq!(all.days.values().sum::<i64>(), 2 * DAY);
        assert!(all.days.len() >= 2);
        assert!(tally.features.is_empty(), "an open wait is not counted for good");
        assert_eq!(days(&all, later).len(), 14);
    }
}
