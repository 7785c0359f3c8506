//! The pages that people see. Each is a handler with an [`super::auth::Visitor`] or [`super::auth::SignedForm`].

use super::auth::Visitor;
use super::{App, Shared};
use axum::Router;
use axum::extract::State;
use axum::response::Html;
use axum::routing::get;
use std::sync::Arc;

/// All of them.
pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/", get(home))
}

async fn home(State(app): State<Arc<App>>, visitor: Visitor) -> Html<String> {
    let title = super::login::escaped(&app.project);
    let name = super::login::escaped(visitor.name().unwrap_or("an operator"));
    Html(format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>aop: {title}</title>\
         <h1>{title}</h1><p>You are signed in as {name}.</p>\
         <form method=\"post\" action=\"/logout\"><input type=\"hidden\" name=\"{}\" value=\"{}\">\
         <button>Sign out</button></form></html>",
        super::auth::CSRF_FIELD,
        visitor.csrf(),
    ))
}
