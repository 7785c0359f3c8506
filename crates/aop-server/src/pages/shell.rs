//! What stands round every page: the project, the way to the other pages, who is signed in.

use super::assets::{ICON, SCRIPT, STYLE};
use crate::http::App;
use crate::http::auth::Visitor;

/// Which page it is, for the menu.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Here {
    Inbox,
    Features,
    Activity,
}

/// The frame of a page.
pub(crate) struct Shell {
    pub(crate) project: String,
    pub(crate) visitor: String,
    pub(crate) csrf: String,
    /// The last event this page shows; live updates begin after it.
    pub(crate) seq: u64,
    /// How many questions are open.
    pub(crate) open: usize,
    pub(crate) here: Here,
    /// Where the page is read again.
    pub(crate) url: String,
}

impl Shell {
    /// The event is looked up before anything else is read: what comes later is shown by an update.
    pub(crate) fn new(app: &App, visitor: &Visitor, here: Here, url: String) -> Self {
        Shell {
            project: app.project.clone(),
            visitor: visitor.name().unwrap_or("human").to_owned(),
            csrf: visitor.csrf().to_owned(),
            seq: app.feed.last(),
            open: 0,
            here,
            url,
        }
    }

    pub(crate) fn style(&self) -> &'static str {
        &STYLE.path
    }

    pub(crate) fn script(&self) -> &'static str {
        &SCRIPT.path
    }

    pub(crate) fn icon(&self) -> &'static str {
        &ICON.path
    }

    pub(crate) fn is_inbox(&self) -> bool {
        self.here == Here::Inbox
    }

    pub(crate) fn is_features(&self) -> bool {
        self.here == Here::Features
    }

    pub(crate) fn is_activity(&self) -> bool {
        self.here == Here::Activity
    }
}
