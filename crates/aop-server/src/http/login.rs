//! Signing in with a browser. The link that `aop serve` prints only shows a page; the button on it signs in, because
//! nothing is decided by following a link. Agents' tokens do not sign in.

use super::auth::{self, SignedForm};
use super::sessions::LIFETIME;
use super::{App, Shared};
use crate::pages::{ICON, STYLE, Trouble};
use crate::tokens::Bearer;
use aop_kernel::{ErrorCode, Refusal};
use askama::Template;
use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use std::sync::Arc;

/// Where one signs in.
pub(super) const PATH: &str = "/login";

pub(super) fn routes() -> Router<Shared> {
    Router::new().route(PATH, get(show).post(sign_in)).route("/logout", post(sign_out))
}

#[derive(Debug, Default, Deserialize)]
struct Link {
    token: Option<String>,
    next: Option<String>,
}

async fn show(State(app): State<Arc<App>>, link: Result<Query<Link>, QueryRejection>) -> Html<String> {
    // A link that cannot be read is one without a token.
    let link = link.map(|Query(link)| link).unwrap_or_default();
    Html(page(&app, &link, None))
}

async fn sign_in(State(app): State<Arc<App>>, request: Request) -> Response {
    match try_sign_in(&app, request).await {
        Ok(response) => response,
        Err(trouble) => trouble.into_response(),
    }
}

async fn try_sign_in(app: &Arc<App>, request: Request) -> Result<Response, Trouble> {
    let (parts, body) = request.into_parts();
    let peer = auth::peer(&parts);
    // The guard knows that an Origin is ours; behind a proxy it alone tells that the browser speaks TLS.
    let by_proxy =
        parts.headers.get(header::ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https://"));
    let fields = auth::fields(Request::from_parts(parts, body)).await?;
    let field = |name: &str| fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.trim());
    let next = field("next").map(str::to_owned);
    let given = field("token").unwrap_or_default();
    // The link that `aop serve` printed is as good as the token in it.
    let token = given.rsplit_once("/login?token=").map_or(given, |(_, token)| token);
    let found = auth::bearer(app, token).await?;
    let found = match found {
        Some((id, Bearer::Operator { name })) => Ok((id, name)),
        Some((_, Bearer::Agent { .. })) => {
            Err(Refusal::new(ErrorCode::ForbiddenForRole, "an agent's token does not sign in")
                .hint("use an operator's: `aop token create --kind operator`"))
        }
        None => Err(app.failures.count(peer)),
    };
    let (token_id, name) = match found {
        Ok(found) => found,
        Err(refusal) => {
            let status = StatusCode::from_u16(refusal.code.http_status()).unwrap_or(StatusCode::UNAUTHORIZED);
            let page = page(app, &Link { token: None, next }, Some(&refusal));
            let mut response = (status, Html(page)).into_response();
            super::reply::tell_when(&refusal, response.headers_mut());
            return Ok(response);
        }
    };
    let cookie = app.sessions.open(name, token_id)?;
    let name = auth::cookie_name(app);
    let secure = if app.secure || by_proxy { "; Secure" } else { "" };
    let lifetime = LIFETIME.as_secs();
    let cookie = format!("{name}={cookie}; Path=/; HttpOnly; SameSite=Strict; Max-Age={lifetime}{secure}");
    let next = next.as_deref().and_then(local_path).unwrap_or("/");
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to(next)).into_response())
}

async fn sign_out(State(app): State<Arc<App>>, form: SignedForm) -> Response {
    form.visitor.sign_out(&app);
    let next = form.field("next").and_then(local_path).unwrap_or("/login");
    let cookie = format!("{}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0", auth::cookie_name(&app));
    ([(header::SET_COOKIE, cookie)], Redirect::to(next)).into_response()
}

/// A path of this server, plain enough to stand in a page and in a header; nothing that leads elsewhere.
pub(super) fn local_path(path: &str) -> Option<&str> {
    let plain = |sign: u8| sign.is_ascii_alphanumeric() || matches!(sign, b'/' | b'_' | b'-');
    (path.starts_with('/') && !path.starts_with("//") && path.bytes().all(plain)).then_some(path)
}

#[derive(Template)]
#[template(path = "login.html")]
struct LoginPage<'a> {
    style: &'static str,
    icon: &'static str,
    project: &'a str,
    next: &'a str,
    token: Option<&'a str>,
    refused: Option<(&'a str, &'a str)>,
}

fn page(app: &App, link: &Link, refused: Option<&Refusal>) -> String {
    let page = LoginPage {
        style: &STYLE.path,
        icon: &ICON.path,
        project: &app.project,
        next: link.next.as_deref().and_then(local_path).unwrap_or("/"),
        token: link.token.as_deref(),
        refused: refused.map(|refusal| (refusal.message.as_str(), refusal.hint.as_str())),
    };
    page.render().unwrap_or_else(|error| format!("the page cannot be made: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_paths_of_this_server_are_gone_to() {
        for good in ["/", "/questions/q_01J9ZQ4V7K3M2N1P0R5S6T7V8W", "/features/a-b"] {
            assert_eq!(local_path(good), Some(good));
        }
        for bad in ["", "//evil.example", "/\\evil", "https://evil", "/a\r\nSet-Cookie: x", "/a?b", "/%2f"] {
            assert_eq!(local_path(bad), None, "{bad}");
        }
    }
}
