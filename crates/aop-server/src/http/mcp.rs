//! `/mcp`: the protocol over HTTP, with sessions for the versions that have them and without for the one that has
//! none. Every request brings its own credential, and that is what counts; a session belongs to the token that opened
//! it. No question depends on a session or a connection: one that is lost ends the wait and nothing else.

use super::auth::Signed;
use super::guard::frame;
use super::reply::{Refused, json};
use super::{App, Shared};
use crate::mcp::message::{self, Batched};
use crate::mcp::{Connection, Server};
use aop_kernel::tools::MAX_REQUEST_BYTES;
use aop_kernel::{ErrorCode, Refusal};
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use futures_util::stream::{self, SelectAll, StreamExt};
use rmcp::model::{ProtocolVersion, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::future::ready;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

const SESSION: &str = "mcp-session-id";

const VERSION: &str = "mcp-protocol-version";

const JSON: &[u8] = b"application/json";

/// There are no more sessions than this; the oldest are closed and have to be opened anew …
const MOST_SESSIONS: usize = 10_000;
/// … and of one token no more than this, so that whoever opens them without end closes none but its own.
const MOST_OF_ONE: usize = 500;

/// Becomes true when the connection of a request is lost.
#[derive(Debug, Clone)]
pub(crate) struct Gone(pub(crate) watch::Receiver<bool>);

type Protocol = StreamableHttpService<Server, LocalSessionManager>;

pub(super) fn routes(app: &Shared) -> Router<Shared> {
    let inner = Arc::clone(app);
    let config = StreamableHttpServerConfig::default()
        // The guard has looked at Host and Origin already, and knows names that were allowed.
        .disable_allowed_hosts()
        .with_max_request_body_bytes(MAX_REQUEST_BYTES);
    let owners = Arc::new(Owners::default());
    let sessions = Arc::clone(&owners.sessions);
    let protocol = Protocol::new(move || Ok(Server::Http(Arc::clone(&inner))), sessions, config);
    let serve = move |State(app): State<Arc<App>>, signed: Signed, request: Request| {
        let (protocol, owners) = (protocol.clone(), Arc::clone(&owners));
        async move { serve(&app, signed, request, &protocol, &owners).await }
    };
    Router::new().route("/mcp", any(serve))
}

async fn serve(
    app: &App,
    signed: Signed,
    request: Request,
    protocol: &Protocol,
    owners: &Owners,
) -> Response {
    if signed.is_browser() {
        let refusal = Refusal::new(ErrorCode::Unauthenticated, "a browser's session does not speak MCP");
        return Refused::from(refusal).into_response();
    }
    let (mut head, body) = request.into_parts();
    let method = head.method.clone();
    let session = named_session(&head.headers);
    if let Some(session) = session.as_deref().filter(|session| !owners.admits(session, signed.tag())) {
        let refusal =
            Refusal::invalid_argument(format!("there is no session {}", aop_kernel::ids::quoted(session)))
                .hint("open a new one with initialize");
        return Refused::with_status(404, refusal).into_response();
    }
    let (loss, gone) = watch::channel(false);
    let loss = Loss(Some(loss));
    let tag = signed.tag().to_owned();
    one_line(&mut head.headers, header::ACCEPT);
    head.extensions.insert(Gone(gone));
    head.extensions.insert(signed);
    let mut response = match to_bytes(body, MAX_REQUEST_BYTES).await {
        Ok(text) => answered(protocol, head, text).await,
        Err(error) => {
            let refusal = Refusal::invalid_argument(format!("the body broke off: {error}"));
            return Refused::from(refusal).into_response();
        }
    };
    if let Some(opened) = named_session(response.headers())
        && let Some((session, tag)) = owners.opened(opened, tag.clone())
    {
        // Whoever still waits there is told so by a connection that is lost.
        let _ = owners.sessions.close_session(&session.as_str().into()).await;
        app.memories.lost(&Connection { tag, session: Some(session) });
    }
    // The protocol library ends a session that nothing comes from for some minutes; its client opens another.
    let is_over = response.status() == StatusCode::NOT_FOUND;
    let is_closed = method == Method::DELETE && response.status().is_success();
    if let Some(closed) = session.filter(|_| is_over || is_closed) {
        owners.closed(&closed);
        let connection = Connection { tag, session: Some(closed) };
        if is_closed {
            app.memories.parted(&connection, app.service.store.as_ref()).await;
        } else {
            app.memories.lost(&connection);
        }
        if response.status() == StatusCode::ACCEPTED {
            // It is closed, not going to be; the official Python SDK takes "accepted" for a failure.
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
    }
    // Only a client that listens for whatever may come has to be told that nothing will.
    let stopping = (method == Method::GET).then(|| app.stopping.clone());
    response.map(|body| watched(body, loss, stopping))
}

/// A list may stand on several lines, of which the protocol library reads the first.
fn one_line(headers: &mut HeaderMap, name: HeaderName) {
    let lines: Vec<&[u8]> = headers.get_all(&name).iter().map(HeaderValue::as_bytes).collect();
    if let Ok(line) = HeaderValue::from_bytes(&lines.join(&b", "[..]))
        && lines.len() > 1
    {
        headers.insert(name, line);
    }
}

/// What a body is answered.
async fn answered(protocol: &Protocol, head: Parts, body: Bytes) -> Response {
    // Versions that came after the one with batches are named in every head.
    let version = named_session(&head.headers).map(|_| match head.headers.get(VERSION) {
        Some(version) => version.to_str().unwrap_or("?").to_owned(),
        None => ProtocolVersion::V_2025_03_26.to_string(),
    });
    let batch = match head.method == Method::POST && is_json(&head.headers) {
        true => message::batch(&body, version.as_deref()),
        false => Ok(None),
    };
    let answer = match batch {
        Ok(None) => answered_alone(protocol, head, body).await,
        Ok(Some(batch)) => Ok(answered_together(protocol, head, &batch).await),
        Err(refusal) => Err(refusal),
    };
    answer.unwrap_or_else(|refusal| json(StatusCode::BAD_REQUEST, message::text(&refusal)))
}

fn is_json(headers: &HeaderMap) -> bool {
    kind(headers).is_some_and(|kind| kind.starts_with(JSON))
}

fn kind(headers: &HeaderMap) -> Option<&[u8]> {
    headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes)
}

/// Has the protocol library answer. It says of what it cannot read that this has the wrong media type.
async fn answered_alone(
    protocol: &Protocol,
    head: Parts,
    body: Bytes,
) -> Result<Response, Box<ServerJsonRpcMessage>> {
    let is_json = is_json(&head.headers);
    let response = protocol.handle(Request::from_parts(head, Body::from(body.clone()))).await;
    if is_json && response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        return Err(Box::new(message::unreadable(&body)));
    }
    Ok(response.map(Body::new))
}

/// The answers to the messages of a batch, in one stream as they come.
async fn answered_together(protocol: &Protocol, mut head: Parts, batch: &[Box<RawValue>]) -> Response {
    head.extensions.insert(Batched);
    let mut answers = SelectAll::new();
    for text in batch.iter().map(|message| message.get()) {
        let answer = match message::unfit(text.as_bytes()) {
            None => answered_alone(protocol, head.clone(), Bytes::from(text.to_owned())).await,
            Some(refusal) => Err(Box::new(refusal)),
        };
        let said = match answer {
            Ok(response) if response.status() == StatusCode::ACCEPTED => continue,
            Ok(response) => match kind(response.headers()) {
                Some(b"text/event-stream") => {
                    answers.push(response.into_body().into_data_stream().boxed());
                    continue;
                }
                Some(JSON) => to_bytes(response.into_body(), usize::MAX).await.unwrap_or_default(),
                // A head that is refused with one message is refused with the first, before anything is done.
                Some(_) | None => return response,
            },
            Err(refusal) if message::is_awaited(text.as_bytes()) => message::text(&refusal).into(),
            Err(_) => continue,
        };
        let event = [b"data: ", &*said, b"\n\n"].concat();
        answers.push(stream::once(ready(Ok(Bytes::from(event)))).boxed());
    }
    if answers.is_empty() {
        return StatusCode::ACCEPTED.into_response();
    }
    let kind = (header::CONTENT_TYPE, "text/event-stream");
    // Proxies that collect a response before they pass it on would hold answers back.
    let unbuffered = (HeaderName::from_static("x-accel-buffering"), "no");
    ([kind, unbuffered], Body::from_stream(answers)).into_response()
}

/// The session that the head of a request or a response names.
pub(crate) fn named_session(headers: &HeaderMap) -> Option<String> {
    headers.get(SESSION).and_then(|session| session.to_str().ok()).map(str::to_owned)
}

/// Says that a connection was lost, unless its response was read to the end.
struct Loss(Option<watch::Sender<bool>>);

impl Loss {
    fn averted(&mut self) {
        self.0 = None;
    }
}

impl Drop for Loss {
    fn drop(&mut self) {
        if let Some(loss) = self.0.take() {
            loss.send_replace(true);
        }
    }
}

struct Watched {
    body: Body,
    loss: Loss,
    stopping: Option<watch::Receiver<bool>>,
}

/// The body, noticed when it is dropped before its end.
fn watched(body: Body, loss: Loss, stopping: Option<watch::Receiver<bool>>) -> Body {
    let state = Watched { body, loss, stopping };
    Body::from_stream(stream::unfold(state, |mut state| async move {
        loop {
            let next = match &mut state.stopping {
                Some(stopping) => {
                    let stopped = async move { drop(stopping.wait_for(|stop| *stop).await) };
                    tokio::select! {
                        next = frame(&mut state.body) => next,
                        () = stopped => None,
                    }
                }
                None => frame(&mut state.body).await,
            };
            let Some(next) = next else {
                state.loss.averted();
                return None;
            };
            match next.map(|frame| frame.into_data()) {
                Ok(Ok(data)) => return Some((Ok::<Bytes, axum::Error>(data), state)),
                // Trailers; there are none.
                Ok(Err(_)) => {}
                Err(error) => return Some((Err(error), state)),
            }
        }
    }))
}

/// Which token opened which session.
#[derive(Default)]
struct Owners {
    sessions: Arc<LocalSessionManager>,
    /// By the session: when it was opened, by a number, and the token.
    tags: Mutex<HashMap<String, (u64, String)>>,
}

impl Owners {
    fn map(&self) -> std::sync::MutexGuard<'_, HashMap<String, (u64, String)>> {
        // A map is whole after any panic.
        self.tags.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admits(&self, session: &str, tag: &str) -> bool {
        self.map().get(session).is_some_and(|(_, owner)| owner == tag)
    }

    /// Keeps a new session; the one that has to go for it, and its token, if there are too many.
    fn opened(&self, session: String, tag: String) -> Option<(String, String)> {
        let mut tags = self.map();
        let next = tags.values().map(|(number, _)| number + 1).max().unwrap_or(0);
        let is_greedy = tags.values().filter(|(_, owner)| *owner == tag).count() >= MOST_OF_ONE;
        let goes = (is_greedy || tags.len() >= MOST_SESSIONS).then(|| {
            let may_go = tags.iter().filter(|(_, (_, owner))| !is_greedy || *owner == tag);
            may_go.min_by_key(|(_, (number, _))| *number).map(|(id, (_, owner))| (id.clone(), owner.clone()))
        });
        let gone = goes.flatten().inspect(|(id, _)| drop(tags.remove(id)));
        tags.entry(session).or_insert((next, tag));
        gone
    }

    fn closed(&self, session: &str) {
        self.map().remove(session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_opens_sessions_without_end_closes_none_but_its_own() {
        let owners = Owners::default();
        let open = |tag: &str, number: usize| owners.opened(format!("{tag}-{number}"), tag.to_owned());
        assert_eq!(open("other", 0), None);
        for number in 0..MOST_OF_ONE {
            assert_eq!(open("one", number), None);
        }
        for number in 0..9 {
            let gone = open("one", MOST_OF_ONE + number);
            assert_eq!(gone, Some((format!("one-{number}"), "one".to_owned())));
            assert!(!owners.admits(&format!("one-{number}"), "one"));
        }
        assert!(owners.admits("other-0", "other"));
        let others =
            (MOST_OF_ONE + 1..MOST_SESSIONS).map(|number| (number.to_string(), (9_999, number.to_string())));
        owners.map().extend(others);
        assert_eq!(open("last", 0), Some(("other-0".to_owned(), "other".to_owned())), "the oldest of all");
        assert_eq!(owners.map().len(), MOST_SESSIONS);
    }
}
