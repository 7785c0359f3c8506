//! Pages for when something is wrong: what, and what to do next.

use super::assets::{ICON, STYLE};
use aop_kernel::{ErrorCode, Refusal};
use askama::Template;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};

/// A refusal that a person sees.
#[derive(Debug)]
pub(crate) struct Trouble {
    status: StatusCode,
    title: &'static str,
    message: String,
    hint: String,
    /// What somebody had typed.
    kept: Vec<String>,
    /// Where to go on: the address and the words on the button.
    way: (String, &'static str),
}

impl Trouble {
    /// Something that is not there.
    pub(crate) fn not_found(message: &str) -> Self {
        Trouble {
            status: StatusCode::NOT_FOUND,
            title: "There is nothing here",
            message: message.to_owned(),
            hint: "The inbox shows every open question, the features page every feature. All questions, also those outside any \
                   feature that are closed: aop questions --status all."
                .to_owned(),
            kept: Vec::new(),
            way: to_the_inbox(),
        }
    }

    /// A form of somebody whose session has ended.
    pub(crate) fn signed_out(kept: Vec<String>, sign_in: String) -> Self {
        Trouble {
            status: StatusCode::UNAUTHORIZED,
            title: "You are signed out",
            message: "What you sent was not taken: your session has ended.".to_owned(),
            hint: "Sign in again, and send it from the page that you come to. Choices and secrets have to be given again."
                .to_owned(),
            kept,
            way: (sign_in, "Sign in again"),
        }
    }

    /// With another status than the refusal's own, where HTTP has a more exact one.
    #[must_use]
    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Trouble { status, ..self }
    }

    /// With what somebody had typed, and the page to send it from.
    #[must_use]
    pub(crate) fn keeping(self, kept: Vec<String>, page: String) -> Self {
        if kept.is_empty() { self } else { Trouble { kept, way: (page, "Load the page again"), ..self } }
    }

    /// A mistake of ours.
    pub(crate) fn internal(message: &str) -> Self {
        Refusal::new(ErrorCode::Internal, message).into()
    }
}

fn to_the_inbox() -> (String, &'static str) {
    ("/".to_owned(), "To the inbox")
}

impl From<Refusal> for Trouble {
    fn from(refusal: Refusal) -> Self {
        let status = refusal.code.http_status();
        let not_found = matches!(refusal.code, ErrorCode::QuestionNotFound | ErrorCode::FeatureNotFound);
        if not_found || (refusal.code == ErrorCode::InvalidArgument && refusal.facts.contains_key("argument"))
        {
            return Trouble::not_found(&refusal.message);
        }
        let title = match status {
            403 => "That is not allowed",
            413 => "That is too long",
            503 => "The store cannot be reached",
            _ => "That did not work",
        };
        Trouble {
            status: StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            title,
            message: refusal.message,
            hint: refusal.hint,
            kept: Vec::new(),
            way: to_the_inbox(),
        }
    }
}

impl From<aop_store::StoreError> for Trouble {
    fn from(error: aop_store::StoreError) -> Self {
        Refusal::from(error).into()
    }
}

#[derive(Template)]
#[template(path = "trouble.html")]
struct TroublePage<'a> {
    style: &'static str,
    icon: &'static str,
    trouble: &'a Trouble,
}

impl IntoResponse for Trouble {
    fn into_response(self) -> Response {
        let page = TroublePage { style: &STYLE.path, icon: &ICON.path, trouble: &self };
        match super::html(&page) {
            Ok(text) => (self.status, Html(text)).into_response(),
            Err(_) => (self.status, self.message).into_response(),
        }
    }
}
