//! The files of the pages: one style sheet, one script, one icon, all in the binary. Their names carry a digest of
//! their content, so a browser may keep them for ever and still never shows an old one.

use super::Named;
use crate::http::Shared;
use aop_kernel::hex::hexadecimal;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// A file as it is served.
pub(crate) struct Asset {
    /// The path that pages name.
    pub(crate) path: String,
    kind: &'static str,
    bytes: &'static [u8],
}

pub(crate) static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("aop", "css", "text/css; charset=utf-8", include_bytes!("../../assets/aop.css"))
});
pub(crate) static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("aop", "js", "text/javascript; charset=utf-8", include_bytes!("../../assets/aop.js"))
});
pub(crate) static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("icon", "svg", "image/svg+xml", include_bytes!("../../assets/icon.svg")));

impl Asset {
    fn new(name: &str, ending: &str, kind: &'static str, bytes: &'static [u8]) -> Self {
        let digest = hexadecimal(&Sha256::digest(bytes)[..6]);
        Asset { path: format!("/assets/{name}.{digest}.{ending}"), kind, bytes }
    }
}

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/assets/{name}", get(serve))
}

/// They hold nothing of the project, so nobody has to sign in to see them: the login page needs them too.
async fn serve(Named(name): Named<String>) -> Response {
    let wanted = format!("/assets/{name}");
    let Some(asset) = [&*STYLE, &*SCRIPT, &*ICON].into_iter().find(|asset| asset.path == wanted) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let mut response = Response::new(Body::from(asset.bytes));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(asset.kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    response
}
