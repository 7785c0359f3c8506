//! From an envelope to a response, and from a refusal to one. The status comes from the one table of codes.

use aop_kernel::{Envelope, ErrorCode, Refusal};
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A success.
pub(crate) struct Done(pub(crate) Envelope);

impl IntoResponse for Done {
    fn into_response(self) -> Response {
        json(StatusCode::OK, self.0.as_str().to_owned())
    }
}

/// A refusal.
#[derive(Debug)]
pub(crate) struct Refused {
    refusal: Box<Refusal>,
    status: u16,
}

impl Refused {
    /// With another status than the code's own, where HTTP has a more exact one.
    pub(crate) fn with_status(status: u16, refusal: Refusal) -> Self {
        Refused { refusal: Box::new(refusal), status }
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Refused { status: refusal.code.http_status(), refusal: Box::new(refusal) }
    }
}

impl From<aop_store::StoreError> for Refused {
    fn from(error: aop_store::StoreError) -> Self {
        Refusal::from(error).into()
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = json(status, self.refusal.to_json().to_string());
        let headers = response.headers_mut();
        if self.refusal.code == ErrorCode::Unauthenticated {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"aop\""));
        }
        tell_when(&self.refusal, headers);
        response
    }
}

/// Says for how long whoever comes too often is not listened to.
pub(super) fn tell_when(refusal: &Refusal, headers: &mut HeaderMap) {
    if refusal.code == ErrorCode::RateLimited {
        let seconds = refusal.facts.get("retry_after_s").and_then(Value::as_u64);
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds.unwrap_or(60)));
    }
}

/// What a handler of the API gives back.
pub(crate) type Reply = Result<Done, Refused>;

/// A JSON text as a response.
pub(crate) fn json(status: StatusCode, text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}
