//! The dashboard: pages that people answer from. Rendered here, whole, so that they work without a script; a small
//! script keeps open pages up to date and adds keys. Like every surface it decides nothing.
//!
//! One file for each page with its view; `form` is the form of a question, `words` says what people read, `markdown`
//! makes agents' texts harmless, `signs` has what would be obeyed or not seen, `worktree` what git may do in the folder
//! of an agent, `lapsed` finds the questions that no other list leads to; `assets` holds the files, `trouble` the pages
//! for when something is wrong.

mod activity;
mod assets;
mod changes;
mod confirm;
mod feature;
mod features;
#[cfg(test)]
pub(crate) mod fixture;
mod form;
mod inbox;
mod lapsed;
pub(crate) mod markdown;
mod outcome;
mod question;
mod shell;
mod signs;
mod transcripts;
mod trouble;
pub(crate) mod words;
mod worktree;

pub(crate) use assets::{ICON, STYLE};
pub(crate) use form::typed;
pub(crate) use trouble::Trouble;

use crate::http::Shared;
use aop_kernel::ids::quoted;
use askama::Template;
use axum::Router;
use axum::extract::{FromRequestParts, Path};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{Html, IntoResponse, Response};
use serde::de::DeserializeOwned;
use std::path::PathBuf;

/// What the pages remember beside the store.
#[derive(Default)]
pub(crate) struct Memory {
    /// The `.aop` folder, for worktrees and transcripts.
    pub(crate) folder: Option<PathBuf>,
    tally: tokio::sync::Mutex<activity::Tally>,
    lapsed: tokio::sync::Mutex<lapsed::Lapsed>,
}

impl Memory {
    /// With the folder of the project.
    pub(crate) fn of(folder: Option<PathBuf>) -> Self {
        Memory { folder, ..Memory::default() }
    }
}

/// All of them.
pub(crate) fn routes() -> Router<Shared> {
    Router::new()
        .merge(assets::routes())
        .merge(inbox::routes())
        .merge(question::routes())
        .merge(confirm::routes())
        .merge(features::routes())
        .merge(feature::routes())
        .merge(changes::routes())
        .merge(transcripts::routes())
        .merge(activity::routes())
}

/// What a handler gives back.
type Page = Result<Response, Trouble>;

/// The parts of an address that differ. What cannot be read leads nowhere.
struct Named<T>(T);

impl<T: DeserializeOwned + Send> FromRequestParts<Shared> for Named<T> {
    type Rejection = Trouble;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Trouble> {
        let read = Path::<T>::from_request_parts(parts, app).await;
        read.map(|Path(named)| Named(named))
            .map_err(|_| Trouble::not_found(&format!("there is nothing at {}", quoted(parts.uri.path()))))
    }
}

/// A template as a response.
fn page(status: StatusCode, template: &impl Template) -> Page {
    let text =
        html(template).map_err(|error| Trouble::internal(&format!("the page cannot be made: {error}")))?;
    Ok((status, Html(text)).into_response())
}

/// A template as the text of a page.
fn html(template: &impl Template) -> askama::Result<String> {
    template.render().map(signs::tamed)
}
