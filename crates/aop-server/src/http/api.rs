//! `POST /api/v1/tools/{name}`: the tools of the contract, called as `aop tool call` calls them, in the name that the
//! credential gives.

use super::auth::Signed;
use super::reply::{Done, Refused, Reply};
use super::{App, SURFACE, Shared};
use crate::tokens;
use aop_kernel::Refusal;
use aop_kernel::tools::Tool;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::routing::post;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The header that names an operation.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/api/v1/tools/{name}", post(tool))
}

async fn tool(
    State(app): State<Arc<App>>,
    signed: Signed,
    Named(name): Named,
    headers: HeaderMap,
    body: Bytes,
) -> Reply {
    let tool = Tool::find(&name).map_err(|refusal| Refused::with_status(404, refusal))?;
    let mut input = object(&headers, &body)?;
    if tool.is_mutating() {
        name_operation(&headers, &mut input)?;
    }
    call(&app, &signed, tool, input).await
}

/// The one part of an address that differs. What cannot be read is refused like everything else.
pub(super) struct Named(pub(super) String);

impl FromRequestParts<Shared> for Named {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Refused> {
        let read = Path::<String>::from_request_parts(parts, app).await;
        read.map(|Path(name)| Named(name)).map_err(|rejection| {
            Refusal::invalid_argument(format!("the address cannot be read: {}", rejection.body_text()))
                .hint("write it as UTF-8, percent-encoded")
                .into()
        })
    }
}

/// Calls a tool in somebody's name. An operator with a name answers under it, whatever the request says.
pub(crate) async fn call(app: &App, signed: &Signed, tool: Tool, input: Map<String, Value>) -> Reply {
    let caller = signed.caller()?;
    let mut input = Value::Object(input);
    if let Some(name) = signed.answers_as().filter(|_| tool == Tool::QuestionAnswer) {
        tokens::sign(&app.service, &caller, &mut input, name, SURFACE)?;
    }
    Ok(Done(app.service.call(tool, &caller, &input, SURFACE).await?))
}

/// The JSON object of a request; nothing is an empty one.
pub(crate) fn object(headers: &HeaderMap, body: &[u8]) -> Result<Map<String, Value>, Refusal> {
    let kind = headers.get(header::CONTENT_TYPE).map(|kind| kind.to_str().unwrap_or_default());
    let kind = kind.map(|kind| kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    if kind.as_deref().is_some_and(|kind| kind != "application/json" && !kind.ends_with("+json")) {
        return Err(Refusal::invalid_argument("the body is not application/json")
            .hint("send a JSON object with `Content-Type: application/json`"));
    }
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Map::new());
    }
    match aop_ask::json::read_plainly(body) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(Refusal::invalid_argument("the body is JSON, but not an object")
            .hint("send the arguments as one JSON object")),
        Err(error) => Err(Refusal::invalid_argument(format!("the body is not JSON: {error}"))
            .hint("send the arguments as one JSON object")),
    }
}

/// Puts the `Idempotency-Key` where the operation id belongs. Two different names for one operation are refused.
pub(crate) fn name_operation(headers: &HeaderMap, input: &mut Map<String, Value>) -> Result<(), Refusal> {
    let mut keys = headers.get_all(IDEMPOTENCY_KEY).into_iter();
    let Some(key) = keys.next() else { return Ok(()) };
    let wrong = |message: &str| Err(Refusal::invalid_argument(message).fact("argument", "operation_id"));
    if keys.next().is_some() {
        return wrong("the request has more than one Idempotency-Key; send one");
    }
    let Ok(key) = key.to_str() else {
        return wrong("the Idempotency-Key is not an operation id: 1 to 128 printable ASCII characters");
    };
    match input.get("operation_id") {
        None | Some(Value::Null) => {
            input.insert("operation_id".into(), json!(key));
            Ok(())
        }
        Some(Value::String(given)) if given == key => Ok(()),
        Some(_) => wrong("Idempotency-Key and operation_id name two different operations"),
    }
}
