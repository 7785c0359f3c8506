//! Secret answers: only the asker is shown one, and the store forgets it once it has arrived. No client confirms
//! a result, but one that calls again has read what came before, and one that leaves in good order wants no more; until
//! then the same call gets the same answer. What a server that is killed has shown stays until it is shown again and
//! arrives, or until its feature ends.

use super::{Handler, Origin};
use aop_ask::QuestionSpec;
use aop_kernel::Refusal;
use aop_kernel::ids::QuestionId;
use aop_kernel::question::{Question, QuestionState};
use aop_store::Store;
use serde_json::Value;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What this server knows about secrets: ids, never values.
#[derive(Default)]
pub(super) struct Secrets(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// The questions that were asked through this process.
    asked: HashSet<QuestionId>,
    /// Those whose secrets were shown and not yet forgotten.
    shown: HashSet<QuestionId>,
}

impl Secrets {
    fn known(&self) -> MutexGuard<'_, Known> {
        // Sets of ids are whole after any panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This server asked it.
    pub(super) fn asked(&self, id: &QuestionId) {
        self.known().asked.insert(id.clone());
    }

    /// A person asked it again: whoever asked the one asked the other.
    pub(super) fn asked_again(&self, first: &QuestionId, last: &QuestionId) {
        let mut known = self.known();
        if known.asked.contains(first) {
            known.asked.insert(last.clone());
        }
    }

    /// The asker has been sent it.
    pub(super) fn show(&self, id: &QuestionId) {
        self.known().shown.insert(id.clone());
    }

    /// Takes over what another was shown.
    pub(super) fn inherit(&self, other: &Secrets) {
        self.known().shown.extend(other.take());
    }

    /// What was shown before the call that is being made now.
    pub(super) fn take(&self) -> HashSet<QuestionId> {
        std::mem::take(&mut self.known().shown)
    }

    /// Erases what has arrived, unless it was just shown again.
    pub(super) async fn forget(&self, received: HashSet<QuestionId>, store: &dyn Store) {
        for id in received {
            if self.known().shown.contains(&id) {
                continue;
            }
            if store.forget(id.clone()).await.is_err() {
                // Tried again after the next call.
                self.known().shown.insert(id);
            }
        }
    }
}

impl Handler {
    /// The answer with its secrets, for the asker: whoever asked through this server, or the same role of the
    /// feature it is bound to.
    pub(super) async fn reveal(&self, question: &Question) -> Result<Option<Value>, Refusal> {
        let has_secret = question.asked.spec.as_ref().is_some_and(QuestionSpec::has_secret);
        let answered = matches!(question.state, QuestionState::Answered { .. });
        if !has_secret || !answered || !self.is_asker(question) {
            return Ok(None);
        }
        let secret = self.service.store.reveal(question.id.clone()).await?;
        // Another client of the same role may be the asker, started anew, or may not: the asker still wants it then.
        if self.has_asked(question) {
            self.memory.secrets.show(&question.id);
        }
        Ok(secret)
    }

    /// Whether the answer has a secret that this client is not shown.
    pub(super) fn withholds(&self, question: &Question) -> bool {
        let answered = matches!(question.state, QuestionState::Answered { .. });
        answered && question.whole_answer(None).is_none() && !self.is_asker(question)
    }

    /// Whether this client asked it, or may have: it has the role and the feature of the asker.
    pub(super) fn is_asker(&self, question: &Question) -> bool {
        let own = self.caller.feature.as_ref() == Some(&question.feature_id);
        self.has_asked(question) || (own && self.caller.role == question.asked.role)
    }

    /// Whether this client itself asked it.
    fn has_asked(&self, question: &Question) -> bool {
        match &self.origin {
            Origin::Process => self.memory.secrets.known().asked.contains(&question.id),
            // The tag stands last in a session's name, and the server writes it.
            Origin::Token { tag } => {
                question.asked.session_id.rsplit_once('@').is_some_and(|(_, end)| end == tag)
            }
        }
    }
}
