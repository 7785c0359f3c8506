//! `GET /api/v1/health`: whether the server is there and its store can be read. Needs no token and tells nothing
//! about the project.

use super::reply::{Done, Reply};
use super::{App, Shared};
use aop_kernel::Envelope;
use axum::Router;
use axum::extract::State;
use axum::routing::get;
use serde_json::json;
use std::sync::Arc;

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/api/v1/health", get(health))
}

async fn health(State(app): State<Arc<App>>) -> Reply {
    app.service.store.now().await?;
    Ok(Done(Envelope::success(&json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")}))))
}
