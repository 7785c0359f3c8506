//! What stands round every page: the project, the way to the other pages, who is signed in.

use super::assets::{ICON, SCRIPT, STYLE};
use crate::http::App;
use crate::http::auth::Visitor;
use aop_kernel::Refusal;
use aop_kernel::time::Timestamp;
use aop_store::Inbox;
use std::fmt;

/// Which page it is, for the menu.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Here {
    Inbox,
    Features,
    Activity,
}

/// How many questions are open, as far as they were counted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Waiting {
    pub(crate) count: usize,
    more: bool,
}

impl Waiting {
    pub(crate) fn of(inbox: &Inbox) -> Self {
        Waiting { count: inbox.total, more: inbox.more }
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.count, if self.more { "+" } else { "" })
    }
}

/// The frame of a page.
pub(crate) struct Shell {
    pub(crate) project: String,
    pub(crate) visitor: String,
    pub(crate) csrf: String,
    /// The last event this page shows; live updates begin after it.
    pub(crate) seq: u64,
    /// What time it is for the store: browsers have clocks of their own.
    pub(crate) now: Timestamp,
    pub(crate) open: Waiting,
    pub(crate) here: Here,
    /// Where the page is read again.
    pub(crate) url: String,
}

impl Shell {
    /// The event is looked up before anything else is read: what comes later is shown by an update.
    pub(crate) async fn new(app: &App, visitor: &Visitor, here: Here, url: String) -> Result<Self, Refusal> {
        Ok(Shell {
            project: app.project.clone(),
            visitor: visitor.name().unwrap_or("human").to_owned(),
            csrf: visitor.csrf().to_owned(),
            seq: app.feed.last(),
            now: app.service.store.now().await?,
            open: Waiting::default(),
            here,
            url,
        })
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
