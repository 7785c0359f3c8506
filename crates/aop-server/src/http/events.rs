//! `GET /events`: every change as it happens (server-sent events). Each carries the project's sequence number as its
//! id; `Last-Event-ID: N`, or `?after=N` for the first connection of a browser, replays all after N. Without either
//! it begins now. An agent sees its own feature.

use super::auth::Signed;
use super::questions::query_refusal;
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
use tokio::time::Instant;

/// A comment is sent after so much silence: it keeps proxies patient, and shows that somebody is there. Nothing is sent
/// on a token or a session that was not looked at for so long.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Browsers come back this many milliseconds after a connection was lost.
const COMES_BACK: u32 = 1_000;

/// The header that names the last event that arrived.
const LAST_EVENT_ID: &str = "Last-Event-ID";

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/events", get(events))
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
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
    let Query(from) = from.map_err(|error| query_refusal(&error))?;
    let last = app.feed.last();
    let mut lines = headers.get_all(LAST_EVENT_ID).iter();
    let (named, None) = (lines.next(), lines.next()) else {
        return Err(Refusal::invalid_argument(format!("the request has more than one {LAST_EVENT_ID}"))
            .hint("send the id of the last event that arrived, once")
            .fact("argument", LAST_EVENT_ID)
            .into());
    };
    let named = named.map(|value| number(LAST_EVENT_ID, value.to_str().unwrap_or("?")));
    let named = named.or(from.after.map(|text| number("after", &text))).transpose()?;
    let seen = match named {
        // What another process has just written may have arrived there before it is known here. A number that nobody has
        // written yet belongs to another history of the project; what is there now is where it goes on.
        Some(seen) if seen > last => seen.min(app.service.store.last().await?),
        Some(seen) => seen,
        None => last,
    };
    let follower = Follower {
        news: app.feed.news(),
        stopping: app.stopping.clone(),
        app,
        signed,
        only,
        seen,
        greeted: false,
        checked: Instant::now(),
        spoke: Instant::now(),
    };
    let frames = futures_util::stream::unfold(follower, Follower::next);
    let mut response = Response::new(Body::from_stream(frames));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // Proxies that collect a response before they pass it on would hold events back.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

fn number(name: &str, text: &str) -> Result<u64, Refusal> {
    text.trim().parse().map_err(|_| {
        Refusal::invalid_argument(format!("{name} {} is not a number", quoted(text)))
            .hint("send the id of the last event that arrived, or leave it out to begin now")
            .fact("argument", name)
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
    /// When its token and its session were found good last.
    checked: Instant,
    /// When anything was sent last.
    spoke: Instant,
}

impl Follower {
    /// Looks whether whoever follows may still do so. While that cannot be looked up, nobody may: they come back.
    async fn check(&mut self) -> bool {
        self.checked = Instant::now();
        self.signed.still_good(&self.app).await.unwrap_or(false)
    }

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
            // Also while there is no silence.
            if self.checked.elapsed() >= HEARTBEAT && !self.check().await {
                return None;
            }
            let mut frames = String::new();
            for item in &items {
                self.seen = item.seq;
                if self.only.as_ref().is_none_or(|only| *only == item.feature) {
                    // Writing to a String cannot fail, and JSON on one line needs no further framing.
                    let _ = write!(frames, "id: {}\ndata: {}\n\n", item.seq, item.json);
                }
            }
            if !frames.is_empty() {
                self.spoke = Instant::now();
                return Some((Ok(frames.into()), self));
            }
            if !items.is_empty() {
                continue;
            }
            tokio::select! {
                news = self.news.changed() => news.ok()?,
                _ = self.stopping.changed() => return None,
                // What others are told is silence too.
                () = tokio::time::sleep_until(self.spoke + HEARTBEAT) => {
                    if !self.check().await {
                        return None;
                    }
                    self.spoke = Instant::now();
                    return Some((Ok(Bytes::from_static(b": alive\n\n")), self));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::auth::{cookie_name, signed_with};
    use crate::http::guard::frame;
    use crate::http::sessions::LIFETIME;
    use crate::pages::fixture::World;
    use crate::tokens::{self, NewToken, TokenKind};
    use aop_kernel::role::Role;
    use axum::extract::{FromRequestParts, Request};
    use axum::response::IntoResponse;
    use serde_json::json;

    /// A project with the features `shop` and `other`, and the stream of an agent of `shop`; also its token's id.
    async fn followed() -> (World, Body, String, watch::Sender<bool>) {
        let world = World::new().await;
        world.feature("shop", "Shop").await;
        world.feature("other", "Other").await;
        let store = &world.service.store;
        let (role, feature) = (Role::Builder, Some(FeatureId::parse("shop").unwrap()));
        let new = NewToken { kind: TokenKind::Agent, name: None, role, feature, lives_ms: None };
        let (record, token) = tokens::create(store.as_ref(), new).await.unwrap();
        let (app, switch) = world.app().await;
        let signed = signed_with(&app, &token).await;
        let from = Ok(Query(From::default()));
        let Ok(response) = events(State(app), signed, from, HeaderMap::new()).await else {
            panic!("it may follow")
        };
        let mut body = response.into_body();
        assert!(said(&mut body).await.unwrap().starts_with("retry:"));
        (world, body, record.token_id, switch)
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_that_ends_takes_its_stream_along() {
        for signs_out in [true, false] {
            let world = World::new().await;
            let (app, _switch) = world.app().await;
            let cookie = app.sessions.open(None, None).unwrap();
            let session = app.sessions.find(&cookie).unwrap();
            let request =
                Request::get("/events").header(header::COOKIE, format!("{}={cookie}", cookie_name(&app)));
            let mut parts = request.body(()).unwrap().into_parts().0;
            let Ok(signed) = Signed::from_request_parts(&mut parts, &app).await else { panic!("signed in") };
            let from = Ok(Query(From::default()));
            let shared = State(Arc::clone(&app));
            let Ok(response) = events(shared, signed, from, HeaderMap::new()).await else {
                panic!("it may follow")
            };
            let mut body = response.into_body();
            assert!(said(&mut body).await.unwrap().starts_with("retry:"));
            assert_eq!(said(&mut body).await.as_deref(), Some(": alive\n\n"));
            if signs_out {
                app.sessions.close(&session);
            } else {
                tokio::time::advance(LIFETIME).await;
            }
            assert_eq!(said(&mut body).await, None);
        }
    }

    /// The next piece of the stream.
    async fn said(body: &mut Body) -> Option<String> {
        let bytes = frame(body).await?.unwrap().into_data().unwrap();
        Some(String::from_utf8(bytes.to_vec()).unwrap())
    }

    /// Something is asked in this feature every five seconds.
    async fn busy(world: &World, feature: &str) {
        tokio::time::advance(HEARTBEAT / 3).await;
        world.ask(feature, json!({"blocking": false})).await;
    }

    #[tokio::test]
    async fn what_was_told_by_another_server_already_is_not_sent_again() {
        let world = World::new().await;
        world.feature("shop", "Shop").await;
        let (app, _switch) = world.app().await;
        world.ask("shop", json!({"blocking": false})).await;
        let last = world.service.store.last().await.unwrap();
        assert!(app.feed.last() < last, "the server has yet to read what was just written");
        for (named, goes_on) in [(last - 1, last - 1), (last + 7, last), (last, last)] {
            let signed = signed_with(&app, "token").await;
            let headers = HeaderMap::from_iter([(
                LAST_EVENT_ID.parse::<header::HeaderName>().unwrap(),
                HeaderValue::from(named),
            )]);
            let from = Ok(Query(From::default()));
            let Ok(response) = events(State(app.clone()), signed, from, headers).await else {
                panic!("it may follow")
            };
            let mut body = response.into_body();
            assert!(said(&mut body).await.unwrap().ends_with(&format!("\nid: {goes_on}\n\n")), "{named}");
            if named == last {
                world.ask("shop", json!({"blocking": false})).await;
                let next = said(&mut body).await.unwrap();
                assert!(next.starts_with(&format!("id: {}\n", last + 1)), "{next}");
            }
        }
    }

    #[tokio::test]
    async fn a_stream_that_is_to_begin_in_two_places_is_refused() {
        let world = World::new().await;
        let (app, _switch) = world.app().await;
        let signed = signed_with(&app, "token").await;
        let name = || LAST_EVENT_ID.parse::<header::HeaderName>().unwrap();
        let mut headers = HeaderMap::new();
        headers.append(name(), HeaderValue::from(9));
        headers.append(name(), HeaderValue::from(1));
        let Err(refused) = events(State(app), signed, Ok(Query(From::default())), headers).await else {
            panic!("one of the two would leave events out")
        };
        assert_eq!(refused.into_response().status(), 400);
    }

    #[tokio::test(start_paused = true)]
    async fn a_revoked_token_loses_its_stream_also_where_it_never_falls_silent() {
        let (world, mut body, token, _switch) = followed().await;
        busy(&world, "shop").await;
        assert!(said(&mut body).await.unwrap().contains("\ndata: "));
        tokens::revoke(world.service.store.as_ref(), &token).await.unwrap();
        busy(&world, "shop").await;
        busy(&world, "shop").await;
        assert_eq!(said(&mut body).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn an_agent_hears_that_somebody_is_there_while_only_others_are_told_something() {
        let (world, mut body, _, _switch) = followed().await;
        for _ in 0..2 {
            busy(&world, "other").await;
            assert!(futures_util::poll!(Box::pin(said(&mut body))).is_pending());
        }
        busy(&world, "other").await;
        let due = Instant::now();
        assert_eq!(said(&mut body).await.as_deref(), Some(": alive\n\n"));
        assert!(due.elapsed() < HEARTBEAT / 3, "not {HEARTBEAT:?} after the last event of others");
    }
}
