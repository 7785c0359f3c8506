//! `/api/v1/features`, `/api/v1/runs`, `/api/v1/version`: reading. What changes a feature is a tool.

use super::api::Named;
use super::auth::Signed;
use super::questions::{number, owned, query_refusal};
use super::reply::{Done, Refused, Reply};
use super::{App, Shared};
use crate::tokens::Bearer;
use aop_kernel::ids::FeatureId;
use aop_kernel::tools::Tool;
use aop_kernel::{Envelope, ErrorCode, Refusal};
use aop_store::{EventPage, Items, Shelf};
use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// A page of the log, unless it asks for another size …
const PAGE: usize = 100;
/// … up to this.
const LARGEST_PAGE: usize = 1_000;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/api/v1/features", get(list))
        .route("/api/v1/features/{id}", get(show))
        .route("/api/v1/features/{id}/context", get(context))
        .route("/api/v1/features/{id}/log", get(log))
        .route("/api/v1/runs", get(runs))
        .route("/api/v1/version", get(version))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Filters {
    status: Option<String>,
    all: Option<String>,
}

async fn list(
    State(app): State<Arc<App>>,
    signed: Signed,
    filters: Result<Query<Filters>, QueryRejection>,
) -> Reply {
    let Query(filters) = filters.map_err(|error| query_refusal(&error))?;
    let mut input = Map::new();
    if let Some(status) = filters.status {
        input.insert("status".into(), json!(status));
    }
    if let Some(all) = filters.all {
        let all: bool = all
            .parse()
            .map_err(|_| Refusal::invalid_argument("all is true or false").fact("argument", "all"))?;
        input.insert("all".into(), json!(all));
    }
    super::api::call(&app, &signed, Tool::FeatureList, input).await
}

async fn show(State(app): State<Arc<App>>, signed: Signed, Named(id): Named) -> Result<Response, Refused> {
    let id = seen(&signed, &id)?;
    let record = app.service.feature(&id).await?;
    let mut response = Done(Envelope::success(&record)).into_response();
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{}\"", record.version)) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    Ok(response)
}

async fn context(State(app): State<Arc<App>>, signed: Signed, Named(id): Named) -> Reply {
    let input = Map::from_iter([("feature_id".to_owned(), json!(id))]);
    super::api::call(&app, &signed, Tool::FeatureGetContext, input).await
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    after: Option<String>,
    limit: Option<String>,
}

async fn log(
    State(app): State<Arc<App>>,
    signed: Signed,
    Named(id): Named,
    section: Result<Query<Section>, QueryRejection>,
) -> Reply {
    let Query(section) = section.map_err(|error| query_refusal(&error))?;
    let id = seen(&signed, &id)?;
    app.service.feature(&id).await?;
    let limit = number("limit", section.limit.as_deref(), 1, LARGEST_PAGE)?.unwrap_or(PAGE);
    let after = number("after", section.after.as_deref(), 0, i64::MAX as usize)?.unwrap_or(0);
    let page = EventPage { after: after as u64, feature: Some(id), limit };
    let items = app.service.store.events(page).await?;
    Ok(Done(Envelope::success(&Items { items })))
}

/// Runs, oldest first. They belong to the project, not to a feature, so agents do not see them.
async fn runs(State(app): State<Arc<App>>, signed: Signed) -> Reply {
    if let Bearer::Agent { role, .. } = signed.bearer() {
        return Err(Refusal::new(
            ErrorCode::ForbiddenForRole,
            format!("{role} may not see the project's runs"),
        )
        .hint("an agent's token is for one feature")
        .into());
    }
    let documents = app.service.store.documents(Shelf::Runs, String::new()).await?;
    let items: Vec<Value> = documents.into_iter().map(|(_, run)| run).collect();
    Ok(Done(Envelope::success(&Items { items })))
}

async fn version(_signed: Signed) -> Reply {
    Ok(Done(Envelope::success(&json!({"version": env!("CARGO_PKG_VERSION")}))))
}

/// A feature's id that the caller may look at.
fn seen(signed: &Signed, id: &str) -> Result<FeatureId, Refusal> {
    let id = FeatureId::parse(id)?;
    owned(&signed.caller()?, &id)?;
    Ok(id)
}
