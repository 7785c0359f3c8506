//! HTTP: one router for the API, MCP, events and pages. What every request passes is in `guard`; who makes it is
//! decided in `auth`; nothing here holds a rule of its own.
//!
//! To add pages: put routes into [`crate::pages::routes`]. A handler that takes an [`auth::Visitor`] is shown only to people
//! who have signed in (everybody else goes to `/login`); one that takes an [`auth::SignedForm`] gets the fields of a
//! form whose CSRF token has been checked. Put `visitor.csrf()` into each form as the hidden field
//! [`auth::CSRF_FIELD`]. The content policy admits scripts and styles from this server's own files alone.

pub(crate) mod api;
pub(crate) mod auth;
mod events;
mod features;
pub(crate) mod guard;
mod health;
mod limits;
pub(crate) mod listen;
mod login;
pub(crate) mod mcp;
pub(crate) mod openapi;
mod questions;
pub(crate) mod reply;
mod sessions;
mod steady;
pub(crate) mod tls;

use crate::feed::Feed;
use crate::mcp::Memories;
use crate::pages::Trouble;
use crate::secret::Sealed;
use aop_kernel::{ErrorCode, Refusal};
use aop_store::Service;
use axum::Router;
use axum::extract::OriginalUri;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use limits::Failures;
use reply::Refused;
use sessions::Sessions;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// What this door calls itself in the resolution of a question.
pub(crate) const SURFACE: &str = "http";

/// What every handler can reach.
pub(crate) struct App {
    /// The store and the rules.
    pub(crate) service: Service,
    /// The project's events as they come.
    pub(crate) feed: Feed,
    /// How long a call waits for a human unless it asks for less.
    pub(crate) patience: Duration,
    /// Becomes true when the server stops: waits end, streams close.
    pub(crate) stopping: watch::Receiver<bool>,
    /// The project's folder by name, for titles.
    pub(crate) project: String,
    /// Where this server listens.
    pub(crate) address: SocketAddr,
    /// Whether browsers reach it over TLS.
    pub(crate) secure: bool,
    /// Names under which it may be called, beside its addresses.
    pub(crate) hosts: Vec<String>,
    /// The operator's token that lives as long as this process.
    pub(crate) own_token: Sealed,
    /// What is remembered between the calls of MCP clients.
    pub(crate) memories: Memories,
    /// What the dashboard remembers.
    pub(crate) pages: crate::pages::Memory,
    /// People who have signed in.
    pub(crate) sessions: Sessions,
    /// Credentials that were refused lately.
    pub(crate) failures: Failures,
}

/// The state as handlers take it.
pub(crate) type Shared = Arc<App>;

/// Everything, behind the guard.
pub(crate) fn router(app: &Shared) -> Router {
    Router::new()
        .merge(health::routes())
        .merge(api::routes())
        .merge(questions::routes())
        .merge(features::routes())
        .merge(openapi::routes())
        .merge(events::routes())
        .merge(mcp::routes(app))
        .merge(login::routes())
        .merge(crate::pages::routes())
        .fallback(nowhere)
        .method_not_allowed_fallback(not_so)
        .layer(from_fn_with_state(Arc::clone(app), guard::admit))
        .layer(from_fn(guard::headers))
        .with_state(Arc::clone(app))
}

async fn nowhere(OriginalUri(uri): OriginalUri, headers: HeaderMap) -> Response {
    let path = aop_kernel::ids::quoted(uri.path());
    let message = format!("there is nothing at {path}");
    if wants_page(&uri, &headers) {
        return Trouble::not_found(&message).into_response();
    }
    let refusal = Refusal::invalid_argument(message)
        .hint("the API is below /api/v1; GET /api/v1/openapi.json describes it");
    Refused::with_status(404, refusal).into_response()
}

async fn not_so(method: Method, OriginalUri(uri): OriginalUri, headers: HeaderMap) -> Response {
    let path = aop_kernel::ids::quoted(uri.path());
    let refusal = Refusal::new(ErrorCode::UnsupportedOperation, format!("{path} takes no {method}"));
    if wants_page(&uri, &headers) {
        return Trouble::from(refusal.hint("go on from the inbox"))
            .with_status(StatusCode::METHOD_NOT_ALLOWED)
            .into_response();
    }
    Refused::with_status(405, refusal.hint("the Allow header names what it takes")).into_response()
}

/// A refusal as whoever asked for this can read it: a page for a browser, JSON for programs.
fn refused(uri: &Uri, headers: &HeaderMap, refusal: Refusal) -> Response {
    if wants_page(uri, headers) {
        Trouble::from(refusal).into_response()
    } else {
        Refused::from(refusal).into_response()
    }
}

/// Some programs accept pages without ever showing one; what is there for programs answers them all alike.
fn wants_page(uri: &Uri, headers: &HeaderMap) -> bool {
    if ["/api/", "/mcp", "/events"].iter().any(|place| uri.path().starts_with(place)) {
        return false;
    }
    let accepted = headers.get(header::ACCEPT).and_then(|accepted| accepted.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains("text/html"))
}
