//! `GET /events`: every change as it happens (server-sent events). Each carries the project's sequence number as its
//! id; `Last-Event-ID: N`, or `?after=N` for the first connection of a browser, replays all after N. Without either
//! it begins now. An agent sees its own feature.

use super::auth::Signed;
use super::reply::Refused;
use super::{App, Shared};
use crate::tokens::Bearer;
use aop_kernel::Refusal;
use aop_kernel::ids::{FeatureId, quoted};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use axum::routing::get;
use serde::Deserialize;
use std::convert::Infallible;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// A comment is sent after so much silence: it keeps proxies patient, and shows that somebody is there.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Browsers come back this many milliseconds after a connection was lost.
const COMES_BACK: u32 = 1_000;

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/events", get(events))
}

#[derive(Debug, Default, Deserialize)]
struct From {
    after: Option<String>,
}

async fn events(
    State(app): State<Arc<App>>,
    signed: Signed,
    from: Result<Query<From>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let only = match signed.bearer() {
        Bearer::Operator { .. } => None,
        Bearer::Agent { .. } => signed.caller()?.feature,
    };
    let last = app.feed.last();
    let named = headers.get("last-event-id").map(|value| value.to_str().unwrap_or("?").to_owned());
    let named = named.or(from.map(|Query(from)| from).unwrap_or_default().after);
    // A number from the future belongs to another history of the project; what is there now is where it goes on.
    let seen = named.map(|text| number(&text)).transpose()?.map_or(last, |seen| seen.min(last));
    let follower = Follower {
        news: app.feed.news(),
        stopping: app.stopping.clone(),
        app,
        signed,
        only,
        seen,
        greeted: false,
    };
    let frames = futures_util::stream::unfold(follower, Follower::next);
    let mut response = Response::new(Body::from_stream(frames));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // Proxies that collect a response before they pass it on would hold events back.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

fn number(text: &str) -> Result<u64, Refusal> {
    text.trim().parse().map_err(|_| {
        Refusal::invalid_argument(format!("Last-Event-ID {} is not a number", quoted(text)))
            .hint("send the id of the last event that arrived, or leave it out to begin now")
            .fact("argument", "Last-Event-ID")
    })
}

/// One connection.
struct Follower {
    app: Arc<App>,
    signed: Signed,
    news: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    /// The only feature it is shown.
    only: Option<FeatureId>,
    /// The last event it was told, or skipped as not meant for it.
    seen: u64,
    greeted: bool,
}

impl Follower {
    /// The next bytes to send; `None` ends the connection, and the client comes back with what it saw last.
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        if !std::mem::replace(&mut self.greeted, true) {
            // An id without data is remembered by browsers and seen by nobody.
            let greeting = format!("retry: {COMES_BACK}\nid: {}\n\n", self.seen);
            return Some((Ok(greeting.into()), self));
        }
        loop {
            if *self.stopping.borrow() {
                return None;
            }
            self.news.borrow_and_update();
            let items = self.app.feed.after(self.seen).await.ok()?;
            let mut frames = String::new();
            for item in &items {
                self.seen = item.seq;
                if self.only.as_ref().is_none_or(|only| *only == item.feature) {
                    // Writing to a String cannot fail, and JSON on one line needs no further framing.
                    let _ = write!(frames, "id: {}\ndata: {}\n\n", item.seq, item.json);
                }
            }
            if !frames.is_empty() {
                return Some((Ok(frames.into()), self));
            }
            if !items.is_empty() {
                continue;
            }
            tokio::select! {
                news = self.news.changed() => news.ok()?,
                _ = self.stopping.changed() => return None,
                () = tokio::time::sleep(HEARTBEAT) => {
                    if !self.signed.still_good(&self.app).await {
                        return None;
                    }
                    return Some((Ok(Bytes::from_static(b": alive\n\n")), self));
                }
            }
        }
    }
}
