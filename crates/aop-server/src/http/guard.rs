//! What every request passes: it must be meant for this server (`Host`), come from no other site (`Origin`) and from one
//! sender (`Authorization`), and be small and quick. And what every response carries, so that a browser does nothing with it but show it.

use super::auth::Signed;
use super::{App, Shared, auth, refused};
use aop_kernel::ids::quoted;
use aop_kernel::tools::MAX_REQUEST_BYTES;
use aop_kernel::{ErrorCode, Refusal};
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use axum::middleware::Next;
use axum::response::Response;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// A form that signs in holds a token and a path. It is read before anybody is known.
const SIGN_IN_BYTES: usize = 8 * 1024;

/// So much of a form is read for somebody whose session has ended: what was typed is shown back, and decides nothing.
const UNSENT_BYTES: u64 = 64 * 1024;

/// A whole body has to be there after this.
const BODY_TIME: Duration = Duration::from_secs(20);

/// Whoever takes longer than this to send a body is looked up once more when it is there: a token that was taken back
/// meanwhile is good for nothing.
const KNOWN: Duration = Duration::from_secs(1);

/// Of a body that is too large so much is still read: a client that is cut off in the middle of sending never reads
/// why.
const DRAINED: usize = 16 * 1024 * 1024;

/// The address a request comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// Nothing from elsewhere, no inline script or style, no frames.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    font-src 'self'; connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; \
    frame-ancestors 'none'";

/// Sets the headers of every response; what a handler set itself stays.
pub(super) async fn headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, CONTENT_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        // Not `no-referrer`: with it a browser names no origin for its own forms either, and they could not be told
        // from those of other sites.
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// Lets a request in, with its body in memory, or refuses it. Whose it is stands in its head, so nothing is kept in memory
/// for somebody who is not known: such a request goes on without its body, to be told what it lacks.
pub(super) async fn admit(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let (address, headers) = (request.uri(), request.headers());
    if let Err(refusal) = from_here(&app, address, headers).and_then(|()| from_one(headers)) {
        return refused(address, headers, refusal);
    }
    let (mut parts, body) = request.into_parts();
    let size = if body.is_end_stream() { Some(0) } else { body.size_hint().exact() };
    let most = match readable(&app, size, &mut parts).await {
        Ok(most) => most,
        Err(refusal) => return refused(&parts.uri, &parts.headers, refusal),
    };
    let bytes = match most {
        Some(most) => {
            let begun = Instant::now();
            let read = whole(body, most).await;
            if begun.elapsed() >= KNOWN {
                parts.extensions.remove::<Signed>();
            }
            read
        }
        None => {
            // Whoever asks before sending is told now.
            if !parts.headers.contains_key(header::EXPECT) {
                drain(body).await;
            }
            Ok(Bytes::new())
        }
    };
    match bytes {
        Ok(bytes) => next.run(Request::from_parts(parts, Body::from(bytes))).await,
        Err(refusal) => {
            let mut response = refused(&parts.uri, &parts.headers, refusal);
            // What is left of the body is not worth reading as a next request.
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            response
        }
    }
}

/// How many bytes of a body are read for whoever sends it; `None` when there is nobody to read it for.
async fn readable(app: &Shared, size: Option<u64>, parts: &mut Parts) -> Result<Option<usize>, Refusal> {
    if size == Some(0) || auth::is_known(app, parts).await? {
        return Ok(Some(MAX_REQUEST_BYTES));
    }
    let path = parts.uri.path();
    if path == super::login::PATH {
        return Ok(Some(SIGN_IN_BYTES));
    }
    let unsent = path.starts_with("/questions/") && size.is_some_and(|size| size <= UNSENT_BYTES);
    Ok(unsent.then_some(MAX_REQUEST_BYTES))
}

/// A page of another site that a browser was tricked into sending here names that site: in `Host` when its name was
/// bound to our address, in `Origin` otherwise. A proxy may give its own `Host` and leave the browser's `Origin`: a page
/// of a name that was allowed is ours on every port. No other site can be loaded under that name; what else runs on
/// its machine shares the cookie anyway, and neither reads our answers nor knows the CSRF token.
fn from_here(app: &App, address: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
    let mut named = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (named.next(), named.next()) else {
        return Err(Refusal::invalid_argument("the request has no Host header, or more than one"));
    };
    let host = host.to_str().map_err(|_| Refusal::invalid_argument("the Host header is not ASCII"))?;
    // A request that names its whole address means that one, whatever `Host` says (RFC 9112, 3.2.2).
    let host = address.authority().map_or(host, Authority::as_str);
    if !is_ours(app, host) {
        return Err(Refusal::new(
            ErrorCode::ForbiddenForRole,
            format!("the request is for host {}, which is not this server", quoted(host)),
        )
        .hint(
            "use the address that `aop serve` printed, or allow the name with `aop serve --allow-host NAME`",
        ));
    }
    for origin in headers.get_all(header::ORIGIN) {
        let origin = origin.to_str().unwrap_or_default();
        let place = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        if !place.is_some_and(|place| place.eq_ignore_ascii_case(host) || is_allowed(app, place)) {
            return Err(Refusal::new(
                ErrorCode::ForbiddenForRole,
                format!("the request comes from a page of {}", quoted(origin)),
            )
            .hint("pages of other sites may not use this server; allow a name of its own with `aop serve --allow-host NAME`"));
        }
    }
    Ok(())
}

/// Of two credentials one would have to be passed over, and a proxy in front may have looked at the other.
fn from_one(headers: &HeaderMap) -> Result<(), Refusal> {
    if headers.get_all(header::AUTHORIZATION).iter().nth(1).is_none() {
        return Ok(());
    }
    Err(Refusal::invalid_argument("the request has more than one Authorization")
        .hint("send one: `Authorization: Bearer TOKEN`")
        .fact("argument", "Authorization"))
}

/// Whether a `Host` is a name of this server. An address is always fine: a page that a browser loaded from an address
/// is this server's own, whereas any name can be made to point here.
fn is_ours(app: &App, host: &str) -> bool {
    let Some(name) = name(host) else { return false };
    let address = name.parse::<IpAddr>().ok();
    let local =
        name.eq_ignore_ascii_case("localhost") || address.is_some_and(|address| address.is_loopback());
    let ours = if app.address.ip().is_loopback() { local } else { local || address.is_some() };
    ours || is_allowed(app, host)
}

/// Whether this is a name given with `--allow-host`, on any port.
fn is_allowed(app: &App, host: &str) -> bool {
    name(host).is_some_and(|name| app.hosts.iter().any(|own| own.eq_ignore_ascii_case(&name)))
}

/// A host without its port.
fn name(host: &str) -> Option<String> {
    let authority = host.parse::<Authority>().ok().filter(|authority| !authority.as_str().contains('@'))?;
    Some(authority.host().trim_start_matches('[').trim_end_matches(']').to_owned())
}

async fn whole(body: Body, most: usize) -> Result<Bytes, Refusal> {
    let announced = body.size_hint().exact().unwrap_or(0);
    if announced <= most as u64 {
        let mut body = body;
        let read = timeout(BODY_TIME, up_to_limit(&mut body, most)).await;
        return match read {
            Ok(Ok(Some(bytes))) => Ok(bytes),
            Ok(Ok(None)) => {
                drain(body).await;
                Err(too_large(None, most))
            }
            Ok(Err(error)) => Err(Refusal::invalid_argument(format!("the body broke off: {error}"))),
            Err(_) => Err(Refusal::invalid_argument(format!(
                "the body was not there after {} seconds",
                BODY_TIME.as_secs()
            ))
            .hint("send the request in one go")),
        };
    }
    drain(body).await;
    Err(too_large(Some(announced), most))
}

/// The body; `None` as soon as it is too large.
async fn up_to_limit(body: &mut Body, most: usize) -> Result<Option<Bytes>, axum::Error> {
    let mut all: Vec<u8> = Vec::new();
    while let Some(frame) = frame(body).await {
        let Ok(data) = frame?.into_data() else { continue };
        if all.len() + data.len() > most {
            return Ok(None);
        }
        all.extend_from_slice(&data);
    }
    Ok(Some(all.into()))
}

/// The next piece of a body.
pub(super) async fn frame(body: &mut Body) -> Option<Result<hyper::body::Frame<Bytes>, axum::Error>> {
    std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await
}

async fn drain(body: Body) {
    // However this ends, the client has been given its chance to read the answer.
    let _ = timeout(BODY_TIME / 4, discard(body)).await;
}

async fn discard(mut body: Body) {
    let mut read = 0;
    while let Some(Ok(frame)) = frame(&mut body).await {
        read += frame.data_ref().map_or(0, Bytes::len);
        if read > DRAINED {
            return;
        }
    }
}

pub(crate) fn too_large(size: Option<u64>, limit: usize) -> Refusal {
    let said = size.map_or_else(|| "more than that".to_owned(), |size| format!("{size} bytes"));
    Refusal::new(ErrorCode::PayloadTooLarge, format!("the request has {said}; the limit is {limit} bytes"))
        .fact("size", size)
        .fact("limit", limit)
}
