//! `/api/v1/features`, `/api/v1/runs`, `/api/v1/version`: reading. What changes a feature is a tool.

use super::api::Named;
use super::auth::Signed;
use super::questions::{cursor, flag, number, owned, query_refusal};
use super::reply::{Done, Refused, Reply};
use super::{App, Shared};
use crate::tokens::Bearer;
use aop_kernel::ids::{FeatureId, RunId};
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
pub(super) const LARGEST_PAGE: usize = 1_000;

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
    if let Some(all) = flag("all", filters.all.as_deref())? {
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

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pages {
    limit: Option<String>,
    cursor: Option<String>,
}

/// Runs, oldest first. They belong to the project, not to a feature, so agents do not see them.
async fn runs(
    State(app): State<Arc<App>>,
    signed: Signed,
    pages: Result<Query<Pages>, QueryRejection>,
) -> Reply {
    let Query(pages) = pages.map_err(|error| query_refusal(&error))?;
    if let Bearer::Agent { role, .. } = signed.bearer() {
        return Err(Refusal::new(
            ErrorCode::ForbiddenForRole,
            format!("{role} may not see the project's runs"),
        )
        .hint("an agent's token is for one feature")
        .into());
    }
    let limit = number("limit", pages.limit.as_deref(), 1, LARGEST_PAGE)?.unwrap_or(PAGE);
    let after = pages.cursor.as_deref().map(|text| cursor(text, RunId::parse)).transpose()?;
    // Their ids sort by time. The one that runs now has a second document beside that, without an id for its key.
    let runs = app.service.store.documents(Shelf::Runs, "r_".to_owned()).await?;
    let mut later =
        runs.into_iter().filter(|(id, _)| after.as_ref().is_none_or(|last| id.as_str() > last.as_str()));
    let (ids, items): (Vec<String>, Vec<Value>) = later.by_ref().take(limit).unzip();
    let next_cursor = later.next().and(ids.last());
    Ok(Done(Envelope::success(&json!({"items": items, "next_cursor": next_cursor}))))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::auth::signed_with;
    use crate::pages::fixture::World;
    use aop_store::Expect;

    #[tokio::test]
    async fn each_run_is_listed_once_oldest_first_and_page_by_page() {
        let world = World::new().await;
        let (app, _switch) = world.app().await;
        let run = |number: u32| format!("r_01JQZ00000000000000000000{number}");
        // The last one runs now, and stands there under a second name.
        for (key, number) in [(run(2), 2), (run(1), 1), (run(3), 3), ("current".to_owned(), 3)] {
            let document = Some(json!({"run_id": run(number)}));
            world.service.store.place(Shelf::Runs, key, document, Expect::Absent).await.unwrap();
        }
        let listed = async |limit: &str, cursor: Option<String>| {
            let pages = Pages { limit: Some(limit.to_owned()), cursor };
            let signed = signed_with(&app, "token").await;
            runs(State(Arc::clone(&app)), signed, Ok(Query(pages)))
                .await
                .map(|Done(envelope)| envelope.data())
        };
        let page = |numbers: &[u32], next: Option<String>| {
            let items: Vec<Value> = numbers.iter().map(|number| json!({"run_id": run(*number)})).collect();
            json!({"items": items, "next_cursor": next})
        };
        assert_eq!(listed("3", None).await.ok(), Some(page(&[1, 2, 3], None)));
        assert_eq!(listed("2", None).await.ok(), Some(page(&[1, 2], Some(run(2)))));
        assert_eq!(listed("2", Some(run(2))).await.ok(), Some(page(&[3], None)));
        assert!(listed("0", None).await.is_err());
        assert!(listed("1001", None).await.is_err());
        assert!(listed("1", Some("current".to_owned())).await.is_err());
    }
}
