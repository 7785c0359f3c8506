//! Who makes a request. Programs send `Authorization: Bearer TOKEN`; browsers carry a session cookie, and then
//! whatever changes something also carries the session's CSRF token: as the header `X-CSRF-Token` for the API, as a
//! field for forms. A request with a wrong token is refused and never taken for one without. An `Authorization` of
//! another scheme is none of ours: a proxy in front may have a name and a password of its own, which browsers send with
//! everything.

use super::guard::Peer;
use super::reply::Refused;
use super::sessions::Session;
use super::{App, Shared};
use crate::pages::{Trouble, typed};
use crate::secret::Sealed;
use crate::tokens::{self, Bearer};
use aop_kernel::role::Caller;
use aop_kernel::{ErrorCode, Refusal};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::{IntoResponse, Redirect, Response};
use std::sync::Arc;

/// The name of the hidden field that carries the CSRF token of a form.
pub(crate) const CSRF_FIELD: &str = "csrf";

/// The same for scripts.
const CSRF_HEADER: &str = "x-csrf-token";

/// A caller of the API.
#[derive(Debug, Clone)]
pub(crate) struct Signed {
    bearer: Bearer,
    /// The stored token behind it; `None` for the one of this process.
    token_id: Option<String>,
    /// The session of a browser, which may end before its token.
    session: Option<Sealed>,
}

impl Signed {
    /// In whose name the tools of the contract are called.
    pub(crate) fn caller(&self) -> Result<Caller, Refusal> {
        self.bearer.caller()
    }

    /// Who it is.
    pub(crate) fn bearer(&self) -> &Bearer {
        &self.bearer
    }

    /// The stored token behind it, if there is one.
    pub(crate) fn token_id(&self) -> Option<&str> {
        self.token_id.as_deref()
    }

    /// What tells its askings from those of others, also after a restart.
    pub(crate) fn tag(&self) -> &str {
        self.token_id().unwrap_or("operator")
    }

    /// Whether it is a browser that has signed in.
    pub(super) fn is_browser(&self) -> bool {
        self.session.is_some()
    }

    /// Whether the session has not ended, and the token been neither revoked nor outlived meanwhile.
    pub(crate) async fn still_good(&self, app: &App) -> Result<bool, Refusal> {
        if self.session.as_ref().is_some_and(|id| !app.sessions.is_open(id)) {
            return Ok(false);
        }
        match &self.token_id {
            Some(id) => tokens::still_good(app.service.store.as_ref(), id).await,
            None => Ok(true),
        }
    }

    /// The name that answers are signed with, whatever a request says; `None` leaves it to the request.
    pub(crate) fn answers_as(&self) -> Option<&str> {
        match &self.bearer {
            Bearer::Operator { name } => name.as_deref(),
            Bearer::Agent { .. } => None,
        }
    }
}

impl FromRequestParts<Shared> for Signed {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Refused> {
        if let Some(signed) = parts.extensions.remove::<Signed>() {
            return Ok(signed);
        }
        let value = parts.headers.get(header::AUTHORIZATION);
        if let Some(token) = value.and_then(token) {
            return named(app, token).await?.ok_or_else(|| app.failures.count(peer(parts)).into());
        }
        // A credential for somebody else, a proxy in front of this, is no guess at ours.
        let Some(session) = session(app, &parts.headers).await? else { return Err(nobody().into()) };
        let changes = !matches!(parts.method, Method::GET | Method::HEAD);
        let csrf = parts.headers.get(CSRF_HEADER).and_then(|value| value.to_str().ok());
        if changes && !csrf.is_some_and(|csrf| same(&session.csrf, csrf)) {
            return Err(forged("the request carries no CSRF token of this session in X-CSRF-Token").into());
        }
        Ok(Signed {
            bearer: Bearer::Operator { name: session.name },
            token_id: session.token_id,
            session: Some(session.id),
        })
    }
}

/// Whether the head of a request carries a good credential. Whom a token stands for is kept, so that it is looked up once.
pub(super) async fn is_known(app: &Shared, parts: &mut Parts) -> Result<bool, Refusal> {
    if let Some(token) = parts.headers.get(header::AUTHORIZATION).and_then(token)
        && let Some(signed) = named(app, token).await?
    {
        parts.extensions.insert(signed);
        return Ok(true);
    }
    // A form of the pages goes by its session, whatever stands beside it.
    Ok(session(app, &parts.headers).await?.is_some())
}

/// The token in an `Authorization`; `None` when that is of another scheme.
fn token(value: &HeaderValue) -> Option<&str> {
    let mut parts = value.as_bytes().splitn(2, |byte| *byte == b' ');
    let is_ours = parts.next().is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"bearer"));
    is_ours.then(|| parts.next().and_then(|token| str::from_utf8(token).ok()).unwrap_or_default().trim())
}

/// Whom a token of a request names.
async fn named(app: &Arc<App>, token: &str) -> Result<Option<Signed>, Refusal> {
    let found = bearer(app, token).await?;
    Ok(found.map(|(token_id, bearer)| Signed { bearer, token_id, session: None }))
}

/// Somebody who has signed in, before a page. Others are sent to the login page.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    session: Session,
}

impl Visitor {
    /// The hidden field of each form.
    pub(crate) fn csrf(&self) -> &str {
        &self.session.csrf
    }

    /// Ends the session.
    pub(super) fn sign_out(&self, app: &App) {
        app.sessions.close(&self.session);
    }

    /// Whose token it was; `None` when it has no name.
    pub(crate) fn name(&self) -> Option<&str> {
        self.session.name.as_deref()
    }
}

impl FromRequestParts<Shared> for Visitor {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Response> {
        match session(app, &parts.headers).await {
            Ok(Some(session)) => Ok(Visitor { session }),
            Ok(None) => Err(Redirect::to(&sign_in(&page_of(parts))).into_response()),
            Err(refusal) => Err(Trouble::from(refusal).into_response()),
        }
    }
}

/// The page of a request. A form was sent from the page above its address.
fn page_of(parts: &Parts) -> String {
    let path = parts.uri.path();
    let above = path.rsplit_once('/').map_or("/", |(above, _)| above);
    let page = if parts.method == Method::GET { path } else { above };
    super::login::local_path(page).unwrap_or("/").to_owned()
}

/// Where one signs in and then goes on with this page.
fn sign_in(page: &str) -> String {
    format!("{}?next={page}", super::login::PATH)
}

/// A form that somebody who has signed in sent from a page of ours. The fields stand in the order of the form; a
/// name may be there more than once.
#[derive(Debug, Clone)]
pub(crate) struct SignedForm {
    /// Who sent it.
    pub(crate) visitor: Visitor,
    /// Its fields without the CSRF token.
    pub(crate) fields: Vec<(String, String)>,
}

impl SignedForm {
    /// The first field of this name.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

impl FromRequest<Shared> for SignedForm {
    type Rejection = Response;

    async fn from_request(request: Request, app: &Shared) -> Result<Self, Response> {
        let (parts, body) = request.into_parts();
        let page = page_of(&parts);
        let session =
            session(app, &parts.headers).await.map_err(|refusal| Trouble::from(refusal).into_response())?;
        let fields = fields(Request::from_parts(parts, body)).await;
        let Some(session) = session else {
            let kept = typed(&fields.unwrap_or_default());
            if kept.is_empty() {
                return Err(Redirect::to(&sign_in(&page)).into_response());
            }
            return Err(Trouble::signed_out(kept, sign_in(&page)).into_response());
        };
        let visitor = Visitor { session };
        let mut fields = fields.map_err(IntoResponse::into_response)?;
        let csrf = fields.iter().position(|(name, _)| name == CSRF_FIELD);
        let csrf = csrf.map(|place| fields.remove(place).1);
        if !csrf.is_some_and(|csrf| same(visitor.csrf(), &csrf)) {
            let refusal = forged("the form does not come from a page of this session")
                .hint("if you signed in again since it was shown, go back, load it again and send the form from there");
            return Err(Trouble::from(refusal).keeping(typed(&fields), page).into_response());
        }
        Ok(SignedForm { visitor, fields })
    }
}

/// The fields of a form.
pub(super) async fn fields(request: Request) -> Result<Vec<(String, String)>, Trouble> {
    let form = axum::Form::<Vec<(String, String)>>::from_request(request, &()).await;
    form.map(|axum::Form(fields)| fields).map_err(|rejection| {
        Refusal::invalid_argument(format!("the form cannot be read: {}", rejection.body_text()))
            .hint("send it as application/x-www-form-urlencoded")
            .into()
    })
}

/// The session of a browser, if it has a good one.
async fn session(app: &App, headers: &HeaderMap) -> Result<Option<Session>, Refusal> {
    let Some(session) = cookie(app, headers).and_then(|cookie| app.sessions.find(cookie)) else {
        return Ok(None);
    };
    if let Some(id) = &session.token_id
        && !tokens::still_good(app.service.store.as_ref(), id).await?
    {
        return Ok(None);
    }
    Ok(Some(session))
}

/// Cookies do not know ports: two servers on one machine need two names.
pub(super) fn cookie_name(app: &App) -> String {
    format!("aop_session_{}", app.address.port())
}

/// The value of our cookie.
fn cookie<'a>(app: &App, headers: &'a HeaderMap) -> Option<&'a str> {
    let name = cookie_name(app);
    let lines = headers.get_all(header::COOKIE).into_iter().filter_map(|line| line.to_str().ok());
    lines
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(key, value)| (key == name).then_some(value))
}

/// Whom a token stands for, with its id where the store knows it.
pub(super) async fn bearer(app: &Arc<App>, token: &str) -> Result<Option<(Option<String>, Bearer)>, Refusal> {
    if app.own_token.opens_with(token) {
        return Ok(Some((None, Bearer::Operator { name: None })));
    }
    let found = tokens::verify(app.service.store.as_ref(), token).await?;
    Ok(found.map(|(id, bearer)| (Some(id), bearer)))
}

/// Tests only: whoever makes a request with this token, which has to be good.
#[cfg(test)]
pub(crate) async fn signed_with(app: &Shared, token: &str) -> Signed {
    let request = Request::get("/").header(header::AUTHORIZATION, format!("Bearer {token}"));
    let mut parts = request.body(()).unwrap().into_parts().0;
    let signed = Signed::from_request_parts(&mut parts, app).await;
    signed.unwrap_or_else(|_| panic!("{token} is not good"))
}

/// The address a request comes from.
pub(super) fn peer(parts: &Parts) -> std::net::IpAddr {
    parts.extensions.get::<Peer>().map_or(std::net::IpAddr::from([0, 0, 0, 0]), |peer| peer.0.ip())
}

fn same(one: &str, other: &str) -> bool {
    Sealed::of(one).opens_with(other)
}

fn nobody() -> Refusal {
    Refusal::new(ErrorCode::Unauthenticated, "the request carries no credential")
}

fn forged(message: &str) -> Refusal {
    Refusal::new(ErrorCode::ForbiddenForRole, message)
        .hint("load the page again and send the form from there")
}
