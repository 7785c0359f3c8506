//! People who have signed in with a browser. A session is a random cookie; only its digest is kept, in memory: it
//! ends with the server, after a working day, or with the token it was opened with.

use crate::secret::{Sealed, random};
use aop_kernel::Refusal;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// A session ends after this.
pub(super) const LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);
/// The oldest one goes when there are more.
const MOST: usize = 1_000;

/// One of them.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(super) id: Sealed,
    /// Who signed in.
    pub(super) name: Option<String>,
    /// The stored token it was opened with; `None` for the one of this process.
    pub(super) token_id: Option<String>,
    /// What a form of this session carries.
    pub(crate) csrf: String,
    opened: Instant,
}

impl Session {
    fn is_young(&self) -> bool {
        self.opened.elapsed() < LIFETIME
    }
}

/// All of them.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<Sealed, Session>>);

impl Sessions {
    fn open_ones(&self) -> MutexGuard<'_, HashMap<Sealed, Session>> {
        // A map is whole after any panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens one; the value of its cookie.
    pub(crate) fn open(&self, name: Option<String>, token_id: Option<String>) -> Result<String, Refusal> {
        let (cookie, csrf) = (random()?, random()?);
        let mut sessions = self.open_ones();
        sessions.retain(|_, session| session.is_young());
        if sessions.len() >= MOST {
            let oldest = sessions.iter().min_by_key(|(_, session)| session.opened).map(|(id, _)| id.clone());
            oldest.map(|id| sessions.remove(&id));
        }
        let id = Sealed::of(&cookie);
        sessions.insert(id.clone(), Session { id, name, token_id, csrf, opened: Instant::now() });
        Ok(cookie)
    }

    /// The session of a cookie.
    pub(crate) fn find(&self, cookie: &str) -> Option<Session> {
        let session = self.open_ones().get(&Sealed::of(cookie)).cloned()?;
        session.is_young().then_some(session)
    }

    /// Whether one has not ended.
    pub(super) fn is_open(&self, id: &Sealed) -> bool {
        self.open_ones().get(id).is_some_and(Session::is_young)
    }

    /// Ends one.
    pub(super) fn close(&self, session: &Session) {
        self.open_ones().remove(&session.id);
    }
}
