//! Signing in with a browser. The link that `aop serve` prints only shows a page; the button on it signs in, because
//! nothing is decided by following a link. Agents' tokens do not sign in.

use super::auth::{self, SignedForm};
use super::reply::Refused;
use super::sessions::LIFETIME;
use super::{App, Shared};
use crate::tokens::Bearer;
use aop_kernel::{ErrorCode, Refusal};
use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use std::sync::Arc;

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/login", get(show).post(sign_in)).route("/logout", post(sign_out))
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
        Err(refusal) => refusal.into_response(),
    }
}

async fn try_sign_in(app: &Arc<App>, request: Request) -> Result<Response, Refused> {
    let (parts, body) = request.into_parts();
    let peer = auth::peer(&parts);
    let fields = auth::fields(Request::from_parts(parts, body)).await?;
    let field = |name: &str| fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.trim());
    let next = field("next").map(str::to_owned);
    let found = auth::bearer(app, field("token").unwrap_or_default()).await?;
    let (token_id, name) = match found {
        Some((id, Bearer::Operator { name })) => (id, name),
        Some((_, Bearer::Agent { .. })) => {
            return Err(Refusal::new(ErrorCode::ForbiddenForRole, "an agent's token does not sign in")
                .hint("use an operator's: `aop token create --kind operator`")
                .into());
        }
        None => {
            let refusal = app.failures.count(peer);
            let status = StatusCode::from_u16(refusal.code.http_status()).unwrap_or(StatusCode::UNAUTHORIZED);
            let page = page(app, &Link { token: None, next }, Some(&refusal));
            return Ok((status, Html(page)).into_response());
        }
    };
    let cookie = app.sessions.open(name, token_id)?;
    let name = auth::cookie_name(app);
    let secure = if app.secure { "; Secure" } else { "" };
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

/// Text as it may stand in a page.
pub(super) fn escaped(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut safe, sign| {
        match sign {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            sign => safe.push(sign),
        }
        safe
    })
}

fn page(app: &App, link: &Link, refused: Option<&Refusal>) -> String {
    let project = escaped(&app.project);
    let next = link.next.as_deref().and_then(local_path).unwrap_or("/");
    let told = refused.map(|refusal| {
        format!("<p role=\"alert\">{}. {}</p>", escaped(&refusal.message), escaped(&refusal.hint))
    });
    let field = match &link.token {
        Some(token) => format!("<input type=\"hidden\" name=\"token\" value=\"{}\">", escaped(token)),
        None => "<p><label>Token of an operator <input type=\"password\" name=\"token\" required \
                 autocomplete=\"off\"></label></p><p>The link that <code>aop serve</code> printed signs you in \
                 without typing.</p>"
            .to_owned(),
    };
    let go_on = if link.token.is_none() {
        format!("<p><a href=\"{next}\">I am signed in already: go on</a></p>")
    } else {
        String::new()
    };
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>Sign in to {project}</title>\
         </head><body><main><h1>Sign in to {project}</h1>{}\
         <form method=\"post\" action=\"/login\">{field}<input type=\"hidden\" name=\"next\" value=\"{next}\">\
         <button autofocus>Sign in</button></form>{go_on}</main></body></html>",
        told.unwrap_or_default(),
    )
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
