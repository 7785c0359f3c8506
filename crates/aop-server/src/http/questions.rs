//! `/api/v1/questions`: what is asked, and what becomes of it. Each change is the tool of the contract that makes it.

use super::api::{Named, call, name_operation, object};
use super::auth::Signed;
use super::reply::{Done, Refused, Reply};
use super::{App, SURFACE, Shared};
use crate::wait::{Wait, question};
use aop_kernel::ids::{FeatureId, OperationId, QuestionId, quoted};
use aop_kernel::question::{Question, QuestionStatus};
use aop_kernel::role::Caller;
use aop_kernel::tools::{QuestionFilter, Tool, lone_feature, parse, question_request};
use aop_kernel::{Envelope, ErrorCode, Refusal};
use aop_store::{QuestionPage, Record, fresh_operation};
use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// A page of a list, unless it asks for another size …
const PAGE: usize = 50;
/// … up to this.
pub(super) const LARGEST_PAGE: usize = 500;
/// Nobody waits longer in one call, in seconds.
pub(super) const LONGEST_WAIT: usize = 50;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/api/v1/questions", get(list).post(create))
        .route("/api/v1/questions/{id}", get(show))
        .route("/api/v1/questions/{id}/answer", by(Tool::QuestionAnswer))
        .route("/api/v1/questions/{id}/withdraw", by(Tool::QuestionWithdraw))
        .route("/api/v1/questions/{id}/reopen", by(Tool::QuestionReopen))
        .route("/api/v1/questions/{id}/wait", get(wait))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Filters {
    feature_id: Option<String>,
    status: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
}

#[derive(Serialize)]
struct Listed<'a> {
    items: Vec<&'a RawValue>,
    /// Where the next page begins; null on the last one.
    next_cursor: Option<QuestionId>,
}

async fn list(
    State(app): State<Arc<App>>,
    signed: Signed,
    filters: Result<Query<Filters>, QueryRejection>,
) -> Reply {
    let Query(filters) = filters.map_err(|error| query_refusal(&error))?;
    let caller = signed.caller()?;
    let store = &app.service.store;
    let filter = match filters.status.as_deref() {
        Some(name) => QuestionFilter::parse(name)?,
        None => QuestionFilter::Only(QuestionStatus::Open),
    };
    let feature = filters.feature_id.as_deref().map(FeatureId::parse).transpose()?.or(own(&caller));
    if let Some(id) = &feature {
        owned(&caller, id)?;
        // Says that there is no such feature.
        app.service.feature(id).await?;
    }
    let after = match filters.cursor.as_deref().map(|text| cursor(text, QuestionId::parse)).transpose()? {
        Some(id) => Some((question(store.as_ref(), &id).await?.created_at, id)),
        None => None,
    };
    let limit = number("limit", filters.limit.as_deref(), 1, LARGEST_PAGE)?.unwrap_or(PAGE);
    let page = QuestionPage { feature, filter, after, limit: limit + 1 };
    let mut records = store.records(page).await?;
    let more = records.len() > limit;
    records.truncate(limit);
    let last = records.last().filter(|_| more).map(Record::question).transpose()?;
    let next_cursor = last.map(|last| last.id);
    let items = records.iter().map(Record::json).collect::<Result<_, _>>()?;
    Ok(Done(Envelope::success(&Listed { items, next_cursor })))
}

async fn show(State(app): State<Arc<App>>, signed: Signed, Named(id): Named) -> Result<Response, Refused> {
    let question = theirs(&app, &signed, &id).await?;
    Ok(tagged(&question, &Envelope::success(&question)))
}

async fn create(State(app): State<Arc<App>>, signed: Signed, headers: HeaderMap, body: Bytes) -> Reply {
    let caller = signed.caller()?;
    let mut input = object(&headers, &body)?;
    name_operation(&headers, &mut input)?;
    let operation = operation(&mut input)?;
    let mut default = |key: &str, value: Value| {
        if input.get(key).is_none_or(Value::is_null) {
            input.insert(key.to_owned(), value);
        }
    };
    default("role", json!(caller.role));
    default("session_id", json!(SURFACE));
    default("question_type", json!("clarification"));
    if let Some(own) = own(&caller) {
        default("feature_id", json!(own));
    }
    if input.get("feature_id").is_some_and(|id| !id.is_null()) {
        return call(&app, &signed, Tool::QuestionCreate, input).await;
    }
    // Without a feature the question brings one along, as with `aop ask`.
    input.insert("feature_id".into(), json!(lone_feature(&operation)));
    let title = input.get("prompt").and_then(Value::as_str).unwrap_or_default().to_owned();
    let request = question_request(&caller, &Value::Object(input), SURFACE, &app.service.rules)?;
    let receipt = app.service.submit(request.bringing_feature(title)).await?;
    Ok(Done(receipt.envelope))
}

/// A change of one question, by this tool.
fn by(tool: Tool) -> MethodRouter<Shared> {
    let handler = move |State(app): State<Arc<App>>,
                        signed: Signed,
                        Named(id): Named,
                        headers: HeaderMap,
                        body: Bytes| async move {
        let mut input = object(&headers, &body)?;
        if tool == Tool::QuestionAnswer && input.get("answered_by").is_none_or(Value::is_null) {
            input.insert("answered_by".into(), json!("human"));
        }
        change(&app, &signed, tool, &id, &headers, input).await
    };
    post(handler)
}

/// Calls the tool for one question. Its feature is looked up; a body that names another is refused with the rest of
/// the arguments.
async fn change(
    app: &Arc<App>,
    signed: &Signed,
    tool: Tool,
    id: &str,
    headers: &HeaderMap,
    mut input: Map<String, Value>,
) -> Reply {
    for key in ["feature_id", "question_id"] {
        if input.contains_key(key) {
            return Err(Refusal::invalid_argument(format!("{key} stands in the address, not in the body"))
                .fact("argument", key)
                .into());
        }
    }
    // What a role may never do is refused before anything about the question is told.
    let caller = signed.caller()?;
    if tool.access(caller.role) == aop_kernel::tools::Access::Never {
        let refusal = parse(tool, &caller, &json!({}), SURFACE, &app.service.rules).err();
        return Err(refusal
            .unwrap_or_else(|| Refusal::new(ErrorCode::Internal, "the role table changed"))
            .into());
    }
    let question = theirs(app, signed, id).await?;
    // When it is closed, the tool itself says how, or gives a retry its first answer.
    if question.is_open() && !is_as_read(headers, &question) {
        return Err(Refusal::new(ErrorCode::VersionConflict, format!("question {id} is not as it was read"))
            .hint(format!(
                "read it again with `GET /api/v1/questions/{id}` and send its new ETag as If-Match"
            ))
            .fact("question_id", id)
            .into());
    }
    name_operation(headers, &mut input)?;
    operation(&mut input)?;
    input.insert("feature_id".into(), json!(question.feature_id));
    input.insert("question_id".into(), json!(question.id));
    call(app, signed, tool, input).await
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Patience {
    timeout_s: Option<String>,
    follow: Option<String>,
}

/// The question when it is closed, or as it stands after a while; where it is to be followed, the one by which a person
/// asked it again. A server that stops answers at once.
async fn wait(
    State(app): State<Arc<App>>,
    signed: Signed,
    Named(id): Named,
    patience: Result<Query<Patience>, QueryRejection>,
) -> Result<Response, Refused> {
    let Query(patience) = patience.map_err(|error| query_refusal(&error))?;
    let seconds = number("timeout_s", patience.timeout_s.as_deref(), 0, LONGEST_WAIT)?;
    let mut question = theirs(&app, &signed, &id).await?;
    if flag("follow", patience.follow.as_deref())? == Some(true) {
        question = app.service.last_asked(question).await?;
    }
    let wanted = seconds.map_or(app.patience, |seconds| Duration::from_secs(seconds as u64));
    let patience = wanted.min(app.patience);
    let wait = Wait { service: &app.service, closed: &app.stopping, patience };
    let question = wait.until_closed(&question).await?;
    // Whose token was taken back meanwhile is told nothing; it was no guess, and is not counted as one.
    if !signed.still_good(&app).await? {
        return Err(outlived().into());
    }
    Ok(tagged(&question, &Envelope::success(&question)))
}

fn outlived() -> Refusal {
    Refusal::new(
        ErrorCode::Unauthenticated,
        "the credential of this request is not valid any more: it expired or was revoked during the wait",
    )
    .hint("wait again with another token; `aop token list` shows which are good")
}

/// A question that the caller may see.
async fn theirs(app: &App, signed: &Signed, id: &str) -> Result<Question, Refusal> {
    let caller = signed.caller()?;
    let id = QuestionId::parse(id)?;
    let question = question(app.service.store.as_ref(), &id).await?;
    owned(&caller, &question.feature_id)?;
    Ok(question)
}

/// Refuses a worker that looks beyond its feature.
pub(super) fn owned(caller: &Caller, feature: &FeatureId) -> Result<(), Refusal> {
    if caller.owns(feature) {
        return Ok(());
    }
    Err(Refusal::new(ErrorCode::ForbiddenForRole, format!("{} may not see feature '{feature}'", caller.role))
        .hint("an agent's token is for one feature")
        .fact("role", caller.role)
        .fact("feature_id", feature))
}

/// The only feature a worker may see.
pub(super) fn own(caller: &Caller) -> Option<FeatureId> {
    caller.feature.clone().filter(|_| caller.role.is_worker())
}

/// The operation id of a request; one is made where it brings none.
fn operation(input: &mut Map<String, Value>) -> Result<OperationId, Refusal> {
    match input.get("operation_id") {
        None | Some(Value::Null) => {
            let fresh = OperationId::parse(&fresh_operation())?;
            input.insert("operation_id".into(), json!(fresh));
            Ok(fresh)
        }
        Some(Value::String(text)) => OperationId::parse(text),
        Some(_) => Err(Refusal::invalid_argument("operation_id is text").fact("argument", "operation_id")),
    }
}

/// Where a page begins, in a query.
pub(super) fn cursor<T>(text: &str, parse: impl Fn(&str) -> Result<T, Refusal>) -> Result<T, Refusal> {
    parse(text).map_err(|_| {
        Refusal::invalid_argument(format!("cursor {} is not one that a page gave", quoted(text)))
            .hint("take it from next_cursor of the page before, or leave it out to begin at the first")
            .fact("argument", "cursor")
    })
}

/// A whole number in a query.
pub(super) fn number(
    name: &str,
    text: Option<&str>,
    least: usize,
    most: usize,
) -> Result<Option<usize>, Refusal> {
    let Some(text) = text else { return Ok(None) };
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.map(Some).ok_or_else(|| {
        Refusal::invalid_argument(format!(
            "{name} {} is not a whole number from {least} to {most}",
            quoted(text)
        ))
        .fact("argument", name)
    })
}

/// A yes or no in a query.
pub(super) fn flag(name: &str, text: Option<&str>) -> Result<Option<bool>, Refusal> {
    let Some(text) = text else { return Ok(None) };
    text.parse().map(Some).map_err(|_| {
        Refusal::invalid_argument(format!("{name} {} is neither true nor false", quoted(text)))
            .fact("argument", name)
    })
}

/// A query that names what there is not.
pub(super) fn query_refusal(rejection: &QueryRejection) -> Refusal {
    Refusal::invalid_argument(format!("the query cannot be used: {}", rejection.body_text()))
        .hint("GET /api/v1/openapi.json names the parameters of each address")
}

/// A question changes once, when it is closed: its status tells one version from the other.
fn etag(question: &Question) -> HeaderValue {
    HeaderValue::from_static(match question.state.status() {
        QuestionStatus::Open => "\"open\"",
        QuestionStatus::Answered => "\"answered\"",
        QuestionStatus::Expired => "\"expired\"",
        QuestionStatus::Withdrawn => "\"withdrawn\"",
    })
}

/// Whether one of the versions that the caller names is the one of now, or it names none. There may be several, on one
/// line or on many.
fn is_as_read(headers: &HeaderMap, question: &Question) -> bool {
    let now = etag(question);
    let lines = || headers.get_all(header::IF_MATCH).into_iter();
    let mut tags =
        lines().flat_map(|line| line.as_bytes().split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
    lines().next().is_none() || tags.any(|tag| tag == now.as_bytes() || tag == b"*")
}

fn tagged(question: &Question, envelope: &Envelope) -> Response {
    let mut response = Done(envelope.clone()).into_response();
    response.headers_mut().insert(header::ETAG, etag(question));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::auth::{cookie_name, signed_with};
    use crate::pages::fixture::World;
    use crate::tokens::{self, NewToken, TokenKind};
    use aop_kernel::role::Role;
    use axum::extract::{FromRequestParts, Request};

    /// Whoever has this token, or a session that was opened with it.
    async fn signed(app: &Shared, token: &str, id: &str, is_browser: bool) -> Signed {
        if !is_browser {
            return signed_with(app, token).await;
        }
        let cookie = app.sessions.open(None, Some(id.to_owned())).unwrap();
        let request = Request::get("/").header(header::COOKIE, format!("{}={cookie}", cookie_name(app)));
        let mut parts = request.body(()).unwrap().into_parts().0;
        Signed::from_request_parts(&mut parts, app).await.unwrap()
    }

    #[tokio::test]
    async fn a_wait_tells_nothing_to_whoever_lost_the_right_to_it_meanwhile() {
        let world = World::new().await;
        world.feature("shop", "Shop").await;
        let store = world.service.store.as_ref();
        for (case, status) in [("good", 200), ("revoked", 401), ("expired", 401)] {
            for is_browser in [false, true] {
                let (kind, role, lives_ms) = (TokenKind::Operator, Role::Human, Some(1_000));
                let new = NewToken { kind, name: None, role, feature: None, lives_ms };
                let (record, token) = tokens::create(store, new).await.unwrap();
                let (mut app, _switch) = world.app().await;
                Arc::get_mut(&mut app).unwrap().patience = Duration::from_secs(60);
                let signed = signed(&app, &token, &record.token_id, is_browser).await;
                let id = world.ask("shop", json!({})).await;
                let patience = Ok(Query(Patience { timeout_s: None, follow: None }));
                let waiting = wait(State(app.clone()), signed, Named(id.clone()), patience);
                let mut waiting = std::pin::pin!(waiting);
                assert!(futures_util::poll!(&mut waiting).is_pending());
                match case {
                    "revoked" => drop(tokens::revoke(store, &record.token_id).await.unwrap()),
                    "expired" => world.clock.advance(1_000),
                    _ => {}
                }
                world.answer("shop", &id, json!("this")).await;
                assert_eq!(waiting.await.into_response().status(), status, "{case} {is_browser}");
            }
        }
    }
}
